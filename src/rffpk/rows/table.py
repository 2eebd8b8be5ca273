"""Tables, the columns of a view, in three forms, and operations on tables of any form.

A table is an array, compressed sparse rows, or small numbers. A pass reads small numbers as they
are and widens them to float32 tile by tile. Only this module and `rows.passes`, which fills the
arguments of the core, ask which form a table has. All modules above take tables of any form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances
from sklearn.utils.extmath import row_norms

from rffpk.rows.arrays import Identity, Map, Unit
from rffpk.system.linalg import block_rows, row_tiles, run_all
from rffpk.system.tuning import TUNING

# The names of the types, and the types of their numbers in memory.
_TYPES: dict[str, np.dtype[Any]] = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(np.uint16),
    "int8": np.dtype(np.int8),
    "uint8": np.dtype(np.uint8),
}

SMALL = set(_TYPES.values())


@dataclass(frozen=True, eq=False)
class Narrow:
    """Dense rows stored as float16, bfloat16, int8 or uint8, which passes widen to float32."""

    stored: NDArray[Any]  # (n, d), in C order; uint16 holds the bits of bfloat16

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float32)

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.stored.shape
        return n, d

    def __len__(self) -> int:
        return len(self.stored)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            return Narrow(self.stored[rows])
        return _widened(self.stored[rows])

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return _widened(self.stored).astype(dtype or self.dtype, copy=False)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        return self if dtype == self.dtype and not copy else self.__array__(dtype)

    def copy(self) -> NDArray[Any]:
        return self.__array__()


def _widened(stored: NDArray[Any]) -> NDArray[np.float32]:
    if stored.dtype == np.uint16:
        return (stored.astype(np.uint32) << 16).view(np.float32)
    return stored.astype(np.float32)


def narrow_rows(x: Any) -> Narrow | None:
    """Wrap an array of a low-precision dtype as `Narrow`, without a copy if it is in C order.

    Return None for all other tables, and for arrays that are empty or not in native byte order."""
    kind = _TYPES.get(getattr(getattr(x, "dtype", None), "name", ""))
    if kind is None or not isinstance(x, np.ndarray) or x.ndim != 2 or not x.size:
        return None
    if not x.dtype.isnative:
        return None
    return Narrow(np.require(np.asarray(x), requirements=["C", "A"]).view(kind))


def as_type(x: Any, dtype: Any = None) -> Any:
    """Return rows in a dtype, at aligned addresses.

    Rows in low precision (`Narrow`) stay as they are for float32, because passes widen them."""
    if isinstance(x, (Csr, Narrow)):
        return x.astype(dtype or x.dtype, copy=False)
    return np.require(x, dtype, "A")


def plain(x: Any) -> Any:
    """Convert `Narrow` rows to a float32 array; return other rows as they are."""
    return x.copy() if isinstance(x, Narrow) else x


def stored(x: Any) -> Any:
    """Return the low-precision array of `Narrow` rows; return other rows as they are."""
    return x.stored if isinstance(x, Narrow) else x


_INT32 = np.iinfo(np.int32).max

# Mean squares of entries between which float32 holds squared distances and sums of them.
_SQUARES = (1e-24, 1e28)


@dataclass(frozen=True, eq=False)
class Csr:
    """Compressed sparse rows: row i has data[indptr[i] : indptr[i + 1]] in the columns `indices`.

    Column indices rise within each row."""

    data: NDArray[Any]  # (n_entries,)
    indices: NDArray[np.int32]  # (n_entries,)
    indptr: NDArray[np.int64]  # (n + 1,)
    shape: tuple[int, int]

    @property
    def matrix(self) -> sparse.csr_array:
        """The rows as a matrix of scipy, which shares the entries."""
        small = len(self.data) <= _INT32  # else scipy takes both as 64-bit integers
        indptr = self.indptr.astype(np.int32) if small else self.indptr
        return sparse.csr_array((self.data, self.indices, indptr), shape=self.shape)

    def is_valid(self) -> bool:
        """Return whether the arrays are consistent and have the right dtypes."""
        try:
            self.matrix.check_format(full_check=True)
        except (ValueError, TypeError, IndexError, OverflowError):
            return False
        whole = self.indices.dtype == np.int32 and self.indptr.dtype == np.int64
        whole &= len(self.indices) == len(self.data) == self.indptr[-1]
        return bool(whole and self.data.dtype.kind == "f")

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype

    @property
    def nbytes(self) -> int:
        return self.data.nbytes + self.indices.nbytes + self.indptr.nbytes

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise TypeError("sparse rows are no array; `toarray` writes them out.")

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Csr:
        """Return the rows that a slice, an array of indices or a mask selects."""
        return from_canonical(self.matrix[rows])

    def take(self, rows: Any, axis: int = 0) -> Csr:
        """Return the rows with these indices, as `take` of an array does."""
        return self[rows]

    def copy(self) -> Csr:
        return Csr(self.data.copy(), self.indices.copy(), self.indptr.copy(), self.shape)

    def astype(self, dtype: Any, copy: bool = True) -> Self | Csr:
        if self.dtype == dtype and not copy:
            return self
        return Csr(self.data.astype(dtype), self.indices, self.indptr, self.shape)

    def toarray(self) -> NDArray[Any]:
        """Return the rows with their zeros."""
        return np.asarray(self.matrix.toarray())


# The columns of a view: an array (n, d), Csr or Narrow. A union would not do, because functions
# take lists of arrays as lists of columns.
Columns = Any


# ---- the numbers of a table ----------------------------------------------------------------------


def dense(x: Columns) -> NDArray[Any]:
    """Return the rows, or a matrix of SciPy, as an array with zeros written out."""
    matrix = operand(x)
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)


def operand(x: Columns) -> Any:
    """Return the rows as NumPy and SciPy multiply them: a CSR array of SciPy for sparse rows."""
    return x.matrix if isinstance(x, Csr) else plain(x)


def skip_zeros(*tables: Columns) -> bool:
    """Return whether at least one of the tables is sparse.

    Then inner products replace tree searches, and no offset is added to rows."""
    return Csr in map(type, tables)


def entries(x: Columns) -> NDArray[Any]:
    """Return the stored numbers of a table: the nonzero entries, if it is sparse."""
    return x.data if isinstance(x, Csr) else plain(x)


def _with_entries(x: Columns, numbers: NDArray[Any]) -> Columns:
    """Return the table with `numbers` in place of its stored numbers."""
    return replace(x, data=numbers) if isinstance(x, Csr) else numbers


def entries_a_row(x: Columns) -> float:
    """Return the mean number of stored numbers in a row."""
    return len(x.data) / max(len(x), 1) if isinstance(x, Csr) else x.shape[1]


def has_view(x: Columns) -> NDArray[np.bool_]:
    """Return a mask (n,) of the rows that have this view. A row without it has NaN in column 0."""
    if isinstance(x, Csr):  # entries of sparse rows are finite
        return np.ones(len(x), dtype=bool)
    return ~np.isnan(x[:, 0])


def nan_counts(x: Columns) -> NDArray[np.intp]:
    """Return the number of NaN in each row, (n,). Sparse rows have been checked to have none."""
    return np.zeros(len(x), np.intp) if isinstance(x, Csr) else np.isnan(x).sum(axis=1)


def concatenated(blocks: list[Columns]) -> Columns:
    """Return the rows of all blocks, sparse if a block is sparse."""
    if not skip_zeros(*blocks):
        return np.concatenate(blocks)
    return sparse_rows(sparse.vstack([sparse.csr_array(operand(x)) for x in blocks], "csr"))


def arrays_of(x: Any) -> list[Any]:
    """Return the arrays that a table is stored in: three for sparse rows, else one."""
    return [x.data, x.indices, x.indptr] if isinstance(x, Csr) else [x]


# ---- columns -------------------------------------------------------------------------------------


def some_columns(x: Columns, index: slice | NDArray[np.intp]) -> Columns:
    """Return columns at an index, in an array or sparse rows of their own."""
    if isinstance(x, Csr):
        return sparse_rows(x.matrix[:, index])
    return np.ascontiguousarray(x[:, index])


def occupied_columns(
    x: Columns, besides: NDArray[np.bool_] | None = None, weight: NDArray[Any] | None = None
) -> NDArray[np.intp] | None:
    """Return the columns of sparse rows that have entries, and the columns of a mask `besides`.

    Rows of weight zero do not count. Return None if the rows are dense, if no column is occupied,
    or if at least half are: a copy without the empty columns is then not worth its time."""
    if not isinstance(x, Csr):
        return None
    x = x if weight is None else x[np.flatnonzero(weight)]
    there = np.zeros(x.shape[1], dtype=bool)
    there[x.indices] = True
    if besides is not None:
        there |= besides
    columns = np.flatnonzero(there)
    return columns if 0 < 2 * len(columns) < x.shape[1] else None


def spread_columns(
    narrow: NDArray[Any], columns: NDArray[np.intp] | None, width: int
) -> NDArray[Any]:
    """Return `width` columns: `narrow` in the given columns, and zeros in all other columns.

    If `columns` is None, return `narrow`, which has all columns."""
    if columns is None:
        return narrow
    lines = np.zeros((*narrow.shape[:-1], width), dtype=narrow.dtype)
    lines[..., columns] = narrow
    return lines


def scaled_columns(x: Columns, scales: NDArray[Any]) -> Columns:
    """Multiply the columns by numbers (d,), in the dtype of the rows."""
    scales = scales.astype(x.dtype)
    return _with_entries(x, entries(x) * (scales[x.indices] if isinstance(x, Csr) else scales))


def divided(x: Columns, number: Any) -> Columns:
    """Divide the rows by a number, in their dtype."""
    return _with_entries(x, entries(x) / x.dtype.type(number))


def side_by_side(views: list[Columns]) -> Columns:
    """Join the columns of all views, which have one dtype; sparse rows if a view is sparse."""
    if len(views) == 1:
        return views[0]
    if not skip_zeros(*views):
        return np.hstack(views)
    return sparse_rows(sparse.hstack([sparse.csr_array(operand(x)) for x in views], "csr"))


def column_means(x: Columns) -> NDArray[np.float64]:
    """Return the means of the columns, (d,)."""
    return np.asarray(operand(x).mean(axis=0, dtype=np.float64)).ravel()


def column_blocks(x: Columns) -> Iterator[NDArray[np.float64]]:
    """Generate consecutive columns of the rows, some at a time, as arrays in float64."""
    columns = x.matrix.tocsc() if isinstance(x, Csr) else x
    for block in row_tiles(x.shape[1], len(x)):
        yield dense(columns[:, block]).astype(np.float64)


def binary_columns(x: Columns) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return a mask (d,) of columns with at most two values, and the range of each column, (d,).

    For sparse rows the mask is False and the ranges are zero: no column is treated as binary."""
    if isinstance(x, Csr):
        return np.zeros(x.shape[1], dtype=bool), np.zeros(x.shape[1])
    low, high = x.min(axis=0), x.max(axis=0)
    return ((x == low) | (x == high)).all(axis=0), (high - low).astype(np.float64)


