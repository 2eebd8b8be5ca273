"""Kernel power k-means of several views or kernels at once, with typicality against noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rffpk._annealing.objective import WeightedViews
from rffpk._annealing.parameters import Plan
from rffpk._annealing.primal import FeatureRun
from rffpk._annealing.schedule import Result
from rffpk._data import validation
from rffpk._data.arrays import Array
from rffpk._data.passes import Rows, view_variances
from rffpk._data.rules import typicality
from rffpk._data.store import check_cache
from rffpk.feature_maps import (
    check_kernel,
    check_n_frequencies,
    fit_map,
)
from rffpk.power import PowerKMeans

# Multiples of the "mean" gamma for a single array: bandwidths of half, once and twice its own.
_BANK = (4.0, 1.0, 0.25)

MAX_TYPICALITY_M = 6.0

_RANGE = (1e-30, 1e30)  # of what squared distances are compared with, in float32 too


class RFFMultiKernelPowerKMeans(PowerKMeans):
    """Kernel power k-means of several views or kernels on random Fourier features (IP-RFF-MKPKM).

    Minimises sum_i M_s(d'_i1, ..., d'_ik) + lambda sum_l alpha_l log(L alpha_l) over centroids,
    weights alpha of L views on the simplex and typicalities u in [0, 1] [1]_, while s falls to
    minus infinity.
    With d_ij = sum_l alpha_l ||phi_l(x_i) - theta_jl||^2 and reference distances eta_l,
    d'_ij = u^m d_ij + (1 - u)^m sum_l alpha_l eta_l: a row far from every centroid is atypical of
    all, and hardly moves them.

    Parameters
    ----------
    n_clusters : int, default=8
        k, from 1 to n_samples.
    possibilistic : bool, default=True
        False leaves typicality out: RFF-MKPKM.
    m : float, default=2.0
        Fuzzifier of the typicality, 1 < m <= 6. The closer to one, the harder rows are kept or
        left out.
    eta : {"mean", "median"} or float, default="median"
        Reference distances, fixed at the start. "mean": the mean squared distance of a view's rows
        from their mean feature, the paper's choice where all centroids are there. "median": the
        median of the distances from the median feature, on a sample, which outliers do not
        inflate. A number > 0: the same for all views.
    weight_entropy : float, default=1.0
        lambda over the sum of the sample weights, > 0. The smaller, the more the views with small
        costs count.
    kernels : list or None, default=None
        For each view the name of a kernel of `RandomFourierFeatures`, or a pair of a name and its
        gamma. A single array becomes as many views as there are kernels. None: "rbf" with "mean"
        gamma for each view; a single array gets three, with 4, 1 and 1/4 times that gamma.
    n_frequencies : {"auto", "paper"} or int, default="auto"
        D of each view. "paper": ceil(4 log^3(2 k)). "auto": that, and at least 64; views of words
        need more, as in `RFFKernelPowerKMeans`.
    sampling : str, default="auto"
        As in `RandomFourierFeatures`.
    noise_threshold : float or None, default=None
        Rows whose typicality of their cluster is below this number in (0, 1] get the label -1.
    s0, anneal_factor, anneal_every, s_final, stop, sample : optional
        As in `PowerKMeans`; "auto" for `s0` takes the critical exponent of the typicality rule.
    init, n_init, swaps, max_iter, tol, n_jobs, verbose : optional
        As in `PowerKMeans`, with centres in the features of all views side by side.
    cache, memory_limit : optional
        As in `RFFKernelPowerKMeans`.
    random_state : int, RandomState instance or None, default=None
        Draws the frequencies, the sample and the seeds.

    Attributes
    ----------
    feature_maps_ : list of RandomFourierFeatures
        Fitted, one for each view.
    kernel_weights_ : ndarray of shape (n_views,)
        alpha, >= 0, of sum one.
    eta_ : ndarray of shape (n_views,), or None
        Reference distances; None without typicality.
    lambda_ : float
        weight_entropy times the sum of the sample weights.
    cluster_centers_ : ndarray of shape (n_clusters, 2 n_views D)
        Centroids, the views side by side.
    labels_ : ndarray of int32, shape (n_samples,)
        Nearest centroid of each row, or -1 (see `noise_threshold`).
    inertia_ : float
        The kernel k-means objective of the nearest centroids with the kernel sum_l alpha_l k_l.
    objective_ : float
        What is minimised, at `s_` and `cluster_centers_`: eq. (20) of [1]_ plus the constant
        lambda log L, >= 0.
    cache_, s_, n_iter_, sample_size_, history_, n_features_in_, feature_names_in_
        As in `RFFKernelPowerKMeans`; n_features_in_ counts the columns of all views, records of
        several views have "kernel_weights".

    Raises
    ------
    ValueError, TypeError
        If a parameter or a view is not as described; the view is named.
    MemoryError
        If ``cache=True`` and the features take more than `memory_limit`.

    Notes
    -----
    One pass over the rows does all views: O(n sum_l (d_l + k) D) time, O(n) memory beyond X. The
    typicality is taken before the weights, not after them as in the printed algorithm: both orders
    have the same fixed points, and the objective falls at each step.

    References
    ----------
    .. [1] Chen et al.: Enhancing kernel power k-means: scalable and robust clustering with random
       Fourier features and possibilistic method. Algorithm 2, eq. (20).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from rffpk import RFFMultiKernelPowerKMeans
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = RFFMultiKernelPowerKMeans(10, random_state=0).fit([X[:, :32], X[:, 32:]])
    >>> model.kernel_weights_.shape
    (2,)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        possibilistic: bool = True,
        m: float = 2.0,
        eta: str | float = "median",
        weight_entropy: float = 1.0,
        kernels: Any = None,
        n_frequencies: str | int = "auto",
        sampling: str = "auto",
        noise_threshold: float | None = None,
        s0: str | float = "auto",
        anneal_factor: str | float = "auto",
        anneal_every: str | int = "auto",
        s_final: str | float = "hard",
        stop: str = "annealed",
        sample: str | int | None = "auto",
        cache: str | bool = "auto",
        memory_limit: int | None = None,
        init: Any = "k-means++",
        n_init: str | int = "auto",
        swaps: str | int = "auto",
        max_iter: int = 1000,
        tol: float = 1e-3,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_clusters,
            s0=s0,
            anneal_factor=anneal_factor,
            anneal_every=anneal_every,
            s_final=s_final,
            stop=stop,
            sample=sample,
            init=init,
            n_init=n_init,
            swaps=swaps,
            max_iter=max_iter,
            tol=tol,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.possibilistic = possibilistic
        self.m = m
        self.eta = eta
        self.weight_entropy = weight_entropy
        self.kernels = kernels
        self.n_frequencies = n_frequencies
        self.sampling = sampling
        self.noise_threshold = noise_threshold
        self.cache = cache
        self.memory_limit = memory_limit

    _n_views: int  # in fit; 0: one array
    _widths: list[int]
    _objective: WeightedViews

    # ---- parameters and views ---------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.possibilistic, (bool, np.bool_)):
            raise TypeError(f"possibilistic == {self.possibilistic!r}, must be True or False.")
        check_n_frequencies(self.n_frequencies)
        check_cache(self.cache, self.memory_limit)
        validation.check_real(self.m, "m", 1, MAX_TYPICALITY_M, include="right")
        if isinstance(self.eta, str):
            validation.check_choice(self.eta, "eta", ("mean", "median"), also="a number > 0")
        else:
            validation.check_real(self.eta, "eta", *_RANGE)
        validation.check_real(self.weight_entropy, "weight_entropy", *_RANGE)
        for kernel, gamma in self._specifications(1):
            check_kernel(kernel, gamma, self.sampling)
        if self.noise_threshold is not None:
            validation.check_real(self.noise_threshold, "noise_threshold", 0, 1, include="right")
            if not self.possibilistic:
                raise ValueError("noise_threshold needs possibilistic=True.")

    def _specifications(self, n_views: int) -> list[tuple[Any, Any]]:
        """(kernel, gamma) of each view."""
        if self.kernels is None:
            return [("rbf", "mean")] * n_views
        if isinstance(self.kernels, str) or not isinstance(self.kernels, (list, tuple)):
            raise TypeError(
                f"kernels == {self.kernels!r}, must be a list of names, or of pairs of a name and "
                "its gamma."
            )
        pairs = [(k, "mean") if isinstance(k, str) else k for k in self.kernels]
        if not pairs or any(not isinstance(p, (list, tuple)) or len(p) != 2 for p in pairs):
            raise ValueError(
                f"kernels == {self.kernels!r}, must hold names, or pairs of a name and its gamma."
            )
        return [tuple(pair) for pair in pairs]

    def _check_views(self, X: Any, reset: bool) -> list[Array]:
        xs = validation.check_views(self, X, reset=reset)
        if not self._n_views:
            return xs * (len(_BANK) if self.kernels is None else len(self.kernels))
        if reset and self.kernels is not None and len(self.kernels) != len(xs):
            raise ValueError(f"kernels has {len(self.kernels)} entries for {len(xs)} views.")
        return xs

    # ---- fitting ----------------------------------------------------------------------------

    def _fit_maps(self, xs: list[Array], weight: Array | None, random: Any) -> list[Any]:
        specifications = self._specifications(len(xs))
        if self.kernels is None and not self._n_views:
            mean = fit_map(self, xs[0], "rbf", "mean", weight, random).gamma_
            specifications = [("rbf", factor * mean) for factor in _BANK]
        return [
            fit_map(self, x, kernel, gamma, weight, random)
            for x, (kernel, gamma) in zip(xs, specifications)
        ]

    def _make_objective(self, rows: Rows) -> WeightedViews:
        entropy = self.weight_entropy
        if not self.possibilistic:
            return WeightedViews(entropy)
        eta = reference_distances(rows, self.eta)
        return WeightedViews(entropy, eta, float(self.m), self.noise_threshold)

    def _publish(self, rows: Rows, run: FeatureRun, end: Result, plan: Plan) -> None:
        super()._publish(rows, run, end, plan)
        self.feature_maps_ = self._feature_maps
        self.kernel_weights_ = self._alpha
        self.lambda_ = self.weight_entropy * rows.total_weight
        self.eta_ = self._objective.eta

    # ---- using ------------------------------------------------------------------------------

    def typicality(self, X: Any) -> Array:
        """Typicality of the rows for each cluster.

        u_ij = 1 / (1 + (d_ij / eta)^(1/(m-1))) with the combined squared distances d and reference
        distances eta (Algorithm 2, step 2).

        Parameters
        ----------
        X : list of array-likes of shape (n_samples, n_features_l), or array-like
            As in `fit`.

        Returns
        -------
        typicality : ndarray of shape (n_samples, n_clusters)
            In [0, 1]: 1/2 at the reference distance, near zero for noise.

        Raises
        ------
        ValueError
            If the model has no typicality.
        """
        check_is_fitted(self)
        if self.eta_ is None:
            raise ValueError("typicality needs possibilistic=True.")
        distances = self._visit(X, -math.inf, ("distances",))[-1]["distances"]
        eta = float(self.kernel_weights_ @ self.eta_)
        return typicality(distances, np.array(eta, dtype=distances.dtype), self._objective.m)


