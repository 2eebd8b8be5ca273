"""Rows in other containers than arrays, and in another order, beside the table of refusals."""

import re
import warnings
from collections import deque

import numpy
import numpy as np
import pandas
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal
from refusals import (
    FIRST,
    FRAME,
    FRAMES,
    HOLED,
    KERNELS,
    LAST,
    MAPS,
    NEAR,
    OF_D,
    OF_W,
    ORDER,
    PRECOMPUTED,
    ROWS,
    SEVERAL,
    SHUFFLED,
    TWICE,
    VIEWS,
    WEIGHT,
    AnnData,
    K,
    N,
    Y,
)
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.metrics.pairwise import rbf_kernel

import rffpk
from rffpk.tables import TablePreprocessor


def model_of(cls, **parameters):
    return cls(**({} if cls in MAPS else {"n_clusters": K}), random_state=0, **parameters)


def refusal(model, X, **options):
    """Return what a fit says of X."""
    with pytest.raises((ValueError, TypeError)) as error:
        model.fit(X, **options)
    return str(error.value)


def followed(message, pattern, **names):
    """Evaluate what a message says to pass."""
    code = re.search(pattern, message)
    assert code, message
    packages = {"numpy": numpy, "pandas": pandas, "scipy": scipy}
    return eval(code[1], {**packages, **names})


