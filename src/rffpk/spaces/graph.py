"""Diffusions on graphs that are given as matrices of affinities."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix, diags, identity

from rffpk.rows.arrays import Array
from rffpk.rows.checks import is_option
from rffpk.rows.table import Columns, dense, entries, operand
from rffpk.spaces.components import Components, Parts, divided, quantile
from rffpk.spaces.kernels import refuse_distances
from rffpk.spaces.spectrum import Spectrum, Walk, Wanted, decompose
from rffpk.system.tuning import TUNING

PRECOMPUTED = "precomputed"

# Parameters that choose a graph, and their values where a graph is given.
_OF_GRAPHS = {"n_neighbors": ("auto",), "n_landmarks": ("auto",), "whitening": ("auto", None)}


@dataclass(frozen=True)
class Nodes:
    """Rows of a graph as the nodes of a walk, and how other rows have their functions."""

    mass: Array  # (n,): weights; zero for nodes that are left out

    def combinations(self, X: Columns, matrix: Array, own: Array | None = None) -> Array:
        """Return means of the lines of a matrix (n, q): (len(X), q), in the dtype of X.

        They are weighed by the affinities of the rows of X to the nodes, and zeros where all
        affinities are zero."""
        check_affinities(X)
        return self.means(scaled(X), matrix).astype(X.dtype)

    def means(self, affinities: csr_array, matrix: Array) -> Array:
        """Return the combinations in float64 for affinities that have been checked and scaled."""
        sums, total = affinities @ (self.mass[:, None] * matrix), affinities @ self.mass
        there = total[:, None] > 0
        return np.divide(sums, total[:, None], out=np.zeros_like(sums), where=there)

    def mapped(self, matrix: Array, X: Columns) -> None:
        """Return None: passes do not compute the features."""


@dataclass(frozen=True)
class GraphDiffusion:
    """A diffusion on a given graph, and its slow functions."""

    neighbourhoods: Nodes
    graph: csr_array  # symmetric
    spectrum: Spectrum
    extension: Array  # (n, q): means of the lines are the slow functions; zeros if left out
    parts: Parts
    is_used: bool = True

    def features(self, X: Columns, functions: Array, own: Any) -> Any:
        """Return the means of functions of the nodes, which are the rows."""
        return own


def check_no_choice(spec: Any) -> None:
    """Refuse parameters that choose a graph, as the graph is given."""
    for name, values in _OF_GRAPHS.items():
        value = getattr(spec, name)
        if not (value is None and None in values) and not is_option(value, "auto"):
            raise ValueError(
                f"{name}={value!r}: must have its default with metric='precomputed', where X is "
                "the graph."
            )


def check_graph(X: Columns) -> None:
    """Refuse what is no square matrix of affinities, but may be one of distances."""
    check_affinities(X)
    if entries(X).size >= len(X) * (len(X) - 1):  # zero on the diagonal alone
        refuse_distances(dense(X), "X")


def check_affinities(X: Columns) -> None:
    """Refuse entries below zero."""
    least = float(entries(X).min(initial=0))
    if least < 0:
        raise ValueError(
            f"X contains {least:.4g}, must be >= 0: with metric='precomputed' it holds affinities, "
            "larger for nearer rows."
        )


def scaled(X: Columns) -> csr_array:
    """Return affinities as a sparse matrix of float64 with entries up to one.

    They are scaled by a power of two, which rounds nothing."""
    table = csr_array(operand(X), dtype=np.float64)
    exponent = np.frexp(table.data.max(initial=0))[1]
    table.data = np.ldexp(table.data, -exponent)
    return table


def symmetric(X: Columns, mass: Array) -> csr_array:
    """Return (A + A') / 2, with an entry on the diagonal where a row has none that counts."""
    half = scaled(X) / 2
    graph = csr_array(half + half.T)
    alone = graph @ mass == 0
    if alone.any():
        graph = csr_array(graph + diags(alone.astype(np.float64)))
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph


def graph_diffusion(X: Columns, weight: Array, wanted: Wanted) -> GraphDiffusion:
    """Return the walk along the edges of a graph, with its slow functions.

    Its steps are in proportion to the affinities of edges and to the weights of the rows where
    they end. Where enough components count for the clusters, all functions are constant on each
    component.

    The eigenvalues of the walk are from -1 to 1. If half of the steps stay, they are from zero
    to one, and have the same order and functions."""
    check_graph(X)
    n = len(X)
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

    def walk() -> Walk:
        return Walk(csr_matrix((identity(len(degrees)) + scale @ weighted @ scale) / 2))

    spectrum, functions = decompose(walk, degrees, parts.labels, wanted, n_rows, parts.least_rows)
    spectrum = replace(spectrum, gaps=2 * spectrum.gaps, enough=0.0)
    mu = 1 - spectrum.gaps
    extension = np.zeros((n, functions.shape[1]))
    extension[kept] = functions / np.where(mu > 0, mu, np.inf)
    return GraphDiffusion(Nodes(np.where(kept, mass, 0)), graph, spectrum, extension, parts)


def _valley(neighbours: Array, mass: Array, components: Components, number: int) -> float:
    """Return whether there is a valley around a component: infinity, or minus infinity.

    Affinities across its border are zero. There is a valley if most of its rows have enough
    neighbors inside for this to be evidence."""
    own = components.labels == number
    enough = quantile(neighbours[own], mass[own], 0.5) >= TUNING.graph.inside
    return math.inf if enough else -math.inf
