"""The columns of a view, with as much of the interface of an array as passes over rows use:
compressed sparse rows, and small numbers, which a pass reads as they are and widens to float32 tile
by tile."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances
from sklearn.utils.extmath import row_norms

# The names of the types, and the types of their numbers in memory.
_TYPES: dict[str, np.dtype[Any]] = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(np.uint16),
    "int8": np.dtype(np.int8),
    "uint8": np.dtype(np.uint8),
}

SMALL = set(_TYPES.values())

_BLOCK = 1 << 20  # numbers that are looked at together


@dataclass(frozen=True, eq=False)
class Narrow:
    """Dense rows of float16, bfloat16, int8 or uint8, of which passes and copies get float32."""

    stored: NDArray[Any]  # (n, d), in C order; of bfloat16 the bits, as uint16

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
    """A table of small numbers as rows, in place if it is in C order; None for anything else."""
    kind = _TYPES.get(getattr(getattr(x, "dtype", None), "name", ""))
    if kind is None or not isinstance(x, np.ndarray) or x.ndim != 2 or not x.size:
        return None
    if not x.dtype.isnative:
        return None
    return Narrow(np.require(np.asarray(x), requirements=["C", "A"]).view(kind))


def as_type(x: Any, dtype: Any = None) -> Any:
    """Rows in a type, at addresses that their numbers need; small numbers stay as they are unless
    they are to be float64."""
    if isinstance(x, (Csr, Narrow)):
        return x.astype(dtype or x.dtype, copy=False)
    return np.require(x, dtype, "A")


def plain(x: Any) -> Any:
    """Small numbers as float32; anything else as it is."""
    return x.copy() if isinstance(x, Narrow) else x


_INT32 = np.iinfo(np.int32).max

# Mean squares of entries between which float32 holds squared distances and sums of them.
_SQUARES = (1e-24, 1e28)


@dataclass(frozen=True, eq=False)
class Csr:
    """Row i has the values data[indptr[i] : indptr[i + 1]] in the columns `indices`, which rise."""

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
        """Whether the arrays fit together."""
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
    def n_cells(self) -> int:
        """The number of numbers, zeros included."""
        return self.shape[0] * self.shape[1]

    @property
    def nbytes(self) -> int:
        return self.data.nbytes + self.indices.nbytes + self.indptr.nbytes

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise TypeError("sparse rows are no array; `toarray` writes them out.")

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Csr:
        """Some rows, by a slice or an array of numbers or of booleans."""
        return from_canonical(self.matrix[rows])

    def copy(self) -> Csr:
        return Csr(self.data.copy(), self.indices.copy(), self.indptr.copy(), self.shape)

    def astype(self, dtype: Any, copy: bool = True) -> Self | Csr:
        if self.dtype == dtype and not copy:
            return self
        return Csr(self.data.astype(dtype), self.indices, self.indptr, self.shape)

    def toarray(self) -> NDArray[Any]:
        """The rows with their zeros."""
        return np.asarray(self.matrix.toarray())


# The columns of a view: an array (n, d), Csr or Narrow. Lists of each are passed to the
# same functions, for which a union would not do.
Columns = Any


def dense(x: Columns) -> NDArray[Any]:
    """The rows as an array."""
    return x.toarray() if isinstance(x, Csr) else np.asarray(x)


def concatenated(blocks: list[Columns]) -> Any:
    """The rows of all blocks: an array, or a sparse matrix if a block is sparse."""
    if not any(isinstance(block, Csr) for block in blocks):
        return np.concatenate(blocks)
    given = [x.matrix if isinstance(x, Csr) else sparse.csr_array(x) for x in blocks]
    return sparse.vstack(given, format="csr")


def arrays_of(x: Any) -> list[Any]:
    """The arrays that rows consist of."""
    return [x.data, x.indices, x.indptr] if isinstance(x, Csr) else [x]


def some_columns(x: Columns, index: slice | NDArray[np.intp]) -> Columns:
    """Some of the columns, in an array or sparse rows of their own."""
    if isinstance(x, Csr):
        return sparse_rows(x.matrix[:, index])
    return np.ascontiguousarray(x[:, index])


def occupied_columns(
    x: Columns, besides: NDArray[np.bool_] | None = None
) -> NDArray[np.intp] | None:
    """Return the columns of sparse rows that have entries, and the columns of a mask `besides`.

    None: the rows are dense, or these columns are at least half of all columns, and a copy without
    the other columns is not worth its time."""
    if not isinstance(x, Csr):
        return None
    there = np.zeros(x.shape[1], dtype=bool)
    there[x.indices] = True
    if besides is not None:
        there |= besides
    columns = np.flatnonzero(there)
    return columns if 0 < 2 * len(columns) < x.shape[1] else None


def spread_columns(
    narrow: NDArray[Any], columns: NDArray[np.intp] | None, width: int
) -> NDArray[Any]:
    """Return `width` columns: `narrow` in the given columns, and zeros in all other columns."""
    if columns is None:
        return narrow
    lines = np.zeros((*narrow.shape[:-1], width), dtype=narrow.dtype)
    lines[..., columns] = narrow
    return lines


def scaled_columns(x: Columns, scales: NDArray[np.float64]) -> Columns:
    """The columns times these numbers, in their dtype."""
    if isinstance(x, Csr):
        return replace(x, data=x.data * scales.astype(x.dtype)[x.indices])
    return x * scales.astype(x.dtype)


def side_by_side(views: list[Columns]) -> Columns:
    """The columns of all views, which have one dtype; sparse rows if some are."""
    if len(views) == 1:
        return views[0]
    if not any(isinstance(x, Csr) for x in views):
        return np.hstack(views)
    given = [x.matrix if isinstance(x, Csr) else sparse.csr_array(x) for x in views]
    return sparse_rows(sparse.hstack(given, format="csr"))


def column_means(x: Columns) -> NDArray[np.float64]:
    """The means of the columns, (d,)."""
    x = x.matrix if isinstance(x, Csr) else np.asarray(x)
    return np.asarray(x.mean(axis=0, dtype=np.float64)).ravel()


def pair_distances(x: Columns, metric: str) -> NDArray[np.float64]:
    """The distances "sqeuclidean" or "cityblock" of all pairs of rows, in the order of `pdist`."""
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
    """||x_i - c||^2, (n,), in float64."""
    if not isinstance(x, Csr):
        return _of_blocks(lambda block: ((block - center) ** 2).sum(axis=1), x)
    c, data = center.astype(np.float64), x.data.astype(np.float64)
    terms = x.astype(np.float64, copy=False).matrix.copy()
    terms.data = data * (data - 2 * c[x.indices])
    return np.asarray(terms.sum(axis=1)).ravel() + c @ c


def centered_products(x: Csr, center: NDArray[Any]) -> NDArray[np.float64]:
    """<x_i - c, x_j - c> of all pairs of rows, (n, n), in float64."""
    wide, c = x.astype(np.float64, copy=False).matrix, center.astype(np.float64)
    along = wide @ c
    return np.asarray((wide @ wide.T).toarray() - along - along[:, None] + c @ c)


def rows_differ(x: Columns) -> bool:
    """Whether the rows are not all equal."""
    if isinstance(x, Csr):
        most, least = (of(axis=0).toarray() for of in (x.matrix.max, x.matrix.min))
        return bool((most != least).any())
    table = x.stored if isinstance(x, Narrow) else x
    return bool((table != table[0]).any())


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def mean_square(X: Columns) -> float:
    """The mean of the squares of the entries. It is finite only if all of these are, and infinite
    also where squares overflow."""
    if isinstance(X, Narrow):
        step = max(1, _BLOCK // X.shape[1])
        blocks = (_widened(X.stored[i : i + step]) for i in range(0, len(X), step))
        return sum(float(np.vdot(x, x)) for x in blocks) / X.stored.size
    flat = X.data if isinstance(X, Csr) else X.reshape(-1)
    return float(flat @ flat) / math.prod(X.shape)


def beyond_float32(X: Columns, mean: float) -> bool:
    """Whether float32 does not hold the squares of the entries, which have this `mean_square`."""
    if _SQUARES[0] <= mean <= _SQUARES[1]:
        return False
    entries = X.data if isinstance(X, Csr) else plain(X)
    if math.isnan(mean):  # of rows that lack views
        found = entries[~np.isnan(entries)]
        return bool(found.size) and beyond_float32(found, mean_square(found))
    return mean > 0 or bool(entries.any())


def row_bytes(xs: list[Columns]) -> int:
    """The mean number of bytes of a row of all views."""
    return sum(
        -(-x.nbytes // max(len(x), 1)) if isinstance(x, Csr)
        else x.shape[1] * x.dtype.itemsize for x in xs
    )  # fmt: skip


def distinct_rows(x: Columns) -> tuple[Columns, NDArray[np.intp]]:
    """The distinct rows in lexicographic order, and the number of the one that each row equals."""
    if not isinstance(x, Csr):
        number = _ranks(x)
        found = np.empty((number.max(initial=-1) + 1, x.shape[1]), dtype=x.dtype)
        found[number] = x
        return found, number
    words, places = _ordered_words(x), _WORD.itemsize * x.indptr
    keys = [words[a:b] + b"\1" for a, b in zip(places, places[1:])]
    _, first, inverse = np.unique(
        np.array(keys, dtype=object), return_index=True, return_inverse=True
    )
    return x[first], inverse


def _ranks(x: NDArray[Any]) -> NDArray[np.intp]:
    """The place of each row among the distinct ones in lexicographic order: a column after the
    other, of those rows alone that are equal so far."""
    rank = np.zeros(len(x), dtype=np.intp)  # how many rows come before
    tied = np.arange(len(x))
    for column in x.T:
        if len(tied) < 2:
            break
        values = column[tied]
        order = np.lexsort((values, rank[tied]))
        tied, values = tied[order], values[order]
        place, before = np.arange(len(tied)), rank[tied]
        of_group = np.r_[True, before[1:] != before[:-1]]
        begins = of_group | np.r_[True, values[1:] != values[:-1]]
        of_group_at = np.maximum.accumulate(np.where(of_group, place, 0))
        rank[tied] = before + np.maximum.accumulate(np.where(begins, place, 0)) - of_group_at
        alone = begins & np.r_[begins[1:], True]
        tied = tied[~alone]
    return np.unique(rank, return_inverse=True)[1].ravel()


# An entry as bytes whose order is that of rows with and without it: a negative one is below the end
# of a row, which is 1, and the lower the earlier it comes; a positive one above, and the higher.
_WORD = np.dtype([("sign", np.uint8), ("column", ">u4"), ("value", ">u8")])


def _ordered_words(x: Csr) -> bytes:
    words, positive = np.empty(len(x.data), dtype=_WORD), x.data > 0
    words["sign"] = 2 * positive
    words["column"] = np.where(positive, _INT32 - x.indices, x.indices)
    bits = np.asarray(x.data, dtype=np.float64).view(np.uint64)
    words["value"] = np.where(positive, bits, ~bits)
    return words.tobytes()


def scaled_rows(x: Csr, scale: NDArray[Any]) -> Csr:
    """The rows, divided by numbers (n,) > 0."""
    data = (x.data / np.repeat(scale, np.diff(x.indptr))).astype(x.dtype, copy=False)
    return Csr(data, x.indices, x.indptr, x.shape)


@np.errstate(over="ignore", invalid="ignore")  # refused by name later
def squared_norms(x: Columns) -> NDArray[np.float64]:
    """||x_i||^2, (n,), in float64."""
    if isinstance(x, Csr):
        return np.asarray(row_norms(x.astype(np.float64, copy=False).matrix, squared=True))
    return _of_blocks(lambda block: row_norms(block, squared=True), x)


def _of_blocks(function: Callable[[NDArray[Any]], Any], x: Columns) -> NDArray[np.float64]:
    """Return the numbers (n,) of rows by a function of rows in float64, a block at a time."""
    step = max(1, _BLOCK // max(1, x.shape[1]))
    blocks = (x[i : i + step] for i in range(0, max(len(x), 1), step))
    return np.concatenate([function(np.asarray(b).astype(np.float64, copy=False)) for b in blocks])


def from_canonical(matrix: Any) -> Csr:
    """The rows of a CSR matrix of scipy whose indices rise, without explicit zeros."""
    indices = matrix.indices.astype(np.int32, copy=False)
    return Csr(matrix.data, indices, matrix.indptr.astype(np.int64), matrix.shape)


def sparse_rows(given: Any) -> Csr:
    """The rows of a CSR matrix of scipy, which is not changed: duplicates are summed, indices
    sorted and explicit zeros left out in a copy, if there are any.

    Raises
    ------
    ValueError
        If the arrays of the matrix do not fit together, or columns are too many.
    """
    if given.shape[1] > _INT32:
        raise ValueError(f"X has {given.shape[1]} columns, must have at most {_INT32}.")
    matrix = sparse.csr_array((given.data, given.indices, given.indptr), shape=given.shape)
    matrix.check_format(full_check=True)
    if not matrix.has_canonical_format or np.count_nonzero(matrix.data) < matrix.nnz:
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    n_entries = int(matrix.indptr[-1])  # arrays may have room for more
    found = from_canonical(matrix)
    return Csr(
        np.require(found.data[:n_entries], requirements=["C", "A"]),
        np.require(found.indices[:n_entries], requirements=["C", "A"]), found.indptr, given.shape,
    )  # fmt: skip


def each(arrays: list[Any], function: Callable[..., Any], *more: Any) -> list[Any]:
    """The values of a function of arrays, and of more arguments; one value for views that are the
    same array."""
    tables = tables_of(arrays)
    values = {i: function(arrays[i], *more) for i in dict.fromkeys(tables)}
    return [values[i] for i in tables]


def tables_of(views: list[Any]) -> list[int]:
    """Of each view the number of its table: that of the first view that is the same array."""
    numbers: dict[int, int] = {}
    return [numbers.setdefault(id(x), i) for i, x in enumerate(views)]


def distinct_tables(views: list[Any]) -> list[Any]:
    """The views without those that are the same array as one before."""
    return [views[i] for i in dict.fromkeys(tables_of(views))]


def unit_rows(X: Columns) -> Any:
    """The rows of X scaled to length one; zeros stay."""
    if isinstance(X, Csr):
        largest = abs(X.matrix).max(axis=1).toarray().ravel()
        X = scaled_rows(X, np.where(largest > 0, largest, 1))
        lengths = np.sqrt(squared_norms(X))
        return scaled_rows(X, np.where(lengths > 0, lengths, 1))
    largest = np.abs(X).max(axis=1, keepdims=True)  # so that squares do not overflow
    X = np.divide(X, largest, out=np.zeros_like(X), where=largest > 0)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return np.divide(X, lengths, out=X, where=lengths > 0)
