"""View weights by entropy: `python -m bench.views --data DIR`; `--speed`: the pass over views.

For each multi-view set, with k the number of classes: NMI of the labels (means of the seeds) for
single views (mean and best by the labels) and for all views by `weight_entropy`, and the largest
view weight. Columns of each view are standardised where they are not counts. Prints Markdown.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.metrics import normalized_mutual_info_score
from sklearn.preprocessing import normalize, scale

from bench.adapters import limited, passes
from bench.problems import Machine, Problem
from rffpk import RFFMultiKernelPowerKMeans, show_config
from rffpk._data.passes import make_rows

SETS = {
    "mfeat": scale,
    "msrc_v1": scale,
    "landuse21": scale,
    "leaves100": scale,
    "proteinfold": scale,
    "prokaryotic": scale,
    "3sources": normalize,
    "bbcsport": normalize,
}
ENTROPIES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 1e6)


def load(path: Path) -> tuple[list[np.ndarray], np.ndarray]:
    stored = np.load(path)
    views = [stored[key].astype(np.float64) for key in sorted(stored) if key.startswith("X")]
    prepare = SETS[path.stem]
    return [prepare(view) for view in views], stored["y"]


def score(
    views: list[np.ndarray], y: np.ndarray, seeds: int, **parameters: object
) -> tuple[float, float]:
    """Mean NMI, and the mean of the largest view weight."""
    found = []
    for seed in range(seeds):
        model = RFFMultiKernelPowerKMeans(len(np.unique(y)), random_state=seed, **parameters)
        model.fit(views)
        nmi = normalized_mutual_info_score(y, model.labels_)
        found.append((nmi, model.kernel_weights_.max()))
    return tuple(np.mean(found, axis=0))  # type: ignore[return-value]


def make_views(n: int, widths: tuple[int, ...]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Gaussian rows and frequencies, D = 108 each, float32."""
    random = np.random.default_rng(0)
    xs = [random.standard_normal((n, d), dtype=np.float32) for d in widths]
    omegas = [
        (random.standard_normal((d, 108)) / np.sqrt(2 * d)).astype(np.float32) for d in widths
    ]
    return xs, omegas


def speed(n: int, widths: tuple[int, ...], k: int = 10) -> None:
    """Seconds of a pass over single views and over all, beside the floors of the machine."""
    threads = show_config()["threads"]
    xs, omegas = make_views(n, widths)
    every = make_rows(xs, omegas, None, threads)
    cases = {
        f"view {i}, d = {d}": make_rows([x], [om], None, threads)
        for i, (d, x, om) in enumerate(zip(widths, xs, omegas))
    }
    single = list(cases)
    cases["all views"] = every
    cases["all views, typicality"] = replace(every, eta=np.full(len(xs), 0.5), m=2.0)
    machine = Machine("float32", threads)
    floors = dict(zip(single, (machine.floor(Problem(n, d, 108, k)) for d in widths)))
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(5):
        for name, rows in cases.items():
            run = passes(rows, rows.take(np.arange(k)).features(), -3.0)
            times[name].append(limited(run, threads))
    took = {name: float(np.median(values)) for name, values in times.items()}
    print(f"\nn = {n}, {len(widths)} views of {sorted(set(widths))} columns, k = {k}\n")
    print("| views | s = -3, s | floor, s | of the sum of single passes |\n|---|---|---|---|")
    for name in cases:
        floor = floors.get(name, sum(floors.values()))
        share = took[name] / sum(took[other] for other in single)
        print(f"| {name} | {took[name]:.4f} | {floor:.4f} | {share:.2f} |", flush=True)


MEMORY = """
import time
import numpy as np
from bench.problems import peak_memory
from bench.views import make_views
from rffpk import RFFMultiKernelPowerKMeans
xs, _ = make_views(1_000_000, (20, 50, 100))
RFFMultiKernelPowerKMeans(10, random_state=0).fit([x[:2000] for x in xs])
before, start = peak_memory(), time.perf_counter()
model = RFFMultiKernelPowerKMeans(10, random_state=0).fit(xs)
print(f"{time.perf_counter() - start:.2f} {before:.0f} {peak_memory():.0f} {model.n_iter_}")
"""


def memory() -> None:
    """A fit with defaults of 10^6 rows in three views, in a process of its own."""
    command = [sys.executable, "-c", MEMORY]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    took, before, after, passes_ = done.stdout.split()
    print(
        f"\nA fit of 10^6 rows x (20, 50, 100), defaults: {took} s, {passes_} passes; at most "
        f"{after} MB, {before} MB before it."
    )


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--plain", action="store_true", help="without typicality")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    args = parser.parse_args()
    if args.speed:
        speed(1_000_000, (20, 50, 100))
        speed(100_000, (50,) * 12)
        memory()
    elif args.data is None:
        parser.error("--data is needed")
    else:
        entropies(args)


def entropies(args: argparse.Namespace) -> None:
    headings = " | ".join(f"{e:g}" for e in ENTROPIES)
    print(f"| set | views | single views: mean, best | {headings} |")
    print("|---" * (3 + len(ENTROPIES)) + "|")
    for name in args.sets:
        views, y = load(args.data / f"{name}.npz")
        common = {"possibilistic": not args.plain}
        single = [score([view], y, args.seeds, **common)[0] for view in views]
        cells = []
        for entropy in ENTROPIES:
            nmi, largest = score(views, y, args.seeds, weight_entropy=entropy, **common)
            cells.append(f"{nmi:.3f} ({largest:.2f})")
        print(
            f"| {name} | {len(views)} | {np.mean(single):.3f}, {max(single):.3f} | "
            f"{' | '.join(cells)} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
