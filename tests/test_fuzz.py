"""Random input for all estimators: a refusal that names the argument, or a finite, valid result,
whatever paths the constants of the package choose.

RFFPK_FUZZ=100000 sets the number of examples, which is small by default.
"""

import copy
import os
import re
import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from conventions import ip_rff_mkpkm
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse
from scipy.cluster.hierarchy import is_monotonic, is_valid_linkage
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

import rffpk

EXAMPLES = int(os.environ.get("RFFPK_FUZZ", "60"))

EXPECTED = (
    r"X(\[\d\])?: is symmetric like|kernel .* is indefinite|sigma_1 / sigma_k|"
    "n_frequencies='auto' ends|X has rows so far from the others|"
    "gamma=.* gives phases|n_neighbors=.* the graph has"
)
KERNEL = st.sampled_from(["rbf", "laplacian", "linear", "polynomial", "cosine", "sigmoid"])
DIFFUSION = {
    "metric": st.sampled_from(["euclidean", "cosine"]),
    "time": st.sampled_from(["auto", 1e-3, 1.0, 1e5]),
    "n_landmarks": st.sampled_from(["auto", 3]),
    "whitening": st.sampled_from([None, 0.0, 0.5, 1.0]),
    "n_neighbors": st.sampled_from(["auto", 2]),
}
RANDOM_FEATURES = {
    "kernel": st.sampled_from(["rbf", "laplacian", "cauchy"]),
    "gamma": st.sampled_from(["mean", "median", "scale", 1e-30, 1.0, 1e30]),
}
VIEWS = {
    "n_frequencies": st.just(32),
    "kernels": st.sampled_from([
        None, "laplacian", "cauchy", "linear", "diffusion",
        [("linear", 0.5), rffpk.RandomFourierFeatures(9, sampling="iid")],
    ]),
    "typicality": st.sampled_from([None, "auto"]) | st.builds(
        rffpk.Typicality,
        eta=st.sampled_from(["mean", "median", 1e-30, 1e30]), m=st.sampled_from([1.1, 2.0, 6.0]),
    ),
    "weight_entropy": st.sampled_from([1e-3, 1.0, 1e3]),
    "noise": st.sampled_from([None, "auto"]),
}  # fmt: skip
PASSES = st.sampled_from([1, 50])
FUSIONS = [
    rffpk.MKKM, rffpk.MKKMMR, rffpk.LKAM, rffpk.ONKC, rffpk.MVCLFA, rffpk.CoregSC, rffpk.SimpleMKKM,
]  # fmt: skip
CHOICES = {
    rffpk.PowerKMeans: {
        "sample": st.sampled_from(["auto", None, 5]),
        "annealing": st.sampled_from(["auto", "paper", None]),
    },
    rffpk.FuzzyCMeans: {"m": st.sampled_from([1.1, 2.0, 6.0])},
    rffpk.RFFKernelPowerKMeans: RANDOM_FEATURES,
    rffpk.RandomFourierFeatures: RANDOM_FEATURES,
    rffpk.RFFMultiKernelPowerKMeans: VIEWS,
    rffpk.KernelKMeans: {"kernel": KERNEL, "gamma": st.sampled_from(["mean", None, 1e30])},
    rffpk.KernelPowerKMeans: {
        "kernel": KERNEL,
        "annealing": st.sampled_from(["auto", "paper", None, rffpk.Annealing(end=-1.0)]),
    },
    rffpk.MultiKernelPowerKMeans: {"weight_entropy": st.sampled_from([1e-3, 1.0, 1e3])},
    rffpk.RMKKM: {"weight_norm": st.sampled_from([0.05, 0.5, 0.95])},
    **{cls: {"standardize": st.booleans()} for cls in (rffpk.AverageMKKM, rffpk.SMKC)},
    **{cls: {"standardize": st.booleans(), "max_iter": PASSES} for cls in FUSIONS},
    rffpk.FAMKKM: {
        "approximation": st.sampled_from([None, "rff", "nystroem", ("nystroem", 3)]),
        "max_iter": PASSES,
    },
    rffpk.NystroemKernelKMeans: {"kernel": KERNEL, "n_anchors": st.integers(1, 20)},
    rffpk.DiffusionMap: DIFFUSION,
    rffpk.DiffusionPowerKMeans: DIFFUSION,
}
if find_spec("clarabel"):
    CHOICES[rffpk.LMKKM] = {"standardize": st.booleans(), "max_iter": st.sampled_from([1, 5])}


