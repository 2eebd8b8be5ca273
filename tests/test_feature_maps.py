"""Random Fourier features: the kernels that they approximate, the bandwidth, the sampling."""

import pickle

import numpy as np
import oracles
import pytest
from contracts.core import Structure
from numpy.testing import assert_allclose
from scipy.linalg import hadamard as scipy_hadamard
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from rffpk import Annealing, RandomFourierFeatures, RFFKernelPowerKMeans

EXACT = {
    "rbf": lambda X, gamma: rbf_kernel(X, gamma=gamma),
    "laplacian": lambda X, gamma: laplacian_kernel(X, gamma=gamma),
    "cauchy": lambda X, gamma: np.prod(1 / (1 + gamma * (X[:, None] - X) ** 2), axis=2),
}


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((60, 5)) * [1, 2, 0.5, 1, 3] + 10


def test_features_are_those_of_the_paper(implementation, X, dtype):
    mapped = RandomFourierFeatures(17, random_state=0).fit(X.astype(dtype))
    phi = mapped.transform(X.astype(dtype))
    assert phi.dtype == dtype and mapped.frequencies_.dtype == dtype
    expected = oracles.rff(X.astype(dtype).astype(float), mapped.frequencies_.astype(float))
    assert_allclose(phi, expected, atol=1e-5 if dtype == np.float32 else 1e-14)
    assert_allclose(np.linalg.norm(phi, axis=1), 1, rtol=1e-5)


def test_heavy_tailed_frequencies_of_the_laplacian_stay_accurate(isa, X):
    """Cauchy frequencies reach 10^5 here; phases are then far beyond where float32 resolves
    them, but in float64 they must be right, and in both bounded."""
    mapped = RandomFourierFeatures(20_000, kernel="laplacian", gamma=1.0, random_state=0).fit(X)
    assert np.abs(mapped.frequencies_).max() > 1e4
    phi = mapped.transform(X)
    assert_allclose(phi, oracles.rff(X, mapped.frequencies_), atol=1e-10)
    narrow = mapped.transform(X.astype(np.float32))
    assert_allclose(np.linalg.norm(narrow, axis=1), 1, rtol=1e-5)


def test_mean_bandwidth_is_the_mean_over_all_pairs(X, dtype):
    squared = (pdist(X) ** 2).sum() * 2 / len(X) ** 2
    found = RandomFourierFeatures(2).fit(X.astype(dtype)).gamma_
    assert_allclose(found, 1 / (2 * squared), rtol=1e-5 if dtype == np.float32 else 1e-12)


def test_bandwidths_by_name(X):
    def gamma(**kw):
        return RandomFourierFeatures(2, random_state=0, **kw).fit(X).gamma_

    assert_allclose(gamma(gamma="median"), 1 / (2 * np.median(pdist(X) ** 2)))
    assert_allclose(gamma(gamma="scale"), 1 / (X.shape[1] * X.var()))
    absolute = pdist(X, "cityblock")
    assert_allclose(gamma(gamma="mean", kernel="laplacian"), 1 / (2 * absolute.mean()))
    assert_allclose(gamma(gamma="median", kernel="laplacian"), 1 / (2 * np.median(absolute)))
    assert gamma(gamma=0.3) == 0.3


def test_weights_of_rows_are_repetitions_in_the_bandwidth(X):
    repeats = np.arange(len(X)) % 4
    repeated = RandomFourierFeatures(2).fit(np.repeat(X, repeats, axis=0)).gamma_
    weighted = RandomFourierFeatures(2).fit(X, sample_weight=repeats).gamma_
    assert_allclose(weighted, repeated, rtol=1e-12)


def test_constant_rows_get_a_bandwidth_and_the_fewest_frequencies():
    for gamma in ("mean", "median", "scale"):
        assert RandomFourierFeatures(2, gamma=gamma).fit(np.zeros((5, 3))).gamma_ == 1
    for rows in (np.ones((5, 3)), np.ones((1, 2)), np.eye(3)):
        assert RandomFourierFeatures(random_state=0).fit(rows).n_frequencies_ == 128


def test_orthogonal_frequencies_are_orthogonal_in_blocks(X):
    omega = RandomFourierFeatures(13, gamma=0.5, random_state=0).fit(X).frequencies_
    for start in (0, 5, 10):
        block = omega[:, start : start + 5]
        gram = block.T @ block
        assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-12)


@pytest.mark.parametrize("sampling", ["orthogonal", "iid"])
def test_frequencies_have_the_spectral_density_of_the_kernel(X, sampling):
    mapped = RandomFourierFeatures(50_000, gamma=0.5, sampling=sampling, random_state=0)
    omega = mapped.fit(X).frequencies_  # standard normal for gamma = 1/2
    assert_allclose(omega.mean(axis=1), 0, atol=0.03)
    assert_allclose(omega @ omega.T / 50_000, np.eye(5), atol=0.03)
    assert_allclose((omega**4).mean(), 3, rtol=0.05)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 17, 64, 100, 513, 9000])
