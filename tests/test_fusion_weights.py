"""Sample weights of the classes that fuse kernels: repeated rows, formulas, refusals."""

import itertools
import re
import warnings

import numpy as np
import pytest
from contracts.fusion import FittedKernel, Specification, baselines, famkkm, operators
from contracts.passes import ones
from fusion_cases import (
    GAMMAS,
    by_slsqp,
    leading,
    printed_famkkm,
    projector,
    three_views,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

import rffpk

N = 90
VIEWS, GROUPS = three_views(N)
WEIGHT = np.random.default_rng(1).integers(0, 4, N)
ROWS = np.repeat(np.arange(N), WEIGHT)
COUNTED = np.flatnonzero(WEIGHT)
REPEATED = [x[ROWS] for x in VIEWS]
FIRST = np.searchsorted(ROWS, COUNTED)  # of the copies of each row

# Results that do not depend on draws, except the draws of k-means.
FIXED = [
    rffpk.AverageMKKM(4), rffpk.MKKM(4, tol=1e-10), rffpk.SimpleMKKM(4),
    rffpk.MKKMMR(4, tol=1e-10), rffpk.LKAM(4, tol=1e-10, n_neighbors=30),
    rffpk.LKAM(4, n_neighbors=1.0), rffpk.ONKC(4, max_iter=1000), rffpk.CoregSC(4),
    rffpk.CoregSC(4, scheme="centroid"), rffpk.MVCLFA(4), rffpk.LMKKM(4, max_iter=8, tol=0),
]  # fmt: skip
ALL = [
    *FIXED, rffpk.FAMKKM(4), rffpk.FAMKKM(4, approximation=("rff", 40)),
    rffpk.FAMKKM(4, approximation=("nystroem", 30)), rffpk.SMKC(4, anchors=COUNTED[::2]),
    rffpk.SMKC(4, anchors=20),
]  # fmt: skip
fixed = pytest.mark.parametrize("model", FIXED, ids=str)
every = pytest.mark.parametrize("model", ALL, ids=str)


def fit(model, X, weight=None, **parameters):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "sample_weight has the mean")
        return clone(model).set_params(random_state=0, **parameters).fit(X, sample_weight=weight)


def assert_same_embedding(one, other, tol=1e-6):
    """Check that embeddings are equal up to the signs of the columns."""
    one, other = one.transform(VIEWS), other.transform(VIEWS)
    signs = np.sign(np.einsum("ij,ij->j", one, other))
    assert_allclose(one * signs, other, atol=tol * np.abs(other).max())


def weighted(K, p):
    """Return P^(1/2) K P^(1/2)."""
    return np.sqrt(np.outer(p, p)) * K


def prepared(x, gamma, p):
    """Compute a kernel, centered at the weighted mean and normalised, by products of matrices."""
    K, n = rbf_kernel(x, gamma=gamma), len(x)
    center = np.eye(n) - np.outer(np.ones(n), p / p.sum())
    K = center @ K @ center.T
    norms = np.sqrt(K.diagonal())
    return K / np.outer(norms, norms)


@pytest.fixture(scope="module")
def real():
    """Draw weights that are no integers, and compute the weighted kernels of GAMMAS."""
    p = np.random.default_rng(2).gamma(2.0, size=N)
    return p, [weighted(prepared(x, gamma, p), p) for x, (_, gamma) in zip(VIEWS, GAMMAS)]


# ---- what weights mean --------------------------------------------------------------------------


