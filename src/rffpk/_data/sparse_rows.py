"""Compressed sparse rows, with as much of the interface of an array as passes over rows use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_MOST_COLUMNS = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows of which the entries that are not zero are kept: row i has the values
    data[indptr[i] : indptr[i + 1]] in the columns `indices`, which rise."""

    data: NDArray[Any]  # (n_entries,)
    indices: NDArray[np.int32]  # (n_entries,)
    indptr: NDArray[np.int64]  # (n + 1,)
    shape: tuple[int, int]

    @cached_property
    def matrix(self) -> sparse.csr_array:
        """The rows as a matrix of scipy, which shares the entries."""
        return sparse.csr_array((self.data, self.indices, self.indptr), shape=self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype

    @property
    def size(self) -> int:
        """The number of entries, zeros included."""
        return self.shape[0] * self.shape[1]

    @property
    def nbytes(self) -> int:
        return self.data.nbytes + self.indices.nbytes + self.indptr.nbytes

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> SparseRows:
        """Some rows, by a slice or an array of numbers or of booleans."""
        return from_canonical(self.matrix[rows])

    def copy(self) -> SparseRows:
        return SparseRows(self.data.copy(), self.indices.copy(), self.indptr.copy(), self.shape)

    def astype(self, dtype: Any, copy: bool = True) -> Self | SparseRows:
        if self.dtype == dtype and not copy:
            return self
        return SparseRows(self.data.astype(dtype), self.indices, self.indptr, self.shape)

    def toarray(self) -> NDArray[Any]:
        """The rows with their zeros."""
        return np.asarray(self.matrix.toarray())


# The columns of a view.
Columns = NDArray[Any] | SparseRows


def dense(x: Columns) -> NDArray[Any]:
    """The rows as an array."""
    return x.toarray() if isinstance(x, SparseRows) else x


def from_canonical(matrix: Any) -> SparseRows:
    """The rows of a CSR matrix of scipy whose indices rise, without explicit zeros."""
    indices = matrix.indices.astype(np.int32, copy=False)
    return SparseRows(matrix.data, indices, matrix.indptr.astype(np.int64), matrix.shape)


def sparse_rows(given: Any) -> SparseRows:
    """The rows of a CSR matrix of scipy, which is not changed: duplicates are summed, indices
    sorted and explicit zeros left out in a copy, if there are any.

    Raises
    ------
    ValueError
        If the arrays of the matrix do not fit together, or columns are too many.
    """
    if given.shape[1] > _MOST_COLUMNS:
        raise ValueError(f"X has {given.shape[1]} columns, must have at most {_MOST_COLUMNS}.")
    matrix = sparse.csr_array((given.data, given.indices, given.indptr), shape=given.shape)
    matrix.check_format(full_check=True)
    if not matrix.has_canonical_format or np.count_nonzero(matrix.data) < matrix.nnz:
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    n_entries = int(matrix.indptr[-1])  # arrays may have room for more
    found = from_canonical(matrix)
    return SparseRows(
        np.require(found.data[:n_entries], requirements="CA"),
        np.require(found.indices[:n_entries], requirements="CA"), found.indptr, given.shape,
    )  # fmt: skip
