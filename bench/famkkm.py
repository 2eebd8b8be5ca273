"""FAMKKM without an n x n array: `python -m bench.famkkm`; `--data DIR`: lambda1 and lambda2 too.

Two views of mixtures of ten Gaussians, 20 and 30 columns, float32. For each number of rows and each
operator a process of its own runs a fit of eleven iterations without k-means. Seconds an iteration
are medians, by the clock and of the processors (summed over the threads); peak memory is that of
the process. Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from bench.problems import peak_memory
from bench.views import load
from rffpk import clustering_accuracy
from rffpk.famkkm import FAMKKM

ROWS = (10_000, 100_000, 1_000_000)
OPERATORS = {
    "dense": {},
    "rff, 64 frequencies": {"approximation": "rff", "n_frequencies": 64},
    "nystroem, 128 anchors": {"approximation": "nystroem", "n_anchors": 128},
}
DENSE_ROWS = 10_000
GRID = (0.01, 0.1, 1.0)


class Fused(FAMKKM):
    """All but the k-means, with the times at which iterations end."""

    def _record(self, *record: object) -> None:
        super()._record(*record)
        self.times_ = [*getattr(self, "times_", []), (time.perf_counter(), time.process_time())]

    def _label(self, k: int, random: object) -> None:
        pass


def views(n: int) -> tuple[list[np.ndarray], np.ndarray]:
    random = np.random.default_rng(0)
    y = random.integers(10, size=n)
    xs = []
    for d in (20, 30):
        x = random.standard_normal((n, d), dtype=np.float32)
        x += (1.5 * random.standard_normal((10, d), dtype=np.float32))[y]
        xs.append(x)
    return xs, y


def one(n: int, name: str, n_jobs: int | None) -> dict[str, float]:
    xs, y = views(n)
    model = Fused(10, max_iter=11, tol=0, random_state=0, n_jobs=n_jobs, **OPERATORS[name])
    begin = time.perf_counter()
    model.fit(xs)
    total = time.perf_counter() - begin
    iteration, work = np.median(np.diff(model.times_, axis=0), axis=0)
    peak = peak_memory()
    found = {"total": total, "iteration": iteration, "work": work, "peak": peak}
    if n <= 100_000:
        whole = FAMKKM(10, random_state=0, n_jobs=n_jobs, **OPERATORS[name]).fit(xs)
        found["acc"] = clustering_accuracy(y, whole.labels_)
    return found


def scaling(n_jobs: int | None) -> None:
    print("| rows | operator | s, 11 iterations | s an iteration | processor s | peak MB | ACC |")
    print("|---|---|---|---|---|---|---|")
    for n in ROWS:
        for name in OPERATORS:
            if name == "dense" and n > DENSE_ROWS:
                continue
            command = [sys.executable, "-m", "bench.famkkm", "--one", str(n), name]
            command += ["--jobs", str(n_jobs)] if n_jobs else []
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found = json.loads(done.stdout)
            acc = f"{found['acc']:.3f}" if "acc" in found else ""
            print(
                f"| {n} | {name} | {found['total']:.2f} | {found['iteration']:.3f} "
                f"| {found['work']:.3f} | {found['peak']:.0f} | {acc} |",
                flush=True,
            )


def grid(path: Path, seeds: int) -> None:
    """Mean accuracy by the two parameters, and of the other fusions and operators."""
    xs, y = load(path)
    k = len(np.unique(y))

    def accuracy(**parameters: object) -> str:
        found = [
            clustering_accuracy(y, FAMKKM(k, random_state=seed, **parameters).fit(xs).labels_)
            for seed in range(seeds)
        ]
        return f"{np.mean(found):.4f} ({np.std(found):.3f})"

    print("\n| lambda1 \\ lambda2 |", " | ".join(map(str, GRID)), "|")
    print("|---" * (len(GRID) + 1) + "|")
    for lambda1 in GRID:
        row = [accuracy(lambda1=lambda1, lambda2=lambda2) for lambda2 in GRID]
        print(f"| {lambda1} |", " | ".join(row), "|", flush=True)
    print("\n| variant | ACC |\n|---|---|")
    for variant in (
        {},
        {"fusion": "partition"},
        {"fusion": "kernel"},
        {"approximation": "rff", "n_frequencies": 512},
        {"approximation": "nystroem", "n_anchors": 256},
    ):
        words = ", ".join(f"{key}={value!r}" for key, value in variant.items()) or "defaults"
        print(f"| {words} | {accuracy(**variant)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, metavar=("ROWS", "OPERATOR"))
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--set", default="mfeat")
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(one(int(arguments.one[0]), arguments.one[1], arguments.jobs)))
    elif arguments.data:
        grid(arguments.data / f"{arguments.set}.npz", arguments.seeds)
    else:
        scaling(arguments.jobs)


if __name__ == "__main__":
    main()
