"""Annealing: monotone objectives, stationary results, the papers' schedules, repairs."""

import itertools
import warnings

import numpy as np
import oracles
import printed
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from passes import make_rows, one_pass, shifted_features
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.pairwise import rbf_kernel

import rffpk
from rffpk import Annealing, FuzzyCMeans, PowerKMeans, RFFKernelPowerKMeans


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(900, n_features=6, centers=7, cluster_std=1.5, random_state=0)


def passes(model):
    return [record for record in model.history_ if "s" in record]


@pytest.mark.parametrize("model", [
    PowerKMeans(7, random_state=0),
    PowerKMeans(7, annealing=Annealing(start=-0.5, factor=1.04, passes=5), random_state=1),
    *(PowerKMeans(7, annealing=given, random_state=2)
      for given in (Annealing(end=-9.0), Annealing(start=-1.0))),
    *(FuzzyCMeans(7, m=m, random_state=0) for m in (1.3, 3.0)),
    RFFKernelPowerKMeans(7, random_state=0),
    RFFKernelPowerKMeans(7, kernel="laplacian", gamma="median", random_state=3),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("weighted", [False, True])
def test_the_objective_never_rises(backend, blobs, model, weighted):
    weight = np.random.default_rng(0).uniform(0, 2, 900) if weighted else None
    records = passes(model.fit(blobs[0], sample_weight=weight))
    disturbed = {r["start"] for r in model.history_ if r.get("kind") == "critical"}
    compared = 0
    # starts on random features run in single precision
    rounding = 1e-6 if isinstance(model, RFFKernelPowerKMeans) else 1e-10
    for before, after in itertools.pairwise(records):
        moved = before["start"] in disturbed and before["s"] != after["s"]
        softer = after["s"] > before["s"]  # from k-means to a soft end
        swapped = "swap" in (before["stage"], after["stage"])
        apart = before["start"] != after["start"] or before["repairs"]
        if not (apart or moved or softer or swapped):
            compared += 1
            assert after["objective"] <= before["objective"] * (1 + rounding), (before, after)
    assert compared >= 4


@pytest.mark.parametrize("s", [-0.5, -1.0, -4.0, -np.inf])
def test_the_result_is_stationary(backend, blobs, s):
    """After convergence one more iteration of the paper's formulas changes nothing."""
    X = blobs[0]
    annealing = Annealing(start=max(s, -0.5), end=s if np.isfinite(s) else "hard")
    model = PowerKMeans(7, annealing=annealing, tol=1e-11, max_iter=5000, random_state=0).fit(X)
    V = model.cluster_centers_
    if np.isfinite(s):
        assert model.s_ == s
        expected, objective = oracles.kpkm_step(X, V, s)
        assert_allclose(model.objective_, objective, rtol=1e-10)
    else:
        expected, labels = oracles.lloyd_step(X, V)
        assert_array_equal(model.labels_, labels)
    assert_allclose(V, expected, atol=1e-8)


@pytest.mark.parametrize("every, factor", [(3, 1.04), (5, 1.3), (2, 1.2)])
def test_the_papers_protocol_is_its_algorithm(backend, blobs, every, factor):
    X = blobs[0]
    omega = np.random.default_rng(0).standard_normal((6, 30)) * 0.2
    start = oracles.rff(X[:7], omega) + 1e-3 * np.random.default_rng(1).standard_normal((7, 60))
    expected, labels, objective = printed.rff_kpkm(
        X, omega, start, -3.0, anneal_factor=factor, anneal_every=every, tol=1e-7
    )
    annealing = Annealing(start=-3.0, factor=factor, passes=every, until="objective")
    model = PowerKMeans(7, annealing=annealing, tol=1e-7, init=start).fit(oracles.rff(X, omega))
    assert len(objective) > 10
    assert_allclose([r["objective"] for r in passes(model)], objective, rtol=1e-9)
    assert_allclose(model.cluster_centers_, expected, atol=1e-9)
    assert_array_equal(model.labels_, labels)


def test_the_papers_protocol_as_parameters(digits):
    annealing = Annealing(start=-5.0, factor=1.04, passes=3, until="objective")
    model = RFFKernelPowerKMeans(10, annealing=annealing, init="k-means", sample=None,
                                 n_frequencies="paper", random_state=0).fit(digits[0])  # fmt: skip
    stages = [record["stage"] for record in passes(model)]
    annealed = [r["s"] for r in passes(model) if r["stage"] == "anneal"]
    assert stages == sorted(stages, key=["k-means", "anneal"].index)  # no stage follows
    assert_allclose(annealed, [-5.0 * 1.04 ** (t // 3) for t in range(len(annealed))])
    assert model.feature_map_.n_frequencies_ == 108 and model.feature_map_.sampling == "iid"
    assert model.s_ == annealed[-1]


@pytest.mark.parametrize("apart", [1e-9, 0.0])
def test_a_constant_objective_does_not_end_annealing(apart):
    """If all centroids start at one point, none moves while s > s_c, and the run continues. Equal
    ones would never separate: they are disturbed a little."""
    X, _ = make_blobs(300, n_features=3, centers=4, random_state=1)
    start = np.tile(X.mean(axis=0), (4, 1)) + apart * np.eye(4, 3)
    model = PowerKMeans(4, annealing=Annealing(start=-0.3), init=start, random_state=0).fit(X)
    first, second = passes(model)[:2]
    assert first["distinct"] == 1
    assert_allclose(first["objective"], second["objective"], rtol=1e-6)
    assert model.s_ < 3 * -0.3
    assert [r for r in passes(model) if r["stage"] == "anneal"][-1]["distinct"] == 4


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("dense", [300, 3], ids=["decomposition", "Lanczos"])
@pytest.mark.parametrize("shape", [(400, 6), (40, 60), (70, 50)])
def test_the_critical_exponent_is_where_a_small_perturbation_stops_growing(shape, dense, tuning):
    """Growth of a perturbation of the merged state in a pass: 2 (1 - s) lambda_max."""
    tuning(linalg__full_below=dense)
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape) * rng.uniform(0.5, 1, shape[1])
    p = rng.uniform(0.5, 2, len(X))
    critical = oracles.first_exponent(PowerKMeans(3, random_state=0), X, sample_weight=p)
    assert_allclose(critical, oracles.critical_exponent(X, p), rtol=1e-10)
    rows, largest = make_rows([X], [None], p), 1 / (2 * (1 - critical))
    z = shifted_features(rows)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    _, vectors = np.linalg.eigh((z.T * p) @ z)
    theta = 1e-7 * np.outer([1, -2, 1], vectors[:, -1])
    for s in (critical + 0.1, critical - 0.5):
        moved = rows.centroids(one_pass(rows, theta, s)[0], theta)
        growth = np.linalg.norm(moved - moved.mean(axis=0)) / np.linalg.norm(theta)
        assert_allclose(growth, 2 * (1 - s) * largest, rtol=1e-4)
        assert (growth > 1) == (s < critical)


@pytest.mark.few(1)
def test_inertia_is_the_kernel_k_means_objective_of_the_labels(backend, blobs):
    X, objective = blobs[0], oracles.kernel_kmeans_objective
    model = PowerKMeans(7, random_state=0).fit(X)
    assert_allclose(model.inertia_, objective(X @ X.T, model.labels_), rtol=1e-9)
    X, hard = X[:300], Annealing(start=-6e4)  # a few passes of k-means
    model = RFFKernelPowerKMeans(7, gamma=0.01, n_frequencies=4000, annealing=hard, random_state=0)
    model.fit(X)
    phi = model.feature_map_.transform(X)
    assert_allclose(model.inertia_, objective(phi @ phi.T, model.labels_), rtol=1e-9)
    exact = objective(rbf_kernel(X, gamma=0.01), model.labels_)
    assert_allclose(model.inertia_, exact, rtol=0.03)


def test_annealing_leaves_a_local_minimum_of_k_means():
    X, y = make_blobs(600, n_features=2, centers=[[0, 0], [10, 0], [0, 10]], random_state=0)
    start = np.array([[10.0, 0], [10.1, 0], [5.0, 5.0]])
    stuck, annealed = (
        PowerKMeans(3, annealing=Annealing(start=s), init=start).fit(X).inertia_ for s in (-6e4, -1)
    )
    assert annealed < 0.5 * stuck


@pytest.fixture(scope="module")
def pairs():
    """Draw 15 rows of a wide cluster far from two narrow clusters.

    With probability 1/2, three random rows leave a centroid between the narrow clusters.
    """
    random = np.random.default_rng(0)
    wide = [-1000, 0] + 0.15 * random.standard_normal((15, 2))
    narrow = np.repeat([[0.0, 0], [1, 0]], [8, 7], axis=0)
    return np.vstack([wide, narrow + 1e-3 * random.standard_normal((15, 2))])


@pytest.mark.parametrize("seed, end", [(0, "hard"), (1, "hard"), (2, "hard"), (0, -50.0)])
def test_hopeless_starts_are_dropped(pairs, seed, end):
    """All outcomes occur, except once in 10^10 draws of 40 starts. Costs at a soft end are not the
    costs of nearest centroids: no start is dropped there."""
    given = Annealing(start=-5.0, swaps=0, end=end)
    model = PowerKMeans(3, annealing=given, init="random", n_init=40, random_state=seed).fit(pairs)
    starts = [record for record in model.history_ if record["stage"] == "start"]
    outcomes = {start["outcome"] for start in starts}
    assert outcomes == {"kept", "lost", "dropped"} - ({"dropped"} if end == -50 else set())
    for start in starts:
        assert np.isinf(start["objective"]) == (start["outcome"] == "dropped")
        stages = {r["stage"] for r in passes(model) if r["start"] == start["start"]}
        assert end == -50 or ("hard" in stages) == (start["outcome"] != "dropped")


def test_close_pairs_far_apart_are_distinct():
    """Four clusters in two pairs, 10^3 times closer within a pair: none coincide."""
    centers = np.array([[-1000, -0.5], [-1000, 0.5], [1000, -0.5], [1000, 0.5]])
    X, _ = make_blobs(400, centers=centers, cluster_std=0.05, random_state=0)
    with warnings.catch_warnings(action="error", category=ConvergenceWarning):
        model = PowerKMeans(4, init=centers, annealing=Annealing(start=-60000.0)).fit(X)
    assert passes(model)[-1]["distinct"] == 4


@pytest.mark.parametrize("width", [1e-1, 1e-3, 1e-6])
def test_inertia_of_tight_clusters_far_apart(backend, dtype, width):
    """Expanded squares lose all digits here; the inertia must not."""
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((3, 4)) * 1000
    X = (centers.repeat(100, axis=0) + width * rng.standard_normal((300, 4))).astype(dtype)
    model = PowerKMeans(3, init=centers, random_state=0).fit(X)
    exact = 100 * X.reshape(3, 100, 4).astype(float).var(axis=1).sum()
    # of the digits of the shifted rows and of the centroids
    rounding = 300 * 4 * (2 * np.finfo(dtype).eps * 3000) ** 2
    assert_allclose(model.inertia_, exact, rtol=2e-2, atol=rounding)
    assert_allclose(model.score(X), -exact, rtol=2e-2, atol=rounding)


def test_starts_that_end_at_other_exponents_are_compared_at_one():
    """The lower the exponent, the lower sum M_s: starts are not compared at different exponents."""
    given = Annealing(start=-6.0, factor=1.5, passes=4, until="objective")
    model = PowerKMeans(6, annealing=given, tol=2e-3, init="random")
    for seed in range(12):
        X, _ = make_blobs(200, n_features=3, centers=6, cluster_std=2.0, random_state=seed)
        random = np.random.RandomState(seed)
        ends = [model.set_params(n_init=1, random_state=random).fit(X).score(X) for _ in range(6)]
        best = model.set_params(n_init=6, random_state=seed).fit(X).score(X)
        assert best >= max(ends) - 1e-6 * abs(best)


def test_best_of_several_starts(pairs):
    """All results are equal once in 10^8 draws of 30 starts."""
    model = PowerKMeans(3, annealing=Annealing(start=-6e4), init="random")
    many = clone(model).set_params(n_init=30, random_state=0).fit(pairs)
    random = np.random.RandomState(0)  # draws the same starts one by one
    ends = [model.set_params(random_state=random).fit(pairs).inertia_ for _ in range(30)]
    assert max(ends) > 2 * min(ends)
    assert_allclose(many.inertia_, min(ends), rtol=1e-12)
    assert [r["stage"] for r in many.history_].count("seeding") == 30


@pytest.mark.parametrize("k, d", [(25, 8), (5, 256), (50, 64)])
def test_all_blobs_are_found_in_many_dimensions(k, d):
    X, y = make_blobs(40 * k, d, centers=k, cluster_std=1.0, center_box=(-5, 5), random_state=0)
    model = PowerKMeans(k, random_state=0).fit(X)
    assert normalized_mutual_info_score(y, model.labels_) >= 0.97


def test_fuzzy_c_means_says_when_it_collapses():
    """At m = 2 all centroids of 50 blobs in 64 dimensions merge; the warning names m_c."""
    X, _ = make_blobs(1000, 64, centers=50, cluster_std=1.0, center_box=(-5, 5), random_state=0)
    start = X.mean(axis=0) + 1e-3 * np.random.default_rng(0).standard_normal((50, 64))
    critical = oracles.critical_exponent(X)
    fuzzifier = 1 - 1 / critical
    assert 1 < fuzzifier < 2
    message = rf"1 of n_clusters=50 clusters .*m_c = 1 - 1/s_c = {fuzzifier:.4g}"
    with pytest.warns(ConvergenceWarning, match=message):
        FuzzyCMeans(50, m=2.0, init=start).fit(X)
    with warnings.catch_warnings(action="error", category=ConvergenceWarning):
        harder = FuzzyCMeans(50, m=1 + 0.5 * (fuzzifier - 1), random_state=0).fit(X)
    assert [r["distinct"] for r in harder.history_ if "s" in r][-1] == 50


@pytest.mark.parametrize("name", ["PowerKMeans", "RFFMultiKernelPowerKMeans", "KernelPowerKMeans"])
@pytest.mark.parametrize("by_call", [False, True])
def test_centroids_that_are_given_are_kept(name, by_call):
    """At high exponents the centroids of small clusters would move to larger ones."""
    random = np.random.default_rng(0)
    sizes, centers = [400, *[8] * 5], 6 * random.standard_normal((6, 4))
    y = np.repeat(range(6), sizes)
    X = centers[y] + random.standard_normal((440, 4))
    init = X[np.cumsum([0, *sizes[:-1]])]
    given = (lambda rows, k, random_state: init) if by_call else init
    more = {"kernels": "linear", "typicality": None} if "Multi" in name else {}
    if name == "KernelPowerKMeans":
        given, more = y, {"kernel": "linear"}
    model = getattr(rffpk, name)(6, init=given, **more).fit(X)
    assert_array_equal(model.labels_, y)
    assert {r["stage"] for r in passes(model)} == {"hard"} and -1000 < model.s_ < -1
    soft = clone(model).set_params(annealing=Annealing(end=-9.0)).fit(X)
    assert {r["s"] for r in passes(soft)} == {-9.0}
    annealed = clone(model).set_params(annealing=Annealing(start=-2.0)).fit(X)
    assert "anneal" in {r["stage"] for r in annealed.history_}


@pytest.mark.parametrize("name, options", [
    ("PowerKMeans", {"metric": "cosine"}), ("PowerKMeans", {"whitening": 1.0}),
    ("FuzzyCMeans", {"whitening": 1.0}), ("DiffusionPowerKMeans", {}),
    ("DiffusionPowerKMeans", {"whitening": 0.5}),
    ("DiffusionPowerKMeans", {"metric": "cosine", "n_neighbors": 5}), ("RFFKernelPowerKMeans", {}),
    ("RFFMultiKernelPowerKMeans", {}),
    ("RFFMultiKernelPowerKMeans", {"views": [[0], [1]], "kernels": "linear"}),
])  # fmt: skip
def test_an_array_of_initial_centroids_has_rows(name, options):
    """The first rows are of clusters in an order; centroids read as features lose the order."""
    y = np.repeat([0, 1, 2], 20)
    X = np.c_[np.cos(2 * y), np.sin(2 * y)] * [40, 90]
    X += np.random.default_rng(0).standard_normal(X.shape)
    for order in ([0, 1, 2], [2, 0, 1]):
        model = getattr(rffpk, name)(3, init=X[::20][order], random_state=0, **options)
        assert_array_equal(np.array(order)[model.fit(X).labels_], y)
    with pytest.raises(ValueError, match=r"^init.shape=\(3, 1\): .*n_features"):
        model.set_params(init=X[:3, :1]).fit(X)


def test_initial_centroids_of_views_and_graphs_have_the_form_of_x():
    y = np.repeat([0, 1, 2], 10)
    X = np.eye(3)[y] + 0.1 * np.random.default_rng(0).standard_normal((30, 3))
    views, order = [X, X[:, :2]], [21, 1, 11]
    model = rffpk.RFFMultiKernelPowerKMeans(3, init=[x[order] for x in views], random_state=0)
    assert_array_equal(y[order][model.fit(views).labels_], y)
    with pytest.raises(ValueError, match="^init: X: is one array, but was a list"):
        model.set_params(init=X[:3]).fit(views)
    with pytest.raises(ValueError, match="^init: has 2 rows. Pass 3, one for each cluster"):
        model.set_params(init=[x[:2] for x in views]).fit(views)
    affinities = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) * 4)
    graph = rffpk.DiffusionPowerKMeans(3, metric="precomputed", init=affinities[order])
    assert_array_equal(y[order][graph.fit(affinities).labels_], y)
