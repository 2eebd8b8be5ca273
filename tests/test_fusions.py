"""What all fusions of kernels have in common, for each case of fusion_cases.py."""

import copy
import itertools

import numpy as np
import pytest
from fusion_cases import (
    CASES,
    GAMMAS,
    affinity,
    gaussian,
    leading,
    learned_sum,
    moved,
    plain,
    projector,
    three_views,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import rffpk

each = pytest.mark.parametrize("case", CASES, ids=str)
every = [case for case in CASES if case.learned]  # of which new rows have a formula
VARIANTS = [
    pytest.param((case, dict(zip(case.grid, values))), id="-".join(map(str, [case, *values])),
                 marks=pytest.mark.exhaustive if number else ())
    for case in CASES for number, values in enumerate(itertools.product(*case.grid.values()))
]  # fmt: skip


def fit(case, X, weight=None, **parameters):
    return clone(case.model).set_params(random_state=0, **parameters).fit(X, sample_weight=weight)


def fit_kernels(case, Ks, **parameters):
    return fit(case, list(Ks), kernels="precomputed", **parameters)


def precise(case, tol=None, max_iter=400):
    """Return the parameters of a fit that ends near its fixed point; AverageMKKM has none."""
    if isinstance(case.model, rffpk.AverageMKKM):
        return {}
    return {"tol": case.tol if tol is None else tol, "max_iter": max_iter}


def kernels_of(case):
    return case.kernels(three_views(case.rows)[0])


def views_of(case):
    return three_views(case.most)


def shares(case, weights):
    """Return what has the sum one."""
    return weights**2 if case.name == "mvclfa" else weights


# ---- what is optimized --------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_is_the_printed_alternation(variant):
    """Iterations end at the tolerance, and columns are linear in the kernels before that, too."""
    case, parameters = variant
    Ks, tol = kernels_of(case), 1e-4
    early = fit_kernels(case, Ks, **precise(case, 0.5 * tol, 3), **parameters)
    model = fit_kernels(case, Ks, **precise(case, tol, 30), **parameters)
    steps = itertools.islice(case.printed(Ks, model), max(early.n_iter_, model.n_iter_))
    states = copy.deepcopy([*steps])
    for record, state in zip(model.history_[-len(states) :], states):
        expected = case.objective(Ks, model, **state)
        assert_allclose(record["objective"], expected, rtol=case.solved / 100)
        weights = state.get("alpha", state.get("beta", np.full(3, 1 / 3)))
        weights = state["theta"].mean(axis=0) if "theta" in state else weights
        assert_allclose(record["kernel_weights"], weights, atol=case.solved)
    for found in (model, early) if len(states) > 1 else (model,):
        end, state = case.end(Ks, found), states[min(found.n_iter_, len(states)) - 1]
        for name in set(end).difference(case.derived):
            one, other = end[name], state[name]
            if name in ("H", "center", "U"):
                one, other = (projector(np.hstack(x) if name == "U" else x) for x in (one, other))
            assert_allclose(one, other, atol=10 * case.solved)
    if case.name != "simplemkkm" and 1 < model.n_iter_ < 30:
        values = case.direction * np.array([record["objective"] for record in model.history_])
        *gains, last = np.diff(values) / abs(values[1:])
        assert min(gains, default=1) > tol >= last


@pytest.fixture(scope="module", params=VARIANTS)
def ended(request):
    """Fit up to near a fixed point."""
    case, parameters = request.param
    Ks = kernels_of(case)
    return case, Ks, fit_kernels(case, Ks, **precise(case), **parameters)


def test_the_objective_is_monotone(ended):
    case, _, model = ended
    values = [case.direction * record["objective"] for record in model.history_]
    assert len(values) == model.n_iter_
    assert model.n_iter_ > 1 or isinstance(model, rffpk.AverageMKKM)
    for before, after in itertools.pairwise(values):
        assert after >= before - case.rounding * abs(before)


def test_no_update_improves_the_end(ended):
    case, Ks, model = ended
    if model.n_iter_ == model.max_iter > 1:  # far from a fixed point
        assert case.name == "onkc"
        return
    end = case.end(Ks, model)
    best = case.objective(Ks, model, **end)
    assert_allclose(model.objective_, best, rtol=case.ended)
    assert_allclose(model.objective_, model.history_[-1]["objective"])
    random = np.random.default_rng(0)
    for name in set(end) - ({"alpha"} if isinstance(model, rffpk.AverageMKKM) else set()):
        for _ in range(10):
            other = case.objective(Ks, model, **{**end, name: moved(name, end[name], random)})
            assert case.direction * (other - best) <= 1e-9 * abs(best), name


@pytest.mark.parametrize("most", [False, True], ids=["few", "most"])
@pytest.mark.parametrize("case", every, ids=str)
def test_columns_are_leading_eigenvectors_of_the_learned_kernel(case, most):
    Ks = case.kernels(three_views(case.most if most else case.rows)[0])
    model = fit_kernels(case, Ks, **precise(case))
    values, H = leading(case.learned(Ks, model, Ks), 4)
    assert_allclose(model.eigenvalues_, values, rtol=case.ended)
    assert_allclose(projector(model.embedding_), projector(H), atol=10 * case.ended)


@each
def test_a_factor_of_the_kernels_scales_the_objective(case):
    """The penalties are divided by it."""
    Ks, factor = kernels_of(case), 1e6
    model = fit_kernels(case, Ks)
    divided = {name: getattr(case.model, name) / factor for name in case.divided}
    louder = fit_kernels(case, [factor * K for K in Ks], **divided)
    assert_allclose(louder.objective_, factor**case.degree * model.objective_, rtol=1e-6)
    assert_allclose(louder.kernel_weights_, model.kernel_weights_, atol=1e-5)
    assert_allclose(louder.embedding_, model.embedding_, atol=1e-5)


@pytest.mark.parametrize("case", [case for case in CASES if case.name != "given"], ids=str)
def test_one_kernel_has_all_weight(case):
    """Nothing is left to learn: columns are its leading eigenvectors."""
    Ks = kernels_of(case)[:1]
    model = fit_kernels(case, Ks)
    assert_allclose(getattr(model, "row_weights_", model.kernel_weights_), 1)
    K = affinity(Ks[0]) if case.kernels is plain else learned_sum(Ks, model, Ks)
    values, H = leading(K, 4)
    assert_allclose(projector(model.embedding_), projector(H), atol=1e-9)
    assert_allclose(getattr(model, "eigenvalues_", values), values)
    assert model.n_iter_ <= 2


# ---- rows and methods ---------------------------------------------------------------------------


@each
def test_results_and_methods_agree(case):
    xs, y = views_of(case)
    model = fit(case, xs)
    # SimpleMKKM gives the noise the largest weight: no clustering fits it
    assert adjusted_rand_score(y, model.labels_) > (0.75 if case.name == "simplemkkm" else 0.95)
    assert_allclose(shares(case, model.kernel_weights_).sum(), 1)
    assert (model.kernel_weights_ >= 0).all() and model.landmarks_ is None
    for U in np.hsplit(model.embedding_, model.embedding_.shape[1] // 4):
        assert_allclose(U.T @ U, np.eye(4), atol=1e-9)
    assert_allclose(model.transform(xs), model.embedding_, atol=1e-9)
    assert_array_equal(model.predict(xs), model.labels_)
    assert_array_equal(clone(model).fit_predict(xs), model.labels_)
    assert model.n_features_in_ == 20 and model.labels_.dtype == np.int32
    assert len(model.get_feature_names_out()) == model.embedding_.shape[1]
    rows = model.embedding_ / np.linalg.norm(model.embedding_, axis=1, keepdims=True)
    gaps = ((rows - model.cluster_centers_[model.labels_]) ** 2).sum()
    assert_allclose(model.inertia_, gaps, rtol=1e-6)


@each
def test_the_order_of_rows_and_views_does_not_matter(case):
    xs = views_of(case)[0]
    model = fit(case, xs, kernels=GAMMAS)
    order = np.random.default_rng(0).permutation(case.most)
    moved = fit(case, [x[order] for x in xs], kernels=GAMMAS)
    assert_allclose(moved.kernel_weights_, model.kernel_weights_, atol=1e-6)
    parts = [(moved.embedding_, model.embedding_[order])]
    if case.name in ("coregsc", "centroid"):  # columns of each view, up to their signs
        count = moved.embedding_.shape[1] // 4
        parts = [map(projector, pair) for pair in zip(*(np.hsplit(x, count) for x in parts[0]))]
    for one, other in parts:
        assert_allclose(one, other, atol=1e-5)
    assert adjusted_rand_score(moved.labels_, model.labels_[order]) == 1
    if case.name != "given":
        turned = fit(case, xs[::-1], kernels=GAMMAS[::-1])
        assert_allclose(turned.kernel_weights_, model.kernel_weights_[::-1], atol=1e-5)
        assert_allclose(turned.objective_, model.objective_, rtol=1e-4)


@each
def test_precomputed_kernels_are_the_same_problem(case):
    xs = views_of(case)[0]
    Ks = case.kernels(xs)
    before = copy.deepcopy(Ks)
    of_views, model = fit(case, xs, kernels=GAMMAS), fit_kernels(case, Ks)
    # an objective that is flat at its minimum determines weights to the root of its rounding
    assert_allclose(model.kernel_weights_, of_views.kernel_weights_, atol=1e-6)
    assert_allclose(model.embedding_, of_views.embedding_, atol=1e-5)
    assert_array_equal(model.predict(Ks), model.labels_)
    found = model.transform([K[:9] for K in Ks])  # BLAS may round it differently
    assert_allclose(found, model.embedding_[:9], rtol=1e-12, atol=1e-12)
    assert_array_equal(Ks, before)


@each
def test_one_array_and_several_kernels(case):
    X = views_of(case)[0][0]
    model = fit(case, X, kernels=["rbf", ("polynomial", {"degree": 2}), "linear"])
    assert model.kernel_weights_.shape == (3,) and model.n_features_in_ == 5
    assert_array_equal(model.predict(X), model.labels_)


def test_the_bank_of_one_array():
    (_, X, _), y = three_views(360)
    for landmarks in (None, 60):
        model = rffpk.MKKM(4, kernels="du2015", n_landmarks=landmarks, random_state=0).fit(X)
        assert model.kernel_weights_.shape == (12,)
        assert adjusted_rand_score(y, model.labels_) > 0.9
    # the parameters of the kernels are estimated from the landmarks
    alone = rffpk.MKKM(4, kernels="du2015", random_state=0).fit(X[model.landmarks_])
    assert_array_equal(alone.kernel_weights_, model.kernel_weights_)


@each
def test_narrow_and_integer_views(case):
    first, second, noise = views_of(case)[0]
    rounded = [np.round(first), second, noise]
    model = fit(case, rounded)
    mixed = [np.round(first).astype(int), np.asfortranarray(second), noise]
    assert_array_equal(fit(case, mixed).embedding_, model.embedding_)
    narrow = fit(case, [x.astype(np.float32) for x in rounded])
    assert_allclose(narrow.kernel_weights_, model.kernel_weights_, atol=1e-4)
    assert adjusted_rand_score(narrow.labels_, model.labels_) == 1


@pytest.mark.few(4)
@each
@pytest.mark.parametrize("k", [1, 6])
def test_degenerate_rows(case, k):
    """As many clusters as rows, one cluster, and rows that are all equal."""
    xs = [np.random.default_rng(0).standard_normal((6, 2)) for _ in range(3)]
    model = fit(case, xs, n_clusters=k)
    assert len(np.unique(model.labels_)) <= k
    assert np.isfinite(model.transform(xs)).all()
    same = fit(case, [np.ones((6, 2))] * 3, n_clusters=k)
    assert np.isfinite(same.kernel_weights_).all() and np.isfinite(same.objective_)
    found = same.transform([np.ones((2, 2))] * 3)
    assert np.isfinite(found).all() and not (found.any() and case.kernels is not plain)


# ---- landmarks and new rows ---------------------------------------------------------------------


def centered(far, near):
    """Return kernels between rows and fitted ones, which determine the centers and the norms.

    The kernel of a row with itself is one before.
    """
    squares = 1 - 2 * far.mean(axis=1) + near.mean()
    far = far - far.mean(axis=1, keepdims=True) - near.mean(axis=0) + near.mean()
    norms = np.sqrt(np.diagonal(rffpk.center_kernel(near)))
    return far / np.sqrt(squares)[:, None] / norms


@pytest.mark.parametrize("case", every, ids=str)
def test_new_rows_meet_the_learned_kernel(case):
    """MKC-AE, eq. 8: h_c(x) = sum_i K(x, x_i) h_ic / lambda_c, K centered by the fitted rows."""
    xs, y = three_views(150)
    fitted = [x[:80] for x in xs]
    model = fit(case, fitted, kernels=GAMMAS, **precise(case))
    crosses = [
        centered(gaussian(x, gamma, part), gaussian(part, gamma))
        for x, part, (_, gamma) in zip(xs, fitted, GAMMAS)
    ]
    K = case.learned([K[:80] for K in crosses], model, crosses)
    expected = K @ model.embedding_ / model.eigenvalues_
    assert_allclose(model.transform(xs), expected, atol=10 * case.ended)
    assert adjusted_rand_score(y, model.predict(xs)) > 0.7


@each
@pytest.mark.parametrize("precomputed", [False, True], ids=["views", "kernels"])
@pytest.mark.parametrize("weighted", [False, True])
def test_landmarks_are_a_fit_of_their_own(case, precomputed, weighted, tuning):
    """New rows come with their kernels to all fitted rows, where kernels are precomputed."""
    xs, y = three_views(360)
    weight = np.random.default_rng(1).integers(0, 4, 360) if weighted else np.ones(360)
    X, kernels = (case.kernels(xs), "precomputed") if precomputed else (xs, GAMMAS)
    whole = fit(case, X, weight, kernels=kernels, n_landmarks=80)
    chosen = whole.landmarks_
    assert len(chosen) == 80 and (np.diff(chosen) > 0).all() and weight[chosen].all()
    part = [x[np.ix_(chosen, chosen)] if precomputed else x[chosen] for x in X]
    alone = fit(case, part, weight[chosen], kernels=kernels)
    assert_allclose(whole.kernel_weights_, alone.kernel_weights_, rtol=1e-12)
    embedding = alone.transform([x[:, chosen] if precomputed else x for x in X])
    assert_allclose(whole.embedding_, embedding, atol=1e-9)
    assert_allclose(whole.embedding_[chosen], alone.embedding_, atol=1e-9)
    assert_array_equal(whole.predict(X), whole.labels_)
    assert adjusted_rand_score(y, whole.labels_) > 0.9
    tuning(tiles__row_numbers=700)
    assert_allclose(whole.transform([x[:99] for x in X]), whole.embedding_[:99], atol=1e-12)


@each
def test_all_rows_as_landmarks_are_no_landmarks(case):
    xs = [x[:50] for x in views_of(case)[0]]
    whole = fit(case, xs)
    for landmarks in (50, 1000):
        model = fit(case, xs, n_landmarks=landmarks)
        assert model.landmarks_ is None
        assert_array_equal(model.labels_, whole.labels_)
