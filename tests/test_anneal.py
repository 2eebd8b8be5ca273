"""Annealing: monotone objectives, stationary results, the papers' schedules, repairs."""

import itertools
import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import oracles
import printed
import pytest
from internals import (
    History,
    Schedule,
    StageEnd,
    Start,
    Step,
    count_distinct,
    critical_exponent,
    empty_clusters,
    make_rows,
    one_pass,
    search,
    shifted_features,
    stages_of,
    total_variance,
)
from numpy.testing import assert_allclose, assert_array_equal
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


MODELS = [
    PowerKMeans(7, random_state=0),
    PowerKMeans(7, annealing=Annealing(start=-0.5, factor=1.04, passes=5), random_state=1),
    PowerKMeans(7, annealing=Annealing(end=-9.0), random_state=2),
    PowerKMeans(7, annealing=Annealing(start=-1.0), random_state=2),
    FuzzyCMeans(7, m=1.3, random_state=0),
    FuzzyCMeans(7, m=3.0, random_state=0),
    RFFKernelPowerKMeans(7, random_state=0),
    RFFKernelPowerKMeans(7, kernel="laplacian", gamma="median", random_state=3),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_objective_never_rises(backend, blobs, model, weighted):
    weight = np.random.default_rng(0).uniform(0, 2, 900) if weighted else None
    records = passes(model.fit(blobs[0], sample_weight=weight))
    assert len(records) > 4
    disturbed = {r["start"] for r in model.history_ if r.get("kind") == "critical"}
    compared, rounding = 0, 1e-10
    if isinstance(model, RFFKernelPowerKMeans):  # whose starts run in single precision
        rounding = 1e-6
    for before, after in itertools.pairwise(records):
        moved = before["start"] in disturbed and before["s"] != after["s"]
        softer = after["s"] > before["s"]  # from k-means to a soft end
        if before["start"] != after["start"] or moved or softer or before["repairs"]:
            continue
        if "swap" not in (before["stage"], after["stage"]):
            compared += 1
            assert after["objective"] <= before["objective"] * (1 + rounding), (before, after)
    assert compared >= 4


def test_the_result_is_no_worse_than_any_start(backend, blobs):
    model = PowerKMeans(7, n_init=4, annealing=Annealing(swaps=3), random_state=0).fit(blobs[0])
    starts = [record for record in model.history_ if record["stage"] == "start"]
    assert [start["kind"] for start in starts] == ["low", "k-means++", "low", "critical"]
    assert [start["outcome"] for start in starts].count("kept") == 1
    costs = [start["objective"] for start in starts]
    assert starts[int(np.argmin(costs))]["outcome"] == "kept"
    assert model.inertia_ <= min(costs) * (1 + 1e-10)


def test_swaps_leave_a_local_minimum_of_k_means():
    """Three centroids start in two clusters, and one between two others far away."""
    centers = np.array([[0, 0], [0, 4], [100, 0], [100, 4]])
    X, _ = make_blobs(400, centers=centers, cluster_std=0.3, random_state=0)
    start = np.array([[0, 0], [0, 4], [0.1, 4], [100, 2]])
    common = {"n_clusters": 4, "init": start, "random_state": 0}
    local, swapped = (
        PowerKMeans(annealing=Annealing(start=-6e4, swaps=swaps), **common).fit(X)
        for swaps in (0, 2)
    )
    assert swapped.inertia_ < 0.2 * local.inertia_
    assert "swap" in {record["stage"] for record in swapped.history_}
    assert_allclose(np.sort(swapped.cluster_centers_[:, 0]), [0, 0, 100, 100], atol=0.2)


@pytest.mark.parametrize("s", [-0.5, -1.0, -4.0, -np.inf])
def test_the_result_is_stationary(backend, blobs, s):
    """After convergence one more iteration of the paper's formulas changes nothing."""
    X = blobs[0]
    soft = np.isfinite(s)
    model = PowerKMeans(
        7,
        annealing=Annealing(start=max(s, -0.5), end=s if soft else "hard"),
        tol=1e-11,
        max_iter=5000,
    )
    model.set_params(random_state=0).fit(X)
    V = model.cluster_centers_
    if soft:
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
    phi = oracles.rff(X, omega)
    model = PowerKMeans(
        7,
        annealing=Annealing(start=-3.0, factor=factor, passes=every, until="objective"),
        tol=1e-7,
        init=start,
    ).fit(phi)
    assert len(objective) > 10
    assert_allclose([r["objective"] for r in passes(model)], objective, rtol=1e-9)
    assert_allclose(model.cluster_centers_, expected, atol=1e-9)
    assert_array_equal(model.labels_, labels)


def test_the_papers_protocol_as_parameters(digits):
    annealing = Annealing(start=-5.0, factor=1.04, passes=3, until="objective")
    features = {"n_frequencies": "paper", "random_state": 0}
    model = RFFKernelPowerKMeans(
        10, annealing=annealing, init="k-means", sample=None, **features
    ).fit(digits[0])
    stages = [record["stage"] for record in passes(model)]
    annealed = [r["s"] for r in passes(model) if r["stage"] == "anneal"]
    assert stages == sorted(stages, key=["k-means", "anneal"].index)  # no stage follows
    assert {"k-means", "anneal"} == set(stages)
    assert_allclose(annealed, [-5.0 * 1.04 ** (t // 3) for t in range(len(annealed))])
    assert model.feature_map_.n_frequencies_ == 108 and model.feature_map_.sampling == "iid"
    assert model.s_ == annealed[-1]


def test_a_constant_objective_does_not_end_annealing():
    """If all centroids start at one point, none moves while s > s_c, and the run continues."""
    X, _ = make_blobs(300, n_features=3, centers=4, random_state=1)
    start = np.tile(X.mean(axis=0), (4, 1)) + 1e-9 * np.eye(4, 3)
    model = PowerKMeans(4, annealing=Annealing(start=-0.3), init=start, random_state=0).fit(X)
    first, second = passes(model)[:2]
    assert first["distinct"] == 1
    assert_allclose(first["objective"], second["objective"], rtol=1e-6)
    assert model.s_ < 3 * -0.3
    assert passes(model)[-1]["distinct"] == 4


@pytest.mark.parametrize("shape", [(400, 5), (40, 90)])
def test_the_critical_exponent_is_where_a_small_perturbation_stops_growing(shape):
    """Growth of a perturbation of the merged state in a pass: 2 (1 - s) lambda_max."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape) * rng.uniform(0.2, 2, shape[1])
    p = rng.uniform(0.5, 2, len(X))
    rows = make_rows([X], [None], p, 1)
    critical = critical_exponent(shifted_features(rows), p)
    largest = 1 / (2 * (1 - critical))
    z = shifted_features(rows)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    values, vectors = np.linalg.eigh((z.T * p) @ z / p.sum())
    assert_allclose(values[-1], largest, rtol=1e-10)
    theta = 1e-7 * np.outer([1, -2, 1], vectors[:, -1])
    for s in (critical + 0.1, critical - 0.5):
        if s <= -0.2:
            sums, _ = one_pass(rows, theta, s)
            moved = rows.centroids(sums, theta)
            growth = np.linalg.norm(moved - moved.mean(axis=0)) / np.linalg.norm(theta)
            assert_allclose(growth, 2 * (1 - s) * largest, rtol=1e-4)
            assert (growth > 1) == (s < critical)


@pytest.mark.few(1)
def test_inertia_is_the_kernel_k_means_objective_of_the_labels(backend, blobs):
    X = blobs[0]
    for model in (FuzzyCMeans(7, random_state=0), PowerKMeans(7, random_state=0)):
        expected = oracles.kernel_kmeans_objective(X @ X.T, model.fit(X).labels_)
        assert_allclose(model.inertia_, expected, rtol=1e-9)
    X = X[:300]
    hard = {"annealing": Annealing(start=-6e4), "random_state": 0}  # a few passes of k-means
    model = RFFKernelPowerKMeans(7, gamma=0.01, n_frequencies=4000, **hard).fit(X)
    phi = model.feature_map_.transform(X)
    in_features = oracles.kernel_kmeans_objective(phi @ phi.T, model.labels_)
    assert_allclose(model.inertia_, in_features, rtol=1e-9)
    exact = oracles.kernel_kmeans_objective(rbf_kernel(X, gamma=0.01), model.labels_)
    assert_allclose(model.inertia_, exact, rtol=0.03)


def test_annealing_leaves_a_local_minimum_of_k_means():
    X, y = make_blobs(600, n_features=2, centers=[[0, 0], [10, 0], [0, 10]], random_state=0)
    start = np.array([[10.0, 0], [10.1, 0], [5.0, 5.0]])
    stuck = PowerKMeans(3, annealing=Annealing(start=-60000.0), init=start).fit(X)
    annealed = PowerKMeans(3, annealing=Annealing(start=-1.0), init=start).fit(X)
    assert annealed.inertia_ < 0.5 * stuck.inertia_


def test_an_empty_cluster_is_repaired_and_logged(backend):
    X, _ = make_blobs(300, n_features=2, centers=4, cluster_std=0.2, random_state=3)
    start = np.vstack([X[:3], [[1e6, 1e6]]])
    model = PowerKMeans(4, annealing=Annealing(start=-6e4), init=start).fit(X)
    assert sum(record["repairs"] for record in passes(model)) >= 1
    assert len(np.unique(model.labels_)) == 4


def test_more_clusters_than_distinct_rows_end_with_a_warning(backend, dtype):
    X = np.repeat(np.arange(3.0), 10)[:, None].astype(dtype) @ np.ones((1, 2), dtype)
    with pytest.warns(ConvergenceWarning, match="3 of n_clusters=5 clusters have rows"):
        model = PowerKMeans(5, random_state=0).fit(X)
    assert len(np.unique(model.labels_)) == 3
    assert model.inertia_ <= 1e-5
    assert model.n_iter_ < 1000


def test_max_iter_ends_with_a_warning(blobs):
    with pytest.warns(ConvergenceWarning, match="max_iter=4 passes"):
        model = PowerKMeans(7, annealing=Annealing(start=-1.0), max_iter=4, random_state=0).fit(
            blobs[0]
        )
    assert model.n_iter_ == 4 == len(passes(model))


def test_centroids_that_coincide_count_as_one():
    theta = np.array([[0.0, 0], [1, 1], [1 + 1e-9, 1], [0, 0], [2, 0]])
    assert count_distinct(theta, 1e-6) == 3
    assert count_distinct(theta[:1], 0.0) == 1


def test_counting_distinct_centroids_takes_little_memory():
    tracemalloc.start()
    assert count_distinct(np.ones((300, 400)), 1e-6) == 1
    chain = np.arange(300.0)[:, None] * np.ones((1, 400))  # neighbours are 20 apart
    assert count_distinct(chain, 400.0) == 150
    assert tracemalloc.get_traced_memory()[1] < 30e6
    tracemalloc.stop()


@pytest.fixture(scope="module")
def pairs():
    """15 rows of a wide cluster far from two narrow ones. Three random rows hold two or more of the
    wide one with probability 1/2: then a centroid stays between the narrow ones, else none does."""
    random = np.random.default_rng(0)
    wide = [-1000, 0] + 0.15 * random.standard_normal((15, 2))
    narrow = np.repeat([[0.0, 0], [1, 0]], [8, 7], axis=0)
    return np.vstack([wide, narrow + 1e-3 * random.standard_normal((15, 2))])


@pytest.mark.parametrize("seed", range(3))
def test_hopeless_starts_are_dropped(pairs, seed):
    """All outcomes occur, except once in 10^10 draws of 40 starts."""
    model = PowerKMeans(
        3, annealing=Annealing(start=-5.0, swaps=0), init="random", n_init=40, random_state=seed
    )
    model.fit(pairs)
    starts = [record for record in model.history_ if record["stage"] == "start"]
    outcomes = [start["outcome"] for start in starts]
    assert {"kept", "lost", "dropped"} == set(outcomes)
    for start in starts:
        assert np.isinf(start["objective"]) == (start["outcome"] == "dropped")
        stages = {r["stage"] for r in passes(model) if r["start"] == start["start"]}
        assert ("hard" in stages) == (start["outcome"] != "dropped")


def steps_of(schedule, results, best=np.inf):
    """The stages of a start whose steps have prescribed results, each stage as often as it has
    steps, and the result of the course if it ends."""
    generator = stages_of(Start("prescribed", schedule), lambda: best, np.float64)
    stage, steps = next(generator), 0
    taken = [stage]
    for result in results:
        steps += 1
        if stage.is_over(steps, result.shift):
            try:
                stage, steps = generator.send(StageEnd(result, steps)), 0
            except StopIteration as stop:
                return taken, stop.value
        taken.append(stage)
    return taken, None


ADAPTIVE = Schedule(start=-1.0, end=-np.inf, max_iter=1000, tol=1e-4)


@pytest.mark.parametrize("s_final", [-np.inf, -50.0])
@pytest.mark.parametrize("soft", [0.95, 0.995])  # over the cost of nearest centroids
@pytest.mark.parametrize("cost, penalty", [(1.0, 0.01), (1.0, 0.1), (1.01, 0.0), (1.1, 0.0)])
def test_a_start_is_hopeless_when_nearly_hard_and_clearly_above_the_best(
    cost, penalty, soft, s_final
):
    converged = Step(soft * cost, cost, cost + penalty, penalty, 0.0, 2, False, 0.0)
    schedule = replace(ADAPTIVE, end=s_final)
    taken, end = steps_of(schedule, [converged] * 3, best=1.0)
    if soft > 0.99 and cost + penalty > 1.02 and np.isinf(s_final):
        assert end.dropped and not end.converged and len(taken) == 1
    else:
        assert end is None and {stage.name for stage in taken} == {"anneal"}
    assert steps_of(schedule, [converged] * 3)[1] is None  # no other start has ended


def test_total_variance_is_that_of_the_features(backend, dtype):
    X = (np.random.default_rng(0).standard_normal((5000, 4)) + 1e3).astype(dtype)
    rows = make_rows([X], [None], None, 2)
    rtol = 1e-5 if dtype == np.float32 else 1e-12
    assert_allclose(total_variance(rows), X.astype(float).var(axis=0).sum(), rtol=rtol)


def test_close_pairs_far_apart_are_distinct():
    """Four clusters in two pairs, 10^3 times closer within a pair: none coincide."""
    centers = np.array([[-1000, -0.5], [-1000, 0.5], [1000, -0.5], [1000, 0.5]])
    X, _ = make_blobs(400, centers=centers, cluster_std=0.05, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = PowerKMeans(4, init=centers, annealing=Annealing(start=-60000.0)).fit(X)
    assert passes(model)[-1]["distinct"] == 4


@pytest.mark.parametrize("width", [1e-1, 1e-3, 1e-6])
def test_inertia_of_tight_clusters_far_apart(backend, dtype, width):
    """Expanded squares lose all digits here; the inertia must not."""
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((3, 4)) * 1000
    X = (centers.repeat(100, axis=0) + width * rng.standard_normal((300, 4))).astype(dtype)
    model = PowerKMeans(3, init=centers, random_state=0).fit(X)
    groups = [X[i : i + 100].astype(float) for i in (0, 100, 200)]
    exact = sum(((g - g.mean(axis=0)) ** 2).sum() for g in groups)
    # of the digits of the shifted rows and of the centroids
    rounding = 300 * 4 * (2 * np.finfo(dtype).eps * 3000) ** 2
    assert_allclose(model.inertia_, exact, rtol=2e-2, atol=rounding)
    assert_allclose(model.score(X), -exact, rtol=2e-2, atol=rounding)


def test_starts_that_end_at_other_exponents_are_compared_at_one():
    """The lower the exponent, the lower sum M_s: starts are not compared at different exponents."""
    for seed in range(12):
        X, _ = make_blobs(200, n_features=3, centers=6, cluster_std=2.0, random_state=seed)
        model = PowerKMeans(
            6, annealing=Annealing(start=-6.0, factor=1.5, passes=4, until="objective"), tol=2e-3,
            init="random", random_state=seed, n_init=6,
        ).fit(X)  # fmt: skip
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
    critical = critical_exponent(X, None)
    fuzzifier = 1 - 1 / critical
    assert 1 < fuzzifier < 2
    message = rf"1 of n_clusters=50 clusters .*m_c = 1 - 1/s_c = {fuzzifier:.4g}"
    with pytest.warns(ConvergenceWarning, match=message):
        FuzzyCMeans(50, m=2.0, init=start).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        harder = FuzzyCMeans(50, m=1 + 0.5 * (fuzzifier - 1), random_state=0).fit(X)
    assert [r["distinct"] for r in harder.history_ if "s" in r][-1] == 50


def adaptive_stages(lengths):
    """Exponents and passes of adaptive stages if the centroids converge after `lengths` passes."""
    shifts = [shift for length in lengths for shift in [1.0] * (length - 1) + [0.0]]
    taken, _ = steps_of(
        ADAPTIVE, [Step(0.9, 1.0, 1.0, 0.0, shift, 2, False, 0.0) for shift in shifts]
    )
    grouped = [(s, len([*steps])) for s, steps in itertools.groupby(stage.s for stage in taken)]
    exponents, counts = zip(*grouped)
    return np.array(exponents), list(counts[:-1])


def test_the_adaptive_schedule_is_slow_while_centroids_separate():
    """Exponents fall faster after stages of few passes and slower after those of many."""
    for lengths in ([1] * 9, [2] * 9, [3] * 9, [4] * 9, [5] * 9, [10] * 9, [1, 9, 3, 2, 6, 10]):
        exponents, counts = adaptive_stages(lengths)
        assert counts == lengths
        factors = np.r_[1.2, exponents[1:] / exponents[:-1]]
        for before, after, length in zip(factors, factors[1:], lengths):
            if length <= 2:
                assert after > before or after == pytest.approx(1.5)
            elif length >= 5:
                assert after < before or after == pytest.approx(1.05)
            else:
                assert after == pytest.approx(before)
        assert 1.05 - 1e-9 <= factors.min() and factors.max() <= 1.5 + 1e-9
    assert adaptive_stages([25])[1] == [10, 10, 5]  # no stage has more passes


def test_rows_of_weight_zero_are_not_in_the_critical_exponent():
    random = np.random.default_rng(0)
    features, weight = random.standard_normal((50, 3)), random.uniform(0.5, 2, 50)
    far, weights = np.vstack([features, [[1e9, 0, 0]]]), np.append(weight, 0)
    assert critical_exponent(far, weights) == critical_exponent(features, weight)
    alone = np.vstack([np.ones((50, 3)), [[1, 1, 1 + 1e-15]]])  # as rounding makes equal rows
    assert critical_exponent(alone, weights) == -np.inf


@pytest.mark.parametrize("shape", [(30, 250), (250, 230), (400, 12)])
def test_the_critical_exponent_by_lanczos_is_that_of_the_full_decomposition(shape):
    z = np.random.default_rng(0).standard_normal(shape) * np.linspace(0.5, 2, shape[1])
    z -= z.mean(axis=0)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    largest = np.linalg.norm(z, 2) ** 2 / len(z)
    X = z * np.random.default_rng(1).uniform(1, 2, (len(z), 1))
    X = np.vstack([X, -X])  # the mean stays where it is
    assert_allclose(critical_exponent(X, None), 1 - 1 / (2 * largest), rtol=1e-8)


class ConvergedRun:
    """A start whose first step converges, at a prescribed cost."""

    passes = 1

    def __init__(self, number, cost):
        self.number, self.cost = number, lambda s: cost

    def follow(self, stage):
        return StageEnd(Step(1.0, 1.0, 1.0, 0.0, 0.0, 2, False, 0.0), 1)


@pytest.mark.parametrize(
    ("costs", "kept", "s"), [((1, 2, 2), 0, -5.0), ((2, 1, 1), 1, -2.0), ((2, 2, 1), 2, -5.0)]
)
def test_the_first_of_the_cheapest_starts_is_kept_with_an_exponent(costs, kept, s):
    """Plain k-means, the first start, has none: it takes that of the last start."""
    starts = [
        Start("k", Schedule(s0, -np.inf, max_iter=10, tol=0.1)) for s0 in (-np.inf, -2.0, -5.0)
    ]
    history = History()
    run, end, cost = search(
        lambda number: ConvergedRun(number, costs[number]), starts, history, 1, np.float64
    )
    assert (run.number, end.s, end.converged, cost) == (kept, s, True, costs[kept])
    outcomes = [record["outcome"] for record in history.records]
    assert outcomes == ["kept" if number == kept else "lost" for number in range(3)]


def test_clusters_are_empty_below_what_their_type_resolves():
    for dtype, least in ((np.float32, 1e-30), (np.float64, 1e-250)):
        G = np.array([3.0, 0.0, least, 10 * least])
        assert_array_equal(empty_clusters(G, dtype), [False, True, True, False])


@pytest.mark.parametrize("name", ["PowerKMeans", "RFFMultiKernelPowerKMeans", "KernelPowerKMeans"])
@pytest.mark.parametrize("by_call", [False, True])
def test_centroids_that_are_given_are_kept(name, by_call):
    """At high exponents the centroids of small clusters would move to larger ones."""
    random = np.random.default_rng(0)
    sizes, centers = [400, *[8] * 5], 6 * random.standard_normal((6, 4))
    X = np.repeat(centers, sizes, axis=0) + random.standard_normal((440, 4))
    init = X[np.cumsum([0, *sizes[:-1]])]
    given = (lambda rows, k, random_state: init) if by_call else init
    more = {"kernels": "linear", "typicality": None} if "Multi" in name else {}
    if name == "KernelPowerKMeans":
        given, more = np.repeat(range(6), sizes), {"kernel": "linear"}
    model = getattr(rffpk, name)(6, init=given, **more).fit(X)
    assert_array_equal(model.labels_, np.repeat(range(6), sizes))
    assert {r["stage"] for r in model.history_ if "s" in r} == {"hard"}
    assert -1000 < model.s_ < -1
    soft = clone(model).set_params(annealing=Annealing(end=-9.0)).fit(X)
    assert {r["s"] for r in soft.history_ if "s" in r} == {-9.0}
    annealed = clone(model).set_params(annealing=Annealing(start=-2.0)).fit(X)
    assert "anneal" in {r["stage"] for r in annealed.history_}
