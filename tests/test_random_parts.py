"""The random parts follow the distributions that docs/math.md derives. Seeds are fixed, and
thresholds are far from what chance gives: 5 standard deviations, or probabilities of 1e-6."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from contracts.passes import column_rows, ones
from contracts.source import Sampling, sample_tables, starts
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2

import rffpk
from rffpk import _core

DRAWS = 1000
STEP = np.array([0.7, -0.4, 0.2, 0.5])  # from one row to the other


def kernel_estimates(kernel, sampling, D, gamma, step=STEP):
    """Compute phi(x)'phi(y) for many draws of the frequencies."""
    pair = np.stack([np.zeros_like(step), step])
    mapping = rffpk.RandomFourierFeatures(D, kernel=kernel, gamma=gamma, sampling=sampling)
    draws = (mapping.set_params(random_state=seed).fit_transform(pair) for seed in range(DRAWS))
    return np.array([phi[0] @ phi[1] for phi in draws])


def exact(kernel, t, gamma):
    if kernel == "rbf":
        return np.exp(-gamma * (t**2).sum())
    if kernel == "laplacian":
        return np.exp(-gamma * np.abs(t).sum())
    return np.prod(1 / (1 + gamma * t**2))


@pytest.mark.promise(
    "Determinism",
    "Random frequencies and starts follow the distributions of [math.md](../math.md).",
)
@pytest.mark.exhaustive
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "cauchy"])
def test_independent_frequencies_have_the_mean_and_the_variance_derived(kernel):
    """E = kappa(t), and a variance of ((1 + kappa(2t))/2 - kappa(t)^2)/D: section 9."""
    D, gamma = 16, 0.6
    estimates, kappa = kernel_estimates(kernel, "iid", D, gamma), exact(kernel, STEP, gamma)
    variance = ((1 + exact(kernel, 2 * STEP, gamma)) / 2 - kappa**2) / D
    if kernel != "cauchy":  # the closed forms of (9.1)
        power = 2 if kernel == "rbf" else 1
        assert_allclose(variance, (1 - kappa**2) ** power / (2 * D), rtol=1e-12)
    assert abs(estimates.mean() - kappa) < 5 * np.sqrt(variance / DRAWS)
    # the fourth moment of a mean of 16 bounded terms is close to that of a normal distribution
    assert abs(estimates.var() / variance - 1) < 5 * np.sqrt(2.2 / DRAWS)


@pytest.mark.exhaustive
def test_orthogonal_and_structured_frequencies_have_less_variance():
    """(9.2): at small distances 3/(d + 2) of it; structured ones less, with the bias (9.3)."""
    d, gamma = 16, 0.5
    step = np.random.default_rng(0).standard_normal(d)
    step *= 0.5 / np.linalg.norm(step)
    kappa, small = exact("rbf", step, gamma), 2 * gamma * (step**2).sum()
    errors = {
        sampling: kernel_estimates("rbf", sampling, d, gamma, step) - kappa
        for sampling in ("iid", "orthogonal", "structured")
    }
    iid = (1 - kappa**2) ** 2 / (2 * d)
    variances = {sampling: error.var() for sampling, error in errors.items()}
    assert abs(variances["iid"] / iid - 1) < 0.25
    assert abs(variances["orthogonal"] / (iid * 3 / (d + 2)) - 1) < 0.3
    assert variances["structured"] < 0.5 * variances["orthogonal"]
    for sampling in ("iid", "orthogonal"):
        assert abs(errors[sampling].mean()) < 5 * np.sqrt(variances[sampling] / DRAWS)
    bias = -(small**2) / (4 * (d + 2))
    assert_allclose(errors["structured"].mean(), bias, rtol=0.15)


def uniform(counts, expected):
    """Decide by Pearson's chi-square whether counts follow the expected counts."""
    statistic = ((counts - expected) ** 2 / expected).sum()
    return chi2.sf(statistic, len(counts) - 1) > 1e-6


def seeds(X, k, draws, weight=None, init="k-means++"):
    """Yield the numbers of k rows that starts draw from increasing numbers X."""
    rows = column_rows(X[:, None], weight, 1)
    for seed in range(draws):
        found = starts.seed_centroids(rows, X[:, None], k, init, np.random.RandomState(seed))
        yield np.searchsorted(X, found[:, 0])


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_the_first_centroid_is_uniform_or_follows_the_weights(init):
    X, weight = np.arange(6.0) ** 2, np.array([1.0, 2, 3, 1, 2, 3])
    for given in (None, weight):
        share = np.ones(6) / 6 if given is None else weight / weight.sum()
        counts = np.zeros(6)
        for row, *_ in seeds(X, 1, DRAWS, given, init):
            counts[row] += 1
        assert uniform(counts, DRAWS * share)
        assert not uniform(counts, DRAWS * np.roll(weight, 1) / 12)


