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
from rffpk import kernels

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
        one("RFF-KPKM", "defaults", partial(fitted, estimator=rffpk.RFFKernelPowerKMeans)),
        one("KPK", "defaults", partial(fitted, estimator=rffpk.KernelPowerKMeans)),
        one("power k-means", "defaults", partial(fitted, estimator=rffpk.PowerKMeans)),
    ]  # fmt: skip


def kpk(init: str = "random") -> list[Method]:
    def method(name: str, protocol: str, run: Run) -> Method:
        return one(name, protocol, partial(scaled, run=run))

    start = {"init": init, "n_init": 1}
    return [
        method("KPK", "paper", partial(fitted, estimator=rffpk.KernelPowerKMeans, **KPK | start)),
        method("kernel k-means", "paper", partial(fitted, estimator=rffpk.KernelKMeans, **start)),
        method("power k-means", "paper",
               partial(fitted, estimator=rffpk.PowerKMeans, sample=None, **KPK | start)),
        method("spectral", "paper", spectral),
        method("KPK", "defaults", partial(fitted, estimator=rffpk.KernelPowerKMeans)),
        method("RFF-KPKM", "defaults", partial(fitted, estimator=rffpk.RFFKernelPowerKMeans)),
        method("Nystroem kernel k-means", "defaults",
               partial(fitted, estimator=rffpk.NystroemKernelKMeans)),
    ]  # fmt: skip


# ---- several views or kernels -------------------------------------------------------------------


def bank(views: list[Array], k: int, seed: int, run: Run) -> Array:
    """The twelve kernels of a single array, as matrices."""
    X = StandardScaler().fit_transform(views[0].astype(np.float64))
    specs = kernels.du2015(X)
    return run([kernels.FittedKernel(X, spec).matrix() for spec in specs], k, seed)


def on_mean(views: list[Array], k: int, seed: int, spectral: bool) -> Array:
    K = np.mean(views, axis=0)
    if spectral:
        return SpectralClustering(k, affinity="precomputed", random_state=seed).fit(K).labels_
    model = rffpk.KernelKMeans(k, kernel="precomputed", init="random", n_init=1, random_state=seed)
    return model.fit(K).labels_


def mkpk() -> list[Method]:
    def method(name: str, protocol: str, run: Run) -> Method:
        return one(name, protocol, partial(bank, run=run))

    given = {"kernels": "precomputed"}
    multi = partial(fitted, estimator=rffpk.MultiKernelPowerKMeans, **given)
    return [
        method("kernel k-means", "paper", partial(on_mean, spectral=False)),
        method("spectral", "paper", partial(on_mean, spectral=True)),
        method("MKKM", "paper", partial(fitted, estimator=rffpk.MKKM, **given)),
        method("MKPK", "paper", partial(multi, **KPK, init="random")),
        method("MKPK, weight_entropy=0.1", "paper",
               partial(multi, **KPK, init="random", weight_entropy=0.1)),
        method("MKPK", "defaults", multi),
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

    multi = rffpk.RFFMultiKernelPowerKMeans
    return [
        Method("RFF-MKPKM", "paper", grid(False)),
        Method("IP-RFF-MKPKM", "paper", grid(True)),
        one("RFF-MKPKM", "defaults", partial(fitted, estimator=multi, possibilistic=False)),
        one("IP-RFF-MKPKM", "defaults", partial(fitted, estimator=multi)),
        standardised(Method("RFF-MKPKM", "paper", grid(False))),
        standardised(Method("IP-RFF-MKPKM", "paper", grid(True))),
        standardised(one("RFF-MKPKM", "defaults",
                         partial(fitted, estimator=multi, possibilistic=False))),
        standardised(one("IP-RFF-MKPKM", "defaults", partial(fitted, estimator=multi))),
        one("AverageMKKM", "defaults", partial(fitted, estimator=rffpk.AverageMKKM)),
    ]  # fmt: skip


def best_view(views: list[Array], k: int, seed: int, number: int) -> Array:
    return fitted([views[number]], k, seed, rffpk.AverageMKKM)


def fusion() -> list[Method]:
    """SMKC, SimpleMKKM, MKC-AE, FAMKKM and what they are compared with."""
    grid: dict[str, Run] = {
        f"lambda1={a:g} lambda2={b:g}": partial(
            fitted, estimator=rffpk.FAMKKM, lambda1=a, lambda2=b
        )
        for a in (0.01, 0.1, 1.0)
        for b in (0.01, 0.1, 1.0)
    }
    multi = rffpk.RFFMultiKernelPowerKMeans
    return [
        one("AverageMKKM", "paper", partial(fitted, estimator=rffpk.AverageMKKM, n_init=20)),
        one("MKKM", "paper", partial(fitted, estimator=rffpk.MKKM, n_init=20)),
        one("SimpleMKKM", "paper", partial(fitted, estimator=rffpk.SimpleMKKM, n_init=20)),
        one("SMKC", "paper", partial(fitted, estimator=rffpk.SMKC, n_init=20)),
        one("MKC-AE", "paper",
            partial(fitted, estimator=rffpk.SimpleMKKM, n_init=20, n_landmarks=1000)),
        Method("FAMKKM", "paper", grid),
        one("FAMKKM, partitions only", "paper",
            partial(fitted, estimator=rffpk.FAMKKM, fusion="partition")),
        one("FAMKKM, kernels only", "paper",
            partial(fitted, estimator=rffpk.FAMKKM, fusion="kernel")),
        one("SimpleMKKM", "defaults", partial(fitted, estimator=rffpk.SimpleMKKM)),
        one("SMKC", "defaults", partial(fitted, estimator=rffpk.SMKC)),
        one("FAMKKM", "defaults", partial(fitted, estimator=rffpk.FAMKKM)),
        one("MKPK", "defaults", partial(fitted, estimator=rffpk.MultiKernelPowerKMeans)),
        one("RFF-MKPKM", "defaults", partial(fitted, estimator=multi, possibilistic=False)),
        one("IP-RFF-MKPKM", "defaults", partial(fitted, estimator=multi)),
    ]  # fmt: skip


def single_views(n_views: int) -> Method:
    grid: dict[str, Run] = {f"view {i}": partial(best_view, number=i) for i in range(n_views)}
    return Method("single best view", "paper", grid)
