"""SMKC by cross-products against SMKC by decompositions: `python -m bench.smkc`.

Generated data of the shapes of two sets of the paper (rows, views, clusters; the widths of the
views are not in it), kernels and k-means included on both sides. The direct algorithm decomposes
n x s matrices, all singular values ("full") or the k leading ones by ARPACK ("truncated"). With
`--direct-iterations` it is stopped early and its seconds are extrapolated to as many iterations
as ours took, marked ~; "apart" is ||UU' - HH'||_F of both after equally many. CPU seconds are
those of all threads: on a busy machine they tell more. `--approximation`: error of the subspace
by the number of anchors. Prints Markdown.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import svd
from scipy.sparse.linalg import svds
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from rffpk import PowerKMeans, show_config
from rffpk.smkc import SMKC

# The kernels themselves, as the direct algorithm below takes them.
PLAIN = partial(SMKC, center=False, normalize=False, tol=1e-6)

Array = np.ndarray
Truncation = Callable[[Array, int], tuple[Array, Array]]


@dataclass(frozen=True)
class Shape:
    n: int
    widths: tuple[int, ...]
    k: int
    published: float  # seconds, Intel i7-10870H, ICML 2024, tables 6 and 7


SHAPES = {
    "YtVideo": Shape(101_499, (512, 647, 64, 64, 838), 31, 258.76),
    "Winnipeg": Shape(325_834, (49, 38), 7, 247.90),
}


def generated(n: int, widths: tuple[int, ...], k: int, noise: float = 1.0) -> list[Array]:
    """Views float32 of k clusters that overlap."""
    random = np.random.default_rng(0)
    y = random.integers(k, size=n)
    views = []
    for d in widths:
        centers = 2 * random.standard_normal((k, d), dtype=np.float32)
        views.append(centers[y] + noise * random.standard_normal((n, d), dtype=np.float32))
        views[-1] *= random.gamma(2, size=d).astype(np.float32)  # columns of unequal scale
    return views


# ---- the direct algorithm -----------------------------------------------------------------------


def full(A: Array, k: int) -> tuple[Array, Array]:
    """U D and V' of the rank-k part."""
    U, d, Vt = svd(A, full_matrices=False, check_finite=False)
    return U[:, :k] * d[:k], Vt[:k]


def truncated(A: Array, k: int) -> tuple[Array, Array]:
    U, d, Vt = svds(A, k, v0=np.ones(min(A.shape)))
    order = np.argsort(-d)
    return U[:, order] * d[order], Vt[order]


class Clock:
    """Seconds since it was made, of the wall and of all threads' processor time."""

    def __init__(self) -> None:
        self.begin = self.now()

    @staticmethod
    def now() -> Array:
        return np.array([time.perf_counter(), time.process_time()])

    def read(self) -> Array:
        return self.now() - self.begin


def direct(Gs: list[Array], k: int, iterations: int, part: Truncation) -> tuple[Array, Array]:
    """U, and the seconds of an iteration."""
    Hs = [part(G, k) for G in Gs]
    clock = Clock()
    for _ in range(iterations):
        UD, Vt = part(sum(left @ right for left, right in Hs) / len(Hs), k)
        Hs = [part((G + UD @ Vt) / 2, k) for G in Gs]
    return UD / np.linalg.norm(UD, axis=0), clock.read() / iterations


def distance(U: Array, H: Array) -> float:
    """||UU' - HH'||_F of orthonormal columns, without cancellation."""
    return float(np.sqrt(2) * np.linalg.norm(U - H @ (H.T @ U)))


# ---- measurements -------------------------------------------------------------------------------


def compare(name: str, n: int, parts: dict[str, Truncation], limit: int | None) -> None:
    shape = SHAPES[name]
    xs = generated(n, shape.widths, shape.k)
    clock = Clock()
    model = PLAIN(shape.k, random_state=0).fit(xs)
    ours = clock.read()
    start = f"| {name} | {n} | {len(model.anchors_)} | {model.n_iter_} | {seconds(ours)} "
    end = f"| {shape.published if n == shape.n else ''} |"
    if not parts:
        print(f"{start}| | | | {end}", flush=True)
    for kind, part in parts.items():
        clock = Clock()
        Gs = [
            rbf_kernel(
                x.astype(np.float64), x[model.anchors_].astype(np.float64), kernel.params["gamma"]
            )
            for x, kernel in zip(xs, model._kernels)
        ]
        done = min(model.n_iter_, limit or model.n_iter_)
        U, each = direct(Gs, shape.k, done, part)
        PowerKMeans(shape.k, random_state=0).fit(U)
        theirs = clock.read() + (model.n_iter_ - done) * each
        del Gs
        same, mark = model, ""
        if done < model.n_iter_:
            same, mark = PLAIN(shape.k, max_iter=done, n_init=1, random_state=0).fit(xs), "~"
        print(
            f"{start}| {kind} | {mark}{seconds(theirs)} | {mark}{seconds(theirs / ours)} "
            f"| {distance(same.embedding_, U):.1e} {end}",
            flush=True,
        )


def seconds(pair: Array) -> str:
    return f"{pair[0]:.1f} ({pair[1]:.1f})"


def approximation(n: int, repeats: int) -> None:
    """The figure of the paper's section 6.3 on generated data: with all rows as anchors, and with
    s of them."""
    k = 10
    xs = generated(n, (20, 30), k, noise=3.0)
    H = PLAIN(k, n_anchors=n, random_state=0).fit(xs).embedding_
    counts = [s for s in (50, 100, 200, 400, 800, 1600, 3200) if s < n]
    errors = []
    for s in counts:
        models = [PLAIN(k, n_anchors=s, n_init=1, random_state=r).fit(xs) for r in range(repeats)]
        errors.append(np.mean([distance(model.embedding_, H) for model in models]))
    rates = [np.sqrt(1 / s - 1 / n) for s in counts]
    c = max(error / rate for error, rate in zip(errors, rates))
    print(f"| s | error | c sqrt(1/s - 1/n), c = {c:.1f} | ratio |\n|---|---|---|---|")
    for s, error, rate in zip(counts, errors, rates):
        print(f"| {s} | {error:.3f} | {c * rate:.3f} | {error / (c * rate):.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--rows", nargs="+", type=int, default=[20_000], help="0: all of the set")
    parser.add_argument("--direct", nargs="*", choices=("full", "truncated"), default=["full"])
    parser.add_argument("--direct-iterations", type=int)
    parser.add_argument("--approximation", action="store_true")
    parser.add_argument("--repeats", type=int, default=20)
    args = parser.parse_args()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(f"{show_config()['threads']} threads, load {load:.1f} before\n")
    warnings.simplefilter("ignore", ConvergenceWarning)  # of fits that are stopped on purpose
    if args.approximation:
        approximation(2000, args.repeats)
        return
    parts = {"full": full, "truncated": truncated}
    print(
        "| shape of | rows | anchors | iterations | ours, s (CPU) | direct | s (CPU) | ratio (CPU) "
        "| apart | paper, s |"
    )
    print("|---" * 10 + "|")
    for name in args.shapes:
        for n in args.rows:
            rows = min(n or SHAPES[name].n, SHAPES[name].n)
            compare(name, rows, {kind: parts[kind] for kind in args.direct}, args.direct_iterations)


if __name__ == "__main__":
    main()
