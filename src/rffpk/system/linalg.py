"""The decompositions that exact kernels and their fusion need, and blocks of rows for threads."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable
from ctypes import CFUNCTYPE, PYFUNCTYPE, c_char_p, c_void_p, py_object, pythonapi
from typing import Any

import numpy as np
import scipy.linalg
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from scipy import LowLevelCallable
from scipy.linalg import cython_lapack, qr
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from rffpk import _core
from rffpk.system.interrupts import interruptible
from rffpk.system.tuning import TUNING

Array = NDArray[Any]


# The seed of the vectors from which ARPACK restarts after it has found an invariant subspace.
# SciPy has this option from 1.17 on.
RANDOM: dict[str, int] = {"rng": 0} if "rng" in inspect.signature(eigsh).parameters else {}

# Lanczos' method finds one vector of each eigenvalue, and further vectors only by rounding. One was
# missed if an eigenvalue is left that exceeds the least result by this fraction of the largest.
_APART = 1e-9


def eigh(matrix: Array, **options: Any) -> tuple[Array, Array]:
    """Return rising eigenvalues and eigenvectors of a symmetric matrix, by `scipy.linalg.eigh`.

    `options` are passed to SciPy; `subset_by_index` selects eigenvalues. If SciPy fails, all
    eigenpairs are computed in other ways. SciPy holds the interpreter's lock, so that Ctrl-C waits
    for it. Long computations therefore use NumPy, which releases the lock."""
    n = len(matrix)
    work = TUNING.linalg.eigh_work * n**3
    first, last = options.get("subset_by_index", (0, n - 1))
    # SciPy 1.11 allocates too little memory for matrices of order one
    if work < TUNING.linalg.long_work and n > 1:
        with contextlib.suppress(LinAlgError):  # SciPy may miss a part of multiple eigenvalues
            values, vectors = scipy.linalg.eigh(matrix, **options)
            if len(values) == last - first + 1:
                return values, vectors
    values, vectors = interruptible(work, _all_eigenpairs, matrix)
    return values[first : last + 1], vectors[:, first : last + 1]


def _all_eigenpairs(matrix: Array) -> tuple[Array, Array]:
    """Return all eigenvalues and eigenvectors, by NumPy or else by slower QR steps."""
    try:
        values, vectors = np.linalg.eigh(matrix)  # by divide and conquer
    except LinAlgError:
        values, vectors = scipy.linalg.eigh(matrix, driver="ev")  # by QR steps, which are slower
    return values, vectors


def svd(matrix: Array) -> tuple[Array, Array, Array]:
    """Return the thin singular value decomposition (left, values, right) of a matrix.

    SciPy computes it, or NumPy where it takes long, as in `eigh`."""
    work = TUNING.linalg.svd_work * matrix.size * min(matrix.shape)
    try:
        if work < TUNING.linalg.long_work:
            left, values, right = scipy.linalg.svd(matrix, full_matrices=False)
        else:
            left, values, right = interruptible(work, np.linalg.svd, matrix, False)
    except LinAlgError:
        left, values, right = scipy.linalg.svd(matrix, False, lapack_driver="gesvd")
    return left, values, right


def basis_of(matrix: Array) -> tuple[Array, Array]:
    """Return the thin QR decomposition of a matrix (n, k), n >= k: Q (n, k) and R (k, k)."""
    work = 4.0 * matrix.size * min(matrix.shape)
    Q, R = interruptible(work, lambda: qr(matrix, mode="economic"))
    return Q, R


def leading_eigenvectors(
    matrix: Array | Callable[[Array], Array], k: int, n: int, start: Array | None = None
) -> tuple[Array, Array]:
    """Return the k largest eigenvalues of a symmetric matrix, falling, and eigenvectors (n, k).

    `matrix` is an array (n, n), or a function that multiplies arrays (n,) and (n, m) by the matrix.
    Matrices above a small order use Lanczos' method (ARPACK), unless k is too large for it. It
    starts near the vector `start` (n,); the sum of the eigenvectors of a similar matrix is a good
    start. The entry of largest absolute value in each eigenvector is made positive."""
    pairs, tuning = None, TUNING.linalg
    # `slow`: the last step of ARPACK holds the interpreter's lock too long, and gains no time
    slow = tuning.ritz_work * n * k**2 > tuning.long_work and n <= tuning.full_order * k
    # ARPACK keeps 2 k + 1 vectors of length n
    if n > max(TUNING.linalg.full_below, 2 * k + 1) and not slow:
        with contextlib.suppress(ArpackError):
            pairs = _by_lanczos(matrix if callable(matrix) else matrix.__matmul__, k, n, start)
    if pairs is None:
        dense = matrix(np.eye(n)) if callable(matrix) else matrix
        pairs = eigh((dense + dense.T) / 2, subset_by_index=[n - k, n - 1])
    values, vectors = pairs
    order = np.argsort(-values, kind="stable")
    return values[order], fixed_signs(vectors[:, order])


def _by_lanczos(
    multiply: Callable[[Array], Array], k: int, n: int, start: Array | None
) -> tuple[Array, Array]:
    """Return the k largest eigenvalues and eigenvectors of the matrix behind `multiply`, by ARPACK.

    Lanczos' method may miss copies of a multiple eigenvalue. So the result is checked and completed
    on the matrix without the known eigenvectors."""
    vector = np.random.default_rng(0).standard_normal(n)
    if start is not None:  # without noise, `start` could be orthogonal to a wanted eigenvector
        noise = TUNING.linalg.start_noise * np.linalg.norm(start)
        vector = start + noise / np.linalg.norm(vector) * vector
    size = float(np.abs(multiply(vector)).max() / np.abs(vector).max())
    if size == 0:  # ARPACK cannot start if the matrix is zero
        return np.zeros(k), np.eye(n, k)
    unit = 2.0 ** math.frexp(size)[1]  # ARPACK's tolerance is absolute for small values

    def scaled(v: Array) -> Array:
        return multiply(v) / unit

    # deflation: the eigenvalues known so far, in `values`, become their minimum
    def rest(v: Array) -> Array:
        return scaled(v) - vectors @ ((values - values.min()) * (vectors.T @ v))

    operator, deflated = (
        LinearOperator((n, n), matvec=f, dtype=np.float64) for f in (scaled, rest)
    )
    values, vectors = eigsh(operator, k=k, which="LA", v0=vector, **RANDOM)
    for _ in range(k):  # add missed eigenvalues, which exceed the least result
        beyond = values.min() + _APART * np.abs(values).max()
        if ritz_values(rest, n, TUNING.linalg.check_steps, seed=1)[-1] <= beyond:
            break
        other = np.random.default_rng(1).normal(size=n)
        more, missed = eigsh(deflated, k=k, which="LA", v0=other, **RANDOM)
        values = np.r_[values, more[more > beyond]]
        best = np.argsort(-values, kind="stable")[:k]
        vectors = basis_of(np.hstack([vectors, missed[:, more > beyond]])[:, best])[0]
        values = values[best]
    return unit * values, vectors


def pivoted_cholesky(M: Array, tol: float) -> tuple[Array, Array]:
    """Return R (r, n) and p (n,) with R'R = M[p][:, p] for a symmetric matrix M (n, n).

    r is the number of pivots above `tol`. R is upper trapezoidal, with arbitrary numbers below its
    diagonal. p is a permutation of row indices. LAPACK's dpstrf is called by its address, because
    `scipy.linalg.lapack.dpstrf` would hold the interpreter's lock."""
    n = len(M)
    pivots, rank, info = np.zeros(n, np.intc), np.zeros(1, np.intc), np.zeros(1, np.intc)
    order, tolerance, work = np.full(1, n, np.intc), np.full(1, tol), np.empty(2 * n)
    capsule = LowLevelCallable.from_cython(cython_lapack, "dpstrf")
    pointer_of = PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", pythonapi))
    address = int(pointer_of(capsule.function, capsule.signature.encode()))
    routine = CFUNCTYPE(None, *[c_void_p] * 9)(address)

    def decomposed() -> Array:  # refers to all arrays, so that they live until LAPACK returns
        triangle = np.array(M, dtype=np.float64, order="F")
        upper = np.full(1, "U", "S1")
        # the second `order` is the leading dimension
        arrays = upper, order, triangle, order, pivots, rank, tolerance, work, info
        routine(*(each.ctypes.data for each in arrays))
        return triangle

    triangle = interruptible(n**3 / 3, decomposed)
    return triangle[: rank[0]], pivots - 1  # LAPACK counts rows from one


