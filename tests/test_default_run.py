"""A default run leaves out cases, and no value of any parameter."""

import itertools

import default_run

import rffpk


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
        assert str(eval(text, {**vars(rffpk)})) == text


def test_conventions_of_each_of_them_are_in_a_default_run(request):
    """Where the files are collected that check them."""
    items = request.session.items
    checks = [item for item in items if item.name.startswith("test_scikit_learn_c")]
    files = {item.path.stem for item in checks}
    if files >= {"test_estimators", "test_exact", "test_mkkm", "test_famkkm"}:
        given = {str(item.callspec.params["estimator"]) for item in checks if "[" in item.name}
        assert given >= default_run.CHECKED