@pytest.mark.promise(like="test_weights_are_repetitions_at_a_fixed_start")
@pytest.mark.parametrize("precomputed", [False, True])
@fixed
def test_a_weight_is_a_repeated_row(model, precomputed):
    """Kernels of the views, and precomputed ones."""
    X, repeated, parameters = VIEWS, REPEATED, {}
    if precomputed:
        X = [rbf_kernel(x, gamma=0.1) for x in VIEWS]
        repeated = [K[np.ix_(ROWS, ROWS)] for K in X]
        parameters["kernels"] = "precomputed"
    once = fit(model, X, WEIGHT, **parameters)
    copied = fit(model, repeated, **parameters)
    programme = isinstance(model, rffpk.LMKKM)  # up to its tolerance
    assert_allclose(once.objective_, copied.objective_, rtol=1e-7 if programme else 1e-9)
    assert_allclose(once.kernel_weights_, copied.kernel_weights_, atol=1e-6)
    assert once.n_iter_ == copied.n_iter_
    assert_allclose(*(getattr(m, "eigenvalues_", 0) for m in (once, copied)), rtol=1e-6)
    if not precomputed:
        assert_same_embedding(once, copied)
        assert_array_equal(once.predict(X), once.labels_)  # of rows of weight zero, too
    assert_allclose(projector(once.embedding_[ROWS]), projector(copied.embedding_), atol=1e-6)
    assert adjusted_rand_score(once.labels_[ROWS], copied.labels_) == 1
    assert_allclose(once.inertia_, copied.inertia_, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("anchors", [COUNTED[::2], COUNTED[:12]], ids=["stored", "tiles"])
def test_weights_of_smkc_are_repeated_rows_for_the_same_anchors(anchors):
    """With B itself, and with the cross-products of more rows than its columns."""
    once = fit(rffpk.SMKC(4, anchors=anchors), VIEWS, WEIGHT, max_iter=20, tol=0)
    copied = fit(
        rffpk.SMKC(4, anchors=np.searchsorted(ROWS, anchors)), REPEATED, max_iter=20, tol=0
    )
    assert_allclose(
        [record["objective"] for record in once.history_],
        [record["objective"] for record in copied.history_], rtol=1e-9,
    )  # fmt: skip
    assert_allclose(once.singular_values_, copied.singular_values_, rtol=1e-7)
    assert_same_embedding(once, copied)
    assert adjusted_rand_score(once.labels_[ROWS], copied.labels_) == 1


@pytest.mark.parametrize("parameters", [{}, {"approximation": ("rff", 40)}], ids=str)
def test_weights_of_famkkm_are_repeated_rows_from_the_same_start(monkeypatch, parameters):
    normal = np.random.default_rng(3).standard_normal((N, 4))

    def started(rows, p):
        """Start from the nearest orthonormal columns, in the coordinates P^(1/2)."""
        U, _, V = np.linalg.svd(np.sqrt(p)[:, None] * normal[rows], full_matrices=False)
        monkeypatch.setattr(famkkm, "orthonormal", lambda n, k, random: U @ V)

    started(COUNTED, WEIGHT[COUNTED])
    once = fit(rffpk.FAMKKM(4, tol=1e-9), VIEWS, WEIGHT, **parameters)
    started(ROWS, np.ones(len(ROWS)))
    more = fit(rffpk.FAMKKM(4, tol=1e-9), REPEATED, **parameters)
    assert once.n_iter_ == more.n_iter_
    assert_allclose(once.objective_, more.objective_, rtol=1e-9)
    assert_allclose(once.kernel_weights_, more.kernel_weights_, atol=1e-6)
    assert_allclose(once.transform(VIEWS), more.transform(VIEWS), atol=1e-6)
    assert adjusted_rand_score(once.labels_[ROWS], more.labels_) == 1


def test_weights_of_nystroem_k_means_are_repeated_rows():
    """All rows are anchors, so that the features have the inner products of the kernel."""
    model = rffpk.NystroemKernelKMeans(4, n_anchors=1000, n_components=3)
    once, more = fit(model, VIEWS[1], WEIGHT), fit(model, REPEATED[1])
    found = [m.embedding_ @ m.embedding_.T for m in (once, more)]
    assert_allclose(found[0][np.ix_(ROWS, ROWS)], found[1], atol=1e-6)
    assert_allclose(once.inertia_, more.inertia_, rtol=1e-6)
    assert adjusted_rand_score(once.labels_[ROWS], more.labels_) == 1
    assert {*fit(model, VIEWS[1], WEIGHT, n_anchors=60).anchors_} <= {*COUNTED}


@pytest.mark.parametrize(
    "model", [*FIXED, rffpk.FAMKKM(4, approximation=("nystroem", 30))], ids=str
)
def test_rows_of_weight_zero_of_precomputed_kernels(model):
    Ks = [rbf_kernel(x, gamma=0.05) for x in VIEWS]
    part = np.ix_(COUNTED, COUNTED)
    found = fit(model, Ks, WEIGHT, kernels="precomputed")
    without = fit(model, [K[part] for K in Ks], WEIGHT[COUNTED], kernels="precomputed")
    assert_array_equal(found.transform(Ks), found.embedding_)
    assert_allclose(without.transform([K[:, COUNTED] for K in Ks]), found.embedding_)
    assert_array_equal(found.predict(Ks), found.labels_)


@every
def test_certificates_of_any_weights(model, real):
    p, _ = real
    fitted = fit(model, VIEWS, p)
    U, k = fitted.embedding_, fitted.embedding_.shape[1]
    if k == 4:  # else several matrices side by side
        assert_allclose(U.T @ (p[:, None] * U), np.eye(4), atol=1e-8)
    assert_allclose(fitted.transform(VIEWS), U, atol=1e-12)
    assert_array_equal(fitted.predict(VIEWS), fitted.labels_)
    rises = isinstance(model, (rffpk.CoregSC, rffpk.MVCLFA, rffpk.FAMKKM))
    values = [record["objective"] * (-1 if rises else 1) for record in fitted.history_]
    if isinstance(model, rffpk.FAMKKM):
        values = values[1:]  # gamma begins inside the sphere
    rounding = 1e-7 if isinstance(model, rffpk.LMKKM) else 1e-11
    for before, after in itertools.pairwise(values):
        assert after <= before + rounding * abs(before)
    rows = U / np.linalg.norm(U, axis=1, keepdims=True) if fitted.normalize_rows else U
    d = ((rows[:, None] - fitted.cluster_centers_) ** 2).sum(axis=2)
    assert_allclose(fitted.score(VIEWS, sample_weight=p), -(p @ d.min(axis=1)), rtol=1e-6)
    assert_allclose(fitted.inertia_, p @ d[np.arange(N), fitted.labels_], rtol=1e-6)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "model",
    [m for m in FIXED if not isinstance(m, (rffpk.MKKMMR, rffpk.ONKC, rffpk.LKAM))]
    + [rffpk.LKAM(4, diversity=0)],
    ids=str,
)
def test_a_common_factor_of_the_weights_scales_the_objective(model, real):
    """A power of four, whose root changes no digit. Where the objective weighs terms of several
    degrees in the kernels it is no matter of scale."""
    p, _ = real
    found, scaled = fit(model, VIEWS, p), fit(model, VIEWS, 4.0**40 * p)
    assert_allclose(scaled.kernel_weights_, found.kernel_weights_, rtol=1e-6)
    assert_allclose(2.0**40 * scaled.embedding_, found.embedding_, atol=1e-6)
    free = isinstance(model, (rffpk.SimpleMKKM, rffpk.CoregSC, rffpk.MVCLFA))
    assert_allclose(scaled.objective_, found.objective_ * (1 if free else 4.0**40), rtol=1e-7)
    assert adjusted_rand_score(scaled.labels_, found.labels_) == 1


