import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.spatial.distance import pdist
from sklearn.datasets import load_iris
from sklearn.metrics import normalized_mutual_info_score

from rffpk import (
    FuzzyCMeans,
    PowerKMeans,
    clustering_accuracy,
    fuzzy_silhouette,
    partition_coefficient,
    partition_entropy,
    purity_score,
    repeated_scores,
    xie_beni_index,
)

labelings = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=60)


@given(labelings)
def test_accuracy_is_that_of_the_best_permutation(pair):
    y, labels = np.transpose(pair)
    expected = oracles.best_matching_accuracy(y, labels)
    assert clustering_accuracy(y, labels) == pytest.approx(expected)
    assert expected <= purity_score(y, labels) + 1e-12


def test_purity_by_hand_and_strings():
    assert purity_score(["a", "a", "b", "b", "b"], [0, 0, 0, 1, 1]) == pytest.approx(4 / 5)
    assert purity_score([0, 0, 1], [0, 1, 2]) == 1
    assert clustering_accuracy([0, 0, 1], [0, 1, 2]) == pytest.approx(2 / 3)


def test_repeated_scores_are_those_of_fits_with_their_seeds():
    X, y = load_iris(return_X_y=True)
    scores = repeated_scores(PowerKMeans(3, init="random"), X, y, 3, random_state=5)
    for i in range(3):
        labels = PowerKMeans(3, init="random", random_state=5 + i).fit(X).labels_
        assert scores.acc[i] == clustering_accuracy(y, labels)
        assert scores.nmi[i] == normalized_mutual_info_score(y, labels)
        assert scores.purity[i] == purity_score(y, labels)
    assert (scores.seconds > 0).all()
    assert str(scores).startswith(
        f"ACC {100 * scores.acc.mean():.1f} ± {100 * scores.acc.std():.1f}"
    )
    with pytest.raises(ValueError, match="^n_repeats=0"):
        repeated_scores(PowerKMeans(3), X, y, 0)
    for rows in (X, csr_array(X), [X, X]):  # before any fit
        with pytest.raises(ValueError, match="^labels_true has 149 labels, and X has 150 rows"):
            repeated_scores(None, rows, y[:-1])
    with pytest.raises(ValueError, match="^labels_true: is not one-dimensional"):
        repeated_scores(None, X, np.c_[y, y])
    for bad in ([], None, PowerKMeans, "x"):
        with pytest.raises(TypeError, match="^estimator is .*must be a clusterer. Pass one"):
            repeated_scores(bad, X, y)


VECTORS, RAGGED = np.empty(2, dtype=object), np.empty(2, dtype=object)
VECTORS[:], RAGGED[:] = [np.arange(2), np.arange(1, 3)], [[1, 2], [1, 3, 4]]
NO_LABELS = [
    *((labels, "is not one-dimensional. Pass one") for labels in (
        VECTORS, [*VECTORS], RAGGED, [*RAGGED], np.zeros((2, 2)), [[1.0, 0.0], [1.0]], [[["a"]]])),
    ([0, np.nan], "1 of 2 samples have no label"),
    (np.array([0, None], dtype=object), "1 of 2 samples have no label"),
    (None, ""),
]  # fmt: skip


@pytest.mark.parametrize("score", [clustering_accuracy, purity_score])
def test_bad_labels_are_refused_by_name(score):
    for labels, message in NO_LABELS:
        with pytest.raises((ValueError, TypeError), match=f"^labels_true:? ?{message}"):
            score(labels, [0, 1])
        with pytest.raises((ValueError, TypeError), match=f"^labels_pred:? ?{message}"):
            score([0, 1], labels)
    with pytest.raises(ValueError, match="labels_pred has 1 labels"):
        score([0, 1], [0])
    with pytest.raises(ValueError, match="empty"):
        score([], [])
    assert score(np.array(["a", "bc", "d"], dtype=object), [0, 1, 2]) == 1.0


# ---- memberships ---------------------------------------------------------------------------------


def random_memberships(seed, n, k):
    random = np.random.RandomState(seed)
    return random.randn(n, 3), random.dirichlet(np.ones(k), n), random.randn(k, 3)


@given(st.integers(0, 99), st.integers(4, 30), st.integers(2, 5), st.floats(1, 4))
def test_indices_of_memberships_by_their_definitions(seed, n, k, m):
    X, u, centers = random_memberships(seed, n, k)
    each = [(i, j) for i in range(n) for j in range(k)]
    assert partition_coefficient(u) == pytest.approx(sum(u[i, j] ** 2 for i, j in each) / n)
    entropy = -sum(u[i, j] * np.log(u[i, j]) for i, j in each if u[i, j] > 0) / n
    assert partition_entropy(u) == pytest.approx(entropy)
    cost = sum(u[i, j] ** m * ((X[i] - centers[j]) ** 2).sum() for i, j in each)
    gaps = [((centers[a] - centers[b]) ** 2).sum() for a in range(k) for b in range(a)]
    assert xie_beni_index(X, u, centers, m=m) == pytest.approx(cost / (n * min(gaps)))


def silhouette_by_hand(X, labels, i):
    """Compute (b - a) / max(a, b), zero for the only row of a cluster."""
    distances = np.linalg.norm(X - X[i], axis=1)
    own = (labels == labels[i]) & (np.arange(len(X)) != i)
    if not own.any():
        return 0.0
    others = set(labels) - {labels[i]}
    a, b = distances[own].mean(), min(distances[labels == j].mean() for j in others)
    return (b - a) / max(a, b)


