"""Labels of diffusion features: `python -m bench.quality.diffusion --data DIR`.

NMI with the classes, means of the seeds, with the defaults of `DiffusionPowerKMeans` and k the
number of classes, beside k-means and scikit-learn's spectral clustering. Of large sets random rows
are taken. Generated sets come without and with a tenth of background noise, which is clustered but
not scored. `--set NAME` takes one set, `--param NAME=VALUE` changes a parameter. A second table has
all views of sets with several: the features of each view, scaled to variance one, side by side,
beside the defaults of `RFFMultiKernelPowerKMeans`. Prints Markdown.
"""

from __future__ import annotations

import argparse
import ast
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_digits, make_blobs, make_circles, make_moons
from sklearn.metrics import normalized_mutual_info_score
from sklearn.preprocessing import normalize, scale

from bench import datasets
from rffpk import DiffusionPowerKMeans, PowerKMeans, RFFMultiKernelPowerKMeans

ROWS = 4000  # of a real set, at most
GENERATED_ROWS = 2500
NOISE = -1  # the class of background noise

TEXTS = ("tr11", "3sources", "bbcsport")
SINGLE = (
    "seeds", "yale", "lung_discrete", "glioma", "tr11", "binaryalphadigs", "coil20", "pendigits",
    "letter", "shuttle", "skin", "kddcup99_10pct",
)  # fmt: skip
STANDARDISED = ("shuttle", "kddcup99_10pct")
VIEWS = (
    "mfeat", "msrc_v1", "landuse21", "leaves100", "proteinfold", "prokaryotic", "3sources",
    "bbcsport",
)  # fmt: skip

Labelled = tuple[np.ndarray, np.ndarray]


def spirals(n: int, random: np.random.Generator) -> Labelled:
    """Three arms."""
    y = random.integers(0, 3, n)
    t = 3 * np.pi * np.sqrt(random.uniform(0.05, 1, n))
    angle = t + y * 2 * np.pi / 3
    X = np.column_stack([t * np.cos(angle), t * np.sin(angle)])
    return X + 0.12 * random.standard_normal(X.shape), y


