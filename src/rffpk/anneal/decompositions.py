"""Decompositions before a search: the critical exponent, and principal components.

Annealing starts at the critical exponent. The search needs few components of wide features.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse.linalg import aslinearoperator

from rffpk.rows.arrays import Array
from rffpk.rows.draws import Draws
from rffpk.rows.passes import column_rows, one_pass, some_features
from rffpk.rows.rows import Rows
from rffpk.rows.store import Storage, stored
from rffpk.rows.sums import typicality
from rffpk.rows.table import dense, gram, operand, weighted_sums
from rffpk.rows.weights import in_units, ones
from rffpk.system.linalg import basis_of, eigh, leading_eigenvectors, row_tiles, run_all
from rffpk.system.tuning import TUNING

# ---- the critical exponent -----------------------------------------------------------------------


def exponent_of_rows(rows: Rows) -> float:
    """Return the critical exponent of the features of rows, or 0 if there is none.

    Equal rows have no critical exponent. The exponent is computed on evenly spaced rows. Centroids
    of length one have a separate formula, and so has typicality."""
    most = TUNING.sampling.exponent_rows if rows.eta is None else TUNING.sampling.decomposed_rows
    rows = rows.take(np.arange(0, rows.n, max(1, rows.n // most)))
    features, unit = some_features(rows), rows.unit_centroids
    p = rows.weight.astype(np.float64)
    stays_sparse = rows.sparse_columns and not unit and rows.eta is None
    if rows.sparse_columns and not stays_sparse:
        # dense rows with the same inner products take the place of sparse rows
        center = 0 * rows.shift if unit else rows.shift  # mu is not shifted
        inner = gram(features, center)
        values, vectors = eigh((inner + inner.T) / 2)
        features = vectors * np.sqrt(np.maximum(values, 0))  # their inner products are `inner`
    elif unit:
        features = features.astype(np.float64) + rows.shift
    if unit:
        exponent = unit_critical_exponent(features, p)
    elif stays_sparse:
        mean = weighted_sums(features, p) / p.sum()
        # the Gram matrix of the directions has the same eigenvalues
        exponent = exponent_of_gram(gram(features, mean), p)
    else:
        z = rows.scaled(features.astype(np.float64))
        present = None if rows.present is None else rows.present_features()
        if rows.eta is None:
            if present is None:
                z -= (p @ z) / p.sum()
            else:
                z = _about(z, (p @ z) / _weights(p, present), present)
            exponent = critical_exponent(z, p, present)
        else:
            eta = rows.combined(rows.eta)  # reference distance of all views together
            eta = eta if present is None else eta[:, 0]
            exponent = typical_critical_exponent(z, p, eta, rows.m, present)
    return exponent if math.isfinite(exponent) else 0.0


def unit_critical_exponent(x: Array, p: Array) -> float:
    """Return the critical exponent of rows x (n, F) whose centroids have length one.

    The rows have the weights p (n,). The exponent is s_c = 1 - 1/(2 lambda_max) (docs/math.md,
    section 8). The centroids merge at mu = c/||c|| with the mean c, and move orthogonally to mu.
    lambda_max is the largest eigenvalue of sum p tt'/||x - mu||^2 / (||c|| sum p) with t = x -
    (x'mu) mu. The result is 0.5 if c is nearly zero, and -inf if all rows are multiples of mu."""
    center = (p @ x) / p.sum()
    length = float(np.linalg.norm(center))
    if length < 1e-6:  # the merged state is unstable at every s < 0
        return 0.5
    mu = center / length
    gaps = ((x - mu) ** 2).sum(axis=1)
    across = x - np.outer(x @ mu, mu)
    kept = _apart(np.sqrt(gaps), p)
    if not kept.any():
        return -math.inf
    scale = np.sqrt(p[kept] / (p.sum() * length * gaps[kept]))
    growth = _largest_squared_singular_value(across[kept] * scale[:, None])
    return 1 - 1 / (2 * growth) if growth > 0 else -math.inf


def critical_exponent(z: Array, p: Array, present: Array | None) -> float:
    """Return s_c = 1 - 1/(2 lambda_max), above which the merged state of centroids is stable.

    The vectors z (m, F) lead from the mean to the rows, and are overwritten. The rows have the
    weights p (m,). lambda_max is the largest eigenvalue of the matrix sum p uu'/sum p, with the
    directions u = z/||z||. The result is -inf if all vectors are zero.

    O(m F) times some tens of steps for m rows, by Lanczos' method. If m or F is at most
    `TUNING.linalg.full_below`, all eigenvalues are computed.

    `present` is a mask (m, F) of the features that rows have; None: no row lacks a feature. In z,
    missing features are 0. Each column of the directions is divided by the root of the share of the
    rows that have the feature."""
    z, kept = _directions(z, p)
    if not len(z):
        return -math.inf
    p = p[kept]
    if present is not None:
        z = _scaled(z, p, present[kept])
    z *= np.sqrt(p / p.sum())[:, None]
    return 1 - 1 / (2 * _largest_squared_singular_value(z))


def _weights(p: Array, present: Array | None) -> Array:
    """Return the total weight (F,) of the rows that have each feature.

    Features that no row has get 1, because callers divide by the result. Without a mask `present`
    (m, F), return the total weight of all rows, a scalar."""
    if present is None:
        return np.asarray(p.sum())
    weights = p @ present
    return np.where(weights > 0, weights, 1)


def _about(features: Array, center: Array, present: Array | None) -> Array:
    """Return features less a center, (m, F), with zeros for features that are not `present`."""
    z = features - center
    return z if present is None else np.where(present, z, 0)


def _scaled(z: Array, p: Array, present: Array) -> Array:
    """Divide directions z (m, F) by the root of the share of the rows that have each feature."""
    total = p.sum()
    if total < np.finfo(float).tiny:  # no row has weight
        return z
    return np.asarray(z / np.sqrt(_weights(p, present) / total))


def _directions(z: Array, p: Array) -> tuple[Array, Array]:
    """Scale the rows of z (m, F) to length one; return them with their indices.

    Rows of weight zero, and rows of z that are zero up to rounding, are left out. z is overwritten
    if no row is left out."""
    norms = np.linalg.norm(z, axis=1)
    kept = np.flatnonzero(_apart(norms, p))
    if len(kept) < len(z):
        z, norms = z[kept], norms[kept]
    z /= norms[:, None]
    return z, kept


def _apart(norms: Array, p: Array) -> Array:
    """Return a mask of the rows with p > 0 whose distance from the mean exceeds rounding errors."""
    norms = np.where(p > 0, norms, 0)
    return np.asarray(norms > 1e-6 * max(norms.max(), np.finfo(float).tiny))


def typical_critical_exponent(
    features: Array, p: Array, eta: Any, m: float, present: Array | None = None
) -> float:
    """Return the critical exponent with typicality.

    `features` (n, F) have the weights p (n,). `eta` is the reference distance, a scalar or one for
    each row (n,). m is the fuzzifier of the typicality u. `present` is as in `critical_exponent`.

    The centroids merge at the mean of the rows with the weights q ~ p u^m. z is the direction from
    this mean to a row, of length one. With R = sum q u zz' and P = m/(m-1) sum q (1-u) zz', the
    exponent is s_c = 1 - 1/lambda_max((I/2 - P)^-1 R).

    If lambda_max(P) >= 1/2, the merged state is unstable for every s < 0, and 0.5 is returned.
    Minus infinity is returned if every row is noise, or if all rows are equal.

    The cost is O(n F min(n, F)) for n rows."""
    center = (p @ features) / _weights(p, present)
    for _ in range(100):  # the weights q depend on the mean, and the mean on q
        distances = (_about(features, center, present) ** 2).sum(axis=1)
        u = typicality(distances, np.array(eta), m)
        q = p * u**m
        if not q.any():  # every row is noise
            return -math.inf
        center, before = (q @ features) / _weights(q, present), center
        if ((center - before) ** 2).sum() <= 1e-16 * np.max(eta):  # the mean has converged
            break
    z, kept = _directions(_about(features, center, present), p)
    if not len(z):
        return -math.inf
    u, q = u[kept], q[kept] / q.sum()
    if present is not None:
        z = _scaled(z, q, present[kept])
    if len(z) < z.shape[1]:  # n coordinates are enough for n rows
        z = np.transpose(np.linalg.qr(z.T, mode="r"))
    P = m / (m - 1) * (z.T * (q * (1 - u))) @ z
    try:
        root = np.linalg.cholesky(np.eye(len(P)) / 2 - P)
    except np.linalg.LinAlgError:  # P has an eigenvalue of 1/2 or more
        return 0.5
    # with A = root^-1 z' (q u)^(1/2), (I/2 - P)^-1 R has the eigenvalues of AA'
    growth = _largest_squared_singular_value(
        solve_triangular(root, z.T * np.sqrt(q * u), lower=True)
    )
    return 1 - 1 / growth if growth > 0 else -math.inf


def _largest_squared_singular_value(z: Array) -> float:
    """Return the largest eigenvalue of z'z, by Lanczos' method unless z is small."""
    tall = z if len(z) >= z.shape[1] else z.T
    n = tall.shape[1]
    if n <= TUNING.linalg.full_below:
        return float(eigh(tall.T @ tall, subset_by_index=[n - 1, n - 1])[0][0])
    wide = aslinearoperator(tall)
    return float(leading_eigenvectors((wide.T @ wide).__matmul__, 1, n)[0][0])


def exponent_of_gram(gram: Array, p: Array) -> float:
    """Return `critical_exponent` from the inner products (m, m) of the vectors from the mean.

    The rows have the weights p (m,). The result is -inf if the vectors are zero."""
    norms = np.sqrt(np.maximum(np.diagonal(gram), 0))
    apart = _apart(norms, p)
    if not apart.any():
        return -math.inf
    # inner products of the directions, times the roots of p / sum p
    scale = np.where(apart, np.sqrt(p / p[apart].sum()), 0) / np.where(apart, norms, 1)
    gram = gram * scale * scale[:, None]
    return 1 - 1 / (2 * float(leading_eigenvectors(gram, 1, len(gram))[0][0]))


# ---- the exponent of memberships -----------------------------------------------------------------

# The exponent of memberships, -(1 + d)/2, is by this much less than 1 - d/2, the critical exponent
# inside clusters of dimension d.
BELOW = 1.5


def exponent_of_memberships(rows: Rows, theta: Array) -> float:
    """Return s = -(1 + d)/2 with the effective dimension d = 1/lambda_max of the clusters.

    lambda_max is the largest eigenvalue of the mean of zz'. The vectors z have length one, and
    point from rows to their nearest centroids in theta (k, F). Evenly spaced rows of positive
    weight are taken. The result is -inf if all rows lie on centroids (docs/math.md, section 8)."""
    rows, tuning = replace(rows.counted(), eta=None), TUNING.sampling
    most = tuning.exponent_rows
    if not rows.sparse_columns:  # more rows if they are narrow, fewer if they are very wide
        most = max(most, min(tuning.shape_rows, tuning.shape_numbers // theta.shape[1]))
        most = min(most, tuning.wide_numbers // theta.shape[1] + 1)
    rows = rows if rows.n <= most else rows.take(np.arange(0, rows.n, -(-rows.n // most)))
    p = rows.weight.astype(np.float64)
    # a critical exponent is 1 - d/2, and -(1 + d)/2 is lower by BELOW = 3/2
    if rows.sparse_columns:
        labels = one_pass(rows, theta, -math.inf, want=("labels",))[1]["labels"]
        return exponent_of_gram(_sparse_residuals(rows, theta, labels), p) - BELOW
    outputs = one_pass(rows, theta, -math.inf, want=("labels", "features"))[1]
    present = None if rows.present is None else rows.present_features()
    z = theta.take(outputs["labels"], axis=0)
    z -= outputs.pop("features")  # in place: there may be some megabytes of each
    if present is not None:
        z[~present] = 0
    z = rows.scaled(z)
    if present is None and 2 * len(z) < z.shape[1]:  # the products of rows are a small matrix
        return exponent_of_gram(z @ z.T, p) - BELOW
    return critical_exponent(z, p, present) - BELOW


def _sparse_residuals(rows: Rows, theta: Array, labels: Array) -> Array:
    """Return the inner products (n, n) of sparse rows less the centroids of their labels.

    No dense copies of the rows are made. The rows must be few, as the result has n^2 numbers."""
    used, index = np.unique(labels, return_inverse=True)
    centers, x, shift = theta[used], rows.xs[0], rows.shift.astype(np.float64)
    cross = (operand(x) @ centers.T - centers @ shift)[:, index]
    # (x - c)'(y - d) = x'y + (c'd - x'd - c'y), for rows x and y less the shift; `cross` has x'd
    apart = (centers @ centers.T)[np.ix_(index, index)] - cross - cross.T
    return np.asarray(gram(x, shift) + apart)


# ---- principal components ------------------------------------------------------------------------


@dataclass(frozen=True)
class Compressed:
    """Rows with fewer features or in single precision, and the way back for their centroids."""

    rows: Rows
    bases: list[Array] | None  # (F_l, r_l), orthonormal columns; None: all features, shifted
    left_out: float  # sum_i p_i times the squared length of what components omit; one view only

    def expand(self, theta: Array) -> Array:
        """Map centroids (k, r) back to the space of all shifted features, (k, F)."""
        if self.bases is None:
            return theta
        edges = np.cumsum([basis.shape[1] for basis in self.bases])[:-1]
        parts = np.split(theta, edges, axis=1)
        return np.hstack([part @ basis.T for part, basis in zip(parts, self.bases)])


def compressed(
    rows: Rows, k: int, storage: Storage, hard: bool = False, single: bool = False
) -> Compressed | None:
    """Return the rows with the principal components of each view as features, or None.

    None means that the search should use the rows as they are. Either components would take more
    than half of their memory, or the decompositions would take longer than a search. None is also
    returned for one cluster, few features, streams, rows that lack views, and unstored features.

    `hard`: starts are compared by the hard objective, for which fewer components of one view
    suffice. `single`: return single precision, which halves the time of a pass over float64. If
    components do not pay, all features of fit views are converted, and not None is returned.

    O(n F min(n, F)) time for n `rows_of_components`."""
    widths, numbers = rows.widths, TUNING.components.numbers
    unfit = rows.present is not None or rows.stream is not None
    unfit |= k == 1 or sum(widths) < TUNING.components.least_features
    hard = hard and len(widths) == 1 and rows.eta is None
    large = rows.n * max(widths) > numbers
    if large:  # components are computed from a sample, which is not enough for every fit
        unfit |= not hard or k >= TUNING.starts.some or rows.unit_centroids or rows.sparse_columns
        unfit |= max(widths) ** 2 > numbers
    dtype = np.dtype(np.float32) if single else rows.dtype
    converts = dtype != rows.dtype and not large  # to `dtype`, with or without components
    if unfit or not ((pays := _pays(rows, k, hard)) or converts):
        return None
    rows = stored(rows) if rows.unit_centroids else storage.sample(rows)
    if rows.computed:  # features may not be stored
        return None
    pairs = [_components(rows, i, k, hard) for i in range(len(widths))] if pays else []
    xs, bases = [x for x, _ in pairs], [basis for _, basis in pairs]
    kept = [x.shape[1] for x in xs]
    half = 2 * dtype.itemsize * sum(kept) <= rows.dtype.itemsize * sum(widths)
    if xs and half and rows.n * max(kept) <= numbers:
        shifts = [np.zeros(x.shape[1]) for x in xs]
        if rows.unit_centroids:
            bases = [_with_direction(bases[0], rows.shift)]
            xs, shifts = [dense(rows.xs[0]) @ bases[0]], [np.asarray(rows.shift @ bases[0])]
        small = _with_columns(rows, xs, shifts, dtype)
        # a difference of sums, which rounding makes negative where nothing is left out
        left_out = max(total_squares(rows) - total_squares(small), 0.0) if hard else 0.0
        return Compressed(small, bases, left_out)
    if not converts:
        return None
    xs = [dense(x) - shift for x, shift in zip(rows.xs, rows.shifts)]
    return Compressed(_with_columns(rows, xs, [0 * each for each in rows.shifts], dtype), None, 0.0)


def _pays(rows: Rows, k: int, hard: bool) -> bool:
    """Return whether a search for k centroids takes longer than the decompositions.

    Both times are estimated by their arithmetic. `hard`: starts are compared by the hard objective,
    so the leading components may be enough."""
    tuning = TUNING.components
    # the number of `rows_of_components` of each view
    sizes = [min(rows.n, tuning.numbers // F) for F in rows.widths]
    if hard and k > min(*sizes, *rows.widths):  # so many clusters need all components
        return False
    needed, cost = tuning.a_cluster * k + tuning.spare, 0.0
    for F, n in zip(rows.widths, sizes):
        m = min(n, F)
        # compute all components, or only the components that k clusters need
        takes_all = not hard or needed > tuning.leading_part * m
        part = tuning.all_work * m**3 if takes_all else tuning.leading_work * m**2 * needed
        cost += 2.0 * n * F * m + part  # products of columns or rows, and eigenvectors
    # a search makes some 300 passes
    search = 300 * rows.n * sum(rows.widths) * (4.0 * k + TUNING.storage.read_cost)
    return (tuning.margin if hard else tuning.views_margin) * cost <= search


def _with_columns(rows: Rows, xs: list[Array], shifts: list[Array], dtype: Any) -> Rows:
    """Return the rows with new columns `xs` and `shifts`, one array of each for each view.

    Columns, shifts and weights are converted to `dtype`."""
    xs = [np.ascontiguousarray(x, dtype=dtype) for x in xs]
    shifts = [shift.astype(dtype) for shift in shifts]
    weight = in_units(rows.weight, 1.0, dtype)
    return replace(rows.with_columns(xs, shifts), weight=weight)


def _with_direction(basis: Array, center: Array) -> Array:
    """Return an orthonormal basis (F, r or r + 1) of the span of `basis` (F, r) and `center` (F,).

    Centroids of length one have length one in these coordinates, too."""
    across = center - basis @ (basis.T @ center)
    length = float(np.linalg.norm(across))
    small = length <= 1e-6 * float(np.linalg.norm(center))
    return basis if small else np.c_[basis, across / length]


def total_squares(rows: Rows) -> float:
    """Return the weighted sum of squared distances of the rows from their shift.

    The views are added with their view weights."""
    total = 0.0
    for x, shift, alpha in zip(rows.xs, rows.shifts, rows.alpha):
        center = shift.astype(np.float64)
        parts = [((dense(x[t]) - center) ** 2).sum(axis=1) for t in row_tiles(*x.shape)]
        squares = np.concatenate(parts)
        total += alpha * float((rows.weight * squares).sum())
    return float(rows.weight_unit * total)


def _components(rows: Rows, view: int, k: int, hard: bool) -> tuple[Array, Array]:
    """Return principal components (n, r) of a view for k clusters, and their basis (F, r).

    The number r is so large that leaving out the rest hardly changes the cost of a partition into k
    clusters. `hard`: take only the components that the hard objective needs. The basis is computed
    from `rows_of_components`, and applied to all rows."""
    rows_used, shift, n_threads = rows_of_components(rows, view), rows.shifts[view], rows.n_threads
    x, weight = rows_used.xs[view], rows_used.weight

    def weighted(tile: slice) -> Array:
        z = dense(x[tile]).astype(np.float64) - shift
        return z * np.sqrt(weight[tile], dtype=np.float64)[:, None]

    def products(tile: slice) -> Array:
        z = weighted(tile)
        return z.T @ z

    # wide rows: their inner products (n, n) are a smaller matrix than the products of columns
    z = weighted(slice(None)) if x.shape[1] > len(x) else None
    # products of all tiles together take no more memory than the features
    taller = row_tiles(len(x), x.shape[1], max(TUNING.tiles.row_numbers, x.shape[1] ** 2))
    gram = sum(run_all(products, taller, n_threads)) if z is None else z @ z.T
    total = float(np.trace(gram))
    leading = hard and components_for_clusters(gram.__matmul__, lambda: gram, total, len(gram), k)
    squares, vectors = leading[:2] if leading else _all_components(gram)
    rounding = len(gram) * np.finfo(float).eps * total
    # components are left out if their squares together are at most this
    negligible = max(TUNING.components.left_out * _cost_of_draws(rows_used, view, k), rounding)
    # the least number of components that leave out at most this
    r = 1 + int((total - np.cumsum(squares) > negligible).sum())
    squares, basis = squares[:r], vectors[:, :r]
    if z is not None:  # eigenvectors of the products of rows become directions of features
        lengths = np.sqrt(squares)  # zero if all rows are equal
        basis = z.T @ (basis / np.where(lengths > 0, lengths, 1))
    whole = rows.xs[view]

    def projected(tile: slice) -> Array:
        return ((dense(whole[tile]).astype(np.float64) - shift) @ basis).astype(rows.dtype)

    return np.concatenate(run_all(projected, row_tiles(*whole.shape), n_threads)), basis


def rows_of_components(rows: Rows, view: int) -> Rows:
    """Return the rows that components of a view are computed from.

    The result has all rows, or a random sample of at most `TUNING.components.numbers` numbers. Each
    call draws the same sample."""
    most = TUNING.components.numbers // rows.widths[view]
    if rows.n <= most:
        return rows
    index = np.flatnonzero(rows.weight)
    index = np.random.RandomState(0).choice(index, min(most, len(index)), replace=False)
    return rows.take(np.sort(index))


def _cost_of_draws(rows: Rows, view: int, k: int) -> float:
    """Return the hard objective in one view with k rows as centroids, drawn as by k-means++.

    It is estimated on at most 4 k rows of positive weight, and zero if there are at most k."""
    random, index = np.random.RandomState(0), np.flatnonzero(rows.weight)
    n, most = len(index), 4 * k
    if n > most:
        index = np.sort(random.choice(index, most, replace=False))
    if len(index) <= k:  # each row can be a centroid
        return 0.0
    some = rows.view(view).take(index)
    seeds = dense(some_features(some))
    columns = column_rows(seeds, ones(len(seeds)), rows.n_threads)
    drawn = Draws(columns, seeds, some.weight, k, random)
    drawn.see_added()
    return float((some.weight * drawn.nearest).sum()) * n / len(index)  # of all n rows


def components_for_clusters(
    multiply: Callable[[Array], Array], matrix: Callable[[], Array] | None, total: float, m: int,
    k: int, fits: Callable[[int], bool] = lambda r: True,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return the r leading eigenvalues (r,) and eigenvectors (m, r) of a matrix, and a product.

    The product (m, r) is the matrix times the eigenvectors. The matrix (m, m) is positive
    semidefinite, and `multiply` returns its product with columns. r is the number that the hard
    objective of k clusters needs, where `total` is the sum of all eigenvalues.

    Subspace iteration starts with few eigenvectors, and doubles their number until it suffices.
    If it would take too many, the whole `matrix()` is decomposed. If `matrix` is None, the
    eigenvectors of the iteration are returned even if they do not suffice. `fits` says whether r
    eigenvectors fit into memory."""
    tuning = TUNING.components
    first, V = min(tuning.a_cluster * k + tuning.spare, m), np.empty((m, 0))
    numbers = [first << doublings for doublings in range(3)]
    numbers = [r for r in numbers if r <= tuning.leading_part * m and (r == first or fits(r))]
    for r in numbers or ([first] if matrix is None else []):  # without `matrix`, once or more
        V = np.hstack([V, np.random.default_rng(0).standard_normal((m, r - V.shape[1]))])
        for _ in range(2):  # unresolved eigenvectors change the cost of a partition little
            V = basis_of(multiply(V))[0]
        product = multiply(V)
        squares, turn = _all_components(V.T @ product)
        V, product = V @ turn, product @ turn
        enough = _enough(squares, total, k)
        if enough < len(squares):  # the eigenvectors suffice, so the whole matrix is not needed
            matrix = None
            break
    if matrix is not None:
        squares, V = _all_components(matrix())
        product, enough = V * squares, _enough(squares, total, k)
    return squares[:enough], V[:, :enough], product[:, :enough]


def _all_components(matrix: Array) -> tuple[Array, Array]:
    """Return all eigenvalues (m,) of a positive semidefinite matrix, and eigenvectors (m, m).

    The eigenvalues are in falling order."""
    squares, vectors = eigh(matrix, driver="evd")
    return np.maximum(squares[::-1], 0), vectors[:, ::-1]


def _enough(squares: Array, total: float, k: int) -> int:
    """Return how many principal components the hard objective of k clusters needs.

    `squares` (r,) are the variances of the leading components, and `total` is the variance of all.
    No partition into k clusters costs less than the variance beyond the first k - 1 components. A
    component is needed if k - 1 times its variance exceeds a small part of this cost,
    `TUNING.components.change`. The result is at least 1."""
    least = max(total - squares[: k - 1].sum(), 0.0)
    return max(1, int(((k - 1) * squares > TUNING.components.change * least).sum()))
