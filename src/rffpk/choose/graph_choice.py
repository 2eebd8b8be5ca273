"""Choose a graph of rows, or the columns, by how well the partitions of a sample agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

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
from rffpk.rows.table import (
    Columns,
    centered,
    occupied_columns,
    rows_differ,
    skip_zeros,
    some_columns,
)
from rffpk.spaces.diffusion import DiffusionMap, DiffusionSpec, MapRows, features_of_graph
from rffpk.spaces.graph import PRECOMPUTED
from rffpk.spaces.neighbors import drawn_rows, landmark_numbers_of
from rffpk.spaces.spectrum import UseOfGraph
from rffpk.spaces.whitening import PER_CLUSTER
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


# ---- which map: the option whose partition of a sample has the highest agreement -----------------

# bench/results/trials.md compares these constants with alternatives.
_TRIED_ROWS, _TRIED_ROWS_A_CLUSTER = 2000, 20  # most rows of the sample: the larger of both limits
_CLEAR = 10_000  # rows up to which all are landmarks if each graph of a sample has k components

# Fits the map of an option to rows.
FitMap = Callable[[Option, MapRows, UseOfGraph], DiffusionMap]


def chosen_map(
    fit: FitMap, spec: DiffusionSpec, X: Columns, weight: Array, k: int,
    random: np.random.RandomState, n_threads: int, or_columns: bool = False, unit: bool = True,
) -> tuple[DiffusionMap, Choice | None]:  # fmt: skip
    """Return the map of checked rows, and the choice if several options were tried.

    Parameters that are "auto" are chosen on a sample (`medoid`). With `or_columns` the map may have
    no walk: its features are the columns. With `unit` features may have length one. If the graph of
    all rows has small components, which the sample may lack, the graph is kept."""
    if not weight.all() and spec.metric != PRECOMPUTED:
        counted = np.flatnonzero(weight)  # rows of weight zero are no part of the map
        mapped, choice = chosen_map(
            fit, spec, X[counted], weight[counted], k, random, n_threads, or_columns, unit
        )
        mapped._know(X, counted)
        return mapped, choice
    whole = MapRows(X, weight, k, n_threads, spec)
    all_rows, n_landmarks = landmark_numbers_of(X, spec.n_landmarks, k)
    options = _options(spec, k, len(X) > all_rows, or_columns)
    if not unit:
        options = [option for option in options if not option.unit]
    if len(options) == 1:
        mapped = fit(options[0], replace(whole, kept=KEPT), "always")
        other = _use_of_piles(mapped, X, k) if or_columns else None
        return fit(options[0], whole, other) if other else mapped, None
    x, p = _sampled(X, weight, k, random)
    sample = replace(whole, X=x, weight=p, most_times=max(each.neighbors for each in options))
    choice, are_apart = _tried(sample, options, random)
    best = choice.options[choice.best]
    if x is X and isinstance(spec.n_landmarks, str):
        whole = sample  # its graphs are computed already
    use: UseOfGraph = "always" if best.neighbors else "never" if x is X else "if shown"
    option = best if best.neighbors else PLAIN
    is_clear = are_apart and len(X) > _CLEAR and not skip_zeros(X)
    mapped = fit(option, replace(whole, n_landmarks=n_landmarks) if is_clear else whole, use)
    if is_clear and mapped._n_kept < k:
        mapped = fit(option, whole, use)
    if or_columns and (other := _use_of_piles(mapped, X, k)):
        mapped = fit(PLAIN, whole, other)
    pairs = zip(choice.options, choice.agreements)
    mapped.choices_ = [{**tried._asdict(), "agreement": float(mean)} for tried, mean in pairs]
    return mapped, choice


def _use_of_piles(mapped: DiffusionMap, X: Columns, k: int) -> UseOfGraph | None:
    """Return a different use of the graph if many rows are equal, else None.

    Equal rows are one node, and a graph of few nodes has too few slow functions: then the columns
    are clustered. With the cosine metric, fewer directions than clusters need the graph: its nodes
    are the directions, while the columns of rows of one direction differ by rounding."""
    n_nodes, is_cosine = len(mapped.landmark_features_), mapped.metric == "cosine"
    if not isinstance(mapped._space, DiffusionMap):
        return "always" if is_cosine and n_nodes < k else None
    if k == 1 or mapped.metric == PRECOMPUTED:
        return None
    has_few = n_nodes <= k or not len(mapped._spectrum.able())
    differ = n_nodes >= k if is_cosine else rows_differ(X)
    return "never" if has_few and differ else None


def reason(choice: Choice, mapped: DiffusionMap) -> str:
    """Return the sentence that says why a map was chosen."""
    option, agreement = choice.options[choice.best], choice.agreements[choice.best]
    said = "the columns agree"
    if option.neighbors:
        said = (
            f"the graph with whitening={option.whitening} and {option.neighbors:g} times the "
            f"default number of neighbors{', features of length one,' * option.unit} agree"
        )
    is_kept = not option.neighbors and isinstance(mapped._space, DiffusionMap)
    missed = ", but miss components of the graph" if is_kept else ""
    return (
        f"Of {len(choice.options)} graphs and columns the clusters of {said} most with the others, "
        f"mean adjusted Rand index {agreement:.3f}{missed}."
    )


def _options(parameters: DiffusionSpec, k: int, is_large: bool, or_columns: bool) -> list[Option]:
    """Return the options that the parameters leave.

    A single option is left if a sample has too few rows of each cluster to compare options: X
    `is_large`, and there are many clusters."""
    given = parameters.whitening, parameters.n_neighbors
    if parameters.metric == PRECOMPUTED:
        return [Option(None, 1, unit=True)]
    if not isinstance(given[0], str) or k == 1 or (k >= MANY and is_large):
        return [Option(None if isinstance(given[0], str) else given[0], 1)]
    numbers = (0, 0.5, 1, 2) if isinstance(given[1], str) else (0, 1)
    return [each for each in OPTIONS[not or_columns :] if each.neighbors in numbers]


def _tried(sample: MapRows, options: list[Option], random: Any) -> tuple[Choice, bool]:
    """Cluster a sample by several options. Return the choice, and whether each graph that was
    tried has k components that count."""
    k, n_threads = sample.k, sample.n_threads
    random, of_seeds = map(np.random.RandomState, (random.randint(2**31 - 1), 0))
    counts = list[int]()
    occupied = occupied_columns(sample.columns)
    columns = sample.columns if occupied is None else some_columns(sample.columns, occupied)

    def clusters(option: Option) -> Array:
        features: Columns = columns
        if option.neighbors:
            features, count = features_of_graph(sample, *option, random)
            counts.append(count)
        elif columns.shape[1] > PER_CLUSTER * k:  # many more than k clusters need
            components = sample.components(np.random.RandomState(0))
            features = components.whitening(None, n_threads)(sample.columns)
        return searched_clusters(features, sample.weight, k, n_threads, of_seeds)

    choice = medoid(options, clusters)
    return choice, {*counts} == {k}


def _sampled(X: Columns, weight: Array, k: int, random: Any) -> tuple[Columns, Array]:
    """Draw the rows on which options are tried, with weights.

    A row that is drawn several times is taken once, with the number of draws as weight: copies
    would be each other's neighbors."""
    size = max(_TRIED_ROWS, _TRIED_ROWS_A_CLUSTER * k)
    index, p = drawn_rows(weight, size, random)
    distinct, times = np.unique(index, return_counts=True)
    if len(distinct) < len(index):
        return X[distinct], times.astype(np.float64)
    return X if len(index) == len(X) else X[index], p