@pytest.mark.parametrize(
    "model",
    [rffpk.MKKMMR(4), rffpk.LKAM(4), rffpk.LKAM(4, n_neighbors=9, diversity=0), rffpk.ONKC(4),
     rffpk.FAMKKM(4)],
    ids=str,
)  # fmt: skip
def test_weights_whose_scale_matters_and_looks_accidental_are_named(model, real):
    """Following the warning ends it. Counts are none, and a factor does not always matter."""
    p, _ = real
    small = p / p.sum()
    message = rf"^sample_weight has the mean .* terms that {type(model).__name__} minimises"
    with pytest.warns(UserWarning, match=message) as caught:
        model.set_params(random_state=0, max_iter=1).fit(VIEWS, sample_weight=small)
    text = next(str(w.message) for w in caught if "sample_weight has" in str(w.message))
    advised = eval(re.search(r"pass (sample_weight / \S+),", text)[1], {"sample_weight": small})
    quiet = [(model, weight) for weight in (advised, p, 100 * WEIGHT)]
    indifferent = [rffpk.MKKMMR(4, diversity=0), rffpk.LKAM(4, diversity=0), rffpk.MKKM(4)]
    for each, weight in [*quiet, *((other, small) for other in indifferent)]:
        with warnings.catch_warnings(record=True, action="always") as caught:
            each.set_params(random_state=0, max_iter=1).fit(VIEWS, sample_weight=weight)
        assert not [w for w in caught if "sample_weight has" in str(w.message)]


# ---- dense formulas -----------------------------------------------------------------------------


def test_a_kernel_is_centered_at_the_weighted_mean(real):
    p, x = real[0], VIEWS[0]
    kernel = FittedKernel(
        x, Specification("rbf", {"gamma": 0.05}), weight=p, center=True, normalize=True
    )
    expected = prepared(x, 0.05, p)
    assert_allclose(kernel.matrix(), expected, atol=1e-12)
    assert_allclose(kernel.cross(x[:9])[0], expected[:9], atol=1e-12)
    plain = FittedKernel(x, Specification("linear"), weight=p, center=True)
    moved = x - p @ x / p.sum()
    assert_allclose(plain.matrix(), moved @ moved.T, atol=1e-10)


