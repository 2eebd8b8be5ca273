"""Graphs and sparse kernels as input."""

import warnings

import numpy as np
import pytest
from contracts.graph import NeighbourCount, Shared, mutual_neighbours
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array, csr_array, csr_matrix
from scipy.sparse import random as random_matrix
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.image import img_to_graph
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph

import rffpk
from rffpk import DiffusionMap, DiffusionPowerKMeans, KernelKMeans, KernelPowerKMeans, _core

MOONS, KINDS = make_moons(300, noise=0.06, random_state=2)
DIRECTED = kneighbors_graph(MOONS, 12, mode="connectivity")
GRAPH = (DIRECTED + DIRECTED.T) / 2


def model(**parameters):
    fixed = {"n_clusters": 2, "metric": "precomputed", "random_state": 0}
    return DiffusionPowerKMeans(**{**fixed, **parameters})


@pytest.fixture(scope="module")
def fitted():
    return model().fit(GRAPH)


def test_the_walk_is_that_of_its_definition():
    weight = np.random.default_rng(0).uniform(0.5, 2, len(MOONS))
    A = GRAPH.toarray() * np.outer(weight, weight)
    degrees = A.sum(axis=1)
    values = np.linalg.eigvalsh(A / np.sqrt(np.outer(degrees, degrees)))[::-1]
    fitted = DiffusionMap(6, metric="precomputed", time=5.0).fit(GRAPH, sample_weight=weight)
    assert_allclose(fitted.eigenvalues_[:40], values[1:41].clip(0), atol=1e-9)
    features = fitted.transform(GRAPH)
    assert_allclose(A / degrees[:, None] @ features, features * fitted.eigenvalues_[:6], atol=1e-9)
    assert_allclose(degrees @ features**2 / degrees.sum(), np.exp(-5 * (1 - values[1:7])))
    with pytest.raises(AttributeError):
        fitted.landmarks_  # noqa: B018


@pytest.mark.parametrize("nodes, error", [(300, 1e-9), (200, 0.05)])
def test_pairs_are_exact_up_to_a_number_of_nodes_and_near_beyond(tuning, nodes, error):
    A = GRAPH.toarray()
    degrees = A.sum(axis=1)
    gaps = 1 - np.linalg.eigvalsh(A / np.sqrt(np.outer(degrees, degrees)))[::-1][1:21]
    tuning(spectrum__exact_nodes=nodes)
    found = 1 - DiffusionMap(5, metric="precomputed", time=5.0).fit(GRAPH).eigenvalues_[:20]
    assert_allclose(found, gaps, rtol=error, atol=1e-9)


def test_the_graph_of_own_neighbours_has_the_own_walk():
    own = DiffusionMap(5, time=9.0).fit(MOONS)
    nodes = own.landmarks_
    _, Z = mutual_neighbours(nodes, np.ones(len(nodes)), NeighbourCount(None), 1, Shared())
    given = DiffusionMap(5, metric="precomputed", time=9.0).fit(Z.T @ Z)
    assert_allclose(given.eigenvalues_[:20], own.eigenvalues_[:20], atol=1e-9)
    roots = np.sqrt(own.eigenvalues_[:5])
    assert_allclose(given.transform(Z.T @ Z), own.landmark_features_ * roots, atol=1e-6)


def test_rows_of_weight_two_are_two_rows():
    twice, model = (
        np.r_[np.arange(300), np.arange(90)],
        DiffusionMap(4, time=7.0, metric="precomputed"),
    )
    weighted = clone(model).fit(GRAPH, sample_weight=np.bincount(twice))
    doubled = clone(model).fit(GRAPH[twice][:, twice])
    assert_allclose(weighted.eigenvalues_[:9], doubled.eigenvalues_[:9], atol=1e-9)
    features = doubled.transform(GRAPH[:, twice])
    assert_allclose(np.abs(weighted.transform(GRAPH)), np.abs(features), atol=1e-7)
    without = clone(model).fit(GRAPH, sample_weight=np.arange(300) >= 9)
    less = clone(model).fit(GRAPH[9:, 9:])
    assert_allclose(without.transform(GRAPH)[9:], less.transform(GRAPH[9:, 9:]), atol=1e-9)


