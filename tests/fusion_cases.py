"""Published fusions of kernels as cases: what each optimizes, and in which steps.

`tests/test_fusions.py` checks each property for all of them. Objectives are written from their
definitions, with matrices of order n, and steps by full decompositions and a general solver.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from oracles import procrustes
from scipy.optimize import minimize
from sklearn.datasets import make_blobs

import rffpk

GAMMAS = [("rbf", 0.05), ("rbf", 0.01), ("rbf", 0.2)]


def three_views(n):
    """Return two views that separate four clusters and one of noise, and the clusters."""
    random = np.random.default_rng(0)
    first, y = make_blobs(n, 5, centers=4, cluster_std=1.5, random_state=0)
    second = np.eye(4)[y] @ random.standard_normal((4, 12)) * 3 + random.standard_normal((n, 12))
    return [first, second, random.standard_normal((n, 3))], y


def gaussian(x, gamma, y=None):
    y = x if y is None else y
    return np.exp(-gamma * ((x[:, None] - y) ** 2).sum(axis=2))


def plain(xs, kernels=GAMMAS):
    return [gaussian(x, gamma) for x, (_, gamma) in zip(xs, kernels)]


def prepared(xs, kernels=GAMMAS):
    """Return kernels that are centered and normalized."""
    return [rffpk.normalize_kernel(rffpk.center_kernel(K)) for K in plain(xs, kernels)]


def leading(K, k):
    values, vectors = np.linalg.eigh(K)
    return values[::-1][:k], vectors[:, ::-1][:, :k]


def projector(H):
    return H @ H.T


def combined(Ks, alpha):
    return np.einsum("l,lij->ij", alpha**2, Ks)


def least_on_simplex(cost, start, jac=None):
    """Minimize a cost over rows of weights >= 0 of sum one by a general solver."""
    n, L = np.shape(np.atleast_2d(start))
    sums = np.kron(np.eye(n), np.ones(L))
    end = minimize(
        lambda x: cost(x.reshape(np.shape(start))), np.ravel(start), method="SLSQP",
        jac=jac and (lambda x: jac(x.reshape(np.shape(start))).ravel()), bounds=[(0, 1)] * (n * L),
        constraints={"type": "eq", "fun": lambda x: sums @ x - 1, "jac": lambda x: sums},
        options={"ftol": 1e-15, "maxiter": 300},
    )  # fmt: skip
    return end.x.reshape(np.shape(start))


def by_slsqp(Q):
    """Minimize x'Qx over the simplex by a general solver, from several starts."""
    Q, m = Q / Q.max(), len(Q)
    starts = [np.full(m, 1 / m), *(0.9 * np.eye(m) + 0.1 / m)]
    ends = [least_on_simplex(lambda x: x @ Q @ x, x, lambda x: 2 * Q @ x) for x in starts]
    return min(ends, key=lambda x: x @ Q @ x)


def moved(name, value, random):
    """Return another value of a variable, which satisfies its constraints."""
    if isinstance(value, list):
        number = random.integers(len(value))
        return [moved(name, x, random) if i == number else x for i, x in enumerate(value)]
    near = value + random.choice([0.01, 0.1]) * random.standard_normal(value.shape)
    if name in ("alpha", "theta"):  # weights of sum one, in whose simplex the objective is convex
        step = random.choice([1e-3, 0.1, 1.0])
        other = random.dirichlet(np.ones(value.shape[-1]), value.shape[:-1])
        return (1 - step) * value + step * other
    if name == "beta":  # weights whose squares have the sum one
        return np.abs(near) / np.linalg.norm(near)
    if name == "G":  # a semidefinite matrix
        values, vectors = np.linalg.eigh(value)
        root = vectors * np.sqrt(np.maximum(values, 0)) + 0.1 * (near - value)
        return root @ root.T
    return procrustes(near)  # orthonormal columns


