"""FAMKKM and Nystroem k-means: ascent of each update, certificates, operators, new rows, errors."""

import pickle
import tracemalloc

import numpy as np
import pytest
from contracts.fusion import FittedKernel, Specification, famkkm, operators
from contracts.passes import ones
from fusion_cases import prepared, printed_famkkm, three_views
from numpy.testing import assert_allclose, assert_array_equal
from oracles import procrustes
from sklearn.base import clone
from sklearn.datasets import load_wine, make_circles
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from rffpk import FAMKKM, NystroemKernelKMeans, PowerKMeans

OPERATORS = [{}, {"approximation": ("rff", 40)}, {"approximation": ("nystroem", 60)}]
LAMBDAS = [(0.01, 1.0), (1.0, 0.1), (30.0, 50.0), (0.0, 0.0)]


@pytest.fixture(scope="module")
def views():
    return three_views(240)


@pytest.fixture(scope="module")
def matrices(views):
    return prepared(views[0], [("rbf", 0.05)] * 3)


def dense(Ks):
    specification = Specification("precomputed")
    return [
        operators.DenseOperator(
            FittedKernel(K, specification, weight=ones(len(K))), 1, ones(len(K))
        )
        for K in Ks
    ]


def eq11(Ks, state, lambda1, lambda2):
    """Compute the objective as it is printed."""
    total = 0.0
    for i, K in enumerate(Ks):
        H, G, R, W = state.H[i], state.G[i], state.R[i], state.W[i]
        total += np.trace(H.T @ K @ G) + lambda1 * np.trace(H.T @ G)
        total += lambda2 * state.gamma[i] * np.trace(state.F.T @ (H @ R + G @ W))
    return total


def assert_orthonormal(U):
    assert_allclose(U.T @ U, np.eye(U.shape[1]), atol=1e-10)


# ---- the alternation ----------------------------------------------------------------------------


@pytest.mark.parametrize("lambda1, lambda2", LAMBDAS)
def test_no_update_lowers_the_objective_and_all_stay_orthonormal(matrices, lambda1, lambda2):
    state = famkkm.Alternation(dense(matrices), 4, lambda1, lambda2, np.random.RandomState(0), 1)
    state.iterate()  # the initial gamma is inside the unit sphere
    first = before = eq11(matrices, state, lambda1, lambda2)
    assert_allclose(state.objective(), before, rtol=1e-12)
    for _ in range(15):
        for update in state.updates:
            update()
            now = eq11(matrices, state, lambda1, lambda2)
            assert now >= before - 1e-11 * abs(before), update.__name__
            before = now
        for U in [*state.H, *state.G, *state.R, *state.W, state.F]:
            assert_orthonormal(U)
        assert_allclose((state.gamma**2).sum(), 1)
        assert (state.gamma >= 0).all()
        assert_allclose(state.objective(), now, rtol=1e-12)
    assert before > 1.005 * first


def test_each_update_is_a_maximiser(matrices):
    """No nearby feasible point is better, and no random one."""
    l1, l2 = 0.7, 3.0
    state = famkkm.Alternation(dense(matrices), 3, l1, l2, np.random.RandomState(1), 1)
    random = np.random.default_rng(2)
    names = {"H": state.update_H, "G": state.update_G, "R": state.update_R, "W": state.update_W}
    state.iterate()
    for name, update in names.items():
        update()
        best = eq11(matrices, state, l1, l2)
        kept = getattr(state, name)
        for size in (1e-3, 1e-1, 1e9):
            others = [procrustes(U + size * random.standard_normal(U.shape)) for U in kept]
            setattr(state, name, others)
            assert eq11(matrices, state, l1, l2) < best, name
        setattr(state, name, kept)


