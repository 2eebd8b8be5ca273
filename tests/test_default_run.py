"""A default run leaves out cases, and no value of any parameter."""

import ast
import itertools
from pathlib import Path

import default_run
import named_mutants
import pytest

import rffpk

# What takes long, or has threads of BLAS.
SLOW = {"fit", "fit_predict", "qr", "svd", "eigh", "eig", "eigvalsh", "solve"}


def test_each_value_and_all_combinations_of_two_flags_are_on_the_diagonal():
    sizes = [2, 2, 3, 7]
    places = default_run.diagonal(sizes)
    assert len(places) == 7
    assert {place[:2] for place in places} == {*itertools.product(range(2), repeat=2)}
    for size, values in zip(sizes, zip(*places)):
        assert {*values} == {*range(size)}
    assert default_run.diagonal([3]) == {(0,), (1,), (2,)} and default_run.diagonal([]) == {()}


def test_estimators_whose_conventions_are_checked_are_written_as_they_print():
    for text in default_run.CHECKED:
        assert str(eval(text, {name: getattr(rffpk, name) for name in rffpk.__all__})) == text


def test_conventions_of_each_of_them_are_in_a_default_run(request):
    """Where the files are collected that check them."""
    items = request.session.items
    checks = [item for item in items if item.name.startswith("test_scikit_learn_c")]
    files = {item.path.stem for item in checks}
    if files >= {"test_estimators", "test_exact", "test_fusions", "test_famkkm"}:
        given = {str(item.callspec.params["estimator"]) for item in checks if "[" in item.name}
        assert given >= default_run.CHECKED


def test_collection_makes_no_fits_and_no_decompositions():
    slow_calls = [
        f"{path.name}:{call.lineno}: {ast.unparse(call.func)}"
        for path in sorted(Path(__file__).parent.glob("test_*.py"))
        for call in calls_at_import(ast.parse(path.read_text()))
        if ast.unparse(call.func).split(".")[-1] in SLOW
    ]
    assert not slow_calls


def calls_at_import(tree):
    """Yield the calls outside of functions, and in functions of the module that are called there.
    A conditional statement is that of a script, `if __name__ == "__main__"`."""
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    nodes = [node for node in tree.body if not isinstance(node, ast.If)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.FunctionDef):
            nodes += node.decorator_list
        elif not isinstance(node, ast.Lambda):
            nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.Call):
            yield node
            called = functions.pop(ast.unparse(node.func), None)
            nodes += called.body if called else []


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
