"""The objectives that annealing minimises over the centroids and the view weights.

Steps over features and steps with exact kernels use the same objective. It holds no state of a run:
the rows or the run hold the view weights alpha and the total weight of the rows, sum_i p_i, of a
sample or of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rffpk._data.arrays import Array
from rffpk._data.rows import Rows
from rffpk._data.rules import view_penalty, view_weights


class PowerMean:
    """sum_i p_i M_s(d_i1, ..., d_ik), with one view or views of equal weight."""

    learns_weights = False  # whether the view weights are learned
    eta: Array | None = None  # reference distances of the typicality
    coverage: Array | None = None  # the shares of the rows that have the views; None: all have all

    def begin(self, rows: Rows) -> Rows:
        """The rows with the constants of the objective, for the beginning of annealing."""
        return rows

    def entropy(self, total_weight: float) -> float:
        """lambda, the weight of the entropy of the view weights; 0 if they are not learned."""
        return 0.0

    def reweigh(self, costs: Array, constant: float, total_weight: float) -> Array:
        """New view weights (L,) from the costs of the views at the new centroids.

        The cost of view l is sum_ij p_i w_ij d'_ij,l; `costs` holds it with v in place of w, and
        w = `constant` v.
        """
        return view_weights(costs, constant, self.entropy(total_weight), self.coverage)

    def penalty(self, alpha: Array, total_weight: float) -> float:
        """The term of the objective that is added to sum_i p_i M_s."""
        return view_penalty(alpha, self.entropy(total_weight), self.coverage)

    def restore(self, rows: Rows, alpha: Array) -> Rows:
        """New rows with the learned view weights and the constants of the objective."""
        return rows


@dataclass(frozen=True)
class WeightedViews(PowerMean):
    """sum_i p_i M_s(d'_i1, ..., d'_ik) + lambda sum_l alpha_l log(L alpha_l), over alpha too.

    d'_ij = u^m d_ij + (1 - u)^m sum_l alpha_l eta_l with the best typicality u where reference
    distances eta are given, else d_ij: eq. (20) of IP-RFF-MKPKM plus the constant lambda log L,
    so that it is >= 0 and tolerances are relative to it. Without eta it is that of MKPK. Where rows
    lack views, see docs/math.md, section 19.
    """

    weight_entropy: float  # lambda over sum_i p_i
    eta: Array | None = None  # (L,)
    m: float = 0.0  # fuzzifier of the typicality
    coverage: Array | None = None  # (L,)

    learns_weights = True

    def begin(self, rows: Rows) -> Rows:
        return rows if self.eta is None else replace(rows, eta=self.eta, m=self.m)

    def entropy(self, total_weight: float) -> float:
        return self.weight_entropy * total_weight

    def restore(self, rows: Rows, alpha: Array) -> Rows:
        return replace(self.begin(rows), alpha=alpha)