def ritz_values(
    multiply: Callable[[Array], Array], n: int, steps: int = 30, seed: int = 0
) -> Array:
    """Approximate extreme eigenvalues of a symmetric matrix; return Ritz values in rising order.

    `multiply` is a function that multiplies a vector (n,) by the matrix. The values come from
    `steps` steps of Lanczos' method with full orthogonalization. The extreme values approach the
    extreme eigenvalues from within."""
    basis = np.zeros((min(steps, n), n))
    v = np.random.default_rng(seed).standard_normal(n)
    projected = np.zeros((len(basis), len(basis)))
    for step in range(len(basis)):
        v = v - basis.T @ (basis @ v)
        v = v - basis.T @ (basis @ v)  # again, for what rounding has left
        norm = np.linalg.norm(v)
        if not norm > 0:  # the basis spans all further products
            return np.asarray(eigh(projected[:step, :step])[0])
        basis[step] = v / norm
        v = multiply(basis[step])
        projected[step] = projected[:, step] = basis @ v
    return np.asarray(eigh(projected)[0])


def fixed_signs(vectors: Array, scale: Array | None = None) -> Array:
    """Return columns with signs such that the entry of largest absolute value is positive.

    With `scale` (n,) > 0, entries are divided by it before they are compared."""
    sizes = np.abs(vectors if scale is None else vectors / scale[:, None])
    largest = vectors[sizes.argmax(axis=0), np.arange(vectors.shape[1])]
    return vectors * np.where(largest < 0, -1.0, 1.0)


