"""The NumPy twin of the compiled pass, which verifies it.

The twin computes in float64 whatever the type of its input, and distances as sums of squared
differences, which avoids cancellation. The compiled pass agrees with it to `TOLERANCE[dtype] * (1 +
|s|)`. With typicality, |s| + 1/(m-1) takes the place of |s|. The errors are relative to the largest
entry of a result, and of the terms of its sums. This holds for rows whose least squared distance is
above 1 % of ||phi||^2. Closer to a centroid, the absolute error of a squared distance is a few eps
||phi||^2, but at most 2^-8 of the distance in float32 and 2^-26 in float64. The error of weights
follows from it.
"""

from __future__ import annotations

import math
import time
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rffpk.rows.arrays import Array, Landmarks, Structure
from rffpk.rows.sums import (
    Sums,
    divided,
    hard_weights,
    onto_sphere,
    power_weights,
    typicality,
    view_penalty,
    view_weights,
)
from rffpk.rows.table import Columns, dense

POWER, HARD, TYPICALITY, BOTH = range(4)

# Phases of the features carry the rounding of x Omega, a few eps times its size, and the power
# mean multiplies relative errors of the distances by |s|.
TOLERANCE = {np.dtype(np.float32): 5e-5, np.dtype(np.float64): 2e-13}


def features(x: Columns, omega: Array | None, landmarks: Landmarks | None = None) -> Array:
    """Return the feature vectors (n, F) of rows x (n, d).

    With `landmarks` they are weighted means of the coordinates of the nearest landmarks. With
    frequencies `omega` they are D^(-1/2) [sin(x Omega), cos(x Omega)] (RFF-KPKM, eq. 2). Otherwise
    they are x itself."""
    x = np.asarray(dense(x), dtype=np.float64)
    if landmarks is not None:
        at, z = nearest_landmarks(x, landmarks)
        near = landmarks.coordinates.astype(np.float64)[at]
        return near[:, 0] + np.einsum("nr,nrq->nq", z, near - near[:, :1])
    if omega is None:
        return x
    phase = x @ np.asarray(omega, dtype=np.float64)
    return np.hstack([np.sin(phase), np.cos(phase)]) / np.sqrt(omega.shape[1])


def nearest_landmarks(x: Columns, landmarks: Landmarks) -> tuple[Array, Array]:
    """Return the nearest landmarks of each row, nearest first, and their weights, both (n, r)."""
    points = landmarks.points.astype(np.float64)
    d = squared_distances(np.asarray(dense(x), dtype=np.float64), points)
    at = np.argsort(d, axis=1, kind="stable")[:, : landmarks.n_neighbours]
    d = np.take_along_axis(d, at, axis=1)
    width = 2 * d.mean(axis=1, keepdims=True) if landmarks.scale == 0 else 1 / landmarks.scale
    z = np.exp(-(d - d[:, :1]) / np.where(width > 0, width, 1))
    z[z < landmarks.least_weight] = 0
    return at, z / z.sum(axis=1, keepdims=True)


def _unit(x: Columns) -> Array:
    """Return rows scaled to length one, in float64; zeros stay."""
    x = np.asarray(dense(x), dtype=np.float64)
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(lengths > 0, lengths, 1)


def _masses(weight: Array | None, n: int) -> NDArray[np.float64]:
    """Return the weights of n rows, by default one each."""
    return np.ones(n) if weight is None else weight.astype(np.float64)


def squared_distances(phi: Array, theta: Array) -> Array:
    """Return ``||phi_i - theta_j||^2`` for all i and j, without cancellation. O(n k F)."""
    return np.stack([((phi - center) ** 2).sum(axis=1) for center in theta], axis=1)


