"""Nested partitions: Ward's tree of the clusters and its cuts."""

import pickle
import tracemalloc

import numpy as np
import pytest
from contracts.plan import tree
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import is_monotonic, is_valid_linkage, linkage
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError

import rffpk
from rffpk import _core, _reference

X = make_blobs(150, 4, centers=6, cluster_std=2.0, random_state=0)[0]
CLASSES = [
    rffpk.PowerKMeans, rffpk.FuzzyCMeans, rffpk.RFFKernelPowerKMeans, rffpk.DiffusionPowerKMeans,
    rffpk.RFFMultiKernelPowerKMeans, rffpk.KernelKMeans, rffpk.KernelPowerKMeans,
    rffpk.MultiKernelPowerKMeans, rffpk.RMKKM, rffpk.NystroemKernelKMeans, rffpk.MKKM, rffpk.SMKC,
]  # fmt: skip


def squares_of(points):
    return squareform(pdist(points, "sqeuclidean"))


@pytest.mark.promise(like="test_cuts_are_nested_and_begin_with_the_labels")
@pytest.mark.parametrize("k", [1, 2, 3, 40, pytest.param(4000, marks=pytest.mark.exhaustive)])
def test_the_tree_is_that_of_scipy(k):
    points = np.random.RandomState(k).randn(k, 3)
    found = tree.ward(squares_of(points) if k > 1 else np.zeros((1, 1)), np.ones(k))
    assert found.shape == (k - 1, 4)
    if k > 1:
        heights = linkage(points, "ward")[:, 2:] if k > 40 else linkage(points, "ward")
        assert_allclose(found[:, -heights.shape[1] :], heights, rtol=1e-12 if k <= 40 else 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_mergers_are_those_of_the_twin(seed):
    """Also of gaps that are not symmetric to the last bit."""
    random = np.random.RandomState(seed)
    points = random.randn(random.randint(1, 40), 3).round(seed % 4)  # with ties
    given = cdist(points, points, "sqeuclidean"), random.uniform(0.01, 1, len(points))
    rounded = 1 + np.finfo(float).eps * random.randint(0, 3, (9, 9)), np.ones(9)
    for arguments in (given, rounded):
        expected = _reference.ward_mergers(*arguments)
        for found, twin in zip(_core.ward_mergers(*arguments), expected):
            assert_allclose(found, twin, rtol=1e-13)
    assert is_valid_linkage(tree.ward(*rounded))


def test_a_mass_counts_like_repeated_points():
    random = np.random.RandomState(0)
    points, masses = random.randn(30, 3), random.randint(1, 6, 30)
    squares = squares_of(points)
    found = tree.ward(squares, masses.astype(float))
    repeated = linkage(np.repeat(points, masses, axis=0), "ward")
    assert_allclose(found[:, 2], repeated[-29:, 2], rtol=1e-12)
    assert_allclose(tree.ward(squares, 1e-9 * masses)[:, 2], 1e-9**0.5 * found[:, 2])
    assert_array_equal(tree.merged(points, masses, 7), tree.groups(found, 7))


def test_equal_centroids_and_empty_clusters_merge_first():
    points = np.array([[0.0], [5.0], [0.0], [9.0]])
    found = tree.ward(squares_of(points), np.array([3.0, 0, 2, 1]))
    assert is_valid_linkage(found) and is_monotonic(found)
    assert_allclose(found[:, 2], [0, 0, 9 * np.sqrt(5 / 3)], atol=1e-12)
    assert_array_equal(tree.groups(found, 2), [0, 1, 0, 1])  # the empty one is nearer to 9


def test_groups_are_numbered_by_their_first_cluster():
    points = np.array([[9.0], [1], [8], [0], [5]])
    cuts = tree.ward(squares_of(points), np.ones(5))
    assert_array_equal(tree.groups(cuts, 5), range(5))
    assert_array_equal(tree.groups(cuts, 4), [0, 1, 0, 2, 3])
    assert_array_equal(tree.groups(cuts, 3), [0, 1, 0, 1, 2])
    assert_array_equal(tree.groups(cuts, 1), [0] * 5)


@pytest.mark.parametrize("n", [1, 5, 40, 90, 199])
@pytest.mark.parametrize("equal", [False, True])
def test_very_many_clusters_are_merged_in_blocks(n, equal, tuning):
    """As many groups are left as are asked for, and no group has parts of two that are far apart.

    No distances between more clusters than the limit are computed.
    """
    tuning(tree__whole=64, tree__block=16)
    random = np.random.RandomState(0)
    y = np.arange(200) % 40
    points = np.zeros((200, 3)) if equal else 9 * random.randn(40, 3)[y] + random.randn(200, 3) / 99
    masses = random.uniform(1, 5, 200)
    tracemalloc.start()
    group = tree.merged(points, masses, n)
    assert tracemalloc.get_traced_memory()[1] < 200 * 200 * 8
    tracemalloc.stop()
    assert_array_equal(np.unique(group), range(n))
    if n == 40 and not equal:
        assert len({*zip(group, y)}) == 40


def test_blocks_of_clusters_without_rows_are_merged(tuning):
    tuning(tree__whole=64, tree__block=16)
    points = np.zeros((200, 3))
    points[:40] = 9 * np.random.RandomState(0).standard_normal((40, 3))
    points[0], masses = 0, np.r_[np.ones(40), np.zeros(160)]
    group = tree.merged(points, masses, 40)
    assert len({*group[:40]}) == 40
    assert {*group[40:]} == {group[0]}


@pytest.mark.promise(
    "Memberships and trees",
    "Cuts of a fit are nested and begin with its labels. The costs of mergers add up to the "
    "total variance, and for clusters of equal weights the tree is SciPy's.",
)
@pytest.mark.parametrize("cls", CLASSES)
def test_cuts_are_nested_and_begin_with_the_labels(cls):
    model = cls(6, random_state=0).fit(X)
    tree = model.linkage_
    assert is_valid_linkage(tree) and is_monotonic(tree) and tree[-1, 3] == 6
    assert_array_equal(model.cut(6), model.labels_)
    assert_array_equal(model.cut(4, X), model.cut(4))
    for n in range(1, 6):
        fine, coarse = model.cut(n + 1), model.cut(n)
        assert coarse.dtype == np.int32 and len(np.unique(coarse)) == n
        assert len(np.unique(np.c_[fine, coarse], axis=0)) == n + 1
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.linkage_, tree)


