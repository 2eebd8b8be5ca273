"""Sparse views in lists: passes against the twin, and fits against fits of arrays."""

from dataclasses import replace

import numpy as np
import pytest
from contracts.core import sparse_rows
from conventions import CLUSTERERS, ip_rff_mkpkm
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal, assert_equal
from passes import make_rows, one_pass
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from test_pass import OUTPUTS, assert_same_pass
from test_sparse import messy, peak_of_fit, structure, topics

from rffpk import (
    FAMKKM,
    MKKM,
    SMKC,
    AverageMKKM,
    MultiKernelPowerKMeans,
    RFFMultiKernelPowerKMeans,
    SimpleMKKM,
    Typicality,
)

EVERY = [cls for cls in CLUSTERERS if hasattr(cls(), "kernels")]
MODELS = [
    *(cls(3, random_state=0) for cls in EVERY),
    ip_rff_mkpkm(3, kernels=["linear", "rbf", "linear"], random_state=0),
    ip_rff_mkpkm(3, kernels=["diffusion"] * 3, random_state=0),
    ip_rff_mkpkm(3, typicality=Typicality(eta="mean"), kernels="linear", random_state=0),
    ip_rff_mkpkm(3, typicality=None, cache=False, random_state=0),
    MultiKernelPowerKMeans(3, kernels=["cosine", "laplacian", "rbf"], random_state=0),
    FAMKKM(3, approximation="rff", random_state=0),
    FAMKKM(3, approximation=("nystroem", 50), random_state=0),
    SMKC(3, anchors=("k-means++", 50), random_state=0),
    SimpleMKKM(3, n_landmarks=60, random_state=0),
]
# Tolerance of results at the weights of a minimum: an objective that is flat there determines the
# weights to the root of its rounding.
FLAT = 100 * np.finfo(float).eps ** 0.5
by_name = pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model)[:60])


def frozen(X):
    """Return views whose numbers no fit may change."""
    for x in X:
        for part in (x.data, x.indices, x.indptr) if sparse.issparse(x) else (x,):
            part.flags.writeable = False
    return X


def some_views(n=240, dtype=np.float64):
    """Return two sparse views and a dense one of the same clusters."""
    (X, y), (Z, _) = topics(n, 60, 3, length=15), topics(n, 90, 3, length=30)
    dense = np.random.default_rng(0).standard_normal((n, 4)) + 3 * np.eye(3, 4)[y]
    return frozen([x.astype(dtype) for x in (X, Z, dense)])


def arrays_of(X):
    return [x.toarray() if sparse.issparse(x) else x for x in X]


# ---- the pass -----------------------------------------------------------------------------------

KINDS = ("array", "array, frequencies", "columns", "frequencies", "structured")


