"""Pictures of fitted models, by matplotlib (``pip install '.[plot]'``).

Each function draws into `ax`, or into new axes if that is None, and returns the axes. Clusters have
colors that color-blind readers can tell apart, and markers of their own for print in grey.
"""

from __future__ import annotations

import math
from itertools import groupby
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import dendrogram
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rffpk.estimators.base import Clusterer
from rffpk.estimators.diffusion import DiffusionPowerKMeans
from rffpk.fusion.base import embedded_rows
from rffpk.profiles import ClusterProfiles
from rffpk.rows import checks, table
from rffpk.rows.arrays import Array, Identity
from rffpk.rows.containers import is_list_of_views, length
from rffpk.rows.door import rows_as_given, rows_at, table_of
from rffpk.rows.table import Columns
from rffpk.system.report import optional_module
from rffpk.tables import TablePreprocessor

# The colors of Okabe and Ito without yellow, which is too light for points on white, and markers;
# their numbers have no common divisor, so that 7 * 8 clusters differ.
_COLORS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_NOISE = "#999999"

_NO_STEPS = ("k-means", "swap")  # stages of passes before a start and of trials after it


def _axes(ax: Any) -> Any:
    """Return `ax` if it is one of matplotlib's Axes, or new axes for None."""
    why = "rffpk.plot needs matplotlib (pip install matplotlib)"
    if ax is None:
        ax = optional_module("matplotlib.pyplot", why).subplots(layout="constrained")[1]
    if not hasattr(ax, "set_ylim"):
        raise TypeError(f"ax is of type {type(ax).__name__}. Pass one of matplotlib's Axes.")
    return ax


def _having(model: Any, attribute: str) -> Any:
    """Return a fitted model, or the last step of a pipeline, that has an attribute.

    Raise an error if neither has the attribute."""
    if isinstance(model, Pipeline) and not len(model):
        raise ValueError("model: is a pipeline without steps. Pass one that ends with a clusterer.")
    with checks.named("model"):
        check_is_fitted(model)
    if isinstance(model, Pipeline) and not hasattr(model, attribute):
        model = model[-1]
    if not hasattr(model, attribute):
        raise ValueError(
            f"model: {type(model).__name__} has no {attribute}. Pass a fitted estimator that has "
            f"{attribute}."
        )
    return model


