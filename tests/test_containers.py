"""Rows in other containers than arrays, and in another order: refused by name, and what the refusal
says to pass gives the right clusters."""

import re
import warnings
from collections import UserDict, deque

import numpy
import numpy as np
import pandas
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.impute import SimpleImputer
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import kneighbors_graph

import rffpk
from rffpk.tables import TablePreprocessor

N, K = 120, 3
ROWS, Y = make_blobs(N, 4, centers=K, cluster_std=0.6, random_state=1)
KERNELS = [rbf_kernel(ROWS, gamma=gamma) for gamma in (0.05, 0.1)]
VIEWS = [ROWS[:, :2], ROWS[:, 2:]]
ONE = [
    rffpk.PowerKMeans, rffpk.FuzzyCMeans, rffpk.RFFKernelPowerKMeans, rffpk.DiffusionPowerKMeans,
    rffpk.KernelKMeans, rffpk.KernelPowerKMeans, rffpk.NystroemKernelKMeans,
]  # fmt: skip
SEVERAL = [
    rffpk.RFFMultiKernelPowerKMeans, rffpk.MultiKernelPowerKMeans, rffpk.RMKKM, rffpk.AverageMKKM,
    rffpk.SMKC, rffpk.FAMKKM,
]  # fmt: skip
MAPS = [rffpk.DiffusionMap, rffpk.RandomFourierFeatures]


def model_of(cls, **parameters):
    return cls(**({} if cls in MAPS else {"n_clusters": K}), random_state=0, **parameters)


def refusal(model, X, **options):
    """What a fit says of X, which changes nothing: the argument, what is wrong, and what to do."""
    with pytest.raises((ValueError, TypeError)) as error:
        model.fit(X, **options)
    assert not [name for name in vars(model) if name.endswith("_")]
    message = str(error.value)
    assert re.match(r"(X|sample_weight)(\[[^]]*\]|\.shape=\(.*\))?: .*\.$", message), message
    assert len(message.split()) <= 45 and " == " not in message, message
    return message


def followed(message, pattern, **names):
    """The value of what a message says to pass."""
    code = re.search(pattern, message)
    assert code, message
    packages = {"numpy": numpy, "pandas": pandas, "scipy": scipy}
    return eval(code[1], {**packages, **names})


