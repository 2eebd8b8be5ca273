"""Choose a graph of rows, or the columns, by how well the partitions of a sample agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rffpk import _core
from rffpk.anneal.records import PowerMean, State
from rffpk.anneal.schedule import FitContext, Stage
from rffpk.anneal.starts import k_means_plus_plus, seed_centroids
from rffpk.anneal.steps import FeatureLevel
from rffpk.rows import table
from rffpk.rows.arrays import Array, adjusted_rand_index
from rffpk.rows.draws import MANY
from rffpk.rows.passes import column_rows, one_pass, total_variance
from rffpk.rows.table import Columns
from rffpk.spaces.diffusion import DiffusionSpec, Drawn, FittedMap, MapRows, Option, node_features
from rffpk.spaces.graph import PRECOMPUTED
from rffpk.spaces.neighbors import drawn_rows, landmark_numbers_of
from rffpk.spaces.spectrum import UseOfGraph, wanted_pairs
from rffpk.spaces.whitening import PER_CLUSTER
from rffpk.system.tuning import TUNING

COLUMNS, PLAIN = Option(None, 0), Option(None, 1)
# If several options have the highest agreement, the first is chosen.
OPTIONS = (
    COLUMNS, PLAIN, Option(1.0, 1), Option(None, 1, True), Option(1.0, 1, True),
    Option(None, 0.5), Option(None, 2), Option(1.0, 0.5), Option(1.0, 2),
)  # fmt: skip


class Choice(NamedTuple):
    """The options that were tried, in order, and how well their partitions agree."""

    options: list[Option]
    agreements: Array  # for each option: weighted mean adjusted Rand index with all options
    labels: list[Array]  # for each option: the clusters of the rows

    @property
    def best(self) -> int:
        """The index of the option with the highest agreement, the first of equal options."""
        return int(np.argmax(self.agreements))


def medoid(options: Sequence[Option], clusters: Callable[[Option], Array]) -> Choice:
    """Cluster by each option, and measure how well each partition agrees with all partitions.

    `clusters` returns labels (n,) for an option. The agreement is the weighted mean of adjusted
    Rand indices. A cluster that appears with only one scale, whitening or scaling of the features
    is an artefact of this option. The trials end early if one partition is nearly equal to enough
    other partitions (`TUNING.choice.same_partitions`, itself included)."""
    indices, labels, tuning = np.eye(len(options)), list[Array](), TUNING.choice
    for i, option in enumerate(options):
        labels.append(clusters(option))
        pairs = [adjusted_rand_index(each, labels[i]) for each in labels[:i]]
        indices[i, :i] = indices[:i, i] = pairs
        if (indices >= tuning.same_index).sum(axis=0).max() >= tuning.same_partitions:
            break
    n, weight = len(labels), tuning.whitened_weight
    weights = np.array([1.0 if each.whitening is None else weight for each in options[:n]])
    return Choice([*options[:n]], indices[:n, :n] @ weights / weights.sum(), labels)


def searched_clusters(
    X: Columns, weight: Array, k: int, n_threads: int, random: np.random.RandomState
) -> Array:
    """Return k-means labels (n,) for k clusters of a sample of rows, without swaps of centroids.

    Swaps would take most of the time, and change few choices. `random` is an existing generator
    that is seeded here, which is faster than making a new generator."""
    random.seed(0)
    x = table.centered(X, X.dtype)
    rows = column_rows(x, weight, n_threads)
    if k >= MANY or table.skip_zeros(x):
        seeds = seed_centroids(rows, x, k, "k-means++", random)
    else:  # squared distances of all pairs; a pass would also sum clusters, without need
        seeds = x[
            k_means_plus_plus(
                lambda drawn: _core.squares_of_pairs(
                    x, x[drawn], np.tile(np.arange(len(drawn), dtype=np.int32), (len(x), 1)),
                    n_threads,
                ), x.dtype, rows.weight.astype(np.float64), k, random,
            )
        ]  # fmt: skip
    inside = FitContext(random, n_threads=n_threads, k=k)
    level = FeatureLevel(rows, total_variance(rows), PowerMean(), inside, most=k)
    stage = Stage("hard", -math.inf, tol=TUNING.choice.tol, most=TUNING.choice.passes)
    state, _ = level.follow(State(seeds.astype(np.float64), rows.alpha), stage)
    return one_pass(rows, state.theta, -math.inf, want=("labels",))[1]["labels"]


# ---- which map: the option whose partition of a sample has the highest agreement -----------------


def chosen_map(
    spec: DiffusionSpec, X: Columns, weight: Array, k: int, random: np.random.RandomState,
    n_threads: int, or_columns: bool = False, unit_variance: bool = False,
) -> tuple[FittedMap, Choice | None]:  # fmt: skip
    """Return the fitted map of checked rows, and the choice if several options were tried.

    Parameters that are "auto" are chosen on a sample, by `medoid`. If there is one option only, no
    choice is made, and the second result is None.

    With `or_columns` the columns themselves may be the features, without a walk. But if the graph
    of all rows has small components, which the sample may lack, the graph is used. With
    `unit_variance` the features have a total variance of one, and are not scaled to length one."""
    if not weight.all() and spec.metric != PRECOMPUTED:
        counted = np.flatnonzero(weight)  # rows of weight zero are no part of the map
        fitted, choice = chosen_map(
            spec, X[counted], weight[counted], k, random, n_threads, or_columns, unit_variance
        )
        return fitted._replace(features=partial(_spread, fitted, X, counted)), choice
    whole = MapRows(X, weight, k, n_threads, spec)
    limit, n_landmarks = landmark_numbers_of(X, spec.n_landmarks, k)
    options = _options(spec, k, len(X) > limit, or_columns)
    if unit_variance:
        options = [option for option in options if not option.unit]
    seed, tuning = partial(random.randint, 2**31 - 1), TUNING.choice
    if len(options) == 1:
        # where no graphs are compared, more edges join small components
        drawn = replace(whole, kept=tuning.kept).draw(options[0], "always", seed())
        if or_columns and (other := _use_of_piles(drawn)):
            drawn = whole.draw(options[0], other, seed())
        return drawn.fitted(unit_variance), None
    sample, choice, are_apart = _tried(whole, options, random)
    best, is_whole = choice.options[choice.best], sample.X is X
    if is_whole and isinstance(spec.n_landmarks, str):
        whole = sample  # its graphs are computed already
    # columns that were chosen on a sample are used unless a graph of all rows shows components
    use: UseOfGraph = "always" if best.neighbors else "never" if is_whole else "if shown"
    option, inputs = best if best.neighbors else PLAIN, whole
    # If each graph of the sample has k components, fewer landmarks are tried first. Should they
    # join components, the graph is drawn again from more landmarks.
    if are_apart and len(X) > tuning.clear_rows and not table.skip_zeros(X):
        inputs = replace(whole, spec=replace(spec, n_landmarks=n_landmarks))
    drawn = inputs.draw(option, use, seed())
    if inputs is not whole and drawn.found.parts.n_kept < k:
        drawn = whole.draw(option, use, seed())
    if or_columns and (other := _use_of_piles(drawn)):
        drawn = whole.draw(PLAIN, other, seed())
    pairs = zip(choice.options, choice.agreements)
    choices = [{**tried._asdict(), "agreement": float(mean)} for tried, mean in pairs]
    return drawn.fitted(unit_variance)._replace(choices=choices), choice


def _spread(fitted: FittedMap, X: Columns, counted: Array) -> Array:
    """Return features (n, q) of all rows of X after a fit to some of them.

    `counted` are the indices of the fitted rows. The features of the remaining rows are
    interpolated."""
    others = np.delete(np.arange(len(X)), counted)
    known, rest = fitted.features(), fitted.space._features(X[others])
    features = np.empty((len(X), known.shape[1]), dtype=known.dtype)
    features[counted], features[others] = known, rest
    return features


def _use_of_piles(drawn: Drawn) -> UseOfGraph | None:
    """Return a different use of the graph if it has too few nodes because rows are equal, or None.

    None means that the use stays, also for one cluster and for precomputed graphs. Equal rows are
    one node, and a graph of few nodes has too few slow eigenvectors. Then "never" is returned: the
    columns are clustered.

    With the cosine metric the nodes are directions. If there are fewer directions than clusters,
    the graph is needed, and "always" is returned if it was not used. The columns of rows with equal
    directions differ by rounding."""
    inputs, diffusion = drawn.inputs, drawn.found
    n_nodes, k, metric = len(diffusion.extension), inputs.k, inputs.spec.metric
    if not diffusion.is_used:
        return "always" if metric == "cosine" and n_nodes < k else None
    if k == 1 or metric == PRECOMPUTED:
        return None
    if n_nodes > k and len(diffusion.spectrum.able()):
        return None
    differ = n_nodes >= k if metric == "cosine" else table.rows_differ(inputs.X)
    return "never" if differ else None


def reason(choice: Choice, fitted: FittedMap) -> str:
    """Return a sentence for users that says why a map was chosen."""
    option, agreement = choice.options[choice.best], choice.agreements[choice.best]
    said = "the columns agree"
    if option.neighbors:
        said = (
            f"the graph with whitening={option.whitening} and {option.neighbors:g} times the "
            f"default number of neighbors{', features of length one,' * option.unit} agree"
        )
    # the columns agree most, but the map uses a graph
    is_kept = not option.neighbors and fitted.columns is None
    missed = ", but miss components of the graph" if is_kept else ""
    return (
        f"Of {len(choice.options)} graphs and columns the clusters of {said} most with the others, "
        f"mean adjusted Rand index {agreement:.3f}{missed}."
    )


def _options(parameters: DiffusionSpec, k: int, is_large: bool, or_columns: bool) -> list[Option]:
    """Return the options to try, as far as the parameters leave a choice.

    There is one option if the parameters fix it, or for one cluster. There is also one if X
    `is_large` and has many clusters: a sample then has too few rows of each cluster to compare
    options. The columns without a graph are an option only with `or_columns`."""
    whitening, n_neighbors = parameters.whitening, parameters.n_neighbors
    if parameters.metric == PRECOMPUTED:
        return [Option(None, 1, unit=True)]
    if not isinstance(whitening, str) or k == 1 or (k >= MANY and is_large):
        return [Option(None if isinstance(whitening, str) else whitening, 1)]
    # a given number of neighbors is not multiplied
    factors = (0, 0.5, 1, 2) if isinstance(n_neighbors, str) else (0, 1)
    options = OPTIONS if or_columns else OPTIONS[1:]
    return [option for option in options if option.neighbors in factors]


def _tried(whole: MapRows, options: list[Option], random: Any) -> tuple[MapRows, Choice, bool]:
    """Return a sample, the choice on the sample, and whether all graphs have k components.

    Each option clusters the sample by k-means. The choice is the medoid of the partitions. The last
    result is True if each graph that was tried has exactly k kept components.

    A row that is drawn several times is in the sample once, and the number of draws is its weight.
    Copies of a row would be neighbors of each other."""
    X, k, n_threads, tuning = whole.X, whole.k, whole.n_threads, TUNING.choice
    index, p = drawn_rows(whole.weight, max(tuning.rows, tuning.rows_a_cluster * k), random)
    distinct, times = np.unique(index, return_counts=True)
    if len(distinct) < len(index):
        index, p = distinct, times.astype(np.float64)
    x, most = X if len(index) == len(X) else X[index], max(each.neighbors for each in options)
    sample = replace(whole, X=x, weight=p, most_times=most)
    random_graphs = np.random.RandomState(random.randint(2**31 - 1))
    random_seeds = np.random.RandomState(0)  # seeded again for each option
    counts = list[int]()
    occupied = table.occupied_columns(sample.columns)
    columns = sample.columns if occupied is None else table.some_columns(sample.columns, occupied)

    def clusters(option: Option) -> Array:
        """Return labels of the sample by k-means on the features of an option.

        The number of kept components of a graph is appended to `counts`."""
        features: Columns = columns
        if option.neighbors:
            wanted = wanted_pairs(k, True)
            graph, _, rows = sample.diffusion(
                wanted, option.whitening, option.neighbors, random_graphs
            )
            functions = node_features(graph, DiffusionSpec(), k, option.unit)[1]
            means = None if graph.weights is None else graph.weights @ functions
            features = graph.features(rows, functions, means).astype(np.float64)
            counts.append(graph.parts.n_kept)
        elif columns.shape[1] > PER_CLUSTER * k:  # k clusters need fewer columns: whiten
            components = sample.components(np.random.RandomState(0))
            features = components.whitening(None, n_threads)(sample.columns)
        return searched_clusters(features, sample.weight, k, n_threads, random_seeds)

    choice = medoid(options, clusters)
    return sample, choice, {*counts} == {k}