# ---- AverageMKKM, MKKM, MKKM-MR and LKAM --------------------------------------------------------


def neighborhoods(Ks, model):
    """Return the indices of the rows in each, by sorting; one of all rows except for LKAM."""
    size = getattr(model, "n_neighbors", None)
    if size is None:
        return [np.arange(len(Ks[0]))]
    size = round(size * len(Ks[0])) if isinstance(size, float) else size
    return [np.argsort(-line, kind="stable")[:size] for line in np.mean(Ks, axis=0)]


def local_terms(Ks, model, H):
    """Return the means over neighborhoods of Tr(K_l (I - HH')) and Tr(K_p K_q)."""
    costs, M, parts = 0, 0, neighborhoods(Ks, model)
    for rows in parts:
        local = [K[np.ix_(rows, rows)] for K in Ks]
        costs = costs + np.array([np.trace(K) - np.trace(H[rows].T @ K @ H[rows]) for K in local])
        M = M + np.array([[np.sum(K * other) for other in local] for K in local])
    return costs / len(parts), M / len(parts)


def objective_of_sum(Ks, model, alpha, H):
    costs, M = local_terms(Ks, model, H)
    return alpha**2 @ costs + getattr(model, "diversity", 0) / 2 * alpha @ M @ alpha


def learned_sum(Ks, model, crosses, alpha=None):
    """Return sum_l alpha_l^2 K_l between rows and fitted ones, times the shares of neighborhoods.

    A row belongs to the neighborhoods whose row is as near as their own rows are.
    """
    alpha = model.kernel_weights_ if alpha is None else alpha
    K = combined(crosses, alpha)
    if not hasattr(model, "n_neighbors"):
        return K
    mean, cross, share = np.mean(Ks, axis=0), np.mean(crosses, axis=0), np.zeros(K.shape)
    for number, rows in enumerate(neighborhoods(Ks, model)):
        belong = np.flatnonzero(cross[:, number] >= mean[number, rows].min() - 1e-12)
        share[np.ix_(belong, rows)] += 1 / len(mean)
    return share * K


def printed_sum(Ks, model):
    """Update the eigenvectors of the combined kernel and the weights in turn."""
    fixed = getattr(model, "kernel_weights", None)
    alpha = np.full(len(Ks), 1 / len(Ks)) if fixed is None else np.divide(fixed, sum(fixed))
    while True:
        H = leading(learned_sum(Ks, model, Ks, alpha), model.n_clusters)[1]
        yield {"alpha": alpha, "H": H}
        costs, M = local_terms(Ks, model, H)
        diversity = getattr(model, "diversity", 0)
        alpha = by_slsqp(2 * np.diag(costs) + diversity * M) if diversity else 1 / costs
        alpha = alpha / alpha.sum()


# ---- SimpleMKKM ---------------------------------------------------------------------------------


def objective_simple(Ks, model, alpha):
    """Return the largest alignment."""
    return np.linalg.eigvalsh(combined(Ks, alpha))[-model.n_clusters :].sum() / len(Ks[0])


def printed_simple(Ks, model):
    """Yield the end alone, by a general solver: the least of a convex function."""
    start = np.full(len(Ks), 1 / len(Ks))
    yield {"alpha": least_on_simplex(lambda alpha: objective_simple(Ks, model, alpha), start)}


# ---- LMKKM --------------------------------------------------------------------------------------


def objective_lmkkm(Ks, model, theta, H):
    K = np.einsum("il,jl,lij->ij", theta, theta, Ks)
    return np.trace(K) - np.trace(H.T @ K @ H)


def learned_lmkkm(Ks, model, crosses):
    """Return the localized kernel; a row has the weights of its nearest fitted row.

    The kernels of rows with themselves are one.
    """
    theta, nearest = model.row_weights_, np.mean(crosses, axis=0).argmax(axis=1)
    return np.einsum("il,jl,lij->ij", theta[nearest], theta, crosses)