def test_the_estimator_is_the_printed_algorithm(matrices):
    random = np.random.RandomState(5)
    start = [procrustes(K @ np.linalg.qr(random.standard_normal((240, 4)))[0]) for K in matrices]
    F, gamma, values = printed_famkkm(matrices, start, 0.5, 2.0, 6)
    model = FAMKKM(4, kernels="precomputed", lambda1=0.5, lambda2=2.0, max_iter=6, tol=0)
    model.set_params(random_state=5).fit(matrices)
    assert_allclose(model.embedding_, F, atol=1e-9)
    assert_allclose(model.kernel_weights_, gamma, atol=1e-10)
    assert_allclose([r["objective"] for r in model.history_], values, rtol=1e-10)
    assert model.n_iter_ == len(model.history_) == 6


def test_the_iterations_stop_by_the_relative_change(views):
    model = FAMKKM(4, tol=1e-3, max_iter=50, random_state=0).fit(views[0])
    values = [r["objective"] for r in model.history_]
    changes = np.diff(values) / values[1:]
    assert 2 < model.n_iter_ < 50
    assert changes[-1] <= 1e-3 and (changes[:-1] > 1e-3).all()


@pytest.mark.parametrize("max_iter", [1, 3, 20])
def test_fitted_rows_get_their_labels_before_it_converges(views, max_iter):
    """The lines of F are a function of the row at each iteration, not at a fixed point only."""
    wine, line = load_wine().data, np.linspace(0, 1, 200)[:, None]
    for x, k in ((wine, 10), (line, 8), (views[0], 6)):
        model = FAMKKM(k, max_iter=max_iter, random_state=0).fit(x)
        assert_array_equal(model.predict(x), model.labels_)
        assert_array_equal(model.transform(x), model.embedding_)


def test_the_map_of_each_iteration_gives_the_rows_of_F(matrices):
    state = famkkm.Alternation(dense(matrices), 4, 0.5, 2.0, np.random.RandomState(0), 1)
    for _ in range(30):
        assert_allclose(sum(K @ B for K, B in zip(matrices, state.maps())), state.F, atol=1e-10)
        state.iterate()


# ---- operators ----------------------------------------------------------------------------------


def operators_of(xs, word, size=60, standardize=True, metric="rbf"):
    specs = [Specification(metric, {"gamma": 0.05} if metric == "rbf" else {})] * len(xs)
    names = [f"X[{i}]" for i in range(len(xs))]
    return operators.Approximation(
        word, size, standardize, np.random.RandomState(0), n_threads=1, weight=ones(len(xs[0]))
    ).operators(xs, specs, names)  # fmt: skip


@pytest.mark.parametrize("approximation", [None, "rff", "nystroem"])
@pytest.mark.parametrize("standardize", [True, False])
def test_an_operator_is_its_matrix(views, approximation, standardize):
    x = views[0][0]
    (one,) = operators_of([x], approximation, standardize=standardize)
    K = one.times(np.eye(240))
    assert_allclose(K, K.T, atol=1e-12)
    assert np.linalg.eigvalsh(K)[0] > -1e-10
    V = np.random.default_rng(0).standard_normal((240, 3))
    assert_allclose(one.times(V), K @ V, atol=1e-11)
    assert_allclose(one.times(V[:, 0]), K @ V[:, 0], atol=1e-11)
    assert_allclose(one.features(x) @ one.coefficients(V), K @ V, atol=1e-11)
    if standardize:
        assert_allclose(np.diagonal(K), 1, atol=1e-12)


@pytest.mark.few(2)
@pytest.mark.parametrize("standardize", [True, False])
def test_many_features_agree_with_the_matrix(views, standardize):
    x, unit = views[0][1], np.eye(240)
    ((exact,), (anchors,), (rff,)) = (
        operators_of([x], word, size, standardize=standardize)
        for word, size in ((None, 0), ("nystroem", 240), ("rff", 4000))
    )
    K = exact.times(unit)
    assert_allclose(anchors.times(unit), K, atol=1e-7)
    assert_allclose(rff.times(unit), K, atol=0.06)
    new = np.random.default_rng(1).standard_normal((7, 12))
    V = np.random.default_rng(2).standard_normal((240, 2))
    rows, expected = anchors.features(new) @ anchors.coefficients(V), exact.features(new) @ V
    if standardize:  # the anchors do not span new rows, whose lengths differ then
        rows, expected = (a / np.linalg.norm(a, axis=1)[:, None] for a in (rows, expected))
    assert_allclose(rows, expected, atol=1e-6)


