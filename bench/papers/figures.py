"""Draw the papers' figures: each function returns its numbers as Markdown."""

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
from bench import plots, tables
from bench.papers import methods
from bench.papers.cells import load
from bench.scores import subspace_distance

Curves = dict[str, list[float]]

CAPTIONS = {
    "convergence": "The objective by iteration: it must never rise.",
    "sensitivity": "ACC on hw2 by lambda: where lines are level the choice does not matter.",
    "frequencies": "ACC by the number of frequencies: from where on more bring nothing.",
    "von_mises_fisher": "NMI by the number of clusters: which method keeps most of it.",
    "rings": "A color is a cluster: an arc of two colors is an error.",
    "anchors": "The error of SMKC's subspace, and the least multiple of the rate above it.",
    "landmarks": "ACC by the number of landmarks: from where on more bring nothing.",
}


def draw(name: str, data: Path, out: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FIGURES[name](data, out)


def picture(name: str) -> list[str]:
    """Return lines of Markdown: the picture, and what to see in it."""
    return [f"![{name}]({name}.png)", "", f"*{CAPTIONS[name]}*", ""]


def plot(
    out: Path, name: str, x: list[float], curves: Curves, labels: tuple[str, str], log: str = ""
) -> str:
    """Draw curves, and return the picture and a table of its numbers."""
    figure, axis = plots.subplots(figsize=(6, 4))
    for label, values in curves.items():
        axis.plot(x[: len(values)], values, marker="o" if len(x) < 30 else None, label=label)
    axis.set(xlabel=labels[0], ylabel=labels[1])
    if "x" in log:
        axis.set_xscale("log")
    if "y" in log:
        axis.set_yscale("log")
    axis.legend()
    plots.save(figure, out / f"{name}.png")
    lines = picture(name)
    if len(x) < 30:
        rows = [
            [f"{value:g}", *(f"{v[i]:.4g}" if i < len(v) else "" for v in curves.values())]
            for i, value in enumerate(x)
        ]
        lines.append(tables.markdown([labels[0], *curves], rows))
    return "\n".join(lines)


def standardised(dataset: str, data: Path) -> tuple[list[np.ndarray], np.ndarray]:
    views, y = load(dataset, data)
    return [StandardScaler().fit_transform(X) for X in views], y


def acc(y: np.ndarray, labels: np.ndarray) -> float:
    return 100 * rffpk.clustering_accuracy(y, labels)


# ---- RFF-KPKM -----------------------------------------------------------------------------------


def convergence(data: Path, out: Path) -> str:
    """Draw the objective by iterations, in the paper's protocol."""
    curves: Curves = {}
    for dataset, possibilistic in (("hw2", True), ("hw2", False), ("yale", False)):
        views, y = load(dataset, data)
        model = rffpk.RFFMultiKernelPowerKMeans(
            len(np.unique(y)), max_iter=100, random_state=0,
            typicality=rffpk.Typicality(eta="mean") if possibilistic else None,
            kernels=[("rbf", 0.5e-6)] * len(views), annealing="paper", n_init=1, tol=1e-7,
            **methods.IP,
        ).fit(views)  # fmt: skip
        found = [r["objective"] for r in model.history_ if r["stage"] == "anneal"]
        name = f"{dataset}, {'with' if possibilistic else 'without'} typicality"
        curves[name] = [value / found[0] for value in found]
    rises = max(max(np.diff(values)) for values in curves.values())
    longest = [float(i) for i in range(1, max(map(len, curves.values())) + 1)]
    text = plot(out, "convergence", longest, curves, ("iteration", "objective over the first"))
    reached = {
        name: next(i for i, v in enumerate(values) if v < values[-1] * 1.001) + 1
        for name, values in curves.items()
    }
    return (
        f"{text}\n\nLargest rise from one iteration to the next: {rises:.1e}. Iterations until the "
        f"objective is within 0.1 % of its end: {reached}. The paper: monotone, converged near 30."
    )


def sensitivity(data: Path, out: Path) -> str:
    """Draw ACC on HW2 by s0 and lambda, in the paper's protocol."""
    views, y = load("hw2", data)
    grid = next(m.grid for m in methods.ip_rff_mkpkm() if m.name == "IP-RFF-MKPKM")
    curves: Curves = {
        f"s0={s0:g}": [
            float(np.mean([acc(y, grid[f"s0={s0:g} lambda={lam:g}"](views, 10, seed))
                           for seed in range(20)]))
            for lam in methods.LAMBDAS
        ]
        for s0 in methods.S0
    }  # fmt: skip
    return plot(out, "sensitivity", list(methods.LAMBDAS), curves, ("lambda", "ACC, %"), "x")


def frequencies(data: Path, out: Path) -> str:
    """Draw ACC against D from 5 to 100."""
    sizes = [5, 10, 20, 30, 40, 60, 80, 100]
    curves: Curves = {}
    for dataset in ("mfeat", "coil20", "pendigits"):
        views, y = standardised(dataset, data)
        X = views[0]
        for sampling in ("iid", "auto"):
            means = [
                np.mean([
                    acc(y, methods.fitted([X], len(np.unique(y)), seed, rffpk.RFFKernelPowerKMeans,
                                          n_frequencies=D, sampling=sampling))
                    for seed in range(5)
                ])
                for D in sizes
            ]  # fmt: skip
            curves[f"{dataset}, {sampling}"] = [float(v) for v in means]
    text = plot(out, "frequencies", [float(D) for D in sizes], curves, ("D", "ACC, %"))
    shares = {name: round(min(v[2:5]) / max(v), 3) for name, v in curves.items()}  # D = 20, 30, 40
    return (
        f"{text}\n\nLeast ACC at D = 20 to 40 over the largest: {shares}. The paper: at least 0.85."
    )


# ---- KPK ----------------------------------------------------------------------------------------


def von_mises_fisher(data: Path, out: Path) -> str:
    """Draw NMI for k directions on the sphere in R^20, kernel exp(-arccos(x'y)/2)."""
    ks, names = [10, 20, 30, 50, 75, 100], ("KPK", "kernel k-means", "power k-means", "spectral")
    curves: Curves = {name: [] for name in names}
    for k in ks:
        scores: Curves = {name: [] for name in names}
        for seed in range(4):
            random = np.random.default_rng(seed)
            means = random.standard_normal((k, 20))
            means /= np.linalg.norm(means, axis=1, keepdims=True)
            y = random.integers(k, size=20 * k)
            X = np.vstack([vonmises_fisher(means[j], 30).rvs(1, random_state=random) for j in y])
            K = np.exp(-np.arccos(np.clip(X @ X.T, -1, 1)) / 2)
            common = {"kernel": "precomputed", "init": "random", "random_state": seed, "n_init": 5}
            labels = {
                "KPK": rffpk.KernelPowerKMeans(k, **methods.KPK | common).fit(K).labels_,
                "kernel k-means": rffpk.KernelKMeans(k, **common).fit(K).labels_,
                "power k-means": rffpk.PowerKMeans(
                    k, **methods.KPK | {"init": "random", "n_init": 5}, random_state=seed
                ).fit(X).labels_,
                "spectral": SpectralClustering(
                    k, affinity="precomputed", random_state=seed
                ).fit(K).labels_,
            }  # fmt: skip
            for name in names:
                scores[name].append(normalized_mutual_info_score(y, labels[name]))
        for name in names:
            curves[name].append(float(np.mean(scores[name])))
    return plot(out, "von_mises_fisher", [float(k) for k in ks], curves, ("k", "NMI"))


def rings(data: Path, out: Path) -> str:
    """Draw ten clusters: five arcs on an inner ring and five on an outer ring; sigma = 1."""
    random = np.random.default_rng(0)
    angles = np.concatenate([2 * np.pi * (j + 0.7 * random.random(60)) / 5 for j in range(5)] * 2)
    radius = np.repeat([2.0, 4.5], 300) + 0.15 * random.standard_normal(600)
    X = radius[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    y = np.repeat(np.arange(10), 60)
    common = {"gamma": 0.5, "init": "random", "n_init": 1}
    runs: dict[str, Callable[[int], Any]] = {
        "KPK": lambda seed: rffpk.KernelPowerKMeans(
            10, **methods.KPK | common, random_state=seed),
        "kernel k-means": lambda seed: rffpk.KernelKMeans(10, **common, random_state=seed),
        "RFF-KPKM (paper's schedule)": lambda seed: rffpk.RFFKernelPowerKMeans(
            10, **methods.KPK | common, sample=None, random_state=seed),
        "RFF-KPKM (defaults)": lambda seed: rffpk.RFFKernelPowerKMeans(
            10, gamma=0.5, random_state=seed),
        "k-means (power, defaults)": lambda seed: rffpk.PowerKMeans(10, random_state=seed),
    }  # fmt: skip
    rows = []
    labels = {}
    for name, make in runs.items():
        models = [make(seed).fit(X) for seed in range(20)]
        found = [adjusted_rand_score(y, model.labels_) for model in models]
        labels[name] = min(models, key=lambda model: model.inertia_).labels_
        rows.append((name, f"{np.mean(found):.3f}", f"{min(found):.3f}"))
    _scatter(X, labels, out / "rings.png")
    lines = [tables.markdown(("method", "mean ARI of 20 starts", "worst"), rows)]
    lines += ["", *picture("rings"), "The paper: 1.0 for KPK, 0.78 for kernel k-means."]
    return "\n".join(lines)


def _scatter(X: np.ndarray, labels: dict[str, np.ndarray], path: Path) -> None:
    figure, axes = plots.subplots(1, len(labels), figsize=(3 * len(labels), 3.2))
    for axis, (name, found) in zip(axes, labels.items()):
        axis.scatter(*X.T, c=found, cmap="tab10", s=4)
        axis.set(title=name, xticks=[], yticks=[], aspect="equal")
    plots.save(figure, path, dpi=90)


# ---- SMKC and MKC-AE ----------------------------------------------------------------------------


def anchors(data: Path, out: Path) -> str:
    """Draw ||UU' - HH'||_F of SMKC with s anchors against all rows, and c sqrt(1/s - 1/n)."""
    views, _ = standardised("mfeat", data)
    views = [X[::2] for X in views]
    n, k = len(views[0]), 10
    H = rffpk.SMKC(k, anchors=n, random_state=0).fit(views).embedding_
    sizes = [20, 50, 100, 200, 400, 700]
    errors = [
        float(np.mean([
            subspace_distance(
                rffpk.SMKC(k, anchors=s, random_state=seed).fit(views).embedding_, H
            )
            for seed in range(5)
        ]))
        for s in sizes
    ]  # fmt: skip
    shape = [math.sqrt(1 / s - 1 / n) for s in sizes]
    c = max(e / b for e, b in zip(errors, shape))
    curves = {"error": errors, f"{c:.1f} sqrt(1/s - 1/n)": [c * b for b in shape]}
    return plot(out, "anchors", [float(s) for s in sizes], curves, ("s", "subspace error"), "x")


def landmarks(data: Path, out: Path) -> str:
    sizes = [20, 50, 100, 200, 400, 700, 1000, 2000]
    curves: Curves = {}
    for dataset in ("mfeat", "landuse21"):
        views, y = standardised(dataset, data)
        curves[dataset] = [
            float(np.mean([
                acc(y, methods.fitted(
                    views, len(np.unique(y)), seed, rffpk.SimpleMKKM,
                    n_landmarks=max(s, len(np.unique(y)))))
                for seed in range(3)
            ]))
            for s in sizes
        ]  # fmt: skip
    return plot(
        out, "landmarks", [float(s) for s in sizes], curves, ("landmarks", "ACC, %"), "x"
    )  # 2000 of 2000 and 2100: all, or nearly


def kernel_scale(data: Path, out: Path) -> str:
    """Return the mean entry of the kernel at sigma = 10^3 on the paper's data sets."""
    rows = []
    for dataset in ("yale", "leaves100:0", "hw2"):
        X = load(dataset, data)[0][0]
        cells = []
        for gamma in (0.5e-6, methods.mean_gamma(X)):
            K = rbf_kernel(X, gamma=gamma)
            cells.append(f"{(K.sum() - len(K)) / (K.size - len(K)):.6f}")
        rows.append((dataset, *cells))
    columns = ("set", "mean entry of K off the diagonal at sigma = 10^3", "at the mean distance")
    return tables.markdown(columns, rows)


FIGURES: dict[str, Callable[[Path, Path], str]] = {
    "convergence": convergence,
    "sensitivity": sensitivity,
    "frequencies": frequencies,
    "kernel_scale": kernel_scale,
    "von_mises_fisher": von_mises_fisher,
    "rings": rings,
    "anchors": anchors,
    "landmarks": landmarks,
}
