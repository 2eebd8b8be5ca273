"""Many clusters: merged initial centroids and swaps in batches, without annealing."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from contracts.core import sparse_rows
from contracts.level import FeatureLevel, FitContext, PowerMean, State
from contracts.passes import column_rows, one_pass
from contracts.source import starts
from conventions import ip_rff_mkpkm
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

from rffpk import Annealing, DiffusionPowerKMeans, PowerKMeans, RFFKernelPowerKMeans

MANY = 100  # from so many clusters on initial centroids are drawn, and swapped, in batches


def mixture(n, k, d=8, seed=0):
    random = np.random.default_rng(seed)
    centers = random.uniform(-5, 5, (k, d))
    return centers[np.arange(n) % k] + 0.3 * random.standard_normal((n, d))


def cost(X, centers):
    return ((X[:, None] - centers) ** 2).sum(axis=2).min(axis=1).sum()


def stages(model):
    return {record["stage"] for record in model.history_}


def kinds(model):
    return [record["kind"] for record in model.history_ if record["stage"] == "start"]


def swapped_rows(model):
    return {step["rows"] for step in model.history_ if step["stage"] == "swap"}


def swapped_later(model, n=60_000):
    """Return the numbers of rows of swaps after the sample, without swaps on all rows."""
    return swapped_rows(model) - {model.sample_size_, n}


@pytest.mark.parametrize("weighted", [False, True])
def test_initial_centroids_in_batches_are_as_good_as_one_by_one(weighted):
    X = mixture(3000, MANY)
    weight = np.where(np.arange(3000) < 1500, 1.0, 0.0) if weighted else None
    rows, costs = column_rows(X, weight, 2), []
    for seed in range(5):
        given = {"sample_weight": weight, "n_local_trials": 1, "random_state": seed}
        theirs, _ = kmeans_plusplus(X, MANY, **given)
        ours = starts.seed_centroids(rows, X, MANY, "k-means++", np.random.RandomState(seed))
        assert len(np.unique(ours, axis=0)) == MANY
        if weighted:
            assert (X[:1500, None] == ours).all(axis=2).any(axis=0).all()
        costs.append((cost(X, ours), cost(X, theirs)))
    ours, theirs = np.mean(costs, axis=0)
    assert ours < 1.25 * theirs


def test_initial_centroids_from_few_rows():
    """Rows that are no more than clusters are not merged."""
    X = np.repeat(np.arange(30.0)[:, None], 10, axis=0)
    random, rows = np.random.RandomState(0), column_rows(X, None, 1)
    chosen = starts.seed_centroids(rows, X, MANY, "k-means++", random)
    assert chosen.shape == (MANY, 1)
    assert len(np.unique(chosen)) == 30
    X = mixture(100, 60)
    assert starts.merged_centroids(column_rows(X, None, 1), X, 100, random) is None
    assert len(np.unique(PowerKMeans(100, random_state=0).fit(X).labels_)) == 100


def test_all_of_many_separated_clusters_are_found():
    k = 150
    X = mixture(6000, k)
    model = PowerKMeans(k, random_state=0).fit(X)
    assert_allclose(np.bincount(model.labels_), 40)
    best = min(KMeans(k, n_init=1, random_state=s).fit(X).inertia_ for s in range(3))
    assert model.inertia_ < 0.99 * best
    assert "swap" in stages(model) and "anneal" not in stages(model)
    assert kinds(model) == ["merged"]


def uneven(n, k, d=48, seed=0):
    """Return unit rows around k directions with sizes by a power law, and the directions."""
    random = np.random.default_rng(seed)
    centers = normalize(random.standard_normal((k, d)))
    y = random.choice(k, n, p=(1 / np.arange(1, k + 1)) / (1 / np.arange(1, k + 1)).sum())
    return normalize(centers[y] + 0.09 * random.standard_normal((n, d))), y


@pytest.mark.parametrize("cls", [PowerKMeans, RFFKernelPowerKMeans])
def test_small_clusters_are_found_beside_large_ones(cls):
    X, y = uneven(6000, MANY)
    labels = cls(MANY, random_state=0).fit(X).labels_
    assert adjusted_rand_score(y, labels) > 0.95


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_merged_centroids_are_those_of_the_clusters(weighted, sparse):
    X, y = uneven(4000, 60)
    X[:] -= X.mean(axis=0)
    weight = np.where(np.arange(len(X)) % 2, 1.0, 0.0) if weighted else None
    kept = slice(1, None, 2) if weighted else slice(None)
    given = sparse_rows(csr_array(X)) if sparse else X
    rows = column_rows(given, weight, 1).counted()
    found = starts.merged_centroids(rows, rows.xs[0], 60, np.random.RandomState(0))
    present, labels = np.unique(y[kept]), cdist(X[kept], found).argmin(axis=1)
    assert found.shape == (60, 48)
    assert adjusted_rand_score(y[kept], labels) > 0.98
    assert cost(X[kept], found) < 1.1 * cost(X[kept], [X[y == j].mean(axis=0) for j in present])


@pytest.mark.parametrize("least_work", [0, np.inf], ids=["near", "all"])
def test_clusters_of_few_rows_in_many_columns_have_merged_centroids(least_work, tuning):
    """Rows of other clusters are hardly farther from a row than rows of its own cluster."""
    tuning(hardpasses__near_work=least_work)
    n_found, y = 0, np.repeat(np.arange(40), [300] * 10 + [8] * 30)
    for seed in range(5):
        random = np.random.RandomState(seed)
        centers = normalize(random.standard_normal((40, 384)))
        X = (centers[y] + 0.0625 * random.standard_normal((len(y), 384))).astype(np.float32)
        rows = column_rows(X, None, 1, np.zeros(384, dtype=np.float32))
        merged = starts.merged_centroids(rows, X, 40, random)
        n_found += len(np.unique(cdist(merged, centers).argmin(axis=1)))
    assert n_found >= 195  # of 200; some 170 without the second draws


@pytest.mark.parametrize("exponent", [0.0, 1.0], ids=["even", "zipf"])
@pytest.mark.parametrize("n, d, k", [(200, 30, 100), (120, 10, 60), (190, 8, 100)])
def test_clusters_of_two_rows_are_merged_from_all_rows(n, d, k, exponent):
    """As k-means++ draws half of the rows then, many of them from the same cluster."""
    costs = []
    for seed in range(3):
        random = np.random.default_rng(seed)
        share = np.arange(1.0, k + 1) ** -exponent
        y = random.choice(k, n, p=share / share.sum())
        X = 6 * random.standard_normal((k, d))[y] + random.standard_normal((n, d))
        ours = PowerKMeans(k, random_state=seed).fit(X)
        assert len(np.unique(ours.labels_)) == k
        costs.append((ours.inertia_, KMeans(k, n_init=10, random_state=seed).fit(X).inertia_))
    ours, theirs = np.sum(costs, axis=0)
    assert ours < 0.995 * theirs


def test_a_sample_may_store_features_that_all_rows_compute(tuning):
    tuning(hardpasses__near_work=1)
    X = mixture(6000, MANY)
    options = {"n_frequencies": 16, "sample": 2000, "cache": 2000 * 32 * 8, "random_state": 0}
    model = RFFKernelPowerKMeans(MANY, **options).fit(X)
    assert not model.cache_
    assert_array_equal(model.labels_, model.predict(X))


@pytest.mark.parametrize("sample, again", [(25_000, False), (24_999, True)])
def test_centroids_are_swapped_again_after_samples_of_few_rows_a_cluster(sample, again):
    X = np.random.default_rng(0).random((26_000, 3), np.float32)
    swapped = swapped_rows(PowerKMeans(100, sample=sample, random_state=0).fit(X))
    assert sample in swapped and len(swapped) == 1 + again
    assert max(swapped) < len(X)  # rows are drawn


@pytest.mark.parametrize("drawn, lacks", [
    *product([(100, 5000), (100, 30_000), (99, 15_000), (30, 20_000)], (True, False)),
    ((20, 2000), True), ((19, 2000), True),
])  # fmt: skip
def test_samples_that_lack_cost_are_followed_by_swaps_on_drawn_rows(drawn, lacks):
    """Samples lack cost if they have few rows for each of many clusters."""
    k, sample = drawn
    random = np.random.default_rng(0)
    X = random.standard_t(2, size=(60_000, 3)) if lacks else random.random((60_000, 2))
    model = PowerKMeans(k, sample=sample, random_state=0).fit(X)
    again = lacks or (k == 100 and sample == 5000)
    assert swapped_later(model) == ({250 * k} if again else set())
    if again and not lacks:  # as low as swaps on all rows
        whole = PowerKMeans(k, sample=None, random_state=0).fit(X)
        assert model.inertia_ < 1.005 * whole.inertia_


def test_swaps_on_drawn_rows_lower_the_objective_of_skewed_rows(tuning):
    X, costs = np.random.default_rng(0).lognormal(size=(60_000, 3)), []
    for factor in (1.05, np.inf):  # a sample that misjudges the cost by this factor is too small
        tuning(swaps__unlike=factor)
        costs.append([PowerKMeans(90, random_state=seed).fit(X).inertia_ for seed in range(2)])
    assert np.mean(costs[0]) < 0.995 * np.mean(costs[1])


@pytest.mark.parametrize("far", [0.0, 50.0])
def test_nothing_is_drawn_of_equal_rows(far):
    X, weight = np.ones((26_000, 2)), np.ones(26_000)
    X[7], weight[7] = 1 + far, far == 0
    with pytest.warns(ConvergenceWarning, match="1 distinct row"):
        model = PowerKMeans(100, random_state=0).fit(X, sample_weight=weight)
    assert model.inertia_ == 0 and not swapped_later(model, len(X))


@pytest.mark.parametrize("k", [25, 100])
def test_a_power_of_two_of_the_weights_changes_no_row_that_is_drawn(k):
    """Also one that float32 does not hold."""
    random = np.random.default_rng(0)
    X = random.standard_t(2, size=(12_000, 3)).astype(np.float32)
    weight, found = random.uniform(0.5, 2, len(X)), []
    for factor in (1.0, 2.0**140, 2.0**-200):
        model = PowerKMeans(k, sample=1000, random_state=0).fit(X, sample_weight=weight * factor)
        assert swapped_later(model, len(X)) - {len(X)} or 250 * k > len(X)
        found.append(model.inertia_ / factor)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("most", [1, 2, 5])
def test_swaps_on_drawn_rows_leave_the_limit_of_passes_on_all_rows(most):
    X = np.random.default_rng(0).standard_t(2, size=(40_000, 3))
    model = PowerKMeans(30, sample=4000, max_iter=most, tol=0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model.fit(X)
    passes = [step["rows"] for step in model.history_ if step["stage"] == "hard"]
    assert passes.count(len(X)) == most


def test_rows_of_weight_zero_alone_in_clusters_are_not_drawn():
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 3))[random.integers(60, size=30_000)]
    X[::2] = 5 + random.standard_normal((15_000, 3))
    model = PowerKMeans(100, sample=5000, random_state=0)
    with np.errstate(invalid="raise"):
        model.fit(X, sample_weight=np.arange(30_000) % 2)
    assert model.inertia_ < 1e-20
    assert_array_equal(model.labels_, model.predict(X))


@pytest.mark.exhaustive
def test_the_number_of_passes_does_not_grow_with_the_number_of_clusters():
    passes = [PowerKMeans(k, random_state=0).fit(mixture(40 * k, k)).n_iter_ for k in (100, 800)]
    assert passes[1] < 1.5 * passes[0]


def test_memberships_without_annealing_are_those_of_nearly_hard_power_means():
    X = mixture(4000, 120, d=3)
    model = PowerKMeans(120, random_state=0).fit(X)
    assert np.isfinite(model.s_)
    soft, hard = model.objective_ * 120 ** (1 / model.s_), -model.score(X)
    assert 1e-5 < 1 - soft / hard < 3e-3  # annealing ends at 1e-3
    assert 0.5 < model.predict_proba(X).max(axis=1).mean() < 1 - 1e-6


@pytest.mark.parametrize("typical", [False, True])
def test_the_last_exponent_is_the_first_at_which_power_means_are_nearly_hard(typical):
    X = np.random.default_rng(0).standard_normal((500, 3))
    rows = column_rows(X, np.arange(1.0, 501.0), 1)
    rows = replace(rows, eta=np.array([0.5]), m=2.0) if typical else rows
    level = FeatureLevel(rows, 1.0, PowerMean(), FitContext(None), 10)
    _, s = level.nearly_hard_exponent(State(X[:10], rows.alpha))
    soft, before, hard = (one_pass(rows, X[:10], each)[0] for each in (s, s / 1.2, -np.inf))
    assert before.soft < 0.999 * hard.hard <= soft.soft


def test_one_start_is_made_where_centroids_are_merged():
    """From 20 clusters on, and it is annealed up to 99; swaps of single centroids follow there."""
    X, three = mixture(4000, 99), ["k-means++", "low", "critical"]
    found = {k: PowerKMeans(k, random_state=0).fit(X) for k in (19, 20, 99, 100)}
    assert [kinds(model) for model in found.values()] == [three, *[["merged"]] * 3]
    annealed = ["anneal" in stages(model) for model in found.values()]
    assert annealed == [True, True, True, False]
    assert all("swap" in stages(model) for model in found.values())
    for k in (99, 100):  # with learned weights, too
        model = ip_rff_mkpkm(k, n_frequencies=32, typicality=None, random_state=0)
        model.fit([X[:600, :4], X[:600]])
        assert kinds(model) == (three if k == 99 else ["merged"])
        assert np.ptp(model.kernel_weights_) > 0


@pytest.mark.parametrize("k", [20, 99, 100])
def test_one_annealed_start_ends_as_low_as_three(k):
    X = np.random.default_rng(0).standard_normal((3000, 6)) ** 3
    one, three = ([PowerKMeans(k, n_init=n, random_state=s).fit(X).inertia_ for s in range(3)]
                  for n in ("auto", 3))  # fmt: skip
    assert np.mean(one) < 1.003 * np.mean(three)


@pytest.mark.parametrize("given, kept", [
    ({"annealing": Annealing(start=-2.0, factor=1.05, swaps=5)}, "anneal"),
    ({"annealing": Annealing(swaps=5), "init": "k-means"}, "k-means"),
])  # fmt: skip
def test_parameters_of_annealing_are_followed_with_many_clusters_too(given, kept):
    assert kept in stages(PowerKMeans(MANY, random_state=0, **given).fit(mixture(600, MANY)))


def normal_mixture(random, n, d, groups, apart):
    centers = apart * random.standard_normal((groups, d))
    return centers[random.integers(groups, size=n)] + random.standard_normal((n, d))


@pytest.mark.exhaustive
@pytest.mark.promise(
    "Input",
    "A fit of finite rows with default parameters never raises, whatever the numbers of rows, "
    "columns and clusters, as far as memory holds them.",
)
@pytest.mark.parametrize("seed", range(60))
def test_default_fits_on_both_sides_of_the_sizes_of_near_lists(seed):
    """Half of the fits are near the sizes from which rows see few centroids."""
    random = np.random.default_rng(seed)
    n, k = 0, 1
    while not 5 * k <= n <= 150_000:
        # multiply-adds of a pass over all centroids, as powers of two
        work = random.uniform(*((27.3, 28.7) if seed % 2 else (26, 30)))
        k, d = (int(np.exp(random.uniform(*np.log(ends)))) for ends in [(100, 1000), (2, 400)])
        n = int(2**work / (k * d))
    groups, apart = int(k * random.uniform(0.8, 1.2)), 10 ** random.uniform(np.log10(0.2), 2)
    X = normal_mixture(random, n, d, groups, apart)
    X = X.astype(random.choice(["f2", "f4", "f8"]))
    metric = str(random.choice(["euclidean", "cosine"]))
    model = PowerKMeans(k, metric=metric, random_state=int(random.integers(100))).fit(X)
    assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.exhaustive
@pytest.mark.promise(like="test_default_fits_on_both_sides_of_the_sizes_of_near_lists")
def test_diffusion_maps_of_many_clusters_with_noise_are_clustered():
    X = normal_mixture(np.random.default_rng(99), 20_000, 32, 100, 3.0)
    DiffusionPowerKMeans(100, noise="auto", random_state=0).fit(X)


def test_centroids_that_are_equally_near_each_other():
    """On a grid many centroids are as near as the last that a row is compared with."""
    grid = np.stack(np.meshgrid(np.arange(50.0), np.arange(50.0)), axis=-1).reshape(-1, 2)
    X = np.repeat(grid, 24, axis=0)
    model = PowerKMeans(2500, random_state=0, init=grid + 0.25, max_iter=9).fit(X)
    assert model.inertia_ == 0
    assert_array_equal(np.bincount(model.labels_), 24)
