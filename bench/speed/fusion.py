"""Measure SimpleMKKM beside the published method, and fusions of many rows by landmarks.

    python -m bench.speed.fusion [--rows N ...]          # CPU seconds of one thread
    python -m bench.speed.fusion --million [--rows N]    # 10^6 rows: seconds and peak memory

The published method solves partial eigenproblems here. The time of as many full eigenproblems is
estimated from three.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import eigh
from sklearn.metrics import normalized_mutual_info_score

from bench import commands, tables
from bench.datasets import gaussian_views
from bench.internals import ones
from bench.timing import cpu_timed, peak_memory, pinned, seconds
from rffpk import MKKM, AverageMKKM
from rffpk.fusion import simplemkkm
from rffpk.fusion.simplemkkm import Alignment, Point, SimpleMKKM, minimise
from rffpk.spaces.kernels import FittedKernel, Specification


class Counted(Alignment):
    """Count the eigenproblems of the kernels of all rows."""

    count = 0

    def at(self, alpha: np.ndarray) -> Point:
        Counted.count += self.Ks.shape[1] == self.n
        return super().at(alpha)


def published(F: Alignment, tol: float = 1e-5) -> Point:
    """Minimise by the reduced gradient and golden section to a thousandth of the step."""
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
        point = min(start, *inner.values(), key=lambda end: end.objective)
        if np.abs(point.alpha - before.alpha).max() < tol:
            return point


def speed(n: int, k: int = 10) -> None:
    """Fuse six kernels of n rows in k clusters, of views from clear clusters to pure noise."""
    random = np.random.default_rng(0)
    labels = np.eye(k)[random.integers(k, size=n)]
    views = [
        strength * labels @ random.standard_normal((k, d)) + random.standard_normal((n, d))
        for strength, d in ((2, 10), (1, 50), (1.5, 20), (0.7, 100), (0.3, 30), (0, 5))
    ]
    fitted = partial(FittedKernel, weight=ones(n), center=True, normalize=True)
    Ks = np.array([fitted(x, Specification("rbf")).matrix() for x in views])
    simplemkkm.Alignment = Counted  # type: ignore[misc]
    cases = {
        "SimpleMKKM": lambda: list(minimise(Ks, k, 1e-5, 100, Ks.shape[1]))[-1],
        "published, partial eigenproblems": lambda: published(Counted(Ks, k, n)),
    }
    tables.print_heading(f"n = {n}", "s", "eigenproblems", "F", "gap", "difference of alpha")
    points = []
    for name, run in cases.items():
        Counted.count = 0
        took, point = pinned(partial(cpu_timed, run), 1)
        points.append(point)
        numbers = f"{point.objective:.10f}", f"{point.gap:.0e}"
        apart = np.abs(point.alpha - points[0].alpha).max()
        tables.print_row(name, f"{took:.2f}", Counted.count, *numbers, f"{apart:.0e}")
    whole = partial(cpu_timed, partial(eigh, Ks.mean(axis=0)))
    one = np.median([pinned(whole, 1)[0] for _ in range(3)])
    name = f"that many full eigenproblems, {one:.2f} s each"
    tables.print_row(name, f"{Counted.count * one:.0f}", Counted.count, "", "", "")
    print()


def with_landmarks(n: int, k: int = 10, landmarks: int = 1000) -> None:
    """Fuse views of n rows by landmarks."""
    views, y = gaussian_views(n, (10, 20, 50), k)
    before, size = peak_memory() / 1e3, sum(view.nbytes for view in views) / 1e9
    tables.print_heading("method", "s", "NMI", "data, GB", "peak, GB")
    for estimator in (SimpleMKKM, MKKM, AverageMKKM):
        model = estimator(k, n_landmarks=landmarks, random_state=0)
        elapsed = seconds(partial(model.fit, views))
        nmi = normalized_mutual_info_score(y, model.labels_)
        memory = f"{size:.2f}", f"{peak_memory() / 1e3:.2f}"
        name = f"{estimator.__name__}, {landmarks} landmarks"
        tables.print_row(name, f"{elapsed:.1f}", f"{nmi:.3f}", *memory)
    print(f"\nBefore the fits the peak was {before:.2f} GB.")


def main() -> None:
    args = commands.arguments(__doc__, million=False, rows={"nargs": "+", "type": int})
    if args.million:
        with_landmarks(*(args.rows or [1_000_000]))
        return
    for n in args.rows or (500, 2000):
        speed(n)


if __name__ == "__main__":
    main()
