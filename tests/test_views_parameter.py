"""Views as columns of one table, and containers of views that are no list."""

import re

import numpy as np
import pandas as pd
import pytest
from conventions import ip_rff_mkpkm
from joblib import parallel_backend
from numpy.testing import assert_array_equal
from refusals import SEVERAL as CLASSES
from scipy.sparse import diags
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    validation_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from rffpk import (
    MKKM,
    AverageMKKM,
    KernelKMeans,
    KernelPowerKMeans,
    MultiKernelPowerKMeans,
    NystroemKernelKMeans,
    PowerKMeans,
    RFFKernelPowerKMeans,
)

X = load_iris().data[::2]
FRAME = pd.DataFrame(X, columns=[*"abcd"])


@pytest.mark.parametrize("cls", CLASSES)
def test_columns_of_a_table_are_the_views_of_a_list(cls):
    views, model = [X[:, :1], X[:, [3, 2]]], cls(3, random_state=0)
    listed = clone(model).fit(views)
    table = model.set_params(views=[[0], slice(3, 1, -1)]).fit(X)
    assert_array_equal(table.labels_, listed.labels_)
    assert_array_equal(table.predict(X), listed.predict(views))
    assert table.n_features_in_ == 4
    with pytest.raises(ValueError, match="^X: is a list of views.* Pass one array"):
        model.fit([X, X])


@pytest.mark.parametrize("cls", CLASSES)
def test_search_over_parameters_splits_the_rows(cls):
    model = cls(3, views=[[0, 1], [2, 3]], random_state=0)
    scoring = None if hasattr(model, "score") else lambda fitted, X: -len(fitted.predict(X))
    grid = {"n_clusters": [2, 3]}
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
    model = ip_rff_mkpkm(3, views=[[0], [2, 3]], random_state=0).fit(X)
    before = model.predict(X)
    model.set_params(views=[[1], [0]])
    assert_array_equal(model.predict(X), before)


# ---- lists of views are not split by views ------------------------------------------------------

EQUAL = [X[:, :2], X[:, 2:], X[:, 1:3], X[:, ::3]]  # any two views fit in place of any other two


@pytest.mark.promise(
    "Input",
    "scikit-learn's cross-validation of a list of views, which would split the views instead "
    "of the rows, is refused.",
)
@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize(
    "split, y, options",
    [
        (cross_val_score, None, {}),
        (cross_val_score, None, {"scoring": lambda fitted, part: 0.0}),
        (cross_val_score, [0, 1, 0, 1], {}),
        (cross_val_score, None, {"n_jobs": 2}),
        (cross_val_predict, None, {}),
        (validation_curve, None, {"param_name": "n_clusters", "param_range": [2]}),
        (GridSearchCV, None, {"param_grid": {"n_clusters": [2]}}),
    ],
    ids=["score", "fit", "classes", "threads", "predict", "curve", "search"],
)
def test_a_list_of_views_is_not_split_by_views(cls, split, y, options):
    model = cls(2, random_state=0)
    with (
        parallel_backend("threading"),
        pytest.raises(ValueError, match="cross-validation would split the list.* parameter views"),
    ):
        if split is GridSearchCV:
            GridSearchCV(model, cv=2, **options).fit(EQUAL)
        elif split is cross_val_predict:
            cross_val_predict(model, EQUAL, cv=2)
        else:
            split(model, EQUAL, y, cv=2, error_score="raise", **options)


def test_a_pipeline_that_makes_views_of_rows_is_split_by_rows():
    halves = FunctionTransformer(lambda rows: [rows[:, :2], rows[:, 2:]])
    model = make_pipeline(halves, MultiKernelPowerKMeans(2, random_state=0))
    assert np.isfinite(cross_val_score(model, X, cv=2, error_score="raise")).all()


# ---- kernel matrices that are taken for rows ----------------------------------------------------

ROWS = load_iris().data[:40]
LIKE = "symmetric like a matrix of (kernel values|distances) or affinities"


@pytest.mark.parametrize(
    "cls", [*CLASSES, KernelKMeans, KernelPowerKMeans, NystroemKernelKMeans, RFFKernelPowerKMeans]
)
@pytest.mark.parametrize(
    "K", [rbf_kernel(ROWS), ROWS @ ROWS.T, euclidean_distances(ROWS)], ids=["rbf", "linear", "far"]
)
def test_a_matrix_that_looks_like_a_kernel_is_named(cls, K):
    with pytest.warns(UserWarning, match=f"^X: is {LIKE}") as caught:
        cls(2, random_state=0).fit(K)
    assert len([each for each in caught if re.search(LIKE, str(each.message))]) == 1
    if cls in CLASSES:
        with pytest.warns(UserWarning, match=rf"^X\[1\]: is {LIKE}"):
            cls(2, random_state=0).fit([ROWS, K])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "model, rows",
    [
        (KernelPowerKMeans(2, kernel="precomputed"), rbf_kernel(ROWS)),
        (MKKM(2, kernels="precomputed"), [rbf_kernel(ROWS), ROWS @ ROWS.T]),
        (PowerKMeans(2), rbf_kernel(ROWS)),  # it takes no kernel
        (KernelPowerKMeans(2), np.random.RandomState(0).randn(30, 30)),
        (KernelPowerKMeans(2), np.diag([1.0, 2, 3, 4, 5])),
        (RFFKernelPowerKMeans(2), diags(np.arange(1.0, 41))),
        (KernelPowerKMeans(2), np.array([[1.0, 2], [2, 1]])),
        (KernelPowerKMeans(2), np.add.outer(range(9), range(9)) % 5.0),
    ],
    ids=["kernel", "kernels", "columns", "square", "diagonal", "sparse", "small", "symmetric"],
)
def test_other_rows_are_not_taken_for_a_kernel(model, rows):
    model.set_params(random_state=0).fit(rows)
