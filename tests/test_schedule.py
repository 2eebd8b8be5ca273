"""Exponents, starts and their ends in the history of a fit (docs/maintainers/annealing.md)."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from contracts.level import Schedule, StageEnd, Start, Step, anneal
from numpy.testing import assert_allclose, assert_array_equal
from oracles import critical_exponent
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from rffpk import Annealing, PowerKMeans

ROUND = np.random.default_rng(0).standard_normal((1000, 4))
BLOBS = make_blobs(900, 6, centers=7, cluster_std=1.5, random_state=0)[0]
TIGHT = make_blobs(900, 6, centers=7, cluster_std=0.3, random_state=0)[0]


def fit(X, k=7, n_init="auto", seed=0, tol=1e-4, max_iter=1000, init="k-means++", **annealing):
    annealing = Annealing(**{"swaps": 0} | annealing)
    model = PowerKMeans(k, annealing=annealing, n_init=n_init, init=init, random_state=seed)
    return model.set_params(tol=tol, max_iter=max_iter).fit(X)


def passes(model, start=0):
    return [r for r in model.history_ if "s" in r and r["start"] == start]


def starts(model):
    return [r for r in model.history_ if r["stage"] == "start"]


def stages(model, start=0):
    """List the stages of a start: the name, the exponent and the passes of each."""
    grouped = itertools.groupby(passes(model, start), lambda r: (r["stage"], r["s"]))
    return [(*key, [*records]) for key, records in grouped]


def first_exponents(model):
    return {r["kind"]: passes(model, r["start"])[0]["s"] for r in starts(model)}


@pytest.mark.parametrize(
    "X, k, seen", [(ROUND, 3, {2, 4, 5, 1.05}), (TIGHT, 3, {2, 4, 5}), (BLOBS, 7, {2, 4, 1.5})]
)
def test_the_factor_follows_the_number_of_passes(X, k, seen):
    """It grows after stages of at most two passes, and shrinks after five, from 1.05 to 1.5.

    A stage ends where centroids move by at most 0.003, or after ten passes.
    """
    found = [stage for stage in stages(fit(X, k, 1)) if stage[0] == "anneal"]
    factor, cases = 1.2, set()
    for (_, s, records), (_, following, _) in itertools.pairwise(found):
        count, shifts = len(records), [r["shift"] for r in records]
        assert min(shifts[:-1], default=1) > 3e-3
        assert count == 10 or (count < 10 and shifts[-1] <= 3e-3)
        power = 1.3 if count <= 2 else 0.6 if count >= 5 else 1
        factor = min(max(factor**power, 1.05), 1.5)
        cases |= {2 if count <= 2 else 5 if count >= 5 else 4, factor}
        assert_allclose(following, factor * s, rtol=1e-12)
    assert seen <= cases


def test_slow_starts_are_disturbed_before_each_stage_and_others_are_not():
    """So that objectives rise there at times."""
    model = fit(TIGHT, 12, 2)
    rises = {}
    for record in starts(model):
        ends = [each[2] for each in stages(model, record["start"]) if each[0] == "anneal"]
        pairs = [(before[-1], after[0]) for before, after in itertools.pairwise(ends)]
        rises[record["kind"]] = [b["objective"] - a["objective"] for a, b in pairs]
    assert max(rises["critical"]) > 0 >= max(rises["low"])


def hardness(X, centers, s):
    """Compute 1 - sum M' / sum d_min: how far the power mean is from the minimum."""
    d = cdist(X, centers, "sqeuclidean")
    least = d.min(axis=1, keepdims=True)
    soft = least[:, 0] * ((d / least) ** s).sum(axis=1) ** (1 / s)
    return 1 - soft.sum() / least.sum()


@pytest.mark.parametrize("X", [BLOBS, ROUND], ids=["blobs", "round"])
def test_annealing_ends_where_the_power_mean_is_nearly_the_minimum(X):
    """Within a thousandth; passes of k-means follow, to convergence."""
    model = fit(X, n_init=1, max_iter=5000, start=-2.0, factor=1.05, passes=10)
    *annealed, (name, s, last) = stages(model)
    assert (name, s) == ("hard", -math.inf) and {each[0] for each in annealed} == {"anneal"}
    assert last[-1]["shift"] <= 1e-4 and min([r["shift"] for r in last[:-1]], default=1) > 1e-4
    assert model.s_ == annealed[-1][1]
    assert hardness(X, model.cluster_centers_, model.s_) < 1.1e-3
    assert hardness(X, model.cluster_centers_, model.s_ / 1.05**2) > 0.95e-3


@pytest.mark.parametrize("tol", [1e-4, 1e-5])
def test_a_final_exponent_is_reached_and_kept(tol):
    model = fit(ROUND, n_init=1, tol=tol, start=-1.0, end=-3.0, factor=2.0, passes=5)
    found = stages(model)
    assert [each[:2] for each in found] == [*(("anneal", -s) for s in (1, 2, 3)), ("settle", -3)]
    shifts = [r["shift"] for r in found[-1][2]]
    assert shifts[-1] <= tol < min(shifts[:-1]) and model.s_ == -3


