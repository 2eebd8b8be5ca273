"""Passes of the core and of its twin over rows in arrays, by their contract alone."""

import math
import os
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from contracts.core import Landmarks, Structure
from numpy.testing import assert_allclose

from rffpk import _core, _reference

BACKENDS = {"core": _core, "numpy": _reference}
UNIT = "unit"  # a map, which scales rows to length one
EMPTY = {np.dtype(np.float32): 1e-30, np.dtype(np.float64): 1e-250}


class Sums(NamedTuple):
    """What a pass returns."""

    N: np.ndarray
    G: np.ndarray
    Q: np.ndarray
    E: np.ndarray
    soft: float
    hard: float

    def objective(self, s):
        """Return sum_i p_i M_s."""
        return self.hard if math.isinf(s) else power_constant(len(self.G), s) * self.soft

    def view_costs(self, widths):
        """Compute sum_i p_i g_ij ||phi_il - theta_jl||^2 at theta = N / G, (k, L)."""
        squares = np.add.reduceat(self.N**2, np.cumsum([0, *widths[:-1]]), axis=1)
        return self.Q - squares / self.G[:, None]


def power_constant(k, s):
    """Return the factor between M_s and M', and between their weights."""
    return k ** (-1 / s)


@dataclass(frozen=True)
class Rows:
    """The rows of all views and what makes their features: None, frequencies, a Structure,
    Landmarks or UNIT."""

    xs: list
    maps: list
    shifts: list
    alpha: np.ndarray
    weight: np.ndarray | None = None
    n_threads: int = 1
    eta: np.ndarray | None = None  # (L,) or (k, L)
    m: float = 0.0
    present: np.ndarray | None = None
    coverage: np.ndarray | None = None

    @property
    def n(self):
        return len(self.xs[0])

    @property
    def dtype(self):
        return np.dtype(self.xs[0].dtype)

    @property
    def shift(self):
        return np.concatenate(self.shifts)

    @property
    def widths(self):
        return [len(shift) for shift in self.shifts]

    @cached_property
    def total_weight(self):
        return float(self.n if self.weight is None else self.weight.sum(dtype=float))

    @property
    def has(self):
        """A mask (n, L) of the views that rows have."""
        if self.present is None:
            return np.ones((self.n, len(self.xs)), bool)
        shape = {"axis": 1, "count": len(self.xs), "bitorder": "little"}
        return np.unpackbits(self.present, **shape).astype(bool)

    def scaled(self, theta):
        """Scale vectors such that their squared distances are the distances over all views."""
        return theta * np.sqrt(np.repeat(self.alpha, self.widths))

    def centroids(self, sums, previous):
        """Return N / G, and the centroids before where clusters are empty."""
        G = sums.G[:, None] if sums.G.ndim == 1 else np.repeat(sums.G, self.widths, axis=1)
        return np.where(G > 0, sums.N / np.where(G > 0, G, 1), previous)

    def combined(self, numbers):
        """Sum alpha_l times numbers (L,) or (k, L) of the views; (n, 1) where views are missing."""
        if self.present is None:
            return numbers @ self.alpha
        return (self.has @ (numbers * self.alpha))[:, None]

    def take(self, index):
        weight = None if self.weight is None else self.weight[index]
        present = None if self.present is None else self.present[index]
        return replace(self, xs=[x[index] for x in self.xs], weight=weight, present=present)

    @property
    def variance(self):
        """The weighted mean squared distance of the features from their mean."""
        p = self.has * (np.ones(self.n) if self.weight is None else self.weight)[:, None]
        p = np.repeat(p, self.widths, axis=1).astype(float)
        phi = shifted_features(self).astype(float)
        mean = (p * phi).sum(axis=0) / p.sum(axis=0)
        variances = (p * (phi - mean) ** 2).sum(axis=0) / p.sum(axis=0)
        return float(variances @ np.repeat(self.alpha, self.widths))


def make_rows(xs, maps=None, weight=None, n_threads=1, shifts=None):
    """Build rows with equal view weights.

    Their features are shifted by their means unless `shifts` are given.
    """
    dtype, maps = np.dtype(xs[0].dtype), maps or [None] * len(xs)
    weight = None if weight is None else np.ascontiguousarray(weight, dtype)
    zeros = [np.zeros(width(x, each), dtype) for x, each in zip(xs, maps)]
    alpha = np.full(len(xs), 1 / len(xs))
    rows = Rows(xs, maps, shifts or zeros, alpha, weight, n_threads)
    if shifts is not None:
        return rows
    sums, _ = one_pass(rows, np.zeros((1, sum(rows.widths))), -math.inf)
    means = np.split(sums.N[0] / sums.G[0], np.cumsum(rows.widths)[:-1])
    return replace(rows, shifts=[mean.astype(dtype) for mean in means])


def width(x, embedding):
    if isinstance(embedding, Landmarks):
        return embedding.coordinates.shape[1]
    if isinstance(embedding, Structure):
        return 2 * embedding.n_frequencies
    return x.shape[1] if embedding is None or embedding is UNIT else 2 * embedding.shape[1]


