"""The methods of the tables. Each takes (views, k, seed) and returns labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import SpectralClustering
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

import rffpk

Array = np.ndarray
Run = Callable[[list[Array], int, int], Array]


@dataclass(frozen=True)
class Method:
    """A row of a table: how a paper runs it, over a grid where the paper searches one, or our
    defaults."""

    name: str
    protocol: str  # "paper" or "defaults"
    grid: dict[str, Run]  # one entry where nothing is searched


def one(name: str, protocol: str, run: Run) -> Method:
    return Method(name, protocol, {"": run})


def mean_gamma(X: Array) -> float:
    """1 / (2 sigma^2), sigma^2 the mean squared distance of two different rows."""
    return (len(X) - 1) / len(X) / (4 * X.var(axis=0).sum())


def scaled(views: list[Array], k: int, seed: int, run: Run) -> Array:
    """A method on standardised columns; constant ones become zero."""
    return run([StandardScaler().fit_transform(X.astype(np.float64)) for X in views], k, seed)


def standardised(method: Method) -> Method:
    grid: dict[str, Run] = {
        variant: partial(scaled, run=run) for variant, run in method.grid.items()
    }
    return Method(f"{method.name}, standardised", method.protocol, grid)


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
    "SimpleMKKM": rffpk.SimpleMKKM,
    "MKC-AE": partial(rffpk.SimpleMKKM, n_landmarks=1000),
    "FAMKKM": rffpk.FAMKKM,
    "FAMKKM, partitions only": partial(rffpk.FAMKKM, fusion="partition"),
    "FAMKKM, kernels only": partial(rffpk.FAMKKM, fusion="kernel"),
    "MKPK": rffpk.MultiKernelPowerKMeans,
}
VIEWS: dict[str, Any] = FUSED | {
    "SMKC": rffpk.SMKC,
    "RFF-MKPKM": partial(rffpk.RFFMultiKernelPowerKMeans, possibilistic=False),
    "IP-RFF-MKPKM": rffpk.RFFMultiKernelPowerKMeans,
}


def as_they_come(estimators: dict[str, Any]) -> list[Method]:
    return [
        one(name, "defaults", partial(fitted, estimator=estimator))
        for name, estimator in estimators.items()
    ]


# ---- single views -------------------------------------------------------------------------------


def spectral(views: list[Array], k: int, seed: int, gamma: float | None = None) -> Array:
    K = rbf_kernel(views[0], gamma=mean_gamma(views[0]) if gamma is None else gamma)
    return SpectralClustering(k, affinity="precomputed", random_state=seed).fit(K).labels_


def fitted(views: list[Array], k: int, seed: int, estimator: Any, **parameters: Any) -> Array:
    X = views if len(views) > 1 else views[0]
    return estimator(k, random_state=seed, **parameters).fit(X).labels_


KPK = {"s0": -1.0, "anneal_factor": 1.04, "anneal_every": 5, "n_init": 1}
RFF = {"anneal_factor": 1.04, "anneal_every": 3, "init": "k-means", "stop": "objective",
       "sample": None, "tol": 1e-6, "n_init": 1}  # fmt: skip
S0 = (-5.0, -10.0, -15.0, -20.0, -25.0)


def rff_kpkm() -> list[Method]:
    def grid(times: int) -> dict[str, Run]:
        return {f"s0={s0:g}": partial(with_features, times=times, s0=s0, **RFF) for s0 in S0}

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
                              **KPK | {"s0": s0, "anneal_every": 3, "init": "k-means"})
        for s0 in S0
    }  # fmt: skip
    plain: dict[str, Run] = {
        f"s0={s0:g}": partial(fitted, estimator=rffpk.PowerKMeans, s0=s0, **RFF) for s0 in S0
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
        *as_they_come(SINGLE),
    ]  # fmt: skip


def kpk(init: str = "random") -> list[Method]:
    start = {"init": init, "n_init": 1}
    return [
        one("KPK", "paper", partial(fitted, estimator=rffpk.KernelPowerKMeans, **KPK | start)),
        one("kernel k-means", "paper", partial(fitted, estimator=rffpk.KernelKMeans, **start)),
        one("power k-means", "paper",
            partial(fitted, estimator=rffpk.PowerKMeans, sample=None, **KPK | start)),
        one("spectral", "paper", spectral),
        *(as_they_come(SINGLE) if init == "random" else []),  # once is enough
    ]  # fmt: skip


def large() -> list[Method]:
    """Many rows, which no paper has: a point of RFF-KPKM's grid on all rows, and what comes."""
    rows = RFF | {"s0": -5.0}
    return [
        one("RFF-KPKM", "paper",
            partial(fitted, estimator=rffpk.RFFKernelPowerKMeans, sampling="iid", **rows)),
        one("power k-means", "paper", partial(fitted, estimator=rffpk.PowerKMeans, **rows)),
        one("spectral", "defaults", spectral),
        *as_they_come(SINGLE),
    ]  # fmt: skip