def fused_pass(
    xs: list[Columns],
    omegas: list[Array | None],
    shifts: list[Array],
    theta: Array,
    alpha: Array,
    weight: Array | None,
    rule: int,
    s: float,
    n_threads: int = 1,
    *,
    structures: list[Structure | None] | None = None,
    landmarks: list[Landmarks | None] | None = None,
    eta: Array | None = None,
    m: float = 0,
    labels: Array | None = None,
    memberships: Array | None = None,
    distances: Array | None = None,
    nearest: Array | None = None,
    second: Array | None = None,
    features: Array | None = None,
    neighbours: Array | None = None,
    neighbour_weights: Array | None = None,
    carry: tuple[Array, Array, Array, Array, float, float] | None = None,
    present: Array | None = None,
    units: list[bool] | None = None,
    directions: tuple[Array, Array, float] | None = None,
) -> tuple[Array, Array, Array, Array, float, float]:
    """Make one pass over the rows.

    Parameters
    ----------
    xs : list of L arrays (n, d_l), or Csr
        The views. Sparse rows have no landmarks.
    omegas : list of L arrays (d_l, D_l), or None
        Frequencies; None stands for identity features, the columns themselves, or for landmark
        features.
    shifts : list of L arrays (F_l,)
        Subtracted from the features; F_l is 2 D_l, or d_l for identity features, or q_l for
        landmark features.
    theta : array (k, F)
        Centroids of all views side by side, shifted like the features. Its dtype is that of
        `xs`, `omegas`, `shifts` and `weight`.
    alpha : float64 array (L,)
        View weights in the distance sum_l alpha_l ||phi_l - theta_jl||^2.
    weight : array (n,), or None
        Row weights p >= 0; None means one each.
    rule : {POWER, HARD, TYPICALITY, BOTH}
        How a row's distances become weights v. TYPICALITY takes d' = u^m d + (1-u)^m eta in place
        of d, with u_j = 1/(1 + (d_j/eta_j)^(1/(m-1))), in the power mean, or in the hard rule
        where s is -inf. BOTH is HARD, with the soft total of POWER.
    s : float
        Exponent of the power mean, < 0; not used by HARD.
    n_threads : int
        Ignored: the twin uses one thread.
    structures : list of L Structure, or None; optional
        What structured frequencies come from; `omegas` holds None for such a view. The twin writes
        the matrix out.
    landmarks : list of L Landmarks, or None; optional
        What makes the landmark features of a view, whose frequencies are None.
    eta, m : float64 array (k,) > 0, float > 1
        Reference distances and fuzzifier of TYPICALITY.
    labels, memberships, distances, nearest, second, features : arrays to fill, or None
        int32 (n,); (n, k); (n, k) squared; (n,) squared; (n,) squared, the second least distance,
        inf where k is 1; (n, F) shifted. With TYPICALITY all but the distances are of d'.
    neighbours, neighbour_weights : arrays to fill, or None
        int32 (n, R) and (n, R): the nearest landmarks of each row, nearest first, and their weights
        z. The r_l columns of each view with landmarks are side by side; R is the sum of the r_l.
    carry : tuple, optional
        What a pass over earlier rows returned; the rows are added to its sums.
    present : uint8 array (n, ceil(L / 8)), or None
        Bit l % 8 of byte l / 8 says whether a row has view l; None: all rows have all views. A view
        that a row lacks adds nothing to its distances and sums; `features` are 0 there, whatever x
        is. `eta` is then (L,), and a row has the sum of alpha_l eta_l over its views.
    units : list of L bool, optional
        Whether the rows of a view are scaled to length one; rows of zeros stay. Only for dense
        views without landmarks.
    directions : tuple, optional
        For HARD or BOTH, many centroids and one dense view whose weight is 1. Orthonormal
        directions (q, F); coordinates (k, q + 1) of the centroids, the last of them an upper bound
        of the length of the remainder; a ratio >= 1. Distances of a row beyond this ratio times the
        least need not be computed, and have no part in its power mean. The twin computes all.

    Returns
    -------
    N : array (k, F)
        sum_i p_i g_ij phi_i, with the shifted features and g = v u^m (u = 1 without TYPICALITY).
    G : array (k,), with `present` (k, L)
        sum_i p_i g_ij; with `present` over the rows that have view l.
    Q : array (k, L)
        sum_i p_i g_ij ||phi_il||^2.
    E : array (k,), with `present` (L,)
        sum_i p_i v_ij (1 - u_ij)^m, zero without typicality; with `present` over all j and the rows
        that have view l.
    soft, hard : float
        sum_i p_i M'_i and sum_i p_i min_j d_ij.
    """
    if rule not in (POWER, HARD, TYPICALITY, BOTH):
        raise NotImplementedError(f"the reference does not implement rule {rule}")
    if (eta is None) != (rule != TYPICALITY):
        raise ValueError("eta must be an array where rule is TYPICALITY, None elsewhere.")
    weigh = partial(power_weights, s=s) if rule != HARD and np.isfinite(s) else hard_weights
    xs = [_unit(x) if unit else x for x, unit in zip(xs, units or [False] * len(xs))]
    n, k = len(xs[0]), len(theta)
    widths = [len(shift) for shift in shifts]
    edges = np.cumsum([0, *widths])
    scales = np.sqrt(np.repeat(alpha, widths))
    landmarks = landmarks or [None] * len(xs)
    for i, structure in enumerate(structures or []):
        if structure is not None:
            omegas = [*omegas[:i], structure.matrix(xs[i].shape[1]), *omegas[i + 1 :]]
    L = len(xs)
    N, G, Q, E = np.zeros(theta.shape), np.zeros((k, L)), np.zeros((k, L)), np.zeros((k, L))
    soft, hard, masses = 0.0, 0.0, _masses(weight, n)
    size = 4096
    for here in (slice(begin, begin + size) for begin in range(0, n, size)):
        phi = np.hstack(
            [
                _reference_features(x[here], om, lm) - c
                for x, om, lm, c in zip(xs, omegas, landmarks, shifts)
            ]
        )
        has = np.ones((len(phi), L))
        if present is not None:
            has = np.unpackbits(present[here], axis=1, count=L, bitorder="little").astype(float)
            phi = np.where(np.repeat(has, widths, axis=1) > 0, phi, 0)
        d = np.zeros((len(phi), k))
        for i, (a, b) in enumerate(zip(edges, edges[1:])):
            of_view = (phi * scales)[:, a:b], (theta * scales)[:, a:b]
            d += has[:, [i]] * squared_distances(*of_view)
        um, wm, effective = np.ones_like(d), np.zeros_like(d), d
        if eta is not None:
            own = eta if present is None else (has @ (eta * alpha))[:, None]
            u = typicality(d, own, m)
            um, wm = u**m, (1 - u) ** m
            effective = um * d + wm * own
        v, means, shares = weigh(effective)
        if rule == BOTH:
            v, _, shares = hard_weights(effective)
        p = masses[here]
        g = p[:, None] * v * um
        E += (p[:, None] * v * wm).T @ has
        norms = np.stack([(phi[:, a:b] ** 2).sum(axis=1) for a, b in zip(edges, edges[1:])], axis=1)
        N += g.T @ phi
        G += g.T @ has
        Q += g.T @ norms
        soft += float(p @ means)
        hard += float(p @ effective.min(axis=1))
        two = np.partition(np.c_[effective, np.full(len(d), np.inf)], 1, axis=1)
        results = (effective.argmin(axis=1), shares, d, two[:, 0], two[:, 1], phi)
        wanted = (labels, memberships, distances, nearest, second, features)
        for out, value in zip(wanted, results):
            if out is not None:
                out[here] = value
        near = [nearest_landmarks(x[here], lm) for x, lm in zip(xs, landmarks) if lm is not None]
        for out, parts in zip((neighbours, neighbour_weights), zip(*near)):
            if out is not None:
                out[here] = np.hstack(parts)
    G, E = (G[:, 0], E[:, 0]) if present is None else (G, E.sum(axis=0))
    if carry is not None:
        N, G, Q, E = N + carry[0], G + carry[1], Q + carry[2], E + carry[3]
        soft, hard = soft + carry[4], hard + carry[5]
    return N, G, Q, E, soft, hard