def printed_lmkkm(Ks, model):
    theta = np.full((len(Ks[0]), len(Ks)), 1 / len(Ks))
    while True:
        H = leading(np.einsum("il,jl,lij->ij", theta, theta, Ks), model.n_clusters)[1]
        yield {"theta": theta, "H": H}
        parts = np.array(Ks) * (np.eye(len(H)) - projector(H))
        theta = least_on_simplex(
            lambda x, H=H: objective_lmkkm(Ks, model, x, H), theta,
            lambda x, parts=parts: 2 * np.einsum("lij,jl->il", parts, x),
        )  # fmt: skip


# ---- ONKC ---------------------------------------------------------------------------------------


def objective_onkc(Ks, model, G, H, alpha):
    K = np.einsum("l,lij->ij", alpha, Ks)
    cost = np.trace(G) - np.trace(H.T @ G @ H)
    return cost + model.rho / 2 * np.sum((G - K) ** 2) + model.diversity / 2 * np.sum(K**2)


def near_kernel(Ks, model, H, alpha):
    """Return the best G for H and alpha, and its leading eigenvectors."""
    B = np.einsum("l,lij->ij", alpha, Ks) - (np.eye(len(H)) - projector(H)) / model.rho
    values, vectors = np.linalg.eigh(B)
    G = (vectors * np.maximum(values, 0)) @ vectors.T
    return G, vectors[:, ::-1][:, : model.n_clusters]


def printed_onkc(Ks, model):
    alpha = np.full(len(Ks), 1 / len(Ks))
    H = leading(np.mean(Ks, axis=0), model.n_clusters)[1]
    while True:
        G, H = near_kernel(Ks, model, H, alpha)
        alpha = least_on_simplex(lambda x, G=G, H=H: objective_onkc(Ks, model, G, H, x), alpha)
        yield {"G": G, "H": H, "alpha": alpha}


def end_of_onkc(Ks, model):
    H, alpha = model.embedding_, model.kernel_weights_
    return {"G": near_kernel(Ks, model, H, alpha)[0], "H": H, "alpha": alpha}


# ---- CoregSC ------------------------------------------------------------------------------------


def affinity(K):
    """Return D^(-1/2) K D^(-1/2) of a kernel, which is raised where it has negative values."""
    K = K - min(K.min(), 0)
    return K / np.sqrt(np.outer(K.sum(axis=0), K.sum(axis=0)))


def objective_coregsc(Ks, model, U, center=None):
    """Compute it by projectors of order n."""
    Ps = [projector(u) for u in U]
    pairs = itertools.combinations(Ps, 2)
    pairs = pairs if center is None else [(P, projector(center)) for P in Ps]
    own = sum(np.trace(affinity(K) @ P) for K, P in zip(Ks, Ps))
    return own + model.agreement * sum(np.trace(P @ Q) for P, Q in pairs)


def regularized(Ks, model, others):
    """Return the leading eigenvectors of each affinity and its agreement with other columns."""
    return [
        leading(affinity(K) + model.agreement * sum(map(projector, H)), model.n_clusters)[1]
        for K, H in zip(Ks, others)
    ]


def printed_coregsc(Ks, model):
    U = [leading(affinity(K), model.n_clusters)[1] for K in Ks]
    while True:
        for number, K in enumerate(Ks):
            U[number] = regularized([K], model, [U[:number] + U[number + 1 :]])[0]
        yield {"U": [*U]}


def printed_centroid(Ks, model):
    k = model.n_clusters
    U = [leading(affinity(K), k)[1] for K in Ks]
    while True:
        center = leading(sum(map(projector, U)), k)[1]
        U = regularized(Ks, model, [[center]] * len(Ks))
        yield {"U": U, "center": leading(sum(map(projector, U)), k)[1]}


def end_of_centroid(Ks, model):
    center = model.embedding_
    return {"U": regularized(Ks, model, [[center]] * len(Ks)), "center": center}