@pytest.mark.parametrize("form", [
    csr_matrix, csr_array, coo_array, lambda A: A.toarray(), lambda A: A.astype(np.float32),
    lambda A: (1e300 * A).tocsr(), lambda A: (1e-300 * A).toarray(),
])  # fmt: skip
def test_two_moons_are_found_and_fitted_rows_keep_their_labels(form, fitted):
    A = form(GRAPH)
    other = model(n_jobs=2).fit(A)
    assert adjusted_rand_score(KINDS, other.labels_) == 1
    assert_array_equal(other.labels_, fitted.labels_)
    if form is csr_matrix:
        assert_array_equal(other.cluster_centers_, fitted.cluster_centers_)
    assert_array_equal(other.predict(A), other.labels_)
    assert_array_equal(other.predict(csr_array(A)[100:140]), other.labels_[100:140])
    mapped = DiffusionMap(metric="precomputed")
    assert_array_equal(mapped.fit_transform(A), mapped.transform(A))
    assert mapped.transform(A).dtype == A.dtype


def test_graphs_are_made_symmetric(fitted):
    for A in (DIRECTED, DIRECTED.T, DIRECTED.astype(bool), DIRECTED.toarray().astype(int)):
        found = model().fit(A)
        assert_array_equal(found.labels_, fitted.labels_)
        assert_array_equal(found.feature_map_.eigenvalues_, fitted.feature_map_.eigenvalues_)


def test_new_rows_are_given_by_their_affinities(fitted):
    X, kinds = make_moons(200, noise=0.06, random_state=1)
    new = rbf_kernel(X, MOONS, gamma=100)
    assert adjusted_rand_score(kinds, fitted.predict(new)) == 1
    assert_array_equal(fitted.predict(csr_array(new)), fitted.predict(new))
    assert_array_equal(fitted.predict(new.astype(np.float32)[:9]), fitted.predict(new)[:9])
    assert_array_equal(fitted.feature_map_.transform(np.zeros((1, 300))), 0)


def test_rows_without_edges_are_components():
    A = np.zeros((10, 10))  # two rows without edges, ...
    A[:8, :8] = np.kron(np.eye(2), np.ones((4, 4)))
    A[9, 9] = 3.0  # ... one with a diagonal
    found = model(n_clusters=4).fit(csr_array(A))
    assert_allclose(found.feature_map_.component_shares_, [0.4, 0.4, 0.1, 0.1])
    assert adjusted_rand_score([0] * 4 + [1] * 4 + [2, 3], found.labels_) == 1
    with pytest.warns(UserWarning, match="add edges"):
        DiffusionMap(metric="precomputed").fit(csr_array(A))


def test_small_components_of_a_graph_count_where_rows_have_five_neighbours():
    y = np.repeat(np.arange(4), [300, 250, 12, 12])
    X = np.array([[0, 0], [30, 0], [0, 30], [30, 30]])[y]
    A = kneighbors_graph(X + np.random.default_rng(0).standard_normal(X.shape), 10).tolil()
    chain = np.flatnonzero(y == 3)
    A[chain] = 0
    A[chain[1:], chain[:-1]] = 1
    other = model(n_clusters=3)
    with pytest.warns(UserWarning, match=r"1 of them, with 12 rows, .* add edges"):
        other.fit(A.tocsr())
    assert adjusted_rand_score(y[y < 3], other.labels_[y < 3]) == 1


def test_samples_and_models_are_those_of_the_features(fitted, tmp_path):
    """A sample is cut from the features, and a fit of rows leaves nothing to a fit of a graph."""
    found = model(sample=50).fit(DIRECTED)
    assert found.sample_size_ == 50
    assert_array_equal(found.predict(GRAPH), found.labels_)
    fitted.save(tmp_path / "model")
    assert_array_equal(rffpk.load(tmp_path / "model").predict(GRAPH), fitted.labels_)
    rows = model(metric="euclidean").fit(MOONS)
    graph = rows.feature_map_.set_params(metric="precomputed").fit(GRAPH)
    assert not hasattr(graph, "bandwidth_")