def problem(n, kinds, k, dtype, seed, weighted=False, typical=False, missing=False):
    """Return views of these kinds, of different widths."""
    random = np.random.default_rng(seed)
    xs, maps = [], []
    for i, kind in enumerate(kinds):
        X = messy(n, int(random.integers(1, 50)), 0.3, seed + i, dtype)
        D = int(random.integers(1, 30))
        xs.append(X.toarray() if kind.startswith("array") else sparse_rows(X))
        frequencies = random.standard_normal((X.shape[1], D)).astype(dtype)
        mapped = structure(X.shape[1], D, random) if kind == "structured" else None
        maps.append(frequencies if "frequencies" in kind else mapped)
    weight = random.uniform(0.1, 3, n) if weighted else None
    rows = make_rows(xs, maps, weight, 2)
    rows = replace(rows, alpha=random.dirichlet(np.ones(len(kinds))))
    if missing:
        drawn = random.integers(0, 256, (n, -(-len(kinds) // 8)), dtype=np.uint8)
        rows = replace(rows, present=drawn | 1)
    if typical:
        rows = replace(rows, eta=random.uniform(0.5, 2, len(kinds)), m=2.0)
    return rows, random.standard_normal((k, len(rows.shift)))


@given(
    st.integers(1, 150),
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=9),
    st.integers(1, 15),
    st.sampled_from([-0.7, -5.0, -np.inf]),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.integers(0, 2**31),
)
def test_core_agrees_with_its_twin(isa, dtype, n, kinds, k, s, options, seed):
    weighted, typical, missing = options
    missing = missing and len(kinds) > 1
    assert_same_pass(*problem(n, kinds, k, dtype, seed, weighted, typical, missing), s)


def test_a_pass_has_the_bits_of_arrays_and_of_any_number_of_threads(dtype):
    rows, theta = problem(7000, KINDS, 6, dtype, 0, True, True)
    given_rows = [replace(rows, n_threads=threads) for threads in (1, 2, 5)]
    results = [one_pass(each, theta, -2.0, want=OUTPUTS) for each in given_rows]
    for sums, outputs in results[1:]:
        assert_equal([*sums], [*results[0][0]])
        assert_equal(outputs, results[0][1])
    columns = slice(sum(rows.widths[:2]), sum(rows.widths[:3]))  # columns of an array
    features = results[0][1]["features"][:, columns]
    assert_array_equal(features, rows.xs[2].toarray() - rows.shifts[2])


# ---- fits ---------------------------------------------------------------------------------------


def assert_same_clusters(labels, expected):
    """Compare clusters, as rounding chooses among starts that end equally low."""
    assert adjusted_rand_score(labels, expected) == 1


@by_name
@pytest.mark.parametrize("weighted", [False, True])
def test_fits_are_those_of_arrays(model, dtype, weighted):
    X, weight = some_views(dtype=dtype), np.random.default_rng(0).integers(0, 4, 240)
    weights = {"sample_weight": weight} if weighted else {}
    ours, same = clone(model).fit(X, **weights), clone(model).fit(arrays_of(X), **weights)
    # the same clusters: of starts that end equally low rounding chooses one, and so the numbers
    numbers = np.array([ours.labels_[same.labels_ == j][0] for j in range(3)])
    assert_array_equal(ours.labels_, numbers[same.labels_])
    assert_array_equal(ours.predict(X), ours.labels_)
    assert_array_equal(ours.predict([x[:1] for x in X]), ours.labels_[:1])
    assert_array_equal(ours.predict(arrays_of(X)), ours.labels_)  # formats may change
    assert_array_equal(same.predict(X), same.labels_)
    assert_array_equal(ours.medoids(X)[numbers], same.medoids(arrays_of(X)))
    rtol = FLAT if dtype == np.float64 else 2e-3
    names = ["inertia_", "kernel_weights_"]
    if ours.s_ == same.s_:  # of the exponent at which the start that was chosen has ended
        names.append("objective_")
    for name in names:
        assert_allclose(getattr(ours, name), getattr(same, name), rtol=rtol, atol=rtol / 100)
    assert_allclose(ours.score(X, **weights), same.score(arrays_of(X), **weights), rtol=rtol)
    columns = slice(None) if hasattr(ours, "embedding_") else numbers
    assert_allclose(ours.transform(X)[:, columns], same.transform(arrays_of(X)), atol=10 * rtol)
    found, expected = ours.predict_proba(X, s=-3.0), same.predict_proba(arrays_of(X), s=-3.0)
    assert_allclose(found[:, numbers], expected, atol=10 * rtol)


@pytest.mark.parametrize("estimator", EVERY)
@pytest.mark.parametrize(
    "parameters",
    [
        {"kernels": ["rbf", ("rbf", 0.02)]},
        {"kernels": [("rbf", 0.05), "linear"]},
        {"kernels": "du2015"},
        {"views": [slice(0, 20), [40, 25, 50], np.arange(60) % 3 == 0]},
    ],
    ids=["rbf", "linear", "du2015", "views"],
)
def test_kernels_of_one_matrix_and_views_of_its_columns(estimator, parameters):
    name = parameters.get("kernels")
    if name == "du2015" and estimator.__name__ in {
        "RFFMultiKernelPowerKMeans", "CoregSC", "MVCLFA", "LMKKM"
    }:  # fmt: skip
        return  # is no choice there, leaves eigenvectors open, or takes long
    X = topics(240, 60, 3)[0]
    model = estimator(3, random_state=0, **parameters)
    ours, same = clone(model).fit(X), clone(model).fit(X.toarray())
    assert_same_clusters(ours.labels_, same.labels_)
    assert_array_equal(ours.predict(X), ours.labels_)
    # of neighbours at equal distances rounding chooses
    graphs = name is None and estimator is RFFMultiKernelPowerKMeans
    rtol = 1e-3 if graphs else 1e-4 if name == "du2015" else FLAT
    assert_allclose(ours.inertia_, same.inertia_, rtol=rtol)


def test_one_view_in_a_list():
    X = topics(240, 60, 3)[0]
    for kernels in ("linear", "rbf", "diffusion"):
        model = ip_rff_mkpkm(3, kernels=kernels, random_state=0)
        labels, objective = model.fit([X]).labels_, model.objective_
        assert_array_equal(model.fit([X.toarray()]).labels_, labels)
        # of components of a graph it is zero but for rounding
        assert_allclose(model.objective_, objective, rtol=1e-9, atol=1e-24)


def test_rows_may_lack_views_that_are_arrays():
    X = some_views()
    X[2] = np.where(np.arange(240)[:, None] % 7, X[2], np.nan)
    model = RFFMultiKernelPowerKMeans(3, allow_missing_views=True, random_state=0)
    labels, inertia = model.fit(X).labels_, model.inertia_
    assert_array_equal(model.predict(X), labels)
    assert_same_clusters(model.fit(arrays_of(X)).labels_, labels)
    assert_allclose(model.inertia_, inertia, rtol=1e-9)


def test_a_critical_exponent_and_reference_distances_of_sparse_columns():
    X, weight = topics(700, 60, 3)[0], np.random.default_rng(0).uniform(0.5, 2, 700)
    for parameters in ({}, {"typicality": Typicality(eta="mean")}, {"typicality": None}):
        model = ip_rff_mkpkm(3, kernels="linear", random_state=0, **parameters)
        ours = clone(model).fit([X], sample_weight=weight)
        same = clone(model).fit([X.toarray()], sample_weight=weight)
        if ours.eta_ is not None:
            assert_allclose(ours.eta_, same.eta_, rtol=1e-9)
        first = [
            next(record["s"] for record in each.history_ if record["stage"] == "anneal")
            for each in (ours, same)
        ]
        assert_allclose(*first, rtol=1e-6)


def test_many_rows_are_sampled():
    X = some_views(6000)
    model = ip_rff_mkpkm(3, sample=500, n_frequencies=64, random_state=0)
    labels, objective = model.fit(X).labels_, model.objective_
    assert_array_equal(model.fit(arrays_of(X)).labels_, labels)
    assert_allclose(model.objective_, objective, rtol=1e-9)


def test_frequencies_of_fusions_are_written_out_where_rows_have_few_entries():
    X, Z = topics(150, 2000, 3, length=6)[0], topics(150, 40, 3)[0]
    model = FAMKKM(3, approximation=("rff", 64), random_state=0).fit([X, Z])
    same = clone(model).fit(arrays_of([X, Z]))
    assert_array_equal(model.labels_, same.labels_)
    assert_allclose(model.transform([X, Z]), same.transform(arrays_of([X, Z])), atol=1e-9)


# ---- input --------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", EVERY)
def test_unsorted_indices_duplicates_zeros_and_empty_rows(estimator):
    X = frozen([messy(120, d, 0.3, seed) for seed, d in enumerate((30, 20))])
    plain = [sparse.csr_array(x.toarray()) for x in X]
    labels, expected = (estimator(2, random_state=0).fit(x).labels_ for x in (X, plain))
    assert_array_equal(labels, expected)


def test_equal_rows():
    X = sparse.csr_array(np.repeat(np.eye(3), 4, axis=0))
    for model in (ip_rff_mkpkm(5, n_frequencies=32), MultiKernelPowerKMeans(5)):
        with pytest.warns(ConvergenceWarning, match="X has 3 distinct rows"):
            model.set_params(random_state=0).fit([X, np.repeat(np.eye(3), 4, axis=0)])
    with pytest.raises(ValueError, match=r"X\[1\] has equal rows"):
        MKKM(2).fit([X, sparse.csr_array((12, 5))])


def test_views_that_are_refused_are_named():
    X, Z, D = some_views(60)
    wrong = Z.copy()
    wrong.data[3] = np.nan
    for model in (MKKM(2), ip_rff_mkpkm(2, allow_missing_views=True), MultiKernelPowerKMeans(2)):
        with pytest.raises(ValueError, match=r"X\[1\]: contains NaN"):
            model.fit([X, wrong])
        with pytest.raises(ValueError, match=r"^X\[0\]: has 59 columns, but had 60 in fit"):
            model.fit([X, D]).predict([X[:, 1:], D])
    with pytest.raises(TypeError, match=r"X\[1\] is sparse, and the kernel 'chi2' takes dense"):
        MKKM(2, kernels=["rbf", "chi2"]).fit([D, X])
    with pytest.raises(TypeError, match="X is sparse, and callable kernels take dense rows"):
        MultiKernelPowerKMeans(2, kernels=["rbf", lambda x, y: float(x @ y)]).fit(X)
    with pytest.raises(TypeError, match=r"^X\[1\]: is sparse, but a source takes dense"):
        ip_rff_mkpkm(2).fit([lambda: iter([D]), lambda: iter([X])])
    broken = X.copy()
    broken.indices[-1] = 60
    for model in (MKKM(2), MKKM(2, kernels="precomputed")):
        with pytest.raises(ValueError, match=r"X\[0\]: .*ind(ex|ices)"):
            model.fit([broken, Z])
    with pytest.warns(UserWarning, match=r"X\[1\]: is symmetric like"):
        ip_rff_mkpkm(2, n_frequencies=32, random_state=0).fit([X, X @ X.T])


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "model",
    [
        ip_rff_mkpkm(3, n_frequencies=64),
        ip_rff_mkpkm(3, kernels=["linear", ("rbf", "mean")], n_frequencies=64),
        MultiKernelPowerKMeans(3),
        AverageMKKM(3, n_landmarks=100),
        SMKC(3, anchors=50),
        SMKC(3, anchors=("k-means++", 50)),
        FAMKKM(3, approximation=("rff", 64)),
        FAMKKM(3, approximation=("nystroem", 50)),
    ],
    ids=lambda model: str(model)[:60],
)
def test_views_are_not_written_out(model):
    """Arrays of the views would take 640 MB."""
    X = [topics(2000, 20_000, 3, seed)[0] for seed in (0, 1)]
    assert peak_of_fit(model, X) < 200e6
