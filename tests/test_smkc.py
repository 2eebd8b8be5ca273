"""SMKC against the algorithm on whole matrices, its certificates, anchors, storage, and errors."""

import itertools
import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from contracts.fusion import smkc
from contracts.passes import ones
from contracts.source import Sampling, sample_tables
from fusion_cases import three_views
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import svd
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from rffpk import SMKC

EPS = np.finfo(np.float64).eps


# Without centering and normalisation, as in the formulas of the paper.
Plain = partial(SMKC, standardize=False)


@pytest.fixture(scope="module")
def views():
    return three_views(700)


@pytest.fixture
def small_tiles(tuning):
    """Set many tiles, chunks and blocks of columns, the last ones partial."""
    tuning(
        tiles__smkc_numbers=100 * 180, tiles__smkc_chunk_numbers=30 * 180, tiles__smkc_columns=50
    )


def rank_part(A, k):
    U, d, Vt = svd(A, full_matrices=False)
    return U[:, :k], U[:, :k] * d[:k] @ Vt[:k], d


def direct(Gs, k, iterations):
    """Run the printed algorithm on n x s matrices.

    Returns U, objectives and changes by their definitions, the last singular values of G, and the
    bound of the error by squares.
    """
    Hs, values, changes, G = [rank_part(A, k)[1] for A in Gs], [], [], None
    for _ in range(iterations):
        before = G
        U, G, d = rank_part(sum(Hs) / len(Hs), k)
        parts = [rank_part((A + G) / 2, k) for A in Gs]
        Hs = [part[1] for part in parts]
        values.append(sum(((H - A) ** 2).sum() + ((H - G) ** 2).sum() for H, A in zip(Hs, Gs)))
        if before is not None:
            changes.append(np.linalg.norm(G - before) / np.linalg.norm(G))
    spectra = [d, *(part[2] for part in parts)]
    gaps = [d[0] ** 2 / (d[k - 1] ** 2 - (d[k] ** 2 if len(d) > k else 0)) for d in spectra]
    return U, values, changes, d[:k], EPS * max(gaps)


def rounding(Gs):
    """Bound the rounding of an objective: a difference of squared norms, sums over columns."""
    return len(Gs[0].T) * EPS * sum((G**2).sum() for G in Gs)


def apart(U, V):
    """Compute ||UU' - VV'||_F for orthonormal columns."""
    return np.sqrt(2) * np.linalg.norm(U - V @ (V.T @ U))


def stopped(model, X, iterations):
    return model.set_params(max_iter=iterations, tol=0).fit(X)


def anchor_kernels(model, xs, rows=None):
    """Compute the kernels between fitted rows, or other ones, and the anchors."""
    mean = [2 * x.var(axis=0).sum() for x in xs]  # of ||x - y||^2 over all pairs
    parts = zip(rows or xs, xs, mean)
    return [rbf_kernel(y, x[model.anchors_], 1 / (2 * m)) for y, x, m in parts]


# ---- the algorithm ------------------------------------------------------------------------------


@pytest.mark.few(2)
@pytest.mark.parametrize("full_below", [50, 10_000])  # with a part of the decomposition, or all
@pytest.mark.parametrize(
    ("rows", "n_views", "k", "iterations", "anchors"),
    [(700, 1, 4, 2, 60), (700, 2, 4, 1, 60), (700, 2, 4, 6, 60), (700, 3, 4, 9, 60),
     (700, 3, 1, 4, 60), (180, 3, 4, 9, 60), (60, 1, 4, 2, 60), (60, 3, 4, 6, 60),
     (700, 3, 15, 4, 30)],  # factors of the mean that are wider than the mean
)  # fmt: skip
def test_it_is_the_direct_algorithm(
    views, small_tiles, tuning, rows, n_views, k, iterations, anchors, full_below
):
    """With more rows than columns of all anchor kernels, and with at most as many."""
    tuning(linalg__full_below=full_below)
    xs = [x[:rows] for x in views[0][:n_views]]
    model = stopped(Plain(k, anchors=anchors, random_state=0), xs, iterations)
    assert model.n_iter_ == len(model.history_) == iterations
    Gs = anchor_kernels(model, xs)
    U, values, changes, d, bound = direct(Gs, k, iterations)
    assert apart(model.embedding_, U) < 30 * bound < 1e-8
    assert_allclose(np.abs(np.sum(model.embedding_ * U, axis=0)), 1, atol=1e-8)
    assert_allclose(model.singular_values_, d, rtol=30 * bound)
    assert_allclose([r["objective"] for r in model.history_], values, rtol=0, atol=rounding(Gs))
    assert_allclose([r["change"] for r in model.history_[1:]], changes, rtol=0, atol=30 * bound)
    assert model.history_[0]["change"] == np.inf
    assert model.objective_ == model.history_[-1]["objective"]


