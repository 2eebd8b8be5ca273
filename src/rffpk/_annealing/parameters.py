"""The parameters of annealing, checked and made a schedule: one meaning in every estimator."""

from __future__ import annotations

import math
from typing import Any

from rffpk._annealing.schedule import Schedule, Start, portfolio
from rffpk._data import validation
from rffpk._data.validation import is_word

MAX_S = -0.2  # the largest exponent whose weights float32 holds up to k = 10^4

_FIXED_FACTOR = 1.1  # where only the passes at each exponent are given


class Annealed:
    """What estimators with `s0`, `anneal_factor`, `anneal_every`, `s_final` and `stop` share."""

    s0: str | float
    anneal_factor: str | float
    anneal_every: str | int
    s_final: str | float
    stop: str
    init: Any
    n_init: str | int
    max_iter: int
    tol: float

    def _check_annealing(self) -> None:
        if not is_word(self.s0, "auto"):
            validation.check_real(self.s0, "s0", high=MAX_S, also="'auto'")
        if not is_word(self.anneal_factor, "auto"):
            validation.check_real(
                self.anneal_factor, "anneal_factor", 1, include="neither", also="'auto'"
            )
        if not is_word(self.anneal_every, "auto"):
            validation.check_int(self.anneal_every, "anneal_every", 1)
        if not is_word(self.s_final, "hard"):
            top = MAX_S if is_word(self.s0, "auto") else float(self.s0)
            validation.check_real(self.s_final, "s_final", high=top, also="'hard'")
        validation.check_choice(self.stop, "stop", ("annealed", "objective"))

    def _schedule(self, critical: float) -> Schedule:
        s_final = -math.inf if is_word(self.s_final, "hard") else float(self.s_final)
        s0 = min(-0.5, critical) if is_word(self.s0, "auto") else float(self.s0)
        factor = None if is_word(self.anneal_factor, "auto") else float(self.anneal_factor)
        every = None if is_word(self.anneal_every, "auto") else int(self.anneal_every)
        return Schedule(
            s0=max(s0, s_final),
            factor=_FIXED_FACTOR if factor is None and every is not None else factor,
            every=every,
            s_final=s_final,
            stop=self.stop,
            max_iter=self.max_iter,
            tol=self.tol,
        )

    def _is_default(self) -> bool:
        """Whether start and schedule are left to us."""
        choices = (self.s0, self.anneal_factor, self.anneal_every)
        ours = all(is_word(choice, "auto") for choice in choices)
        return ours and is_word(self.init, "k-means++") and self.stop == "annealed"

    def _annealed_starts(self, critical: float, n_auto: int) -> list[Start]:
        """What is asked for, or starts that differ: `n_auto` unless `n_init` is a number."""
        schedule = self._schedule(critical)
        if not self._is_default():
            return given_starts(schedule, self.init, self.n_init)
        n_init = n_auto if is_word(self.n_init, "auto") else int(self.n_init)
        return portfolio(schedule, critical, n_init)


def given_starts(schedule: Schedule, init: Any, n_init: str | int) -> list[Start]:
    """What `init` and `n_init` ask for: the same start again, once where it is given."""
    one = is_word(n_init, "auto") or not isinstance(init, str)
    return [Start("given", schedule, is_word(init, "k-means"))] * (1 if one else int(n_init))
