"""Square matrices between rows: what looks like a kernel, and what makes one."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from rffpk.rows.table import Columns, operand

# What makes kernel values of matrices whose diagonal is zero. A multiple of the identity adds the
# same to the association of all partitions; this is the least that makes affinities semidefinite.
OF_DISTANCES = "Distances D become kernel values by numpy.exp(-D**2 / (2 * (D**2).mean()))."
OF_AFFINITIES = (
    "Affinities W are for DiffusionPowerKMeans with metric='precomputed', or become kernel values "
    "by W - numpy.linalg.eigvalsh(W)[0] * numpy.eye(len(W))."
)

_FEWEST_ROWS = 4  # a matrix of fewer rows may be symmetric by chance
_SYMMETRY = 1e-6  # entries of a symmetric matrix differ by less of the largest, by rounding


def looks_like_kernel(x: Columns) -> bool:
    """Whether x is symmetric, not diagonal, and has a constant diagonal or one that bounds the
    other entries, K_ij^2 <= K_ii K_jj. Of most tables the first row and column decide."""
    n = len(x)
    if x.shape != (n, n) or n < _FEWEST_ROWS:
        return False
    table = operand(x)
    with np.errstate(over="ignore", invalid="ignore"):
        close = _SYMMETRY * max(table.max(), -table.min())
        if abs(table[[0]] - table[:, [0]].T).max() > close or abs(table - table.T).max() > close:
            return False
        diagonal, entries = table.diagonal(), sparse.coo_array(table)
        norms = np.sqrt(np.maximum(diagonal, 0))
        bounds = norms[entries.row] * norms[entries.col] + close
        likely = np.ptp(diagonal) <= close or (np.abs(entries.data) <= bounds).all()
    return bool(likely and (entries.row != entries.col).any())