# Rows that the median of distances is taken from: some 1 % of precision.
_MEDIAN_ROWS = 5000


def reference_distances(rows: Rows, eta: str | float) -> NDArray[np.float64]:
    """eta_l of each view; see `RFFMultiKernelPowerKMeans`."""
    if not isinstance(eta, str):
        return np.full(len(rows.xs), float(eta))
    found = view_variances(rows)
    if eta == "median":
        medians = _median_distances(rows.counted())
        found = np.where(medians > 0, medians, found)  # most rows of a view may be equal
    return np.where(found > 0, found, 1.0)  # a view without spread tells nothing


def _median_distances(rows: Rows) -> NDArray[np.float64]:
    """Weighted medians, view by view, of the squared distances from the median features."""
    step = -(-rows.n // _MEDIAN_ROWS)
    some = rows.take(np.arange(0, rows.n, step))
    medians = []
    for view in range(len(rows.xs)):
        features = some.view(view).features().astype(np.float64)
        features -= _median(features, some.weight)
        distances = np.einsum("if,if->i", features, features)
        medians.append(_median(distances[:, None], some.weight)[0])
    return np.array(medians)


def _median(values: Array, weight: Array | None) -> Array:
    """Of each column: the least value that, with all below it, has half of the weight."""
    if weight is None:
        middle = (len(values) - 1) // 2
        return np.partition(values, middle, axis=0)[middle]
    order = np.argsort(values, axis=0)
    below = np.cumsum(weight[order], axis=0, dtype=np.float64)
    places = (below < below[-1] / 2).sum(axis=0)
    return np.take_along_axis(values, np.take_along_axis(order, places[None], 0), 0)[0]
