"""The number of clusters that rows have."""

import math
from functools import partial
from itertools import product

import numpy as np
import pytest
from contracts.fusion import FittedKernel, Specification
from contracts.graph import criteria, spectrum
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, diags
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rffpk
from rffpk import DiffusionPowerKMeans, KernelKMeans, PowerKMeans, select_n_clusters

X, Y = make_blobs(400, centers=5, cluster_std=0.4, random_state=3)
SCORES = ("scores", "eigengaps", "heights", "modes")
CLASSES = [
    PowerKMeans, rffpk.RFFKernelPowerKMeans, DiffusionPowerKMeans, rffpk.RFFMultiKernelPowerKMeans,
    rffpk.FuzzyCMeans,
]  # fmt: skip
OF_KERNELS = [KernelKMeans, rffpk.KernelPowerKMeans, rffpk.NystroemKernelKMeans]
OF_VIEWS = [
    rffpk.RFFMultiKernelPowerKMeans, rffpk.MultiKernelPowerKMeans, rffpk.AverageMKKM, rffpk.SMKC,
    rffpk.RMKKM, rffpk.FAMKKM,
]  # fmt: skip


def assert_same(found, expected):
    for name in ("numbers", "levels", *SCORES, "labels", "rows"):
        assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.promise(
    "Memberships and trees",
    '`n_clusters="auto"` gives the number of `select_n_clusters`, the same in every class, from '
    "arrays, sources, views and kernels, depends on the seed alone, and is 1 for uniform "
    "rows and for rows of one Gaussian whose axes are of similar length.",
)
@pytest.mark.few(1)
@pytest.mark.filterwarnings("ignore:The neighbor graph has")
@pytest.mark.parametrize("cls", CLASSES)
def test_five_blobs_are_five_clusters(cls, tmp_path):
    model = cls("auto", random_state=0).fit(X)
    assert model.n_clusters == "auto" and model.n_clusters_ == len(model.cluster_centers_) == 5
    assert adjusted_rand_score(Y, model.labels_) == 1.0
    selection = model.selection_
    assert selection.n_clusters == selection.numbers[0] == 5
    assert adjusted_rand_score(Y[selection.rows], selection.labels[0]) > 0.98
    assert selection.labels.shape == (len(selection.numbers), len(selection.rows))
    model.save(tmp_path / "model")
    assert_same(rffpk.load(tmp_path / "model").selection_, selection)
    source = cls("auto", random_state=0).fit(lambda: iter([X[:150], X[150:]]))
    assert source.n_clusters_ == 5
    assert model.set_params(n_clusters=3).fit(X).n_clusters_ == 3
    assert not hasattr(model, "selection_")


def test_sparse_rows_pipelines_and_batches():
    assert PowerKMeans("auto", random_state=0).fit(csr_array(X)).n_clusters_ == 5
    assert select_n_clusters(csr_array(X), random_state=0).n_clusters == 5
    pipeline = make_pipeline(StandardScaler(), PowerKMeans("auto", random_state=0)).fit(X)
    assert pipeline[-1].n_clusters_ == 5
    model = PowerKMeans("auto", random_state=0, sample=300)
    model.partial_fit(X[:200]).partial_fit(X[200:])
    assert model.n_clusters_ == 5 and len(model.cluster_centers_) == 5


@pytest.mark.promise(like="test_five_blobs_are_five_clusters")
def test_moons_are_two_clusters_and_one_gaussian_or_uniform_rows_are_one():
    moons, _ = make_moons(500, noise=0.05, random_state=0)
    assert select_n_clusters(moons, random_state=0).n_clusters == 2
    for d in (2, 10, 50):
        random = np.random.RandomState(100 + d)
        for rows in (random.rand(400, d), random.randn(400, d) @ random.randn(d, d)):
            found = select_n_clusters(rows, random_state=0)
            assert found.n_clusters == 1 and (found.labels[0] == 0).all()


@pytest.mark.promise(like="test_five_blobs_are_five_clusters")
def test_rows_on_a_line_are_one_cluster_where_they_are_even():
    """On a line no path leads around the rows between two modes, so each mode may be a chance.

    Of 20 data sets of even density at most one is cut. No data set of two groups is merged.
    """
    cut = 0
    for seed in range(10):
        random = np.random.default_rng(seed)
        for x in (random.random((1000, 1)), random.standard_normal((1000, 1))):
            cut += select_n_clusters(x, random_state=seed).n_clusters > 1
        x[::2] += 5
        assert select_n_clusters(x, random_state=seed).n_clusters == 2
    assert cut <= 1