def test_the_gamma_of_features_is_that_of_all_rows(views):
    x = views[0][0]
    anchors = operators_of([x], "nystroem", 240, metric="laplacian")[0]
    exact = operators_of([x], None, metric="laplacian")[0]
    assert_allclose(anchors.times(np.eye(240)), exact.times(np.eye(240)), atol=1e-7)


def test_all_anchors_give_the_dense_result(views):
    exact = FAMKKM(4, random_state=0).fit(views[0])
    model = FAMKKM(4, approximation=("nystroem", 240), random_state=0).fit(views[0])
    assert_allclose(model.kernel_weights_, exact.kernel_weights_, rtol=1e-3)
    assert adjusted_rand_score(model.labels_, exact.labels_) > 0.98


@pytest.mark.exhaustive
def test_no_square_array_is_made(views):
    """A kernel matrix of the 10 000 rows would take 800 MB."""
    xs = [np.random.default_rng(0).standard_normal((10_000, 3)).astype(np.float32)]
    tracemalloc.start()
    for approximation in (("rff", 8), ("nystroem", 16)):
        model = FAMKKM(3, approximation=approximation, max_iter=2, n_init=1, random_state=0)
        model.fit(xs)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6
    assert len(pickle.dumps(model)) < 6e5


@pytest.mark.few(2)
@pytest.mark.parametrize("columns", [1, 3, 40])
@pytest.mark.parametrize("rows", [60, 8192, 8200, 20_000])
def test_the_polar_factor_by_tiles(rows, columns):
    V = np.random.default_rng(0).standard_normal((rows, columns)) * np.logspace(0, 4, columns)
    P = operators.polar(lambda rows: V[rows], U := np.empty_like(V), 2)
    assert_allclose(U, procrustes(V), atol=1e-10)
    assert_allclose(V @ P, U, atol=1e-9)


def test_the_polar_factor_of_a_matrix_without_full_rank():
    V = np.zeros((9000, 3))
    V[:, 0] = np.arange(9000)
    P = operators.polar(lambda rows: V[rows], U := np.empty_like(V), 1)
    assert_allclose(U.T @ U, np.diag([1.0, 0, 0]), atol=1e-12)  # no vector that V does not fix
    assert_allclose(np.sum(U * V), np.linalg.norm(V))
    assert_allclose(V @ P, U, atol=1e-12)


# ---- new rows and invariances -------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize("operator", OPERATORS)
def test_after_convergence_fitted_rows_are_embedded_as_before(views, operator):
    for lambda1, lambda2 in ((0.1, 0.1), (30.0, 60.0)):
        model = FAMKKM(
            4, lambda1=lambda1, lambda2=lambda2, max_iter=3000, tol=1e-15, n_init=1,
            random_state=0, **operator,
        ).fit(views[0])  # fmt: skip
        assert_allclose(model.transform(views[0]), model.embedding_, atol=1e-5)


@pytest.mark.parametrize("operator", OPERATORS)
def test_new_rows_fall_into_their_clusters(views, operator):
    old, new = np.arange(240) % 3 > 0, np.arange(240) % 3 == 0
    model = FAMKKM(4, random_state=0, **operator).fit([x[old] for x in views[0]])
    rows = [x[new] for x in views[0]]
    assert adjusted_rand_score(views[1][new], model.predict(rows)) > 0.9
    one_by_one = np.vstack([model.transform([x[i : i + 1] for x in rows]) for i in range(5)])
    assert_allclose(one_by_one, model.transform(rows)[:5], atol=1e-12)