# ---- MVC-LFA ------------------------------------------------------------------------------------


def signed(K, k):
    """Return leading eigenvectors whose entries of largest size are positive."""
    H = leading(K, k)[1]
    return H * np.sign(H[np.abs(H).argmax(axis=0), np.arange(k)])


def objective_mvclfa(Ks, model, F, W, beta):
    k = model.n_clusters
    target = sum(b * signed(K, k) @ w for b, K, w in zip(beta, Ks, W))
    return np.trace(F.T @ (target + model.mean_weight * signed(np.mean(Ks, axis=0), k)))


def printed_mvclfa(Ks, model):
    k = model.n_clusters
    Hs, M = [signed(K, k) for K in Ks], signed(np.mean(Ks, axis=0), k)
    W, beta = [np.eye(k)] * len(Ks), np.full(len(Ks), len(Ks) ** -0.5)
    while True:
        F = procrustes(sum(b * H @ w for b, H, w in zip(beta, Hs, W)) + model.mean_weight * M)
        yield {"F": F, "W": W, "beta": beta}
        W = [procrustes(H.T @ F) for H in Hs]
        beta = np.array([np.trace(F.T @ H @ w) for H, w in zip(Hs, W)])
        beta /= np.linalg.norm(beta)


def end_of_mvclfa(Ks, model):
    F = model.embedding_
    W = [procrustes(signed(K, model.n_clusters).T @ F) for K in Ks]
    return {"F": F, "W": W, "beta": model.kernel_weights_}


# ---- FAMKKM --------------------------------------------------------------------------------------


def printed_famkkm(Ks, H, lambda1, lambda2, iterations):
    """Run Algorithm 1, with an SVD for each Procrustes problem; return F, gamma, the objectives."""
    L, k = len(Ks), H[0].shape[1]
    G, R, W = list(H), [np.eye(k)] * L, [np.eye(k)] * L
    H, g, values = list(H), np.full(L, 1 / L), []
    for iteration in range(iterations + 1):
        F = procrustes(sum(g[i] * (H[i] @ R[i] + G[i] @ W[i]) for i in range(L)))
        if iteration:
            parts = zip(H, G, R, W, Ks, g)
            values.append(
                sum(
                    np.sum(h * (K @ q)) + lambda1 * np.sum(h * q)
                    + lambda2 * c * np.sum(F * (h @ r + q @ w))
                    for h, q, r, w, K, c in parts
                )
            )  # fmt: skip
        last = F, g
        for i, K in enumerate(Ks):
            H[i] = procrustes(K @ G[i] + lambda1 * G[i] + lambda2 * g[i] * F @ R[i].T)
        for i, K in enumerate(Ks):
            G[i] = procrustes(K.T @ H[i] + lambda1 * H[i] + lambda2 * g[i] * F @ W[i].T)
        R = [procrustes(H[i].T @ F) for i in range(L)]
        W = [procrustes(G[i].T @ F) for i in range(L)]
        beta = np.array([np.sum(F * (H[i] @ R[i] + G[i] @ W[i])) for i in range(L)])
        g = beta / np.linalg.norm(beta)
    return *last, values


# ---- the cases ----------------------------------------------------------------------------------


def weights_and_columns(Ks, model):
    return {"alpha": model.kernel_weights_, "H": model.embedding_}


