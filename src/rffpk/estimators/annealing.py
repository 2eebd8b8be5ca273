"""The parameter `annealing` of a class, and the parameters of a search that follow from it."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, get_args

from rffpk.anneal.plan import SearchParameters
from rffpk.anneal.schedule import Until
from rffpk.estimators.base import parameters
from rffpk.estimators.bases import BaseEstimator
from rffpk.rows import checks
from rffpk.rows.checks import MAX_S, Auto, Level, is_option
from rffpk.system.report import warn

# The words of parameters, which annotations and checks share.
Critical = Literal["critical"]
Adaptive = Literal["adaptive"]
Hard = Literal["hard"]
Word = Literal["auto", "paper"]
Init = Literal["k-means++", "random", "k-means"]  # over features


@parameters
class Annealing(BaseEstimator):
    """How annealing proceeds: the parameter `annealing` of the classes of power k-means.

    The exponent s of the power mean begins at `start`, is multiplied by `factor` after each stage
    of `passes` passes, and ends at `end`. The defaults are what the word "auto" stands for
    (``docs/maintainers/annealing.md``). In `set_params` of a model with an `Annealing`,
    ``annealing__start`` is its `start`.

    Parameters
    ----------
    start : "critical" or float, default="critical"
        First exponent, at most -0.2. "critical": -0.5, or the exponent above which centroids merge,
        if it is lower.
    factor : "adaptive" or float, default="adaptive"
        Number > 1 that multiplies s after a stage. "adaptive": 1.05 after stages of many passes,
        up to 1.5 after stages that converge at once; 1.1 if `passes` is a number.
    passes : "adaptive" or int, default="adaptive"
        Passes in a stage, at least 1. "adaptive": until centroids hardly move, at most 10.
    end : "hard" or float, default="hard"
        Last exponent. "hard": where power means are within 0.1 % of least squared distances; passes
        of k-means follow. A number <= `start`: passes there converge, and assign rows softly.
    until : {"settled", "objective"}, default="settled"
        When a start ends. "settled": when passes have converged after annealing. "objective": when
        a pass, at any exponent, changes the objective by at most `tol` of itself, as in the papers.
    swaps : "auto" or int, default="auto"
        How many failed trials in a row to move a centroid end the search; fewer for k > 20. "auto":
        20, or 4 k if less, or 0 if starts are alike. > 0: needs `end` "hard" and `until` "settled".

    Examples
    --------
    >>> from rffpk import Annealing, PowerKMeans
    >>> PowerKMeans(2, annealing=Annealing(end=-4.0)).fit([[0.0], [0.2], [5.0], [5.2]]).s_
    -4.0
    """

    start: Critical | float = "critical"
    factor: Adaptive | float = "adaptive"
    passes: Adaptive | int = "adaptive"
    end: Hard | float = "hard"
    until: Until = "settled"
    swaps: Auto | int = "auto"


class Paper(NamedTuple):
    """The parameters that annealing="paper" stands for, in addition to ``sample=None``."""

    annealing: Annealing
    init: str  # replaces "k-means++"


# The protocols of power k-means on features, of several views, and with exact kernels.
OF_FEATURES = Paper(Annealing(start=-5.0, factor=1.04, passes=3, until="objective"), "k-means")
OF_VIEWS = Paper(Annealing(start=-5.0, factor=1.04, passes=2, until="objective"), "k-means")
OF_KERNELS = Paper(Annealing(start=-1.0, factor=1.04, passes=5), "random")


def check_search_parameters(
    estimator: Any, inits: tuple[str, ...] | None = None, also: str = ""
) -> int:
    """Check the search parameters of a clusterer; return the number of clusters.

    The result is 1 if the number is to be estimated. `n_clusters` and `n_init` are always checked,
    and `sample` and `noise` if the class has them. If `inits` are given, the names that `init`
    accepts, then `init`, `max_iter` and `tol` are checked too. `also` says what else `init`
    accepts."""
    k = 1
    if isinstance(estimator.n_clusters, str):
        checks.check_choice(estimator.n_clusters, "n_clusters", get_args(Level), also="a number")
    else:
        k = checks.check_int(estimator.n_clusters, "n_clusters", 1)
    if not is_option(estimator.n_init, "auto"):
        checks.check_int(estimator.n_init, "n_init", 1)
    if inits is not None:
        if isinstance(estimator.init, str):
            checks.check_choice(estimator.init, "init", inits, also=also)
        elif isinstance(estimator.n_clusters, str):
            raise ValueError(
                f"n_clusters={estimator.n_clusters!r}: does not go with given centroids. Set init "
                "to the name of a method, or n_clusters to the number of centroids in init."
            )
        elif not is_option(estimator.n_init, "auto") and estimator.n_init > 1:
            warn(
                f"n_init={estimator.n_init}: has no effect, because there is one start from a "
                "given init. Set n_init=1, or set init to the name of a method.",
                UserWarning,
            )
        checks.check_int(estimator.max_iter, "max_iter", 1)
        checks.check_real(estimator.tol, "tol", 0)
    checks.check_bool(getattr(estimator, "store_memberships", False), "store_memberships")
    sample, noise = (getattr(estimator, name, None) for name in ("sample", "noise"))
    if sample is not None and not is_option(sample, "auto"):
        checks.check_int(sample, "sample", k)
    if noise is not None and not is_option(noise, "auto"):
        checks.check_real(noise, "noise", 0, 1, include="neither", also="'auto' or None")
    if noise is not None and getattr(estimator, "allow_missing_views", False):
        raise ValueError("noise needs all views of all rows: pass allow_missing_views=False.")
    return k


def search_parameters(
    model: Any, inits: tuple[str, ...] = get_args(Init), also: str = "an array or a callable"
) -> SearchParameters:
    """Check the parameters of a model; return them as parameters of its search.

    `inits` are the names that `init` accepts, and `also` what else it accepts."""
    k = check_search_parameters(model, inits, also)
    annealing, init = getattr(model, "annealing", "auto"), model.init
    sample = getattr(model, "sample", None)
    if is_option(annealing, "paper"):
        annealing, instead = model._paper
        init = instead if is_option(init, "k-means++") else init
        sample = None if is_option(sample, "auto") else sample
    fields = _read(annealing)
    fixed = [fields[name] for name in ("start", "factor", "passes") if fields[name] is not None]
    is_default = not fixed and fields["until"] == "settled"
    return SearchParameters(
        k=k,
        n_init=None if isinstance(model.n_init, str) else int(model.n_init),
        init=init,
        sample=sample,
        max_iter=int(model.max_iter),
        tol=float(model.tol),
        is_default=is_default,
        differs=is_default and is_option(init, "k-means++"),
        ends_hard=math.isinf(fields["end"]),
        **fields,
    )


def _read(annealing: Any) -> dict[str, Any]:
    """Check the parameter `annealing`; return it as fields of `SearchParameters`.

    None stands for "critical", "adaptive" and "auto". `end` is -inf for "hard". Without annealing
    `start` is -inf."""
    parameter = annealing if isinstance(annealing, Annealing) else Annealing()
    if annealing is not None and annealing is not parameter:
        checks.check_choice(annealing, "annealing", get_args(Word), "an Annealing or None")
    start, factor, passes, end, swaps = None, None, None, -math.inf, None
    if not is_option(parameter.start, "critical"):
        start = checks.check_real(parameter.start, "annealing.start", high=MAX_S, also="'critical'")
    if not is_option(parameter.factor, "adaptive"):
        factor = checks.check_real(
            parameter.factor, "annealing.factor", 1, include="neither", also="'adaptive'"
        )
    if not is_option(parameter.passes, "adaptive"):
        passes = checks.check_int(parameter.passes, "annealing.passes", 1)
    if not is_option(parameter.end, "hard"):
        highest = MAX_S if start is None else start
        end = checks.check_real(parameter.end, "annealing.end", high=highest, also="'hard'")
    checks.check_choice(parameter.until, "annealing.until", get_args(Until))
    if not is_option(parameter.swaps, "auto"):
        swaps = checks.check_int(parameter.swaps, "annealing.swaps", 0)
        if swaps and not (math.isinf(end) and parameter.until == "settled"):
            raise ValueError(
                f"annealing.swaps={parameter.swaps}: needs annealing.end='hard' and "
                "annealing.until='settled', as swaps lower the objective of k-means. Set swaps=0."
            )
    return {
        "start": -math.inf if annealing is None else start,
        "factor": factor,
        "passes": passes,
        "end": end,
        "until": parameter.until,
        "swaps": swaps,
    }