def squared(x: Columns) -> Columns:
    """Return the squares of the numbers."""
    return _with_entries(x, entries(x) ** 2)


def over_powers(x: Columns) -> tuple[Columns, NDArray[np.intp]]:
    """Divide columns by powers of two, so that squares neither overflow nor underflow.

    Return the scaled table and the exponents (d,) of the powers."""
    if isinstance(x, Csr):
        exponents = np.frexp(abs(x.matrix).max(axis=0).toarray().ravel())[1]
        return replace(x, data=np.ldexp(x.data, -exponents[x.indices])), exponents
    largest = np.fmax.reduce(np.abs(x), axis=0, initial=0.0)  # of numbers that are not NaN
    exponents = np.frexp(largest)[1]
    return np.ldexp(x, -exponents), exponents


def centered(x: Columns, dtype: Any) -> Columns:
    """Subtract the column means from dense rows, in `dtype`. Sparse rows are only converted."""
    if isinstance(x, Csr):
        return x.astype(dtype, copy=False)
    return np.ascontiguousarray(x - x.mean(axis=0, dtype=dtype))


def center_and_squares(x: Columns) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a center (d,) of the rows, and the squared distances (n,) of the rows from it.

    The center is the median of each column, or zero for sparse rows."""
    if isinstance(x, Csr):
        return np.zeros(x.shape[1]), squared_norms(x)
    center = np.median(x, axis=0).astype(np.float64)
    return center, ((x - center) ** 2).sum(axis=1)


# ---- products and distances ----------------------------------------------------------------------


def product_cost(x: Columns, width: int) -> float:
    """Estimate the cost of multiplying one row with a matrix of `width` columns."""
    if isinstance(x, Csr):
        return entries_a_row(x) * (TUNING.storage.entry_cost + TUNING.storage.gather_cost * width)
    return 2.0 * x.shape[1] * width


def inner_products(x: Columns, y: Columns) -> NDArray[Any]:
    """Return <x_i, y_j>, (n, m). Both tables are dense, or both are sparse."""
    return dense(operand(x) @ operand(y).T)


def gram(x: Columns, center: NDArray[Any]) -> NDArray[np.float64]:
    """Return <x_i - c, x_j - c> for all pairs of rows, (n, n), with the center c (d,)."""
    wide, c = x.astype(np.float64, copy=False), center.astype(np.float64)
    along = operand(wide) @ c
    return np.asarray(inner_products(wide, wide) - along - along[:, None] + c @ c)


def weighted_sums(x: Columns, weights: Any) -> NDArray[Any]:
    """Return sum_i w_ij x_i for weights (n, k), an array or a sparse matrix: (k, d)."""
    return dense((x.matrix.T @ weights).T if isinstance(x, Csr) else weights.T @ x)


def group_means(x: Columns, members: Any, mass: NDArray[Any], previous: Columns) -> Columns:
    """Return the weighted means of groups of rows, (k, d).

    `members` (n, k) is a sparse matrix of the weights of rows in groups, and `mass` (k, 1) has its
    column sums. A group of zero mass keeps its row of `previous`."""
    if isinstance(x, Csr):
        # means of groups with mass, and previous rows of the rest
        part = sparse.diags(np.divide(1, mass, out=np.zeros_like(mass), where=mass > 0)[:, 0])
        rest = sparse.diags(1.0 * (mass == 0)[:, 0])
        moved = part @ members.T @ x.matrix + rest @ previous.matrix
        return sparse_rows(moved.tocsr()).astype(x.dtype)
    # some columns at a time, as the product copies rows of float32 in float64
    columns = row_tiles(x.shape[1], len(x))
    sums = np.hstack([members.T @ x[:, part] for part in columns])
    means = np.divide(sums, mass, out=previous.astype(np.float64), where=mass > 0)
    return np.asarray(means.astype(x.dtype))


def centered_product(
    x: Columns, origin: NDArray[Any], matrix: NDArray[Any], n_threads: int,
    finish: Callable[[NDArray[Any]], NDArray[Any]] = np.asarray,
) -> NDArray[Any]:  # fmt: skip
    """Return `finish((x - origin) @ matrix)`, (n, F), in the dtype of the rows.

    The bits of a row's result do not depend on other rows, because all products have one shape, as
    in `by_blocks` of `system.linalg`. A stack of blocks is multiplied in one call."""
    (n, d), size = x.shape, block_rows(x.shape[1])
    result = np.empty((n, matrix.shape[1]), dtype=x.dtype)

    def lines(part: Columns) -> NDArray[Any]:
        if isinstance(part, Csr):  # SciPy computes each line by itself
            return np.asarray(part.astype(np.float64).matrix @ matrix - origin @ matrix)
        moved = part - origin
        if len(moved) % size:  # the last block: repeat the last row
            moved = np.concatenate([moved, moved[-1:].repeat(-len(moved) % size, axis=0)])
        return (moved.reshape(-1, size, d) @ matrix).reshape(len(moved), -1)[: len(part)]

    def write(rows: slice) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # callers refuse results that overflow
            result[rows] = finish(lines(x[rows]))

    run_all(write, row_tiles(n, size * d, TUNING.tiles.block_numbers, size), n_threads)
    return result


def pair_distances(x: Columns, metric: str) -> NDArray[np.float64]:
    """Return distances of all pairs of rows, in the order of `pdist`.

    The metric is "sqeuclidean" or "cityblock"."""
    if not isinstance(x, Csr):
        return pdist(x.astype(np.float64), metric)
    matrix = x.astype(np.float64).matrix
    with np.errstate(over="ignore", invalid="ignore"):  # refused by name later
        if metric == "cityblock":
            found = manhattan_distances(matrix)
        else:
            found = euclidean_distances(matrix, squared=True)
    return np.asarray(found[np.triu_indices(len(x), 1)])


@np.errstate(over="ignore", invalid="ignore")  # refused by name later
def squared_distances(x: Columns, center: NDArray[Any]) -> NDArray[np.float64]:
    """Return ||x_i - c||^2 of each row from one center c (d,): (n,), in float64."""
    if not isinstance(x, Csr):
        return _of_blocks(lambda block: row_norms(block - center, squared=True), x)
    c, data = center.astype(np.float64), x.data.astype(np.float64)
    # ||x - c||^2 = c'c + sum_j x_j (x_j - 2 c_j), and zeros add nothing to the sum
    terms = x.astype(np.float64, copy=False).matrix.copy()
    terms.data = data * (data - 2 * c[x.indices])
    return np.asarray(terms.sum(axis=1)).ravel() + c @ c


def rows_differ(x: Columns) -> bool:
    """Return whether the rows are not all equal."""
    if isinstance(x, Csr):
        highest, lowest = (of(axis=0).toarray() for of in (x.matrix.max, x.matrix.min))
        return bool((highest != lowest).any())
    table = stored(x)
    # a mask of all entries would take a quarter of the memory of the rows
    return any(bool((table[tile] != table[0]).any()) for tile in row_tiles(*table.shape))


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def mean_square(x: Columns) -> float:
    """Return the mean square of all numbers.

    It is not finite if a number is NaN or infinite, or if squares overflow."""
    if isinstance(x, Narrow):
        step = max(1, TUNING.tiles.row_numbers // x.shape[1])
        blocks = (_widened(x.stored[i : i + step]) for i in range(0, len(x), step))
        return sum(float(np.vdot(block, block)) for block in blocks) / x.stored.size
    numbers = x.data if isinstance(x, Csr) else x.reshape(-1)
    return float(numbers @ numbers) / math.prod(x.shape)


def beyond_float32(x: Columns, mean: float) -> bool:
    """Return whether squares of the numbers leave the range of float32.

    `mean` is the `mean_square` of the table."""
    if _SQUARES[0] <= mean <= _SQUARES[1]:
        return False
    numbers = entries(x)
    if math.isnan(mean):  # some rows lack views
        known = numbers[~np.isnan(numbers)]
        return bool(known.size) and beyond_float32(known, mean_square(known))
    return mean > 0 or bool(numbers.any())  # squares may underflow to a mean of zero


def row_bytes(xs: list[Columns]) -> int:
    """Return the mean number of bytes of a row, rounded up, summed over the tables."""
    return sum(
        -(-x.nbytes // max(len(x), 1)) if isinstance(x, Csr)
        else x.shape[1] * x.dtype.itemsize for x in xs
    )  # fmt: skip


# A sparse entry as bytes. Sparse rows that are compared as bytes have the order of dense rows. The
# end of a row has the sign 1. Negative entries have the sign 0: they are below the end, the lower
# the earlier the column. Positive entries have the sign 2: they are above the end, the higher the
# earlier the column.
_WORD = np.dtype([("sign", np.uint8), ("column", ">u4"), ("value", ">u8")])


def distinct_rows(x: Columns) -> tuple[Columns, NDArray[np.intp]]:
    """Return the distinct rows in lexicographic order, and the index of each row there, (n,)."""
    if not isinstance(x, Csr):
        number = _ranks(x)
        distinct = np.empty((number.max(initial=-1) + 1, x.shape[1]), dtype=x.dtype)
        distinct[number] = x
        return distinct, number
    words, positive = np.empty(len(x.data), dtype=_WORD), x.data > 0
    words["sign"] = 2 * positive
    words["column"] = np.where(positive, _INT32 - x.indices, x.indices)
    bits = np.asarray(x.data, dtype=np.float64).view(np.uint64)
    words["value"] = np.where(positive, bits, ~bits)
    encoded, places = words.tobytes(), _WORD.itemsize * x.indptr
    keys = [encoded[a:b] + b"\1" for a, b in zip(places, places[1:])]
    _, first, inverse = np.unique(
        np.array(keys, dtype=object), return_index=True, return_inverse=True
    )
    return x[first], inverse


def _ranks(x: NDArray[Any]) -> NDArray[np.intp]:
    """Return for each row its index among the distinct rows in lexicographic order, (n,).

    Columns are compared one after another. Rows that have been equal so far form a group, and have
    one rank. In the next column, tied rows are sorted by group, then by value. A row's rank becomes
    the rank of the group, plus the place of the first equal value within the group."""
    rank = np.zeros(len(x), dtype=np.intp)  # how many rows come before
    tied = np.arange(len(x))
    for column in x.T:
        if len(tied) < 2:
            break
        values = column[tied]
        order = np.lexsort((values, rank[tied]))
        tied, values = tied[order], values[order]
        place, before = np.arange(len(tied)), rank[tied]
        group_begins = np.r_[True, before[1:] != before[:-1]]
        value_begins = group_begins | np.r_[True, values[1:] != values[:-1]]
        group_start = np.maximum.accumulate(np.where(group_begins, place, 0))
        value_start = np.maximum.accumulate(np.where(value_begins, place, 0))
        rank[tied] = before + value_start - group_start
        # rows that no other row equals so far
        alone = value_begins & np.r_[value_begins[1:], True]
        tied = tied[~alone]
    return np.unique(rank, return_inverse=True)[1].ravel()


def hash_terms(x: Columns, factors: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return for each row sum_j bits(x_ij) factors_j modulo 2^64, (n,).

    Zeros add nothing, so that sparse rows have the sums of equal dense rows."""
    values = entries(x)
    values = values + values.dtype.type(0)  # -0.0 becomes 0.0
    bits = values.view(f"u{values.itemsize}").astype(np.uint64)
    if values.itemsize == 8:  # small whole numbers end with zeros
        bits ^= bits >> np.uint64(32)
    if isinstance(x, Csr):
        return type(x.matrix)((bits, x.indices, x.indptr), shape=x.shape) @ factors
    return np.einsum("ij,j->i", bits, factors)