@dataclass(frozen=True)
class Case:
    """A fusion, with what its paper says."""

    name: str
    model: Any  # of four clusters
    objective: Callable  # of kernels, the model with its parameters, and the variables
    printed: Callable  # of kernels and the model; yields the variables after each iteration
    end: Callable = weights_and_columns  # of kernels and a fitted model; the variables at its end
    learned: Callable | None = None  # the kernel between rows and fitted ones that gives H
    grid: dict = field(default_factory=dict)  # values of parameters; a default run takes the first
    derived: tuple = ()  # variables at the end that follow from other variables
    kernels: Callable = prepared  # of views; the kernels that the class makes of GAMMAS
    direction: int = -1  # of the objective: it falls, or rises
    degree: int = 1  # of the objective in the kernels ...
    divided: tuple = ()  # ... if a factor of the kernels divides these parameters
    rows: int = 80  # on which the objective is computed by its definition
    most: int = 360  # rows, above the order of full decompositions where they take little time
    tol: float = 1e-13  # at which a fit is near a fixed point
    rounding: float = 1e-11  # of an iteration
    solved: float = 1e-5  # how near printed steps come, which take a general solver
    ended: float = 1e-9  # how near a fit comes to a fixed point

    def __str__(self):
        return self.name


def sums(name, model, **about):
    return Case(name, model, objective_of_sum, printed_sum, learned=learned_sum, **about)


def agreeing(name, model, printed, end, **about):
    return Case(
        name, model, objective_coregsc, printed, end, kernels=plain, direction=1, degree=0,
        grid={"agreement": [0.3, 0, 0.01, 0.1, 1.0]}, solved=1e-8, ended=1e-6, **about,
    )  # fmt: skip


CASES = [
    sums("average", rffpk.AverageMKKM(4), solved=1e-8),
    sums("given", rffpk.AverageMKKM(4, kernel_weights=[3, 1, 0]), solved=1e-8),
    sums("mkkm", rffpk.MKKM(4), grid={"n_clusters": [4, 1]}, solved=1e-8),
    sums("mkkm_mr", rffpk.MKKMMR(4, diversity=1e-3), divided=("diversity",),
         grid={"diversity": [0.1, 1e-3, 10.0], "n_clusters": [4, 1]}),
    sums("lkam", rffpk.LKAM(4), divided=("diversity",),
         grid={"n_neighbors": [20, 3, 79], "diversity": [0.1, 0, 1e-3, 10.0]}),
    Case("simplemkkm", rffpk.SimpleMKKM(4), objective_simple, printed_simple, learned=learned_sum,
         end=lambda Ks, model: {"alpha": model.kernel_weights_}, grid={"n_clusters": [4, 1, 7]},
         rows=30, tol=1e-8, solved=1e-4),
    Case("lmkkm", rffpk.LMKKM(4), objective_lmkkm, printed_lmkkm, learned=learned_lmkkm,
         end=lambda Ks, model: {"theta": model.row_weights_, "H": model.embedding_},
         grid={"n_clusters": [4, 1]}, rows=20, most=60, tol=1e-7, rounding=1e-6, ended=1e-5),
    # H are eigenvectors of the combination itself at a fixed point
    Case("onkc", rffpk.ONKC(4, diversity=1e-3), objective_onkc, printed_onkc, end_of_onkc,
         lambda Ks, model, crosses: np.einsum("l,lij->ij", model.kernel_weights_, crosses),
         grid={"rho": [1.0, 0.1, 32.0], "diversity": [0.1, 0, 1.0], "n_clusters": [4, 1]},
         derived=("G",), divided=("rho", "diversity"), most=120, rounding=1e-10, solved=1e-4,
         ended=1e-4),
    agreeing("coregsc", rffpk.CoregSC(4), printed_coregsc,
             lambda Ks, model: {"U": np.hsplit(model.embedding_, len(Ks))}),
    agreeing("centroid", rffpk.CoregSC(4, scheme="centroid"), printed_centroid, end_of_centroid,
             derived=("U",)),
    Case("mvclfa", rffpk.MVCLFA(4), objective_mvclfa, printed_mvclfa, end_of_mvclfa,
         grid={"mean_weight": [0.1, 0, 1.0, 100.0], "n_clusters": [4, 1]}, derived=("W",),
         direction=1, degree=0, solved=1e-8, ended=1e-6),
]  # fmt: skip
NAMED = {case.name: case for case in CASES}