@pytest.mark.parametrize("rank", [0, 1, 20, 50])
def test_factor_of_cross_products(rank):
    B = np.random.default_rng(rank).standard_normal((rank, 50)) * np.logspace(0, -3, 50)
    R = smkc.factor(B.T @ B)
    assert len(R) == rank
    assert_allclose(R.T @ R, B.T @ B, atol=100 * EPS * (np.linalg.norm(B) ** 2 or 1))


@pytest.mark.parametrize("rows", [80, 700])
def test_kernels_of_equal_rows(rows):
    """Centered kernels that are zero, and their rank with them."""
    xs = [np.ones((rows, 2)), np.ones((rows, 3))]
    model = SMKC(3, anchors=60, random_state=0).fit(xs)
    assert_array_equal(model.embedding_, np.zeros((rows, 3)))
    assert model.objective_ == 0 and model.n_iter_ == 2


def test_it_warns_where_squares_lose_the_digits():
    random = np.random.default_rng(0)
    left, right = (np.linalg.qr(random.standard_normal((m, 3)))[0] for m in (90, 20))
    for least, expected in ((1e-4, False), (1e-6, True)):
        G = left * [1, 0.1, least] @ right.T
        with warnings.catch_warnings(record=True, action="always") as caught:
            model = Plain(3, kernels="precomputed", random_state=0).fit(G)
        assert apart(model.embedding_, left) < 30 * EPS / least**2
        found = [w for w in caught if "sigma_1 / sigma_k" in str(w.message)]
        assert len(found) == expected
        assert all(w.filename == __file__ for w in found)


def test_rank_below_k_leaves_zero_columns():
    random = np.random.default_rng(0)
    G = random.standard_normal((80, 2)) @ random.standard_normal((2, 10))
    with pytest.warns(UserWarning, match="the kernels have rank 2, less than n_clusters=4"):
        model = Plain(4, kernels="precomputed", random_state=0).fit(G)
    U = model.embedding_
    assert_allclose(U.T @ U, np.diag([1, 1, 0, 0]), atol=1e-12)
    assert apart(U[:, :2], np.linalg.qr(G[:, :2])[0]) < 1e-12
    assert_array_equal(model.predict(G), model.labels_)


def test_max_iter_and_tol(views):
    with pytest.warns(ConvergenceWarning, match="max_iter=2") as caught:
        Plain(4, anchors=50, max_iter=2, random_state=0).fit(views[0])
    assert caught[0].filename == __file__
    model = Plain(4, anchors=50, random_state=0).fit(views[0])
    changes = [record["change"] for record in model.history_]
    assert changes[-1] <= 1e-4 < min(changes[:-1])
    assert_allclose(model.kernel_weights_, [1 / 3] * 3)


# ---- invariances --------------------------------------------------------------------------------


def test_rows_anchors_and_views_in_another_order(views):
    xs = views[0]
    random = np.random.default_rng(1)
    order, anchors = random.permutation(700), random.choice(700, 60, replace=False)
    model = Plain(4, anchors=anchors, random_state=0).fit(xs)
    assert_array_equal(model.anchors_, anchors)
    inverse = np.argsort(order)
    rows = Plain(4, anchors=inverse[anchors], random_state=0).fit([x[order] for x in xs])
    columns = Plain(4, anchors=random.permutation(anchors), random_state=0).fit(xs)
    turned = Plain(4, anchors=anchors, random_state=0).fit(xs[::-1])
    assert apart(rows.embedding_, model.embedding_[order]) < 1e-10
    for other in (columns, turned):
        assert apart(other.embedding_, model.embedding_) < 1e-10
        assert_allclose(other.objective_, model.objective_, rtol=1e-10)


