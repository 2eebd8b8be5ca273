"""Measure the papers' figures: each function returns its numbers as Markdown."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import vonmises_fisher
from sklearn.cluster import SpectralClustering
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

import rffpk
from bench import tables
from bench.papers import methods
from bench.papers.cells import load
from bench.scores import subspace_distance

Curves = dict[str, list[float]]


def measure(name: str, data: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FIGURES[name](data)


def table(what: str, sizes: list[Any], curves: Curves) -> str:
    rows = zip(*([f"{x:g}" for x in sizes], *([f"{y:.4g}" for y in ys] for ys in curves.values())))
    return tables.markdown([what, *curves], rows)


def mean(score: Callable[[int], float], seeds: int) -> float:
    return float(np.mean([score(seed) for seed in range(seeds)]))


def standardised(dataset: str, data: Path) -> tuple[list[np.ndarray], np.ndarray]:
    views, y = load(dataset, data)
    return [StandardScaler().fit_transform(X) for X in views], y


def acc(y: np.ndarray, labels: np.ndarray) -> float:
    return 100 * rffpk.clustering_accuracy(y, labels)


# ---- RFF-KPKM -----------------------------------------------------------------------------------


def convergence(data: Path) -> str:
    """Return the rises of the objective by iterations, in the paper's protocol."""
    curves: Curves = {}
    for dataset, possibilistic in (("hw2", True), ("hw2", False), ("yale", False)):
        views, y = load(dataset, data)
        model = rffpk.RFFMultiKernelPowerKMeans(
            len(np.unique(y)), max_iter=100, random_state=0,
            typicality=rffpk.Typicality(eta="mean") if possibilistic else None,
            kernels=[("rbf", 0.5e-6)] * len(views), annealing="paper", n_init=1, tol=1e-7,
            **methods.IP,
        ).fit(views)  # fmt: skip
        objectives = [r["objective"] for r in model.history_ if r["stage"] == "anneal"]
        name = f"{dataset}, {'with' if possibilistic else 'without'} typicality"
        curves[name] = [value / objectives[0] for value in objectives]
    rises = max(max(np.diff(values)) for values in curves.values())
    reached = {
        name: next(i for i, v in enumerate(values) if v < values[-1] * 1.001) + 1
        for name, values in curves.items()
    }
    return (
        f"Largest rise from one iteration to the next: {rises:.1e}. Iterations until the "
        f"objective is within 0.1 % of its end: {reached}. The paper: monotone, converged near 30."
    )


def sensitivity(data: Path) -> str:
    """Return ACC on HW2 by s0 and lambda, in the paper's protocol."""
    views, y = load("hw2", data)
    grid = next(m.grid for m in methods.ip_rff_mkpkm() if m.name == "IP-RFF-MKPKM")

    def score(s0: float, lam: float) -> float:
        run = grid[f"s0={s0:g} lambda={lam:g}"]
        return mean(lambda seed: acc(y, run(views, 10, seed)), 20)

    curves = {f"s0={s0:g}": [score(s0, lam) for lam in methods.LAMBDAS] for s0 in methods.S0}
    return table("lambda", [*methods.LAMBDAS], curves)


def frequencies(data: Path) -> str:
    """Return ACC against D from 5 to 100."""
    sizes = [5, 10, 20, 30, 40, 60, 80, 100]
    curves: Curves = {}
    for dataset in ("mfeat", "coil20", "pendigits"):
        views, y = standardised(dataset, data)

        def score(D: int, sampling: str, X: Any = views[0], y: Any = y) -> float:
            run = methods.of(rffpk.RFFKernelPowerKMeans, n_frequencies=D, sampling=sampling)
            return mean(lambda seed: acc(y, run([X], len(np.unique(y)), seed)), 5)

        for sampling in ("iid", "auto"):
            curves[f"{dataset}, {sampling}"] = [score(D, sampling) for D in sizes]
    shares = {name: round(min(v[2:5]) / max(v), 3) for name, v in curves.items()}  # D = 20, 30, 40
    return (
        f"{table('D', sizes, curves)}\n\n"
        f"Least ACC at D = 20 to 40 over the largest: {shares}. The paper: at least 0.85."
    )


# ---- KPK ----------------------------------------------------------------------------------------


def von_mises_fisher(data: Path) -> str:
    """Return NMI for k directions on the sphere in R^20, kernel exp(-arccos(x'y)/2)."""
    sizes = [10, 20, 30, 50, 75, 100]
    means = [np.mean([_of_directions(k, seed) for seed in range(4)], axis=0) for k in sizes]
    names = ("KPK", "kernel k-means", "power k-means", "spectral")
    return table("k", sizes, dict(zip(names, np.transpose(means).tolist())))