_reference_features = features  # the argument of the same name hides it inside the pass


def take_steps(
    xs: list[Columns],
    omegas: list[Array | None],
    shifts: list[Array],
    theta: Array,
    alpha: Array,
    weight: Array | None,
    rule: int,
    s: float,
    n_threads: int = 1,
    *,
    view_eta: Array | None = None,
    unit: float,
    variance: float,
    entropy: float,
    tol: float,
    most: int,
    goal: float,
    hope: float,
    least_share: float,
    close: tuple[float, float],
    coverage: Array | None = None,
    least_length: float = 0.0,
    **options: Any,
) -> tuple[
    list[tuple[float, float, float, float, int, float]],
    list[Array], Array, Array, int, bool, tuple[Any, ...],
]:  # fmt: skip
    """Make steps at one exponent: passes, each with a move after it.

    Steps end if the shift is at most `tol`, if the hard objective will not fall to `goal`, if a
    cluster is empty, or after `most` >= 1 passes.

    Parameters
    ----------
    xs, omegas, shifts, theta, alpha, weight, rule, s, n_threads, **options
        Parameters of `fused_pass`; `theta` has any type, and is not changed.
    view_eta : float64 array (L,), or None
        The reference distances of the views. `eta` is their mean with the weights alpha, or all of
        them if views are missing.
    unit : float
        Row weights are `weight` times this.
    variance : float
        Total variance of the features.
    entropy : float
        lambda of the view weights alpha_l ~ exp(-cost_l / lambda) after a step, from the costs
        sum_ij p_i w_ij d'_ij,l of the views at the new centroids. 0: the weights do not change.
    goal, hope : float
        Steps end if the hard objective, with the penalty, is so far above `goal` that `hope` steps
        with the gain of the last step would not reach it.
    least_share : float
        A cluster is empty, and its centroid stays, if its share of the weight is at most this.
    close : pair of float
        Centroids are distinct if their squared distance is above close[0] times the hard objective
        and above close[1].
    coverage : float64 array (L,), or None
        The shares of the rows that have the views; None: no view is missing.
    least_length : float
        If not 0, new centroids that are longer than this are scaled to length one. Shorter ones
        return to their place before the step.

    Returns
    -------
    records : list of tuples
        For each step: soft and hard of `fused_pass`, times `unit`; the penalty lambda
        sum_l alpha_l log(L alpha_l); the root mean square shift of the centroids over the root of
        `variance`; the number of distinct centroids; seconds.
    alphas : list of float64 arrays (L,)
        The weights of the views in each step, and after the last.
    theta, previous : float64 arrays (k, F)
        The centroids, and the centroids before the last step.
    n_empty : int
        The number of clusters that were empty in the last step.
    hopeless : bool
        Whether the objective will not fall to `goal`.
    sums : tuple
        What `fused_pass` returned last.
    """
    objective, alphas = math.inf, [alpha]
    new = np.array(theta, dtype=np.float64)
    records: list[tuple[float, float, float, float, int, float]] = []
    for _ in range(most):
        started, old, alpha = time.perf_counter(), new, alphas[-1]
        if view_eta is not None:
            options["eta"] = np.full(len(new), view_eta @ alpha) if coverage is None else view_eta
        cast = old.astype(shifts[0].dtype)
        sums = fused_pass(xs, omegas, shifts, cast, alpha, weight, rule, s, **options)
        record, alpha, new, n_empty = move(
            sums, shifts, old, alpha, s, view_eta=view_eta, unit=unit, variance=variance,
            entropy=entropy, least_share=least_share, close=close, coverage=coverage,
            least_length=least_length,
        )  # fmt: skip
        alphas.append(alpha)
        records.append((*record, time.perf_counter() - started))
        _, hard, penalty, shift, _ = record
        before, objective = objective, hard + penalty
        hopeless = objective - goal > hope * (before - objective)
        if n_empty or shift <= tol or hopeless:
            break
    return records, alphas, new, old, n_empty, hopeless, sums