@pytest.mark.parametrize("approximation", [None, ("nystroem", 80)])
def test_precomputed_kernels(views, matrices, approximation):
    parameters = {"approximation": approximation, "random_state": 0}
    copies = [K.copy() for K in matrices]
    model = FAMKKM(4, kernels="precomputed", **parameters).fit(matrices)
    for K, copy in zip(matrices, copies):
        assert_array_equal(K, copy)
    assert adjusted_rand_score(views[1], model.labels_) > 0.9
    assert_array_equal(model.predict(matrices), model.labels_)
    assert model.transform([K[:5] for K in matrices]).shape == (5, 4)
    if approximation is None:
        rows = FAMKKM(4, kernels=[("rbf", 0.05)] * 3, **parameters).fit(views[0])
        assert_allclose(rows.objective_, model.objective_, rtol=1e-8)
        assert_array_equal(rows.labels_, model.labels_)


def test_one_array_with_several_kernels(views):
    x = views[0][0]
    kernels = ["linear", ("rbf", 0.1), ("polynomial", {"degree": 2})]
    for approximation in (None, "nystroem"):
        model = FAMKKM(4, kernels=kernels, approximation=approximation, random_state=0).fit(x)
        other = FAMKKM(4, kernels=kernels, approximation=approximation, random_state=0)
        other.fit([x, x, x])
        assert_array_equal(model.labels_, other.labels_)
        assert_array_equal(model.kernel_weights_, other.kernel_weights_)
        assert_array_equal(model.predict(x), model.labels_)
    bank = FAMKKM(4, kernels="du2015", random_state=0).fit(x)
    assert bank.kernel_weights_.shape == (12,)
    assert np.mean(bank.predict(x) == bank.labels_) >= 0.99


def test_more_clusters_than_the_kernel_has_rank(views):
    x = views[0][0][:, :2]
    model = FAMKKM(4, kernels=["linear"], standardize=False, random_state=0).fit(x)
    singular = np.linalg.svd(model.embedding_, compute_uv=False)
    assert_allclose(singular, [1, 1, 0, 0], atol=1e-12)
    assert_array_equal(model.predict(x), model.labels_)
    equal = FAMKKM(2, random_state=0).fit(np.ones((10, 2)))  # a kernel of zeros
    assert np.isfinite(equal.transform(np.ones((3, 2)))).all()


def test_the_order_of_rows_and_views_hardly_matters(views):
    order = np.random.default_rng(3).permutation(240)
    parameters = {"kernels": [("rbf", 0.02)] * 3, "random_state": 0}
    model = FAMKKM(4, max_iter=200, **parameters).fit(views[0])
    other = FAMKKM(4, max_iter=200, **parameters).fit([x[order] for x in views[0]])
    turned = FAMKKM(4, max_iter=200, **parameters).fit(views[0][::-1])
    assert_allclose(other.objective_, model.objective_, rtol=1e-3)
    assert_allclose(turned.objective_, model.objective_, rtol=1e-3)
    # the view of noise has optima with nearly the same objective
    assert_allclose(turned.kernel_weights_[::-1], model.kernel_weights_, atol=0.05)
    assert adjusted_rand_score(other.labels_, model.labels_[order]) > 0.98


# ---- errors --------------------------------------------------------------------------------------


def test_asymmetric_and_indefinite_kernels_are_refused(matrices):
    good = matrices[0]
    asymmetric = good.copy()
    asymmetric[3, 7] += 0.01
    model = FAMKKM(4, kernels="precomputed", lambda1=0.5, random_state=0)
    with pytest.raises(ValueError, match=r"X\[1\] is not symmetric"):
        model.fit([good, asymmetric])
    fourth = np.linalg.eigvalsh(good)[-4]
    near, bad = (good - fraction * (fourth + 2 * 0.5) / 240 for fraction in (0.9, 1.1))
    for K in (near, bad):
        K += np.diag(np.maximum(-np.diagonal(K), 0))
    model.fit([good, near])
    with pytest.raises(ValueError, match=r"X\[1\] is too far from positive semidefinite"):
        model.fit([good, bad])
    with pytest.raises(ValueError, match=r"X\[1\] is not positive semidefinite"):
        FAMKKM(4, kernels="precomputed", approximation="nystroem").fit([good, bad])


