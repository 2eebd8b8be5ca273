"""Warnings of fits that cannot end in as many clusters as asked for."""

import re
import warnings

import numpy as np
import pytest
from conventions import ip_rff_mkpkm
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

import rffpk

RANDOM = np.random.default_rng(0)
NORMAL = RANDOM.standard_normal((120, 40))
TRIPLES = RANDOM.permutation(np.repeat(RANDOM.standard_normal((3, 4)), 20, axis=0))
LINE = RANDOM.standard_normal((60, 1))
SQUARE = RANDOM.standard_normal((60, 60))
INDEFINITE = SQUARE + SQUARE.T
INDEFINITE += np.diag(1 - np.diag(INDEFINITE))
ISLANDS = np.vstack([RANDOM.normal(c, 0.05, (20, 2)) for c in ((0, 0), (9, 0), (0, 9), (9, 9))])
FEATURES = [
    rffpk.PowerKMeans(5), rffpk.FuzzyCMeans(5), rffpk.RFFKernelPowerKMeans(5, n_frequencies=128),
    ip_rff_mkpkm(5, n_frequencies=128),
]  # fmt: skip
DIFFUSION = [
    rffpk.DiffusionPowerKMeans(5, **more) for more in ({}, {"n_landmarks": 50, "n_neighbors": 8})
]
EXACT = [
    rffpk.KernelKMeans(5), rffpk.KernelPowerKMeans(5), rffpk.MultiKernelPowerKMeans(5),
    rffpk.RMKKM(5),
]  # fmt: skip
EIGEN = [
    rffpk.AverageMKKM(5), rffpk.MKKM(5), rffpk.MKKMMR(5), rffpk.LKAM(5, n_neighbors=1.0),
    rffpk.ONKC(5), rffpk.MVCLFA(5), rffpk.LMKKM(5), rffpk.SimpleMKKM(5),
]  # fmt: skip
FUSED = [*EIGEN, rffpk.SMKC(5), rffpk.FAMKKM(5)]
LANDMARKS = [clone(model).set_params(n_landmarks=40) for model in EIGEN]
ALL = [
    *FEATURES, *DIFFUSION, *EXACT, *FUSED, *LANDMARKS, rffpk.NystroemKernelKMeans(5),
    rffpk.CoregSC(5), rffpk.CoregSC(5, scheme="centroid"),
]  # fmt: skip


def soft(model):
    """Return the model with memberships at its end that are as soft as they can be."""
    given = {"annealing": rffpk.Annealing(end=-0.2)}
    return clone(model).set_params(**{"m": 6.0} if isinstance(model, rffpk.FuzzyCMeans) else given)


def with_kernel(model, kernel):
    if "kernels" in model.get_params():
        kernels = kernel if kernel == "precomputed" else [(kernel, {})]
        return clone(model).set_params(kernels=kernels)
    return clone(model).set_params(kernel=kernel)


# The situation, the models that can come into it, their rows, and what the warning says.
CASES = {
    "three distinct rows": (ALL, TRIPLES, r"\d of n_clusters=5 .*: X has 3 distinct rows; .* 3"),
    "equal rows": (ALL, np.ones((40, 3)), "1 of n_clusters=5 .*: X has 1 distinct row; .* 1"),
    "four of five rows": (
        [m for m in ALL if not isinstance(m, rffpk.FuzzyCMeans)],
        np.array([[0.0], [0.0], [1.0], [2.0], [5.0]]),
        r"\d of n_clusters=5 clusters have rows: X has 4 distinct rows; .* 4",
    ),
    "rows of zeros": (ALL, np.zeros((40, 3)), "1 of n_clusters=5 .*: X has 1 distinct row; .* 1"),
    "merged": (
        [*map(soft, [*FEATURES, *EXACT[1:3]])], NORMAL,
        r"to 1/k = 0\.2, .* for (exponents|fuzzifiers) .* take a (lower annealing.end|smaller m)",
    ),
    "partly merged": (
        [rffpk.DiffusionPowerKMeans(5, n_neighbors=20, whitening=None,
                                    annealing=rffpk.Annealing(end=-1.0))], NORMAL,
        "2 of n_clusters=5 .*: centroids merged; take fewer clusters or a lower annealing.end",
    ),
    "rank one": (
        [with_kernel(model, "linear") for model in [*FUSED, *LANDMARKS]], LINE,
        "the kernels have rank 1, less than n_clusters=5, .*; take n_clusters <= 1, or kernels of",
    ),
    "indefinite": (
        [with_kernel(model, "precomputed") for model in [*EXACT, *EIGEN]], INDEFINITE,
        "kernel 0 is indefinite.* Take a positive semidefinite kernel, or add 20.* diagonal",
    ),
    "disconnected": (
        [*(m.set_params(n_clusters=2, whitening=None) for m in map(clone, DIFFUSION)),
         rffpk.DiffusionMap(), rffpk.DiffusionMap(n_landmarks=50)], ISLANDS,
        "has 4 connected components.* increase n_neighbors",
    ),
    "a disconnected view": (
        [ip_rff_mkpkm(2, kernels=["diffusion"])], [ISLANDS],
        "neighbor graph has 4 connected components.* increase n_neighbors",
    ),
}  # fmt: skip
TABLE = [(case, model) for case, (models, _, _) in CASES.items() for model in models]