# ---- several views or kernels -------------------------------------------------------------------


def on_mean(views: list[Array], k: int, seed: int, run: Run) -> Array:
    return run([np.mean(views, axis=0)], k, seed)


def spectral_on(views: list[Array], k: int, seed: int) -> Array:
    return SpectralClustering(k, affinity="precomputed", random_state=seed).fit(views[0]).labels_


def mkpk() -> list[Method]:
    """Views are kernels."""
    given = {"kernels": "precomputed"}
    multi = partial(fitted, estimator=rffpk.MultiKernelPowerKMeans, **given)
    single = partial(fitted, estimator=rffpk.KernelKMeans, kernel="precomputed")
    lloyd = partial(single, init="random", n_init=1)
    fused = {name: partial(estimator, **given) for name, estimator in FUSED.items()}
    return [
        one("kernel k-means", "paper", partial(on_mean, run=lloyd)),
        one("kernel k-means", "defaults", partial(on_mean, run=single)),
        one("spectral", "paper", partial(on_mean, run=spectral_on)),
        one("MKKM", "paper", partial(fitted, estimator=rffpk.MKKM, **given)),
        one("MKPK", "paper", partial(multi, **KPK, init="random")),
        one("MKPK, weight_entropy=0.1", "paper",
            partial(multi, **KPK, init="random", weight_entropy=0.1)),
        *as_they_come(fused),
    ]  # fmt: skip


IP = RFF | {"anneal_every": 2, "eta": "mean", "n_frequencies": "paper", "sampling": "iid"}


def ip_rff_mkpkm() -> list[Method]:
    def with_lambda(views: list[Array], k: int, seed: int, lam: float, **parameters: Any) -> Array:
        return fitted(
            views, k, seed, rffpk.RFFMultiKernelPowerKMeans, weight_entropy=lam / len(views[0]),
            kernels=[("rbf", 0.5e-6)] * len(views), **parameters,
        )  # fmt: skip

    def grid(possibilistic: bool) -> dict[str, Run]:
        return {
            f"s0={s0:g} lambda={lam:g}": partial(
                with_lambda, lam=lam, s0=s0, possibilistic=possibilistic, **IP
            )
            for s0 in (-5.0, -15.0, -25.0)
            for lam in (0.1, 1.0, 10.0, 100.0, 1000.0)
        }

    both = [
        Method("RFF-MKPKM", "paper", grid(False)),
        Method("IP-RFF-MKPKM", "paper", grid(True)),
        *as_they_come({name: VIEWS[name] for name in ("RFF-MKPKM", "IP-RFF-MKPKM")}),
    ]
    others = {name: VIEWS[name] for name in VIEWS if "RFF" not in name}
    return [*both, *map(standardised, both), *as_they_come(others)]


def fusion() -> list[Method]:
    """SMKC, SimpleMKKM, MKC-AE, FAMKKM and what they are compared with."""

    def famkkm(**parameters: Any) -> Run:
        return partial(fitted, estimator=rffpk.FAMKKM, n_init=50, **parameters)

    grid = {
        f"lambda1={a:g} lambda2={b:g}": famkkm(lambda1=a, lambda2=b)
        for a in (0.01, 0.1, 1.0)
        for b in (0.01, 0.1, 1.0)
    }
    twenty = ("AverageMKKM", "MKKM", "SimpleMKKM", "MKC-AE", "SMKC")
    return [
        *(one(name, "paper", partial(fitted, estimator=VIEWS[name], n_init=20)) for name in twenty),
        Method("FAMKKM", "paper", grid),
        one("FAMKKM, partitions only", "paper", famkkm(fusion="partition")),
        one("FAMKKM, kernels only", "paper", famkkm(fusion="kernel")),
        *as_they_come(VIEWS),
    ]


def single_views(n_views: int) -> list[Method]:
    """Baselines of one view, the best one by the labels."""

    def best(name: str, protocol: str, estimator: Any, **parameters: Any) -> Method:
        grid: dict[str, Run] = {
            f"view {i}": partial(on_view, number=i, estimator=estimator, **parameters)
            for i in range(n_views)
        }
        return Method(name, protocol, grid)

    return [
        best("single best view", "paper", rffpk.AverageMKKM, n_init=20),
        best("single best view", "defaults", rffpk.AverageMKKM),
        best("Nystroem kernel k-means, best view", "defaults", rffpk.NystroemKernelKMeans),
    ]


def on_view(views: list[Array], k: int, seed: int, number: int, **parameters: Any) -> Array:
    return fitted([views[number]], k, seed, **parameters)
