"""The bases of all estimators and of all clusterers, and their parameters as dataclass fields.

Pickles and model files carry the version that wrote them, and the HTML representation a link to the
documentation.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import metadata
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform, get_type_hints

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rffpk.choose.selection import NClustersSelection
from rffpk.estimators.bases import (
    BaseEstimator,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from rffpk.rows import checks
from rffpk.rows.arrays import Array
from rffpk.rows.checks import Auto, Level
from rffpk.rows.dask_collections import by_partitions
from rffpk.rows.door import Schema, Shape, check_views
from rffpk.rows.table import Columns
from rffpk.system.config import __version__
from rffpk.system.report import LOGGER, Progress

C = TypeVar("C", bound=type[Any])

_KEY = "_rffpk_version"


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def parameters(cls: C) -> C:
    """Make the annotated attributes of an estimator class parameters of its `__init__`.

    This is a class decorator. Parameters of base classes come first. Parameters are passed by
    keyword, unless a dataclass field says otherwise. An attribute that a fit sets is no parameter:
    annotate it with ``field(init=False)``, or in a base class without this decorator."""
    text = cls.__doc__  # None under python -OO, where dataclass would write a docstring
    dataclass(eq=False, repr=False, kw_only=True, match_args=False)(cls)
    cls.__doc__ = text
    # Annotations of inherited parameters are strings with names from other modules: resolve them.
    words, types = cls.__init__.__annotations__, get_type_hints(cls)
    words.update((name, types[name]) for name in words.keys() & types.keys())
    return cls


class VersionError(ValueError):
    """A pickle or a model file of a version that this version does not read."""


def check_version(written: str, what: str) -> None:
    """Raise a VersionError if another major version wrote the state of an estimator.

    Before version 1.0, minor versions must agree, too. `what` is a phrase for the message, such as
    "model was saved"."""
    parts, own = written.split("."), __version__.split(".")
    shared = 2 if own[0] == "0" else 1
    if parts[:shared] != own[:shared]:
        raise VersionError(
            f"This {what} by rffpk {written}, and rffpk {__version__} does not read it: fit it "
            f"again, or install rffpk {written}."
        )


class Estimator(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupportMixin, BaseEstimator
):
    """A transformer with versioned pickles, model files, and scikit-learn's callbacks."""

    # what a fit sets
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    _shape: Shape

    _takes = Schema("")  # what X may be; `_schema` adds what the parameters say

    # The names that scikit-learn's guide for developers gives for the HTML representation.
    _doc_link_module = "rffpk"

    @property
    def _doc_link_template(self) -> str:
        entries = metadata("rffpk").get_all("Project-URL") or []
        site = dict(entry.split(", ", 1) for entry in entries).get("Documentation", "")
        return site and f"{site.rstrip('/')}/generated/rffpk.{{estimator_name}}.html"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._schema().kind != "rows"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    if hasattr(CallbackSupportMixin, "set_callbacks"):

        def set_callbacks(self, *callbacks: Any) -> Any:
            """Set scikit-learn's callbacks, which are called at each pass or iteration of a fit.

            Parameters
            ----------
            *callbacks : callbacks
                As described in scikit-learn's guide; without any, all are removed. Callbacks that
                ask for the metadata of a task get {"record": its record as in `history_`}. A
                request to stop is not followed. A file that `save` writes cannot hold callbacks.

            Returns
            -------
            self : object
                The estimator.
            """
            super().set_callbacks(*callbacks)
            if callbacks:
                self._has_callbacks = True
            else:
                self.__dict__.pop("_has_callbacks", None)
            return self

    def _schema(self) -> Schema:
        """Return what X may be. The kind in `_takes` holds only if X is precomputed."""
        kind, given = self._takes.kind, vars(self)
        if kind != "rows":
            word = given.get("metric", given.get("kernel", given.get("kernels")))
            kind = kind if checks.is_option(word, "precomputed") else "rows"
        return self._takes._replace(name=type(self).__name__, kind=kind, views=given.get("views"))

    def _is_cosine(self) -> bool:
        """Return whether rows are compared by their directions."""
        return checks.is_option(vars(self).get("metric"), "cosine")

    def _check_views(self, X: Any, reset: bool) -> list[Columns]:
        """Check X; return its tables: the views, and all columns side by side if a view needs them.

        `reset`: X is the data of a fit, and its shape is remembered. Otherwise X is new data for
        the fitted model, and must match the shape."""
        fitted = None if reset else self._shape
        views, shape = check_views(X, self._schema()._replace(fitted=fitted))
        if reset:
            self._remember(shape)
        return views

    def _remember(self, shape: Shape) -> None:
        """Set the attributes on the shape and the column names of the fitted X."""
        self._shape, self.n_features_in_ = shape, shape.n_columns
        vars(self).pop("feature_names_in_", None)
        if not shape.listed and shape.names[0]:
            self.feature_names_in_ = np.array(shape.names[0], dtype=object)

    def __sklearn_clone__(self) -> Any:
        new = super().__sklearn_clone__()
        if hasattr(self, "_has_callbacks"):
            new._has_callbacks = True
        return new

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), _KEY: __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        check_version(state.pop(_KEY, "0.0"), f"{type(self).__name__} was pickled")
        super().__setstate__(state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that `rffpk.load` reads.

        The file holds numbers and text only: unlike a pickle it cannot run code where it is read.

        Parameters
        ----------
        path : str or path
            The file, in the layout of safetensors. A file that is there is replaced once the new
            file is complete. If that fails, it stays.

        Raises
        ------
        TypeError
            If a parameter is neither a number, a string, an array, a list, a tuple, a dict nor an
            estimator of this package; callables and RandomState instances for example.
        OSError
            If the file cannot be written.
        """
        from rffpk.model_files import save

        save(self, path)


@contextlib.contextmanager
def fit_of(estimator: Any, anew: bool = True) -> Iterator[None]:
    """Run a fit; restore all attributes of the estimator if it ends with an exception.

    A fit `anew` forgets what earlier fits have set. `_fitted_names` lists the attributes that fits
    set."""
    before = dict(vars(estimator))
    try:
        fitted = {*vars(estimator).get("_fitted_names", ())}
        if anew:
            for name in fitted | {"_fitted_names"}:
                vars(estimator).pop(name, None)
            fitted = set()
        not_fitted = vars(estimator).keys() - fitted
        yield
        estimator._fitted_names = sorted(vars(estimator).keys() - not_fitted - {"_fitted_names"})
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


@contextlib.contextmanager
def reporting(estimator: Any, X: Any) -> Iterator[Progress | None]:
    """Yield the object that reports the progress of a fit of X; None if nothing is reported."""
    verbose = getattr(estimator, "verbose", 0)
    if not isinstance(verbose, (bool, np.bool_)):
        checks.check_int(verbose, "verbose", 0)
    called = hasattr(estimator, "_has_callbacks")
    if not (verbose or called or LOGGER.isEnabledFor(logging.INFO)):
        yield None
        return
    task = None
    if called:
        task = estimator._init_callback_context(max_subtasks=None)
        task.call_on_fit_task_begin(estimator=estimator, X=X)
    progress = Progress(estimator, type(estimator).__name__, int(verbose), task)
    try:
        yield progress
    finally:
        progress.close()
    if task is not None:
        task.call_on_fit_task_end(estimator=estimator, X=X)


@parameters
class Clusterer(Estimator, ClusterMixin, BaseEstimator):
    """Base of the clusterers; a subclass has `fit` and `_fitted_model`."""

    n_clusters: Level | int = field(default=8, kw_only=False)
    n_init: Auto | int = "auto"
    store_memberships: bool = False
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0
    # what a fit sets
    n_clusters_: int = field(init=False)
    selection_: NClustersSelection = field(init=False)
    labels_: NDArray[np.int32] = field(init=False)
    inertia_: float = field(init=False)
    objective_: float = field(init=False)
    s_: float = field(init=False)
    membership_exponent_: float = field(init=False)
    n_iter_: int = field(init=False)
    history_: list[dict[str, Any]] = field(init=False)
    memberships_: Array = field(init=False)

    def _fitted_model(self) -> Any:
        """Return the fitted model: a `CentroidModel`, a `KernelModel` or an `EmbeddingModel`."""
        raise NotImplementedError

    def _gaps(self) -> tuple[Array, Array]:
        """Return squared distances (k, k) between centroids, and cluster masses (k,)."""
        return self._fitted_model().gaps()

    def _nearest_rows(self, X: Any) -> NDArray[np.intp]:
        """Return the index (k,) of an example row in X for each cluster."""
        return self._fitted_model().nearest_rows(X)

    @property
    def probabilities_(self) -> Array:
        """Memberships of the fitted rows in their own clusters, in [0, 1]; 0 for noise.

        An array of shape (n_samples,), computed from `memberships_` and `labels_`, so that it is
        there only with ``store_memberships=True``.
        """
        if not {"memberships_", "labels_"} <= vars(self).keys():
            raise AttributeError  # `__getattr__` says why
        own = np.take_along_axis(self.memberships_, self.labels_[:, None].clip(0), axis=1)[:, 0]
        return np.where(self.labels_ < 0, np.zeros_like(own), own)

    if not TYPE_CHECKING:  # a type checker would accept every name

        def __getattr__(self, name):
            if name == "labels_" and "cluster_centers_" in vars(self):
                raise AttributeError(
                    "labels_ of the rows of a source are not kept: pass labels_to to fit, or call "
                    "predict."
                )
            if name == "probabilities_":
                raise AttributeError(
                    "probabilities_ needs a fit of rows with store_memberships=True."
                )
            if name.endswith("_") and not name.startswith("_") and vars(self).get("n_buffered_"):
                raise AttributeError(f"{name} is not there yet: {self._of_buffer('this')}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _of_buffer(self, this: str) -> str:
        """Return the error message while `partial_fit` still collects rows for the first fit.

        `this` is the first word of the message."""
        kept, first = (vars(self)[name] for name in ("n_buffered_", "_n_first"))
        return (
            f"{this} {type(self).__name__} has {kept} of the {first} rows that its first fit "
            "takes: give partial_fit more rows, set a smaller `sample`, or call fit."
        )

    def __sklearn_is_fitted__(self) -> bool:
        return "s_" in vars(self)

    @by_partitions
    def predict(self, X: Any) -> NDArray[np.int32]:
        """Label each row with its nearest centroid, or with -1 for noise.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_), or a list of views
            As in `fit`. Precomputed kernels are between the new rows and the fitted rows, of shape
            (n_samples, n_samples_fit).

        Returns
        -------
        labels : ndarray of int32, shape (n_samples,)
            Indices of the clusters. For collections of Dask a Dask array.
        """
        return self._fitted_model().labels(X)

    @by_partitions
    def predict_proba(self, X: Any, *, s: float | None = None) -> Array:
        """Return memberships of rows in clusters, at `membership_exponent_` or another exponent.

        u_ij = d_ij^s / sum_l d_il^s with the squared distances d_ij of rows to centroids: the
        memberships of fuzzy c-means; at minus infinity, one for the nearest centroid and zero for
        the rest. If the class has typicality, d_ij are the distances d'_ij of its objective.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_), or a list of views
            As in `fit`. Precomputed kernels, between the new rows and the fitted ones, are for the
            fusions of kernels alone.
        s : float, optional
            Exponent, at most -0.2, by default `membership_exponent_` (``docs/math.md``, eq. (8.6)).
            The nearer it is to zero, the softer are the memberships; minus infinity gives 0 and 1.
            The fuzzifier m of fuzzy c-means is s = -1/(m-1), so that -1 stands for m = 2.

        Returns
        -------
        memberships : ndarray of shape (n_samples, n_clusters)
            In [0, 1], in the dtype of the centroids; rows sum to one. For collections of Dask a
            Dask array.

        Raises
        ------
        ValueError
            If k(x, x) of the rows is not known, as kernels are precomputed.
        """
        s = None if s is None else checks.check_exponent(s)
        return self._fitted_model().memberships(X, s)

    @by_partitions
    def transform(self, X: Any) -> Array:
        """Return distances of rows from centroids, in the space of the centroids.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_), or a list of views
            As in `fit`. Exact kernels, as of `KernelPowerKMeans`, must not be precomputed.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            In the dtype of X. If there are several views, their squared distances are combined with
            `kernel_weights_`. The squares are precise to a few eps of the squared distance from the
            mean of the fitted rows. For collections of Dask a Dask array.

        Raises
        ------
        ValueError
            If k(x, x) of the rows is not known, as kernels are precomputed.
        """
        return self._fitted_model().distances(X)

    def fit_predict(self, X: Any, y: Any = None, **options: Any) -> NDArray[np.int32]:
        """Fit, and return the labels of the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or a list of views
            As in `fit`.
        y : Ignored
            Present for scikit-learn's conventions.
        **options : dict
            Other arguments of `fit`.

        Returns
        -------
        labels : ndarray of int32, shape (n_samples,)
            `labels_`; of the rows of a source, what `predict` gives.
        """
        self.fit(X, y, **options)
        return vars(self)["labels_"] if "labels_" in vars(self) else self.predict(X)

    def medoids(self, X: Any) -> NDArray[np.intp]:
        """Return for each centroid the nearest row of X that is not noise, as an example.

        Features of a diffusion map do not tell the middle of a cluster from its edge. So
        `DiffusionPowerKMeans` gives a row in the middle by the columns, of at most 2000 rows of
        each cluster. With a given graph it takes the half of a cluster that is nearest to the
        centroid, and of this half the node with the largest affinities to the cluster.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_), or a list of views
            As in `fit`. Precomputed kernels, between the new rows and the fitted ones, are for the
            fusions of kernels alone.

        Returns
        -------
        indices : ndarray of shape (n_clusters,)
            Indices of rows; the first of equals. O(n_samples n_clusters) memory.

        Raises
        ------
        ValueError
            If k(x, x) of the rows is not known, as kernels are precomputed.
        """
        return self._nearest_rows(X)

    @property
    def linkage_(self) -> NDArray[np.float64]:
        """Ward's tree of the clusters, by centroids and weights, as a linkage matrix of SciPy.

        An array of shape (n_clusters - 1, 4), whose last column counts clusters. Half the square of
        a height is what the merger adds to the k-means objective, in the space of the centroids.
        Features of `DiffusionPowerKMeans` put all components of the graph equally far apart:
        between components, the tree uses distances between the means of the rows instead.
        Computed when it is asked for, in O(n_clusters^2) time and memory.
        """
        if not self.__sklearn_is_fitted__():
            raise AttributeError
        from rffpk.system.tree import ward

        return ward(*self._gaps())

    def cut(self, n_clusters: int, X: Any = None) -> NDArray[np.int32]:
        """Return labels of fewer clusters, which are unions of the fitted clusters.

        Clusters whose union raises the k-means objective least are merged first, by Ward's method
        on the centroids and the weights of their clusters (`linkage_`). So all cuts are nested.
        Two clusters of a cut may be closer to each other than clusters of a fit with this number,
        which sees all rows.

        Parameters
        ----------
        n_clusters : int
            Number of clusters, from 1 to that of the fit.
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_), or a list of views
            As in `predict`; None: the fitted rows.

        Returns
        -------
        labels : ndarray of int32, shape (n_samples,)
            From 0 to n_clusters - 1, numbered in the order of the clusters of the fit; noise stays
            -1. If `n_clusters` is the number of the fit, they are `labels_`.
        """
        from rffpk.system.tree import groups

        check_is_fitted(self)
        linkage = self.linkage_
        n_clusters = checks.check_int(n_clusters, "n_clusters", 1, len(linkage) + 1)
        # noise has the label -1, which takes the appended last entry
        of_clusters = np.r_[groups(linkage, n_clusters), np.int32(-1)]
        return of_clusters[self.labels_] if X is None else self._cut(X, of_clusters=of_clusters)

    @by_partitions
    def _cut(self, X: Any, *, of_clusters: NDArray[np.int32]) -> NDArray[np.int32]:
        return of_clusters[self.predict(X)]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the weighted sum of squared distances to the nearest centroids.

        Noise is left out. The score of the fitted rows with their weights is `-inertia_`, with two
        exceptions. If rows lack views, the score scales distances over the other views up. If a
        kernel is indefinite, the score takes negative squared distances as zero.

        Scores of models with different features or kernels cannot be compared.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_), or a list of views
            As in `fit`. Precomputed kernels, between the new rows and the fitted ones, are for the
            fusions of kernels alone.
        y : Ignored
            Present for scikit-learn's conventions.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the rows, by default one each.

        Returns
        -------
        score : float
            At most 0; the higher the better.

        Raises
        ------
        ValueError
            If k(x, x) of the rows is not known, as kernels are precomputed.
        """
        return -float(self._fitted_model().cost(X, sample_weight))