@pytest.mark.parametrize("D", [1, 7, 64, 130])
def test_structured_frequencies_are_products_of_hadamard_matrices(isa, dtype, d, D):
    """The butterflies of the core against the frequencies written out, which the twin uses."""
    X = np.random.default_rng(d).standard_normal((300, d)).astype(dtype)
    mapped = RandomFourierFeatures(D, sampling="structured", random_state=D).fit(X)
    dense = oracles.rff(X.astype(float), mapped.structure_.matrix(d))
    assert_allclose(mapped.transform(X), dense, atol=2e-5 if dtype == np.float32 else 1e-12)
    if d > 1000:  # whose matrices are large
        return
    signs, scale, _ = mapped.structure_
    p = signs.shape[-1]
    assert p >= d and set(np.unique(signs)) <= {-1, 1}
    H = scipy_hadamard(p, dtype=float)
    block = scale * (H * signs[0, 2]) @ (H * signs[0, 1]) @ (H * signs[0, 0])
    assert_allclose(mapped.frequencies_[:, :p].T, block[: min(p, D), :d], rtol=1e-5, atol=1e-6)
    assert_allclose(block @ block.T, 2 * mapped.gamma_ * p * np.eye(p), atol=1e-8)


def test_a_fit_with_structured_frequencies_is_one_with_their_matrix():
    X = np.random.default_rng(0).standard_normal((2500, 20))
    model = RFFKernelPowerKMeans(5, sampling="structured", random_state=0).fit(X)
    phi = model.feature_map_.transform(X)
    assert model.inertia_ == pytest.approx(
        oracles.kernel_kmeans_objective(phi @ phi.T, model.labels_), rel=1e-9
    )
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    thawed = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(thawed.transform(X), model.transform(X))


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "cauchy"])
def test_the_kernel_error_is_that_of_all_pairs(kernel, dtype):
    X = np.random.default_rng(0).standard_normal((200, 3)).astype(dtype)
    mapped = RandomFourierFeatures(kernel=kernel, random_state=0).fit(X)
    phi = mapped.transform(X).astype(float)
    pairs = np.triu_indices(200, 1)
    exact = EXACT[kernel](X.astype(float), mapped.gamma_)[pairs]
    expected = np.mean(((phi @ phi.T)[pairs] - exact) ** 2) / exact.var()
    assert mapped.kernel_error_ == pytest.approx(expected, rel=1e-3)
    assert mapped.n_frequencies_ == mapped.frequencies_.shape[1] >= 128
    assert mapped.kernel_error_ <= 0.02


def test_rows_that_are_nearly_equally_far_apart_get_more_frequencies():
    random = np.random.default_rng(0)
    X = random.standard_normal((600, 40))
    noise = RandomFourierFeatures(sampling="iid", random_state=0).fit(X)
    assert noise.n_frequencies_ > 1024
    X[:, 0] += 60 * random.integers(0, 2, 600)
    clusters = RandomFourierFeatures(sampling="iid", random_state=0).fit(X)
    assert clusters.n_frequencies_ == 128
    fixed = RandomFourierFeatures(128, sampling="iid", random_state=0).fit(X)
    assert not hasattr(fixed, "kernel_error_")


def test_a_limit_that_binds_warns(monkeypatch, tuning):
    X = np.random.default_rng(0).standard_normal((300, 200))
    tuning(fourier__most=256)
    with pytest.warns(UserWarning, match="n_frequencies='auto' ends at its largest number, 256"):
        mapped = RandomFourierFeatures(sampling="iid", random_state=0).fit(X)
    assert mapped.n_frequencies_ == 256 and mapped.kernel_error_ > 0.02
    monkeypatch.undo()
    tuning(fourier__most_numbers=2 * 300 * 513)
    with pytest.warns(UserWarning, match="ends at its largest number, 512"):
        RandomFourierFeatures(sampling="iid", random_state=0).fit(X)


def test_the_number_of_frequencies_does_not_depend_on_the_number_of_clusters():
    X = np.random.default_rng(0).standard_normal((400, 20))
    chosen = {
        RFFKernelPowerKMeans(k, random_state=0, max_iter=1, annealing=Annealing(swaps=0), n_init=1)
        .fit(X)
        .feature_map_.n_frequencies_
        for k in (2, 40)
    }
    assert len(chosen) == 1


def test_structured_frequencies_are_written_out_when_they_are_read(monkeypatch):
    X = np.random.default_rng(0).standard_normal((50, 3000))
    written = []
    matrix = Structure.matrix
    monkeypatch.setattr(Structure, "matrix", lambda self, d: written.append(d) or matrix(self, d))
    mapped = RandomFourierFeatures(100, random_state=0).fit(X)
    mapped.transform(X)
    assert not written
    assert mapped.frequencies_.shape == (3000, 100) and written == [3000]


def test_orthogonal_features_approximate_better_than_independent_ones():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 30))
    exact = rbf_kernel(X, gamma=1 / 60)

    def error(sampling):
        errors = []
        for seed in range(10):
            mapped = RandomFourierFeatures(30, gamma=1 / 60, sampling=sampling, random_state=seed)
            phi = mapped.fit_transform(X)
            errors.append(np.abs(phi @ phi.T - exact).mean())
        return np.mean(errors)

    assert error("orthogonal") < 0.6 * error("iid")
    assert error("structured") < 0.6 * error("iid")
