"""Measure SMKC on coordinates beside SMKC by decompositions of n x s matrices.

    python -m bench.speed.smkc [--shapes NAME ...] [--rows N ...] [--direct full truncated]
        [--direct-iterations N]

Generated data have the shapes of two data sets of the paper (rows, views and clusters; it does not
state the widths of the views). Seconds include kernels and k-means on both sides. The direct
algorithm decomposes n x s matrices, all singular values ("full") or the k leading ones by ARPACK
("truncated"). With --direct-iterations it is stopped early and its seconds are extrapolated to the
number of iterations of ours, marked ~; "distance" is ||UU' - HH'||_F of both after equally many
iterations. CPU seconds are summed over all threads: on a busy machine they are more reliable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import svd
from scipy.sparse.linalg import svds
from sklearn.metrics.pairwise import rbf_kernel

from bench import commands, tables
from bench.datasets import uneven_views
from bench.scores import subspace_distance
from bench.timing import clocks
from rffpk import SMKC, PowerKMeans

# Without centering and normalisation, like the direct algorithm below.
PLAIN = partial(SMKC, standardize=False, tol=1e-6)

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


def full(A: Array, k: int) -> tuple[Array, Array]:
    """Return U D and V' of the rank-k part."""
    U, d, Vt = svd(A, full_matrices=False, check_finite=False)
    return U[:, :k] * d[:k], Vt[:k]


def truncated(A: Array, k: int) -> tuple[Array, Array]:
    U, d, Vt = svds(A, k, v0=np.ones(min(A.shape)))
    order = np.argsort(-d)
    return U[:, order] * d[order], Vt[order]


PARTS: dict[str, Truncation] = {"full": full, "truncated": truncated}


def direct(Gs: list[Array], k: int, iterations: int, part: Truncation) -> tuple[Array, Array]:
    """Return U, and the seconds of an iteration."""
    Hs = [part(G, k) for G in Gs]
    begin = clocks()
    for _ in range(iterations):
        UD, Vt = part(sum(left @ right for left, right in Hs) / len(Hs), k)
        Hs = [part((G + UD @ Vt) / 2, k) for G in Gs]
    return UD / np.linalg.norm(UD, axis=0), (clocks() - begin) / iterations


# ---- measurements -------------------------------------------------------------------------------


def compare(name: str, n: int, kinds: list[str], limit: int | None) -> None:
    """Compare both algorithms on data of the shape of a set.

    The direct algorithm has at most `limit` iterations.
    """
    shape = SHAPES[name]
    xs = uneven_views(n, shape.widths, shape.k)
    begin = clocks()
    model = PLAIN(shape.k, random_state=0).fit(xs)
    ours = clocks() - begin
    start = (name, n, len(model.anchors_), model.n_iter_, in_seconds(ours))
    end = shape.published if n == shape.n else ""
    if not kinds:
        tables.print_row(*start, "", "", "", "", end)
    for kind in kinds:
        begin = clocks()
        Gs = [
            rbf_kernel(
                x.astype(np.float64), x[model.anchors_].astype(np.float64), kernel.params["gamma"]
            )
            for x, kernel in zip(xs, model._kernels)
        ]
        done = min(model.n_iter_, limit or model.n_iter_)
        U, one = direct(Gs, shape.k, done, PARTS[kind])
        PowerKMeans(shape.k, random_state=0).fit(U)
        theirs = clocks() - begin + (model.n_iter_ - done) * one
        del Gs
        same, mark = model, ""
        if done < model.n_iter_:
            same, mark = PLAIN(shape.k, max_iter=done, n_init=1, random_state=0).fit(xs), "~"
        times = (f"{mark}{in_seconds(pair)}" for pair in (theirs, theirs / ours))
        distance = f"{subspace_distance(same.embedding_, U):.1e}"
        tables.print_row(*start, kind, *times, distance, end)


def in_seconds(pair: Array) -> str:
    return f"{pair[0]:.2f} ({pair[1]:.2f})"


def main() -> None:
    args = commands.arguments(
        __doc__, shapes=commands.Names(SHAPES), rows=(20_000,), direct_iterations=int,
        direct={"nargs": "*", "choices": PARTS, "default": ["full"]},
    )  # fmt: skip
    tables.print_heading(
        "shape of", "rows", "anchors", "iterations", "ours, s (CPU)", "direct", "s (CPU)",
        "ratio (CPU)", "distance", "paper, s",
    )  # fmt: skip
    for name in args.shapes:
        for n in args.rows:
            rows = min(n or SHAPES[name].n, SHAPES[name].n)
            compare(name, rows, args.direct, args.direct_iterations)


if __name__ == "__main__":
    main()
