"""Fusion of kernels: `python -m bench.fusion --data DIR`, `--speed`, `--million`. Prints Markdown.

`--data`: accuracy, NMI, purity (means of the seeds) and seconds on multi-view sets, prepared as
bench.views does, k the number of classes, each view's Gaussian kernel centred and normalised;
what is not installed is named. `--speed`: SimpleMKKM against the published method by full
decompositions, processor seconds on one thread. `--million`: 10^6 rows by landmarks, seconds and
peak memory.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl
from scipy.linalg import eigh
from sklearn.metrics import normalized_mutual_info_score

from bench.problems import peak_memory, seconds
from bench.views import SETS, load
from rffpk import MKKM, AverageMKKM, clustering_accuracy, purity_score, simplemkkm
from rffpk.kernels import FittedKernel, Specification
from rffpk.simplemkkm import Alignment, Point, SimpleMKKM, minimise, reduced_gradient

LANDMARKS = 400
OTHERS = (
    ("rffpk.smkc", "SMKC"),
    ("rffpk.famkkm", "FAMKKM"),
    ("imml.cluster", "EEIMVC"),
    ("imml.cluster", "LFIMVC"),
)


def methods() -> Iterator[tuple[str, Callable[[int, int], Any]]]:
    """A name, and what makes the estimator from k and a seed; those missing are named."""
    for estimator in (SimpleMKKM, MKKM, AverageMKKM):
        yield estimator.__name__, estimator_of(estimator)
        name = f"{estimator.__name__}, {LANDMARKS} landmarks"
        yield name, estimator_of(estimator, n_landmarks=LANDMARKS)
    for module, name in OTHERS:
        try:
            yield name, estimator_of(getattr(importlib.import_module(module), name))
        except (ImportError, AttributeError) as error:
            print(f"{name}: {module} is not installed ({error})", file=sys.stderr)


def estimator_of(estimator: Any, **parameters: Any) -> Callable[[int, int], Any]:
    return lambda k, seed: estimator(n_clusters=k, random_state=seed, **parameters)


def compare(data: Path, sets: list[str], seeds: int) -> None:
    print("| set (n, views, k) | method | ACC | NMI | purity | s | MB |")
    print("|---" * 7 + "|")
    found = list(methods())
    for name in sets:
        views, y = load(data / f"{name}.npz")
        k = len(np.unique(y))
        for method, make in found:
            row = f"| {name} ({len(y)}, {len(views)}, {k}) | {method} |"
            try:
                cells = score([make(k, seed) for seed in range(seeds)], views, y)
                print(row, " | ".join(f"{cell:.3f}" for cell in cells), "|", flush=True)
            except Exception as error:  # a rival's; the other rows still count
                print(row, f"{type(error).__name__}: {error} | | | | |", flush=True)


def score(models: list[Any], views: list[np.ndarray], y: np.ndarray) -> np.ndarray:
    found = []
    for model in models:
        started = time.perf_counter()
        labels = np.asarray(model.fit_predict(views)).astype(int)
        elapsed = time.perf_counter() - started
        nmi = normalized_mutual_info_score(y, labels)
        found.append((clustering_accuracy(y, labels), nmi, purity_score(y, labels), elapsed))
    tracemalloc.start()  # in a fit of its own, which it slows down
    models[0].fit_predict(views)
    most = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return np.append(np.mean(found, axis=0), most)


# ---- speed --------------------------------------------------------------------------------------


class Counted(Alignment):
    """Counts the eigenproblems of all rows."""

    count = 0

    def at(self, alpha: np.ndarray) -> Point:
        Counted.count += self.Ks.shape[1] == self.n
        return super().at(alpha)


class Full(Counted):
    """By full decompositions."""

    def at(self, alpha: np.ndarray) -> Point:
        Counted.count += 1
        K = (alpha**2 @ self.Ks.reshape(len(self.Ks), -1)).reshape(self.n, self.n)
        values, vectors = eigh(K)
        values, H = values[-self.k :], vectors[:, -self.k :]
        traces = np.array([np.vdot(H, K @ H) for K in self.Ks])
        return Point(alpha, values.sum() / self.n, 2 * alpha * traces / self.n, values, H)


def published(F: Alignment, tol: float = 1e-5) -> Point:
    """Reduced gradient, steps to the boundary, golden section to a thousandth of the step."""
    golden = (np.sqrt(5) - 1) / 2
    point = F.at(np.full(len(F.Ks), 1 / len(F.Ks)))
    while True:
        before, pivot = point, int(point.alpha.argmax())
        direction = point.gradient[pivot] - point.gradient
        direction[pivot] -= direction.sum()
        direction /= np.linalg.norm(direction)
        while True:
            falling = np.flatnonzero(direction < 0)
            steps = -point.alpha[falling] / direction[falling]
            reach, last = float(steps.min()), falling[steps.argmin()]
            end = F.at(point.alpha + reach * direction)
            if end.objective >= point.objective:
                break
            point = end
            point.alpha[last] = direction[last] = 0
            direction[pivot] -= direction.sum()
        low, high, start = 0.0, reach, point
        pair = (1 - golden) * reach, golden * reach
        inner = {step: F.at(start.alpha + step * direction) for step in pair}
        while high - low > 1e-3 * reach:
            left, right = sorted(inner)
            if inner[left].objective < inner[right].objective:
                high, new, kept = right, right - golden * (right - low), left
            else:
                low, new, kept = left, left + golden * (high - left), right
            inner = {kept: inner[kept], new: F.at(start.alpha + new * direction)}
        point = min(start, *inner.values(), key=lambda found: found.objective)
        if np.abs(point.alpha - before.alpha).max() < tol:
            return point


def speed(n: int, full: bool, k: int = 10) -> None:
    """Six kernels of n rows in k clusters, of views from clear to pure noise; processor seconds."""
    random = np.random.default_rng(0)
    labels = np.eye(k)[random.integers(k, size=n)]
    views = [
        strength * labels @ random.standard_normal((k, d)) + random.standard_normal((n, d))
        for strength, d in ((2, 10), (1, 50), (1.5, 20), (0.7, 100), (0.3, 30), (0, 5))
    ]
    spec = Specification("rbf")
    Ks = np.array([FittedKernel(x, spec, center=True, normalize=True).matrix() for x in views])
    equal = np.full(6, 1 / 6)
    whole, decomposed = Counted(Ks, k, n), Full(Ks, k, n)
    simplemkkm.Alignment = Counted  # type: ignore[misc]
    cases = {
        "SimpleMKKM": lambda: list(minimise(Ks, k, 1e-5, 100))[-1],
        "its line search on the kernels": lambda: reduced_gradient(
            whole, whole.at(equal), 1e-5, 1000
        ),
        "published, partial eigenproblems": lambda: published(whole),
        "published, full eigenproblems": lambda: published(decomposed),
    }
    if not full:
        del cases["published, full eigenproblems"]
    print(f"| n = {n} | s | eigenproblems | F | gap | difference of alpha |")
    print("|---|---|---|---|---|---|")
    points = []
    for name, run in cases.items():
        Counted.count = 0
        spent, point = processor_seconds(run)
        points.append(point)
        apart = np.abs(point.alpha - points[0].alpha).max()
        print(
            f"| {name} | {spent:.2f} | {Counted.count} | {point.objective:.10f} | "
            f"{point.gap:.0e} | {apart:.0e} |",
            flush=True,
        )
    if not full:
        one = np.median([processor_seconds(partial(decomposed.at, equal))[0] for _ in range(3)])
        count = Counted.count - 3
        print(f"| that many full eigenproblems, {one:.2f} s each | {count * one:.0f} | {count} |||")
    print()


def processor_seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    """On one thread."""
    with threadpoolctl.threadpool_limits(1):
        started = time.process_time()
        found = run()
        return time.process_time() - started, found


# ---- many rows ----------------------------------------------------------------------------------


def million(n: int = 1_000_000, k: int = 10, landmarks: int = 1000) -> None:
    random = np.random.default_rng(0)
    y = random.integers(k, size=n)
    views = []
    for d in (10, 20, 50):
        view = random.standard_normal((n, d), dtype=np.float32)
        view += 1.5 * random.standard_normal((k, d), dtype=np.float32)[y]
        views.append(view)
    held = peak_memory() / 1e3
    print("| method | s | NMI | data, GB | peak, GB |\n|---|---|---|---|---|")
    for estimator in (SimpleMKKM, MKKM, AverageMKKM):
        model = estimator(k, n_landmarks=landmarks, random_state=0)
        elapsed = seconds(partial(model.fit, views))
        nmi = normalized_mutual_info_score(y, model.labels_)
        size = sum(view.nbytes for view in views) / 1e9
        name = f"{estimator.__name__}, {landmarks} landmarks"
        print(
            f"| {name} | {elapsed:.1f} | {nmi:.3f} | {size:.2f} | {peak_memory() / 1e3:.2f} |",
            flush=True,
        )
    print(f"\nBefore the fits the peak was {held:.2f} GB.")


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--full", action="store_true", help="with --speed: a quarter of an hour")
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    args = parser.parse_args()
    if args.speed:
        speed(500, full=True)
        speed(2000, full=args.full)
    elif args.million:
        million()
    elif args.data is None:
        parser.error("one of --data, --speed and --million is needed")
    else:
        compare(args.data, args.sets, args.seeds)


if __name__ == "__main__":
    main()
