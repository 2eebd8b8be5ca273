"""Seconds and objectives of whole fits for growing numbers of clusters.

    python -m bench.speed.clusters run --out FILE [--rows N] [--clusters K ...] [--data DIR]
    python -m bench.speed.clusters report FILE [--plot FILE]           # Markdown

PowerKMeans, and RFFKernelPowerKMeans where asked for, against KMeans (n_init=1) and MiniBatchKMeans
of scikit-learn, and Faiss if it is installed, with defaults otherwise, on float32 rows of 20
columns without and with clusters; with --data also on the colours of skin and on the letters.
Runs are resumable. The fits of a problem alternate, and CPU seconds are kept beside those of the
clock, as other work on the machine affects them less. The objectives of all but
RFFKernelPowerKMeans are comparable.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.preprocessing import scale

from bench import commands, plots, records, tables
from bench.datasets import around, single_view
from bench.internals import _core
from bench.scores import k_means_objective
from bench.timing import clocks
from rffpk import PowerKMeans, RFFKernelPowerKMeans

COLUMNS, LATENT = 20, 5
CLUSTERS = (2, 10, 50, 100, 200, 500, 1000, 2000)


def sheet(n: int, k: int) -> np.ndarray:
    """Rows near a curved sheet of five dimensions, without clusters; columns of unequal scale."""
    random = np.random.default_rng(0)
    at = random.standard_normal((n, LATENT)) @ random.standard_normal((LATENT, COLUMNS))
    X = np.sin(at) + 0.2 * random.standard_normal((n, COLUMNS))
    return (X * random.gamma(2, size=COLUMNS)).astype(np.float32)


def mixture(n: int, k: int) -> np.ndarray:
    """k Gaussian clusters that overlap."""
    random = np.random.default_rng(0)
    return around(1.4 * random.standard_normal((k, COLUMNS), dtype=np.float32), n, random)


def real(data: Path, name: str, n: int, k: int) -> np.ndarray:
    return scale(single_view(data, name)[0])[:n].astype(np.float32)


Fit = Callable[[np.ndarray, int, int], np.ndarray]


def estimator(kind: Any, **parameters: Any) -> Fit:
    return lambda X, k, seed: kind(k, random_state=seed, **parameters).fit(X).labels_


def faiss(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from faiss import Kmeans

    peer = Kmeans(X.shape[1], k, niter=25, seed=seed, max_points_per_centroid=len(X))
    peer.train(X)
    return np.asarray(peer.index.search(X, 1)[1][:, 0])


METHODS: dict[str, Fit] = {
    "PowerKMeans": estimator(PowerKMeans),
    "KMeans": estimator(KMeans, n_init=1),
    "MiniBatchKMeans": estimator(MiniBatchKMeans, n_init=1),
    "Faiss, 25 iterations": faiss,
    "RFFKernelPowerKMeans": estimator(RFFKernelPowerKMeans),
}


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
    problems = list(dict.fromkeys(rows for rows, _ in table))
    figure, axes = plots.subplots(2, len(problems), figsize=(4 * len(problems), 7), squeeze=False)
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
        above.legend()
    plots.save(figure, path)


def main() -> None:
    parser = commands.parser(__doc__)
    subcommands = parser.add_subparsers(required=True)
    command = subcommands.add_parser("run")
    commands.add_data(command, required=False)
    command.add_argument("--out", type=Path, required=True)
    command.add_argument("--rows", type=int, default=100_000)
    command.add_argument("--clusters", type=int, nargs="+", default=CLUSTERS)
    command.add_argument("--only", nargs="+", help="sheet, mixture, letter, skin")
    command.add_argument(
        "--methods", nargs="+", choices=METHODS, default=[*METHODS][:-1], metavar="METHOD"
    )
    command.add_argument("--seeds", type=int, default=3)
    command.set_defaults(action=run)
    command = subcommands.add_parser("report")
    command.add_argument("results", type=Path)
    command.add_argument("--plot", type=Path, metavar="FILE")
    command.set_defaults(action=report)
    args = parser.parse_args()
    args.action(args)


if __name__ == "__main__":
    main()