def test_no_partition_costs_less_than_the_relaxed_objective(real):
    """The weighted sum of squared distances to weighted means, in the space of the kernel."""
    p, Ks = real
    model = fit(rffpk.AverageMKKM(4, kernels=GAMMAS), VIEWS, p)
    K = sum(prepared(x, gamma, p) for x, (_, gamma) in zip(VIEWS, GAMMAS)) / 9
    parted = rffpk.KernelKMeans(4, kernel="precomputed", random_state=0).fit(K, sample_weight=p)
    cost = 0.0
    for j in range(4):
        q = np.where(parted.labels_ == j, p, 0)
        cost += q @ K.diagonal() - q @ K @ q / q.sum()
    assert_allclose(parted.inertia_, cost)
    assert 0.5 * cost < model.objective_ < cost
    assert_allclose(model.objective_, np.trace(sum(Ks) / 9) - leading(sum(Ks) / 9, 4)[0].sum())


@pytest.mark.parametrize("diversity", [1e-3, 0.1])
def test_the_kernel_weights_of_mkkm_mr_are_those_of_a_general_solver(real, diversity):
    p, Ks = real
    model = fit(rffpk.MKKMMR(4, kernels=GAMMAS, diversity=diversity, tol=1e-13), VIEWS, p)
    H = leading(np.einsum("l,lij->ij", model.kernel_weights_**2, Ks), 4)[1]
    costs = np.array([np.trace(K) - np.sum(H * (K @ H)) for K in Ks])
    M = np.einsum("pij,qij->pq", Ks, Ks)
    alpha = by_slsqp(2 * np.diag(costs) + diversity * M)
    assert_allclose(model.kernel_weights_, alpha, atol=1e-4)
    alpha = model.kernel_weights_
    assert_allclose(model.objective_, alpha**2 @ costs + diversity / 2 * alpha @ M @ alpha)


def test_famkkm_is_the_printed_algorithm_on_weighted_kernels(real):
    p, Ks = real
    model = fit(rffpk.FAMKKM(4, kernels=GAMMAS, lambda1=0.5, lambda2=2.0, tol=1e-9), VIEWS, p)
    kernels = [
        FittedKernel(x, Specification("rbf", {"gamma": gamma}), weight=p, center=True,
                     normalize=True)
        for x, (_, gamma) in zip(VIEWS, GAMMAS)
    ]  # fmt: skip
    dense = [operators.DenseOperator(kernel, 1, p) for kernel in kernels]
    # the same draws as in the fit, which begins with them
    state = famkkm.Alternation(dense, 4, 0.5, 2.0, np.random.RandomState(0), 1)
    F, gamma, values = printed_famkkm(Ks, state.H, 0.5, 2.0, model.n_iter_)
    assert_allclose(model.objective_, values[-1], rtol=1e-9)
    assert_allclose(model.kernel_weights_, gamma, atol=1e-6)
    assert_allclose(np.sqrt(p)[:, None] * model.embedding_, F, atol=1e-6)


# ---- LKAM ---------------------------------------------------------------------------------------


def test_neighbourhoods_of_weighted_rows_are_those_of_repeated_ones():
    mean = sum(rbf_kernel(x, gamma=0.05) for x in VIEWS) / 3
    p, part = WEIGHT[COUNTED].astype(float), mean[np.ix_(COUNTED, COUNTED)]
    full = mean[np.ix_(ROWS, ROWS)]
    for mass in (1, 7, 40, len(ROWS)):
        found = part >= baselines.least_values_of_mass(part, p, mass)
        repeated = full >= baselines.least_values(full, mass)
        assert_array_equal(found, repeated[np.ix_(FIRST, FIRST)])
        W = baselines.shares(repeated, repeated, ones(len(repeated)))
        assert_allclose(baselines.shares(found, found, p), W[np.ix_(FIRST, FIRST)], atol=1e-12)


def test_a_fraction_is_a_share_of_the_weights():
    """It is not rounded, so that the scale of the weights does not matter."""
    model = rffpk.LKAM(4, n_neighbors=0.3, diversity=0)
    found = fit(model, VIEWS, WEIGHT)
    for factor in (0.001, 1000.0):
        scaled = fit(model, VIEWS, factor * WEIGHT)
        assert_allclose(scaled.kernel_weights_, found.kernel_weights_, rtol=1e-9)
        assert_allclose(scaled.objective_, factor * found.objective_, rtol=1e-9)


# ---- landmarks and anchors ----------------------------------------------------------------------


@pytest.mark.parametrize("anchors", ["uniform", "k-means++"])
def test_anchors_have_weight(anchors):
    for seed in range(5):
        model = rffpk.SMKC(4, anchors=(anchors, 40), random_state=seed)
        chosen = model.fit(VIEWS, sample_weight=WEIGHT).anchors_
        assert len(chosen) == 40 and (WEIGHT[chosen] > 0).all()
    model = rffpk.SMKC(4, anchors=anchors, random_state=0).fit(VIEWS, sample_weight=WEIGHT)
    assert_array_equal(model.anchors_, COUNTED)