def _shown(X: Any) -> tuple[Array, list[Any], Any]:
    """Return indices of at most 5000 evenly spaced rows, their views, and the rows for a model."""
    listed = is_list_of_views(X)
    views = [rows_as_given(x, "X") for x in (X if listed else [X])]
    n = length(views[0])
    if n == 0:
        raise ValueError("X has no rows. Pass at least one.")
    if any(length(x) != n for x in views):
        raise ValueError(f"X: its views have {[*map(length, views)]} rows. Pass the same rows.")
    index = np.arange(0, n, -(-n // 5000))
    some = [rows_at(x, index) for x in views]
    return index, some, some if listed else some[0]


def _columns(views: list[Any]) -> Columns:
    """Join the columns of all views; rows that lack a view have its mean there."""
    filled = []
    for x in map(table_of, views):
        lacks = table.nan_counts(x) > 0 if x.dtype.kind == "f" else np.zeros(len(x), dtype=bool)
        filled.append(np.where(np.isnan(x), x[~lacks].mean(axis=0), x) if lacks.any() else x)
    columns = table.side_by_side(filled)
    # ARPACK cannot find two components of fewer than three rows or columns
    return table.dense(columns) if min(columns.shape) < 3 else columns


def clusters(model: Any, X: Any, *, places: Any = None, ax: Any = None) -> Any:
    """Draw rows in two dimensions, with their clusters; the harder the membership, the darker.

    Parameters
    ----------
    model : fitted estimator
        Any with `predict`; soft memberships are shown if it has `predict_proba`.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), or a list of views
        Rows; of more than 5000, evenly spaced ones are shown.
    places : array-like of shape (n_samples, 2), optional
        Where each row is drawn, such as by t-SNE; by default see below.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    ax : matplotlib Axes
        For a `DiffusionPowerKMeans` the first two diffusion features. For several views the first
        two principal components of the squared distances to the centroids, in which all views have
        a part. For two columns the columns themselves, and the centroids if they are points of the
        same plane. Otherwise the first two principal components of the columns. Crosses are rows
        labeled -1, noise.
    """
    model = _having(model, "predict")
    if isinstance(model, Pipeline) and isinstance(model[0], TablePreprocessor):
        X, model = model[0].transform(X), model[1:] if len(model) > 2 else model[1]
    index, views, rows = _shown(X)
    columns, labels, opacity = _columns(views), model.predict(rows), _opacity(model, rows)
    if places is None:
        points, names = _places(model, rows, columns)
    else:
        n = length(X[0] if is_list_of_views(X) else X)
        places = checks.finite_array(places, "places")
        if places.shape != (n, 2):
            raise ValueError(f"places has shape {places.shape}, must be {(n, 2)}: (n_samples, 2).")
        points, names = places[index], ("", "")
    ax = _axes(ax)
    for label in np.unique(labels):
        here = labels == label
        if label < 0:
            ax.scatter(*points[here].T, s=18, color=_NOISE, marker="x", label="noise")
        else:
            style = _style(label)
            ax.scatter(*points[here].T, s=18, alpha=opacity[here], linewidths=0, **style)
            ax.plot([], [], linestyle="", label=f"cluster {label}", **style)  # for the legend
    centers = getattr(model, "cluster_centers_", None)
    # centroids can be drawn if the axes are the columns that were clustered
    if points is columns and _are_columns(model) and centers is not None:
        plus: dict[str, Any] = {"marker": "+", "color": "black", "linewidths": 2}
        ax.scatter(*np.asarray(centers).T, s=130, label="centroid", **plus)
    n_clusters = len(np.unique(labels[labels >= 0]))
    ax.set(xlabel=names[0], ylabel=names[1], title=f"{n_clusters} clusters")
    if n_clusters <= 20:
        ax.legend(fontsize="small", ncols=1 + n_clusters // 11)
    return ax


def _are_columns(model: Any) -> bool:
    """Return whether centroids are points in the space of the columns."""
    maps = getattr(getattr(model, "_centroids", None), "maps", [])
    known = isinstance(model, Clusterer) and not hasattr(model, "_clusterer")
    return known and all(isinstance(each, Identity) for each in maps)


def _style(label: int) -> dict[str, Any]:
    return {"color": _COLORS[label % len(_COLORS)], "marker": _MARKERS[label % len(_MARKERS)]}


def _places(model: Any, rows: Any, columns: Any) -> tuple[Array, tuple[str, str]]:
    """Return points (n, 2) in the plane, and the names of its axes, as `clusters` describes."""
    if isinstance(model, Pipeline):
        rows, model = model[:-1].transform(rows), model[-1]
    # the time is 0 if the features are the columns
    if isinstance(model, DiffusionPowerKMeans) and model.feature_map_.time_:
        features = model.feature_map_.transform(rows)
        if features.shape[1] > 1:
            return features[:, :2], ("diffusion feature 1", "diffusion feature 2")
    views = is_list_of_views(rows) or getattr(model, "views", None) is not None
    if views and (squares := _squared_distances(model, rows)) is not None:
        return _components(squares), ("distances, component 1", "distances, component 2")
    if columns.shape[1] == 2:
        return columns, ("column 1", "column 2")
    if min(columns.shape) == 1:
        columns = columns[:, :1]
        return np.c_[columns, np.zeros(len(columns))], ("column 1", "")
    return _components(columns), ("principal component 1", "principal component 2")


def _components(columns: Columns) -> Array:
    """Return the first two principal components (n, 2), zeros if all rows are equal."""
    if not table.rows_differ(columns):
        return np.zeros((columns.shape[0], 2))
    solver = "arpack" if table.skip_zeros(columns) else "auto"  # the only solver for sparse rows
    return np.asarray(
        PCA(2, svd_solver=solver, random_state=0).fit_transform(table.operand(columns))
    )


def _squared_distances(model: Any, rows: Any) -> Array | None:
    """Return squared distances (n, k) to the centroids, or None.

    Less the squared norm of its features, the distances of a row are linear in its features, in the
    directions in which centroids differ. The result is None if there are fewer than two centroids
    or rows, or if distances are unknown."""
    if hasattr(model, "_clusterer"):  # which has centroids in an embedding
        rows, model = embedded_rows(model, rows), model._clusterer
    try:
        squares = np.asarray(model.transform(rows)) ** 2
    except ValueError:  # k(x, x) of precomputed kernels is unknown
        return None
    return squares if min(squares.shape) > 1 else None


def _opacity(model: Any, rows: Any) -> Array:
    """Return opacities, from faint, where all memberships are equal, to one.

    Without memberships, or with one cluster, all are one."""
    try:
        u = model.predict_proba(rows)
    except (AttributeError, ValueError):  # the model, or its precomputed kernels, give none
        return np.ones(length(rows[0] if is_list_of_views(rows) else rows))
    if u.shape[1] < 2:
        return np.ones(len(u))
    least, largest, faintest = 1 / u.shape[1], u.max(axis=1), 0.15
    return np.clip(faintest + (1 - faintest) * (largest - least) / (1 - least), 0, 1)


def convergence(model: Any, ax: Any = None) -> Any:
    """Draw the objective of each iteration of the best initialization.

    A line joins the iterations at one exponent s. Along a line the objective never rises, and it
    falls with s. Random displacements of centroids may raise it between lines.

    Parameters
    ----------
    model : fitted estimator
        One with `history_`, or a pipeline that ends with one.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    ax : matplotlib Axes
        Objective against the number of the iteration, which is a pass over the rows.
    """
    model = _having(model, "history_")
    records = [r for r in model.history_ if r.get("kept") and r["stage"] not in _NO_STEPS]
    ax = _axes(ax)
    annealed = records[0]["s"] is not None  # fusions of kernels have no exponent
    names = {False: "annealing", True: "k-means"} if annealed else {}
    for s, line in groupby(enumerate(records, 1), lambda pair: pair[1]["s"]):
        passes, values = zip(*((number, record["objective"]) for number, record in line))
        hard = s == -math.inf  # the first line of each kind has its name in the legend
        color, form, name = _COLORS[3 if hard else 0], "s-" if hard else ".-", names.pop(hard, None)
        ax.plot(passes, values, form, color=color, markersize=4, label=name)
    ax.set(xlabel="iteration", ylabel="objective")
    ax.xaxis.get_major_locator().set_params(integer=True)
    if annealed:
        ax.legend()
    return ax


def memberships(model: Any, X: Any, *, s: float | None = None, ax: Any = None) -> Any:
    """Draw memberships as a heat map, the rows in the order of their clusters.

    Parameters
    ----------
    model : fitted estimator
        One with `predict_proba`.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), or a list of views
        Rows; of more than 5000, evenly spaced ones are shown.
    s : float, optional
        Exponent of the memberships, as `predict_proba` takes it.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    ax : matplotlib Axes
        Rows from top to bottom, clusters from left to right; the darker, the larger the membership.
    """
    model = _having(model, "predict_proba")
    *_, rows = _shown(X)
    u = model.predict_proba(rows) if s is None else model.predict_proba(rows, s=s)
    ax = _axes(ax)
    order = np.lexsort((-u.max(axis=1), u.argmax(axis=1)))
    image = ax.imshow(u[order], cmap="Greys", vmin=0, vmax=1, aspect="auto", interpolation="none")
    ax.figure.colorbar(image, ax=ax, label="membership")
    ax.set(xlabel="cluster", ylabel="rows, by cluster", xticks=range(u.shape[1]))
    return ax


def tree(model: Any, ax: Any = None) -> Any:
    """Draw how clusters merge, as a dendrogram.

    Parameters
    ----------
    model : fitted estimator
        One with `linkage_`, of at least two clusters, or a pipeline that ends with one.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    ax : matplotlib Axes
        Clusters from left to right, by their numbers, with the heights of `linkage_`. Of more than
        50 clusters, the last 50 that are left: a cluster that consists of several has their number
        in parentheses.
    """
    linkage = _having(model, "linkage_").linkage_.copy()
    if not len(linkage):
        raise ValueError("model has one cluster, must have at least two.")
    ax = _axes(ax)
    if flat := not linkage[-1, 2]:
        linkage[-1, 2] = np.finfo(float).eps  # matplotlib has no axis of the length zero
    dendrogram(
        linkage, p=50, truncate_mode="lastp", ax=ax, color_threshold=0,
        above_threshold_color=_COLORS[0],
    )  # fmt: skip
    if flat:
        ax.set_ylim(0, 1)
    ax.set(xlabel="cluster", ylabel="height")
    return ax


def profile(profiles: ClusterProfiles, *, n_columns: int = 20, ax: Any = None) -> Any:
    """Draw the columns that set clusters apart, as a heat map.

    Parameters
    ----------
    profiles : ClusterProfiles
        The result of `describe`.
    n_columns : int
        Largest number of columns that are drawn: the columns with the largest differences.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    ax : matplotlib Axes
        Clusters from top to bottom, with their sizes and their stability, columns from left to
        right in their order. Standardized differences from the rest, red above it and blue below.
    """
    n_columns = checks.check_int(n_columns, "n_columns", 1)
    if not isinstance(profiles, ClusterProfiles):
        raise TypeError(
            f"profiles is of type {type(profiles).__name__}. Pass the result of describe(model, X)."
        )
    differences, ax = profiles.differences, _axes(ax)
    largest = np.abs(differences).max(axis=0)
    chosen = np.sort(np.argsort(-largest, kind="stable")[:n_columns])
    image = ax.imshow(differences[:, chosen], cmap="RdBu_r", vmin=-3.0, vmax=3.0, aspect="auto")
    ax.figure.colorbar(image, ax=ax, label="standardized difference", extend="both")
    names = [f"{j}: {size} rows" for j, size in enumerate(profiles.sizes)]
    if profiles.stability is not None:
        names = [f"{name}, stability {each:.2f}" for name, each in zip(names, profiles.stability)]
    ax.set_xticks(range(len(chosen)), [profiles.columns[j] for j in chosen], rotation=90)
    ax.set_yticks(range(len(names)), names)
    return ax
