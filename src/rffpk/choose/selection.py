"""The record of a search for the number of clusters."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class NClustersSelection:
    """Numbers of clusters that rows may have, as `select_n_clusters` and fits find them.

    Attributes
    ----------
    n_clusters : int
        The best number; 1 where nothing tells clusters apart.
    numbers : ndarray of int64, shape (n_numbers,)
        At most five good numbers of clusters, the best first, none within a quarter of another.
    levels : ndarray of int64, shape (n_levels,)
        The good numbers that are better than one cluster, coarse to fine; 1 if there is none.
    scores : ndarray of float64, shape (n_considered,)
        Evidence for 1, 2, ... clusters, from 0 to 3: 0.3 for one, else the sum of the next three.
    eigengaps, heights, modes : ndarray of float64, shape (n_considered,)
        Scores from 0 to 1: by eigengaps of graphs, heights of Ward's tree, and modes of the
        density. A graph that cannot change the number is not made, and gives zeros.
    labels, rows : ndarray of int32, shape (n_numbers, n_rows) and ndarray of int64, shape (n_rows,)
        Clusters of the rows that were looked at, from 0 on, for each of `numbers`; row indices.
    parents : list of ndarray of int32
        For each level except the first, and each of its clusters: the cluster of the level before
        that has most of its rows.
    shares : list of ndarray of float64
        The share of its rows that this parent has; 1 where levels are nested.
    """

    n_clusters: int
    numbers: NDArray[np.int64]
    levels: NDArray[np.int64]
    scores: NDArray[np.float64] = field(repr=False)
    eigengaps: NDArray[np.float64] = field(repr=False)
    heights: NDArray[np.float64] = field(repr=False)
    modes: NDArray[np.float64] = field(repr=False)
    labels: NDArray[np.int32] = field(repr=False)
    rows: NDArray[np.int64] = field(repr=False)
    parents: list[NDArray[np.int32]] = field(repr=False)
    shares: list[NDArray[np.float64]] = field(repr=False)

    def number(self, wanted: str) -> int:
        """Return the number for ``n_clusters="coarse"``, "auto" or "fine"."""
        ends = {"coarse": int(self.levels[0]), "fine": int(self.levels[-1])}
        return ends.get(wanted, self.n_clusters)