def assert_clusters(model, X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of few clusters in a sample
        assert adjusted_rand_score(Y, model.fit(X, **options).labels_) > 0.95


# ---- the order of rows --------------------------------------------------------------------------

NAMES = pd.Index([f"patient {i:03d}" for i in range(N)])
FRAMES = [pd.DataFrame(x, NAMES).add_prefix("c") for x in VIEWS]
ORDER = np.random.default_rng(0).permutation(N)
SHUFFLED = FRAMES[1].iloc[ORDER]


@pytest.mark.promise(
    "Input",
    "Views, or X and its weights, whose indices differ are refused: frames and series are "
    "never matched by place.",
)
@pytest.mark.parametrize("cls", SEVERAL)
def test_views_in_another_order_are_refused(cls):
    model = model_of(cls)
    message = refusal(model, [FRAMES[0], SHUFFLED])
    assert message.startswith("X[1]: row 0 ") and "in X[0]" in message
    assert NAMES[ORDER[0]] in message and NAMES[0] in message
    X = [FRAMES[0], SHUFFLED]
    assert_clusters(model, [X[0], followed(message, r"Pass (.*)\.$", X=X)])
    for method in {"predict", "predict_proba", "transform", "score"} & {*dir(model)}:
        with pytest.raises(ValueError, match=r"^X\[1\]: row 0 .* in X\[0\]\. Pass "):
            getattr(model, method)(X)
    plain = [FRAMES[0].reset_index(drop=True), FRAMES[1].reset_index(drop=True)]
    assert_array_equal(model.predict(plain), model.labels_)


@pytest.mark.promise(like="test_views_in_another_order_are_refused")
def test_a_table_in_another_order_is_refused():
    frame = pd.DataFrame(ROWS, NAMES, [*"abcd"])
    model = rffpk.PowerKMeans(2, random_state=0).fit(frame)
    with pytest.raises(ValueError, match=r"^table: row 0 .* in X\. Pass table\.loc"):
        rffpk.describe(model, frame, n_resamples=0, table=frame.iloc[ORDER])
    rffpk.describe(model, frame, n_resamples=0, table=frame.loc[frame.index])


@pytest.mark.parametrize(
    "model",
    [
        rffpk.DiffusionPowerKMeans(2, metric="precomputed", random_state=0),
        rffpk.KernelPowerKMeans(2, kernel="precomputed", random_state=0),
    ],
)
def test_pairs_whose_columns_are_in_another_order_are_refused(model):
    pairs = pd.DataFrame(rbf_kernel(ROWS), NAMES, NAMES)
    message = refusal(model, pairs.iloc[ORDER])
    again = followed(message, r"Pass (.*)\.$", X=pairs.iloc[ORDER])
    assert_array_equal(again.columns, again.index)
    labels = model.fit(again).labels_
    assert_array_equal(model.fit(pairs).labels_[ORDER], model.predict(pairs.iloc[ORDER]))
    assert len(set(labels)) == 2


def test_pairs_whose_columns_have_no_names_are_in_the_order_of_the_rows():
    rows = pd.DataFrame(ROWS).sample(frac=1, random_state=0)
    pairs = pd.DataFrame(rbf_kernel(rows), rows.index)
    model = rffpk.KernelPowerKMeans(2, kernel="precomputed", random_state=0)
    assert_array_equal(model.fit(pairs).labels_, model.fit(pairs.to_numpy()).labels_)


@pytest.mark.promise(like="test_views_in_another_order_are_refused")
@pytest.mark.parametrize("cls", [*ONE, *SEVERAL, *MAPS])
def test_weights_in_another_order_are_refused(cls):
    model, frame = model_of(cls), pd.DataFrame(ROWS, NAMES, [*"abcd"])
    weight = pd.Series(1.0 + np.arange(N) % 2, NAMES)
    message = refusal(model, frame, sample_weight=weight.iloc[ORDER])
    assert message.startswith("sample_weight: row 0 ")
    again = followed(message, r"Pass (.*)\.$", X=frame, sample_weight=weight.iloc[ORDER])
    assert_array_equal(again, weight)
    model.fit(frame, sample_weight=again)
    if hasattr(model, "score"):
        with pytest.raises(ValueError, match="^sample_weight: row 0 .* in X. Pass "):
            model.score(frame, sample_weight=weight.iloc[ORDER])
    if hasattr(model, "partial_fit"):
        with pytest.raises(ValueError, match="^sample_weight: row 0 .* in X. Pass "):
            model.partial_fit(frame, sample_weight=weight.iloc[ORDER])


@pytest.mark.parametrize("cls", [rffpk.RFFMultiKernelPowerKMeans, rffpk.MKKM])
def test_labels_of_rows_that_are_not_shared(cls):
    """A default index may be all that is left of another order."""
    kept = FRAMES[1].reset_index(drop=True)
    message = refusal(model_of(cls), [FRAMES[0], kept])
    assert_clusters(
        model_of(cls), [FRAMES[0], followed(message, r"Pass (.*) if the", X=[FRAMES[0], kept])]
    )
    sorted_again = FRAMES[0].iloc[ORDER].sort_index().reset_index(drop=True)
    assert_clusters(model_of(cls), [sorted_again, kept])
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
    for index in (np.arange(N), np.arange(N) * 1.0, pd.Index(range(N), dtype=object)):
        assert_clusters(model_of(rffpk.MKKM), [a, b.set_axis(index)])
    dates = pd.MultiIndex.from_product([pd.date_range("2020", periods=N // 2), [1, 2]])
    assert_clusters(model_of(rffpk.MKKM), [a.set_axis(dates), b.set_axis(dates)])
    with pytest.raises(ValueError, match=r"^X\[1\]: row 0 .* in X\[0\]\. Pass "):
        model_of(rffpk.MKKM).fit([a, b.set_axis(dates)])
    twice = np.repeat(np.arange(N // 2), 2)
    assert_clusters(model_of(rffpk.MKKM), [x.set_axis(twice) for x in (a, b)])
    with pytest.raises(ValueError, match=r"Pass X\[1\].to_numpy\(\) if the order [^,]*$"):
        model_of(rffpk.MKKM).fit([a.set_axis(twice), b.set_axis(twice[::-1])])


def test_missing_labels_are_compared():
    """A comparison with pandas.NA has no truth value."""
    a, b = (pd.DataFrame(x) for x in VIEWS)
    index = pd.Index([pd.NA, *range(1, N)], dtype="Int64")
    assert_clusters(model_of(rffpk.MKKM), [a.set_axis(index), b.set_axis(index.astype(object))])
    views = [a.set_axis(index), b.set_axis(index[::-1])]
    message = refusal(model_of(rffpk.MKKM), views)
    assert message.startswith("X[1]: row 0 ") and "<NA> in X[0]" in message
    assert_array_equal(followed(message, r"Pass (.*)\.$", X=views), VIEWS[1][::-1])


# ---- objects that are no arrays -----------------------------------------------------------------


class Cells:
    """What NumPy may ask for items for hours."""

    def __len__(self):
        return N

    def __getitem__(self, item):
        raise AssertionError("items are not to be asked for")


class AnnData(Cells):
    shape = (N, 4)
    X = ROWS
    obsm = {"spatial": ROWS[:, :1], "X_pca": ROWS}  # noqa: RUF012

    def to_df(self):
        return pd.DataFrame(self.X, NAMES)


class MuData(Cells):
    mod = {"rna": AnnData(), "atac": AnnData()}  # noqa: RUF012
    obs = None


class TensorDataset(Cells):
    class Tensor:
        def numpy(self):
            return ROWS

    tensors = (Tensor(), None)


class Hugging(Cells):
    column_names = ("NAME",)

    def with_format(self, name):
        return self

    def __getitem__(self, item):
        assert item == slice(None)
        return {"NAME": ROWS}


class Lazy(Cells):
    def collect(self):
        return pd.DataFrame(ROWS)


class Spark(Cells):
    def toPandas(self):
        return pd.DataFrame(ROWS)


class Modin(Cells):
    def to_pandas(self):
        return pd.DataFrame(ROWS)


class Tensor(Cells):
    """One that needs gradients, or is on a device."""

    shape, ndim = (N, 4), 2

    def __array__(self, *args, **options):
        raise RuntimeError("Can't call numpy() on Tensor. Use tensor.detach().numpy() instead.")


LOOSE = {
    "AnnData": (AnnData, r"Pass (X.X),"),
    "coordinates": (AnnData, r"(X.obsm\['X_pca'\]), or"),
    "AnnData with names": (AnnData, r"or (X.to_df\(\)),"),
    "TensorDataset": (TensorDataset, r"Pass (.*)\.$"),
    "Hugging Face": (Hugging, r"Pass a column, (.*)\.$"),
    "lazy": (Lazy, r"Pass (.*)\.$"),
    "Spark": (Spark, r"Pass (.*)\.$"),
    "Modin": (Modin, r"Pass (.*)\.$"),
    "dict of columns": (lambda: dict(enumerate(ROWS.T)), r"Pass (.*)\.$"),
    "mapping": (lambda: UserDict(enumerate(ROWS.T)), r"Pass (.*)\.$"),
    "dict of series": (
        lambda: {j: pd.Series(ROWS[:, j], NAMES)[:: 1 - 2 * (j % 2)] for j in range(4)},
        r"Pass (.*)\.$",
    ),
    "records": (lambda: pd.DataFrame(ROWS).to_dict("records"), r"by (pandas\.DataFrame),"),
}


@pytest.mark.promise(
    "Input",
    "Objects that are not arrays are refused at once. What the message says to pass gives the "
    "right clusters.",
)
@pytest.mark.parametrize("kind", LOOSE)
@pytest.mark.parametrize("cls", [*ONE, *SEVERAL, *MAPS])
def test_what_is_no_array_is_refused_with_what_to_pass(cls, kind):
    make, pattern = LOOSE[kind]
    X = make()
    message = refusal(model_of(cls), X)
    found = followed(message, pattern, X=X)
    found = found(X) if callable(found) else found
    assert len(found) == N
    if cls not in MAPS:
        assert_clusters(model_of(cls), found)


@pytest.mark.parametrize("cls", [*ONE, *SEVERAL, *MAPS])
@pytest.mark.parametrize(
    "X, name",
    [
        (Cells(), "X: .*Cells. Pass an array"),
        ((AnnData(), AnnData()), r"X\[0\]: .*AnnData. Pass .*X\[0\].to_df\(\)"),
        ([ROWS, Cells()], r"X\[1\]: .*Cells. Pass an array"),
        ({1, 2}, "X: .*set. Pass an array"),
        (Tensor(), "X: .*detach"),
        ({"a": Hugging()}, r"X: .*dict .* Pass one of its values, such as X\['a'\]\."),
    ],
    ids=["items", "tuple", "list", "set", "tensor", "dict"],
)
def test_objects_are_refused_at_once(cls, X, name):
    assert re.match(name, refusal(model_of(cls), X))
    with pytest.raises(TypeError, match="^sample_weight: .*Cells. Pass an array"):
        model_of(cls).fit(ROWS, sample_weight=Cells())
    if hasattr(cls, "predict"):
        with pytest.raises(TypeError, match=name):
            model_of(cls).fit(ROWS).predict(X)


@pytest.mark.parametrize("cls", [*ONE, *SEVERAL, *MAPS])
def test_ragged_lists_are_refused_by_name(cls):
    ragged = [[1, 2], [3]]
    assert re.search(r"X\[.* has vectors .*vstack\(X\[", refusal(model_of(cls), [ragged, ragged]))
    assert "inhomogeneous" in refusal(model_of(cls), ROWS, sample_weight=ragged)
    assert "X: is a dict of" in refusal(model_of(cls), {"a": ragged})


def test_a_dict_of_weights_keeps_their_labels():
    weights, frame = dict(zip(NAMES, 1.0 + np.arange(N) % 2)), pd.DataFrame(ROWS, NAMES)
    message = refusal(model_of(rffpk.PowerKMeans), frame, sample_weight=weights)
    series = followed(message, r"by (pandas\.Series)\.$")(weights)
    assert_clusters(model_of(rffpk.PowerKMeans), frame, sample_weight=series)


def test_iterators_are_refused():
    message = refusal(model_of(rffpk.KernelKMeans), (x for x in np.split(ROWS, 4)))
    blocks = (x for x in np.split(ROWS, 4))
    assert_array_equal(followed(message, r"Pass (.*) if it yields rows", X=blocks), ROWS)
    message = refusal(model_of(rffpk.PowerKMeans), (x for x in np.split(ROWS, 4)))
    source = followed(message, r"such as (.*)\.$", blocks=lambda: iter(np.split(ROWS, 4)))
    assert_array_equal(model_of(rffpk.PowerKMeans).fit_predict(source) >= 0, True)


def test_views_in_one_object():
    message = refusal(model_of(rffpk.MKKM), MuData())
    assert_clusters(model_of(rffpk.MKKM), followed(message, r"such as (.*)\.$", X=MuData()))
    message = refusal(model_of(rffpk.MKKM), dict(enumerate(VIEWS)))
    assert_clusters(
        model_of(rffpk.MKKM), followed(message, r"Pass (.*) as views", X=dict(enumerate(VIEWS)))
    )
    message = refusal(model_of(rffpk.KernelKMeans), dict(enumerate(VIEWS)))
    found = followed(message, r"or (.*) as one table", X=dict(enumerate(VIEWS)))
    assert_array_equal(found, ROWS)


@pytest.mark.parametrize("cls", [*ONE[:4], *MAPS])
def test_a_list_of_views_for_a_class_of_one(cls):
    for views in (VIEWS, [ROWS[:, :1], ROWS[:, 1:]], [scipy.sparse.csr_array(x) for x in VIEWS]):
        message = refusal(model_of(cls), views)
        found = followed(message, r"Pass (.*), which puts", X=views)
        assert_array_equal(found.toarray() if scipy.sparse.issparse(found) else found, ROWS)
    assert refusal(model_of(cls), [FRAMES[0], SHUFFLED]).startswith("X[1]: row 0 ")


def test_lists_and_buffers_are_arrays():
    expected = model_of(rffpk.KernelKMeans).fit(ROWS).labels_
    for X in (deque(ROWS.tolist()), memoryview(ROWS), tuple(map(tuple, ROWS)), [*ROWS]):
        assert_array_equal(model_of(rffpk.KernelKMeans).fit(X).labels_, expected)


# ---- stacks -------------------------------------------------------------------------------------

FIRST = r"Pass (list\(X\)) if the first axis counts views or kernels"
LAST = r"kernels, (.*) if the last axis does"

PRECOMPUTED = [cls for cls in SEVERAL if cls is not rffpk.RFFMultiKernelPowerKMeans]


@pytest.mark.promise(like="test_what_is_no_array_is_refused_with_what_to_pass")
@pytest.mark.parametrize("cls", PRECOMPUTED)
@pytest.mark.parametrize("stack", [np.stack(KERNELS), np.dstack(KERNELS)], ids=["first", "last"])
def test_a_stack_of_kernels_is_a_list_of_them(cls, stack):
    message, axis = refusal(model_of(cls), stack), int(len(stack) > 2)
    assert "kernels='precomputed'" in message
    found = followed(message, (FIRST, LAST)[axis], X=stack)
    assert all(np.array_equal(a, b) for a, b in zip(found, KERNELS, strict=True))
    assert_clusters(model_of(cls, kernels="precomputed"), found)


@pytest.mark.parametrize("cls", PRECOMPUTED)
def test_a_stack_of_precomputed_kernels_is_taken(cls):
    model, stack = model_of(cls, kernels="precomputed"), np.stack(KERNELS)
    labels = model.fit(stack).labels_
    assert_array_equal(labels, model_of(cls, kernels="precomputed").fit(KERNELS).labels_)
    assert_array_equal(model.predict(stack[:, :7]), labels[:7])
    found = followed(refusal(clone(model), np.dstack(KERNELS)), LAST, X=np.dstack(KERNELS))
    assert_array_equal(found, KERNELS)
    with pytest.raises(ValueError, match=r"^X.shape=\(2, 120, 50\): "):
        clone(model).fit(stack[:, :, :50])


@pytest.mark.parametrize("cls", SEVERAL)
def test_a_list_of_kernels_is_no_list_of_views(cls):
    assert "kernels='precomputed'" in refusal(model_of(cls), KERNELS)


@pytest.mark.parametrize("stack", [np.stack(KERNELS), np.dstack(KERNELS)], ids=["first", "last"])
def test_a_stack_of_kernels_for_a_class_of_one(stack):
    message = refusal(model_of(rffpk.KernelPowerKMeans), stack)
    way = rf"such as {'(.*) or .*' if len(stack) == 2 else '.* or (.*)'}, with kernel='precomp"
    found = followed(message, way, X=stack)
    assert_clusters(model_of(rffpk.KernelPowerKMeans, kernel="precomputed"), found)


def test_as_many_kernels_as_rows():
    cube = np.fromfunction(lambda a, b, c: np.minimum(np.minimum(a, b), c), (9, 9, 9))
    message = refusal(model_of(rffpk.MKKM), cube)
    for way in (FIRST, LAST):
        assert np.array_equal(followed(message, way, X=cube), cube)


@pytest.mark.parametrize("cls", SEVERAL)
def test_a_stack_of_views_or_of_tables(cls):
    for stack, pattern in (
        (np.stack(VIEWS), FIRST),
        (np.dstack(VIEWS), LAST),
        (ROWS.reshape(N, 2, 2), r".*or (.*) if the first axis counts samples"),
    ):
        assert_clusters(model_of(cls), followed(refusal(model_of(cls), stack), pattern, X=stack))


# ---- distances and affinities -------------------------------------------------------------------

NEAR = kneighbors_graph(ROWS, 12).toarray()
DISTANCES = {
    metric: np.maximum(pairwise_distances(ROWS, metric=metric), 0)
    for metric in ("euclidean", "sqeuclidean", "cityblock")
}
AFFINITIES = {
    "rbf": KERNELS[0] - np.eye(N),
    "neighbours": np.maximum(NEAR, NEAR.T),
}
OF_DISTANCES, OF_AFFINITIES = r"(numpy.exp.*?) of distances D", r"(W - .*) of affinities W"
BOTH = [
    *((name, "distances or aff", OF_DISTANCES, M) for name, M in DISTANCES.items()),
    *((name, "affinities, not", OF_AFFINITIES, M) for name, M in AFFINITIES.items()),
    ("wide", "distances or aff", OF_AFFINITIES, rbf_kernel(ROWS, gamma=0.002) - np.eye(N)),
]


@pytest.mark.promise(like="test_what_is_no_array_is_refused_with_what_to_pass")
@pytest.mark.parametrize("name, kind, pattern, M", BOTH, ids=[case[0] for case in BOTH])
def test_distances_and_affinities_are_told_apart(name, kind, pattern, M):
    model = model_of(rffpk.AverageMKKM, kernels="precomputed")
    message = refusal(model, M)
    assert message.startswith(f"X: looks like a matrix of {kind}")
    assert_clusters(model, followed(message, pattern, D=M, W=M))
    for cls in (rffpk.KernelPowerKMeans, rffpk.RFFKernelPowerKMeans, rffpk.MKKM):
        with pytest.warns(UserWarning, match="like a matrix of distances or aff") as found:
            model_of(cls).fit(M)
        texts = [str(w.message) for w in found if "symmetric" in str(w.message)]
        assert_clusters(model, followed(texts[0], pattern, D=M, W=M))


def test_affinities_with_their_diagonal_are_kernel_values():
    """They are passed as they are."""
    for cls in (rffpk.KernelPowerKMeans, rffpk.RFFKernelPowerKMeans):
        with pytest.warns(UserWarning, match="symmetric like a matrix of kernel values") as found:
            model_of(cls).fit(KERNELS[0])
        assert "istances" not in "".join(str(w.message) for w in found if "symm" in str(w.message))
    assert_clusters(model_of(rffpk.KernelPowerKMeans, kernel="precomputed"), KERNELS[0])
    graph = scipy.sparse.csr_array(AFFINITIES["neighbours"])
    with pytest.warns(UserWarning, match="symmetric like a matrix of .*affinities") as found:
        model_of(rffpk.KernelPowerKMeans).fit(graph)
    text = next(str(w.message) for w in found if "symmetric" in str(w.message))
    K_of_W = followed(text, OF_AFFINITIES, W=graph.toarray())
    assert_clusters(model_of(rffpk.AverageMKKM, kernels="precomputed"), K_of_W)


# ---- numbers that are missing -------------------------------------------------------------------

HOLED = ROWS.copy()
HOLED[[7, 30], [2, 0]] = np.nan


@pytest.mark.promise(
    "Input",
    "NaN and infinity are refused with the row and the column of the first one, on workers of "
    "a cluster too.",
)
@pytest.mark.parametrize("cls", [*ONE, *SEVERAL, *MAPS])
@pytest.mark.parametrize(
    "X, where",
    [
        (HOLED, r"X: contains NaN in 2 of 120 rows, first in row 7, column 2. Fill in"),
        (
            pd.DataFrame(HOLED, columns=[*"abcd"]),
            r"X: contains NaN .* row 7, column 'c'. Fill in",
        ),
        (
            np.where(np.isnan(HOLED), -np.inf, HOLED),
            r"X: contains infinity .* row 7, column 2",
        ),
        (scipy.sparse.csr_array(HOLED), r"X: contains NaN in 2 of 120 rows, first in row 7, col"),
    ],
    ids=["array", "frame", "infinity", "sparse"],
)
def test_missing_numbers_are_found(cls, X, where):
    message = refusal(model_of(cls), X)
    assert re.match(where, message) and "\n" not in message and "sklearn.ensemble" not in message
    if hasattr(cls, "predict"):
        with pytest.raises(ValueError, match=where):
            model_of(cls).fit(X.fillna(0) if isinstance(X, pd.DataFrame) else ROWS).predict(X)


@pytest.mark.parametrize("cls", SEVERAL)
def test_missing_numbers_of_views_are_found(cls):
    message = refusal(model_of(cls), [ROWS[:, :2], HOLED[:, 2:]])
    assert message.startswith(
        "X[1]: contains NaN in 1 of 120 rows, first in row 7, column 0. Fill in"
    )
    allows = "allow_missing_views" in model_of(cls).get_params()
    other = "" if allows else " of RFFMultiKernelPowerKMeans"
    assert f"allow_missing_views=True{other} takes dense rows" in message
    filled = SimpleImputer().fit_transform(HOLED)
    assert_clusters(model_of(cls), [filled[:, :2], filled[:, 2:]])
    if allows:
        views = [ROWS[:, :2], np.where(np.isnan(HOLED).any(axis=1)[:, None], np.nan, ROWS[:, 2:])]
        assert_clusters(model_of(cls, allow_missing_views=True), views)


def test_a_kernel_matrix_is_not_to_be_imputed():
    K_of_rows = KERNELS[0].copy()
    K_of_rows[3, 5] = np.nan
    message = refusal(model_of(rffpk.KernelKMeans, kernel="precomputed"), K_of_rows)
    assert re.match("X: contains NaN in 1 of 120 rows, first in row 3, column 5. Pass fin", message)
    assert "TablePreprocessor" not in message


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


def test_a_lazy_frame_is_refused_by_the_preprocessor_too():
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"^X: .*Pass X\.collect\(\)"):
        TablePreprocessor().fit(polars.LazyFrame({"a": [1.0, 2.0]}))


@pytest.mark.parametrize("kind", [np.array, pd.Series], ids=["array", "Series"])
@pytest.mark.parametrize("cls", [rffpk.RFFMultiKernelPowerKMeans, rffpk.MKKM])
def test_a_list_of_columns_is_neither_views_nor_a_table(cls, kind):
    X = [kind([0.0, 0.1, 5.0, 5.1]), kind([1.0, 1.1, 7.0, 7.1])]
    with pytest.raises(ValueError, match="^X: is a list of one-dimensional arrays") as refused:
        cls(2, random_state=0).fit(X)
    remedy = str(refused.value).split("Pass ")[1].split(" for views")[0]
    labels = cls(2, random_state=0).fit_predict(eval(remedy, {"numpy": np, "X": X}))
    assert labels[0] == labels[1] != labels[2] == labels[3]


@pytest.mark.parametrize("cls", [rffpk.PowerKMeans, rffpk.KernelPowerKMeans, rffpk.MKKM])
def test_rows_with_their_labels_are_not_views(cls):
    rows, y = np.array([[0.0, 1.0], [0.1, 1.1], [5.0, 7.0], [5.1, 7.1]]), np.arange(4.0) / 10
    with pytest.raises(ValueError, match=r"^X\[1\]: has one dimension, as labels have") as refused:
        cls(2, random_state=0).fit((rows, y))
    X, one, other = [rows, y], *str(refused.value).split("Pass ")[1].split(" alone, or ")
    views = f"[X[0], {other.split(' in its place')[0]}]"
    for remedy in (one, views if cls is rffpk.MKKM else f"numpy.hstack({views})"):
        labels = cls(2, random_state=0).fit_predict(eval(remedy, {"numpy": np, "X": X}))
        assert labels[0] == labels[1] != labels[2] == labels[3]


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
