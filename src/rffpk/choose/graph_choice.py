"""Choose a graph of rows, or the columns, by how well the partitions of a sample agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rffpk import _core
from rffpk.anneal.records import PowerMean, State
from rffpk.anneal.schedule import FitContext, Stage
from rffpk.anneal.starts import k_means_plus_plus, seed_centroids
from rffpk.anneal.steps import FeatureLevel
from rffpk.rows.arrays import Array, adjusted_rand_index
from rffpk.rows.draws import MANY
from rffpk.rows.passes import column_rows, one_pass, total_variance
from rffpk.rows.rows import Rows
from rffpk.rows.table import Columns, centered, skip_zeros
from rffpk.system.tuning import TUNING

KEPT = 3  # nearest neighbors that each row keeps where no graphs are compared


class Option(NamedTuple):
    """The features of a trial: the columns, or functions of a graph of neighbors."""

    whitening: float | None  # of the columns, before neighbors are found
    neighbors: float  # times the default number; 0: no graph, the columns are the features
    unit: bool = False  # whether features are scaled to length one


COLUMNS, PLAIN = Option(None, 0), Option(None, 1)
# If all agree alike, the first is taken.
OPTIONS = (
    COLUMNS, PLAIN, Option(1.0, 1), Option(None, 1, True), Option(1.0, 1, True),
    Option(None, 0.5), Option(None, 2), Option(1.0, 0.5), Option(1.0, 2),
)  # fmt: skip


class Choice(NamedTuple):
    """The options that were tried, in order, and how well their partitions agree."""

    options: list[Option]
    agreements: Array  # of each option: weighted mean adjusted Rand index with all options
    labels: list[Array]  # of each option: the clusters of the rows

    @property
    def best(self) -> int:
        """The index of the option with the highest agreement, the first of equal options."""
        return int(np.argmax(self.agreements))


def medoid(options: Sequence[Option], clusters: Callable[[Option], Array]) -> Choice:
    """Compute the clusters of each option, and how well each partition agrees with all partitions.

    A cluster that a single scale, whitening or scaling of the features finds is an artefact of
    this option. The trials end early if one partition is nearly equal to two other partitions."""
    same, labels, tuning = np.eye(len(options)), list[Array](), TUNING.choice
    for i, option in enumerate(options):
        labels.append(clusters(option))
        same[i, :i] = same[:i, i] = [adjusted_rand_index(each, labels[i]) for each in labels[:i]]
        if (same >= tuning.same_index).sum(axis=0).max() >= tuning.same_partitions:
            break
    n, weight = len(labels), tuning.whitened_weight
    weights = np.array([1.0 if each.whitening is None else weight for each in options[:n]])
    return Choice([*options[:n]], same[:n, :n] @ weights / weights.sum(), labels)


def searched_clusters(
    X: Columns, weight: Array, k: int, n_threads: int, random: np.random.RandomState
) -> Array:
    """Return k clusters of a few rows by k-means without swaps of centroids.

    Swaps would take most of the time, and change few choices. `random` is seeded: that takes no
    time, a new generator does."""
    random.seed(0)
    x = centered(X, X.dtype)
    rows = column_rows(x, weight, n_threads)
    theta = _seeds(rows, x, k, random).astype(np.float64)
    inside = FitContext(random, n_threads=n_threads, k=k)
    level = FeatureLevel(rows, total_variance(rows), PowerMean(), inside, most=k)
    stage = Stage("hard", -math.inf, tol=TUNING.choice.tol, most=TUNING.choice.passes)
    state, _ = level.follow(State(theta, rows.alpha), stage)
    return one_pass(rows, state.theta, -math.inf, want=("labels",))[1]["labels"]


def _seeds(rows: Rows, x: Columns, k: int, random: np.random.RandomState) -> Array:
    """Return k rows by k-means++. Of few dense rows differences take less time than passes, which
    also sum what centroids follow from."""
    if k >= MANY or skip_zeros(x):
        return seed_centroids(rows, x, k, "k-means++", random)

    def distances(drawn: Array) -> Array:
        each = np.tile(np.arange(len(drawn), dtype=np.int32), (len(x), 1))
        return _core.squares_of_pairs(x, x[drawn], each, rows.n_threads)

    return x[k_means_plus_plus(distances, x.dtype, rows.weight.astype(np.float64), k, random)]