# ---- types --------------------------------------------------------------------------------------


@pytest.mark.few(3)
@every
def test_rows_of_single_precision_and_weights_of_any_type(model):
    narrow = [x.astype(np.float32) for x in VIEWS]
    fitted = fit(model, narrow, WEIGHT)
    assert fitted.embedding_.dtype == np.float64 and fitted.transform(narrow).dtype == np.float32
    assert_array_equal(fitted.transform(narrow), fitted.embedding_.astype(np.float32))
    assert adjusted_rand_score(fitted.labels_, fit(model, VIEWS, WEIGHT).labels_) == 1
    for given in (WEIGHT.tolist(), WEIGHT.astype(np.float32), WEIGHT.astype(np.uint8)):
        assert_array_equal(fit(model, narrow, given).labels_, fitted.labels_)


# ---- refusals -----------------------------------------------------------------------------------


def test_kernels_that_weights_make_overflow_are_named():
    K = 1e210 * np.eye(N)
    for model in (rffpk.MKKM(4), rffpk.FAMKKM(4), rffpk.SimpleMKKM(4), rffpk.LKAM(4)):
        with pytest.raises(ValueError, match="sample_weight is so large"):
            fit(model, [K, K], np.full(N, 1e99), kernels="precomputed")
    with pytest.raises(ValueError, match="scale the views or sample_weight"):
        fit(rffpk.MKKMMR(4), [K, K], np.full(N, 1e70), kernels="precomputed")


def test_a_view_that_is_constant_on_the_rows_of_positive_weight_is_named():
    constant = np.where(WEIGHT > 0, 1.0, np.arange(N))[:, None]
    with pytest.raises(ValueError, match=r"X\[1\] has equal rows"):
        fit(rffpk.MKKM(4), [VIEWS[0], constant], WEIGHT)
    assert fit(rffpk.MKKM(4), [VIEWS[0], constant]).n_iter_ > 0


UNEQUAL = {
    "one heavy": np.where(np.arange(60) == 4, 1e29, 1.0),
    "two heavy": np.where(np.arange(60) < 2, 1e20, 1.0),
    "one not tiny": np.where(np.arange(60) == 4, 1e-71, 1e-100),
    "geometric": 10.0 ** np.linspace(0, 29, 60),
}


@pytest.mark.parametrize("standardize", [True, False])
@every
def test_very_unequal_weights_give_finite_results(model, standardize):
    """What light rows have in common with heavy ones may be rounding."""
    parameters = {"standardize": standardize}
    if isinstance(model, rffpk.SMKC):
        parameters["anchors"] = np.arange(20)
    X, y = make_blobs(60, 5, centers=3, random_state=3)
    noise = np.random.default_rng(0).standard_normal((60, 8))
    views = [X, np.eye(3)[y] @ noise[:3] * 3 + noise]
    for weight in UNEQUAL.values():
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "kernel .* is indefinite|sigma_1", UserWarning)
            found = fit(model, views, weight, n_clusters=3, **parameters)
        assert np.isfinite(found.embedding_).all() and np.isfinite(found.objective_)
        assert found.inertia_ >= 0 and found.objective_ >= 0
        assert_array_equal(found.predict(views), found.labels_)


def test_a_rank_that_weights_leave_is_named():
    weight = np.where(np.arange(N) < 3, 1e25, 1.0)
    message = (
        "kernels of the weighted rows have rank [23], less than n_clusters=4, .* weights nearer"
    )
    with pytest.warns(ConvergenceWarning, match=message):
        rffpk.AverageMKKM(4, random_state=0).fit(VIEWS, sample_weight=weight)


@pytest.mark.parametrize("size", [1e-270, 1e-99, 1e99])
@every
def test_weights_of_extreme_size_and_ratio(model, size):
    """Rows of 1e-29 times the weight of other rows.

    A common factor changes the clusters of FAMKKM, and of LKAM with a number of neighbours.
    """
    X, y = make_blobs(N, 5, centers=4, cluster_std=0.5, random_state=0)
    weight = np.where(np.arange(N) % 7, 1.0, 1e-29)
    found = fit(model, X, weight)
    assert adjusted_rand_score(y, found.labels_) == 1
    if isinstance(model, rffpk.FAMKKM) or getattr(model, "n_neighbors", 1.0) == 30:
        return
    extreme = fit(model, X, size * weight)
    assert np.isfinite(extreme.objective_)
    assert adjusted_rand_score(y, extreme.labels_) == 1
