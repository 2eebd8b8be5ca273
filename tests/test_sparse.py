"""Sparse rows: passes against the twin, and fits against fits of the same rows as an array."""

import warnings
from dataclasses import replace

import numpy as np
import oracles
import pytest
from contracts.core import Landmarks, Structure, sparse_rows
from contracts.graph import Neighbourhoods
from conventions import peak_of
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal, assert_equal
from passes import make_rows, one_pass
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from test_pass import assert_same_pass

from rffpk import (
    Annealing,
    DiffusionMap,
    DiffusionPowerKMeans,
    FuzzyCMeans,
    KernelKMeans,
    KernelPowerKMeans,
    NystroemKernelKMeans,
    PowerKMeans,
    RandomFourierFeatures,
    RFFKernelPowerKMeans,
    RFFMultiKernelPowerKMeans,
    _core,
    load,
)

CLUSTERERS = [PowerKMeans, FuzzyCMeans, RFFKernelPowerKMeans]
EVERY = [*CLUSTERERS, DiffusionPowerKMeans, KernelKMeans, KernelPowerKMeans]


def messy(n, d, density, seed, dtype=np.float64):
    """Build a CSR array with unsorted indices, duplicates, and rows that are empty or all zeros."""
    random = np.random.default_rng(seed)
    counts = random.binomial(d, density, n) * (random.random(n) > 0.1)
    indices = random.integers(0, d, counts.sum())
    data = random.standard_normal(counts.sum()) * (random.random(counts.sum()) > 0.1)
    indptr = np.r_[0, np.cumsum(counts)]
    zero = random.integers(0, n)
    data[indptr[zero] : indptr[zero + 1]] = 0
    return sparse.csr_array((data.astype(dtype), indices, indptr), shape=(n, d))