def move(
    sums: tuple[Array, Array, Array, Array, float, float],
    shifts: list[Array],
    theta: Array,
    alpha: Array,
    s: float,
    *,
    view_eta: Array | None = None,
    unit: float,
    variance: float,
    entropy: float,
    least_share: float,
    close: tuple[float, float],
    coverage: Array | None = None,
    least_length: float = 0.0,
) -> tuple[tuple[float, float, float, float, int], Array, Array, int]:
    """Move centroids after a pass, and then update the weights of the views if they are learned.

    Parameters
    ----------
    sums : tuple
        What `fused_pass` returned at `theta`.
    theta : float64 array (k, F)
        The centroids of the pass; they are not changed.
    shifts, alpha, s, **options
        Parameters of `take_steps`.

    Returns
    -------
    record : tuple
        The record of the step, as in `take_steps`, without the seconds.
    alpha : float64 array (L,)
        The weights of the views.
    theta : float64 array (k, F)
        The centroids theta = N / G.
    n_empty : int
        The number of empty clusters, whose centroids stay.
    """
    N, G, Q, E, soft, hard = sums
    widths = [len(shift) for shift in shifts]
    new, empty = divided(N, G, theta, widths, least_share)
    if least_length > 0:
        new = onto_sphere(new, theta, np.concatenate(shifts), least_length)
    scales = np.repeat(alpha, widths)
    squares = float((scales * (new - theta) ** 2).sum()) / len(new)
    shift = float(np.sqrt(squares / variance)) if variance > 0 else 0.0
    distinct = count_distinct(new * np.sqrt(scales), max(close[0] * unit * hard, close[1]))
    penalty = view_penalty(alpha, entropy, coverage)
    if entropy > 0:
        costs = Sums(*sums, tuple(widths)).view_costs().sum(axis=0)
        if view_eta is not None:
            costs += (E.sum() if coverage is None else E) * view_eta
        factor = unit * math.exp(-math.log(len(theta)) / s)
        alpha = view_weights(costs, factor, entropy, coverage)
    return (unit * soft, unit * hard, penalty, shift, distinct), alpha, new, int(empty.sum())