def assert_clusters(model, X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of few clusters in a sample
        assert adjusted_rand_score(Y, model.fit(X, **options).labels_) > 0.95


# ---- the order of rows --------------------------------------------------------------------------


@pytest.mark.parametrize("cls", SEVERAL[::3])
def test_new_views_in_another_order_are_refused(cls):
    model = model_of(cls).fit(FRAMES)
    for method in {"predict", "predict_proba", "transform", "score"} & {*dir(model)}:
        with pytest.raises(ValueError, match=r"^X\[1\]: row 0 .* in X\[0\]\. Pass "):
            getattr(model, method)([FRAMES[0], SHUFFLED])
    plain = [frame.reset_index(drop=True) for frame in FRAMES]
    assert_array_equal(model.predict(plain), model.labels_)


@pytest.mark.promise(
    "Input",
    "Views, or X and its weights, whose indices differ are refused: frames and series are "
    "never matched by place.",
)
@pytest.mark.parametrize("cls", [rffpk.PowerKMeans, rffpk.FuzzyCMeans, rffpk.KernelKMeans])
def test_a_table_in_another_order_is_refused(cls):
    model = model_of(cls).fit(FRAME)
    for method in {"score", "partial_fit"} & {*dir(model)}:
        with pytest.raises(ValueError, match="^sample_weight: row 0 .* in X. Pass "):
            getattr(model, method)(FRAME, sample_weight=WEIGHT.iloc[ORDER])
    with pytest.raises(ValueError, match=r"^table: row 0 .* in X\. Pass table\.loc"):
        rffpk.describe(model, FRAME, n_resamples=0, table=FRAME.iloc[ORDER])
    rffpk.describe(model, FRAME, n_resamples=0, table=FRAME.loc[FRAME.index])


def test_pairs_whose_columns_have_no_names_are_in_the_order_of_the_rows():
    rows = pd.DataFrame(ROWS).sample(frac=1, random_state=0)
    pairs = pd.DataFrame(rbf_kernel(rows), rows.index)
    model = rffpk.KernelPowerKMeans(2, kernel="precomputed", random_state=0)
    assert_array_equal(model.fit(pairs).labels_, model.fit(pairs.to_numpy()).labels_)


@pytest.mark.parametrize("cls", [rffpk.RFFMultiKernelPowerKMeans, rffpk.MKKM])
def test_labels_of_rows_that_are_not_shared(cls):
    """A default index may be all that is left of another order."""
    sorted_again = FRAMES[0].iloc[ORDER].sort_index().reset_index(drop=True)
    assert_clusters(model_of(cls), [sorted_again, FRAMES[1].reset_index(drop=True)])
    parts = [FRAMES[0].iloc[:-1], FRAMES[1].iloc[1:]]
    message = refusal(model_of(cls), parts)
    common = followed(message, r"common = (.*)\.$", X=parts)
    pair = [
        followed(message, rf"both .*?(X\[{i}\]\.loc\[common\])", X=parts, common=common)
        for i in (0, 1)
    ]
    assert len(common) == N - 2 and pair[0].index.equals(pair[1].index)


def test_equal_labels_are_equal_whatever_their_type():
    a, b = (pd.DataFrame(x) for x in VIEWS)
    dates = pd.MultiIndex.from_product([pd.date_range("2020", periods=N // 2), [1, 2]])
    objects = pd.Index(range(N), dtype=object)
    for first, second in [
        *((a.index, index) for index in (np.arange(N), np.arange(N) * 1.0, objects)),
        (dates, dates),
        (TWICE, TWICE),
    ]:
        assert_clusters(model_of(rffpk.MKKM), [a.set_axis(first), b.set_axis(second)])
    assert "X[1]: row 0" in refusal(model_of(rffpk.MKKM), [a, b.set_axis(dates)])


# ---- objects that are no arrays -----------------------------------------------------------------


def test_iterators_are_refused():
    message = refusal(model_of(rffpk.KernelKMeans), (x for x in np.split(ROWS, 4)))
    blocks = (x for x in np.split(ROWS, 4))
    assert_array_equal(followed(message, r"Pass (.*) if it yields rows", X=blocks), ROWS)
    message = refusal(model_of(rffpk.PowerKMeans), (x for x in np.split(ROWS, 4)))
    source = followed(message, r"such as (.*)\.$", blocks=lambda: iter(np.split(ROWS, 4)))
    assert_array_equal(model_of(rffpk.PowerKMeans).fit_predict(source) >= 0, True)


def test_lists_and_buffers_are_arrays():
    expected = model_of(rffpk.KernelKMeans).fit(ROWS).labels_
    for X in (deque(ROWS.tolist()), memoryview(ROWS), tuple(map(tuple, ROWS)), [*ROWS]):
        assert_array_equal(model_of(rffpk.KernelKMeans).fit(X).labels_, expected)


# ---- stacks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", PRECOMPUTED)
def test_a_stack_of_precomputed_kernels_is_taken(cls):
    model, stack = model_of(cls, kernels="precomputed"), np.stack(KERNELS)
    labels = model.fit(stack).labels_
    assert_array_equal(labels, model_of(cls, kernels="precomputed").fit(KERNELS).labels_)
    assert_array_equal(model.predict(stack[:, :7]), labels[:7])


def test_as_many_kernels_as_rows():
    cube = np.fromfunction(lambda a, b, c: np.minimum(np.minimum(a, b), c), (9, 9, 9))
    message = refusal(model_of(rffpk.MKKM), cube)
    for way in (FIRST, LAST):
        assert np.array_equal(followed(message, way, X=cube), cube)


# ---- distances and affinities -------------------------------------------------------------------


def warned(cls, X, like):
    """Return what a fit warns of rows that are symmetric."""
    with pytest.warns(UserWarning, match=f"symmetric like a matrix of {like}") as caught:
        model_of(cls).fit(X)
    return next(str(w.message) for w in caught if "symmetric" in str(w.message))


@pytest.mark.promise(like="test_the_remedy_is_accepted")
@pytest.mark.parametrize("cls", [rffpk.KernelPowerKMeans, rffpk.RFFKernelPowerKMeans, rffpk.MKKM])
@pytest.mark.parametrize(
    "M, pattern",
    [
        (np.maximum(pairwise_distances(ROWS), 0), OF_D),
        (np.maximum(NEAR, NEAR.T), OF_W),
        (scipy.sparse.csr_array(np.maximum(NEAR, NEAR.T)), OF_W),
    ],
    ids=["distances", "affinities", "graph"],
)
def test_distances_and_affinities_are_told_apart_in_warnings(cls, M, pattern):
    dense = M.toarray() if scipy.sparse.issparse(M) else M
    text = warned(cls, M, ".*(distances|affinities)")
    K_of_M = followed(text, pattern, D=dense, W=dense)
    assert_clusters(model_of(rffpk.AverageMKKM, kernels="precomputed"), K_of_M)


def test_affinities_with_their_diagonal_are_kernel_values():
    """They are passed as they are."""
    for cls in (rffpk.KernelPowerKMeans, rffpk.RFFKernelPowerKMeans):
        assert "istances" not in warned(cls, KERNELS[0], "kernel values")
    assert_clusters(model_of(rffpk.KernelPowerKMeans, kernel="precomputed"), KERNELS[0])


# ---- numbers that are missing -------------------------------------------------------------------


@pytest.mark.parametrize("cls", SEVERAL)
def test_missing_numbers_of_views_are_found(cls):
    message = refusal(model_of(cls), [ROWS[:, :2], HOLED[:, 2:]])
    allows = "allow_missing_views" in model_of(cls).get_params()
    other = "" if allows else " of RFFMultiKernelPowerKMeans"
    assert f"allow_missing_views=True{other} takes dense rows" in message
    if allows:
        views = [ROWS[:, :2], np.where(np.isnan(HOLED).any(axis=1)[:, None], np.nan, ROWS[:, 2:])]
        assert_clusters(model_of(cls, allow_missing_views=True), views)


@pytest.mark.parametrize("measure", ["partition_coefficient", "clustering_accuracy"])
def test_measures_refuse_objects_at_once(measure):
    arguments = [AnnData()] if measure == "partition_coefficient" else [[0, 1], AnnData()]
    with pytest.raises(TypeError, match=r"^(memberships|labels_pred): is of type AnnData"):
        getattr(rffpk.metrics, measure)(*arguments)


def test_tables_of_arrow_have_names_like_frames():
    arrow = pytest.importorskip("pyarrow")
    known = {"size": [1.0, 2.0, 5.0, 6.0] * 5, "word": ["a", "b"] * 10}
    table = arrow.table(known)
    with pytest.raises(ValueError, match="^X: .*'a' in column 'word'. Replace"):
        rffpk.PowerKMeans(2).fit(table)
    with pytest.raises(ValueError, match="^X: .*first in row 0, column 'size'. Fill in"):
        rffpk.PowerKMeans(2).fit(arrow.table({"size": [None, 1.0]}))
    taken, of_frame = (TablePreprocessor().fit(x) for x in (table, pd.DataFrame(known)))
    assert [*taken.get_feature_names_out()] == ["size", "word=a", "word=b"]
    assert_array_equal(taken.transform(table), of_frame.transform(pd.DataFrame(known)))
    numbers = table.select(["size"])
    model = rffpk.PowerKMeans(2, random_state=0).fit(numbers)
    assert rffpk.describe(model, numbers, n_resamples=1, random_state=0).columns == ["size"]


@pytest.mark.parametrize("cls", [rffpk.PowerKMeans, rffpk.FuzzyCMeans, rffpk.RFFKernelPowerKMeans])
def test_initial_centroids_in_a_frame_have_the_columns_of_x(cls):
    X = pd.DataFrame({"a": [0.0, 0.1, 5.0, 5.1], "b": [9.0, 9.1, 1.0, 1.1]})
    init = X.iloc[[0, 2]]
    expected = cls(2, init=init, random_state=0).fit(X).cluster_centers_
    with pytest.raises(ValueError, match=r"^init: .*another order\. Pass init\[\['a', 'b'\]\]"):
        cls(2, init=init[["b", "a"]]).fit(X)
    with pytest.raises(ValueError, match=r"^init: .*\['c'\] are new, \['a'\] are missing"):
        cls(2, init=init.rename(columns={"a": "c"})).fit(X)
    plain = cls(2, init=init.to_numpy(), random_state=0).fit(X)
    assert_array_equal(plain.cluster_centers_, expected)
