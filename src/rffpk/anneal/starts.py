"""Initial centroids: features of some rows, or weights of the rows for exact kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rffpk.anneal.hard_pass import Assignment, Need, add, hard_plan, step
from rffpk.rows import advice, checks
from rffpk.rows.arrays import Array
from rffpk.rows.door import Schema, check_views
from rffpk.rows.draws import MANY, Draws, uneven
from rffpk.rows.passes import column_rows, one_pass
from rffpk.rows.rows import Rows, present_views
from rffpk.rows.sums import Sums
from rffpk.rows.table import Columns, dense, has_view
from rffpk.rows.weights import ones
from rffpk.system import config
from rffpk.system.report import without
from rffpk.system.tuning import TUNING


def seeding_rows(rows: Rows, k: int, random: Any) -> Rows:
    """Return random rows of positive weight, from which k initial centroids are chosen.

    All rows of positive weight are returned if there are few. Wide rows, and few clusters, have
    smaller samples."""
    tuning = TUNING.starts
    most = min(tuning.seed_rows, tuning.seed_numbers // len(rows.shift))
    most = max(tuning.rows_a_centroid * k, most)
    index = np.flatnonzero(rows.weight)
    if len(index) == rows.n <= most:
        return rows
    if len(index) > most:
        index = np.sort(random.choice(index, most, replace=False))
    return rows.take(index)


class Parts:
    """Features of rows that lack views, completed when they are chosen as initial centroids.

    In a view that a row lacks, the centroid gets the features of another row: the row that is
    nearest in the views that both have. If no row is, the centroid gets zeros, the mean."""

    def __init__(self, rows: Rows, features: Array) -> None:
        assert rows.present is not None
        self.x, self.has = features, present_views(rows.present, len(rows.xs))
        self.views = np.split(np.arange(features.shape[1]), np.cumsum(rows.widths)[:-1])
        xs = [np.ascontiguousarray(features[:, view]) for view in self.views]
        shifts = [np.zeros_like(shift) for shift in rows.shifts]
        self.rows = replace(rows.with_columns(xs, shifts), eta=None)

    def __getitem__(self, index: Array) -> Array:
        """Return the completed features (m, F) of the rows at `index` (m,)."""
        seeds = self.x[index]
        for seed, i in zip(seeds, index):
            if not self.has[i].all():
                self._complete(seed, i)
        return seeds

    def _complete(self, seed: Array, i: int) -> None:
        """Set the features (F,) of row i in the views that it lacks, in place."""
        # mean squared distances from row i over shared views; infinite without a shared view
        alpha = self.has[i] * self.rows.alpha
        rows, shared = replace(self.rows, alpha=alpha), self.has @ alpha
        gaps = one_pass(rows, seed[None], -math.inf, want=("nearest",))[1]["nearest"]
        gaps = np.divide(gaps, shared, out=np.full(len(gaps), math.inf), where=shared > 0)
        for view in np.flatnonzero(~self.has[i]):
            apart = np.where(self.has[:, view], gaps, math.inf)
            nearest = int(apart.argmin())
            if apart[nearest] < math.inf:
                seed[self.views[view]] = self.x[nearest, self.views[view]]


def checked_centroids(
    centroids: Any, expected: tuple[int, int], names: tuple[str, ...] = ()
) -> Array:
    """Check initial centroids from an array or a frame; return an array of shape `expected`.

    `names` are the names of the columns of X, if features are columns. A frame must have them."""
    checks.check_plain(centroids, "init")
    columns = tuple(getattr(centroids, "columns", ()))
    if names and columns and all(isinstance(column, str) for column in columns):
        advice.give(advice.NAMES, "init", columns, fitted=names)
    with checks.named("init"):
        centroids = np.array(checks.written_out(centroids), dtype=np.float64, order="C")
    if centroids.shape != expected:
        raise ValueError(
            f"init.shape={centroids.shape}: must be {expected}. Pass an array of shape "
            "(n_clusters, n_features), or a function that returns centroids among the features."
        )
    if not np.isfinite(centroids).all():
        raise ValueError("init: contains NaN or infinity. Pass finite numbers.")
    return centroids


def given_rows(schema: Schema, init: Any, k: int) -> list[Columns]:
    """Check an `init` of k rows in the form of the fitted X; return its views."""
    shape = schema.fitted
    assert shape is not None
    if not shape.listed:
        init = checked_centroids(init, (k, shape.n_columns), shape.names[0])
    with checks.named("init"), without(UserWarning):  # arrays have no names of columns
        xs, _ = check_views(init, schema)
    if len(xs[0]) != k:
        raise ValueError(f"init: has {len(xs[0])} rows. Pass {k}, one for each cluster.")
    if not all(has_view(x).all() for x in xs):
        raise ValueError("init: contains NaN. Pass all views of each row.")
    return xs


def seed_centroids(rows: Rows, features: Columns, k: int, init: str, random: Any) -> Array:
    """Return the features (k, F) of k chosen rows as initial centroids.

    Features of views that a chosen row lacks are completed from other rows."""
    parts = None if rows.present is None else Parts(rows, features)
    chosen = seed_rows(rows, features, k, init, random, parts)
    return dense(features[chosen] if parts is None else parts[chosen])


def seed_rows(
    rows: Rows, features: Columns, k: int, init: str, random: Any, parts: Parts | None = None
) -> NDArray[np.intp]:
    """Return the indices (k,) of rows, chosen at random or by k-means++.

    `init` is "random" or the name of a k-means++ method. If k is large, rows are chosen in batches.
    `parts` completes rows that lack views; None: no row lacks a view."""
    weight = rows.weight
    if init == "random":
        return random_rows(weight, k, random)
    unweighted = ones(len(features))
    columns = column_rows(features, unweighted, rows.n_threads) if parts is None else parts.rows
    seeds = features if parts is None else parts
    if k >= MANY:
        return Draws(columns, seeds, weight, k, random).chosen

    def distances(drawn: Array) -> Array:
        """Return squared distances (n, r) of all rows from the r drawn rows."""
        _, found = one_pass(columns, dense(seeds[drawn]), -math.inf, want=("distances",))
        return found["distances"]

    return k_means_plus_plus(distances, columns.dtype, weight.astype(np.float64), k, random)


def random_rows(weight: Array, k: int, random: Any) -> NDArray[np.intp]:
    """Return the indices of k rows, drawn in proportion to their weights."""
    index = np.flatnonzero(weight)
    weight = weight[index].astype(np.float64)
    p = weight / weight.sum() if uneven(weight) else None
    return np.asarray(random.choice(index, k, replace=False, p=p))


def k_means_plus_plus(
    distances: Callable[[Array], Array], dtype: Any, p: Array, k: int, random: Any
) -> NDArray[np.intp]:
    """Return the indices (k,) of rows, chosen by greedy k-means++ with the weights p (n,).

    In each step a few candidate rows are drawn in proportion to their costs. The candidate that
    lowers the total cost most is chosen. At least k weights must be positive. `distances` takes the
    indices of r rows, and returns the squared distances (n, r) from them in `dtype`. O(n k log k)
    distances."""
    chosen, nearest = np.zeros(0, dtype=np.intp), np.full(len(p), np.inf, dtype=dtype)
    drawn, core = random.choice(len(p), 1, p=p / p.sum()), config.backend()
    while True:
        new = distances(drawn)
        new[drawn, np.arange(len(drawn))] = 0  # without rounding errors
        best = int(core.costs_with(new, nearest, p).argmin())
        chosen, sums = np.append(chosen, drawn[best]), core.lowered(new, best, nearest, p)
        if len(chosen) == k:
            return np.asarray(chosen)
        if not sums[-1] > 0:  # all rows equal chosen rows: draw the rest by weight alone
            sums = np.where(np.isin(np.arange(len(p)), chosen), 0, p).cumsum()
        drawn = draw(sums, 2 + int(math.log(k)), random)  # as many as scikit-learn draws


def draw(sums: Array, count: int, random: Any) -> NDArray[np.intp]:
    """Draw `count` rows in proportion to their costs; return their indices.

    `sums` (n,) are the cumulative sums of the costs. A uniform number times the last sum may round
    to the last sum. The row that reaches the last sum is drawn then."""
    drawn = sums.searchsorted(random.uniform(size=count) * sums[-1], side="right")
    return np.asarray(np.minimum(drawn, sums.searchsorted(sums[-1])))


def merged_centroids(rows: Rows, features: Columns, k: int, random: Any) -> Array | None:
    """Return k centroids (k, F), merged from more centroids; None if rows or memory allow only k.

    m > k centroids are drawn by k-means++, moved by a few passes of k-means, and merged by Ward's
    method. Small clusters are likely to have a centroid among the m. Merging removes the surplus of
    large clusters. With few rows, each row may begin as a centroid."""
    tuning = TUNING.starts
    # `tuning.merged` for each cluster, or down to half of that if there are many clusters
    wanted = min(tuning.merged * k, max(tuning.many_merged, tuning.merged // 2 * k))
    m = min(wanted, rows.n, tuning.merged_numbers // features.shape[1])
    if m <= k:
        return None
    from rffpk.system.tree import means, merged

    columns = replace(column_rows(features, ones(rows.n), rows.n_threads), weight=rows.weight)
    drawn = Draws(columns, features, rows.weight, m, random)
    # Add k centroids at far rows, and more if `wanted` is less than `tuning.merged` * k.
    theta, labels = _moved(columns, drawn, k + (tuning.merged * k - wanted) // 4, random)
    masses = np.bincount(labels, rows.weight, len(theta)).astype(np.float64)
    return means(theta, masses, merged(theta, masses, k))


def _moved(rows: Rows, drawn: Draws, count: int, random: Any) -> tuple[Array, Array]:
    """Move drawn centroids by a few passes, and add up to `count` centroids at far rows.

    Return the centroids (m, F) after a last pass, and the labels (n,) of that pass."""
    theta, visit = dense(drawn.seeds[drawn.chosen]).astype(np.float64), _visits(rows, drawn)
    for _ in range(TUNING.starts.merged_passes):
        sums, labels, nearest = visit(theta, 0)
        theta = rows.centroids(sums, theta)
    far = _far_rows(rows.weight, labels, nearest, count, random)
    theta = np.vstack([theta, dense(drawn.seeds[far])])
    sums, labels, _ = visit(theta, len(far))
    return rows.centroids(sums, theta), labels


def _visits(rows: Rows, drawn: Draws) -> Callable[[Array, int], tuple[Sums, Array, Array]]:
    """Return a function that makes a pass over all rows at given centroids.

    The function takes the centroids, and how many new centroids follow the centroids of its last
    call. It returns the sums, the labels (n,), and the squared distances (n,) from the nearest
    centroids. If there are many centroids, rows are compared only with candidate lists."""
    found: Assignment | None = None
    if hard_plan(rows, len(drawn.chosen)).near:
        drawn.see_added()
        origin = np.zeros((1, len(rows.shift)))
        squares = float(one_pass(rows, origin, -math.inf)[0].Q.sum())  # squared norms
        found = Assignment(drawn.labels, squares, every=True, own=drawn.nearest)

    def visit(theta: Array, new: int) -> tuple[Sums, Array, Array]:
        nonlocal found
        if found is None:
            sums, outputs = one_pass(rows, theta, -math.inf, want=("labels", "nearest"))
            return sums, outputs["labels"], outputs["nearest"]
        sums, found = step(rows, theta, add(found, new) if new else found, Need())
        assert found.own is not None
        return sums, found.labels, found.own

    return visit


def _far_rows(
    weight: Array, labels: Array, nearest: Array, count: int, random: Any
) -> NDArray[np.intp]:
    """Return the indices of at most `count` rows that are far from the centroid of their cluster.

    `nearest` (n,) has the squared distances of the rows from the centroids. Rows are drawn by their
    weight times the square of an excess: how much `nearest` exceeds its mean in the cluster.

    With many features, k-means++ misses small clusters. Their rows are about as far from any drawn
    row as all rows are. From the means of other clusters, however, they are farther than most
    rows."""
    p = weight.astype(np.float64)
    masses = np.bincount(labels, p)
    mean = np.bincount(labels, p * nearest) / np.where(masses > 0, masses, 1)
    excess = np.where(p > 0, np.maximum(nearest - mean[labels], 0), 0)
    cost = p * (excess / max(float(excess.max()), np.finfo(float).tiny)) ** 2
    if not cost.any():
        return np.zeros(0, dtype=np.intp)
    share = cost / cost.sum()
    count = min(count, int(np.count_nonzero(share)))
    return np.asarray(random.choice(len(p), count, replace=False, p=share))