def test_equal_and_few_rows_and_one_gaussian():
    assert select_n_clusters(np.ones((9, 2))).n_clusters == 1
    for n in range(1, 8):
        assert 1 <= select_n_clusters(X[:n], random_state=0).n_clusters <= n
    rows = np.random.RandomState(0).standard_normal((500, 3))
    selection = select_n_clusters(rows, random_state=0)
    assert [selection.number(word) for word in ("coarse", "auto", "fine")] == [1, 1, 1]
    assert selection.parents == selection.shares == []


@pytest.mark.promise(like="test_five_blobs_are_five_clusters")
def test_the_result_depends_on_the_seed_alone():
    assert_same(*(select_n_clusters(X, n_jobs=jobs, random_state=1) for jobs in (1, 2)))


def blobs(k, each, d=2, seed=0):
    """Draw Gaussians whose centers are on a grid, ten deviations apart."""
    random, side = np.random.RandomState(seed), int(np.ceil(k ** (1 / d)))
    places = np.array(list(product(range(side), repeat=d)))[:k] * 10.0
    y = np.repeat(np.arange(k), each)
    order = random.permutation(len(y))
    return (places[y] + random.standard_normal((len(y), d)))[order], y[order]


@pytest.mark.promise(like="test_five_blobs_are_five_clusters")
@pytest.mark.few(1)
@pytest.mark.filterwarnings("ignore:The neighbor graph has")
@pytest.mark.parametrize("seed", [0, 1])
def test_classes_sources_and_samples_have_one_answer(seed):
    """Above the numbers of rows that are looked at, on rows that are hard to count."""
    random = np.random.RandomState(seed)
    rows = np.vstack([blobs(6, 700)[0] * 0.3, random.standard_normal((400, 2))])
    expected = select_n_clusters(rows, random_state=seed)
    blocks = select_n_clusters(lambda: iter(np.split(rows, [1000, 1700])), random_state=seed)
    fits = [cls("auto", random_state=seed).fit(rows) for cls in CLASSES]
    fits += [PowerKMeans("auto", random_state=seed, sample=n).fit(rows) for n in (2000, None)]
    for found in (blocks, *(model.selection_ for model in fits)):
        assert_same(found, expected)


@pytest.mark.promise(like="test_five_blobs_are_five_clusters")
@pytest.mark.few(1)
@pytest.mark.parametrize("cls", sorted({*OF_KERNELS, *OF_VIEWS} - {*CLASSES}, key=str))
def test_classes_with_exact_kernels_have_the_same_answer(cls):
    """As the rows themselves are looked at, whatever the kernel is."""
    model = cls("auto", random_state=0).fit(X)
    assert_same(model.selection_, select_n_clusters(X, random_state=0))
    assert model.n_clusters_ == 5 and adjusted_rand_score(Y, model.labels_) == 1


Z, _ = blobs(3, 134, d=4)
PARTS = [X, Z[: len(X)]]  # of fifteen clusters the views tell five and three


@pytest.mark.promise(like="test_five_blobs_are_five_clusters")
@pytest.mark.few(1)
@pytest.mark.filterwarnings("ignore:The graph of")
@pytest.mark.parametrize("cls", OF_VIEWS)
def test_views_have_one_answer(cls):
    expected = select_n_clusters(PARTS, random_state=0)
    assert expected.n_clusters == 15
    model = cls("auto", random_state=0).fit(PARTS)
    assert model.n_clusters_ == 15
    assert_same(model.selection_, expected)
    columns = cls("auto", random_state=0, views=[[0, 1], slice(2, None)]).fit(np.hstack(PARTS))
    assert_same(columns.selection_, expected)


def test_views_of_sources_and_sparse_views_have_the_same_answer():
    expected = select_n_clusters(PARTS, random_state=0)
    sources = [partial(np.split, x, [150]) for x in PARTS]
    assert_same(select_n_clusters(sources, random_state=0), expected)
    found = select_n_clusters([X, csr_array(PARTS[1])], random_state=0)
    assert_array_equal(found.numbers, expected.numbers)
    assert [select_n_clusters([x], random_state=0).n_clusters for x in PARTS] == [5, 3]