COLUMN = np.array([[-2.0], [2.0], [1.0], [2.0]])
POLYNOMIAL = rffpk.NystroemKernelKMeans(1, kernel="polynomial")
# One squared distance is finite, and the sum of two is not.
NEAR_OVERFLOW = np.array([[7e149], [1e149], [-9e149], [2e149], [-9.8e153]])


@st.composite
def models(draw, classes=(*CHOICES,)):
    cls = draw(st.sampled_from(classes))
    parameters = {name: draw(choice) for name, choice in CHOICES[cls].items()}
    if "n_clusters" in cls().get_params():
        parameters["n_clusters"] = draw(st.integers(1, 5))
    return cls(random_state=draw(st.integers(0, 3)), **parameters)


@st.composite
def arrays(draw):
    """Draw rows that repeat, grids, constant columns, offsets, any scale; of several layouts."""
    n, d = draw(st.integers(1, 24)), draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**20)))
    kind = draw(st.sampled_from(["normal", "grid", "few", "constant", "outlier"]))
    X = random.standard_normal((n, d))
    if kind == "grid":
        X = random.integers(-2, 3, (n, d)).astype(float)
    elif kind == "few":
        X = X[random.integers(0, min(n, 3), n)]
    elif kind == "constant":
        X[:] = X[0]
    elif kind == "outlier":
        X[-1] *= 1e6
    X = X * 10.0 ** draw(st.sampled_from([0, 0, 0, -160, -20, -5, 5, 15, 150]))
    X = X + draw(st.sampled_from([0, 0, 0, 1, 1e6, 1.7e9]))
    with np.errstate(over="ignore", invalid="ignore"):
        X = X.astype(draw(st.sampled_from(["f8", "f8", "f4", ">f8", "i8"])))
    if draw(st.booleans()):
        X = np.asfortranarray(X)
    X.flags.writeable = draw(st.booleans())
    return X


NAMES = "X|kernel|sample_weight|n_clusters|gamma|n_anchors|n_frequencies|time|eta"


