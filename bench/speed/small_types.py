"""CPU seconds with rows of small types and of length one, over those with float32 rows.

    python -m bench.speed.small_types passes [--rows N] [--repeats N]
    python -m bench.speed.small_types fits [--rows N] [--clusters K] [--columns D] [--repeats N]

Passes over rows of 128 columns take turns, and the least of each counts. Fits on one thread, with
defaults, take turns too, with other seeds in each turn, beside KMeans of scikit-learn and spherical
k-means of Faiss, if it is installed: medians, and the cost with centroids of length one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from bench import commands, tables, timing
from bench.internals import Identity, Narrow, Unit, make_rows, one_pass, ones
from bench.speed.clusters import topics
from rffpk import PowerKMeans

COLUMNS = 128

Fit = Callable[[int], np.ndarray]  # the labels, for a seed


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("what", choices=["passes", "fits"])
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--clusters", type=int, default=500)
    parser.add_argument("--columns", type=int, default=384)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    if args.what == "passes":
        measure_passes(args.rows or 1_000_000, args.repeats)
    else:
        X = topics(args.columns, args.rows or 100_000, args.clusters)
        with threadpool_limits(1):
            measure_fits(X, args.clusters, args.repeats)


def measure_passes(n: int, repeats: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-60, 60, (n, COLUMNS), dtype=np.int8)
    wide = x.astype(np.float32)
    bits = (wide.view(np.uint32) >> 16).astype(np.uint16)
    kinds = {
        "float32": wide,
        "float16": Narrow(wide.astype(np.float16)),
        "bfloat16": Narrow(bits),
        "int8": Narrow(x),
    }
    tables.print_heading("k", *kinds, *(f"{name}, cosine" for name in kinds))
    shift = [np.zeros(COLUMNS, dtype=np.float32)]
    for k in (10, 100):
        theta = rng.normal(0, 30, (k, COLUMNS)).astype(np.float32)
        measures = {
            (name, each): partial(
                cpu_seconds,
                one_pass,
                make_rows([rows], [each], ones(len(rows)), 1, shift),
                theta,
                -1.0,
            )
            for each in (Identity(COLUMNS), Unit(COLUMNS))
            for name, rows in kinds.items()
        }
        least = [min(found) for found in timing.alternate(measures, repeats).values()]
        tables.print_row(k, *(f"{seconds / least[0]:.2f}" for seconds in least))


def cpu_seconds(call: Callable[..., Any], *args: Any) -> float:
    started = time.process_time()
    call(*args)
    return time.process_time() - started


def measure_fits(X: np.ndarray, k: int, repeats: int) -> None:
    fits = all_fits(X, k)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in fits}
    for seed in range(repeats):
        for name, fit in fits.items():
            started = time.process_time()
            labels = fit(seed)
            seconds = time.process_time() - started
            found[name].append((seconds, spherical_cost(X, labels)))
            print(f"{name}: {seconds:.2f} s, {found[name][-1][1]:.2f}", flush=True)
    tables.print_heading("fit", "CPU seconds", "relative, least and most", "relative cost")
    values = {name: np.array(runs) for name, runs in found.items()}
    first = next(iter(values.values()))
    for name, runs in values.items():
        ratios, cost = (runs / first).T
        tables.print_row(
            name, f"{np.median(runs[:, 0]):.1f}",
            f"{np.median(ratios):.2f} ({ratios.min():.2f}-{ratios.max():.2f})",
            f"{np.median(cost):.4f}",
        )  # fmt: skip


def all_fits(X: np.ndarray, k: int) -> dict[str, Fit]:
    """Fits to unit rows."""
    small = X.astype(np.float16)
    fits: dict[str, Fit] = {}
    for metric in ("euclidean", "cosine"):
        fits[f"float32, {metric}"] = partial(power_k_means, X, k, metric)
        fits[f"float16, {metric}"] = partial(power_k_means, small, k, metric)
    fits["KMeans"] = lambda seed: KMeans(k, n_init=1, random_state=seed).fit(X).labels_
    try:
        import faiss
    except ImportError:
        return fits
    faiss.omp_set_num_threads(1)  # which has threads of its own
    return fits | {"Faiss, spherical, 25 iterations": partial(spherical_k_means, X, k)}


def power_k_means(X: np.ndarray, k: int, metric: Any, seed: int) -> np.ndarray:
    return PowerKMeans(k, metric=metric, random_state=seed, n_jobs=1).fit(X).labels_


def spherical_k_means(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from faiss import Kmeans

    columns, most = X.shape[1], len(X)
    peer = Kmeans(columns, k, niter=25, seed=seed, spherical=True, max_points_per_centroid=most)
    peer.train(X)
    return np.asarray(peer.index.search(X, 1)[1][:, 0])


def spherical_cost(X: np.ndarray, labels: np.ndarray) -> float:
    """The least sum of squared distances of unit rows from centroids of length one."""
    sums = np.zeros((labels.max() + 1, X.shape[1]))
    np.add.at(sums, labels, X)
    return 2 * (len(X) - float(np.linalg.norm(sums, axis=1).sum()))


if __name__ == "__main__":
    main()