@pytest.mark.parametrize("k", [3, 8, 20])
def test_views_without_clusters_change_nothing(k):
    random = np.random.RandomState(k)
    rows, _ = blobs(k, 60)
    noise, square = random.standard_normal((len(rows), 5)), random.uniform(size=(len(rows), 2))
    views = [rows, 100 * noise, square]
    assert select_n_clusters(views, random_state=0).n_clusters == k
    assert select_n_clusters(views[1:], random_state=0).n_clusters == 1


KERNEL_FITS = [
    *((cls, "kernel") for cls in OF_KERNELS[:2]),
    *((cls, "kernels") for cls in (rffpk.MultiKernelPowerKMeans, rffpk.AverageMKKM, rffpk.RMKKM)),
]


@pytest.mark.promise(like="test_five_blobs_are_five_clusters")
@pytest.mark.few(1)
@pytest.mark.parametrize(("cls", "name"), KERNEL_FITS)
def test_kernels_have_the_number_of_their_rows(cls, name):
    given = [(rbf_kernel(X, gamma=0.05), 5)]
    if name == "kernels":
        given.append((np.stack([x @ x.T for x in PARTS]), 15))
    model = cls("auto", random_state=0, **{name: "precomputed"})
    for K, number in given:
        kernels = K if number == 5 else [*K]
        expected = select_n_clusters(kernels, metric="kernel", random_state=0)
        assert model.fit(K).n_clusters_ == expected.n_clusters == number
        assert_same(model.selection_, expected)


def test_weights_of_kernels():
    K, weight = X @ X.T, (Y > 1) * 1.0
    found = select_n_clusters(K, metric="kernel", sample_weight=weight, random_state=0)
    assert found.n_clusters == 3 and (Y[found.rows] > 1).all()
    for cls, rows, more in (
        (rffpk.KernelPowerKMeans, K, {"kernel": "precomputed"}),
        (KernelKMeans, X, {}), (PowerKMeans, X, {}),
    ):  # fmt: skip
        model = cls("auto", random_state=0, **more).fit(rows, sample_weight=weight)
        assert model.n_clusters_ == 3


def test_coordinates_have_the_distances_of_a_kernel():
    for K in (X @ X.T, rbf_kernel(X[:100], gamma=0.5), np.ones((9, 9)), np.zeros((3, 3))):
        kernel = FittedKernel(K, Specification("precomputed"), shift=True, weight=np.ones(len(K)))
        coordinates = criteria.kernel_coordinates(kernel)
        squares = np.diagonal(K)[:, None] + np.diagonal(K) - 2 * K
        gaps, largest = cdist(coordinates, coordinates, "sqeuclidean"), max(squares.max(), 1)
        assert_allclose(gaps, squares, atol=1e-5 * largest)
        assert coordinates.shape[1] <= 100


def test_nested_groups_have_levels():
    inner, _ = blobs(4, 60)
    rows = np.vstack([inner + np.array(place) for place in ([0, 0], [200, 0], [0, 200])])
    coarse, auto, fine = (
        PowerKMeans(word, random_state=0).fit(rows) for word in ("coarse", "auto", "fine")
    )
    assert coarse.n_clusters_ == 3 and fine.n_clusters_ == 12
    assert adjusted_rand_score(np.repeat(np.arange(3), len(inner)), coarse.labels_) == 1
    selection = auto.selection_
    assert {3, 12} <= {*selection.levels} <= {*selection.numbers}
    assert auto.n_clusters_ == selection.n_clusters == selection.number("auto")
    for few, many, parent, share in zip(
        selection.levels, selection.levels[1:], selection.parents, selection.shares
    ):
        labels = [selection.labels[[*selection.numbers].index(k)] for k in (few, many)]
        inside = contingency_matrix(labels[1], labels[0])
        assert_array_equal(parent, inside.argmax(axis=1))
        assert_array_equal(share, inside.max(axis=1) / inside.sum(axis=1))


def test_scores_add_up():
    selection = select_n_clusters(X, random_state=0)
    parts = np.array([selection.eigengaps, selection.heights, selection.modes])
    assert (0 <= parts).all() and (parts <= 1).all()
    one = np.where(np.arange(parts.shape[1]) == 0, 0.3, 0)
    assert_allclose(selection.scores, parts.sum(axis=0) + one)
    assert selection.n_clusters == selection.numbers[0] == 1 + selection.scores.argmax()


