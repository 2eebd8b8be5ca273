"""The cases of parametrized tests in a default run. All other cases are marked `exhaustive`."""

import itertools
import zlib

from rffpk import _core

# One estimator of each base, whose conventions are checked.
CHECKED = {
    "RandomFourierFeatures(n_frequencies=8)", "RFFKernelPowerKMeans()",
    "KernelPowerKMeans(n_init=2)", "NystroemKernelKMeans()", "MKKM()",
}  # fmt: skip
MANY = 5  # of so many estimators, every third represents all


def chosen(cases):
    """Choose the cases of a test for a default run.

    The run has the widest instruction set and every third of many estimators. It has all
    combinations of the parameters that have two values. Each value of the other parameters occurs
    once, as on the diagonal of a table.
    """
    if len(cases) == 1:
        return cases
    cases = [case for case in cases if not is_held_by_another(case)]
    for names in parameters(cases):
        cases = every_third_estimator(cases, names)
    axes = sorted((ranks(cases, names) for names in parameters(cases)), key=max)
    on_diagonal = diagonal([max(axis) + 1 for axis in axes])
    cases = [case for case, place in zip(cases, zip(*axes)) if place in on_diagonal]
    few = cases[0].get_closest_marker("few") if cases else None
    return cases[: few.args[0]] if few else cases


def is_held_by_another(case):
    """Decide whether another case stands for this case.

    It may be a case without a mark, with a wider instruction set, or of a class with the same base.
    """
    if case.get_closest_marker("exhaustive"):
        return True
    given = case.callspec.params
    if case.name.startswith("test_scikit_learn_"):
        return str(given["estimator"]) not in CHECKED
    return given.get("isa", given.get("implementation")) in _core.isa_levels()[:-1]


def parameters(cases):
    """List the names of what varies: some of each `parametrize`, and the name of each fixture."""
    if not cases:
        return []
    together = []
    for mark in cases[0].iter_markers("parametrize"):
        names = mark.args[0]
        together.append(names.replace(" ", "").split(",") if isinstance(names, str) else names)
    fixtures = set(cases[0].callspec.params).difference(*together)
    return [*together, *([name] for name in sorted(fixtures))]


def ranks(cases, names):
    """Rank the values of each case among the values of all cases."""
    column = [tuple(id(case.callspec.params[name]) for name in names) for case in cases]
    places = {value: place for place, value in enumerate(dict.fromkeys(column))}
    return [places[value] for value in column]


def every_third_estimator(cases, names):
    """Select the estimators: if there are many, begin elsewhere in each test."""
    first, *others = (cases[0].callspec.params[name] for name in names)
    places = ranks(cases, names)
    model = getattr(first, "model", first)  # of a case with one
    if others or not hasattr(model, "get_params") or max(places) + 1 < MANY:
        return cases
    begin = zlib.crc32(cases[0].originalname.encode()) % 3
    return [case for case, place in zip(cases, places) if place % 3 == begin]


def diagonal(sizes):
    """Choose places in a table of so many dimensions, the smallest first."""
    pairs = sum(size <= 2 for size in sizes)
    combinations = [*itertools.product(*map(range, sizes[:pairs]))]
    steps = range(max([len(combinations), *sizes]))
    return {
        (*combinations[step % len(combinations)], *(step % size for size in sizes[pairs:]))
        for step in steps
    }
