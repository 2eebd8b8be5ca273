"""CoregSC: its objective and updates against general solvers, its ends, and new rows."""

import itertools

import numpy as np
import pytest
from conventions import weight_and_sparse_failures
from internals import config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_mkkm import leading, projector, three_views

from rffpk import CoregSC, center_kernel
from rffpk.fusion.baselines import Agreement

SCHEMES = ["pairwise", "centroid"]
GAMMAS = [("rbf", 0.05), ("rbf", 0.01), ("rbf", 0.2)]


@parametrize_with_checks(
    [CoregSC(), CoregSC(scheme="centroid")], expected_failed_checks=weight_and_sparse_failures
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def views():
    return three_views(120)


def affinities(xs):
    """D^(-1/2) K D^(-1/2) of each view."""
    found = []
    for x, (_, gamma) in zip(xs, GAMMAS):
        K = rbf_kernel(x, gamma=gamma)
        found.append(K / np.sqrt(np.outer(K.sum(axis=0), K.sum(axis=0))))
    return found


def fit(xs, **parameters):
    return CoregSC(4, kernels=GAMMAS, random_state=0, **parameters).fit(xs)


def objective(As, Us, agreement, center=None):
    """By projectors of order n."""
    Ps = [projector(U) for U in Us]
    own = sum(np.trace(A @ P) for A, P in zip(As, Ps))
    if center is not None:
        return own + agreement * sum(np.trace(P @ projector(center)) for P in Ps)
    return own + agreement * sum(np.trace(P @ Q) for P, Q in itertools.combinations(Ps, 2))


def printed(As, k, agreement, scheme, iterations):
    """The published updates, by full decompositions; U of each view and the centroid, and the
    objective, after each iteration."""
    Us = [leading(A, k)[1] for A in As]
    center = leading(sum(map(projector, Us)), k)[1] if scheme == "centroid" else None
    for _ in range(iterations):
        for number, A in enumerate(As):
            others = [U for other, U in enumerate(Us) if other != number]
            drawn = [center] if scheme == "centroid" else others
            Us[number] = leading(A + agreement * sum(map(projector, drawn)), k)[1]
        if scheme == "centroid":
            center = leading(sum(map(projector, Us)), k)[1]
        yield Us, center, objective(As, Us, agreement, center)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("agreement", [pytest.param(0.01, marks=pytest.mark.exhaustive), 0.3])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_it_is_the_published_alternation(views, scheme, agreement):
    model = fit(views[0], scheme=scheme, agreement=agreement, tol=0.0, max_iter=5)
    states = list(printed(affinities(views[0]), 4, agreement, scheme, model.n_iter_))
    assert model.n_iter_ > 2
    assert_allclose([r["objective"] for r in model.history_], [s[2] for s in states], rtol=1e-9)
    Us, center, _ = states[-1]
    parts = np.split(model.embedding_, model.embedding_.shape[1] // 4, axis=1)
    expected = [center] if scheme == "centroid" else Us
    assert len(parts) == len(expected)
    for part, U in zip(parts, expected):
        assert_allclose(projector(part), projector(U), atol=1e-7)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("agreement", [0, 0.01, 0.1, 1.0])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_objective_never_falls_and_no_update_improves_its_end(views, scheme, agreement):
    model = fit(views[0], scheme=scheme, agreement=agreement, tol=1e-13, max_iter=80)
    for before, after in itertools.pairwise(model.history_):
        assert after["objective"] >= before["objective"] * (1 - 1e-12)
    if scheme == "centroid":
        return
    As = affinities(views[0])
    Us = np.split(model.embedding_, 3, axis=1)
    most = objective(As, Us, agreement)
    assert_allclose(most, model.objective_, rtol=1e-9)
    random = np.random.default_rng(0)
    for number in [0, 1, 2] * 3:
        near = list(Us)
        near[number] = np.linalg.qr(Us[number] + 0.05 * random.standard_normal((120, 4)))[0]
        assert objective(As, near, agreement) <= most * (1 + 1e-6)


@pytest.mark.exhaustive
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_iteration_is_linear_in_the_affinities(views, scheme):
    As = affinities(views[0])
    state = Agreement(As, 4, 0.2, scheme == "centroid")
    for _, _ in zip(range(6), state.iterations()):
        for U, mapping in zip(state.U, state.maps):
            assert_allclose(sum(A @ B for A, B in zip(As, mapping)), U, atol=1e-11)
        if scheme == "centroid":
            found = sum(A @ B for A, B in zip(As, state.center_map))
            assert_allclose(found, state.center, atol=1e-11)


def test_one_view_is_spectral_clustering(views):
    x, y = views[0][0], views[1]
    model = CoregSC(4, kernels=[("rbf", 0.05)], random_state=0).fit([x])
    expected = projector(leading(affinities([x])[0], 4)[1])
    assert_allclose(projector(model.embedding_), expected, atol=1e-12)
    other = SpectralClustering(4, gamma=0.05, random_state=0).fit(x)
    assert adjusted_rand_score(other.labels_, model.labels_) > 0.9
    assert adjusted_rand_score(y, model.labels_) > 0.9


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("n_landmarks", [None, 90])
def test_affinities_may_be_zero_on_their_diagonals(views, scheme, n_landmarks):
    xs, y = views
    Ks = [rbf_kernel(x, gamma=gamma) for x, (_, gamma) in zip(xs, GAMMAS)]
    for K in Ks:
        np.fill_diagonal(K, 0)
    model = CoregSC(4, kernels="precomputed", scheme=scheme, random_state=0)
    model.set_params(agreement=0.0, n_landmarks=n_landmarks).fit(Ks)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert_array_equal(model.predict(Ks), model.labels_)
    if scheme == "pairwise" and n_landmarks is None:
        for K, part in zip(Ks, np.split(model.embedding_, 3, axis=1)):
            A = K / np.sqrt(np.outer(K.sum(axis=0), K.sum(axis=0)))
            assert_allclose(projector(part), projector(leading(A, 4)[1]), atol=1e-12)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_views_agree_the_more_the_larger_the_weight(views, scheme):
    apart = []
    for agreement in (0.0, 0.05, 1.0):
        As = affinities(views[0])
        with config.one_blas_thread():
            state = Agreement(As, 4, agreement, scheme == "centroid")
            for _, _ in zip(range(10), state.iterations()):
                pass
        apart.append(state._common())
    assert apart[0] < apart[1] < apart[2] < 3 * 4 + 1e-9


@pytest.mark.parametrize("scheme", SCHEMES)
def test_new_rows_and_landmarks(scheme):
    xs, y = three_views(400)
    first, rest = [x[:300] for x in xs], [x[300:] for x in xs]
    model = fit(first, scheme=scheme)
    assert_allclose(model.transform(first), model.embedding_, atol=1e-12)
    assert_array_equal(model.predict(first), model.labels_)
    assert adjusted_rand_score(y[300:], model.predict(rest)) > 0.9
    few = fit(xs, scheme=scheme, n_landmarks=100)
    alone = fit([x[few.landmarks_] for x in xs], scheme=scheme)
    assert_allclose(few.embedding_, alone.transform(xs), atol=1e-11)
    assert adjusted_rand_score(y, few.labels_) > 0.9


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_order_of_rows_and_the_number_of_threads_do_not_matter(views, scheme):
    model = fit(views[0], scheme=scheme)
    order = np.random.default_rng(0).permutation(120)
    moved = fit([x[order] for x in views[0]], scheme=scheme)
    for a, b in zip(np.hsplit(moved.embedding_, 4), np.hsplit(model.embedding_[order], 4)):
        assert_allclose(projector(a), projector(b), atol=1e-6)
    again = clone(model).set_params(n_jobs=3).fit(views[0])
    assert_array_equal(again.embedding_, model.embedding_)


def test_precomputed_affinities_are_the_same_problem_and_are_not_changed(views):
    Ks = [rbf_kernel(x, gamma=gamma) for x, (_, gamma) in zip(views[0], GAMMAS)]
    before = [K.copy() for K in Ks]
    model = CoregSC(4, kernels="precomputed", random_state=0).fit(Ks)
    assert_allclose(model.objective_, fit(views[0]).objective_)
    assert_array_equal(model.predict(Ks), model.labels_)
    assert_array_equal(Ks, before)


def test_centered_kernels_are_raised_to_affinities(views):
    xs, y = views
    Ks = [center_kernel(rbf_kernel(x, gamma=gamma)) for x, (_, gamma) in zip(xs, GAMMAS)]
    before = [K.copy() for K in Ks]
    model = CoregSC(4, kernels="precomputed", random_state=0).fit(Ks)
    raised = [K - K.min() for K in Ks]
    expected = CoregSC(4, kernels="precomputed", random_state=0).fit(raised)
    assert_allclose(model.objective_, expected.objective_)
    assert_allclose(model.transform([K[:9] for K in Ks]), model.embedding_[:9], atol=1e-12)
    assert_array_equal(Ks, before)
    assert adjusted_rand_score(y, model.labels_) > 0.9


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"agreement": -0.1}, "agreement == -0.1, must be >= 0"),
        ({"agreement": 1e308}, "agreement == 1e.308, must be <= 1e.100"),
        ({"scheme": "both"}, "scheme == 'both', must be one of"),
        ({"tol": -1.0}, "tol == -1.0, must be >= 0"),
    ],
)
def test_bad_parameters(views, parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fit(views[0], **parameters)