def warnings_of(model, X):
    with warnings.catch_warnings(record=True, action="always") as caught:
        clone(model).set_params(random_state=0).fit(X)
    return [str(warning.message) for warning in caught]


@pytest.mark.promise(
    "Input",
    "A fit that ends with fewer clusters than asked for warns once, with the cause and the remedy.",
)
@pytest.mark.parametrize("case, model", TABLE, ids=str)
def test_a_degenerate_end_is_named_once(case, model):
    _, X, expected = CASES[case]
    [message] = warnings_of(model, X)
    assert re.search(expected, message), message


def test_every_clusterer_is_in_the_table():
    named = {type(model) for _, model in TABLE}
    clusterers = {c for c in map(rffpk.__dict__.get, rffpk.__all__) if hasattr(c, "fit_predict")}
    assert clusterers <= named


@pytest.mark.parametrize("model", ALL, ids=str)
def test_ends_that_are_as_they_should_be_are_silent(model):
    pair = np.array([[0.0, 1.0], [1.0, 0.0]])
    blobs = np.vstack([RANDOM.normal(c, 1.0, (30, 3)) for c in (0, 4, 8)])
    for k, rows in ((2, pair), (2, np.repeat(pair, 10, axis=0)), (3, blobs)):
        assert warnings_of(clone(model).set_params(n_clusters=k), rows) == []


def test_flat_memberships_are_named_where_centroids_differ(digits):
    """Annealed to -1 the two centroids of digits are not the same yet, all memberships 0.5."""
    X = digits[0][:500]
    model = rffpk.PowerKMeans(2, annealing=rffpk.Annealing(end=-1.0), random_state=0)
    with pytest.warns(ConvergenceWarning, match="memberships to 1/k = 0.5, a state that is stable"):
        model.fit(X)
    assert np.abs(model.predict_proba(X) - 0.5).max() < 0.01
    assert warnings_of(rffpk.PowerKMeans(2, annealing=rffpk.Annealing(end=-20.0)), X) == []


@pytest.mark.parametrize("metric, copies", [("cosine", 4), ("euclidean", 100)])
def test_a_row_as_far_from_all_centroids_says_nothing_of_others(metric, copies):
    """It has the whole objective and memberships of 1/k; the other rows' centroids are apart."""
    X = np.vstack([np.tile(np.eye(3), (copies, 1)), np.zeros((1, 3))])
    model = rffpk.FuzzyCMeans(3, metric=metric)
    assert warnings_of(model, X) == []
    assert model.set_params(random_state=0).fit(X).predict_proba(X[:-1]).max(axis=1).min() > 0.99


@pytest.mark.parametrize("model", [
    rffpk.PowerKMeans(annealing=rffpk.Annealing(swaps=0, start=-300.0)), rffpk.FuzzyCMeans(),
], ids=str)  # fmt: skip
def test_near_clusters_beside_a_wide_one_are_clusters(model):
    """Their squared distance is 1e-8 of the mean cost of a row."""
    wide = 1e7 + 1e4 * np.random.default_rng(0).standard_normal(300)
    X = np.r_[np.zeros(50), np.ones(50), wide][:, None]
    model = clone(model).set_params(n_clusters=3, init=[[0.0], [1.0], [1e7]], n_init=1)
    assert warnings_of(model, X) == []
    assert [*np.bincount(model.fit(X).labels_)] == [50, 50, 300]