def test_cross_validation_splits_rows_and_columns():
    assert model().__sklearn_tags__().input_tags.pairwise
    assert not model(metric="cosine").__sklearn_tags__().input_tags.pairwise
    for A in (GRAPH, GRAPH.toarray()):
        assert np.isfinite(cross_val_score(model(), A, cv=3)).all()
    K = rbf_kernel(MOONS)
    exact = KernelKMeans(2, kernel="precomputed", random_state=0)
    assert cross_val_predict(exact, K, cv=3).shape == (300,)


D = pairwise_distances(MOONS)
SIZES = {  # shares of linked pairs inside of communities and between them
    (300, 30): (0.5, 0.01), (400, 200, 100, 50, 25): (0.4, 0.02), (300, 100, 40): (0.1, 0.006),
    (20,) * 5: (0.8, 0.05), (100,) * 4: (0.2, 0.03), (200,): (0.3, 0.3),
}  # fmt: skip


@pytest.mark.parametrize("call, message", [
    (lambda fitted: model().partial_fit(GRAPH), "partial_fit takes rows"),
    (lambda fitted: model().fit(lambda: iter(GRAPH.toarray().reshape(2, 150, 300))),
     r"^X.shape=\(150, 300\): .* affinities"),
    (lambda fitted: rffpk.describe(fitted, GRAPH),
     "n_resamples must be 0 and table must be given"),
    (lambda fitted: fitted.predict(-GRAPH[:4]), "X contains -1"),
    (lambda fitted: fitted.predict(np.ones((200, 9))),
     r"^X.shape=\(200, 9\): must be .n_new, 300..* affinities"),
])  # fmt: skip
def test_what_needs_rows_is_refused(fitted, call, message):
    with pytest.raises(ValueError, match=message):
        call(fitted)


def test_a_graph_is_described_by_a_table(fitted):
    profiles = rffpk.describe(fitted, GRAPH, table=MOONS, n_resamples=0)
    assert sorted(profiles.sizes) == [150, 150]


def test_the_remedies_for_distances_work():
    s = np.sort(D, axis=1)[:, 6].mean()
    affinities = np.exp(-(D**2) / (2 * s**2))
    assert adjusted_rand_score(KINDS, model().fit(affinities).labels_) == 1
    # without the diagonal, they are still no distances
    labels = model().fit(affinities - np.eye(300)).labels_
    assert adjusted_rand_score(KINDS, labels) == 1
    graph = KNeighborsTransformer(n_neighbors=12, mode="distance").fit_transform(MOONS)
    graph.data = np.exp(-(graph.data**2) / (2 * (graph.data**2).mean()))
    assert adjusted_rand_score(KINDS, model().fit(graph).labels_) == 1


def test_sparse_kernels_are_written_out(memory):
    K = csr_array(np.where(D < 0.6, np.exp(-(D**2)), 0) + 9 * np.eye(300))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for cls in (KernelKMeans, KernelPowerKMeans):
            exact = cls(2, kernel="precomputed", random_state=0)
            sparse, dense = clone(exact).fit(K), exact.fit(K.toarray())
            assert_array_equal(sparse.dual_coef_, dense.dual_coef_)
            assert_array_equal(sparse.predict(K[:5]), dense.predict(K.toarray()[:5]))
    fused = rffpk.MKKM(2, kernels="precomputed", random_state=0)
    expected = clone(fused).fit([K.toarray(), K.toarray()]).labels_
    assert_array_equal(fused.fit([K, K.toarray()]).labels_, expected)
    memory(0)
    with pytest.raises(MemoryError, match="^X: is a sparse kernel .*DiffusionPowerKMeans"):
        exact.fit(K)


