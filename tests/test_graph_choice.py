"""The choice among graphs, whitenings and scalings of features: the medoid of their clusters."""

import numpy as np
import pytest
from contracts.core import sparse_rows
from contracts.graph import graph_choice
from contracts.passes import ones
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

from rffpk import DiffusionMap, DiffusionPowerKMeans

medoid = graph_choice.medoid


@pytest.fixture
def chosen(monkeypatch):
    """Make fits take one of the options."""
    return lambda i: monkeypatch.setattr(
        graph_choice, "medoid", lambda options, clusters: medoid([options[i]], clusters)
    )


def partitions(*counts):
    """Draw a partition of 200 rows for each count, and repeat it so many times."""
    random = np.random.default_rng(0)
    drawn = [random.integers(3, size=200) for _ in counts]
    return [labels for labels, count in zip(drawn, counts) for _ in range(count)]


def test_agreements_follow_the_definition():
    options = [*graph_choice.OPTIONS[:4], graph_choice.OPTIONS[7]]
    labels = partitions(1, 1, 1, 1, 1)
    labels[3][:150] = labels[1][:150]
    found = graph_choice.medoid(options, dict(zip(options, labels)).get)
    weights = np.array([1, 1, 0.75, 1, 0.75])
    index = [[adjusted_rand_score(a, b) for a in labels] for b in labels]
    assert_allclose(found.agreements, np.array(index) @ weights / weights.sum())
    assert found.best == 1 and found.options == options


def test_three_partitions_that_agree_end_the_trials_and_two_do_not():
    def trial(counts):
        known, asked = dict(zip(graph_choice.OPTIONS, partitions(*counts))), []
        taken = medoid(graph_choice.OPTIONS, lambda each: asked.append(each) or known[each])
        return taken, asked

    taken, asked = trial((1, 3, 5))
    assert taken.best == 1 and asked == [*graph_choice.OPTIONS[:4]]
    assert trial((2, 2, 2, 2, 1))[1] == [*graph_choice.OPTIONS]


def test_four_whitened_copies_do_not_outvote_what_partly_agrees():
    whitened = [each.whitening is not None for each in graph_choice.OPTIONS]
    own, copies = partitions(1, 1)
    labels = [np.where(np.arange(200) < 30 * i, (own + 1) % 3, own) for i in range(9)]
    labels = [copies.copy() if each else mine for each, mine in zip(whitened, labels)]
    for i, each in enumerate(labels):  # none agrees so well that it ends the trials
        each[5 * i : 5 * i + 4] = i % 3
    known = dict(zip(graph_choice.OPTIONS, labels))
    assert not whitened[medoid(graph_choice.OPTIONS, known.get).best]


def test_counts_are_not_clustered_by_copies_of_one_whitening():
    random = np.random.default_rng(2)
    rates, y = random.gamma(0.3, 2, (3, 8)), random.integers(0, 3, 1500)
    X = random.poisson(rates[y]).astype(float)
    model = DiffusionPowerKMeans(3, random_state=0).fit(X)
    assert model.feature_map_.whitening_ is None
    assert adjusted_rand_score(y, model.labels_) > 0.5


@pytest.mark.parametrize("i", range(9))
def test_the_option_that_agrees_most_is_taken(i, chosen):
    chosen(i)
    X, _ = make_blobs(200, 5, centers=3, random_state=0)
    mapped = DiffusionPowerKMeans(3, random_state=0).fit(X).feature_map_
    option = graph_choice.OPTIONS[i]
    assert mapped.choices_ == [{**option._asdict(), "agreement": 1.0}]
    assert (mapped.time_ > 0) == (option != graph_choice.COLUMNS)
    if option != graph_choice.COLUMNS:
        default = DiffusionMap(whitening=None, random_state=0).fit(X).n_neighbors_
        assert mapped.n_neighbors_ == pytest.approx(option.neighbors * default, abs=1)
        lengths = np.linalg.norm(mapped.landmark_features_, axis=1)
        assert np.allclose(lengths, 1) == option.unit


def test_clusters_of_a_trial_are_those_of_k_means():
    """In dense and sparse rows, with weights."""
    y, random = np.arange(600) % 4, np.random.RandomState(0)
    X = 9.0 * np.eye(4, 3)[y] + random.standard_normal((600, 3))
    for rows in (X, sparse_rows(csr_array(X))):
        labels = graph_choice.searched_clusters(rows, ones(600), 4, 1, random)
        assert adjusted_rand_score(y, labels) == 1
    labels = graph_choice.searched_clusters(X, np.where(y == 0, 1e-6, 1.0), 3, 1, random)
    assert adjusted_rand_score(y[y > 0], labels[y > 0]) == 1


def test_directions_have_the_same_options():
    """Six directions in ten columns; lengths say nothing."""
    random = np.random.default_rng(0)
    y = np.arange(300) % 6
    X = 3 * np.eye(6, 10)[y] + random.standard_normal((300, 10)) / 2
    X *= random.uniform(0.1, 10, (300, 1))
    model = DiffusionPowerKMeans(6, metric="cosine", random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    tried = [[*each.values()][:3] for each in model.feature_map_.choices_[:3]]
    assert tried == [[*option] for option in graph_choice.OPTIONS[:3]]
    assert_array_equal(model.predict(X), model.labels_)
    if not model.feature_map_.time_:
        assert_array_equal(model.predict(3 * X), model.labels_)


@pytest.mark.parametrize("neighbors", [0, 1])
def test_directions_of_the_columns_are_clustered(neighbors, chosen):
    chosen(neighbors)
    random, y = np.random.default_rng(0), np.arange(300) % 3
    X = 4 * np.eye(3, 6)[y] + random.standard_normal((300, 6)) / 2
    X *= random.uniform(1, 9, (300, 1))
    model = DiffusionPowerKMeans(3, metric="cosine", random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert_array_equal(model.predict(X * 5), model.labels_)
    if not neighbors:
        assert_allclose(model.feature_map_.transform(X), normalize(X))
        assert_array_equal(model.predict(csr_array(X)), model.labels_)