def counted_rows():
    """Yield rows, the number of their clusters, and parameters."""
    for k, copies in ((2, 500), (3, 100), (10, 50)):  # piles of equal rows
        random = np.random.RandomState(k)
        rows = np.repeat(10 * random.standard_normal((k, 3)), copies, axis=0)
        yield rows, k, {}
        yield rows + 1e-6 * random.standard_normal(rows.shape), k, {}
    for n in (100, 1000):  # rings
        random = np.random.RandomState(n)
        for angle in (2 * np.pi * np.arange(n) / n, random.uniform(0, 2 * np.pi, n)):
            ring = np.column_stack([np.cos(angle), np.sin(angle)])
            yield ring + 0.05 * random.standard_normal(ring.shape), 1, {}
    rows = np.repeat(np.eye(4)[:3], 100, axis=0) + 0.05 * random.standard_normal((300, 4))
    yield rows * random.uniform(0.1, 100, (300, 1)), 3, {"metric": "cosine"}


def test_piles_rings_and_directions_are_counted():
    for rows, k, more in counted_rows():
        assert select_n_clusters(rows, random_state=0, **more).n_clusters == k
    assert DiffusionPowerKMeans("auto", random_state=0, **more).fit(rows).n_clusters_ == k


@pytest.mark.parametrize("seed", range(3))
def test_copies_are_weights(seed):
    """Also in a list of views, and with copies of weight zero, which do not count."""
    moons = make_moons(300, noise=0.06, random_state=seed)[0]
    blobs = make_blobs(300, 3, centers=4, random_state=seed)[0]
    for views in ([moons], [csr_array(blobs)], [moons, blobs]):
        four = [view[np.repeat(np.arange(300), 4)] for view in views]
        numbers = set()
        for rows, p in ((views, np.full(300, 4.0)), (four, None), (four, np.arange(1200) % 4.0)):
            rows = rows if len(rows) > 1 else rows[0]
            numbers.add(select_n_clusters(rows, sample_weight=p, random_state=0).n_clusters)
        assert len(numbers) == 1


def test_more_rows_are_looked_at_where_clusters_have_few():
    """Of 3000 rows each cluster has eight."""
    rows, y = blobs(400, 40, d=5)
    selection = select_n_clusters(rows, random_state=0)
    assert selection.n_clusters == 400 and len(selection.rows) == len(rows)
    assert adjusted_rand_score(y[selection.rows], selection.labels[0]) > 0.99


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("k", [5, 10])
def test_clusters_in_many_columns_show_in_components(k, sparse):
    """They are 13 deviations apart, and rows of one cluster 45, so that densities hardly differ."""
    numbers = []
    for seed in range(3):
        random = np.random.default_rng(seed)
        X = 0.28 * random.standard_normal((k, 1000))[np.arange(1000) % k]
        X += random.standard_normal(X.shape)
        given = csr_array(X) if sparse else X
        numbers.append(select_n_clusters(given, random_state=0).n_clusters)
        alone = random.standard_normal((300, 500)) / np.sqrt(np.arange(1, 501))
        assert select_n_clusters(alone, random_state=0).n_clusters == 1
    assert numbers == [k] * 3


@pytest.mark.filterwarnings("ignore:The neighbor graph has")
def test_graphs_have_numbers():
    graph = kneighbors_graph(X, 10)
    expected = select_n_clusters(graph, metric="precomputed", random_state=0)
    assert expected.n_clusters == 5 and adjusted_rand_score(Y, expected.labels[0]) == 1
    assert not expected.heights.any()
    model = DiffusionPowerKMeans("auto", metric="precomputed", random_state=0).fit(graph)
    assert model.n_clusters_ == 5
    assert_same(model.selection_, expected)
    ring = diags([1.0, 1.0, 1.0, 1.0], [1, -1, 299, -299], (300, 300))
    assert select_n_clusters(ring, metric="precomputed").n_clusters == 1


def modes_by_levels(density, edges, prominence):
    """Count modes by the components of the nodes above every level."""
    graph, count = (edges + edges.T).toarray() > 0, 0
    for node in np.argsort(-density, kind="stable"):
        higher = (density > density[node]) | (np.arange(len(density)) == node)
        met = math.inf  # how much lower the way to a higher node goes
        for level in np.unique(density[density <= density[node]]):
            above = np.flatnonzero(density >= level)
            _, labels = connected_components(csr_array(graph[np.ix_(above, above)]))
            own = labels[np.flatnonzero(above == node)[0]]
            if (higher[above[labels == own]]).sum() > 1:
                met = min(met, density[node] - level)
        count += met >= prominence
    return count


