"""The method `fit` of the estimators that anneal: the frame around `rffpk.anneal.fit`.

The frame opens X, restores the estimator if a fit fails, reports progress, sets what was fitted,
and warns.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from rffpk.anneal.convergence_warnings import Cause, warn_of_ending
from rffpk.anneal.feature_fit import Problem
from rffpk.anneal.fit import fit
from rffpk.anneal.fitted import CentroidModel
from rffpk.anneal.records import Journal
from rffpk.anneal.schedule import FitContext, History, Result
from rffpk.estimators.base import fit_of, reporting
from rffpk.estimators.bases import BaseEstimator, with_callbacks
from rffpk.rows import checks
from rffpk.rows.dask_collections import kind_of
from rffpk.rows.sample import Opened, open_memory, open_rows, sampling
from rffpk.rows.store import Storage
from rffpk.system import config
from rffpk.system.config import __version__
from rffpk.system.report import Progress, warn

if TYPE_CHECKING:
    from rffpk.anneal.fitted import KernelModel
    from rffpk.anneal.journal import FileJournal
    from rffpk.choose.noise import Noise

M = TypeVar("M", bound=Any)

# Parameters on which the result of a fit does not depend.
_FREE = {"n_jobs", "verbose"}


@with_callbacks
def fit_features(
    self: M, X: Any, y: Any = None, sample_weight: Any = None, *, labels_to: Any = None,
    checkpoint: Any = None, checkpoint_seconds: float = 60.0, resume: bool = True,
) -> M:  # fmt: skip
    """Cluster the rows of X.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features), or a list of views
        Finite numbers. C-ordered float32 and float64 arrays are read in place, also from
        memory-mapped files. Other arrays are converted, integers to float64. PowerKMeans,
        FuzzyCMeans and RFFKernelPowerKMeans also read float16, bfloat16 (ml_dtypes), int8 and
        uint8 in place, with the results of float32. Sparse matrices of float32 or float64 in the
        format CSR are read in place, and other formats are converted to CSR.

        Rows that are not in memory are a source: a function without arguments that returns an
        iterator of blocks of rows (`rffpk.sources`). It is called several times, and `labels_` is
        not set. Arrays and frames of Dask are read like a source, and their partitions stay where
        they are.

        A list of views is for classes with the parameter `kernels` only. Views are arrays of
        shape (n_samples, n_features_l), sparse matrices or sources with the same rows.
    y : Ignored
        Present for scikit-learn's conventions.
    sample_weight : array-like of shape (n_samples,), optional
        Weights >= 0 of the rows, by default one each. A row of weight zero has no influence.
    labels_to : str, path or callable, optional
        Where labels go: a file that ends in .npy or .parquet, or a function. The function is
        called with the labels of consecutive rows, block by block. The file must not be a file
        that X is read from, nor the checkpoint.
    checkpoint : str or path, optional
        A file that is replaced as the fit proceeds, and removed at its end. If the file exists,
        because an earlier fit was killed, the fit continues from it to the same bits. It needs a
        `random_state`.
    checkpoint_seconds : float, default=60
        Least time between two checkpoints, >= 0. They are written after a pass, or after a swap
        with its passes.
    resume : bool, default=True
        Whether to continue from a checkpoint that exists. A checkpoint of other rows,
        parameters, random numbers or versions is refused. False: begin anew. A file that is no
        checkpoint is refused in both cases.

    Returns
    -------
    self : object
        The fitted estimator.

    Raises
    ------
    ValueError, TypeError
        If a parameter, X, sample_weight or a checkpoint is not as described; nothing is changed
        then.
    MemoryError
        If the class has the parameter `cache`, it is True, and the features take more than a
        quarter of the available memory.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` ended a run before it converged, if clusters have no rows, or if memberships
        at a finite exponent do not tell some of them apart.
    UserWarning
        If a checkpoint could not be written; the earlier file stays. If `noise` is a share that
        takes no rows.
    """
    return _fit(self, X, sample_weight, labels_to, checkpoint, checkpoint_seconds, resume)


@with_callbacks
def fit_kernels(
    self: M, X: Any, y: Any = None, sample_weight: Any = None, *, checkpoint: Any = None,
    checkpoint_seconds: float = 60.0, resume: bool = True,
) -> M:  # fmt: skip
    """Cluster the rows of X.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features), or a list of views
        Finite numbers; with precomputed kernels a kernel matrix of shape (n_samples,
        n_samples). A list of views, arrays of shape (n_samples, n_features_l) with the same
        rows, some or all of them sparse, or of kernel matrices, is for classes with the
        parameter `kernels` only. Sparse rows are for the kernels "rbf", "linear", "polynomial",
        "cosine", "sigmoid" and "laplacian".
    y : Ignored
        Present for scikit-learn's conventions.
    sample_weight : array-like of shape (n_samples,), optional
        Weights >= 0 of the rows, by default one each. A weight of two has the objective of a
        repeated row. Random draws differ if a row is repeated, so that another optimum may be
        found. Costs are precise to eps times the largest weight.
    checkpoint : str or path, optional
        A file that is replaced as the fit proceeds, and removed at its end, as in
        `PowerKMeans.fit`. It needs a `random_state`.
    checkpoint_seconds : float, default=60
        Least time between two checkpoints, >= 0.
    resume : bool, default=True
        Whether to continue from a checkpoint that exists. False: begin anew.

    Returns
    -------
    self : object
        The fitted estimator.

    Raises
    ------
    ValueError, TypeError
        If a parameter, X or sample_weight is not as described; nothing is changed then.
    MemoryError
        If ``cache=True`` and the kernels take more than a quarter of the available memory.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` ended the best start before it converged, if clusters have no rows, or if
        memberships at a finite exponent do not tell some of them apart.
    UserWarning
        If a kernel has a clearly negative eigenvalue: negative squared distances then count as
        0 while fitting.
    """
    return _fit(self, X, sample_weight, None, checkpoint, checkpoint_seconds, resume)


def _fit(
    model: M, X: Any, sample_weight: Any, labels_to: Any, checkpoint: Any, seconds: Any,
    resume: Any,
) -> M:  # fmt: skip
    """Check the files that a fit writes, and fit a model with them.

    The arguments are the arguments of `fit_features`; `seconds` is `checkpoint_seconds`."""
    seconds = checks.check_real(seconds, "checkpoint_seconds", 0)
    resume, journal = checks.check_bool(resume, "resume"), None
    if checkpoint is not None:
        from rffpk.anneal.journal import FileJournal

        journal = FileJournal(checkpoint, seconds, resume)
    if labels_to is not None or journal is not None:
        from rffpk.system.files import check_labels_to, check_outputs

        labels_to = None if labels_to is None else check_labels_to(labels_to)
        outputs = {"labels_to": labels_to, "checkpoint": journal and journal.path}
        check_outputs(outputs, X, sample_weight, getattr(model, "init", None))
    with reporting(model, X) as progress:
        return fit_model(
            model, X, sample_weight, labels_to=labels_to, progress=progress, journal=journal
        )


def fit_model(
    model: M, X: Any, sample_weight: Any = None, *, labels_to: Any = None,
    progress: Progress | None = None, journal: FileJournal | None = None,
    causes: Iterable[Cause] = (), rows_name: str | None = None,
) -> M:  # fmt: skip
    """Fit an estimator to X, set its attributes, and return it.

    If the fit fails, all attributes are restored. Labels go to `labels_to`, block by block, if it
    is set. `causes` explain missing clusters by the data that X was computed from. Warnings call X
    by `rows_name`."""
    problem = replace(model._problem(), stores_memberships=model.store_memberships)
    if labels_to is not None:
        from rffpk.system.files import label_writer
    random = checks.check_random_state(model.random_state)
    with fit_of(model), config.one_blas_thread():
        if journal is not None:
            journal.open(_parameters_of(model, random))
            problem = replace(problem, cache=journal.cache(problem.cache))
        if isinstance(problem, Problem):
            opened, noise = opened_rows(model, problem, X, sample_weight, random)
            problem = replace(
                problem, schema=model._schema(), noise=noise, causes=(*causes,),
                rows_name=rows_name or problem.rows_name,
            )  # fmt: skip
        else:
            opened = rows_in_memory(model, X, sample_weight, random)
        k = find_number(model, opened, random, progress)
        context = FitContext(
            random, History(progress=progress), config.n_threads(model.n_jobs), k,
            Storage(problem.cache), journal or Journal(),
            opened.coverage(k) if getattr(model, "allow_missing_views", False) else None,
        )  # fmt: skip
        writer: Any = nullcontext() if labels_to is None else label_writer(labels_to, opened.n)
        with writer as write:
            result = fit(opened, problem.prepare, context, write)
        _publish(model, result, context)
        if isinstance(problem, Problem):
            problem.published(result)
        if journal is not None:
            journal.remove()
    return model


def _publish(model: Any, result: Result, context: FitContext) -> None:
    """Set the fitted attributes of a model.

    Warn if the run did not converge, or if clusters are missing."""
    attributes = result.attributes
    if "cache" not in vars(model):
        del attributes["cache_"]
    vars(model).update(
        attributes, s_=result.end.s, history_=context.history.records, _n_features_out=context.k
    )
    if not result.end.converged:
        warn(
            f"max_iter={model.max_iter} passes ended the run before it converged.",
            ConvergenceWarning,
        )
    if result.ending.found < result.ending.k:
        warn_of_ending(result.ending, result.causes)


def kernel_model(model: Any) -> KernelModel:
    """Return the centroids of a fitted estimator of exact kernels; raise if it is not fitted."""
    from rffpk.anneal.fitted import KernelModel

    check_is_fitted(model)
    return KernelModel(
        model._centroids, model._schema().of_new_rows(model._shape), model._shape.has_views,
        model.dual_coef_, model.membership_exponent_, config.n_threads(model.n_jobs),
    )  # fmt: skip


def centroid_model(model: Any) -> CentroidModel:
    """Return the centroids of a fitted estimator in a feature space; raise if it is not fitted."""
    if "s_" not in vars(model):
        check_is_fitted(
            model, msg=model._of_buffer("This") if "n_buffered_" in vars(model) else None
        )
    return CentroidModel(
        model._centroids, model._schema().of_new_rows(model._shape), model._shape.views,
        model.cluster_centers_, model.membership_exponent_,
        Storage(getattr(model, "cache", "auto")), config.n_threads(model.n_jobs),
    )  # fmt: skip


# ---- rows and the number of clusters -------------------------------------------------------------


def rows_in_memory(model: Any, X: Any, sample_weight: Any, random: Any) -> Opened:
    """Check X and the weights of a fit of exact kernels; return them as opened rows."""
    how = sampling(model.n_clusters, model.n_jobs, random)
    rows = open_memory(X, sample_weight, model._schema(), how)
    model._remember(rows.shape)
    return rows


def opened_rows(
    model: Any, problem: Problem, X: Any, sample_weight: Any, random: Any
) -> tuple[Opened, Noise | None]:
    """Check and open the rows of a fit; return them with the noise, or None without noise.

    Noise points get weight zero. A source is read once."""
    noise, distinct, is_sought = None, None, getattr(model, "noise", None) is not None
    given = problem.search.sample
    how = sampling(model.n_clusters, model.n_jobs, random, given, problem.n_map_rows)
    if is_sought:
        from rffpk.choose.noise import find_noise
        from rffpk.rows.distinct import DistinctRows

        kind = kind_of(X)
        if kind == "dask":
            raise TypeError(
                "X is a Dask collection, but noise needs rows in memory or a source: pass its "
                "blocks as a source, or noise=None."
            )
        distinct = DistinctRows(keep=kind != "memory")
    rows = open_rows(X, sample_weight, model._schema(), how, model.n_jobs, distinct)
    model._remember(rows.shape)
    if is_sought:
        n_views, is_cosine = len(rows.shape.widths), model._is_cosine()
        noise = find_noise(model.noise, rows, distinct, n_views, is_cosine)
        rows = rows.without(noise.rows)
    return rows, noise


def find_number(model: Any, sample: Opened, random: Any, progress: Progress | None) -> int:
    """Set and return the number of clusters.

    If the parameter is a word, the number is estimated on a sample, and `selection_` is set."""
    wanted = model.n_clusters
    if isinstance(wanted, str):
        from rffpk.choose.number import select_number

        # however much the estimate draws, the fit goes on with the same random numbers
        random = np.random.RandomState(random.randint(2**31 - 1))
        say = (lambda text: None) if progress is None else progress.say
        kind, is_cosine = model._schema().kind, model._is_cosine()
        found = select_number(kind, is_cosine, sample, random, say)
        model.selection_, wanted = found, found.number(wanted)
    k = checks.check_int(wanted, "n_clusters", 1)
    if k > sample.n:
        raise ValueError(
            f"n_clusters={k}: must not exceed the number of samples ({sample.n}). Pass fewer."
        )
    if k > sample.counted:
        raise ValueError(
            f"n_clusters={k}: must not exceed the number of rows with a positive sample_weight "
            f"({sample.counted}). Pass fewer."
        )
    model.n_clusters_ = k
    return k


# ---- what distinguishes a fit from fits with other parameters ------------------------------------


def _parameters_of(model: Any, random: Any) -> dict[str, str]:
    """Return the version, the class and the parameters of a model, as texts by name.

    A checkpoint is only used by a fit with equal texts. `random` is the generator of the fit. Raise
    a ValueError if `random_state` is None, because its numbers cannot be drawn again."""
    from rffpk.anneal.journal import json_bytes

    parameters = model.get_params(deep=False)
    seed = parameters["random_state"]
    if seed is None:
        raise ValueError(
            "checkpoint needs a random_state: a fit that goes on must draw the same random numbers."
        )
    if isinstance(seed, np.random.RandomState):
        parameters["random_state"] = json_bytes(random.get_state(legacy=False))
    return {"rffpk version": __version__, "class": type(model).__name__, **_texts(parameters)}


def _texts(parameters: dict[str, Any]) -> dict[str, str]:
    """Return a text for each parameter that may change the result of a fit."""
    return {name: _text(value) for name, value in parameters.items() if name not in _FREE}


def _text(value: Any) -> str:
    """Return a text that differs for different values of a parameter."""
    if isinstance(value, BaseEstimator):
        return f"{type(value).__name__}({_text(value.get_params(deep=False))})"
    if isinstance(value, dict):
        return ", ".join(f"{name}={each}" for name, each in _texts(value).items())
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_text, value))}]"
    if hasattr(value, "__array__") and np.ndim(value):
        from rffpk.anneal.journal import digest

        array = np.asarray(value)
        return f"an array {digest(array)}" if array.dtype.kind in "biuf" else repr(array.tolist())
    if callable(value):
        raise ValueError(
            "checkpoint cannot compare functions: set init to an array of centroids, or to the "
            "name of a method."
        )
    return repr(value)
