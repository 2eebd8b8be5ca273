"""Exact kernels: `python -m bench.exact [--threads 2]` measures the work of a pass and large n;
`--approximation [--plot FILE]` how random features approach the exact method, `--data DIR` how many
starts it needs.

Prints Markdown. tslearn's KernelKMeans is timed beside ours where it is installed.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from bench.adapters import limited
from bench.problems import Machine, seconds
from rffpk import (
    KernelKMeans,
    KernelPowerKMeans,
    RandomFourierFeatures,
    RFFKernelPowerKMeans,
)
from rffpk._annealing import dual
from rffpk._annealing.schedule import Step
from rffpk._data.rules import power_weights
from rffpk._reference import squared_distances
from rffpk.kernels import FittedKernel, specification


def data(n: int, dtype: str, k: int = 20, d: int = 20) -> np.ndarray:
    X, _ = make_blobs(n, d, centers=k, cluster_std=4.0, random_state=0)
    return X.astype(dtype)


# ---- the work of a pass -------------------------------------------------------------------------


def pass_seconds(n: int, k: int, n_starts: int, dtype: str, threads: int, repeats: int) -> float:
    """Median seconds of a step of so many starts, all of it, beside stored kernels."""
    random = np.random.RandomState(0)
    kernel = FittedKernel(data(n, dtype), specification("rbf", "kernel"), n_threads=threads)
    products = dual.Products([kernel], threads, True)
    shared = dual.make_dual(products, None, None, 2 * k, random, threads)
    runs = []
    for number in range(n_starts):
        W = np.zeros((k, n), dtype=dtype)
        W[np.arange(k), random.choice(n, k, replace=False)] = 1
        runs.append(dual.DualRun(shared, W, [], random, number, 0))
        runs[-1].arrive(products.multiply(W))

    def step() -> None:
        W = np.vstack([run.propose(Step("anneal", -3.0)) for run in runs])
        Y = products.multiply(W)
        for number, run in enumerate(runs):
            run.accept(Y[:, number * k : (number + 1) * k])

    step()
    return statistics.median(seconds(step) for _ in range(repeats))


def speed(threads: int, repeats: int = 7) -> None:
    from threadpoolctl import threadpool_limits

    n, k = 5000, 20
    print("| type | starts | s a pass | Gflop/s | of gemm | GB/s | of reading |")
    print("|---" * 7 + "|")
    for dtype in ("float64", "float32"):
        machine = Machine(dtype, threads)
        machine.gemm()
        for n_starts in (1, 8):
            with threadpool_limits(1, user_api="blas"):  # as in a fit
                took = pass_seconds(n, k, n_starts, dtype, threads, repeats)
            gemm = statistics.median(machine.gemm() for _ in range(5))
            read = statistics.median(machine.read() for _ in range(5))
            rate = 2 * n * n * k * n_starts / took
            bandwidth = n * n * np.dtype(dtype).itemsize / took
            print(
                f"| {dtype} | {n_starts} | {took:.4f} | {rate / 1e9:.0f} | {rate / gemm:.2f} | "
                f"{bandwidth / 1e9:.1f} | {bandwidth / read:.2f} |",
                flush=True,
            )


def peer(threads: int) -> None:
    """Fits of both with the same kernel, as many starts and iterations."""
    try:
        from tslearn.clustering import KernelKMeans as Peer
    except ImportError:
        print("\ntslearn is not installed: its KernelKMeans is left out.")
        return
    print("\n| n | k | starts | iterations | tslearn, s | ours, s | ratio | objectives |")
    print("|---" * 8 + "|")
    for n, k, n_init in ((1000, 10, 1), (3000, 20, 8), (5000, 20, 1)):
        X = data(n, "float64", k)
        gamma = 1 / 800
        common = {"n_init": n_init, "max_iter": 10, "random_state": 0}

        models = (
            Peer(k, kernel="rbf", kernel_params={"gamma": gamma}, tol=0, **common),
            KernelKMeans(k, gamma=gamma, init="random", n_jobs=threads, **common),
        )
        K = rbf_kernel(X, gamma=gamma)
        ends = [_cost(K, model.fit(X).labels_, k) for model in models]
        times = [
            [limited(partial(seconds, partial(model.fit, X)), threads) for _ in range(3)]
            for model in models
        ]
        a, b = (statistics.median(t) for t in times)
        cells = f"{a:.2f} | {b:.2f} | {a / b:.1f} | {ends[0]:.4f}, {ends[1]:.4f}"
        print(f"| {n} | {k} | {n_init} | 10 | {cells} |", flush=True)


LARGE = """
import sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from bench.exact import data
from bench.problems import peak_memory
from rffpk import KernelPowerKMeans
n = int(sys.argv[1])
X = data(n, "float32")
before = peak_memory()
start = time.perf_counter()
model = KernelPowerKMeans(
    20, n_init=1, s0=-5.0, anneal_factor=1.5, anneal_every=2, max_iter=int(sys.argv[2]),
    memory_limit=1 << 28, random_state=0,
).fit(X)
took = time.perf_counter() - start
print(model.cache_, model.n_iter_, took, before, peak_memory())
"""


def large(sizes: tuple[int, ...] = (10_000, 20_000, 50_000)) -> None:
    """Beyond the memory limit: blocks made anew."""
    print("\n| n | stored | s, 10 passes and seeding | MB before | peak MB |")
    print("|---" * 5 + "|")
    for n in sizes:
        done = subprocess.run(
            [sys.executable, "-c", LARGE, str(n), "10"], capture_output=True, text=True, check=True
        )
        stored, passes, took, before, peak = done.stdout.split()
        memory = f"{float(before):.0f} | {float(peak):.0f}"
        print(f"| {n} | {stored} | {float(took):.1f} ({passes}) | {memory} |", flush=True)


# ---- how many starts ----------------------------------------------------------------------------

SETS = ("glioma", "lung_discrete", "yale", "seeds", "tr11", "binaryalphadigs", "coil20")


def starts(data: Path, seeds: int) -> None:
    """Objectives over the best of twenty k-means++ runs on the same kernel, by `n_init`."""
    counts = (1, 3, 8, 16)
    print("| set | n | k | " + " | ".join(f"n_init={c}" for c in counts) + " | s, 8 | s, 20 runs |")
    print("|---" * (5 + len(counts)) + "|")
    for name in SETS:
        stored = np.load(data / f"{name}.npz")
        X = StandardScaler().fit_transform(stored["X"].astype(np.float64))
        k = len(np.unique(stored["y"]))
        ratios: dict[int, list[float]] = {c: [] for c in counts}
        took: dict[str, list[float]] = {"8": [], "20": []}
        for seed in range(seeds):
            peer = KernelKMeans(k, n_init=20, random_state=seed)
            took["20"].append(seconds(partial(peer.fit, X)))
            for count in counts:
                model = KernelPowerKMeans(k, n_init=count, random_state=seed)
                spent = seconds(partial(model.fit, X))
                ratios[count].append(model.inertia_ / peer.inertia_)
                if count == 8:
                    took["8"].append(spent)
        cells = " | ".join(f"{np.mean(r):.4f} ({max(r):.4f})" for r in ratios.values())
        times = " | ".join(f"{np.mean(t):.2f}" for t in took.values())
        print(f"| {name} | {len(X)} | {k} | {cells} | {times} |", flush=True)


# ---- how random features approach it ------------------------------------------------------------


def approach(X: np.ndarray, k: int, gamma: float, D: int, sampling: str, seed: int) -> np.ndarray:
    """Errors after a few steps from the same start: of the weights (root mean square), the labels
    (1 - ARI) and the objective (relative)."""
    rows, s = np.random.default_rng(seed).choice(len(X), k, replace=False), -3.0
    W = np.eye(len(X))[rows]
    exact = _steps(rbf_kernel(X, gamma=gamma), W, s)
    mapped = RandomFourierFeatures(D, gamma=gamma, sampling=sampling, random_state=seed)
    phi = mapped.fit_transform(X)
    found = _steps(phi @ phi.T, W, s)
    return np.array(
        [
            np.sqrt(((found[0] - exact[0]) ** 2).mean()),
            1 - adjusted_rand_score(exact[1], found[1]),
            abs(found[2] / exact[2] - 1),
        ]
    )


def _steps(K: np.ndarray, W: np.ndarray, s: float, steps: int = 5) -> tuple:
    for _ in range(steps):
        Y = K @ W.T
        d = np.maximum(np.diag(K)[:, None] + np.einsum("kn,nk->k", W, Y) - 2 * Y, 1e-15)
        v, means, _ = power_weights(d, s)
        W = (v / v.sum(axis=0)).T
    return v, d.argmin(axis=1), means.sum()


def approximation(plot: Path | None, seeds: int) -> None:
    X, _ = load_digits(return_X_y=True)
    X = X[::3]
    k, gamma = 10, 1 / (2 * 2 * X.var(axis=0).sum())
    sizes = [8, 16, 32, 64, 128, 256, 512, 1024]
    rows = {}
    print("| D | " + " | ".join(f"{s}: weights, 1 - ARI, objective" for s in SAMPLINGS) + " |")
    print("|---" * (1 + len(SAMPLINGS)) + "|")
    for D in sizes:
        cells = []
        for sampling in SAMPLINGS:
            errors = np.mean(
                [approach(X, k, gamma, D, sampling, seed) for seed in range(seeds)], axis=0
            )
            rows[sampling, D] = errors
            cells.append(", ".join(f"{e:.1e}" for e in errors))
        print(f"| {D} | {' | '.join(cells)} |", flush=True)
    for sampling in SAMPLINGS:
        slopes = [
            np.polyfit(np.log(sizes), np.log([rows[sampling, D][i] + 1e-12 for D in sizes]), 1)[0]
            for i in (0, 2)
        ]
        print(f"\n{sampling}: the errors of weights and objective fall like D^{slopes[0]:.2f}, "
              f"D^{slopes[1]:.2f}.")  # fmt: skip
    rule(X, seeds)
    excess_risk(seeds)
    if plot:
        _plot(rows, sizes, plot)


SAMPLINGS = ("iid", "orthogonal", "structured")


def rule(X: np.ndarray, seeds: int) -> None:
    """D = ceil(4 log^3(2k)): the objective of the features' labels under the exact kernel, over
    that of the exact method. Theorem 3 promises at most 1 + 0.5."""
    print("\n| k | D | exact objective of RFF's labels over that of KPK, mean, worst |")
    print("|---" * 3 + "|")
    for k in (2, 5, 10, 20, 40):
        gamma = 1 / (2 * 2 * X.var(axis=0).sum())
        K = rbf_kernel(X, gamma=gamma)
        exact = KernelPowerKMeans(k, gamma=gamma, random_state=0).fit(X).inertia_
        ratios = []
        for seed in range(seeds):
            labels = RFFKernelPowerKMeans(
                k, gamma=gamma, n_frequencies="paper", sampling="iid", random_state=seed
            ).fit_predict(X)
            ratios.append(_cost(K, labels, k) / exact)
        D = math.ceil(4 * math.log(2 * k) ** 3)
        print(f"| {k} | {D} | {np.mean(ratios):.4f}, {max(ratios):.4f} |", flush=True)


def _cost(K: np.ndarray, labels: np.ndarray, k: int) -> float:
    total = float(np.trace(K))
    for j in range(k):
        own = np.flatnonzero(labels == j)
        if len(own):
            total -= K[np.ix_(own, own)].sum() / len(own)
    return total


def excess_risk(seeds: int, k: int = 5, s: float = -3.0) -> None:
    """Mean M_s on 20 000 fresh rows at centroids learned on n rows, above that of those learned on
    50 000: theorem 1 bounds it by O(sqrt(k^(3 - 2/s) / n))."""
    print("\n| n | excess risk | times sqrt(n) |")
    print("|---" * 3 + "|")
    X, _ = make_blobs(90_000, 4, centers=k, cluster_std=3.0, random_state=0)
    fresh = X[70_000:]
    common = {"gamma": 0.01, "s0": s, "s_final": s, "n_frequencies": 64, "sample": None}
    mapped = RandomFourierFeatures(64, gamma=0.01, random_state=0).fit(X[:10])

    def risk(rows: np.ndarray) -> float:
        model = RFFKernelPowerKMeans(k, random_state=0, **common)
        model.set_params(init=mapped.transform(X[:k]), tol=1e-6)
        model.fit(rows)
        phi = model.feature_map_.transform(fresh)
        return float(power_weights(squared_distances(phi, model.cluster_centers_), s)[1].mean())

    best = risk(X[:50_000])
    sizes, found = [100, 300, 1000, 3000, 10_000], []
    random = np.random.default_rng(0)
    for n in sizes:
        excess = np.mean([risk(X[random.choice(50_000, n)]) - best for _ in range(4 * seeds)])
        found.append(excess)
        print(f"| {n} | {excess:.2e} | {excess * math.sqrt(n):.2e} |", flush=True)
    slope = np.polyfit(np.log(sizes), np.log(np.maximum(found, 1e-12)), 1)[0]
    print(f"\nThe excess risk falls like n^{slope:.2f}; the bound falls like n^-0.5.")


def _plot(rows: dict, sizes: list[int], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(12, 3.6))
    names = ("weights (root mean square)", "labels (1 - ARI)", "objective (relative)")
    for i, (axis, name) in enumerate(zip(axes, names)):
        for sampling in SAMPLINGS:
            axis.plot(sizes, [rows[sampling, D][i] for D in sizes], marker="o", label=sampling)
        first = rows["iid", sizes[0]][i]
        axis.plot(sizes, [first * math.sqrt(sizes[0] / D) for D in sizes], "k:", label="1/sqrt(D)")
        axis.set(xscale="log", yscale="log", xlabel="D", title=f"error of the {name}")
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--approximation", action="store_true")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--data", type=Path, help="real sets, on which starts are counted")
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    if args.data:
        starts(args.data, args.seeds)
        return
    if args.approximation:
        approximation(args.plot, args.seeds)
        return
    speed(args.threads)
    peer(args.threads)
    large()


if __name__ == "__main__":
    main()