def test_scale_of_precomputed_kernels(views):
    model = Plain(4, kernels="precomputed", random_state=0)
    Gs = anchor_kernels(Plain(4, anchors=50, random_state=0).fit(views[0]), views[0])
    small, large = (clone(model).fit([c * G for G in Gs]) for c in (1e-9, 1e9))
    assert apart(small.embedding_, large.embedding_) < 1e-10
    assert_allclose(small.objective_ * 1e36, large.objective_, rtol=1e-9)


# ---- new rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("normalize_rows", [False, True])
def test_new_rows(views, normalize_rows):
    xs = views[0]
    train, new = [x[:600] for x in xs], [x[600:] for x in xs]
    model = Plain(4, anchors=60, normalize_rows=normalize_rows, random_state=0).fit(train)
    assert_allclose(model.transform(train), model.embedding_, atol=1e-10)
    assert np.mean(model.predict(train) == model.labels_) >= 0.99
    assert model.transform(new).shape == (100, 4)
    assert adjusted_rand_score(views[1][600:], model.predict(new)) > 0.9
    # U = B C, so the embedding of new rows is their kernels times the same C
    B, B_new = (np.hstack(anchor_kernels(model, train, rows)) for rows in (train, new))
    C = np.linalg.pinv(B) @ model.embedding_
    assert_allclose(B_new @ C, model.transform(new), atol=1e-6)


def test_precomputed_kernels_are_what_the_views_give(views):
    xs = views[0]
    model = Plain(4, anchors=60, random_state=0).fit([x[:600] for x in xs])
    G = [kernel.cross(x)[0] for kernel, x in zip(model._kernels, xs)]
    given = Plain(4, kernels="precomputed", random_state=0).fit([g[:600] for g in G])
    assert given.anchors_ is None and not given.__sklearn_tags__().input_tags.pairwise
    assert_array_equal(given.embedding_, model.embedding_)
    new = [g[600:] for g in G]
    assert_allclose(given.transform(new), model.transform([x[600:] for x in xs]), atol=1e-12)
    assert len(pickle.dumps(given)) < G[0].nbytes  # of the rows only the embedding is kept


# ---- kernels, anchors, storage ------------------------------------------------------------------


def test_gammas_come_from_all_rows(views):
    """Anchors that are close together would give a far larger gamma."""
    x = views[0][0]
    near = np.argsort(((x - x[0]) ** 2).sum(axis=1))[:50]
    model = Plain(4, anchors=near, random_state=0).fit(x)
    assert_allclose(model._kernels[0].params["gamma"], 1 / (4 * x.var(axis=0).sum()), rtol=1e-10)
    given = Plain(4, kernels=[("rbf", 0.3), "linear"], anchors=near, random_state=0).fit(x)
    assert given._kernels[0].params["gamma"] == 0.3 and len(given.kernel_weights_) == 2


@pytest.mark.parametrize(
    "kernels", ["du2015", ["cosine", "laplacian", ("polynomial", {"degree": 2})]]
)
def test_several_kernels_of_one_array(views, kernels):
    x = views[0][0]
    with warnings.catch_warnings(action="ignore"):  # narrow and flat kernels are in the bank
        model = Plain(4, kernels=kernels, anchors=40, random_state=0).fit(x)
    assert len(model.kernel_weights_) == (12 if kernels == "du2015" else 3)
    assert_array_equal(model.predict(x), model.labels_)


def opened(xs):
    """Return rows without weights, as a fit opens them."""
    return sample_tables(xs, ones(len(xs[0])), Sampling(len(xs[0]), None, 0, 1))


@pytest.mark.parametrize(
    ("n", "k", "given", "expected"),
    [(200, 3, "uniform", 200), (1500, 3, "uniform", 1000), (20_000, 3, "uniform", 1000),
     (30_475, 3, "uniform", 524), (101_499, 3, "uniform", 956), (25_000, 600, "uniform", 600),
     (200, 3, 40, 40), (200, 3, 400, 200)],
)  # fmt: skip
def test_number_of_anchors(n, k, given, expected):
    model = Plain(k, anchors=given)
    chosen = model._choose_anchors(opened([np.zeros((n, 1))]), k, np.random.RandomState(0))
    assert len(np.unique(chosen)) == len(chosen) == expected
    assert_array_equal(chosen, np.sort(chosen))
    assert chosen.min() >= 0 and chosen.max() < n