def test_rows_without_a_weight_and_noise_are_no_distinct_rows():
    X, p = np.vstack([TRIPLES, [[9.0] * 4]]), np.r_[np.ones(len(TRIPLES)), 0.0]
    said = "X has 3 distinct rows"
    for model in (rffpk.PowerKMeans(4), rffpk.KernelKMeans(4), rffpk.MKKM(4)):
        with pytest.warns(ConvergenceWarning, match=f"{said} of positive weight; .* <= 3"):
            model.set_params(random_state=0).fit(X, sample_weight=p)
    X = np.vstack([TRIPLES, [[100.0] * 4, [-100.0] * 4]])
    with pytest.warns(ConvergenceWarning, match=f"{said} that are not noise; .* 3"):
        rffpk.PowerKMeans(4, noise=2.5 / 62, random_state=0).fit(X)


@pytest.mark.parametrize("cls", [rffpk.PowerKMeans, rffpk.FuzzyCMeans])
def test_rows_with_one_direction_are_equal_up_to_rounding(cls, dtype):
    """They have one label, so that the warning says what is true of the labels."""
    model = cls(3, metric="cosine", random_state=0)
    X = np.outer(np.arange(1, 21), [1.0, 2.0]).astype(dtype)
    [message] = warnings_of(model, X)
    assert message.startswith("1 of n_clusters=3 clusters have rows: X scaled to length one has 1 ")
    lengths = np.random.default_rng(0).uniform(0.1, 3.0, 90)
    for direction in ([1.0], [0.3, -1.0], [0.1, -0.1, 0.6, 0.1, -0.5]):
        X = np.outer(lengths, direction).astype(dtype)
        [message] = warnings_of(model, X)
        assert message.startswith("1 of n_clusters=3 clusters have rows: ")
        labels = model.fit(X).labels_
        assert len({*labels}) == 1
        assert_array_equal(model.predict(X), labels)


def test_a_map_with_equal_rows_is_not_called_x():
    [message] = warnings_of(rffpk.DiffusionPowerKMeans(3), np.repeat(np.eye(2), 9, axis=0))
    assert "X has 2 distinct rows" in message and "map" not in message
    parallel = np.outer(np.arange(1, 21), [1.0, 2.0])
    [message] = warnings_of(rffpk.DiffusionPowerKMeans(2, metric="cosine"), parallel)
    assert "the diffusion map of X has 1 distinct row;" in message


def test_equal_rows_with_weights_are_refused_by_no_class():
    """Their variance is a rounding error, with weights as without; so is the mean squared distance
    of their features, which is below float32 at times."""
    for model in (rffpk.RFFKernelPowerKMeans(1), rffpk.KernelPowerKMeans(1), rffpk.MKKM(1)):
        model.set_params(random_state=0)
        for n, value in [(3, 1.7), (7, 0.1), (14, 1.7), (20, 3e5)]:
            for p in (np.ones(n), np.r_[1e-3, np.ones(n - 1)]):
                assert model.fit(np.full((n, 3), value), sample_weight=p).inertia_ < 1e-9
    model = rffpk.RFFMultiKernelPowerKMeans(2, typicality="auto", n_frequencies=32)
    for n, value in [(3, 1.0), (7, 0.1)]:
        for seed in range(5):
            with pytest.warns(ConvergenceWarning, match="X has 1 distinct row;"):
                model.set_params(random_state=seed).fit([np.full((n, 2), value)])
            assert_array_equal(model.eta_, 1.0)


def test_warnings_of_several_graphs_name_their_views():
    X = make_blobs(300, 3, centers=4, cluster_std=0.5, random_state=1)[0]
    said = warnings_of(rffpk.RFFMultiKernelPowerKMeans(2), [X, X[:, :2]])
    named = [text.split(" has ")[0] for text in said if text.startswith("The neighbor graph")]
    assert len(named) == len({*named}) > 2
    assert all(any(f" of view {i}" in name for name in named) for i in (0, 1))
    assert not any(" of view 2" in name for name in named)
