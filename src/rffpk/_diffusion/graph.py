"""Diffusion over landmarks, and over the graph of all rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, diags

from rffpk._data.arrays import Array
from rffpk._data.sparse_rows import Columns, distinct_rows
from rffpk._diffusion.neighbourhoods import N_NEIGHBOURS, Neighbourhoods, make_neighbourhoods
from rffpk._diffusion.spectrum import Spectrum, connected, decompose


@dataclass(frozen=True)
class Diffusion:
    """A diffusion over nodes, landmarks or rows, and its slow functions.

    Nodes of connected components that are too small are left out: rows near them count with the
    nearest of the others.
    """

    neighbourhoods: Neighbourhoods  # of the nodes
    spectrum: Spectrum
    extension: Array  # (m, q): the slow functions are f(x) = z(x) @ extension
    degrees: Array  # (m,), of the nodes
    shares: Array  # of the rows, of connected components, falling; small single nodes left out
    n_kept: int  # components that are not left out
    kept: Array  # which nodes these have, a mask


def over_landmarks(
    X: Columns,
    weight: Array | None,
    numbers: tuple[int, int],
    r: int | None,
    least_share: float,
    pairs: int,
    spherical: bool,
    random: Any,
    n_threads: int,
) -> Diffusion:
    """Rows step to their nearest landmarks and from there to the rows of these; `numbers` are those
    of `landmark_numbers`."""
    found = make_neighbourhoods(X, weight, *numbers, r, spherical, random, n_threads)
    degrees, affinity = found.sums(X, weight, random)
    return _diffusion(found, affinity, degrees, least_share, pairs, half_steps=1)


def over_rows(
    X: Columns, weight: Array | None, r: int | None, least_share: float, pairs: int, n_threads: int
) -> tuple[Diffusion, Array, Array]:
    """Rows step to their nearest rows, and back. Equal rows are one node, of their weight together,
    if that is not zero.

    Also returns the node of each row, -1 where it has none, and the share of the row in the degree
    of its node, (n,) both.
    """
    p = np.ones(len(X)) if weight is None else weight
    distinct, index = distinct_rows(X)
    masses = np.bincount(index, p)
    counted = masses > 0
    nodes, mass = distinct[counted], masses[counted]
    found = Neighbourhoods(nodes, r or N_NEIGHBOURS, 0.0, n_threads)
    found = found.widened(nodes, mass)
    flow = diags(mass) @ found.weights(nodes)
    affinity = ((flow + flow.T) / 2).tocsr()
    degrees = np.asarray(affinity.sum(axis=1)).ravel()
    diffusion = _diffusion(found, affinity, degrees, least_share, pairs, half_steps=2)
    number = np.full(len(distinct), -1)
    number[counted] = np.where(diffusion.kept, np.cumsum(diffusion.kept) - 1, -1)
    part = p / np.where(counted, masses, 1)[index]
    return diffusion, number[index], part


def _diffusion(
    found: Neighbourhoods,
    affinity: csr_matrix,
    degrees: Array,
    least_share: float,
    pairs: int,
    half_steps: int,
) -> Diffusion:
    """The diffusion over a graph of nodes, of which z(x) is a step or half of one."""
    labels, shares = connected(affinity, degrees)
    large, several = shares >= least_share, np.bincount(labels) > 1
    kept = large[labels] if large.any() else degrees > 0
    if not kept.all():
        radii = None if found.radii is None else found.radii[kept]
        found = replace(found, landmarks=found.landmarks[kept], radii=radii)
        affinity, degrees = affinity[kept][:, kept], degrees[kept]
        labels = np.unique(labels[kept], return_inverse=True)[1]
    spectrum = decompose(affinity, degrees, labels, pairs)
    mu = 1 - spectrum.gaps
    powers = np.where(mu > 0, mu, np.inf) ** (half_steps / 2)
    extension = spectrum.functions / powers
    n_kept = int(labels.max()) + 1
    # without single rows that have no mutual neighbors, and landmarks that no row steps to
    shares = np.sort(shares[(large | several) & (shares > 0)])[::-1]
    return Diffusion(found, spectrum, extension, degrees, shares, n_kept, kept)