def one_pass(rows, theta, s, want=(), backend=None, both=False, before=None, directions=None):
    """Run a pass; return its sums, and what it found of the rows.

    With `both`, return the sums of the hard rule, and the soft objective.
    """
    k = len(theta)
    near = sum(each.n_neighbours for each in rows.maps if isinstance(each, Landmarks))
    columns = {"memberships": k, "distances": k, "features": len(rows.shift)}
    columns |= {"neighbours": near, "neighbour_weights": near}
    shapes = {name: (rows.n, columns[name]) if name in columns else rows.n for name in want}
    integers = ("labels", "neighbours")
    outputs = {
        name: np.empty(shape, np.int32 if name in integers else rows.dtype)
        for name, shape in shapes.items()
    }
    theta = np.ascontiguousarray(theta, dtype=rows.dtype)
    arguments, options = arguments_of(rows, theta, s)
    if both and math.isfinite(s):
        arguments = (*arguments[:6], _core.BOTH, *arguments[7:])
    parts = module_of(backend).fused_pass(
        *arguments, **options, **outputs, carry=before, directions=directions
    )
    return Sums(*parts), outputs


def module_of(backend):
    """Return the core or the twin, by default the back end that RFFPK_BACKEND names."""
    return BACKENDS[backend or os.environ.get("RFFPK_BACKEND", "core")]


def arguments_of(rows, theta, s):
    rule = _core.HARD if math.isinf(s) else _core.POWER

    def of(kind):
        return [embedding if isinstance(embedding, kind) else None for embedding in rows.maps]

    options = {"structures": of(Structure), "landmarks": of(Landmarks)}
    options["units"] = [embedding is UNIT for embedding in rows.maps]
    if rows.present is not None:
        options["present"] = rows.present
    if rows.eta is not None:
        eta = rows.eta
        if rows.present is None:
            eta = np.broadcast_to(rows.combined(eta), len(theta)).copy()
        rule, options = _core.TYPICALITY, options | {"eta": eta, "m": rows.m}
    arguments = rows.xs, of(np.ndarray), rows.shifts, theta, rows.alpha, rows.weight, rule, s
    return (*arguments, rows.n_threads), options


def shifted_features(rows):
    """Compute the features of all rows, (n, F)."""
    origin = np.zeros((1, len(rows.shift)))
    return one_pass(rows, origin, -math.inf, want=("features",))[1]["features"]


def tight_groups(n, d, k, dtype):
    """Return rows in groups that are far apart, with two centroids in each group."""
    random = np.random.default_rng(0)
    centers = np.repeat(1000 * random.standard_normal((k // 2, d)), 2, axis=0)
    x = centers[random.integers(k, size=n)] + 0.1 * random.standard_normal((n, d))
    theta = centers + 0.1 * random.standard_normal((k, d))
    return x.astype(dtype), theta.astype(dtype)


# What rounding may be of a squared distance, wherever it is not of the features.
PART = {"f": 2**-7, "d": 2**-24}


def assert_digits(exact, labels, nearest, second=None):
    """Check what a pass found by the exact squared distances, where they cancel."""
    part = PART[nearest.dtype.char]
    assert_allclose(nearest, exact.min(axis=1), rtol=part)
    assert_allclose(exact[np.arange(len(exact)), labels], exact.min(axis=1), rtol=part)
    if second is not None:
        assert_allclose(second, np.sort(exact)[:, 1], rtol=part)


class Step(NamedTuple):
    soft: float
    hard: float
    penalty: float
    shift: float
    distinct: int
    seconds: float


def take_steps(
    rows, theta, s, *, variance, tol, most, close, goal=math.inf, entropy=0.0, backend=None,
    least_length=0.0,
):  # fmt: skip
    arguments, options = arguments_of(rows, theta, s)
    records, alphas, new, old, n_empty, hopeless, parts = module_of(backend).take_steps(
        *arguments, **options, tol=tol, most=most, goal=goal, hope=4.0,
        **options_of_moves(rows, variance, close, entropy, least_length),
    )  # fmt: skip
    return SimpleNamespace(
        steps=[Step(*record) for record in records], alphas=alphas, theta=new, previous=old,
        n_empty=n_empty, hopeless=hopeless, sums=Sums(*parts),
    )  # fmt: skip


def move(rows, theta, sums, s, *, variance, close, entropy=0.0, backend=None, least_length=0.0):
    record, alpha, new, n_empty = module_of(backend).move(
        tuple(sums), rows.shifts, theta, rows.alpha, s,
        **options_of_moves(rows, variance, close, entropy, least_length),
    )  # fmt: skip
    return SimpleNamespace(record=record, alpha=alpha, theta=new, n_empty=n_empty)


def options_of_moves(rows, variance, close, entropy, least_length):
    return {
        "view_eta": rows.eta, "unit": 1.0, "variance": variance, "entropy": entropy,
        "least_share": EMPTY[rows.dtype], "close": close, "coverage": rows.coverage,
        "least_length": least_length,
    }  # fmt: skip