def assert_refused_or_valid(model, X, weighted):
    model, tables, arguments = clone(model), X if isinstance(X, list) else [X], {}
    n, before = tables[0].shape[0], copy.deepcopy(tables)
    if weighted and has_fit_parameter(model, "sample_weight"):
        arguments["sample_weight"] = np.random.default_rng(n).integers(0, 4, n)
    with warnings.catch_warnings(action="error"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", EXPECTED, UserWarning)
        try:
            model.fit(X, **arguments)
        except (ValueError, TypeError, MemoryError) as error:
            assert re.search(NAMES, str(error)), error
            assert not [name for name in vars(model) if name.endswith("_")]
            return
        else:
            if isinstance(X, np.ndarray):
                assert np.isfinite(X.astype(float)).all()
            if not hasattr(model, "labels_"):  # then a row without weight may be too far away
                counted = arguments.get("sample_weight", np.ones(n)) > 0
                assert np.isfinite(model.transform(X[counted])).all()
                return
            assert np.isfinite(model.transform(X)).all()
            assert_array_equal(model.predict(X), model.labels_)
            first = [x[:1] for x in tables]
            assert_array_equal(model.predict(first if tables is X else first[0]), model.labels_[:1])
            assert_valid_tree_and_memberships(model, X)
        finally:
            for x, y in zip(tables, before):
                if sparse.issparse(x):
                    for part in ("data", "indices", "indptr"):
                        assert_array_equal(getattr(x, part), getattr(y, part))
                else:
                    assert_array_equal(x, y)
    least = 0 if getattr(model, "noise", None) is None else -1
    assert ((model.labels_ >= least) & (model.labels_ < model.n_clusters)).all()
    assert np.isfinite(model.inertia_) and model.inertia_ >= 0
    if tables is X:
        return
    objective = getattr(model, "objective_", 0.0)
    assert np.isfinite(objective) and (objective >= 0 or "sigmoid" in str(model.get_params()))
    if sparse.issparse(X):  # before columns are summed
        X = X.astype(np.result_type(X.dtype, np.float32)).toarray()
    assert np.isfinite(X.astype(float)).all()
    for row, label in zip(X, model.labels_):
        assert {*model.labels_[(X == row).all(axis=1)]} == {label}


# found so far: sums of squares below zero, warnings of NumPy, an overflow without a name
@pytest.mark.promise("Input", "Any X gives a valid result or an error that names the argument.")
@example(rffpk.SMKC(1, standardize=False), np.full((4, 1), 0.12573022), False)
@example(rffpk.MKKM(2, max_iter=1, random_state=0), COLUMN, False)
@example(rffpk.PowerKMeans(1), np.full((3, 1), 1.2573022e-21, np.float32), False)
@example(rffpk.PowerKMeans(1), np.array([[np.inf, -np.inf]], np.float32), False)
@example(rffpk.RandomFourierFeatures(4, gamma=1.0), np.array([[np.nan], [1.0]]), False)
@example(POLYNOMIAL, np.full((1, 1), 1.2e149), False)
@example(POLYNOMIAL, np.full((1, 1), 1.2e14, np.float32), False)
@example(rffpk.RFFKernelPowerKMeans(1), np.full((1, 1), 0.12573022), False)
@example(rffpk.SMKC(3), np.ones((9, 2)), False)
@example(rffpk.PowerKMeans(1, random_state=0), NEAR_OVERFLOW, True)
@example(rffpk.PowerKMeans(1, random_state=0), NEAR_OVERFLOW * 0.83, True)
@example(rffpk.DiffusionPowerKMeans(1, n_neighbors=2, random_state=0), NEAR_OVERFLOW, True)
@example(rffpk.DiffusionMap(random_state=0), NEAR_OVERFLOW, False)
@example(rffpk.RandomFourierFeatures(gamma="median"), NEAR_OVERFLOW[3:] * 14, False)
@example(rffpk.KernelPowerKMeans(1, kernel="polynomial"), np.full((20, 1), 1e6), True)
@example(rffpk.RandomFourierFeatures(kernel="cauchy", gamma=1e300), COLUMN, False)
@example(rffpk.DiffusionMap(random_state=0), np.array([[1e149], [-1e149], [6e155]]), True)
@settings(max_examples=EXAMPLES, report_multiple_bugs=False)
@given(models(), arrays(), st.booleans())
def test_a_named_refusal_or_a_valid_result(model, X, weighted):
    assert_refused_or_valid(model, X, weighted)


def assert_valid_tree_and_memberships(model, X):
    """Check a tree of the rows that were fitted, which may have views."""
    tree, k = model.linkage_, len(model.linkage_) + 1
    assert k == 1 or (is_valid_linkage(tree) and is_monotonic(tree))
    assert_array_equal(model.cut(k), model.labels_)
    assert len({*model.cut(1)} - {-1}) <= 1
    if getattr(model, "kernel", getattr(model, "kernels", None)) != "precomputed":
        u = model.predict_proba(X)
        assert (u >= 0).all() and (u <= 1).all()
        found = rffpk.describe(model, X, n_resamples=0)
        assert not np.isnan(found.differences).any() and str(found)


@st.composite
def sparse_arrays(draw):
    """Draw arrays with zeros, as CSR; some of the zeros are stored, some columns occur twice."""
    X, random = draw(arrays()), np.random.default_rng(draw(st.integers(0, 2**20)))
    kept = random.random(X.shape) < draw(st.sampled_from([0.1, 0.5, 1.0]))
    rows, columns = np.nonzero(kept)
    X = np.where(random.random(X.shape) < 0.9, X, 0).astype(X.dtype.newbyteorder("="))
    order = np.lexsort((random.random(len(rows)), rows))
    if draw(st.booleans()):
        order = np.sort(np.r_[order, order[:3]])
    indptr = np.r_[0, np.cumsum(np.bincount(rows[order], minlength=len(X)))]
    return sparse.csr_array((X[rows, columns][order], columns[order], indptr), shape=X.shape)


ZEROS = sparse.csr_array((3, 1))
FEW = sparse.csr_array(np.array([[0.0], [1e-162], [0.0], [2e-162]]))
# Three rows that differ by less than their distances are rounded.
NEAR = sparse.csr_array(np.array([[0.0], [1.0], [1.0 + 2**-52], [1.0 + 2**-51]]))


@example(rffpk.SMKC(3, standardize=False, random_state=0), ZEROS, True)
@example(rffpk.KernelKMeans(3, kernel="linear", random_state=0), FEW, False)
@example(rffpk.DiffusionMap(n_neighbors=2, random_state=0), NEAR, False)
@settings(max_examples=EXAMPLES)
@given(
    models().filter(lambda model: get_tags(model).input_tags.sparse), sparse_arrays(), st.booleans()
)
def test_sparse_rows_are_refused_by_name_or_give_a_valid_result(model, X, weighted):
    assert_refused_or_valid(model, X, weighted)


VIEW_CLASSES = [
    rffpk.RFFMultiKernelPowerKMeans, rffpk.MultiKernelPowerKMeans, rffpk.RMKKM, rffpk.AverageMKKM,
    rffpk.SMKC, rffpk.FAMKKM, *FUSIONS,
]  # fmt: skip


@st.composite
def views(draw, kinds=("arrays", "frames", "CSR")):
    """Draw two views of the same rows, of any scale each. Frames have nullable columns."""
    kind, random = draw(st.sampled_from(kinds)), np.random.default_rng(draw(st.integers(0, 2**20)))
    X = draw(sparse_arrays() if kind == "CSR" else arrays())
    other = random.standard_normal((X.shape[0], draw(st.integers(1, 3))))
    other *= 10.0 ** draw(st.sampled_from([0, -20, 20]))
    pair = [X, other]
    if kind == "CSR" and draw(st.booleans()):
        pair[1] = sparse.csr_array(np.where(random.random(other.shape) < 0.5, other, 0))
    if kind == "frames":
        pair = [pd.DataFrame(x.astype(x.dtype.newbyteorder("="))).convert_dtypes() for x in pair]
    return draw(st.permutations(pair))


@settings(max_examples=EXAMPLES * 2 // 3)
@given(models(VIEW_CLASSES), views(), st.booleans())
def test_views_are_refused_by_name_or_give_a_valid_result(model, X, weighted):
    assert_refused_or_valid(model, X, weighted)


@settings(max_examples=EXAMPLES)
@example(
    ip_rff_mkpkm(
        1, typicality=rffpk.Typicality(eta=1e-30, m=1.1), n_frequencies=32, random_state=0,
        weight_entropy=0.001,
    ),
    [np.random.default_rng(0).standard_normal((5, d)) for d in (1, 2)], [0], True,
)  # fmt: skip
@given(
    models(VIEW_CLASSES[:1]),
    views(["arrays", "frames"]),
    st.lists(st.integers(0, 5)),
    st.booleans(),
)
def test_missing_views_are_refused_by_name_or_give_a_valid_result(model, X, lacks, weighted):
    """Row i lacks the view lacks[i], if there is one; 4: one number is missing, 5: both views."""
    X = [np.array(x, dtype=float) for x in X]
    for i, view in enumerate(lacks[: len(X[0])]):
        for x in X[view : view + 1] if view < 4 else X:
            x[i, : 1 if view == 4 else None] = np.nan
    options = {"noise": None} if hasattr(model, "noise") else {}
    assert_refused_or_valid(model.set_params(allow_missing_views=True, **options), X, weighted)


@example(np.array([[np.inf, -np.inf]], np.float32), 1, 2.0, False)  # a warning of NumPy
@settings(max_examples=EXAMPLES // 3)
@given(arrays(), st.integers(1, 5), st.sampled_from([1.1, 2.0, 6.0]), st.booleans())
def test_memberships_of_fuzzy_c_means_are_refused_by_name_or_valid(X, c, m, zeros):
    without_members = np.eye(c)[np.arange(len(X)) % max(c - 1, 1)].T
    init = without_members if zeros else None
    with warnings.catch_warnings(action="error"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            result = rffpk.cmeans(X, c, m, init=init, maxiter=50, random_state=0)
        except (ValueError, TypeError) as error:
            assert re.search(NAMES + "|c=", str(error)), error
            return
    assert all(np.isfinite(part).all() for part in result)
    assert result.u.min() >= 0 and np.allclose(result.u.sum(axis=0), 1)
    wide = X.astype(float)
    rounding = 1e-13 * ((wide - wide.mean(axis=0)) ** 2).sum()  # of squared distances
    rounding += X.size * c * np.finfo(float).tiny  # below which numbers have fewer digits
    assert np.all(np.diff(result.jm) <= 1e-9 * result.jm[:-1] + rounding)


# Limits that choose among paths, and values with which small fits take both sides of each.
SWITCHES = {
    "sampling__rows": (30, 150), "sampling__rows_a_cluster": (2, 9), "sampling__growth": (2,),
    "hardpasses__bounds_rows": (1, 100), "hardpasses__near_work": (1, 50_000),
    "hardpasses__bounds_cost": (0.0, 500.0), "starts__some": (2, 4),
    "starts__seed_rows": (30,), "starts__seed_numbers": (64,), "starts__rows_a_centroid": (2,),
    "starts__merged_numbers": (100,), "tree__whole": (2, 5), "tree__block": (2,),
    "hardpasses__directions_work": (1,), "hardpasses__directions_columns": (16,),
    "hardpasses__most_active": (0.1, 1.0), "hardpasses__bounds_block": (7,),
    "hardpasses__copied_bytes": (100,), "storage__block_bytes": (64, 1000), "swaps__rows": (20,),
    "swaps__distances": (50,), "landmarks__most_rows": (30, 100), "landmarks__least": (20,),
    "tiles__landmark_rows": (16,), "search__sparse_work": (0.0,), "noise__group_rows": (50,),
    "tiles__noise_numbers": (50,), "noise__cell_rows": (4,), "graph__unit_components": (2, 4),
    "sampling__whitened_rows": (30,), "sampling__whitened_numbers": (100,),
    "fourier__structured_from": (1,), "fourier__spread_rows": (20,),
    "sampling__exponent_rows": (20,), "components__numbers": (100,),
    "components__least_features": (2,), "components__margin": (0.0,),
    "sampling__median_rows": (20,), "linalg__full_below": (3,), "tiles__row_numbers": (8, 40),
    "sampling__last_rows": (10,), "sampling__last_distances": (20,),
}  # fmt: skip
SWITCHED = {
    rffpk.PowerKMeans: {"metric": ["euclidean", "cosine"], "noise": [None, 0.05, "auto"],
                        "init": ["k-means++", "random", "k-means"]},
    rffpk.FuzzyCMeans: {"metric": ["euclidean", "cosine"], "m": [1.5, 2.0]},
    rffpk.RFFKernelPowerKMeans: {"kernel": ["rbf", "laplacian"], "n_frequencies": [16, 100],
                                 "cache": ["auto", False]},
    rffpk.DiffusionPowerKMeans: {"whitening": [None, 0.5], "n_landmarks": ["auto", 40]},
}  # fmt: skip


def switch(random, tuning):
    share = random.choice([0.1, 0.3, 0.9])
    tuning(hardpasses__near=2, hardpasses__near_new=1)  # fewer than "many" clusters
    for name, values in SWITCHES.items():
        new = values[random.integers(len(values))]
        if random.random() < share:
            tuning(**{name: new})


@pytest.mark.filterwarnings("ignore:noise=0.05. marks no row")
@pytest.mark.few(12)
@pytest.mark.parametrize("seed", range(200))
def test_the_paths_that_constants_choose_change_no_promise(seed, tuning, tmp_path):
    """Threads, weights of one, checkpoints and files change no bit.

    Predictions are the labels, which belong to the nearest centroids. A source has the
    labels of the groups in it.
    """
    random = np.random.default_rng(seed)
    switch(random, tuning)
    cls = [*SWITCHED][random.integers(len(SWITCHED))]
    options = {name: values[random.integers(len(values))] for name, values in SWITCHED[cls].items()}
    k, d, apart = random.choice([2, 5, 9]), random.choice([1, 3, 33]), random.choice([1.0, 30.0])
    y, centers = random.integers(k, size=300), random.permutation(k)[:, None] + np.zeros(d)
    X = apart * centers[y] + random.standard_normal((300, d))
    X = X.astype(random.choice(["f2", "f4", "f8"]))
    model = cls(int(k), random_state=0, n_jobs=1, **options).fit(X)
    path, labels, distances = tmp_path / "file", model.labels_, model.transform(X)
    for again in (
        clone(model).set_params(n_jobs=2).fit(X),
        clone(model).fit(X, sample_weight=np.ones(300)),
        clone(model).fit(X, checkpoint=path, checkpoint_seconds=0.0),
    ):
        assert_array_equal(again.labels_, labels)
        assert_array_equal(again.cluster_centers_, model.cluster_centers_)
    assert_array_equal(model.predict(X), labels)
    own = np.take_along_axis(distances, np.maximum(labels, 0)[:, None], axis=1)[:, 0]
    nearest = distances.min(axis=1)
    assert (own - nearest <= 1e-3 * nearest + 1e-6 * distances.max())[labels >= 0].all()
    model.save(path)
    assert_array_equal(rffpk.load(path).transform(X), distances)
    if "metric" not in options and adjusted_rand_score(y, labels) == 1:
        blocks = np.array_split(X, 4)
        assert_array_equal(clone(model).fit(lambda: iter(blocks)).predict(X), labels)
