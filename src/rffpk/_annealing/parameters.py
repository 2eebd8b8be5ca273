"""The parameters of annealing: their checks, and the starts that they define."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, get_args

import numpy as np

from rffpk._annealing.schedule import Hard, Schedule, Start, Stop, portfolio
from rffpk._data import validation
from rffpk._data.validation import Auto, is_option

MAX_S = -0.2  # the largest exponent whose weights stay in the range of float32 up to k = 10^4

# docs/annealing.md: on 29 data sets three starts and these swaps end within 0.1 % of the best of
# twenty k-means++ runs, and below it on most. Few clusters have few different swaps.
_AUTO_SWAPS, _SWAPS_A_CLUSTER = 20, 4

_FIXED_FACTOR = 1.1  # the anneal_factor "auto" if anneal_every is a number


@dataclass(frozen=True)
class Plan:
    """The starts and swaps that an estimator runs."""

    starts: list[Start]
    swaps: int = 0  # swaps end after this many failures in a row; 0: no swaps
    unit: float = 1.0  # objectives are multiplied by it when they are reported
    critical: float = 0.0  # the critical exponent
    lowered_by: str = "s_final"  # the parameter that lowers the last exponent

    @property
    def ends_hard(self) -> bool:
        """Whether the last passes are those of k-means; all starts end alike."""
        return self.starts[-1].schedule.ends_hard


class Annealed(Protocol):
    """Estimators with these parameters."""

    s0: Auto | float
    anneal_factor: Auto | float
    anneal_every: Auto | int
    s_final: Hard | float
    stop: Stop
    init: Any
    n_init: Auto | int
    max_iter: int
    tol: float


def check_annealing(estimator: Annealed) -> None:
    """`s0`, `anneal_factor`, `anneal_every`, `s_final` and `stop`."""
    s0, factor, every = estimator.s0, estimator.anneal_factor, estimator.anneal_every
    if not is_option(s0, "auto"):
        validation.check_real(s0, "s0", high=MAX_S, also="'auto'")
    if not is_option(factor, "auto"):
        validation.check_real(factor, "anneal_factor", 1, include="neither", also="'auto'")
    if not is_option(every, "auto"):
        validation.check_int(every, "anneal_every", 1)
    if not is_option(estimator.s_final, "hard"):
        highest = MAX_S if is_option(s0, "auto") else float(s0)
        validation.check_real(estimator.s_final, "s_final", high=highest, also="'hard'")
    validation.check_choice(estimator.stop, "stop", get_args(Stop))


def check_exponent(s: Any) -> float:
    """`s` of memberships: at most MAX_S, or minus infinity."""
    if isinstance(s, (float, np.floating)) and s == -math.inf:
        return -math.inf
    return validation.check_real(s, "s", high=MAX_S)


def schedule(estimator: Annealed, critical: float) -> Schedule:
    """The schedule that the parameters define, which may depend on the critical exponent."""
    s_final = -math.inf if is_option(estimator.s_final, "hard") else float(estimator.s_final)
    s0 = min(-0.5, critical) if is_option(estimator.s0, "auto") else float(estimator.s0)
    factor = None if is_option(estimator.anneal_factor, "auto") else float(estimator.anneal_factor)
    every = None if is_option(estimator.anneal_every, "auto") else int(estimator.anneal_every)
    return Schedule(
        s0=max(s0, s_final),
        factor=_FIXED_FACTOR if factor is None and every is not None else factor,
        every=every,
        s_final=s_final,
        stop=estimator.stop,
        max_iter=int(estimator.max_iter),
        tol=float(estimator.tol),
    )


def is_automatic(estimator: Annealed) -> bool:
    """Whether `s0`, `anneal_factor`, `anneal_every`, `init` and `stop` all have their defaults;
    only then the starts differ in kind."""
    choices = (estimator.s0, estimator.anneal_factor, estimator.anneal_every)
    automatic = all(is_option(choice, "auto") for choice in choices)
    return automatic and is_option(estimator.init, "k-means++") and estimator.stop == "annealed"


def annealed_starts(estimator: Annealed, critical: float, n_auto: int) -> list[Start]:
    """The starts that the parameters define; with automatic parameters starts of different kinds,
    `n_auto` of them unless `n_init` is a number."""
    base = schedule(estimator, critical)
    if not is_automatic(estimator):
        return given_starts(base, estimator.init, estimator.n_init)
    n_init = n_auto if is_option(estimator.n_init, "auto") else int(estimator.n_init)
    return portfolio(base, critical, n_init)


def given_starts(schedule: Schedule, init: Any, n_init: Auto | int) -> list[Start]:
    """`n_init` starts of one kind; one start if `init` is not the name of a method."""
    one = is_option(n_init, "auto") or not isinstance(init, str)
    return [Start("given", schedule, is_option(init, "k-means"))] * (1 if one else int(n_init))


def automatic_swaps(n_clusters: int) -> int:
    """The failures in a row that end the swaps, if their number is automatic."""
    return 0 if n_clusters == 1 else min(_AUTO_SWAPS, _SWAPS_A_CLUSTER * n_clusters)
