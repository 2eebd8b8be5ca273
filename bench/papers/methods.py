"""Define the methods of the tables. Each takes (views, k, seed) and returns labels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
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


def searched(name: str, make: Callable[..., Run], **values: Sequence[float]) -> Method:
    """Return a method of a paper over all combinations of values."""
    grid = {}
    for point in itertools.product(*values.values()):
        title = " ".join(f"{key}={value:g}" for key, value in zip(values, point))
        grid[title] = make(*point)
    return Method(name, "paper", grid)


def fitted(views: list[Array], k: int, seed: int, estimator: Any, **parameters: Any) -> Array:
    X = views if len(views) > 1 else views[0]
    return estimator(k, random_state=seed, **parameters).fit(X).labels_


def of(estimator: Any, **parameters: Any) -> Run:
    """Return fits of an estimator."""
    return partial(fitted, estimator=estimator, **parameters)


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
    runs = {
        name: OneEmbedding(estimator) if name in SEEDLESS else of(estimator)
        for name, estimator in estimators.items()
    }
    return [one(name, "defaults", run) for name, run in runs.items()]


# ---- single views -------------------------------------------------------------------------------


def spectral(views: list[Array], k: int, seed: int, gamma: float | None = None) -> Array:
    K = rbf_kernel(views[0], gamma=mean_gamma(views[0]) if gamma is None else gamma)
    return spectral_on([K], k, seed)


def spectral_on(views: list[Array], k: int, seed: int) -> Array:
    return SpectralClustering(k, affinity="precomputed", random_state=seed).fit(views[0]).labels_


def paper(estimator: Any, s0: float) -> dict[str, Any]:
    """Return the schedule of ``annealing="paper"`` from this exponent on."""
    annealing, init = estimator._paper
    begun = clone(annealing).set_params(start=s0)
    return {"annealing": begun, "init": init, "sample": None, **RFF}


RFF = {"tol": 1e-6, "n_init": 1}
KPK = {"annealing": rffpk.KernelPowerKMeans._paper.annealing, "n_init": 1}
S0 = (-5.0, -10.0, -15.0, -20.0, -25.0)
LAMBDAS = (0.1, 1.0, 10.0, 100.0, 1000.0)


def exact(estimator: Any, start: float, passes: int, **parameters: Any) -> Run:
    """Return fits of exact kernels with the schedule of the papers on random features."""
    annealing = rffpk.Annealing(start=start, factor=1.04, passes=passes)
    return of(estimator, annealing=annealing, init="k-means", n_init=1, **parameters)


def rff_kpkm() -> list[Method]:
    gamma = {"gamma": 0.5e-6}

    def with_features(
        views: list[Array], k: int, seed: int, times: int, **parameters: Any
    ) -> Array:
        D = times * math.ceil(4 * math.log(2 * k) ** 3)
        run = of(rffpk.RFFKernelPowerKMeans, n_frequencies=D, sampling="iid", **gamma)
        return run(views, k, seed, **parameters)

    def features(name: str, times: int) -> Method:
        cls = rffpk.RFFKernelPowerKMeans
        return searched(
            name, lambda s0: partial(with_features, times=times, **paper(cls, s0)), s0=S0
        )

    plain = searched(
        "power k-means", lambda s0: of(rffpk.PowerKMeans, **paper(rffpk.PowerKMeans, s0)), s0=S0
    )
    kernel = searched("KPK", lambda s0: exact(rffpk.KernelPowerKMeans, s0, 3, **gamma), s0=S0)
    return [
        one("kernel k-means", "paper", of(rffpk.KernelKMeans, n_init=1, **gamma)),
        one("spectral", "paper", partial(spectral, **gamma)),
        plain,
        kernel,
        features("RFF-KPKM", 1),
        features("RFF-KPKM, 4 D", 4),
        standardised(kernel),
        standardised(features("RFF-KPKM", 1)),
        one("spectral", "defaults", spectral),
        *with_defaults(SINGLE),
    ]


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
    run = partial(from_seeds, init=init)
    early = clone(KPK["annealing"]).set_params(until="objective")
    rows = [
        one("kernel k-means", "paper", partial(run, estimator=rffpk.KernelKMeans, n_init=1)),
        one("spectral", "paper", spectral),
    ]
    for name, power in (
        ("KPK", partial(run, estimator=rffpk.KernelPowerKMeans, **KPK)),
        ("power k-means", partial(run, estimator=rffpk.PowerKMeans, sample=None, **KPK)),
    ):
        rests = partial(power, annealing=early, tol=1e-4)
        rows += [one(name, "paper", power), one(f"{name}, until it rests", "paper", rests)]
    if init == "random":  # in one of the two tables only
        rows.append(one("kernel k-means, random labels", "paper", from_labels))
        rows += with_defaults(SINGLE)
    return rows


def large() -> list[Method]:
    """Return methods for many rows: RFF-KPKM at one point of its grid, and all with defaults."""
    rows = RFF | {"annealing": "paper"}
    return [
        one("RFF-KPKM", "paper", of(rffpk.RFFKernelPowerKMeans, sampling="iid", **rows)),
        one("power k-means", "paper", of(rffpk.PowerKMeans, **rows)),
        one("spectral", "defaults", spectral),
        *with_defaults(SINGLE),
    ]


# ---- several views or kernels -------------------------------------------------------------------


def on_mean(views: list[Array], k: int, seed: int, run: Run) -> Array:
    return run([np.mean(views, axis=0)], k, seed)


def on_view(views: list[Array], k: int, seed: int, number: int, run: Run) -> Array:
    return run([views[number]], k, seed)


def on_each(name: str, protocol: str, what: str, number: int, run: Run) -> Method:
    """Return a method on each single view or kernel."""
    grid = {f"{what} {i}": partial(on_view, number=i, run=run) for i in range(number)}
    return Method(name, protocol, grid)


# Their points are not a grid to search: their score is the mean over the points.
AVERAGED = ("kernel k-means, average of kernels", "spectral, average of kernels")


def mkpk() -> list[Method]:
    """Return methods whose views are kernels."""
    own = {"kernels": "precomputed"}
    multi = of(rffpk.MultiKernelPowerKMeans, annealing="paper", n_init=1, **own)
    single = of(rffpk.KernelKMeans, kernel="precomputed")
    lloyd = partial(single, init="random", n_init=1)
    norms = (0.1, 0.3, 0.5, 0.7, 0.9)
    return [
        on_each(AVERAGED[0], "paper", "kernel", 12, lloyd),
        on_each(AVERAGED[1], "paper", "kernel", 12, spectral_on),
        one("kernel k-means", "paper", partial(on_mean, run=lloyd)),
        one("kernel k-means", "defaults", partial(on_mean, run=single)),
        one("spectral", "paper", partial(on_mean, run=spectral_on)),
        one("MKKM", "paper", of(rffpk.MKKM, **own)),
        searched("RMKKM", lambda x: of(rffpk.RMKKM, weight_norm=x, **own), weight_norm=norms),
        one("MKPK", "paper", multi),
        one("MKPK, weight_entropy=0.1", "paper", partial(multi, weight_entropy=0.1)),
        *with_defaults({name: partial(estimator, **own) for name, estimator in FUSED.items()}),
    ]


IP = {"n_frequencies": "paper"}


def ip_rff_mkpkm() -> list[Method]:
    def with_lambda(views: list[Array], k: int, seed: int, lam: float, run: Run) -> Array:
        kernels = [("rbf", 0.5e-6)] * len(views)
        return run(views, k, seed, weight_entropy=lam / len(views[0]), kernels=kernels)

    def multi(name: str, typicality: Any) -> Method:
        def make(s0: float, lam: float) -> Run:
            cls = rffpk.RFFMultiKernelPowerKMeans
            run = of(cls, typicality=typicality, **IP, **paper(cls, s0))
            return partial(with_lambda, lam=lam, run=run)

        return searched(name, make, **{"s0": S0, "lambda": LAMBDAS})

    kernel = exact(rffpk.MultiKernelPowerKMeans, -5.0, 2)
    both = [
        multi("RFF-MKPKM", None),
        multi("IP-RFF-MKPKM", rffpk.Typicality(eta="mean")),
        *with_defaults({name: VIEWS[name] for name in ("RFF-MKPKM", "IP-RFF-MKPKM")}),
    ]
    return [
        *both,
        *map(standardised, both),
        searched("MKPK", lambda x: partial(with_lambda, lam=x, run=kernel), **{"lambda": LAMBDAS}),
        *with_defaults({name: VIEWS[name] for name in VIEWS if "RFF" not in name}),
    ]


def fusion(step: int = 1) -> list[Method]:
    """Return SMKC, SimpleMKKM, MKC-AE, FAMKKM and the methods that they are compared with.

    The penalty of MKKM-MR is every `step`-th power of two of its paper's grid.
    """
    mr, lkam = partial(OneEmbedding, rffpk.MKKMMR), partial(OneEmbedding, rffpk.LKAM)
    onkc = partial(OneEmbedding, rffpk.ONKC, n_init=20, max_iter=50, tol=1e-3)
    famkkm = partial(of, rffpk.FAMKKM, n_init=50)
    lambdas, powers = (0.01, 0.1, 1.0), 2.0 ** np.arange(-15, 16, step)
    twenty = ("LMKKM, 400 landmarks", "AverageMKKM", "MKKM", "SimpleMKKM", "MKC-AE", "SMKC")
    fifty = ("FAMKKM, partitions only", "FAMKKM, kernels only")
    return [
        *(one(name, "paper", of(VIEWS[name], n_init=20)) for name in twenty),
        one("LMKKM", "paper", OneEmbedding(rffpk.LMKKM, n_init=20)),
        searched("MKKM-MR", lambda x: mr(n_init=20, diversity=x), diversity=powers),
        searched(
            "LKAM", lambda size, x: lkam(n_init=20, n_neighbors=size, diversity=x),
            n_neighbors=(0.05, 0.1, 0.2, 0.5, 0.95), diversity=(2.0**-12, 2.0**-6, 1.0),
        ),
        searched(
            "ONKC", lambda rho, x: onkc(rho=rho, diversity=x),
            rho=(2.0**-6, 1.0, 2.0**6), diversity=(2.0**-6, 1.0, 2.0**6),
        ),
        searched(
            "FAMKKM", lambda a, b: famkkm(lambda1=a, lambda2=b), lambda1=lambdas, lambda2=lambdas
        ),
        *(one(name, "paper", of(VIEWS[name], n_init=50)) for name in fifty),
        *with_defaults(VIEWS),
    ]  # fmt: skip


def mkc_ae() -> list[Method]:
    run = of(rffpk.SimpleMKKM, n_init=20)
    sizes = (10, *range(200, 1001, 100))
    return [
        one("SimpleMKKM", "paper", run),
        Method("MKC-AE", "paper", {f"{n} landmarks": partial(run, n_landmarks=n) for n in sizes}),
        *with_defaults({name: VIEWS[name] for name in ("SimpleMKKM", "MKC-AE")}),
    ]


def single_views(n_views: int) -> list[Method]:
    """Return baselines on one view, the best view by the labels."""
    name, nystroem = "single best view", "Nystroem kernel k-means, best view"
    leading = of(rffpk.AverageMKKM, n_init=20, normalize_rows=False)
    return [
        on_each(name, "paper", "view", n_views, leading),
        on_each(name, "defaults", "view", n_views, of(rffpk.AverageMKKM)),
        on_each(nystroem, "defaults", "view", n_views, of(rffpk.NystroemKernelKMeans)),
    ]
