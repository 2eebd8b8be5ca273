"""CPU seconds of SimpleMKKM and of the published method by full decompositions.

    python -m bench.speed.fusion [--full]      # n = 500 and 2000; --full: a quarter of an hour
    python -m bench.speed.fusion --million     # 10^6 rows by landmarks: seconds and peak memory

Seconds are those of one thread. Without --full the published method solves partial eigenproblems at
n = 2000, and the time of as many full ones is estimated from three.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import threadpoolctl
from scipy.linalg import eigh
from sklearn.metrics import normalized_mutual_info_score

from bench import commands, tables
from bench.datasets import gaussian_views
from bench.internals import ones
from bench.timing import clocks, peak_memory, seconds
from rffpk import MKKM, AverageMKKM
from rffpk.fusion import mkkm
from rffpk.fusion.mkkm import Alignment, Point, SimpleMKKM, minimise
from rffpk.spaces.kernels import FittedKernel, Specification


class Counted(Alignment):
    """Count the eigenproblems of the kernels of all rows."""

    count = 0

    def at(self, alpha: np.ndarray) -> Point:
        Counted.count += self.Ks.shape[1] == self.n
        return super().at(alpha)


class Full(Counted):
    """Solve the eigenproblems by full decompositions."""

    def at(self, alpha: np.ndarray) -> Point:
        Counted.count += 1
        K = (alpha**2 @ self.Ks.reshape(len(self.Ks), -1)).reshape(self.n, self.n)
        values, vectors = eigh(K)
        values, H = values[-self.k :], vectors[:, -self.k :]
        traces = np.array([np.vdot(H, K @ H) for K in self.Ks])
        gradient = 2 * alpha * traces / self.n
        return Point(alpha, values.sum() / self.n, values, H, gradient=gradient)


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
    """Six kernels of n rows in k clusters, of views from clear clusters to pure noise; CPU
    seconds."""
    random = np.random.default_rng(0)
    labels = np.eye(k)[random.integers(k, size=n)]
    views = [
        strength * labels @ random.standard_normal((k, d)) + random.standard_normal((n, d))
        for strength, d in ((2, 10), (1, 50), (1.5, 20), (0.7, 100), (0.3, 30), (0, 5))
    ]
    spec = Specification("rbf")
    fitted = partial(FittedKernel, weight=ones(n), center=True, normalize=True)
    Ks, equal = np.array([fitted(x, spec).matrix() for x in views]), np.full(6, 1 / 6)
    whole, decomposed = Counted(Ks, k, n), Full(Ks, k, n)
    mkkm.Alignment = Counted  # type: ignore[misc]
    cases = {
        "SimpleMKKM": lambda: list(minimise(Ks, k, 1e-5, 100, Ks.shape[1]))[-1],
        "published, partial eigenproblems": lambda: published(whole),
        "published, full eigenproblems": lambda: published(decomposed),
    }
    if not full:
        del cases["published, full eigenproblems"]
    tables.print_heading(f"n = {n}", "s", "eigenproblems", "F", "gap", "difference of alpha")
    points = []
    for name, run in cases.items():
        Counted.count = 0
        spent, point = cpu_seconds(run)
        points.append(point)
        apart = np.abs(point.alpha - points[0].alpha).max()
        tables.print_row(
            name,
            f"{spent:.2f}",
            Counted.count,
            f"{point.objective:.10f}",
            f"{point.gap:.0e}",
            f"{apart:.0e}",
        )
    if not full:
        one = np.median([cpu_seconds(partial(decomposed.at, equal))[0] for _ in range(3)])
        count = Counted.count - 3
        name = f"that many full eigenproblems, {one:.2f} s each"
        tables.print_row(name, f"{count * one:.0f}", count, "", "", "")
    print()


def cpu_seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds on one thread, and the result."""
    with threadpoolctl.threadpool_limits(1):
        begin = clocks()
        found = run()
        return (clocks() - begin)[1], found


# ---- many rows ----------------------------------------------------------------------------------


def million(n: int, k: int = 10, landmarks: int = 1000) -> None:
    views, y = gaussian_views(n, (10, 20, 50), k)
    before = peak_memory() / 1e3
    tables.print_heading("method", "s", "NMI", "data, GB", "peak, GB")
    for estimator in (SimpleMKKM, MKKM, AverageMKKM):
        model = estimator(k, n_landmarks=landmarks, random_state=0)
        elapsed = seconds(partial(model.fit, views))
        nmi = normalized_mutual_info_score(y, model.labels_)
        size = sum(view.nbytes for view in views) / 1e9
        tables.print_row(
            f"{estimator.__name__}, {landmarks} landmarks",
            f"{elapsed:.1f}",
            f"{nmi:.3f}",
            f"{size:.2f}",
            f"{peak_memory() / 1e3:.2f}",
        )
    print(f"\nBefore the fits the peak was {before:.2f} GB.")


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--rows", type=int, default=1_000_000, help="with --million: fewer")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.million:
        million(args.rows)
        return
    speed(500, full=True)
    speed(2000, full=args.full)


if __name__ == "__main__":
    main()