# ---- Nystroem k-means ---------------------------------------------------------------------------


def test_nystroem_features_are_those_of_scikit_learn(views):
    x = views[0][0]
    model = NystroemKernelKMeans(4, gamma=0.05, n_anchors=50, random_state=0).fit(x)
    assert model.anchors_.shape == (50,) and (np.diff(model.anchors_) > 0).all()
    oracle = Nystroem(gamma=0.05, n_components=50, random_state=0).fit(x[model.anchors_])
    expected = oracle.transform(x)
    assert_allclose(model.embedding_ @ model.embedding_.T, expected @ expected.T, atol=1e-7)
    assert_allclose(model.transform(x), model.embedding_, atol=1e-9)
    whole = clone(model).set_params(n_anchors=1000).fit(x)
    assert_allclose(whole.embedding_ @ whole.embedding_.T, rbf_kernel(x, gamma=0.05), atol=1e-7)


@pytest.mark.parametrize("n_components", [1, 4, 30])
def test_fewer_components_are_the_best_approximation_of_their_rank(views, n_components):
    x = views[0][1]
    full = NystroemKernelKMeans(4, n_anchors=50, random_state=0).fit(x)
    model = clone(full).set_params(n_components=n_components).fit(x)
    left, values, _ = np.linalg.svd(full.embedding_, full_matrices=False)
    left, values = left[:, :n_components], values[:n_components]
    assert model.embedding_.shape == (240, n_components)
    assert_allclose(model.embedding_ @ model.embedding_.T, (left * values**2) @ left.T, atol=1e-10)
    assert_allclose(model.transform(x), model.embedding_, atol=1e-10)


def test_nystroem_k_means(dtype):
    X, y = make_circles(500, factor=0.3, noise=0.05, random_state=0)
    X = X.astype(dtype)
    model = NystroemKernelKMeans(2, gamma=5.0, n_anchors=60, random_state=0)
    assert adjusted_rand_score(y, model.fit_predict(X)) == 1
    assert model.embedding_.dtype == model.transform(X).dtype == dtype
    assert_array_equal(model.predict(X), model.labels_)
    again = PowerKMeans(2, random_state=0).fit(model.embedding_)
    assert_allclose(model.inertia_, again.inertia_, rtol=1e-3)
    assert model.get_feature_names_out().shape == (model.embedding_.shape[1],)


def assert_same_kernel(model, K):
    """Compare up to the rounding of its eigenvalues."""
    atol = 10 * len(K) * np.finfo(float).eps * np.linalg.norm(K, 2)
    assert_allclose(model.embedding_ @ model.embedding_.T, K, rtol=0, atol=atol)


def test_nystroem_with_other_kernels(views):
    x = views[0][0]
    linear = NystroemKernelKMeans(4, kernel="linear", n_anchors=30, random_state=0).fit(x * 1e-7)
    assert linear.embedding_.shape == (240, 5)  # the rank, at any scale
    assert_same_kernel(linear, x @ x.T * 1e-14)
    poly = NystroemKernelKMeans(4, kernel="polynomial", gamma=0.5, n_anchors=240, random_state=0)
    poly.set_params(kernel_params={"degree": 2, "coef0": 2.0}).fit(x)
    assert_same_kernel(poly, (0.5 * x @ x.T + 2) ** 2)
    model = NystroemKernelKMeans(4, kernel=lambda a, b, c: c * (a @ b), random_state=0)
    assert_same_kernel(
        model.set_params(kernel_params={"c": 3.0}).fit(x[:60]), 3 * x[:60] @ x[:60].T
    )
