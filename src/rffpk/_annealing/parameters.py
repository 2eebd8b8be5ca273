"""The parameters of annealing, checked and made into starts: one meaning in every estimator."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

from rffpk._annealing.schedule import Schedule, Start, portfolio
from rffpk._data import validation
from rffpk._data.validation import is_option

MAX_S = -0.2  # the largest exponent whose weights float32 holds up to k = 10^4

_FIXED_FACTOR = 1.1  # where only the passes of a stage are given


@dataclass(frozen=True)
class Plan:
    """What an estimator asks of the search."""

    starts: list[Start]
    swaps: int = 0  # failed swaps in a row that end them; 0: no swaps
    unit: float = 1.0  # objectives are reported in multiples of it
    merger_advice: str = ""  # added to the warning that centroids coincide


class Annealed(Protocol):
    """Estimators with these parameters."""

    s0: str | float
    anneal_factor: str | float
    anneal_every: str | int
    s_final: str | float
    stop: str
    init: Any
    n_init: str | int
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
    validation.check_choice(estimator.stop, "stop", ("annealed", "objective"))


def schedule(estimator: Annealed, critical: float) -> Schedule:
    """The schedule that the parameters ask for, which may depend on the critical exponent."""
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
        max_iter=estimator.max_iter,
        tol=estimator.tol,
    )


def is_automatic(estimator: Annealed) -> bool:
    """Whether all of `s0`, `anneal_factor`, `anneal_every`, `init` and `stop` have their defaults:
    then starts differ."""
    choices = (estimator.s0, estimator.anneal_factor, estimator.anneal_every)
    automatic = all(is_option(choice, "auto") for choice in choices)
    return automatic and is_option(estimator.init, "k-means++") and estimator.stop == "annealed"


def annealed_starts(estimator: Annealed, critical: float, n_auto: int) -> list[Start]:
    """The starts that are asked for, or different ones: `n_auto` unless `n_init` is a number."""
    found = schedule(estimator, critical)
    if not is_automatic(estimator):
        return given_starts(found, estimator.init, estimator.n_init)
    n_init = n_auto if is_option(estimator.n_init, "auto") else int(estimator.n_init)
    return portfolio(found, critical, n_init)


def given_starts(schedule: Schedule, init: Any, n_init: str | int) -> list[Start]:
    """What `init` and `n_init` ask for: the same start again, once where it is given."""
    one = is_option(n_init, "auto") or not isinstance(init, str)
    return [Start("given", schedule, is_option(init, "k-means"))] * (1 if one else int(n_init))