def _scaled_rows(x: Csr, scale: NDArray[Any]) -> Csr:
    """Divide each row by its entry of `scale` (n,) > 0."""
    data = (x.data / np.repeat(scale, np.diff(x.indptr))).astype(x.dtype, copy=False)
    return Csr(data, x.indices, x.indptr, x.shape)


@np.errstate(over="ignore", invalid="ignore")  # refused by name later
def squared_norms(x: Columns) -> NDArray[np.float64]:
    """Return ||x_i||^2, (n,), in float64."""
    if isinstance(x, Csr):
        return np.asarray(row_norms(x.astype(np.float64, copy=False).matrix, squared=True))
    return _of_blocks(lambda block: row_norms(block, squared=True), x)


def _of_blocks(function: Callable[[NDArray[Any]], Any], x: Columns) -> NDArray[np.float64]:
    """Apply a function of float64 rows to blocks of rows; concatenate its results, (n,)."""
    step = max(1, TUNING.tiles.row_numbers // max(1, x.shape[1]))
    # without rows there is one empty block, because `concatenate` needs an array
    blocks = (x[i : i + step] for i in range(0, max(len(x), 1), step))
    return np.concatenate([function(np.asarray(b).astype(np.float64, copy=False)) for b in blocks])


def from_canonical(matrix: Any) -> Csr:
    """Convert a CSR matrix of SciPy with rising indices and no stored zeros to `Csr`."""
    indices = matrix.indices.astype(np.int32, copy=False)
    return Csr(matrix.data, indices, matrix.indptr.astype(np.int64), matrix.shape)


def sparse_rows(x: Any) -> Csr:
    """Return the rows of a CSR matrix of scipy, which is not changed.

    If necessary, a copy has duplicates summed, indices sorted and explicit zeros left out.

    Raises
    ------
    ValueError
        If the arrays of the matrix do not fit together, or there are too many columns.
    """
    if x.shape[1] > _INT32:
        raise ValueError(f"X has {x.shape[1]} columns, must have at most {_INT32}.")
    matrix = sparse.csr_array((x.data, x.indices, x.indptr), shape=x.shape)
    matrix.check_format(full_check=True)
    if not matrix.has_canonical_format or np.count_nonzero(matrix.data) < matrix.nnz:
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    n_entries = int(matrix.indptr[-1])  # arrays may have room for more
    rows = from_canonical(matrix)
    return Csr(
        np.require(rows.data[:n_entries], requirements=["C", "A"]),
        np.require(rows.indices[:n_entries], requirements=["C", "A"]), rows.indptr, x.shape,
    )  # fmt: skip


def unit_rows(X: Columns) -> Any:
    """Scale the rows of X to length one; zeros stay."""
    if isinstance(X, Csr):
        largest = abs(X.matrix).max(axis=1).toarray().ravel()  # so that squares do not overflow
        X = _scaled_rows(X, np.where(largest > 0, largest, 1))
        lengths = np.sqrt(squared_norms(X))
        return _scaled_rows(X, np.where(lengths > 0, lengths, 1))
    largest = np.abs(X).max(axis=1, keepdims=True)
    X = np.divide(X, largest, out=np.zeros_like(X), where=largest > 0)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return np.divide(X, lengths, out=X, where=lengths > 0)


@dataclass(frozen=True)
class UnitRows:
    """The map of rows to rows of length one; zeros stay."""

    def _view(self, X: Columns) -> tuple[Columns, Map]:
        """Return the columns and the map of the view, as passes take them.

        Sparse rows are scaled here, and dense rows in the pass."""
        width = X.shape[1]
        return (unit_rows(X), Identity(width)) if isinstance(X, Csr) else (X, Unit(width))

    def _features(self, X: Columns) -> Columns:
        """Return the rows with length one, in arrays of their own."""
        return unit_rows(X).copy()
