"""MKKM-MR: multiple kernel k-means with a penalty on weights of kernels that are alike."""

from __future__ import annotations

from rffpk._docs import FUSION, documented
from rffpk._utils import validation
from rffpk._utils.estimator import parameters
from rffpk.fusion.base import KernelFusion
from rffpk.fusion.spectral import alternation, diversity_penalty, matrices
from rffpk.maps.kernels import FittedKernel


@documented(
    FUSION, "labels_", "embedding_", "eigenvalues_", "landmarks_", "kernel_weights_", "objective_",
    "cluster_centers_", "inertia_", "s_", "n_iter_", "history_", "memberships_", "n_features_in_",
    "feature_names_in_",
)  # fmt: skip
@parameters
class MKKMMR(KernelFusion):
    """Multiple kernel k-means with matrix-induced regularisation (MKKM-MR).

    Minimises sum_l alpha_l^2 Tr(K_l (I - HH')) + (diversity / 2) alpha'M alpha with M_pq =
    Tr(K_p K_q) over weights alpha >= 0 of sum one and matrices H with orthonormal columns, in turn
    [1]_: H from the leading eigenvectors of sum_l alpha_l^2 K_l, and alpha by a quadratic
    programme. M makes it costly to give large weights to two kernels that are alike. Annealed
    k-means on the rows of H, the embedding, gives the labels.

    Parameters
    ----------
    diversity : float
        Weight >= 0 of the penalty, lambda in the paper, which chooses it by the labels from 2^-15,
        2^-14, ..., 2^15. M grows with n_samples^2, the other term with n_samples: the more rows,
        the more a given value matters. With 1 or more, at a few hundred rows or more, the penalty
        alone decides. 0: `MKKM`.
    max_iter : int
        Largest number of iterations.
    tol : float
        Tolerance >= 0: the iterations end when the objective falls by at most `tol` of itself.

    Attributes
    ----------
    objective_ : float
        The minimised sum, at the last iteration.

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described, or if products of kernels overflow.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` iterations did not reach `tol`.

    Notes
    -----
    The programme, min alpha'(2 Z + diversity M)alpha / 2 with Z the diagonal matrix of Tr(K_l (I -
    HH')), is convex for positive semidefinite kernels, and both updates are exact, so that the
    objective never rises. Of equal minima, such as those of two equal kernels, the weights of least
    norm are taken.

    For n rows: O(L n^2) memory and O(L^2 n^2) time for M; an iteration costs O(L n^2 k) and, for
    the eigenvectors, O(n^2 k) for some tens of steps of Lanczos' method. With `n_landmarks` n is
    their number.

    References
    ----------
    .. [1] Liu, Dou, Yin, Wang, Zhu: Multiple kernel k-means clustering with matrix-induced
       regularization. AAAI 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rffpk import MKKMMR
    >>> X, _ = load_iris(return_X_y=True)
    >>> MKKMMR(3, random_state=0).fit([X[:, :2], X[:, 2:]]).kernel_weights_.shape
    (2,)
    """

    diversity: float = 0.01
    n_landmarks: int | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        validation.check_real(self.diversity, "diversity", 0)

    def _scale_matters(self) -> bool:
        return float(self.diversity) > 0

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        Ks = matrices(kernels, self._weight)
        penalty = diversity_penalty(Ks, Ks, float(self.diversity))
        self._keep(self._converge(alternation(Ks, k, penalty), len(Ks[0])))