@pytest.mark.promise(like="test_cuts_are_nested_and_begin_with_the_labels")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cls, more", [
    (rffpk.PowerKMeans, {}), (rffpk.KernelKMeans, {"kernel": "linear"}),
    (rffpk.RFFMultiKernelPowerKMeans,
     {"kernels": "linear", "views": [[0], [1, 2, 3]], "typicality": None}),
])  # fmt: skip
def test_mergers_add_up_to_the_total_variance(cls, more, weighted):
    p, alpha = np.arange(150) % 4 + 0.5 if weighted else np.ones(150), np.ones(4)
    model = cls(6, random_state=0, **more).fit(X, sample_weight=p)
    if "views" in more:  # which have variance one
        variances = np.cov(X.T, aweights=p, bias=True).diagonal()
        of_views = np.r_[variances[0], variances[1:].sum()]
        alpha = (model.kernel_weights_ / of_views)[[0, 1, 1, 1]]

    def cost(rows):
        center = np.average(X[rows], axis=0, weights=p[rows])
        return p[rows] @ ((X[rows] - center) ** 2 @ alpha)

    total = cost(slice(None))
    assert_allclose(model.inertia_ + (model.linkage_[:, 2] ** 2).sum() / 2, total, rtol=1e-3)
    of_five = sum(cost(model.cut(5) == j) for j in range(5))
    assert_allclose(of_five - model.inertia_, model.linkage_[0, 2] ** 2 / 2, rtol=0.05)


def test_rows_of_a_source_are_cut_by_their_predictions_and_a_stream_moves_the_tree():
    model = rffpk.PowerKMeans(6, random_state=0).fit(lambda: iter([X[:80], X[80:]]))
    assert_array_equal(model.cut(3, X), tree.groups(model.linkage_, 3)[model.predict(X)])
    with pytest.raises(AttributeError, match="labels_ of the rows of a source are not kept"):
        model.cut(3)
    before = model.linkage_
    model.partial_fit(X[:50] + 1.0)
    assert (model.linkage_[:, 2] != before[:, 2]).all()


def test_what_is_refused():
    model = rffpk.PowerKMeans(6, random_state=0)
    assert not hasattr(model, "linkage_")
    with pytest.raises(NotFittedError):
        model.cut(2)
    model.fit(X)
    for wrong, message in ((0, "=0: must be"), (7, "=7: must be"), (2.5, " must be an instance")):
        with pytest.raises((ValueError, TypeError), match=f"n_clusters{message}"):
            model.cut(wrong)
    with pytest.raises(ValueError, match="^gaps contains NaN or infinity"):
        _core.ward_mergers(np.full((3, 3), np.inf), np.ones(3))


def test_the_rows_of_a_stream_count_in_the_tree():
    model = rffpk.PowerKMeans(2, random_state=0).fit([[0.0]] * 10 + [[8.0]] * 30)
    model.partial_fit([[8.0]] * 40)
    assert model.linkage_[0, 2] ** 2 == pytest.approx(2 * 8.0**2 / (1 / 10 + 1 / 70))
