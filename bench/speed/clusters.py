"""Seconds and objectives of whole fits for growing numbers of clusters.

    python -m bench.speed.clusters run --out FILE [--rows N] [--clusters K ...] [--data DIR]
        [--only NAME ...] [--columns D] [--methods METHOD ...] [--threads N]
    python -m bench.speed.clusters report FILE [--plot FILE]           # Markdown
    python -m bench.speed.clusters frontier FILE --plot FILE

PowerKMeans, also with three starts and as RFFKernelPowerKMeans where asked for, against KMeans
(n_init=1) and MiniBatchKMeans of scikit-learn, and Faiss if it is installed, with defaults
otherwise, on float32 rows of 20 columns without and with clusters; with --data also on the colours
of skin and on the letters. On rows of as many --columns as embeddings have (topics: unit rows
around topics of uneven sizes, at a mean squared distance of .24; features: random features of noisy
digits; noisy letter: --data, with columns of noise) there is the frontier of objectives and
seconds, which `frontier` draws: --methods names further peers, which are left out if they are
missing, and faster ways of PowerKMeans.
Runs are resumable. The fits of a problem alternate, and CPU seconds are kept beside those of the
clock, as other work on the machine affects them less. The objectives of all but
RFFKernelPowerKMeans are comparable.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import BisectingKMeans, KMeans, MiniBatchKMeans
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize, scale
from sklearn.utils import gen_batches
from threadpoolctl import threadpool_limits

from bench import commands, plots, records, tables
from bench.datasets import around, single_view
from bench.internals import _core
from bench.scores import k_means_objective
from bench.timing import clocks
from rffpk import Annealing, PowerKMeans, RFFKernelPowerKMeans

COLUMNS, LATENT = 20, 5
_WITHIN = 0.24  # mean squared distance of a row of `topics` from the center of its topic
CLUSTERS = (2, 10, 50, 100, 200, 500, 1000, 2000)


def sheet(n: int, k: int) -> np.ndarray:
    """Rows near a curved sheet of five dimensions, without clusters; columns of unequal scale."""
    random = np.random.default_rng(0)
    at = random.standard_normal((n, LATENT)) @ random.standard_normal((LATENT, COLUMNS))
    X = np.sin(at) + 0.2 * random.standard_normal((n, COLUMNS))
    return (X * random.gamma(2, size=COLUMNS)).astype(np.float32)


def mixture(n: int, k: int, columns: int = COLUMNS) -> np.ndarray:
    """k Gaussian clusters that overlap."""
    random = np.random.default_rng(0)
    return around(1.4 * random.standard_normal((k, columns), dtype=np.float32), n, random)


def topics(columns: int, n: int, k: int) -> np.ndarray:
    """Unit rows around k topics, which belong to fewer themes; sizes fall by a power law."""
    random = np.random.default_rng(0)
    scale = np.arange(1, columns + 1, dtype=np.float32) ** -0.25

    def drawn(m: int) -> np.ndarray:
        return random.standard_normal((m, columns), dtype=np.float32) * scale

    themes = drawn(max(2, math.isqrt(k)))
    centers = normalize(themes[random.integers(len(themes), size=k)] + drawn(k))
    size = np.arange(1, k + 1) ** -0.7
    X = centers[random.choice(k, n, p=size / size.sum())]
    spread = math.sqrt(_WITHIN / (1 - _WITHIN) / float((scale**2).sum()))
    for rows in gen_batches(n, 1 << 15):
        X[rows] += spread * drawn(len(X[rows]))
    return normalize(X, copy=False)


def features(columns: int, n: int, k: int) -> np.ndarray:
    """Random features, rectified, of digits with noise."""
    random = np.random.default_rng(0)
    X = load_digits(return_X_y=True)[0].astype(np.float32) / 16
    weights = random.standard_normal((X.shape[1], columns), dtype=np.float32) / 3
    X = X[random.integers(len(X), size=n)]
    X += 0.1 * random.standard_normal(X.shape, dtype=np.float32)
    return np.maximum(X @ weights, 0)


def noisy_letter(data: Path, columns: int, n: int, k: int) -> np.ndarray:
    X = real(data, "letter", n, k)
    random = np.random.default_rng(0)
    noise = random.standard_normal((len(X), columns - X.shape[1]), dtype=np.float32)
    return np.hstack([X, 0.5 * noise])


def real(data: Path, name: str, n: int, k: int) -> np.ndarray:
    return scale(single_view(data, name)[0])[:n].astype(np.float32)


Fit = Callable[[np.ndarray, int, int], np.ndarray]


def estimator(kind: Any, **parameters: Any) -> Fit:
    return lambda X, k, seed: kind(k, random_state=seed, **parameters).fit(X).labels_


def small_sample(X: np.ndarray, k: int, seed: int, **parameters: Any) -> np.ndarray:
    """With 20 rows a cluster in the sample."""
    model = PowerKMeans(k, sample=20 * k, random_state=seed, **parameters)
    return np.asarray(model.fit(X).labels_)


def faiss(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from faiss import Kmeans

    peer = Kmeans(X.shape[1], k, niter=25, seed=seed, max_points_per_centroid=len(X))
    peer.train(X)
    return np.asarray(peer.index.search(X, 1)[1][:, 0])


def faiss_sampled(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from faiss import Kmeans

    peer = Kmeans(X.shape[1], k, seed=seed)
    peer.train(X)
    return np.asarray(peer.index.search(X, 1)[1][:, 0])


def super_k_means(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from superkmeans import SuperKMeans

    peer = SuperKMeans(k, X.shape[1])
    return np.asarray(peer.assign(X, peer.train(X)))


def sklearnex(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from sklearnex.cluster import KMeans as Patched

    return np.asarray(Patched(k, n_init=1, random_state=seed).fit(X).labels_)


METHODS: dict[str, Fit] = {
    "PowerKMeans": estimator(PowerKMeans),
    "PowerKMeans, no swaps": estimator(PowerKMeans, annealing=Annealing(swaps=0)),
    "PowerKMeans, one swap": estimator(PowerKMeans, annealing=Annealing(swaps=1)),
    "PowerKMeans, plain": estimator(PowerKMeans, annealing=None, tol=1e-2),
    "PowerKMeans, small sample": small_sample,
    "PowerKMeans, small sample, one swap": partial(
        small_sample, annealing=Annealing(swaps=1), tol=1e-2
    ),
    "PowerKMeans, small sample, no swaps": partial(
        small_sample, annealing=Annealing(swaps=0), tol=0.1
    ),
    "PowerKMeans, small sample, plain": partial(small_sample, annealing=None, tol=0.1),
    "PowerKMeans, three starts": estimator(PowerKMeans, n_init=3),
    "KMeans": estimator(KMeans, n_init=1),
    "MiniBatchKMeans": estimator(MiniBatchKMeans, n_init=1),
    "Faiss, 25 iterations": faiss,
    "Faiss, a sample": faiss_sampled,
    "BisectingKMeans": estimator(BisectingKMeans),
    "SuperKMeans": super_k_means,
    "KMeans of sklearnex": sklearnex,
    "RFFKernelPowerKMeans": estimator(RFFKernelPowerKMeans),
}


DEFAULTS = ["PowerKMeans", "KMeans", "MiniBatchKMeans", "Faiss, 25 iterations"]


class Passes:
    """The seconds that compiled passes take, summed."""

    def __init__(self) -> None:
        self.seconds = 0.0
        for name in ("fused_pass", "take_steps"):
            setattr(_core, name, partial(self._timed, getattr(_core, name)))

    def _timed(self, run: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        try:
            return run(*args, **kwargs)
        finally:
            self.seconds += time.perf_counter() - started


def measure(method: str, X: np.ndarray, k: int, seed: int, passes: Passes) -> dict[str, float]:
    before, passes.seconds = clocks(), 0.0
    labels = METHODS[method](X, k, seed)
    wall, cpu = clocks() - before
    return {
        "seconds": wall,
        "cpu": cpu,
        "in passes": passes.seconds / wall,
        "objective": k_means_objective(X, labels),
    }


def run(args: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")
    sources: dict[str, Callable[[int, int], np.ndarray]] = {"sheet": sheet, "mixture": mixture}
    if args.columns:
        sources |= {"topics": partial(topics, args.columns)}
        sources |= {"features": partial(features, args.columns)}
    if args.data and args.columns:
        sources |= {"noisy letter": partial(noisy_letter, args.data, args.columns)}
    if args.data:
        sources |= {name: partial(real, args.data, name) for name in ("letter", "skin")}
    done = {(r["rows"], r["k"], r["method"], r["seed"]) for r in records.resume(args.out)}
    passes = Passes()
    for name in args.only or sources:
        for k in args.clusters:
            X = sources[name](args.rows, k)
            problem = f"{name} {len(X)} x {X.shape[1]}"
            for seed in range(args.seeds):
                for method in args.methods:
                    if (problem, k, method, seed) in done:
                        continue
                    try:
                        with threadpool_limits(args.threads):
                            found = measure(method, X, k, seed, passes)
                    except ImportError:
                        continue
                    key = {"rows": problem, "k": k, "method": method, "seed": seed}
                    records.append(args.out, key | found)
                    print(key, f"{found['seconds']:.2f} s", flush=True)


def table_of(path: Path) -> dict[tuple[str, int], dict[str, dict[str, np.ndarray]]]:
    """By rows and k, then by method: arrays over the seeds."""
    found: dict[tuple[str, int], dict[str, list[dict[str, float]]]] = {}
    for r in records.read(path):
        found.setdefault((r["rows"], r["k"]), {}).setdefault(r["method"], []).append(r)
    names = ("seconds", "cpu", "in passes", "objective")
    return {
        key: {
            method: {name: np.array([r[name] for r in runs]) for name in names}
            for method, runs in methods.items()
        }
        for key, methods in sorted(found.items())
    }


def report(args: argparse.Namespace) -> None:
    table = table_of(args.results)
    peers = [m for m in METHODS if m != "PowerKMeans" and any(m in row for row in table.values())]
    tables.print_heading(
        "rows", "k", "PowerKMeans: s (CPU s), in passes",
        *(f"{m}: s (CPU s), objective" for m in peers),
    )  # fmt: skip
    for (rows, k), row in table.items():
        if "PowerKMeans" not in row:
            continue
        ours = row["PowerKMeans"]
        cells = [f"{spent(ours)}, {np.median(ours['in passes']):.0%}"]
        for m in peers:
            ratio = row[m]["objective"].min() / ours["objective"].mean() if m in row else 0
            compared = m != "RFFKernelPowerKMeans"
            cells.append(spent(row[m]) + (f", {ratio:.4f}" if compared else "") if m in row else "")
        tables.print_row(rows, k, *cells)
    print("\nObjectives are those of the best run over the mean of PowerKMeans.")
    if args.plot:
        plot(table, args.plot)


def spent(runs: dict[str, np.ndarray]) -> str:
    return f"{np.median(runs['seconds']):.2f} ({np.median(runs['cpu']):.2f})"


def plot(table: dict[tuple[str, int], dict[str, dict[str, np.ndarray]]], path: Path) -> None:
    """CPU seconds, and objectives over those of PowerKMeans, against k, for each problem."""
    names = [rows for rows, _ in table]
    problems = [rows for rows in dict.fromkeys(names) if names.count(rows) > 1]
    figure, axes = plots.subplots(
        2, len(problems), figsize=(4 * len(problems) + 3, 7), squeeze=False
    )
    for (above, below), rows in zip(axes.T, problems):
        for method in METHODS:
            points = [
                (k, row) for (name, k), row in table.items() if name == rows and method in row
            ]
            if not points:
                continue
            ks = [k for k, _ in points]
            above.loglog(
                ks, [np.median(row[method]["cpu"]) for _, row in points], "o-", label=method
            )
            if method != "RFFKernelPowerKMeans":
                ratios = [
                    row[method]["objective"].mean() / row["PowerKMeans"]["objective"].mean()
                    for _, row in points
                ]
                below.semilogx(ks, ratios, "o-", label=method)
        above.set(title=rows, ylabel="CPU seconds of a fit")
        below.set(xlabel="clusters k", ylabel="objective / that of PowerKMeans")
    plots.legend_beside(axes[0])
    plots.save(figure, path)


def frontier(args: argparse.Namespace) -> None:
    """CPU seconds against objectives over that of PowerKMeans, a picture for each problem; what is
    below and left of everything else has no peer."""
    table = table_of(args.results)
    shown = [m for m in METHODS if any(m in methods for methods in table.values())]
    rows = -(-len(table) // 2)
    figure, axes = plots.subplots(rows, 2, figsize=(12, 4.2 * rows), squeeze=False)
    for (name, k), methods, axis in zip(table, table.values(), axes.flat):
        best = methods["PowerKMeans"]["objective"].mean()
        for number, method in enumerate(shown):
            found = methods.get(method, {"cpu": np.empty(0), "objective": np.empty(0)})
            marker = "o" if method.startswith("PowerKMeans") else "s^vDPX*"[number % 7]
            at = found["cpu"], found["objective"] / best
            axis.plot(*at, marker, color=f"C{number % 10}", label=method, markersize=8)
        axis.set(title=f"{name}, k = {k}", xscale="log", xlabel="CPU seconds of a fit")
        axis.set(ylabel="objective / that of PowerKMeans")
        axis.grid(alpha=0.3)
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter(lambda x, _: f"{x:g}" if f"{x:e}"[0] in "25" else "")
    axes[0, 0].legend(fontsize=8)
    for axis in axes.flat[len(table) :]:
        axis.set_axis_off()
    plots.save(figure, args.plot)


def main() -> None:
    parser = commands.parser(__doc__)
    subcommands = parser.add_subparsers(required=True)
    command = subcommands.add_parser("run")
    commands.add_data(command, required=False)
    command.add_argument("--out", type=Path, required=True)
    command.add_argument("--rows", type=int, default=100_000)
    command.add_argument("--clusters", type=int, nargs="+", default=CLUSTERS)
    command.add_argument("--only", nargs="+", help="names of the rows above")
    command.add_argument("--columns", type=int, help="of topics, features and noisy letter")
    command.add_argument("--threads", type=int, help="of native code")
    command.add_argument(
        "--methods", nargs="+", choices=METHODS, default=DEFAULTS, metavar="METHOD"
    )
    command.add_argument("--seeds", type=int, default=3)
    command.set_defaults(action=run)
    command = subcommands.add_parser("report")
    command.add_argument("results", type=Path)
    command.add_argument("--plot", type=Path, metavar="FILE")
    command.set_defaults(action=report)
    command = subcommands.add_parser("frontier")
    command.add_argument("results", type=Path)
    command.add_argument("--plot", type=Path, metavar="FILE", required=True)
    command.set_defaults(action=frontier)
    args = parser.parse_args()
    args.action(args)


if __name__ == "__main__":
    main()