def test_uniform_anchors_are_uniform():
    model = Plain(2, anchors=20)
    random = np.random.RandomState(0)
    counts = np.zeros(50)
    for _ in range(500):
        counts[model._choose_anchors(opened([np.zeros((50, 1))]), 2, random)] += 1
    assert (np.abs(counts - 200) < 5 * np.sqrt(500 * 0.4 * 0.6)).all()


def test_spread_anchors_find_a_far_cluster_in_any_view():
    random = np.random.default_rng(0)
    first, second = random.standard_normal((200, 2)), 1e-6 * random.standard_normal((200, 2))
    first[0] += 100
    second[1] += 1e-4
    found = {"uniform": 0, "k-means++": 0}
    for anchors, seed in itertools.product(found, range(5)):
        model = Plain(3, anchors=(anchors, 50))
        chosen = model._choose_anchors(opened([first, second]), 3, np.random.RandomState(seed))
        found[anchors] += {0, 1} <= set(chosen)
    assert found["k-means++"] == 5 and found["uniform"] < 5
    equal = Plain(2, anchors=("k-means++", 30))
    chosen = equal._choose_anchors(opened([np.ones((100, 2))]), 2, np.random.RandomState(0))
    assert len(np.unique(chosen)) == 30


@pytest.mark.parametrize("kernels", [None, "precomputed"])
def test_memory_mapped_rows(views, dtype, tmp_path, monkeypatch, kernels):
    """They are read tile by tile: no part of the fit reads more of their rows at once."""
    arrays, mapped = [x.astype(dtype) for x in views[0]], []
    if kernels:
        full = Plain(4, anchors=60, random_state=0).fit(views[0])
        arrays = [G.astype(dtype) for G in anchor_kernels(full, views[0])]
    for i, x in enumerate(arrays):
        np.save(tmp_path / f"{i}.npy", x)
        mapped.append(np.load(tmp_path / f"{i}.npy", mmap_mode="r"))
    model = Plain(4, kernels=kernels, anchors=60, random_state=0)
    seen = []
    gram = smkc.AnchorKernels.gram
    monkeypatch.setattr(smkc.AnchorKernels, "gram", lambda B: (seen.extend(B.xs), gram(B))[1])
    found = clone(model).fit(mapped)
    assert all(np.shares_memory(a, b) for a, b in zip(seen, mapped, strict=True))
    assert_array_equal(found.embedding_, clone(model).fit(arrays).embedding_)
    assert_array_equal(found.predict(mapped), found.labels_)


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [(np.negative, "on its diagonal, must be >= 0"), (np.triu, "not symmetric")],
)
def test_kernels_among_the_rows_themselves_are_those_of_other_classes(views, change, message):
    K = rbf_kernel(views[0][0])
    Plain(4, kernels="precomputed", random_state=0).fit(K)
    with pytest.raises(ValueError, match="3 anchors as columns"):
        Plain(4, kernels="precomputed").fit(views[0][2])
    with pytest.raises(ValueError, match=rf"X\[1\] .*{message}"):
        Plain(4, kernels="precomputed").fit([K, change(K)])


def test_kernels_are_centered_at_the_anchors_and_normalised(views):
    xs = views[0]
    anchors = np.arange(0, len(xs[0]), 7)
    model = SMKC(4, anchors=anchors, random_state=0).fit(xs)
    Gs = []
    for x, kernel in zip(xs, model._kernels):
        K = rbf_kernel(x, gamma=kernel.params["gamma"])
        means = K[:, anchors].mean(axis=1)
        K = K - means - means[:, None] + means[anchors].mean()
        diagonal = np.diagonal(K)
        Gs.append((K / np.sqrt(diagonal * diagonal[:, None]))[:, anchors])
    given = SMKC(4, kernels="precomputed", random_state=0).fit(Gs)
    assert_allclose(model.embedding_, given.embedding_, atol=1e-8)
    assert_allclose(model.transform([x[:9] for x in xs]), model.embedding_[:9], atol=1e-10)


@pytest.mark.parametrize("constant", [0, 1])
def test_a_constant_view_among_many_rows_has_no_influence(constant):
    X, y = make_blobs(600, 4, centers=3, random_state=0)
    views = [X, X]
    views[constant] = np.ones((600, 2))
    assert adjusted_rand_score(y, SMKC(3, random_state=0).fit(views).labels_) > 0.95