def count_distinct(theta: Array, close: float) -> int:
    """Count the centroids that are distinct from all earlier distinct centroids.

    Two centroids are distinct if their squared distance exceeds `close`."""
    distinct: list[Array] = []
    for center in np.asarray(theta, dtype=np.float64):
        if all(((center - other) ** 2).sum() > close for other in distinct):
            distinct.append(center)
    return len(distinct)


def costs_with(distances: Array, nearest: Array, weight: Array) -> NDArray[np.float64]:
    """Return the costs (m,) of the rows with each of m centroids added.

    `distances` (n, m) are squared distances of the rows from these centroids. `nearest` (n,) are
    squared distances from the nearest centroid so far, in the same dtype. `weight` (n,) are the
    weights of the rows, in float64."""
    return np.asarray(weight @ np.minimum(nearest[:, None], distances))


def lowered(distances: Array, added: int, nearest: Array, weight: Array) -> NDArray[np.float64]:
    """Return the cumulative sums (n,) of the costs of the rows with one more centroid.

    `added` is the index of its column in `distances`. `nearest` is lowered in place."""
    np.minimum(nearest, distances[:, added], out=nearest)
    return np.asarray((weight * nearest).cumsum())


def ward_mergers(gaps: Array, masses: Array) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the mergers (k-1, 2) of Ward's method, and the squares (k-1,) of their heights.

    A merger (i, j) adds cluster i to cluster j, which keeps the index j. `gaps` are the squared
    distances (k, k) of the centroids, and `masses` (k,) the positive masses of the clusters.

    The method follows chains of nearest neighbors (Murtagh, Comput. J. 26 (1983) 354-359), with
    the formula of Lance and Williams. If two clusters are equally near, the first is taken."""
    k, p = len(masses), np.array(masses, dtype=np.float64)
    squares = 2 * np.maximum(gaps, gaps.T) / (1 / p + 1 / p[:, None])
    np.fill_diagonal(squares, np.inf)
    pairs, heights, chain = np.zeros((k - 1, 2), dtype=np.int64), np.zeros(k - 1), list[int]()
    alive = np.ones(k, dtype=bool)
    for step in range(k - 1):
        chain = chain or [int(alive.argmax())]
        nearest = int(squares[chain[-1]].argmin())
        while len(chain) < 2 or squares[chain[-1], nearest] < squares[chain[-1], chain[-2]]:
            chain.append(nearest)
            nearest = int(squares[nearest].argmin())
        i, j = pairs[step] = chain.pop(), chain.pop()
        heights[step], total = squares[i, j], p[i] + p[j]
        line = (p[i] + p) * squares[i] + (p[j] + p) * squares[j] - p * squares[i, j]
        alive[i] = False
        squares[j] = squares[:, j] = np.where(alive, line / (total + p), np.inf)
        squares[i] = squares[:, i] = squares[j, j] = np.inf
        p[j] = total
    return pairs, heights


def weigh_products(
    products: Array,
    diagonal: Array,
    squares: Array,
    weight: Array | None,
    rule: int,
    s: float,
    n_threads: int = 1,
    *,
    weights: Array | None = None,
    labels: Array | None = None,
) -> tuple[Array, float, float]:
    """Return weights of rows from their inner products with the centroids.

    Parameters
    ----------
    products : array (k, n)
        <phi_i, theta_j>.
    diagonal, squares : array (n,), array (k,)
        Squared norms of the rows and of the centroids, in the dtype of `products`.
    weight : array (n,), or None
        Row weights p >= 0; None means one each.
    rule : {POWER, HARD}
    s : float
        Exponent of the power mean, < 0; not used by HARD.
    n_threads : int
        Ignored: the twin uses one thread.
    weights : array (k, n) to fill, optional
        It may be the array `products`, which is then overwritten.
    labels : int32 array (n,) to fill, optional

    Returns
    -------
    weights : array (k, n)
        p_i v_ij.
    soft, hard : float
        sum_i p_i M'_i and sum_i p_i min_j d_ij.
    """
    if rule not in (POWER, HARD):
        raise NotImplementedError(f"no weights from products by rule {rule}")
    y = products.astype(np.float64)
    d = np.maximum(diagonal[:, None] + squares.astype(np.float64) - 2 * y.T, 0)
    v, means, _ = hard_weights(d) if rule == HARD else power_weights(d, s)
    p = _masses(weight, len(d))
    weights = np.empty_like(products) if weights is None else weights
    weights[:] = (p[:, None] * v).T
    if labels is not None:
        labels[:] = d.argmin(axis=1)
    return weights, float(p @ means), float(p @ d.min(axis=1))


def skinny_product(coefficients: Array, matrix: Array, out: Array, n_threads: int = 1) -> None:
    """Compute out = coefficients @ matrix[:, :n].

    The coefficients are (m, depth), the matrix is (depth, >= n), and out is (m, n)."""
    out[:] = coefficients.astype(np.float64) @ matrix[:, : out.shape[1]]


def near_pass(
    x: Array, unit: bool, shift: Array, weight: Array | None, theta: Array, near: Array,
    order: Array, ends: Array, n_threads: int = 1,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Make a pass that compares the rows of each cluster only with its candidate list.

    Parameters
    ----------
    x : array (n, d)
    unit : bool
        Whether rows are scaled to length one; zeros stay.
    shift : array (d,)
        Subtracted from the rows.
    weight : array (n,), or None
    theta : array (k, d)
        Shifted centroids.
    near : array of int32, (k, c)
        Candidate lists: the centroids that the rows of each cluster are compared with.
    order : array of int32, (n,)
        The rows, cluster by cluster.
    ends : array of int64, (k + 1,)
        The rows of cluster j are ``order[ends[j]:ends[j + 1]]``.
    n_threads : int

    Returns
    -------
    labels : array of int32, (n,)
        The nearest centroid of the list; if several are equally near, the first.
    nearest, second : array (n,)
        The squared distances from this and from the second nearest centroid; inf if there is none.
    stay : array of float64, (k, d)
        The weighted sums of the shifted rows that stay in their cluster.
    """
    labels, stay = np.empty(len(x), dtype=np.int32), np.zeros(theta.shape)
    masses = _masses(weight, len(x))
    least = np.full((2, len(x)), np.inf)
    for j in range(len(theta)):
        rows = order[ends[j] : ends[j + 1]]
        phi = (_unit(x[rows]) if unit else x[rows].astype(np.float64)) - shift
        d = squared_distances(phi, theta[near[j]].astype(np.float64))
        labels[rows] = near[j][d.argmin(axis=1)]
        least[: d.shape[1], rows] = np.sort(d, axis=1)[:, :2].T
        p = masses[rows]
        stay[j] = (p * (labels[rows] == j)) @ phi
    nearest, second = least.astype(x.dtype)
    return labels, nearest, second, stay


