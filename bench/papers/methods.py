"""Define the methods of the tables. Each takes (views, k, seed) and returns labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.utils import check_random_state

import rffpk
from bench.timing import timed

Array = np.ndarray
Run = Callable[[list[Array], int, int], Array]


@dataclass(frozen=True)
class Method:
    """A row of a table, with the protocol of a paper or with our defaults.

    It has a grid if the paper searches one.
    """

    name: str
    protocol: str  # "paper" or "defaults"
    grid: dict[str, Run]  # one entry if nothing is searched


def one(name: str, protocol: str, run: Run) -> Method:
    return Method(name, protocol, {"": run})


def mean_gamma(X: Array) -> float:
    """Return 1 / (2 sigma^2), sigma^2 the mean squared distance of two different rows."""
    return (len(X) - 1) / len(X) / (4 * X.var(axis=0).sum())


def scaled(views: list[Array], k: int, seed: int, run: Run) -> Array:
    """Return labels of a method on standardised columns; constant columns become zero."""
    return run([StandardScaler().fit_transform(X.astype(np.float64)) for X in views], k, seed)


def standardised(method: Method) -> Method:
    grid: dict[str, Run] = {
        variant: partial(scaled, run=run) for variant, run in method.grid.items()
    }
    return Method(f"{method.name}, standardised", method.protocol, grid)


class OneEmbedding:
    """A fusion whose embedding does not depend on the seed.

    The first call computes it. Later calls label its rows by the k-means of a fit with their seed,
    so that repeats cost little. `seconds` is the time of the first call, a whole fit.
    """

    def __init__(self, estimator: Any, **parameters: Any) -> None:
        self._estimator, self._parameters = estimator, parameters
        self._fitted: Any = None

    def __call__(self, views: list[Array], k: int, seed: int) -> Array:
        if self._fitted is None:
            model = self._estimator(k, random_state=seed, **self._parameters)
            self.seconds, self._fitted = timed(partial(model.fit, views))
            return self._fitted.labels_
        drawn = check_random_state(seed).randint(2**31 - 1)
        means = rffpk.PowerKMeans(k, n_init=self._fitted.n_init, random_state=drawn)
        return means.fit(normalize(self._fitted.embedding_)).labels_


SINGLE: dict[str, Any] = {
    "kernel k-means": rffpk.KernelKMeans,
    "power k-means": rffpk.PowerKMeans,
    "fuzzy c-means": rffpk.FuzzyCMeans,
    "KPK": rffpk.KernelPowerKMeans,
    "RFF-KPKM": rffpk.RFFKernelPowerKMeans,
    "Nystroem kernel k-means": rffpk.NystroemKernelKMeans,
}
FUSED: dict[str, Any] = {
    "AverageMKKM": rffpk.AverageMKKM,
    "MKKM": rffpk.MKKM,
    "MKKM-MR": rffpk.MKKMMR,
    "LKAM": rffpk.LKAM,
    "ONKC": rffpk.ONKC,
    "LMKKM, 400 landmarks": partial(rffpk.LMKKM, n_landmarks=400),
    "SimpleMKKM": rffpk.SimpleMKKM,
    "MKC-AE": partial(rffpk.SimpleMKKM, n_landmarks=1000),
    "FAMKKM": rffpk.FAMKKM,
    # the ablations of its paper, eq. (10) and eq. (7), with its tolerance
    "FAMKKM, partitions only": partial(rffpk.MVCLFA, mean_weight=0, tol=1e-6),
    "FAMKKM, kernels only": partial(rffpk.MKKM, tol=1e-6),
    "MKPK": rffpk.MultiKernelPowerKMeans,
    "RMKKM": rffpk.RMKKM,
}
VIEWS: dict[str, Any] = FUSED | {
    "SMKC": rffpk.SMKC,
    "MVC-LFA": rffpk.MVCLFA,
    "CoregSC": rffpk.CoregSC,
    "CoregSC, centroid": partial(rffpk.CoregSC, scheme="centroid"),
    "RFF-MKPKM": partial(rffpk.RFFMultiKernelPowerKMeans, typicality=None, kernels=None),
    "IP-RFF-MKPKM": partial(rffpk.RFFMultiKernelPowerKMeans, typicality="auto", kernels=None),
}


# Baselines whose embedding no seed changes, and whose fits take long.
SEEDLESS = ("MKKM-MR", "LKAM", "ONKC", "MVC-LFA", "CoregSC", "CoregSC, centroid")


def with_defaults(estimators: dict[str, Any]) -> list[Method]:
    def run(name: str) -> Run:
        if name in SEEDLESS:
            return OneEmbedding(estimators[name])
        return partial(fitted, estimator=estimators[name])

    return [one(name, "defaults", run(name)) for name in estimators]


# ---- single views -------------------------------------------------------------------------------


def spectral(views: list[Array], k: int, seed: int, gamma: float | None = None) -> Array:
    K = rbf_kernel(views[0], gamma=mean_gamma(views[0]) if gamma is None else gamma)
    return SpectralClustering(k, affinity="precomputed", random_state=seed).fit(K).labels_


def fitted(views: list[Array], k: int, seed: int, estimator: Any, **parameters: Any) -> Array:
    X = views if len(views) > 1 else views[0]
    return estimator(k, random_state=seed, **parameters).fit(X).labels_


def paper(estimator: Any, s0: float) -> dict[str, Any]:
    """Return the schedule of ``annealing="paper"`` from this exponent on."""
    annealing, init = estimator._paper
    begun = clone(annealing).set_params(start=s0)
    return {"annealing": begun, "init": init, "sample": None, **RFF}


RFF = {"tol": 1e-6, "n_init": 1}
KPK = {"annealing": rffpk.KernelPowerKMeans._paper.annealing, "n_init": 1}
S0 = (-5.0, -10.0, -15.0, -20.0, -25.0)
LAMBDAS = (0.1, 1.0, 10.0, 100.0, 1000.0)


def rff_kpkm() -> list[Method]:
    def grid(times: int) -> dict[str, Run]:
        return {
            f"s0={s0:g}": partial(
                with_features, times=times, **paper(rffpk.RFFKernelPowerKMeans, s0)
            )
            for s0 in S0
        }

    def with_features(
        views: list[Array], k: int, seed: int, times: int, **parameters: Any
    ) -> Array:
        D = times * math.ceil(4 * math.log(2 * k) ** 3)
        return fitted(
            views, k, seed, rffpk.RFFKernelPowerKMeans, gamma=0.5e-6, n_frequencies=D,
            sampling="iid", **parameters,
        )  # fmt: skip

    exact: dict[str, Run] = {
        f"s0={s0:g}": partial(fitted, estimator=rffpk.KernelPowerKMeans, gamma=0.5e-6,
                              annealing=rffpk.Annealing(start=s0, factor=1.04, passes=3),
                              init="k-means", n_init=1)
        for s0 in S0
    }  # fmt: skip
    plain: dict[str, Run] = {
        f"s0={s0:g}": partial(fitted, estimator=rffpk.PowerKMeans, **paper(rffpk.PowerKMeans, s0))
        for s0 in S0
    }
    return [
        one("kernel k-means", "paper",
            partial(fitted, estimator=rffpk.KernelKMeans, gamma=0.5e-6, n_init=1)),
        one("spectral", "paper", partial(spectral, gamma=0.5e-6)),
        Method("power k-means", "paper", plain),
        Method("KPK", "paper", exact),
        Method("RFF-KPKM", "paper", grid(1)),
        Method("RFF-KPKM, 4 D", "paper", grid(4)),
        standardised(Method("KPK", "paper", exact)),
        standardised(Method("RFF-KPKM", "paper", grid(1))),
        one("spectral", "defaults", spectral),
        *with_defaults(SINGLE),
    ]  # fmt: skip


def seeds(X: Array, k: int, seed: int, init: str) -> Array:
    """Draw indices of initial rows, at random or by k-means++ in the space of the kernel."""
    random = np.random.default_rng(seed)
    if init == "random":
        return random.choice(len(X), k, replace=False)
    rows = [int(random.integers(len(X)))]
    least = np.full(len(X), np.inf)
    while len(rows) < k:
        K = rbf_kernel(X, X[rows[-1:]], gamma=mean_gamma(X))[:, 0]
        least = np.minimum(least, np.maximum(1 - K, 0))
        rows.append(int(random.choice(len(X), p=least / least.sum())))
    return np.array(rows)


def from_seeds(
    views: list[Array], k: int, seed: int, estimator: Any, init: str, **parameters: Any
) -> Array:
    """Fit from the seeds of a repeat, which all methods share.

    Seeds are rows for power k-means, and weights of the rows for methods of a kernel.
    """
    X = views[0]
    rows = seeds(X, k, seed, init)
    start = X[rows] if estimator is rffpk.PowerKMeans else np.zeros((k, len(X)))
    if estimator is not rffpk.PowerKMeans:
        start[np.arange(k), rows] = 1
    return fitted(views, k, seed, estimator, init=start, **parameters)


def from_labels(views: list[Array], k: int, seed: int) -> Array:
    labels = np.random.default_rng(seed).integers(k, size=len(views[0]))
    return fitted(views, k, seed, rffpk.KernelKMeans, init=labels)


def kpk(init: str = "random") -> list[Method]:
    power = {"KPK": (rffpk.KernelPowerKMeans, {}),
             "power k-means": (rffpk.PowerKMeans, {"sample": None})}  # fmt: skip
    early = clone(KPK["annealing"]).set_params(until="objective")
    rows = [
        one("kernel k-means", "paper",
            partial(from_seeds, estimator=rffpk.KernelKMeans, init=init, n_init=1)),
        one("spectral", "paper", spectral),
    ]  # fmt: skip
    for name, (estimator, more) in power.items():
        run = partial(from_seeds, estimator=estimator, init=init, **KPK, **more)
        rests = partial(run, annealing=early, tol=1e-4)
        rows += [one(name, "paper", run), one(f"{name}, until it rests", "paper", rests)]
    if init == "random":  # in one of the two tables only
        rows.append(one("kernel k-means, random labels", "paper", from_labels))
        rows += with_defaults(SINGLE)
    return rows


def large() -> list[Method]:
    """Return methods for many rows: RFF-KPKM at one point of its grid, and all with defaults."""
    rows = RFF | {"annealing": "paper"}
    return [
        one("RFF-KPKM", "paper",
            partial(fitted, estimator=rffpk.RFFKernelPowerKMeans, sampling="iid", **rows)),
        one("power k-means", "paper", partial(fitted, estimator=rffpk.PowerKMeans, **rows)),
        one("spectral", "defaults", spectral),
        *with_defaults(SINGLE),
    ]  # fmt: skip


# ---- several views or kernels -------------------------------------------------------------------


def on_mean(views: list[Array], k: int, seed: int, run: Run) -> Array:
    return run([np.mean(views, axis=0)], k, seed)


def on_kernel(views: list[Array], k: int, seed: int, number: int, run: Run) -> Array:
    return run([views[number]], k, seed)


def spectral_on(views: list[Array], k: int, seed: int) -> Array:
    return SpectralClustering(k, affinity="precomputed", random_state=seed).fit(views[0]).labels_


# Their points are not a grid to search: their score is the mean over the points.
AVERAGED = ("kernel k-means, average of kernels", "spectral, average of kernels")


def mkpk() -> list[Method]:
    """Return methods whose views are kernels."""
    precomputed = {"kernels": "precomputed"}
    multi = partial(fitted, estimator=rffpk.MultiKernelPowerKMeans, **precomputed)
    single = partial(fitted, estimator=rffpk.KernelKMeans, kernel="precomputed")
    lloyd = partial(single, init="random", n_init=1)
    fused = {name: partial(estimator, **precomputed) for name, estimator in FUSED.items()}
    return [
        *(
            Method(name, "paper", {f"kernel {i}": partial(on_kernel, number=i, run=run)
                                   for i in range(12)})
            for name, run in zip(AVERAGED, (lloyd, spectral_on))
        ),
        one("kernel k-means", "paper", partial(on_mean, run=lloyd)),
        one("kernel k-means", "defaults", partial(on_mean, run=single)),
        one("spectral", "paper", partial(on_mean, run=spectral_on)),
        one("MKKM", "paper", partial(fitted, estimator=rffpk.MKKM, **precomputed)),
        Method("RMKKM", "paper", {
            f"weight_norm={gamma:.1f}": partial(
                fitted, estimator=rffpk.RMKKM, weight_norm=gamma, **precomputed
            )
            for gamma in (0.1, 0.3, 0.5, 0.7, 0.9)
        }),
        one("MKPK", "paper", partial(multi, annealing="paper", n_init=1)),
        one("MKPK, weight_entropy=0.1", "paper",
            partial(multi, annealing="paper", n_init=1, weight_entropy=0.1)),
        *with_defaults(fused),
    ]  # fmt: skip


IP = {"n_frequencies": "paper"}


def ip_rff_mkpkm() -> list[Method]:
    def with_lambda(
        views: list[Array], k: int, seed: int, estimator: Any, lam: float, **parameters: Any
    ) -> Array:
        return fitted(
            views, k, seed, estimator, weight_entropy=lam / len(views[0]),
            kernels=[("rbf", 0.5e-6)] * len(views), **parameters,
        )  # fmt: skip

    def grid(typicality: Any) -> dict[str, Run]:
        multi = rffpk.RFFMultiKernelPowerKMeans
        return {
            f"s0={s0:g} lambda={lam:g}": partial(
                with_lambda, estimator=multi, lam=lam, typicality=typicality,
                **IP | paper(multi, s0),
            )
            for s0 in S0
            for lam in LAMBDAS
        }  # fmt: skip

    exact: dict[str, Run] = {
        f"lambda={lam:g}": partial(
            with_lambda, estimator=rffpk.MultiKernelPowerKMeans, lam=lam,
            annealing=rffpk.Annealing(start=-5.0, factor=1.04, passes=2), init="k-means", n_init=1,
        )
        for lam in LAMBDAS
    }  # fmt: skip

    both = [
        Method("RFF-MKPKM", "paper", grid(None)),
        Method("IP-RFF-MKPKM", "paper", grid(rffpk.Typicality(eta="mean"))),
        *with_defaults({name: VIEWS[name] for name in ("RFF-MKPKM", "IP-RFF-MKPKM")}),
    ]
    others = {name: VIEWS[name] for name in VIEWS if "RFF" not in name}
    return [
        *both,
        *map(standardised, both),
        Method("MKPK", "paper", exact),
        *with_defaults(others),
    ]


def fusion(step: int = 1) -> list[Method]:
    """Return SMKC, SimpleMKKM, MKC-AE, FAMKKM and the methods that they are compared with.

    The penalty of MKKM-MR is every `step`-th power of two of its paper's grid.
    """

    def famkkm(**parameters: Any) -> Run:
        return partial(fitted, estimator=rffpk.FAMKKM, n_init=50, **parameters)

    grid = {
        f"lambda1={a:g} lambda2={b:g}": famkkm(lambda1=a, lambda2=b)
        for a in (0.01, 0.1, 1.0)
        for b in (0.01, 0.1, 1.0)
    }
    penalised: dict[str, Run] = {
        f"diversity={power:g}": OneEmbedding(rffpk.MKKMMR, n_init=20, diversity=power)
        for power in 2.0 ** np.arange(-15, 16, step)
    }
    local: dict[str, Run] = {
        f"n_neighbors={size:g} diversity={power:g}": OneEmbedding(
            rffpk.LKAM, n_init=20, n_neighbors=size, diversity=power
        )
        for size in (0.05, 0.1, 0.2, 0.5, 0.95)
        for power in (2.0**-12, 2.0**-6, 1.0)
    }
    near: dict[str, Run] = {
        f"rho={rho:g} diversity={power:g}": OneEmbedding(
            rffpk.ONKC, n_init=20, rho=rho, diversity=power, max_iter=50, tol=1e-3
        )
        for rho in (2.0**-6, 1.0, 2.0**6)
        for power in (2.0**-6, 1.0, 2.0**6)
    }
    only = ("FAMKKM, partitions only", "FAMKKM, kernels only")
    twenty = ("LMKKM, 400 landmarks", "AverageMKKM", "MKKM", "SimpleMKKM", "MKC-AE", "SMKC")
    return [
        *(one(name, "paper", partial(fitted, estimator=VIEWS[name], n_init=20)) for name in twenty),
        one("LMKKM", "paper", OneEmbedding(rffpk.LMKKM, n_init=20)),
        Method("MKKM-MR", "paper", penalised),
        Method("LKAM", "paper", local),
        Method("ONKC", "paper", near),
        Method("FAMKKM", "paper", grid),
        *(one(name, "paper", partial(fitted, estimator=VIEWS[name], n_init=50)) for name in only),
        *with_defaults(VIEWS),
    ]


def mkc_ae() -> list[Method]:
    grid: dict[str, Run] = {
        f"{n} landmarks": partial(fitted, estimator=rffpk.SimpleMKKM, n_init=20, n_landmarks=n)
        for n in (10, *range(200, 1001, 100))
    }
    return [
        one("SimpleMKKM", "paper", partial(fitted, estimator=rffpk.SimpleMKKM, n_init=20)),
        Method("MKC-AE", "paper", grid),
        *with_defaults({name: VIEWS[name] for name in ("SimpleMKKM", "MKC-AE")}),
    ]


def single_views(n_views: int) -> list[Method]:
    """Return baselines on one view, the best view by the labels."""

    def best(name: str, protocol: str, estimator: Any, **parameters: Any) -> Method:
        grid: dict[str, Run] = {
            f"view {i}": partial(on_view, number=i, estimator=estimator, **parameters)
            for i in range(n_views)
        }
        return Method(name, protocol, grid)

    return [
        best("single best view", "paper", rffpk.AverageMKKM, n_init=20, normalize_rows=False),
        best("single best view", "defaults", rffpk.AverageMKKM),
        best("Nystroem kernel k-means, best view", "defaults", rffpk.NystroemKernelKMeans),
    ]


def on_view(views: list[Array], k: int, seed: int, number: int, **parameters: Any) -> Array:
    return fitted([views[number]], k, seed, **parameters)
