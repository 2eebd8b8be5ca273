"""Diffusions on graphs that are given as matrices of affinities."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix, diags, identity

from rffpk.rows.arrays import Array
from rffpk.rows.table import Columns, dense, entries, operand
from rffpk.spaces.components import Components, Parts, divided, quantile
from rffpk.spaces.kernels import refuse_distances
from rffpk.spaces.spectrum import Spectrum, Walk, Wanted, decompose
from rffpk.system.tuning import TUNING

PRECOMPUTED = "precomputed"


@dataclass(frozen=True)
class Nodes:
    """Rows of a graph as the nodes of a walk. New rows get means of the values at the nodes."""

    mass: Array  # (n,): weights; zero for nodes that are left out

    def combinations(self, X: Columns, matrix: Array, own: Array | None = None) -> Array:
        """Return weighted means (len(X), q) of the rows of `matrix` (n, q), in the dtype of X.

        The weights are the affinities of each row of X to the n nodes, times the weights of the
        nodes. A row without positive affinity has zeros. `own` is not used."""
        check_affinities(X)
        return self.means(scaled(X), matrix).astype(X.dtype)

    def means(self, affinities: csr_array, matrix: Array) -> Array:
        """Compute `combinations` in float64 from affinities that have been checked and scaled."""
        sums, total = affinities @ (self.mass[:, None] * matrix), affinities @ self.mass
        there = total[:, None] > 0
        return np.divide(sums, total[:, None], out=np.zeros_like(sums), where=there)


@dataclass(frozen=True)
class GraphDiffusion:
    """A diffusion on a given graph, and its slow eigenvectors."""

    neighbourhoods: Nodes
    graph: csr_array  # symmetric
    spectrum: Spectrum
    extension: Array  # (n, q): eigenvectors over eigenvalues; zeros at nodes that are left out
    parts: Parts
    is_used: bool = True

    def features(self, X: Columns, functions: Array, own: Any) -> Any:
        """Return `own`, the features of the rows: rows are nodes, so nothing is computed."""
        return own


def check_affinities(X: Columns) -> None:
    """Refuse entries below zero."""
    least = float(entries(X).min(initial=0))
    if least < 0:
        raise ValueError(
            f"X contains {least:.4g}, must be >= 0: with metric='precomputed' it holds affinities, "
            "larger for nearer rows."
        )


def scaled(X: Columns) -> csr_array:
    """Return affinities as a sparse float64 matrix, scaled so that no entry exceeds one.

    The factor is a power of two, so that no entry is rounded."""
    table = csr_array(operand(X), dtype=np.float64)
    exponent = np.frexp(table.data.max(initial=0))[1]
    table.data = np.ldexp(table.data, -exponent)
    return table


def symmetric(X: Columns, mass: Array) -> csr_array:
    """Return the symmetric matrix (A + A') / 2 of the scaled affinities A, (n, n).

    A row without affinity to any row of positive weight gets a one on the diagonal. `mass` (n,)
    are the weights."""
    half = scaled(X) / 2
    graph = csr_array(half + half.T)
    alone = graph @ mass == 0
    if alone.any():
        graph = csr_array(graph + diags(alone.astype(np.float64)))
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph


def graph_diffusion(X: Columns, weight: Array, wanted: Wanted) -> GraphDiffusion:
    """Return the random walk along the edges of an affinity graph, with its slow eigenvectors.

    The probability of a step is proportional to the affinity of the edge and to the weight of the
    row at its end. If at least k components are kept, and the eigenvectors need not be exact, only
    eigenvectors that are constant on each component are computed.

    The eigenvalues of the walk are from -1 to 1. The matrix here stays at a node with probability
    one half, so that its eigenvalues are from 0 to 1. Order and eigenvectors do not change."""
    check_affinities(X)
    n = len(X)
    if entries(X).size >= n * (n - 1):  # zero on the diagonal alone
        refuse_distances(dense(X), "X")
    mass = weight / weight.max()
    graph = symmetric(X, mass)
    weighted = csr_array(diags(mass) @ graph @ diags(mass))
    degrees = np.asarray(weighted.sum(axis=1)).ravel()
    share = np.where(degrees > 0, mass, 0) / mass.sum()
    n_rows = int(np.count_nonzero(mass))
    neighbours = np.diff(weighted.indptr) - (weighted.diagonal() > 0)
    valley = partial(_valley, neighbours, mass)
    held, counted = weighted.diagonal(), 1.0 * (mass > 0)
    parts = divided(weighted, share, held, degrees, wanted.k, n_rows, valley, rows=counted)
    kept = parts.kept
    weighted = weighted[kept][:, kept]
    degrees = np.asarray(weighted.sum(axis=1)).ravel()
    if not wanted.exact and parts.n_kept >= max(wanted.k, 2):
        wanted = wanted._replace(pairs=parts.n_kept - 1)
    scale = diags(1 / np.sqrt(degrees))
    spectrum, functions = decompose(
        lambda: Walk(csr_matrix((identity(len(degrees)) + scale @ weighted @ scale) / 2)),
        degrees, parts.labels, wanted, n_rows, parts.least_rows,
    )  # fmt: skip
    spectrum = replace(spectrum, gaps=2 * spectrum.gaps, enough=0.0)
    mu = 1 - spectrum.gaps
    extension = np.zeros((n, functions.shape[1]))
    extension[kept] = functions / np.where(mu > 0, mu, np.inf)
    return GraphDiffusion(Nodes(np.where(kept, mass, 0)), graph, spectrum, extension, parts)


def _valley(neighbours: Array, mass: Array, components: Components, number: int) -> float:
    """Return infinity if there is a valley around a component, else minus infinity.

    No affinity crosses the border of a component, so a valley has no depth here. There is a valley
    if the median row of the component has enough neighbors. `neighbours` (n,) counts them."""
    own = components.labels == number
    enough = quantile(neighbours[own], mass[own], 0.5) >= TUNING.graph.inside
    return math.inf if enough else -math.inf
