"""The choice of the number of clusters."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import davies_bouldin_score, silhouette_score

from rffpk import (
    DiffusionPowerKMeans,
    FuzzyCMeans,
    KernelPowerKMeans,
    PowerKMeans,
    RFFKernelPowerKMeans,
    select_n_clusters,
    xie_beni_index,
)

X, Y = make_blobs(400, centers=5, cluster_std=0.6, random_state=3)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "estimator", [None, FuzzyCMeans(), RFFKernelPowerKMeans(), DiffusionPowerKMeans()]
)
def test_five_blobs_are_five_clusters(estimator):
    selection = select_n_clusters(X, range(2, 9), estimator=estimator, random_state=0)
    assert selection.n_clusters == 5
    assert_array_equal(selection.tried, range(2, 9))
    stable = selection.indices["stability"]
    assert stable[3] > 0.99 and stable[4:].max() < stable[3]
    assert (np.diff(selection.indices["inertia"][:4]) < 0).all()


def test_two_moons_are_two_clusters_of_diffusion_features():
    rows, _ = make_moons(500, noise=0.05, random_state=0)
    estimator = DiffusionPowerKMeans()
    assert (
        select_n_clusters(rows, [6, 2, 3, 2], estimator=estimator, random_state=0).n_clusters == 2
    )


def test_indices_are_those_of_the_fits():
    selection = select_n_clusters(X, [3, 4], random_state=0, criterion="davies_bouldin")
    seed = np.random.RandomState(0).randint(2**31 - 1)
    for i, k in enumerate([3, 4]):
        model = PowerKMeans(k, random_state=seed).fit(X)
        values = {name: each[i] for name, each in selection.indices.items()}
        assert values["inertia"] == model.inertia_
        assert values["silhouette"] == pytest.approx(silhouette_score(X, model.labels_))
        assert values["davies_bouldin"] == davies_bouldin_score(X, model.labels_)
        soft = model.predict_proba(X, s=-1.0)
        assert values["xie_beni"] == xie_beni_index(X, soft, model.cluster_centers_)
    best = selection.indices["davies_bouldin"].argmin()
    assert selection.n_clusters == [3, 4][best] and selection.criterion == "davies_bouldin"


def test_a_seed_fixes_the_result_and_the_estimator_is_not_changed():
    estimator = RFFKernelPowerKMeans(n_clusters=3, n_frequencies=32)
    first, second = (
        select_n_clusters(X, [4, 5], estimator=estimator, sample=200, random_state=1)
        for _ in range(2)
    )
    for name, values in first.indices.items():
        assert_array_equal(values, second.indices[name])
    assert estimator.n_clusters == 3 and not hasattr(estimator, "labels_")


def test_rows_without_any_number_of_clusters_that_was_tried_are_named():
    with pytest.warns(ConvergenceWarning, match="none of the numbers.* tried: X has 1 distinct"):
        selection = select_n_clusters(np.ones((20, 2)), [2, 3], random_state=0)
    assert selection.n_clusters == 2
    assert selection.indices["silhouette"].max() == -1
    assert not any(np.isnan(values).any() for values in selection.indices.values())


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"n_clusters": 3}, "n_clusters == 3, must be an iterable"),
        ({"n_clusters": []}, "n_clusters is empty"),
        ({"n_clusters": [1, 2]}, "n_clusters == 1"),
        ({"n_clusters": [2, 400]}, "n_clusters == 400"),
        ({"estimator": KernelPowerKMeans()}, "estimator == KernelPowerKMeans"),
        ({"estimator": PowerKMeans(init=np.ones((3, 2)))}, "estimator has initial centroids"),
        ({"criterion": "score"}, "criterion == 'score'"),
        ({"n_resamples": 1}, "n_resamples == 1"),
        ({"sample": 1}, "sample == 1"),
        ({"X": np.full((4, 2), np.nan)}, "^X contains NaN"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        select_n_clusters(**{"X": X} | arguments)


@pytest.mark.parametrize("criterion", ["silhouette", "stability"])
def test_numbers_of_clusters_that_rows_do_not_have_are_not_chosen(criterion):
    rows = np.repeat(np.eye(3), 50, axis=0)
    assert select_n_clusters(rows, criterion=criterion, random_state=0).n_clusters == 3


@pytest.mark.parametrize("seed", range(3))
def test_a_cluster_of_one_row_among_many_has_a_silhouette(seed):
    rows = np.random.RandomState(0).randn(5000, 2)
    rows[17] = 500.0
    selection = select_n_clusters(rows, [2], random_state=seed)
    assert selection.indices["silhouette"][0] > 0.9
