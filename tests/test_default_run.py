"""A default run leaves out cases, and no value of any parameter."""

import itertools
from pathlib import Path

import default_run
import named_mutants
import pytest


def test_each_value_and_all_combinations_of_two_flags_are_on_the_diagonal():
    sizes = [2, 2, 3, 7]
    places = default_run.diagonal(sizes)
    assert len(places) == 7
    assert {place[:2] for place in places} == {*itertools.product(range(2), repeat=2)}
    for size, values in zip(sizes, zip(*places)):
        assert {*values} == {*range(size)}
    assert default_run.diagonal([3]) == {(0,), (1,), (2,)} and default_run.diagonal([]) == {()}


def test_conventions_of_each_of_them_are_in_a_default_run(request):
    """Where the files are collected that check them."""
    items = request.session.items
    checks = [item for item in items if item.name.startswith("test_scikit_learn_c")]
    files = {item.path.stem for item in checks}
    if files >= {"test_estimators", "test_diffusion"}:
        given = {str(item.callspec.params["estimator"]) for item in checks if "[" in item.name}
        assert given >= default_run.CHECKED


# Tests of promises that need another build of the core than mutants have.
WITHOUT_MUTANTS = {
    "test_passes_run_in_the_places_of_openmp_and_calls_of_python_in_all",  # only with OpenMP
}


def test_every_promise_of_a_default_run_has_a_mutant(monkeypatch):
    tools = Path(__file__).parents[1] / "tools"
    if not tools.exists():
        pytest.skip("no tools")
    monkeypatch.syspath_prepend(tools)
    import promises

    tests = [
        test for path in tools.parent.glob("tests/test_*.py") for test in promises.tests_of(path)
    ]
    killers = {mutant.test.partition("::")[2] for mutant in named_mutants.PROMISES}
    for promise in promises.promises_of(tests):
        names = {test.name for test in promise.holders if test.stage == "tests"}
        assert not names or names & (killers | WITHOUT_MUTANTS), promise.sentence