def rings(n: int, random: np.random.Generator, k: int = 4) -> Labelled:
    """Circles about one point, of radius 1 to k."""
    y = random.integers(0, k, n)
    angle = random.uniform(0, 2 * np.pi, n)
    radius = 1 + y + 0.08 * random.standard_normal(n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def unequal_blobs(n: int) -> Labelled:
    sizes = [n // 2, n // 4, n // 8, n // 16, n // 16]
    centers = np.array([[0, 0], [6, 0], [0, 6], [6, 6], [-6, -2]])
    return make_blobs(sizes, centers=centers, cluster_std=[1, 0.5, 0.3, 0.8, 0.4], random_state=0)


def with_noise(X: np.ndarray, y: np.ndarray, random: np.random.Generator) -> Labelled:
    """A tenth more rows, uniform in a box about all."""
    low, high = X.min(axis=0), X.max(axis=0)
    margin = 0.1 * (high - low)
    noise = random.uniform(low - margin, high + margin, (len(X) // 10, X.shape[1]))
    return np.vstack([X, noise]), np.r_[y, np.full(len(noise), NOISE)]


def generated() -> Iterator[tuple[str, Labelled]]:
    random = np.random.default_rng(0)
    n = GENERATED_ROWS
    sets = {
        "moons": make_moons(n, noise=0.06, random_state=0),
        "circles, factor .3": make_circles(n, factor=0.3, noise=0.05, random_state=0),
        "circles, factor .5": make_circles(n, factor=0.5, noise=0.05, random_state=0),
        "spirals": spirals(n, random),
        "rings": rings(n, random),
        "blobs, unequal": unequal_blobs(n),
    }
    yield from sets.items()
    for name, (X, y) in sets.items():
        yield f"{name}, noise", with_noise(X, y, random)


def real(folder: Path) -> Iterator[tuple[str, Labelled]]:
    yield "digits", load_digits(return_X_y=True)
    for name in SINGLE:
        X, y = some_rows(*load(folder / f"{name}.npz", "X"))
        yield name, (X, y)
        if name in STANDARDISED:
            yield f"{name}, standardised", (scale(X), y)
    for name in VIEWS:
        stored = np.load(folder / f"{name}.npz")
        views = sorted(key for key in stored if key.startswith("X"))
        pairs = [load(folder / f"{name}.npz", view) for view in views]
        for view, pair in list(zip(views, pairs))[:2]:
            yield f"{name}, {view}", pair


def load(path: Path, key: str) -> Labelled:
    with np.load(path) as stored:
        return stored[key].astype(np.float64), stored["y"]


def some_rows(X: np.ndarray, y: np.ndarray) -> Labelled:
    index = np.random.default_rng(0).permutation(len(X))[:ROWS]
    return X[index], y[index]


def score(fit: Callable[[int], np.ndarray], y: np.ndarray, seeds: int) -> tuple[float, float]:
    """Mean NMI of the labels, and mean seconds."""
    started = time.perf_counter()
    found = [
        normalized_mutual_info_score(y[y != NOISE], fit(seed)[y != NOISE]) for seed in range(seeds)
    ]
    return float(np.mean(found)), (time.perf_counter() - started) / seeds


def line(name: str, X: np.ndarray, y: np.ndarray, seeds: int, parameters: dict) -> list[float]:
    """Prints a line of the table; returns the three means."""
    text = name.split(",")[0] in TEXTS
    if text:
        parameters = {"metric": "cosine", **parameters}
    k = len(np.unique(y[y != NOISE]))
    ours, seconds = score(
        lambda seed: DiffusionPowerKMeans(k, random_state=seed, **parameters).fit(X).labels_, y,
        seeds,
    )  # fmt: skip
    U = normalize(X) if text else X
    plain, _ = score(lambda seed: KMeans(k, n_init=10, random_state=seed).fit_predict(U), y, seeds)
    spectral, _ = score(
        lambda seed: SpectralClustering(
            k, affinity="nearest_neighbors", random_state=seed
        ).fit_predict(U), y, 1,
    )  # fmt: skip
    print(
        f"| {name} | {len(X)} | {X.shape[1]} | {k} | {ours:.3f} | {plain:.3f} | {spectral:.3f} "
        f"| {seconds:.2f} |",
        flush=True,
    )
    return [ours, plain, spectral]


def side_by_side(views: list[np.ndarray], k: int, seed: int, parameters: dict) -> np.ndarray:
    """Labels of power k-means on the diffusion features of all views."""
    parts = []
    for view in views:
        model = DiffusionPowerKMeans(k, n_init=1, random_state=seed, **parameters).fit(view)
        features = model.feature_map_.transform(view)
        parts.append(features / np.sqrt(features.var(axis=0).sum()))
    return PowerKMeans(k, random_state=seed).fit(np.hstack(parts)).labels_


def views_line(path: Path, seeds: int, parameters: dict) -> list[float]:
    """Prints a line of the table of all views; returns the two means."""
    views, y = datasets.views(path.parent, path.stem)
    if path.stem in TEXTS:
        parameters = {"metric": "cosine", **parameters}
    k = len(np.unique(y))
    ours, _ = score(lambda seed: side_by_side(views, k, seed, parameters), y, seeds)
    fourier, _ = score(
        lambda seed: RFFMultiKernelPowerKMeans(k, random_state=seed).fit(views).labels_, y, seeds
    )
    print(
        f"| {path.stem} | {len(y)} | {len(views)} | {k} | {ours:.3f} | {fourier:.3f} |", flush=True
    )
    return [ours, fourier]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of real data sets")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", action="append", help="only this set")
    parser.add_argument("--param", action="append", default=[], help="of DiffusionPowerKMeans")
    options = parser.parse_args()
    pairs = (param.split("=", 1) for param in options.param)
    parameters = {key: ast.literal_eval(value) for key, value in pairs}
    warnings.simplefilter("ignore")
    print("| set | n | d | k | DiffusionPowerKMeans | KMeans(n_init=10) | SpectralClustering | s |")
    print("|---|---|---|---|---|---|---|---|")
    groups = {"real": real(options.data) if options.data else (), "generated": generated()}
    for group, sets in groups.items():
        found = [
            line(name, X, y, options.seeds, parameters)
            for name, (X, y) in sets
            if options.set is None or name in options.set
        ]
        if found:
            means = " | ".join(f"{mean:.3f}" for mean in np.mean(found, axis=0))
            print(f"| mean, {group} | | | | {means} | |", flush=True)
    if options.data is None:
        return
    print("\n| views of | n | views | k | diffusion features | RFFMultiKernelPowerKMeans |")
    print("|---|---|---|---|---|---|")
    names = [name for name in VIEWS if options.set is None or name in options.set]
    found = [views_line(options.data / f"{name}.npz", options.seeds, parameters) for name in names]
    if found:
        means = " | ".join(f"{mean:.3f}" for mean in np.mean(found, axis=0))
        print(f"| mean | | | | {means} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