@pytest.mark.parametrize("given, most", [({}, 6), ({"end": -2.0}, 6), ({"end": -2.0}, 7)])
def test_the_largest_number_of_passes_ends_a_start_without_convergence(given, most):
    options = {"n_init": 1, "tol": 1e-9, "max_iter": most, "start": -1.0, "factor": 2.0}
    with pytest.warns(ConvergenceWarning, match=f"max_iter={most} passes"):
        model = fit(ROUND, passes=3, **options, **given)
    assert len(passes(model)) == model.n_iter_ == most
    assert [len(records) for *_, records in stages(model)] == [3, 3, 1][: -(-most // 3)]
    assert model.s_ == -2


def test_the_papers_protocol_goes_on_where_the_power_mean_is_nearly_the_minimum():
    with pytest.warns(ConvergenceWarning):
        model = fit(TIGHT, init=TIGHT[:7], tol=0.0, max_iter=4, start=-500.0, factor=2.0,
                    passes=1, until="objective")  # fmt: skip
    assert hardness(TIGHT, model.cluster_centers_, -500.0) < 1e-3
    assert [each[:2] for each in stages(model)] == [("anneal", -500.0 * 2**i) for i in range(4)]


def test_plain_k_means_settles_at_a_final_exponent():
    model = fit(ROUND, n_init=3, end=-3.0)
    (kind, first), *_ = first_exponents(model).items()
    assert (kind, first) == ("k-means++", -math.inf)
    (*one, hard), (*two, soft) = stages(model, 0)
    assert one == ["hard", -math.inf] and two == ["settle", -3]
    for records in (hard, soft):
        assert records[-1]["shift"] <= 1e-4
    with pytest.warns(ConvergenceWarning):  # no pass is left
        short = fit(ROUND, n_init=3, end=-3.0, max_iter=len(hard))
    assert [each[0] for each in stages(short, 0)] == ["hard"]


@pytest.mark.parametrize("n_init", [1, 2, 3, 4])
def test_different_starts(n_init):
    expected = ["low", "k-means++", "low", "critical"]
    kinds = [each["kind"] for each in starts(fit(BLOBS, n_init=n_init))]
    assert kinds == (expected[-n_init:] if n_init != 2 else ["low", "critical"])
    if n_init == 4:
        X = make_blobs(1000, 4, centers=25, cluster_std=2.0, random_state=0)[0]
        kinds = [each["kind"] for each in starts(fit(X, 25, 5))]
        assert kinds == ["merged", "low", "merged", "low", "critical"]


WIDE = np.random.default_rng(0).standard_normal((600, 10))


@pytest.mark.parametrize("end", ["hard", -6.0, -2.0, -0.4])
@pytest.mark.parametrize("X", [WIDE, BLOBS], ids=["round", "blobs"])
def test_exponents_of_different_starts(X, end):
    """From the critical one, and from twice that; none is below the final one."""
    found = fit(X, n_init=3, end=end)
    critical, least = critical_exponent(X), -math.inf if end == "hard" else end
    expected = [-math.inf, max(least, min(-5, 2 * critical)), max(least, min(-0.5, critical))]
    assert_allclose([*first_exponents(found).values()], expected, rtol=1e-6)
    assert (critical < -2.5) == (X is WIDE)
    low = [each for each in stages(found, 1) if each[0] == "anneal"]
    assert all(len(records) <= 2 for *_, records in low)
    for (_, s, _), (_, following, _) in itertools.pairwise(low):
        assert_allclose(following, max(1.1 * s, least))


@pytest.mark.parametrize("tol", [1e-4, 0.1])
def test_a_merged_start_alone_is_k_means_with_a_large_tolerance(tol):
    X = make_blobs(3000, 4, centers=100, cluster_std=2.0, random_state=0)[0]
    model = PowerKMeans(100, tol=tol, random_state=0).fit(X)
    assert [each["kind"] for each in starts(model)] == ["merged"]
    shifts = [r["shift"] for r in passes(model) if r["stage"] == "hard"]
    first = next(i for i, shift in enumerate(shifts) if shift <= max(tol, 1e-2))
    swapped = next(i for i, r in enumerate(passes(model)) if r["stage"] == "swap")
    assert {r["s"] for r in passes(model)} == {-math.inf} and swapped == first + 1


def test_the_first_of_the_cheapest_starts_is_kept_with_an_exponent():
    """Plain k-means has none: it takes that of the last start."""
    kinds = set()
    for seed in range(8):
        records = starts(model := fit(BLOBS, 3, 3, seed))
        kept = int(np.argmin([record["objective"] for record in records]))
        outcomes = [record["outcome"] for record in records]
        assert outcomes.index("kept") == kept and outcomes.count("kept") == 1
        kind = records[kept]["kind"]
        last = kept if kind != "k-means++" else len(records) - 1
        assert model.s_ == [r["s"] for r in passes(model, last) if r["stage"] == "anneal"][-1]
        kinds.add(kind)
    assert "k-means++" in kinds and len(kinds) > 1
    equal = fit(np.repeat(np.eye(4), 5, axis=0), 4, 5)  # all starts cost nothing
    assert_array_equal([record["outcome"] == "kept" for record in starts(equal)], np.arange(5) == 0)


ADAPTIVE = Schedule(start=-1.0, end=-math.inf, max_iter=1000, tol=1e-4)
SOFT = Step(0.5, 1.0, 1.0, 0.0, 0.0, 2, False, 0.0)


class Given:
    """What makes no steps: its stages end as they are given, the first first."""

    def __init__(self, ends, dtype):
        self.ends, self.stages, self.rows = iter(ends), [], SimpleNamespace(dtype=dtype)

    def follow(self, state, stage):
        self.stages.append(stage)
        return state, StageEnd(*next(self.ends))


def run(start, ends, best=math.inf, dtype=np.float64):
    """Return the stages of a start, and its result, if the stages end in turn as `ends` says.

    Each end is a result and a number of steps. None if the start goes on after the last.
    """
    given = Given(ends, dtype)
    try:
        return given.stages, anneal(given, None, Start("given", start), best)[1]
    except StopIteration:
        return given.stages, None


def test_merged_centroids_are_disturbed_before_the_next_stage():
    merged = SOFT._replace(merged=True)
    stages, _ = run(ADAPTIVE, [(SOFT, 3), (merged, 3), (SOFT, 3)])
    assert [stage.noise for stage in stages[:2] + stages[3:]] == [0] * 3
    assert 0 < stages[2].noise < 1e-3


@pytest.mark.parametrize("dtype, most", [(np.float32, 2**16), (np.float64, 2**45)])
def test_annealing_ends_in_the_hard_rule(dtype, most):
    """At last where the power mean has lost its digits."""
    stages, end = run(ADAPTIVE, [(SOFT, 2)] * 200, dtype=dtype)
    assert end.converged and -most <= end.s < -most / 1.6
    assert stages[-1][:2] == ("hard", -math.inf) and stages[-2].s == end.s
    assert stages[-1].tol == 1e-4 and stages[-1].most == 1000 - 2 * (len(stages) - 1)
    assert {stage.name for stage in stages[:-1]} == {"anneal"}


@pytest.mark.parametrize("ratio, over", [(0.9989, False), (0.9991, True)])
@pytest.mark.parametrize("end", [-math.inf, -50.0])
def test_the_power_mean_is_nearly_the_minimum_at_a_thousandth(ratio, over, end):
    nearly = SOFT._replace(soft=3 * ratio, hard=3.0)
    stages, _ = run(Schedule(-1.0, end, 1000, 1e-4), [(SOFT, 3), (nearly, 3)])
    assert (stages[-1].name == "hard") == (over and end == -math.inf)


@pytest.mark.parametrize("objectives, passes", [
    ([10.0, 8.0, 7.0, 6.37, 5.9], 2),  # less by 20, 13, 9.9 %
    ([1.0, 2.0, 2.1], 9),  # a rise ends it only within the tolerance
])  # fmt: skip
def test_the_papers_protocol_ends_by_the_objective(objectives, passes):
    schedule = Schedule(-1.0, -math.inf, 100, 0.1, 2.0, passes=passes, until="objective",
                        noise=0.02)  # fmt: skip
    stages, end = run(schedule, [(SOFT._replace(objective=f), 1) for f in objectives])
    assert [stage.s for stage in stages] == ([-1, -1, -2, -2] if passes == 2 else [-1] * 3)
    assert all(stage.noise == (0 if i % passes else 0.02) for i, stage in enumerate(stages))
    assert all(stage.name == "anneal" and stage.most == 1 for stage in stages)
    assert end.s == stages[-1].s and end.converged


def test_a_start_is_hopeless_when_nearly_hard_and_clearly_above_the_best():
    given = itertools.product(
        [-math.inf, -50.0],
        [0.95, 0.995],  # over the cost of nearest centroids
        [(1.0, 0.01), (1.0, 0.1), (1.01, 0.0), (1.1, 0.0)],
    )
    for end, soft, (cost, penalty) in given:
        moved = Step(soft * cost, cost, cost + penalty, penalty, 0.0, 2, False, 0.0)
        schedule = Schedule(-1.0, end, 1000, 1e-4)
        taken, found = run(schedule, [(moved, 3)] * 3, best=1.0)
        if soft > 0.99 and cost + penalty > 1.02 and math.isinf(end):
            assert found.dropped and not found.converged and len(taken) == 1
        else:
            assert found is None and {stage.name for stage in taken} == {"anneal"}
        assert run(schedule, [(moved, 3)] * 3)[1] is None  # no other start has ended