@pytest.mark.promise(like="test_independent_frequencies_have_the_mean_and_the_variance_derived")
def test_the_second_centroid_of_k_means_plus_plus_follows_the_squared_distances():
    """Greedy k-means++ draws 2 + log 2 candidates, in proportion to D^2, and keeps the best: the
    probability of each row follows from that of its rank."""
    X = np.array([0.0, 2.0, 3.0, 7.0])  # no two candidates are equally good
    squares = (X[:, None] - X) ** 2
    expected = np.zeros((4, 4))
    for first in range(4):
        share = squares[first] / squares[first].sum()
        costs = np.minimum(squares, squares[first]).sum(axis=1)
        reached = 0.0
        for row in np.argsort(costs):  # the best of two draws is this row
            expected[first, row] = (1 - reached) ** 2 - (1 - reached - share[row]) ** 2
            reached += share[row]
    expected *= DRAWS * 3 / 4
    counts = np.zeros((4, 4))
    for pair in seeds(X, 2, 3 * DRAWS):
        counts[tuple(pair)] += 1
    frequent = expected > 5
    assert counts.diagonal().sum() == 0 and counts[~frequent].sum() < 30
    assert uniform(counts[frequent], expected[frequent])
    assert not uniform(counts[frequent], np.full(frequent.sum(), 3 * DRAWS / frequent.sum()))


@pytest.mark.exhaustive
def test_centroids_that_are_drawn_in_batches_have_the_distribution_of_single_draws(monkeypatch):
    """Each centroid is drawn in proportion to the squared distances from earlier centroids.

    The probability of a set of three of the five rows is the sum over the orders of its rows.
    """
    monkeypatch.setattr(starts, "MANY", 3)
    X = np.array([0.0, 1.0, 3.0, 7.0, 12.0])
    squares, expected = (X[:, None] - X) ** 2, {}
    for order in itertools.permutations(range(5), 3):
        left, probability = np.full(5, np.inf), 1 / 5
        for before, row in itertools.pairwise(order):
            left = np.minimum(left, squares[before])
            probability *= left[row] / left.sum()
        chosen = tuple(sorted(order))
        expected[chosen] = expected.get(chosen, 0) + probability
    counts = dict.fromkeys(expected, 0)
    for three in seeds(X, 3, 5 * DRAWS):
        counts[tuple(sorted(three))] += 1
    found = np.array([*counts.values()])
    assert uniform(found, 5 * DRAWS * np.array([*expected.values()]))
    assert not uniform(found, np.full(10, DRAWS / 2))


def test_far_rows_of_merged_starts_follow_their_weights():
    """And the squares of what they cost above the weighted mean of their cluster."""
    weight, labels = np.array([8.0, 1.0, 1.0, 3.0, 0.0, 1.0]), np.array([0, 0, 0, 1, 1, 1])
    nearest, drawn = np.array([1.0, 2.0, 6.0, 4.0, 90.0, 0.0]), []
    random = SimpleNamespace(choice=lambda n, count, replace, p: drawn.append((count, p)) or [0])
    starts._far_rows(weight, labels, nearest, 9, random)
    means = np.array([16 / 10, 12 / 4])
    costs = weight * np.maximum(nearest - means[labels], 0) ** 2
    [(count, p)] = drawn
    assert count == 3
    assert_allclose(p, costs / costs.sum())


