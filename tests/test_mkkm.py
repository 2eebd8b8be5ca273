"""AverageMKKM and MKKM, and what all fusions of kernels share: landmarks, new rows, errors."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from conventions import weight_and_sparse_failures
from internals import leading_eigenvectors
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from rffpk import LKAM, MKKM, MKKMMR, ONKC, AverageMKKM, center_kernel, normalize_kernel
from rffpk.fusion.simplemkkm import SimpleMKKM

FUSIONS = [
    AverageMKKM(4, random_state=0),
    AverageMKKM(4, kernel_weights=[3, 1, 0], random_state=0),
    MKKM(4, random_state=0),
    MKKMMR(4, diversity=1e-3, random_state=0),
    SimpleMKKM(4, random_state=0),
    LKAM(4, random_state=0),
    ONKC(4, diversity=1e-3, random_state=0),
]
NAMES = ["average", "given", "mkkm", "mr", "simple", "local", "near"]
# those whose kernel is sum_l alpha_l^2 K_l
sums = pytest.mark.parametrize("fusion", FUSIONS[:5], ids=NAMES[:5], indirect=True)
GAMMAS = [("rbf", 0.05), ("rbf", 0.01), ("rbf", 0.2)]


@parametrize_with_checks([AverageMKKM(), MKKM()], expected_failed_checks=weight_and_sparse_failures)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def three_views(n):
    """Two views that separate four clusters, and one of noise."""
    random = np.random.default_rng(0)
    first, y = make_blobs(n, 5, centers=4, cluster_std=1.5, random_state=0)
    second = np.eye(4)[y] @ random.standard_normal((4, 12)) * 3 + random.standard_normal((n, 12))
    return [first, second, random.standard_normal((n, 3))], y


@pytest.fixture(scope="module")
def views():
    return three_views(360)  # above the order of full decompositions


SLOW = pytest.param(FUSIONS[-1], marks=pytest.mark.exhaustive)


@pytest.fixture(params=[*FUSIONS[:-1], SLOW], ids=NAMES)
def fusion(request):
    return clone(request.param)


def gaussian(x, gamma, y=None):
    y = x if y is None else y
    return np.exp(-gamma * ((x[:, None] - y) ** 2).sum(axis=2))


def prepared(xs):
    """The kernels of GAMMAS, centered and normalised."""
    return [
        normalize_kernel(center_kernel(gaussian(x, gamma))) for x, (_, gamma) in zip(xs, GAMMAS)
    ]


def leading(K, k):
    values, vectors = np.linalg.eigh(K)
    return values[::-1][:k], vectors[:, ::-1][:, :k]


def combined(Ks, alpha):
    return np.einsum("l,lij->ij", alpha**2, Ks)


def projector(H):
    return H @ H.T


# ---- AverageMKKM --------------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize("n", [90, 360])
@pytest.mark.parametrize("given", [None, [1.0, 1.0, 1.0], [2.0, 1.0, 0.0]])
def test_the_embedding_are_leading_eigenvectors_of_the_weighted_sum(n, given):
    xs, y = three_views(n)
    model = AverageMKKM(4, kernels=GAMMAS, kernel_weights=given, random_state=0).fit(xs)
    alpha = np.full(3, 1 / 3) if given is None else np.divide(given, np.sum(given))
    K = combined(prepared(xs), alpha)
    values, H = leading(K, 4)
    assert_allclose(model.kernel_weights_, alpha)
    assert_allclose(model.eigenvalues_, values)
    assert_allclose(projector(model.embedding_), projector(H), atol=1e-10)
    assert_allclose(model.embedding_.T @ model.embedding_, np.eye(4), atol=1e-12)
    assert_allclose(model.objective_, np.trace(K) - values.sum())
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.labels_.dtype == np.int32 and model.n_iter_ == 1
    assert model.landmarks_ is None


# ---- MKKM ---------------------------------------------------------------------------------------


def printed_mkkm(Ks, k, tol):
    """The published alternation, by full decompositions."""
    alpha, before = np.full(len(Ks), 1 / len(Ks)), np.inf
    while True:
        H = leading(combined(Ks, alpha), k)[1]
        costs = np.array([np.trace(K) - np.trace(H.T @ K @ H) for K in Ks])
        objective = alpha**2 @ costs
        if before - objective <= tol * objective:
            return alpha, objective
        before, alpha = objective, 1 / costs / (1 / costs).sum()


@pytest.mark.few(1)
@pytest.mark.parametrize("tol", [pytest.param(1e-2, marks=pytest.mark.exhaustive), 1e-4, 1e-12])
def test_mkkm_is_the_printed_alternation(views, tol):
    model = MKKM(4, kernels=GAMMAS, tol=tol, random_state=0).fit(views[0])
    alpha, objective = printed_mkkm(prepared(views[0]), 4, tol)
    assert_allclose(model.kernel_weights_, alpha, rtol=1e-8)
    assert_allclose(model.objective_, objective, rtol=1e-12)


def test_mkkm_ends_where_neither_step_lowers_its_falling_objective(views):
    model = MKKM(4, kernels=GAMMAS, tol=1e-14, random_state=0).fit(views[0])
    objectives = [record["objective"] for record in model.history_]
    assert len(objectives) == model.n_iter_ > 2
    rounding = 360**2 * np.finfo(float).eps  # of traces, sums of 360 numbers that are at most 1
    for before, after in itertools.pairwise(objectives):
        assert after <= before + rounding
    Ks, alpha = prepared(views[0]), model.kernel_weights_
    H = leading(combined(Ks, alpha), 4)[1]
    assert_allclose(projector(H), projector(model.embedding_), atol=1e-9)
    inverse = [1 / np.trace(K - K @ projector(H)) for K in Ks]
    assert_allclose(alpha, np.divide(inverse, np.sum(inverse)), rtol=1e-6)
    assert alpha[2] < alpha[:2].min()


def test_mkkm_of_kernels_that_cost_nothing():
    """If all kernels have rank k, any weights will do; if some have, they get all weight."""
    labels = np.repeat(np.eye(2), 5, axis=0)
    K = labels @ labels.T
    assert_allclose(MKKM(2, kernels="precomputed").fit([K, K]).kernel_weights_, 0.5)
    model = MKKM(2, kernels="precomputed", tol=0.0).fit([K, np.eye(10)])
    assert_allclose(model.kernel_weights_, [1, 0], atol=1e-12)
    assert_allclose(model.objective_, 0, atol=1e-12)


# ---- common to all ------------------------------------------------------------------------------


def test_results_and_methods_agree(views, fusion):
    xs, y = views
    model = fusion.fit(xs)
    # SimpleMKKM gives the noise the largest weight: no clustering fits it
    simple = isinstance(fusion, SimpleMKKM)
    assert adjusted_rand_score(y, model.labels_) > (0.75 if simple else 0.95)
    assert_allclose(model.kernel_weights_.sum(), 1)
    assert_allclose(model.embedding_.T @ model.embedding_, np.eye(4), atol=1e-12)
    assert_allclose(model.transform(xs), model.embedding_, atol=1e-9)
    assert_array_equal(model.predict(xs), model.labels_)
    assert_array_equal(clone(model).fit_predict(xs), model.labels_)
    assert model.n_features_in_ == 20 and len(model.get_feature_names_out()) == 4
    rows = model.embedding_ / np.linalg.norm(model.embedding_, axis=1, keepdims=True)
    gaps = ((rows - model.cluster_centers_[model.labels_]) ** 2).sum()
    assert_allclose(model.inertia_, gaps, rtol=1e-6)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(xs), model.labels_)


def test_the_order_of_rows_and_views_does_not_matter(views, fusion):
    xs = views[0]
    fusion.set_params(kernels=GAMMAS)
    model = clone(fusion).fit(xs)
    order = np.random.default_rng(0).permutation(360)
    moved = clone(fusion).fit([x[order] for x in xs])
    assert_allclose(moved.kernel_weights_, model.kernel_weights_, atol=1e-6)
    assert_allclose(moved.embedding_, model.embedding_[order], atol=1e-6)
    assert adjusted_rand_score(moved.labels_, model.labels_[order]) == 1
    if getattr(fusion, "kernel_weights", None) is None:
        turned = clone(fusion).set_params(kernels=GAMMAS[::-1]).fit(xs[::-1])
        assert_allclose(turned.kernel_weights_, model.kernel_weights_[::-1], atol=1e-6)


def test_precomputed_kernels_are_the_same_problem(views, fusion):
    xs = views[0]
    model = clone(fusion).set_params(kernels=GAMMAS).fit(xs)
    Ks = prepared(xs)
    before = copy.deepcopy(Ks)
    given = clone(fusion).set_params(kernels="precomputed").fit(Ks)
    # an objective that is flat at its minimum determines weights to the root of its rounding
    assert_allclose(given.kernel_weights_, model.kernel_weights_, atol=1e-6)
    assert_allclose(given.embedding_, model.embedding_, atol=1e-6)
    assert_array_equal(given.predict(Ks), given.labels_)
    assert_array_equal(Ks, before)


def test_the_same_bits_for_any_number_of_threads(views, fusion, tuning):
    tuning(tiles__row_numbers=5000)
    for landmarks in (None, 50):
        fits = [
            clone(fusion).set_params(n_jobs=jobs, n_landmarks=landmarks).fit(views[0])
            for jobs in (1, 3)
        ]
        assert_array_equal(fits[0].embedding_, fits[1].embedding_)
        assert_array_equal(fits[0].labels_, fits[1].labels_)


def test_one_array_and_several_kernels(views, fusion):
    X = views[0][0]
    specs = ["rbf", ("polynomial", {"degree": 2}), "linear"]
    model = fusion.set_params(kernels=specs).fit(X)
    assert model.kernel_weights_.shape == (3,) and model.n_features_in_ == 5
    assert_array_equal(model.predict(X), model.labels_)


def test_the_bank_of_one_array(views):
    X, y = views[0][1], views[1]
    for landmarks in (None, 60):
        model = MKKM(4, kernels="du2015", n_landmarks=landmarks, random_state=0).fit(X)
        assert model.kernel_weights_.shape == (12,)
        assert adjusted_rand_score(y, model.labels_) > 0.9
    # the parameters of the kernels are estimated from the landmarks
    alone = MKKM(4, kernels="du2015", random_state=0).fit(X[model.landmarks_])
    assert_array_equal(alone.kernel_weights_, model.kernel_weights_)


def test_narrow_and_integer_views(views, fusion):
    first, second, noise = views[0]
    rounded = [np.round(first), second, noise]
    model = clone(fusion).fit(rounded)
    mixed = [np.round(first).astype(int), np.asfortranarray(second), noise]
    assert_array_equal(clone(fusion).fit(mixed).embedding_, model.embedding_)
    narrow = clone(fusion).fit([x.astype(np.float32) for x in rounded])
    assert_allclose(narrow.kernel_weights_, model.kernel_weights_, atol=1e-4)
    assert adjusted_rand_score(narrow.labels_, model.labels_) == 1


@pytest.mark.parametrize("k", [1, 6])
def test_degenerate_rows(fusion, k):
    """As many clusters as rows, one cluster, and rows that are all equal."""
    xs = [np.random.default_rng(0).standard_normal((6, 2)) for _ in range(3)]
    model = clone(fusion).set_params(n_clusters=k).fit(xs)
    assert len(np.unique(model.labels_)) <= k
    assert np.isfinite(model.transform(xs)).all()
    same = clone(fusion).set_params(n_clusters=k).fit([np.ones((6, 2))] * 3)
    assert np.isfinite(same.kernel_weights_).all() and np.isfinite(same.objective_)
    assert_array_equal(same.transform([np.ones((2, 2))] * 3), np.zeros((2, k)))


def test_an_eigenvector_orthogonal_to_the_start_is_found():
    random = np.random.default_rng(0)
    A = random.standard_normal((200, 200))
    A, Z = A @ A.T, np.zeros((200, 200))
    start = np.r_[np.ones(200), np.zeros(200)]
    found = leading_eigenvectors(np.block([[A, Z], [Z, 2 * A]]), 3, 400, start)[0]
    assert_allclose(found, 2 * np.linalg.eigvalsh(A)[::-1][:3])


# ---- landmarks: MKC-AE --------------------------------------------------------------------------


@sums
def test_learned_on_landmarks_all_rows_are_embedded(views, fusion, tuning):
    """Eq. 8: h_c(x) = 1 / (n lambda_c) sum_i h_ic sum_p alpha_p^2 k_p(x, x_i), centered by the
    landmarks and normalised."""
    xs = views[0]
    whole = clone(fusion).set_params(n_landmarks=70, kernels=GAMMAS).fit(xs)
    chosen = whole.landmarks_
    assert len(np.unique(chosen)) == 70 and (np.diff(chosen) > 0).all()
    few = [x[chosen] for x in xs]
    alone = clone(fusion).set_params(kernels=GAMMAS).fit(few)
    assert_allclose(whole.kernel_weights_, alone.kernel_weights_, rtol=1e-12)
    assert_allclose(whole.embedding_[chosen], alone.embedding_, atol=1e-9)
    lambdas = alone.eigenvalues_ / 70
    total = 0
    for x, x_few, weight, (_, gamma) in zip(xs, few, alone.kernel_weights_, GAMMAS):
        near, far = gaussian(x_few, gamma), gaussian(x, gamma, x_few)
        squares = 1 - 2 * far.mean(axis=1) + near.mean()
        far = far - far.mean(axis=1, keepdims=True) - near.mean(axis=0) + near.mean()
        norms = np.sqrt(np.diagonal(center_kernel(near)))
        total = total + weight**2 * far / np.sqrt(squares)[:, None] / norms
    assert_allclose(whole.embedding_, total @ alone.embedding_ / (70 * lambdas), atol=1e-9)
    assert_array_equal(whole.predict(xs), whole.labels_)
    assert adjusted_rand_score(views[1], whole.labels_) > 0.9
    tuning(tiles__row_numbers=700)
    assert_allclose(whole.transform(xs), whole.embedding_, atol=1e-12)


def test_all_rows_as_landmarks_are_no_landmarks(views, fusion):
    xs = [x[:50] for x in views[0]]
    whole = clone(fusion).fit(xs)
    for landmarks in (50, 1000):
        model = clone(fusion).set_params(n_landmarks=landmarks).fit(xs)
        assert model.landmarks_ is None
        assert_array_equal(model.labels_, whole.labels_)


@sums
def test_landmarks_of_precomputed_kernels(views, fusion):
    """New rows come with their kernels to all fitted rows."""
    Ks = prepared(views[0])
    model = fusion.set_params(n_landmarks=70, kernels="precomputed").fit(Ks)
    chosen = model.landmarks_
    parts = np.array([K[:, chosen] for K in Ks])
    expected = (
        combined(parts, model.kernel_weights_)
        @ leading(combined(parts[:, chosen], model.kernel_weights_), 4)[1]
    )
    assert_allclose(
        projector(model.embedding_ * model.eigenvalues_), projector(expected), atol=1e-9
    )
    found = model.transform([K[:9] for K in Ks])  # BLAS may round it differently
    assert_allclose(found, model.embedding_[:9], rtol=1e-12, atol=1e-14)


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"n_clusters": 0}, "n_clusters == 0, must be >= 1"),
        ({"n_clusters": 400}, "n_clusters=400: must not exceed .* samples .360"),
        ({"n_init": 0}, "n_init == 0, must be >= 1"),
        ({"n_landmarks": 3}, "n_landmarks == 3, must be >= 4"),
        ({"n_landmarks": 40.0}, "n_landmarks must be an instance of int"),
        ({"standardize": 1}, "standardize == 1, must be True or False"),
        ({"normalize_rows": "yes"}, "normalize_rows == 'yes', must be True or False"),
        ({"kernels": "rbf"}, "kernels == 'rbf', must be one of"),
        ({"kernels": ["rbf"] * 2}, "kernels has 2 entries for 3 views"),
        ({"kernels": ["wave"] * 3}, r"kernels\[0\] == 'wave', must be one of"),
        ({"kernels": "du2015"}, "kernels == 'du2015' needs one array, not a list"),
        ({"kernels": "precomputed"}, r"X\[0\].shape == \(360, 5\), must be square"),
        ({"n_jobs": 0}, "n_jobs == 0, must be"),
    ],
)
def test_bad_parameters_are_named_and_change_nothing(views, fusion, parameters, message):
    fusion.set_params(**parameters)
    before = dict(vars(fusion))
    with pytest.raises((ValueError, TypeError), match=message):
        fusion.fit(views[0])
    assert vars(fusion) == before


@pytest.mark.parametrize(
    "weights, message",
    [
        ([1, 2], r"^kernel_weights: has shape \(2,\). Pass 3 weights"),
        ([1, -1, 1], r"^kernel_weights=\[1, -1, 1\]: must be finite, >= 0"),
        ([0, 0, 0], "not all 0"),
        ([1, np.inf, 0], "finite"),
        ("equal", "kernel_weights: could not convert string"),
        (["a", "b", "c"], "kernel_weights: could not convert string"),
    ],
)
def test_bad_given_weights(views, weights, message):
    with pytest.raises(ValueError, match=message):
        AverageMKKM(4, kernel_weights=weights).fit(views[0])


@pytest.mark.parametrize("tol, error", [(-1.0, ValueError), (np.nan, ValueError), ("a", TypeError)])
def test_bad_tolerances(views, tol, error):
    with pytest.raises(error, match="tol == "):
        MKKM(4, tol=tol).fit(views[0])


def test_rows_that_are_not_those_of_the_fit(views, fusion):
    xs = views[0]
    model = fusion.fit(xs)
    with pytest.raises(ValueError, match="^X: has 2 views, but had 3 in fit"):
        model.transform(xs[:2])
    with pytest.raises(ValueError, match=r"^X\[1\]: has 3 columns, but had 12 in fit"):
        model.predict([xs[0], xs[2], xs[2]])