def over_eigenvalues(vectors: Array, values: Array) -> Array:
    """Divide each eigenvector by its eigenvalue; eigenvalues are in falling order.

    Eigenvectors whose eigenvalue is only rounding, or negative, become zero."""
    positive = values > np.finfo(values.dtype).eps * len(vectors) * max(values[0], 0)
    return vectors * np.divide(1, values, out=np.zeros_like(values), where=positive)


def procrustes(matrix: Array) -> Array:
    """Return the matrix U (n, k) with orthonormal columns that maximizes Tr(U'V), for V = `matrix`.

    U = M N' from the singular value decomposition V = M S N'. It takes O(n k^2)."""
    left, _, right = svd(matrix)
    return left @ right


def orthonormal(n: int, k: int, random: Any) -> Array:
    """Return a random n x k matrix with orthonormal columns."""
    return basis_of(random.standard_normal((n, k)))[0]


def in_range(points: Any) -> Any:
    """Scale points, which may be sparse, so that their squared distances do not overflow."""
    return points / max(float(abs(points).max()), np.finfo(float).tiny)


def gaps_of(gram: Array) -> Array:
    """Return squared distances (n, n) between points, from their inner products (n, n)."""
    squares = np.diagonal(gram)
    gaps = squares + squares[:, None]
    gaps -= gram  # in place: there may be a hundred megabytes
    gaps -= gram.T
    return np.maximum(gaps, 0, out=gaps)


# ---- blocks of rows, so that memory stays bounded ------------------------------------------------


def row_tiles(n: int, width: int, numbers: int | None = None, step: int = 1) -> list[slice]:
    """Cut n rows into slices, so that a slice has about `numbers` entries.

    `width` is the number of entries of a row, and `numbers` is `TUNING.tiles.row_numbers` by
    default. Except for the last, a slice has a multiple of `step` rows."""
    size = step * max(1, (numbers or TUNING.tiles.row_numbers) // max(1, width))
    # scikit-learn's `gen_batches` checks its arguments for half a millisecond
    return [slice(begin, min(begin + size, n)) for begin in range(0, n, size)]


def tiles(n: int, n_columns: int) -> list[tuple[slice, slice]]:
    """Return (rows, columns) of the tiles of a matrix, ordered by rows and then by columns."""
    columns = row_tiles(n_columns, 1, TUNING.tiles.kernel_columns)
    return [(rows, part) for rows in row_tiles(n, 1, TUNING.tiles.kernel_rows) for part in columns]


def run_all(function: Callable[[Any], Any], items: list[Any], n_threads: int) -> list[Any]:
    """Apply a function to all items on threads; return the results in the order of the items."""
    if n_threads == 1 or len(items) == 1:
        return [function(item) for item in items]
    return _core.call_all(function, items, n_threads)


def by_blocks(
    function: Callable[[list[Any]], Array], xs: list[Any], width: int, n_threads: int
) -> Array:
    """Apply `function` to blocks of rows, and return its results, one line for each row.

    `xs` has the rows of each view. `function` maps them to a matrix with about `width` columns. The
    bits of a line do not depend on other rows. Matrix products round differently for different
    shapes, so all blocks have one shape, and copies of the last row fill the last block. A block
    has at most as many rows as columns, because there may be few new rows where few rows were
    fitted."""
    size = block_rows(width)

    def lines(rows: slice) -> Array:
        index = np.minimum(np.arange(rows.start, rows.start + size), rows.stop - 1)
        return function([x[index] for x in xs])[: rows.stop - rows.start]

    return np.concatenate(run_all(lines, row_tiles(len(xs[0]), 1, size), n_threads))


def block_rows(width: int) -> int:
    """Return the number of rows of a block in `by_blocks`, for results of `width` columns."""
    step, width, tuning = 32, max(1, width), TUNING.tiles  # BLAS cuts rows into parts of 32
    most = min(tuning.block_numbers // width, -(-width // step) * step, tuning.block_rows)
    return max(most // step * step, step)