def test_samples_are_uniform_and_those_with_weights_follow_them():
    n, size, draws = 40, 10, 500
    X, weight = np.arange(float(n))[:, None], np.repeat([1.0, 3.0], n // 2)
    plain, first, estimates = np.zeros(n), np.zeros(n), np.zeros(n)
    for seed in range(draws):
        (rows,), p = sample_tables([X], ones(len(X)), Sampling(size, None, seed, 1)).some()
        assert (p == 1).all()
        plain[rows[:, 0].astype(int)] += 1
        heavy = sample_tables([X], weight, Sampling(size, None, seed, 1))
        first[heavy.sample.first(1)[0]] += 1
        (rows,), p = heavy.some()
        estimates[rows[:, 0].astype(int)] += p
    assert plain.sum() == draws * size
    assert uniform(plain, np.full(n, draws * size / n))
    assert uniform(first, draws * weight / weight.sum())
    assert not uniform(first, np.full(n, draws / n))
    assert_allclose(estimates / draws, weight, rtol=0.35)  # each is unbiased
    assert_allclose(estimates.sum() / draws, weight.sum(), rtol=0.05)


@pytest.mark.promise("Determinism", "An integer `random_state` fixes every random draw.")
@pytest.mark.parametrize(
    "cls", [getattr(rffpk, name) for name in rffpk.__all__ if hasattr(getattr(rffpk, name), "fit")]
)
def test_the_random_state_fixes_everything(cls):
    X = np.random.default_rng(0).standard_normal((60, 4))
    parameters = {"n_frequencies": 32} if "n_frequencies" in cls().get_params() else {}
    found = []
    for number, seed in enumerate((3, np.random.RandomState(3))):
        np.random.seed(number)  # noqa: NPY002  the global state has no influence
        found.append(cls(random_state=seed, **parameters).fit(X).transform(X))
    assert_array_equal(*found)


@pytest.mark.promise(
    "Determinism",
    "Instruction sets differ in rounding alone; labels of separated clusters are the same.",
)
def test_labels_of_separated_clusters_are_those_of_every_instruction_set(isa, dtype):
    random = np.random.default_rng(0)
    y = np.arange(400) % 5
    X = (10 * random.standard_normal((5, 7))[y] + random.standard_normal((400, 7))).astype(dtype)
    for cls in (rffpk.PowerKMeans, rffpk.RFFKernelPowerKMeans, rffpk.DiffusionPowerKMeans):
        labels = cls(5, random_state=0).fit(X).labels_
        pairs = np.unique(np.stack([labels, y]), axis=1)
        assert pairs.shape[1] == 5 == len(np.unique(labels))


@pytest.fixture(scope="module")
def normal_rows():
    """Draw rows without clusters, so that borders between centroids cross dense regions."""
    return np.random.default_rng(0).standard_normal((3000, 8))


def at_level(level, function):
    before = _core.use_isa(level)
    try:
        return function()
    finally:
        _core.use_isa(before)


@pytest.mark.promise(
    "Determinism",
    "Where clusters are not separated, the objective of a pass differs between instruction "
    "sets by at most 10⁻¹² of itself in float64 and 10⁻⁶ in float32, and at most one label in "
    "a thousand. Whole fits may end at other local optima, whose objectives differ no more "
    "than those of other seeds.",
)
@pytest.mark.parametrize("rule, s", [(_core.POWER, -3.0), (_core.HARD, 0.0)])
def test_a_pass_differs_between_instruction_sets_by_rounding(isa, dtype, rule, s, normal_rows):
    random, X = np.random.default_rng(1), normal_rows.astype(dtype)
    omega = random.standard_normal((8, 32)).astype(dtype)
    theta = (random.standard_normal((6, 64)) / 6).astype(dtype)
    given = [X], [omega], [np.zeros(64, dtype)], theta, np.ones(1), None, rule, s, 1

    def run():
        labels = np.empty(3000, np.int32)
        sums = _core.fused_pass(*given, labels=labels)
        return sums[3:], labels

    sums, labels = run()
    plain, plain_labels = at_level("plain", run)
    tolerance = 1e-12 if dtype == np.float64 else 1e-6
    for found, expected in zip(sums, plain):
        assert_allclose(found, expected, rtol=tolerance)
    assert (labels != plain_labels).sum() <= 3


@pytest.mark.promise(like="test_a_pass_differs_between_instruction_sets_by_rounding")
@pytest.mark.few(1)
@pytest.mark.parametrize("cls", [rffpk.PowerKMeans, rffpk.RFFKernelPowerKMeans])
def test_fits_differ_between_instruction_sets_by_less_than_between_seeds(
    isa, dtype, cls, normal_rows
):
    """Rounding may lead to another local optimum, to which other seeds lead, too."""
    X = normal_rows[:1000].astype(dtype)

    def inertia(seed):
        return cls(6, random_state=seed).fit(X).inertia_

    plain = at_level("plain", lambda: [inertia(seed) for seed in range(6)])
    assert abs(inertia(0) - plain[0]) <= max(plain) - min(plain)