def _of_directions(k: int, seed: int) -> list[float]:
    random = np.random.default_rng(seed)
    means = random.standard_normal((k, 20))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    y = random.integers(k, size=20 * k)
    X = np.vstack([vonmises_fisher(means[j], 30).rvs(1, random_state=random) for j in y])
    K = np.exp(-np.arccos(np.clip(X @ X.T, -1, 1)) / 2)
    common = {"init": "random", "random_state": seed, "n_init": 5}
    fits = (
        rffpk.KernelPowerKMeans(k, kernel="precomputed", **methods.KPK | common).fit(K),
        rffpk.KernelKMeans(k, kernel="precomputed", **common).fit(K),
        rffpk.PowerKMeans(k, **methods.KPK | common).fit(X),
        SpectralClustering(k, affinity="precomputed", random_state=seed).fit(K),
    )
    return [normalized_mutual_info_score(y, model.labels_) for model in fits]


def rings(data: Path) -> str:
    """Return ARI of ten clusters: five arcs on an inner ring and five on an outer; sigma = 1."""
    random = np.random.default_rng(0)
    angles = np.concatenate([2 * np.pi * (j + 0.7 * random.random(60)) / 5 for j in range(5)] * 2)
    radius = np.repeat([2.0, 4.5], 300) + 0.15 * random.standard_normal(600)
    X = radius[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    y = np.repeat(np.arange(10), 60)
    common = {"gamma": 0.5, "init": "random", "n_init": 1}
    models: dict[str, Any] = {
        "KPK": rffpk.KernelPowerKMeans(10, **methods.KPK | common),
        "kernel k-means": rffpk.KernelKMeans(10, **common),
        "RFF-KPKM (paper's schedule)": rffpk.RFFKernelPowerKMeans(
            10, **methods.KPK | common, sample=None
        ),
        "RFF-KPKM (defaults)": rffpk.RFFKernelPowerKMeans(10, gamma=0.5),
        "k-means (power, defaults)": rffpk.PowerKMeans(10),
    }
    rows = []
    for name, model in models.items():
        fits = (model.set_params(random_state=seed).fit(X).labels_ for seed in range(20))
        scores = [adjusted_rand_score(y, labels) for labels in fits]
        rows.append((name, f"{np.mean(scores):.3f}", f"{min(scores):.3f}"))
    columns = ("method", "mean ARI of 20 starts", "worst")
    paper = "The paper: 1.0 for KPK, 0.78 for kernel k-means."
    return f"{tables.markdown(columns, rows)}\n\n{paper}"


# ---- SMKC and MKC-AE ----------------------------------------------------------------------------


def anchors(data: Path) -> str:
    """Return ||UU' - HH'||_F of SMKC with s anchors against all rows, and c sqrt(1/s - 1/n)."""
    views = [X[::2] for X in standardised("mfeat", data)[0]]
    n = len(views[0])

    def embedding(s: int, seed: int) -> np.ndarray:
        return rffpk.SMKC(10, anchors=s, random_state=seed).fit(views).embedding_

    H = embedding(n, 0)
    sizes = [20, 50, 100, 200, 400, 700]
    errors = [mean(lambda seed, s=s: subspace_distance(embedding(s, seed), H), 5) for s in sizes]
    shape = [math.sqrt(1 / s - 1 / n) for s in sizes]
    c = max(e / b for e, b in zip(errors, shape))
    curves = {"error": errors, f"{c:.1f} sqrt(1/s - 1/n)": [c * b for b in shape]}
    return table("s", sizes, curves)


def landmarks(data: Path) -> str:
    sizes = [20, 50, 100, 200, 400, 700, 1000, 2000]  # 2000 of 2000 and 2100: all, or nearly
    curves: Curves = {}
    for dataset in ("mfeat", "landuse21"):
        views, y = standardised(dataset, data)

        def score(s: int, views: Any = views, y: Any = y) -> float:
            k = len(np.unique(y))
            run = methods.of(rffpk.SimpleMKKM, n_landmarks=max(s, k))
            return mean(lambda seed: acc(y, run(views, k, seed)), 3)

        curves[dataset] = [score(s) for s in sizes]
    return table("landmarks", sizes, curves)


def kernel_scale(data: Path) -> str:
    """Return the mean entry of the kernel at sigma = 10^3 on the paper's data sets."""
    rows = []
    for dataset in ("yale", "leaves100:0", "hw2"):
        X = load(dataset, data)[0][0]
        kernels = (rbf_kernel(X, gamma=gamma) for gamma in (0.5e-6, methods.mean_gamma(X)))
        means = ((K.sum() - len(K)) / (K.size - len(K)) for K in kernels)
        rows.append((dataset, *tables.cells(means, ".6f")))
    columns = ("set", "mean entry of K off the diagonal at sigma = 10^3", "at the mean distance")
    return tables.markdown(columns, rows)


FIGURES: dict[str, Callable[[Path], str]] = {
    "convergence": convergence,
    "sensitivity": sensitivity,
    "frequencies": frequencies,
    "kernel_scale": kernel_scale,
    "von_mises_fisher": von_mises_fisher,
    "rings": rings,
    "anchors": anchors,
    "landmarks": landmarks,
}
