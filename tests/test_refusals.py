"""Input that fits refuse: by name, before anything is changed, and with a remedy that works."""

import pickle
import re
import warnings

import numpy
import pandas
import pytest
import scipy.sparse
from refusals import FRAME, MAPS, NAMES, REFUSALS, ROWS, K, Y
from sklearn.metrics import adjusted_rand_score

LABELS = pandas.Series(Y, NAMES)

ROWS_OF_TABLE = [pytest.param(i, id=f"{row.argument}-{i}") for i, row in enumerate(REFUSALS)]
WITH_REMEDY = [case for case in ROWS_OF_TABLE if REFUSALS[case.values[0]].remedy]


def some_or_all_classes(test):
    """Try a few classes for each value in a default run."""
    steps = [12, pytest.param(1, marks=pytest.mark.exhaustive)]
    return pytest.mark.parametrize("step", steps)(test)


def classes_of(number, step):
    """Return a row of the table, and each class of a number of classes that refuse its value."""
    row = REFUSALS[number]
    classes = row.refused_by()
    return row, classes[number % min(step, len(classes)) :: step]


def model_of(cls, row):
    """Return a model with the parameters of a row."""
    model = cls(**({} if cls in MAPS else {"n_clusters": K}), random_state=0)
    own = {} if row.argument in ("X", "sample_weight") else {row.argument: row.value}
    return model.set_params(**own, **row.options)


def arguments_of(row, value):
    """Return the arguments of a fit with a value in the place of that of a row."""
    if row.argument == "X":
        return {"X": value}
    if row.argument == "sample_weight":
        has_labels = isinstance(row.value, (dict, pandas.Series))
        return {"X": FRAME if has_labels else ROWS, "sample_weight": value}
    return {"X": row.rows}


def content_of(value):
    """Return bytes of what a value holds, without what pandas computes once it is asked."""
    if isinstance(value, (list, tuple)):
        return [content_of(part) for part in value]
    if isinstance(value, (pandas.DataFrame, pandas.Series)):
        value = value.to_numpy(), [*value.index]
    return pickle.dumps(value)


def refusal(model, row):
    """Return what a fit says of the value of a row."""
    with warnings.catch_warnings(), pytest.raises(row.error) as error:
        warnings.simplefilter("ignore")
        model.fit(**arguments_of(row, row.value))
    return str(error.value)


@pytest.mark.promise(
    "Input",
    "NaN and infinity are refused with the row and the column of the first one, on workers of "
    "a cluster too.",
)
@some_or_all_classes
@pytest.mark.parametrize("number", ROWS_OF_TABLE)
def test_every_class_refuses_the_value_by_name(number, step):
    row, classes = classes_of(number, step)
    for cls in classes:
        model = model_of(cls, row)
        message = refusal(model, row)
        assert re.search(row.name, message), message
        assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.promise("Input", "A fit that fails leaves the estimator as it was.")
@some_or_all_classes
@pytest.mark.parametrize("number", ROWS_OF_TABLE)
def test_nothing_that_the_caller_owns_is_changed(number, step):
    """Neither the value nor what a fitted model has."""
    row, classes = classes_of(number, 2 * step)
    for cls in classes:
        model = cls(**({} if cls in MAPS else {"n_clusters": 2}), random_state=0).fit(ROWS)
        model.set_params(**model_of(cls, row).get_params())
        before, value = dict(vars(model)), content_of(row.value)
        refusal(model, row)
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is known for name, known in before.items())
        assert content_of(row.value) == value


@pytest.mark.promise(
    "Input",
    "Objects that are not arrays are refused at once. What the message says to pass gives the "
    "right clusters.",
)
@some_or_all_classes
@pytest.mark.parametrize("number", WITH_REMEDY)
def test_the_remedy_is_accepted(number, step):
    row, classes = classes_of(number, step)
    for cls in classes:
        model = model_of(cls, row)
        code = re.search(row.remedy, refusal(model, row))
        names = {
            "numpy": numpy,
            "pandas": pandas,
            "scipy": scipy,
            "X": FRAME,
            row.argument: row.value,
        }
        remedy = eval(code[1], {**names, "D": row.value, "W": row.value})
        remedy = remedy(row.value) if callable(remedy) else remedy
        X = remedy if row.first is None else [row.first, remedy]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model.set_params(**row.then).fit(**arguments_of(row, X))
        if cls not in MAPS and row.argument == "X":
            is_labelled = isinstance(X, pandas.DataFrame) and X.index.isin(NAMES).all()
            labels = LABELS[X.index] if is_labelled else Y
            assert adjusted_rand_score(labels, model.labels_) > 0.95