def topics(n, d, k, seed=0, length=20):
    """Draw rows of counts, each with the words of one of k topics, and the topics."""
    random = np.random.default_rng(seed)
    y = np.r_[np.arange(k), random.integers(0, k, n - k)]
    own = random.permutation(d)[: d // k * k].reshape(k, -1)
    words = own[y[:, None], random.integers(0, d // k, (n, length))]
    stray = random.random((n, length)) < 0.1
    words[stray] = random.integers(0, d, stray.sum())
    X = sparse.csr_array((np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, length)))
    X.resize(n, d)
    X.sum_duplicates()
    return X, y


def peak_of_fit(model, X):
    model.set_params(random_state=0, n_jobs=1)
    return peak_of(lambda: model.fit(X).predict(X))


def structure(d, D, random):
    """Return random structured frequencies, D of d columns."""
    p = max(2, 1 << (d - 1).bit_length())
    signs = random.choice(np.array([-1, 1], np.int8), size=(-(-D // p), 3, p))
    return Structure(signs, 0.3 / p, D)


def problem(X, dtype, kind, k, seed, weighted):
    random = np.random.default_rng(seed)
    x, D = sparse_rows(X.astype(dtype)), int(random.integers(1, 40))
    frequencies = random.standard_normal((X.shape[1], D)).astype(dtype)
    mapped = structure(X.shape[1], D, random) if kind == "structured" else frequencies
    weight = random.uniform(0.1, 3, len(x)) if weighted else None
    rows = make_rows([x], [None if kind == "columns" else mapped], weight, 2)
    return rows, random.standard_normal((k, len(rows.shift)))


@given(
    st.integers(1, 200),
    st.integers(1, 60),
    st.sampled_from([0.01, 0.2, 0.9]),
    st.integers(1, 15) | st.integers(30, 40),
    st.sampled_from(["columns", "frequencies", "structured"]),
    st.sampled_from([-0.7, -1.0, -5.0, -np.inf]),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_core_agrees_with_its_twin(isa, dtype, n, d, density, k, kind, s, weighted, seed):
    assert_same_pass(*problem(messy(n, d, density, seed), dtype, kind, k, seed, weighted), s)


@pytest.mark.few(2)
@pytest.mark.parametrize("k", [3, 8, 32])
@pytest.mark.parametrize("s", [-2.0, -np.inf])
def test_wide_rows_in_large_slots(isa, dtype, k, s):
    """Sums have an order of their own, also where they are as many numbers as of dense rows."""
    rows, theta = problem(messy(3000, 700, 0.005, 0), dtype, "columns", k, 0, True)
    assert_same_pass(rows, 0.1 * theta, s)


def test_sums_follow_those_of_other_rows():
    rows, theta = problem(messy(5000, 30, 0.2, 1), float, "columns", 5, 1, True)
    for s in (-2.0, -np.inf):
        before = one_pass(rows.take(slice(0, 4096)), theta, s)[0]
        sums = one_pass(rows.take(slice(4096, None)), theta, s, before=before)[0]
        for part, same in zip(sums, one_pass(rows, theta, s)[0]):
            assert_allclose(part, same, rtol=1e-9, atol=1e-9)


def test_the_pass_refuses_what_it_does_not_take():
    x, points, shifts = sparse_rows(messy(20, 4, 0.5, 0)), np.zeros((3, 4)), [np.zeros(4)]
    short = replace(x, data=x.data[:-1], indices=x.indices[:-1])
    for rows, mapped, message in [
        (x, Landmarks(points, 1, 1.0, points), "must not be sparse"),
        (short, None, "entries, its rows have"),
    ]:
        with pytest.raises(ValueError, match=message):
            one_pass(make_rows([rows], [mapped], None, 1, shifts), np.zeros((2, 4)), -1.0)
    with pytest.raises(TypeError, match="sparse rows are no array"):
        np.asarray(x)


def test_input_is_not_changed():
    X = messy(200, 30, 0.3, 3)
    before = [X.data.copy(), X.indices.copy(), X.indptr.copy()]
    x = sparse_rows(X)
    assert_allclose(x.toarray(), X.toarray(), rtol=1e-14)
    assert x.matrix.has_canonical_format and (x.data != 0).all()
    PowerKMeans(3, random_state=0).fit(X)
    assert_equal([X.data, X.indices, X.indptr], before)


@pytest.mark.parametrize("indices", [[0, 7], [0, -1]])
def test_columns_that_do_not_exist_are_refused(indices):
    X = sparse.csr_array((np.ones(2), [0, 1], [0, 1, 2]), shape=(2, 5))
    X.indices[:] = indices
    with pytest.raises(ValueError, match="X.*ind(ex|ices)"):
        PowerKMeans(1).fit(X)


@pytest.mark.few(1)
@pytest.mark.parametrize("estimator", EVERY)
def test_formats(estimator):
    X = topics(60, 12, 3)[0]
    model = estimator(3, random_state=0)
    expected = clone(model).fit(X).labels_
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    formats = ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
    others = [x.asformat(form) for form in formats for x in (X, sparse.csr_matrix(X))]
    for given_X in (wide, *others):
        assert_array_equal(model.fit(given_X).labels_, expected)
        assert_array_equal(model.predict(given_X), expected)
        assert model.predict_proba(given_X).shape == (60, 3)
    assert model.fit((100 * X).astype(np.int32)).labels_.shape == (60,)


@pytest.mark.few(2)
@pytest.mark.parametrize("estimator", [*EVERY, NystroemKernelKMeans])
def test_fits_have_the_same_bits_for_any_number_of_threads(estimator):
    X = topics(1500, 200, 4)[0]
    models = [estimator(4, random_state=0, n_jobs=n).fit(X) for n in (1, 3)]
    assert_array_equal(*(model.transform(X) for model in models))
    assert_array_equal(*(model.labels_ for model in models))


def test_large_offsets_in_float32():
    """A column that is large everywhere costs few digits, as rows are shifted by their mean."""
    X, _ = topics(500, 60, 3)
    X = sparse.hstack([X, np.full((500, 1), 300.0)]).tocsr()
    model = PowerKMeans(3, random_state=0)
    assert_array_equal(*(model.fit_predict(x) for x in (X.astype(np.float32), X.toarray())))


def test_models_do_not_hold_the_sums_of_their_last_passes():
    X = topics(300, 40, 3)[0]
    for given_X in (X, X.toarray()):
        for parameters in ({}, {"annealing": Annealing(end=-3.0)}):
            model = PowerKMeans(3, random_state=0, **parameters).fit(given_X)
            assert model._centroids.weights.base is None


def test_initial_centroids():
    X, seen = topics(200, 30, 3)[0], []
    ours = PowerKMeans(3, init=X[:3].toarray(), random_state=0).fit(X)

    def chosen(rows, k, random_state):
        seen.append(rows)
        return rows[:k].toarray()

    assert_allclose(PowerKMeans(3, init=chosen, random_state=0).fit(X).inertia_, ours.inertia_)
    assert sparse.issparse(seen[0]) and seen[0].shape == X.shape
    u = np.random.default_rng(0).dirichlet(np.ones(3), 200)
    fuzzy = FuzzyCMeans(3, init=u, max_iter=1, random_state=0)
    centers = fuzzy.fit(X).cluster_centers_
    assert_allclose(centers, fuzzy.fit(X.toarray()).cluster_centers_, atol=1e-10)


def test_equal_rows_and_rows_of_zeros():
    X = sparse.csr_array((20, 6))
    for estimator in CLUSTERERS:
        with pytest.warns(ConvergenceWarning, match="X has 1 distinct row;"):
            assert (estimator(2, random_state=0).fit(X).labels_ == 0).all()
    X = sparse.csr_array(np.repeat(np.eye(3), 4, axis=0))
    same = sparse.csr_array(np.tile([0.0, 1e-170, 2e-170], (12, 1)))
    for rows, message in ((X, "X has 3 distinct rows"), (same, "X has 1 distinct row;")):
        with pytest.warns(ConvergenceWarning, match=message):
            PowerKMeans(5, random_state=0).fit(rows)
    for differ in (X, X[:, [0, 0, 1, 2]] + sparse.csr_array(np.eye(12, 4))):
        with pytest.raises(ValueError, match="underflow"):
            PowerKMeans(2).fit(1e-170 * sparse.csr_array(differ))


def test_batches_and_the_rows_that_wait(tmp_path):
    X, path = topics(600, 40, 3)[0], tmp_path / "model"
    PowerKMeans(3, sample=300, random_state=0).partial_fit(X[:150]).save(path)
    model = load(path).partial_fit(X[150:300])
    expected = PowerKMeans(3, random_state=0).fit(X[:300]).labels_
    assert_array_equal(model.predict(X[:300]), expected)
    model.partial_fit(X[300:])
    assert_allclose(model.score(X), PowerKMeans(3, random_state=0).fit(X).score(X), rtol=0.02)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_the_critical_exponent_is_that_of_dense_rows(metric):
    X, _ = topics(700, 60, 1)
    model = PowerKMeans(3, metric=metric, random_state=0)
    for weight in (None, np.random.default_rng(0).uniform(0.5, 2, 700)):
        found = oracles.first_exponent(model, X, sample_weight=weight)
        expected = oracles.first_exponent(model, X.toarray(), sample_weight=weight)
        assert_allclose(found, expected, rtol=1e-9)
        assert found < -0.5


def test_first_rows_of_weight_zero_change_no_label():
    """The means from which sums are taken are then means of no row."""
    X = sparse.random(_core.SLOT_ROWS + 300, 12, 0.3, random_state=0, format="csr")
    weight = np.r_[np.zeros(_core.SLOT_ROWS), np.ones(300)]
    model = PowerKMeans(3, random_state=0)
    labels, dense = (model.fit(x, sample_weight=weight).labels_ for x in (X, X.toarray()))
    assert adjusted_rand_score(labels, dense) > 0.99


def test_dense_rows_meet_sparse_landmarks_of_few_columns_as_sparse_rows_do():
    X = sparse.random(300, 40, 0.1, random_state=0, format="lil")
    X[:, 10:] = 0
    mapped = DiffusionMap(time=1.0, random_state=0).fit(X.tocsr())
    new = sparse.random(50, 40, 0.2, random_state=1, format="csr")
    assert_allclose(mapped.transform(new.toarray()), mapped.transform(new), atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_bounds_change_no_label(weighted, tuning):
    X, _ = topics(700, 60, 3)
    weight = np.random.default_rng(0).uniform(0.5, 2, 700) if weighted else None
    models = []
    for rows in (10**9, 1):
        tuning(hardpasses__bounds_rows=rows, hardpasses__bounds_cost=0.0)
        model = PowerKMeans(8, annealing=Annealing(start=-1e4), init="random", random_state=0)
        models.append(model.fit(X, sample_weight=weight))
    assert_array_equal(models[0].labels_, models[1].labels_)
    assert_allclose(models[0].cluster_centers_, models[1].cluster_centers_, atol=1e-12)
    assert_allclose(models[0].inertia_, models[1].inertia_, rtol=1e-9)


def test_costs_that_cancel_are_summed_from_differences():
    X = sparse.csr_array(np.repeat(1e6 * np.eye(3, 50), 10, axis=0))
    X.data += 1e-3 * np.arange(30)
    model = PowerKMeans(3, init=X[::10].toarray(), random_state=0).fit(X)
    groups = X.data.reshape(3, 10)
    expected = ((groups - groups.mean(axis=1, keepdims=True)) ** 2).sum()
    assert_allclose(model.inertia_, expected, rtol=1e-4)


def test_distances_of_tight_groups_have_digits(isa, dtype):
    """Rows whose distances are a small part of their squares, in few columns of many."""
    random = np.random.default_rng(0)
    centers = np.where(random.random((6, 400)) < 0.02, 1000 * random.standard_normal((6, 400)), 0)
    X = centers[random.integers(6, size=300)]
    X = np.where(X != 0, X + 0.1 * random.standard_normal(X.shape), 0).astype(dtype)
    theta = np.where(centers != 0, centers + 0.1 * random.standard_normal(centers.shape), 0)
    theta = theta.astype(dtype).astype(float)
    zero = np.zeros(400, dtype)
    rows = make_rows([sparse_rows(sparse.csr_array(X))], [None], None, 1, [zero])
    found = one_pass(rows, theta, -np.inf, want=("distances", "nearest"))[1]
    apart = ((X[:, None].astype(float) - theta) ** 2).sum(axis=2)
    part = {"f": 2**-7, "d": 1e-6}[dtype.char]
    assert_allclose(found["distances"], apart, rtol=part)
    assert_allclose(found["nearest"], apart.min(axis=1), rtol=part)


@pytest.mark.parametrize("entries", ["few", "all"])
def test_structured_frequencies_are_written_out_where_rows_have_few_entries(
    entries, memory, tuning
):
    """Which does not depend on the memory that is left, as features are rounded otherwise then."""
    X = topics(100, 2000, 2, length=5)[0]
    if entries == "all":
        X = sparse.csr_array(np.random.default_rng(0).standard_normal((50, 2000)))

    def features():
        mapped = RandomFourierFeatures(70, sampling="structured", gamma=1e-3, random_state=0)
        return mapped.fit(X).transform(X)

    expected, dense = features(), X.toarray()
    mapped = RandomFourierFeatures(70, sampling="structured", gamma=1e-3, random_state=0).fit(dense)
    assert_allclose(expected, mapped.transform(dense), atol=1e-15)
    memory(2000 * 70 * 8 // 2)
    assert_array_equal(features(), expected)
    tuning(storage__written_bytes=2000 * 70 * 8 - 1)
    assert_allclose(features(), expected, atol=1e-15)
    assert np.array_equal(features(), expected) is (entries == "all")


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "cauchy"])
@pytest.mark.parametrize("gamma", ["mean", "median", "scale", 0.1])
def test_random_features_are_those_of_dense_rows(kernel, gamma, dtype):
    X = topics(300, 50, 3)[0].astype(dtype)
    parameters = {"kernel": kernel, "gamma": gamma, "random_state": 0}
    ours = RandomFourierFeatures(64, **parameters).fit(X)
    same = RandomFourierFeatures(64, **parameters).fit(X.toarray())
    rtol = 1e-9 if dtype == np.float64 else 1e-4
    assert_allclose(ours.gamma_, same.gamma_, rtol=rtol)
    # phases of Cauchy variables are large, and so are their errors
    close = np.abs(ours.transform(X) - same.transform(X.toarray())) < 10 * rtol
    assert close.mean() > (0.98 if kernel == "laplacian" else 0.9999)
    assert ours.transform(X).dtype == dtype


# ---- exact kernels and diffusion ----------------------------------------------------------------


@pytest.mark.few(3)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "kernel", ["rbf", "linear", "polynomial", "cosine", "sigmoid", "laplacian"]
)
def test_exact_kernels_are_those_of_dense_rows(kernel, weighted, dtype):
    X = topics(300, 60, 3)[0].astype(dtype)
    weight = np.random.default_rng(0).uniform(0.5, 2, 300) if weighted else None
    tolerance = {"rtol": 1e-8} if dtype == np.float64 else {"rtol": 1e-3, "atol": 1e-3}
    for estimator in (KernelKMeans, KernelPowerKMeans):
        model = estimator(3, kernel=kernel, random_state=0, store_memberships=True)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "kernel 0 is indefinite")
            ours, same = (clone(model).fit(x, sample_weight=weight) for x in (X, X.toarray()))
        assert_array_equal(ours.labels_, same.labels_)
        assert_array_equal(ours.predict(X), ours.labels_)
        assert_array_equal(ours.predict(X.toarray()), ours.labels_)
        assert_array_equal(same.predict(X), ours.labels_)
        assert_allclose(ours.inertia_, same.inertia_, **tolerance)
        assert_allclose(ours.transform(X), same.transform(X.toarray()), **tolerance)
        assert_allclose(ours.score(X), same.score(X.toarray()), **tolerance)
        assert_allclose(ours.memberships_, same.memberships_, atol=1e-2)


@pytest.mark.parametrize("kernel", ["rbf", "cosine"])
def test_nystroem_features_are_those_of_dense_rows(kernel):
    X = topics(300, 60, 3)[0]
    model = NystroemKernelKMeans(3, kernel=kernel, n_anchors=40, random_state=0)
    ours, same = (clone(model).fit(x) for x in (X, X.toarray()))
    for fitted, rows in ((ours, X), (ours, X.toarray()), (same, X)):
        assert_array_equal(fitted.predict(rows), same.labels_)
    products = [phi @ phi.T for phi in (ours.transform(X), same.transform(X.toarray()))]
    assert_allclose(*products, atol=1e-8)


DIFFUSIONS = [
    {},
    {"metric": "cosine"},
    {"n_landmarks": 60},
    {"n_landmarks": 60, "metric": "cosine", "n_neighbors": 4},
    {"n_landmarks": 60, "n_neighbors": 20},
]


@pytest.mark.few(1)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("parameters", DIFFUSIONS)
def test_diffusion_is_that_of_dense_rows(parameters, weighted, dtype):
    """The rows have no ties, so that choices from an array and from sparse rows agree."""
    X, y = topics(1500, 80, 3, length=10)
    X.data *= np.random.default_rng(0).uniform(0.5, 2, X.nnz)
    X = X.astype(dtype)
    weight = np.random.default_rng(0).uniform(0.5, 2, 1500) if weighted else None
    model = DiffusionPowerKMeans(3, random_state=0, **parameters)
    ours = model.fit(X, sample_weight=weight)
    labels, mapped, distances = ours.labels_, ours.feature_map_, ours.transform(X)
    assert sparse.issparse(mapped.landmarks_)
    assert_array_equal(ours.predict(X), labels)
    same = model.fit(X.toarray(), sample_weight=weight)
    # clusters may have other numbers
    assert adjusted_rand_score(labels, same.labels_) == 1
    rtol = 1e-9 if dtype == np.float64 else 1e-3
    assert_allclose(mapped.landmarks_.toarray(), same.feature_map_.landmarks_, rtol=rtol)
    assert_allclose(mapped.eigenvalues_, same.feature_map_.eigenvalues_, atol=rtol)
    expected = np.sort(same.transform(X.toarray()), axis=1)
    assert_allclose(np.sort(distances, axis=1), expected, atol=50 * rtol)


@pytest.mark.few(1)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator", [*CLUSTERERS, DiffusionPowerKMeans, KernelKMeans, NystroemKernelKMeans]
)
def test_rows_are_not_written_out(estimator):
    """An array of the rows would take 320 MB."""
    few = {"n_frequencies": 64, "n_landmarks": 50, "n_anchors": 50}
    model = estimator(3, **{name: few[name] for name in few if hasattr(estimator(), name)})
    assert peak_of_fit(model, topics(2000, 20_000, 3)[0]) < 120e6


@pytest.mark.parametrize("columns, share", [(40, 0.9), (690, 0.01), (710, 0.01)])
def test_neighbours_of_sparse_rows_are_those_of_full_rows(columns, share, dtype):
    """To the bit in up to 700 columns, where rows are written out."""
    random = np.random.default_rng(0)
    X = random.standard_normal((700, columns)).astype(dtype)
    X[random.random(X.shape) > share] = 0
    sparse_X = sparse_rows(sparse.csr_array(X))
    rtol = 0.0 if columns < 700 else {"f": 1e-4, "d": 1e-9}[dtype.char]
    squares, index = Neighbourhoods(X, 6, 0.0, 2)._nearest(X)
    for landmarks, rows in ((sparse_X, sparse_X), (X, sparse_X), (sparse_X, X)):
        neighbours = Neighbourhoods(landmarks, 6, 0.0, 2)
        found = neighbours._nearest(rows)
        assert_allclose(found[0], squares, rtol=rtol, atol=1e-6 * bool(rtol))
        assert_array_equal(found[1], index)
        assert_array_equal(np.sort(neighbours.chosen(rows[:3]), axis=1), index[:3])


def test_rows_of_few_columns_are_written_out_a_tile_at_a_time():
    """All of them would take 240 MB."""
    X = sparse.random(100_000, 300, density=0.01, format="csr", random_state=0)
    neighbours = Neighbourhoods(sparse_rows(X[:50]), 6, 0.0, 1)
    assert peak_of(lambda: neighbours._nearest(sparse_rows(X))) < 120e6


# ---- empty columns ------------------------------------------------------------------------------


def padded(X, width=20_000):
    """Spread the columns of X among empty columns, and return their places, too."""
    places = np.sort(np.random.default_rng(0).permutation(width)[: X.shape[1]])
    return sparse.csr_array(
        (X.data, places[X.indices], X.indptr), shape=(X.shape[0], width)
    ), places


EMPTY = [
    (PowerKMeans, {}),
    (PowerKMeans, {"metric": "cosine"}),
    (PowerKMeans, {"whitening": 0.5}),
    (PowerKMeans, {"noise": 0.2}),
    (FuzzyCMeans, {}),
    (DiffusionPowerKMeans, {}),
    (RFFKernelPowerKMeans, {}),
    (RFFKernelPowerKMeans, {"sampling": "orthogonal", "n_frequencies": 60}),
    (RFFMultiKernelPowerKMeans, {}),
    (RFFMultiKernelPowerKMeans, {"kernels": ["linear", "diffusion"]}),
    (RFFMultiKernelPowerKMeans, {"kernels": ["rbf", "laplacian"]}),
]


def assert_same_fits(model, narrow_X, wide_X):
    """Check that fits to rows without and with empty columns have the same bits; return both."""
    narrow, wide = clone(model).fit(narrow_X), clone(model).fit(wide_X)
    assert_array_equal(wide.labels_, narrow.labels_)
    assert_array_equal(wide.transform(wide_X), narrow.transform(narrow_X))
    assert wide.inertia_ == narrow.inertia_ and wide.n_iter_ == narrow.n_iter_
    return narrow, wide


@pytest.mark.promise(
    "Input",
    "Empty columns of sparse rows change no bit of a fit if they are more than half of all.",
)
@pytest.mark.parametrize("cls, parameters", EMPTY)
def test_empty_columns_change_no_bit(cls, parameters):
    X = topics(120, 90, 3)[0]
    X = X[:, np.unique(X.indices)]
    wide, places = padded(X)
    xs = [X, wide]
    if len(parameters.get("kernels", ())) == 2:  # a view without empty columns, too
        xs = [[x, X] for x in xs]
    narrow, found = assert_same_fits(cls(3, random_state=0, **parameters), *xs)
    centers = found.cluster_centers_
    if centers.shape[1] >= wide.shape[1]:
        rest = np.delete(np.arange(centers.shape[1]), np.setdiff1d(np.arange(20_000), places))
        assert_array_equal(centers[:, rest], narrow.cluster_centers_)
        assert np.count_nonzero(centers) == np.count_nonzero(narrow.cluster_centers_)


@pytest.mark.promise(like="test_empty_columns_change_no_bit")
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("seed", range(12))
def test_empty_columns_change_no_bit_of_few_columns(seed, metric):
    """Few full columns are compared as dense rows are, and more columns by their entries."""
    random = np.random.default_rng(seed)
    d, k = int(random.integers(9, 21)), int(random.integers(2, 9))
    X = 3 * random.standard_normal((k, d))[random.integers(k, size=120)]
    X = (X + random.standard_normal(X.shape)) * (random.random(X.shape) < 0.5)
    X = sparse.csr_array(X.astype([np.float32, np.float64][seed % 2]))
    model = DiffusionPowerKMeans(k, metric=metric, random_state=0)
    assert_same_fits(model, X, padded(X, int(random.integers(2 * d + 1, 62)))[0])


@pytest.mark.parametrize(
    "model",
    [
        PowerKMeans(3),
        PowerKMeans(3, metric="cosine"),
        DiffusionPowerKMeans(3, n_neighbors=8, whitening=None),
    ],
)
def test_new_rows_may_have_entries_where_the_fitted_ones_have_none(model, tmp_path):
    wide, _ = padded(topics(120, 90, 3)[0])
    other = sparse.csr_array(wide[:9] + sparse.random(9, 20_000, 0.002, random_state=0))
    model = clone(model).set_params(random_state=0)
    dense = clone(model).fit(wide.toarray()).transform(other.toarray())
    distances = model.fit(wide).transform(other)
    assert_allclose(np.sort(distances, axis=1), np.sort(dense, axis=1), rtol=1e-6)
    model.save(tmp_path / "model")
    assert_array_equal(load(tmp_path / "model").transform(other), distances)
    if isinstance(model, PowerKMeans):
        model.partial_fit(other)
        assert model.cluster_centers_.shape == (3, 20_000)
        assert np.count_nonzero(model.cluster_centers_[:, other.indices]) > 0


def test_random_features_ignore_columns_without_an_entry_or_of_rows_of_weight_zero():
    wide = padded(topics(120, 90, 3)[0])[0]
    model = RFFKernelPowerKMeans(3, random_state=0).fit(wide)
    kept = np.isin(np.arange(20_000), wide.indices)
    assert_array_equal(model.feature_map_.frequencies_.any(axis=1), kept)
    other = sparse.csr_array(wide + sparse.random(120, 20_000, 0.01, random_state=0))
    assert_array_equal(model.transform(other), model.transform(other.multiply(kept).tocsr()))
    column = wide.indices[0]
    weight = 1.0 - (wide[:, [column]].toarray().ravel() != 0)
    model.fit(wide, sample_weight=weight)
    assert 0 < weight.sum() < 120 and not model.feature_map_.frequencies_[column].any()


def test_passes_run_over_the_columns_that_have_entries(monkeypatch):
    """Neither of a fit nor of a prediction is wider than they are."""
    widths, fused = [], _core.fused_pass

    def seen(*arguments, **options):
        widths.append(arguments[3].shape[1])
        return fused(*arguments, **options)

    X = topics(120, 90, 3)[0]
    wide, _ = padded(X)
    monkeypatch.setattr(_core, "fused_pass", seen)
    PowerKMeans(3, random_state=0).fit(wide).predict(wide)
    assert max(widths) <= 90
