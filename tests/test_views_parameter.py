"""Views as columns of one table, and containers of views that are no list."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV

from rffpk import (
    FAMKKM,
    MKKM,
    SMKC,
    AverageMKKM,
    KernelPowerKMeans,
    MultiKernelPowerKMeans,
    RFFMultiKernelPowerKMeans,
    SimpleMKKM,
)

X = load_iris().data[::2]
FRAME = pd.DataFrame(X, columns=[*"abcd"])
CLASSES = [
    AverageMKKM, FAMKKM, MKKM, MultiKernelPowerKMeans, RFFMultiKernelPowerKMeans, SMKC, SimpleMKKM,
]  # fmt: skip


@pytest.mark.parametrize("cls", CLASSES)
def test_columns_of_a_table_are_the_views_of_a_list(cls):
    model = cls(3, random_state=0)
    listed = clone(model).fit([X[:, :1], X[:, [3, 2]]])
    table = clone(model).set_params(views=[[0], slice(3, 1, -1)]).fit(X)
    assert_array_equal(table.labels_, listed.labels_)
    assert_array_equal(table.predict(X), listed.predict([X[:, :1], X[:, [3, 2]]]))
    assert table.n_features_in_ == 4


@pytest.mark.parametrize("cls", CLASSES)
def test_search_over_parameters_splits_the_rows(cls):
    model = cls(3, views=[[0, 1], [2, 3]], random_state=0)
    grid = {"n_clusters": [2, 3]}
    scoring = None if hasattr(model, "score") else lambda fitted, X: -len(fitted.predict(X))
    search = GridSearchCV(model, grid, cv=2, scoring=scoring, error_score="raise").fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(search.best_estimator_.labels_) == len(X)


@pytest.mark.parametrize(
    "views",
    [
        [["a"], ["c", "d"]],
        [np.array([True, False, False, False]), np.array([-2, -1], dtype=np.int8)],
        ([0], slice(2, None)),
        [pd.Index(["a"]), pd.Index(["c", "d"])],
    ],
)
def test_names_masks_indices_and_slices_name_columns(views):
    model = AverageMKKM(3, views=views, random_state=0).fit(FRAME)
    expected = AverageMKKM(3, random_state=0).fit([X[:, :1], X[:, 2:]])
    assert_array_equal(model.labels_, expected.labels_)
    assert_array_equal(model.predict(FRAME), expected.predict([X[:, :1], X[:, 2:]]))
    assert [*model.feature_names_in_] == [*"abcd"]


def test_views_that_are_set_after_a_fit_count_from_the_next():
    model = RFFMultiKernelPowerKMeans(3, views=[[0], [2, 3]], random_state=0).fit(X)
    before = model.predict(X)
    model.set_params(views=[[1], [0]])
    assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize(
    "views, message",
    [
        ("ab", "views == 'ab', must be a list with the columns of each view"),
        ([], r"views == \[\], must be a list"),
        ([[0], []], r"views\[1\] == \[\], must be a slice, or a list"),
        ([[0], [4]], r"views\[1\] == \[4\], must have indices of the 4 columns"),
        ([["a"], ["e"]], r"views\[1\] has \['e'\], must have names of columns"),
        ([[0.5]], r"views\[0\] == \[0.5\], must have indices"),
        ([slice(4, None)], r"views\[0\] == slice.* has none of the 4 columns"),
        ([[[0]]], r"views\[0\] == \[\[0\]\], must be a slice"),
        ([[True, False]], r"views\[0\] == \[True, False\], must have indices"),
    ],
)
def test_columns_that_are_not_there_are_named(cls, views, message):
    model = cls(3, views=views)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(FRAME)
    assert not hasattr(model, "_view_columns")


@pytest.mark.parametrize("cls", CLASSES)
def test_views_of_a_list_are_not_given_twice(cls):
    with pytest.raises(ValueError, match="X is a list of views, must be one array"):
        cls(3, views=[[0], [1]]).fit([X, X])


def test_kernel_matrices_have_no_columns_to_choose():
    with pytest.raises(ValueError, match="views needs columns, but kernels == 'precomputed'"):
        MKKM(3, views=[[0]], kernels="precomputed").fit(X @ X.T)


@pytest.mark.parametrize("cls", [*CLASSES, KernelPowerKMeans])
def test_other_containers_of_views_are_named(cls):
    cells = np.empty((1, 2), dtype=object)
    cells[0, 0], cells[0, 1] = X, X[:, :2]
    for given, message in [
        ({"first": X, "second": X}, r"X is a dict of 2 views, must be a list: pass \[\*X"),
        (np.dstack([X @ X.T] * 3), r"X.shape == \(75, 75, 3\): pass a stack"),
        (cells, r"such as a cell array: pass \[\*X.ravel\(\)\]"),
        ([X.T, X[:50].T, X.T[:2]], r"X\[2\] has 2 rows"),
        ([X.T, X.T[:3]], r"X\[1\] has 3 rows, X\[0\] has 4. Rows are samples: pass the trans"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            cls(3).fit(given)