@given(st.integers(0, 99), st.integers(6, 20), st.floats(0, 3))
def test_fuzzy_silhouette_by_its_definition(seed, n, alpha):
    X, u, _ = random_memberships(seed, n, 3)
    u[:2] = [[1, 0, 0], [0, 1, 0]]  # two clusters at least
    labels, ordered = u.argmax(axis=1), np.sort(u, axis=1)
    weights = (ordered[:, 2] - ordered[:, 1]) ** alpha
    expected = sum(w * silhouette_by_hand(X, labels, i) for i, w in enumerate(weights))
    expected /= weights.sum()
    assert fuzzy_silhouette(X, u, alpha=alpha) == pytest.approx(expected)


def test_hard_memberships_have_the_extreme_values():
    hard = np.eye(3)[[0, 1, 2, 0]]
    assert partition_coefficient(hard) == 1 and partition_entropy(hard) == 0
    equal = np.full((4, 3), 1 / 3)
    assert partition_coefficient(equal) == pytest.approx(1 / 3)
    assert partition_entropy(equal) == pytest.approx(np.log(3))
    assert xie_beni_index(np.ones((4, 1)), hard, np.ones((3, 1))) == np.inf


@pytest.mark.parametrize("n, k", [(60, 2), (200, 4)])
def test_memberships_of_a_fitted_model_are_accepted(n, k):
    X = np.random.RandomState(0).randn(n, 2).astype(np.float32)
    model = FuzzyCMeans(k, random_state=0).fit(X)
    u = model.predict_proba(X)
    assert 1 / k < partition_coefficient(u) < 1
    assert 0 < partition_entropy(u) < np.log(k)
    # sum_ij u_ij^2 d_ij is the objective of fuzzy c-means with m = 2
    index = xie_beni_index(X, u, model.cluster_centers_)
    gap = pdist(model.cluster_centers_).min() ** 2
    assert index == pytest.approx(model.objective_ / (n * gap), rel=1e-4)
    assert -1 <= fuzzy_silhouette(X, u) <= 1


NOISY = np.vstack([np.eye(2), [[0, 0], [0.5, 0.5]]])
NOISE = "^memberships: 1 rows are zero, .* noise .* Leave"


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: partition_coefficient(NOISY), NOISE),
        (lambda: partition_entropy(NOISY), NOISE),
        (lambda: xie_beni_index(np.ones((4, 1)), NOISY, np.ones((2, 1))), NOISE),
        (lambda: fuzzy_silhouette(np.ones((4, 1)), NOISY), NOISE),
        (lambda: partition_coefficient([[0.5, 0.2]]), "memberships must be >= 0"),
        (lambda: partition_entropy([[1.5, -0.5]]), "memberships must be >= 0"),
        (lambda: partition_entropy([[np.nan, 1.0]]), "memberships: contains NaN"),
        (lambda: xie_beni_index(np.ones((2, 1)), np.eye(2), [[1.0]]), "minimum of 2"),
        (lambda: xie_beni_index(np.ones((2, 1)), np.eye(2), np.ones((2, 2))), "centers has shape"),
        (lambda: xie_beni_index(np.ones((3, 1)), np.eye(2), np.eye(2)), "memberships has 2 rows"),
        (lambda: xie_beni_index(np.eye(2), np.eye(2), np.eye(2), m=0.5), "m=0.5"),
        (lambda: fuzzy_silhouette(np.eye(2), [[1, 0], [1, 0]]), "at least two"),
        (lambda: fuzzy_silhouette(np.eye(2), np.eye(2), alpha=-1), "alpha=-1"),
    ],
)
def test_bad_memberships_are_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("bad", [[[1.0, 0.0], [1.0]], None, [[["a"]]]], ids=str)
def test_errors_name_the_argument(bad):
    for call, name in (
        (lambda: partition_entropy(bad), "memberships"),
        (lambda: xie_beni_index(bad, np.eye(2), np.eye(2)), "X"),
        (lambda: xie_beni_index(np.eye(2), np.eye(2), bad), "centers"),
    ):
        with pytest.raises((ValueError, TypeError), match=rf"\b{name}\b"):
            call()


@pytest.mark.parametrize("scale", [2.0**-1000, 1e-160, 1e160, 2.0**1000])
def test_the_scale_of_the_rows_changes_no_index(scale):
    random = np.random.default_rng(0)
    X, u = random.standard_normal((60, 4)), random.dirichlet([1, 1], 60)
    found = xie_beni_index(X * scale, u, X[:2] * scale), fuzzy_silhouette(X * scale, u)
    expected = xie_beni_index(X, u, X[:2]), fuzzy_silhouette(X, u)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("offset", [1e6, 1e8, [0, 1e9]])
def test_an_offset_does_not_change_the_fuzzy_silhouette(offset):
    random = np.random.default_rng(0)
    X = np.vstack([random.normal(c, 1, (20, 2)) for c in (-5, 0, 5)])
    u = random.dirichlet([0.2] * 3, len(X))
    assert fuzzy_silhouette(X + offset, u) == pytest.approx(fuzzy_silhouette(X, u), abs=1e-6)