def nearest_in_cells(
    x: Array, centers: Array, blocks: Array, squares: Array, numbers: Array, ends: Array,
    visits: Array, order: Array, r: int, n_threads: int = 1,
) -> Array:  # fmt: skip
    """Return the r nearest points to each row in the cells that it visits.

    Parameters
    ----------
    x : array (n, d)
    centers : array (c, d)
        The centers of the cells.
    blocks : array (b, d, CELL_BLOCK)
        The points y less the center of their cell, times -2, as columns.
    squares : array (b, CELL_BLOCK)
        ||y||^2 of the centered points, and inf where a block has no point.
    numbers : array of int32, (b, CELL_BLOCK)
        Indices of the points.
    ends : array of int64, (c + 1,)
        Cell j has the blocks ``ends[j]`` to ``ends[j + 1] - 1``.
    visits : array of int32, (n, p)
        The cells that each row visits, the nearest first.
    order : array of int64, (n,)
        The rows in the order of the search.
    r : int
    n_threads : int

    Returns
    -------
    nearest : array of int32, (n, r)
        The indices of the nearest points, the nearest first, filled up with -1 if a row sees fewer
        points. If points are equally near, the points that the row meets first are taken.
    """
    nearest = np.full((len(x), r), -1, dtype=np.int32)
    for row in order:
        met: list[tuple[float, int]] = []
        for cell in [*visits[row, :1], *np.sort(visits[row, 1:])]:
            apart = x[row].astype(np.float64) - centers[cell]
            here = slice(ends[cell], ends[cell + 1])
            d = apart @ apart + (apart @ blocks[here].astype(np.float64) + squares[here]).ravel()
            there = np.isfinite(d)
            met += zip(d[there], numbers[here].ravel()[there])
        chosen = [number for _, number in sorted(met, key=lambda one: one[0])[:r]]
        nearest[row, : len(chosen)] = chosen
    return nearest


def squares_of_pairs(x: Array, points: Array, index: Array, n_threads: int = 1) -> Array:
    """Return squared distances (n, r) of each row from r points.

    Parameters
    ----------
    x : array (n, d)
    points : array (m, d)
    index : array of int32, (n, r)
        The indices of the points of each row.
    n_threads : int

    Returns
    -------
    squares : array (n, r)
    """
    return np.asarray(((x[:, None] - points[index]) ** 2).sum(axis=2))