@pytest.mark.parametrize("q", [None, 1, 3, 8, 13, 40, 70])
def test_products_of_sparse_matrices_are_those_of_scipy(isa, dtype, q):
    random = np.random.default_rng(0)
    matrix = random_matrix(2300, 170, 0.1, "csr", dtype, random)
    v = random.standard_normal((170,) if q is None else (170, q)).astype(dtype)
    found, by_three = (_core.csr_product(matrix, v, threads) for threads in (1, 3))
    assert_array_equal(found, by_three)
    assert_allclose(found, matrix @ v, rtol=0, atol=100 * np.finfo(dtype).eps)
    assert_array_equal(_core.csr_product(matrix[:0], v, 1), (matrix @ v)[:0])


def test_eigenvalues_of_a_given_graph_may_be_negative():
    random = np.random.default_rng(1)
    A = random.random((40, 40)) * (random.random((40, 40)) < 0.5)
    A = A + A.T
    found = DiffusionMap(4, metric="precomputed", time=1.0, random_state=0).fit(A).eigenvalues_
    degrees = A.sum(axis=1)
    expected = np.linalg.eigvalsh(A / np.sqrt(np.outer(degrees, degrees)))[::-1][1:]
    assert found.min() < -0.1
    assert_allclose(found, expected[: len(found)], atol=1e-9)


# ---- communities, images and affinities ----------------------------------------------------------


def communities(sizes, inside, between, seed=0):
    """Draw a graph and its communities. `inside` and `between` are shares of linked pairs."""
    random, y = np.random.default_rng(seed), np.repeat(np.arange(len(sizes)), sizes)
    chance = np.where(y[:, None] == y, inside, between)
    links = np.triu(random.random(chance.shape) < chance, 1)
    return (links | links.T).astype(float), y


@pytest.mark.parametrize("sizes", [*SIZES][:3])
def test_small_communities_are_found(sizes):
    graph, y = communities(sizes, *SIZES[sizes])
    labels = model(n_clusters=len(sizes)).fit_predict(csr_array(graph))
    assert adjusted_rand_score(y, labels) > 0.96


def test_features_of_a_given_graph_have_length_one_at_the_nodes(fitted):
    lines = fitted.feature_map_.landmark_features_
    assert_allclose(np.linalg.norm(lines, axis=1), 1)
    assert_allclose(fitted.feature_map_.transform(GRAPH), GRAPH @ lines / GRAPH.sum(axis=1))


def squares_of_an_image(side):
    """Draw a gray and a white square on black, and link their pixels by differences."""
    image = np.zeros((side, side))
    part = side // 6
    image[part : 3 * part, part : 3 * part], image[4 * part : -4, part:-8] = 0.5, 1.0
    y = (2 * image).astype(int).ravel()
    image += 0.06 * np.random.default_rng(0).standard_normal(image.shape)
    graph = csr_array(img_to_graph(image))
    graph.data = np.exp(-5 * graph.data / graph.data.std()) + 1e-6
    graph.setdiag(0)
    return graph, y


def test_eigenpairs_of_an_image_converge_or_it_is_named(tuning):
    graph, y = squares_of_an_image(96)  # more nodes than have exact pairs
    found = model(n_clusters=3).fit(graph)
    assert adjusted_rand_score(y, found.labels_) > 0.99
    assert 1 - found.feature_map_.eigenvalues_[0] < 1e-6
    tuning(spectrum__rounds=1)
    with pytest.warns(ConvergenceWarning, match="slow functions of the graph have not converged"):
        found.fit(graph)


@pytest.mark.parametrize("seed", range(3))
def test_communities_are_counted(seed):
    for sizes in {*SIZES} - {(300, 100, 40)}:
        graph, _ = communities(sizes, *SIZES[sizes], seed)
        assert rffpk.select_n_clusters(graph, metric="precomputed").n_clusters == len(sizes)


def test_groups_of_affinities_and_correlations_are_counted():
    random, y = np.random.default_rng(0), np.repeat([0, 1, 2], 40)
    X = random.standard_normal((120, 2)) + np.array([[0, 0], [8, 0], [0, 8]])[y]
    profiles = random.standard_normal((3, 100))[y] + 0.8 * random.standard_normal((120, 100))
    for graph in (rbf_kernel(X, gamma=0.5), np.corrcoef(profiles).clip(0)):
        assert model(n_clusters="auto").fit(graph).n_clusters_ == 3