def test_modes_are_those_of_all_levels():
    random = np.random.RandomState(0)
    for n in (2, 7, 30):
        density = random.standard_normal(n)
        edges = csr_array(np.where(random.uniform(size=(n, n)) < 3 / n, 1.0, 0.0))
        deviation = math.sqrt(2 * math.log(max(n / 2, 2)) / 2) / 3
        factors = (2, 2.5, 3, 3.5, 4, 5, 6)
        expected = [modes_by_levels(density, edges, c * deviation) for c in factors]
        assert_array_equal(criteria.mode_counts(density, edges, 2), expected)


def test_heights_are_ratios_of_the_costs_of_mergers():
    costs = np.array([1.0, 1.1, 1.2, 1.3, 10.0, 12.0])  # of the mergers of 7, 6, ... clusters
    linkage = np.column_stack([np.zeros((6, 2)), np.sqrt(costs), np.zeros(6)])
    found = criteria.height_scores(linkage, 8)
    log = np.log(costs[::-1])
    assert_allclose(found[3], (log[1] - log[2] - 0.5 * (log[2] - log[5])) / 3)
    assert_allclose(found[2], (log[0] - log[1] - 0.5 * (log[1] - log[3])).clip(0) / 3)
    assert found.argmax() == 3 and not found[[0, 1]].any()


def test_eigengaps_are_logarithms_of_ratios():
    gaps = np.array([0.001, 0.002, 0.5, 0.6])
    walked = spectrum.Spectrum(gaps, np.ones(4), 0.0, 0)
    logs = spectrum.eigengaps(walked, 4)
    found = criteria.eigengap_scores([logs, logs])
    usual = [0, 0, logs[3], logs[4], 0]  # from k + 1 to 2 k
    assert_allclose(found, (logs - 0.5 * np.array(usual)).clip(0, 4) / 4)
    assert found.argmax() == 3


def test_gaps_stand_out_above_those_that_follow():
    gaps = np.array([0, 0, 0.1, 0.4, 0.02, 0.05, 0.01, 0.01, 0.3, 0, 0, 0, 0, 0, 0])
    found = criteria.outstanding_scores(gaps)
    assert found[3] == pytest.approx(np.log(0.4 / 0.3) / 5)  # that of 8 is among the next ones
    assert found[2] == found[4] == 0
    assert found[8] == pytest.approx(np.log(10) / 5)  # chance has 0.03
    assert criteria.outstanding_scores(np.array([0, 0, 1e9, 0, 0]))[2] == 1


def test_dimensions_and_rare_clusters():
    def sorted_distances(rows):
        return np.sort(cdist(rows, rows), axis=1)[:, :26]

    random = np.random.RandomState(0)
    for d in (1, 2, 5):
        distances = sorted_distances(random.uniform(size=(2000, d)))
        for ring in ((0, 10), (10, 25)):
            assert abs(criteria.intrinsic_dimension(distances, *ring) / d - 1) < 0.12
        assert criteria.rare_share(distances) < 0.01
    assert criteria.rare_share(sorted_distances(blobs(100, 6)[0])) > 0.5


@pytest.mark.parametrize("fit, message", [
    (partial(select_n_clusters, X, metric="manhattan"),
     "metric='manhattan': must be one of .*'kernel'"),
    (partial(select_n_clusters, X, metric="precomputed"), "square"),
    (partial(select_n_clusters, X, metric="kernel"), "square"),
    (partial(select_n_clusters, [np.triu(np.ones((5, 5)))], metric="kernel"),
     r"X\[0\] is not symmetric"),
    (partial(PowerKMeans("fine", init=X[:3]).fit, X), "n_clusters='fine': does not go with given"),
    (partial(KernelKMeans("auto", init=Y).fit, X), "n_clusters='auto': does not go with given"),
    (partial(PowerKMeans("best").fit, X), "n_clusters=.best.: must be one of"),
    (partial(rffpk.SMKC("auto", anchors=4).fit, X), "anchors=4: must be >= 5"),
    (partial(rffpk.AverageMKKM("auto", n_landmarks=4).fit, X), "n_landmarks=4: must be >= 5"),
    (partial(rffpk.RFFMultiKernelPowerKMeans("auto", allow_missing_views=True).fit, PARTS),
     "n_clusters='auto': needs all views of all rows"),
])  # fmt: skip
def test_refusals(fit, message):
    with pytest.raises(ValueError, match=message):
        fit()
