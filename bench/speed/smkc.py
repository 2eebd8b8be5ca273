"""Seconds of SMKC on coordinates and of SMKC by decompositions of n x s matrices.

    python -m bench.speed.smkc [--shapes NAME ...] [--rows N ...] [--direct full truncated]
    python -m bench.speed.smkc --data DIR

Generated data of the shapes of two data sets of the paper (rows, views, clusters; it does not state
the widths of the views), kernels and k-means included on both sides. The direct algorithm
decomposes n x s matrices, all singular values ("full") or the k leading ones by ARPACK
("truncated"). With --direct-iterations it is stopped early and its seconds are extrapolated to the
number of iterations of ours, marked ~; "distance" is ||UU' - HH'||_F of both after equally many
iterations. CPU seconds are summed over all threads: on a busy machine they are more reliable.
With --data instead: whole fits of SMKC and of SimpleMKKM, with their defaults, on real multi-view
sets, the least seconds of three fits each.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy.linalg import svd
from scipy.sparse.linalg import svds
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from bench import commands, tables
from bench.datasets import MULTI_VIEW, prepared_views, uneven_views
from bench.scores import subspace_distance
from bench.timing import clocks
from rffpk import SMKC, PowerKMeans, SimpleMKKM, show_config

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
    """U D and V' of the rank-k part."""
    U, d, Vt = svd(A, full_matrices=False, check_finite=False)
    return U[:, :k] * d[:k], Vt[:k]


def truncated(A: Array, k: int) -> tuple[Array, Array]:
    U, d, Vt = svds(A, k, v0=np.ones(min(A.shape)))
    order = np.argsort(-d)
    return U[:, order] * d[order], Vt[order]


PARTS: dict[str, Truncation] = {"full": full, "truncated": truncated}


def direct(Gs: list[Array], k: int, iterations: int, part: Truncation) -> tuple[Array, Array]:
    """U, and the seconds of an iteration."""
    Hs = [part(G, k) for G in Gs]
    begin = clocks()
    for _ in range(iterations):
        UD, Vt = part(sum(left @ right for left, right in Hs) / len(Hs), k)
        Hs = [part((G + UD @ Vt) / 2, k) for G in Gs]
    return UD / np.linalg.norm(UD, axis=0), (clocks() - begin) / iterations


# ---- measurements -------------------------------------------------------------------------------


def compare(name: str, n: int, kinds: list[str], limit: int | None) -> None:
    """Both algorithms on data of the shape of a set; the direct one with at most `limit`
    iterations."""
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
        U, each = direct(Gs, shape.k, done, PARTS[kind])
        PowerKMeans(shape.k, random_state=0).fit(U)
        theirs = clocks() - begin + (model.n_iter_ - done) * each
        del Gs
        same, mark = model, ""
        if done < model.n_iter_:
            same, mark = PLAIN(shape.k, max_iter=done, n_init=1, random_state=0).fit(xs), "~"
        times = (f"{mark}{in_seconds(pair)}" for pair in (theirs, theirs / ours))
        distance = f"{subspace_distance(same.embedding_, U):.1e}"
        tables.print_row(*start, kind, *times, distance, end)


def real_set(data: Path, name: str) -> None:
    """Fits of SMKC and SimpleMKKM in turn."""
    views, y = prepared_views(data, name)
    k = len(np.unique(y))
    models = SMKC(k, random_state=0), SimpleMKKM(k, random_state=0)
    found: list[list[Array]] = [[], []]
    for _ in range(3):
        for model, times in zip(models, found):
            begin = clocks()
            model.fit(views)
            times.append(clocks() - begin)
    ours, theirs = (np.min(times, axis=0) for times in found)
    tables.print_row(
        f"{name} ({len(y)}, {len(views)}, {k})", models[0].n_iter_, in_seconds(ours),
        in_seconds(theirs), in_seconds(ours / theirs),
    )  # fmt: skip


def in_seconds(pair: Array) -> str:
    return f"{pair[0]:.2f} ({pair[1]:.2f})"


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--rows", nargs="+", type=int, default=[20_000], help="0: all of the set")
    parser.add_argument("--direct", nargs="*", choices=PARTS, default=["full"])
    parser.add_argument("--direct-iterations", type=int)
    commands.add_data(parser, required=False)
    args = parser.parse_args()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(f"{show_config()['threads']} threads, load {load:.1f} before\n")
    warnings.simplefilter("ignore", ConvergenceWarning)  # of fits that are stopped on purpose
    if args.data:
        tables.print_heading(
            "set (n, views, k)", "iterations", "SMKC, s (CPU)", "SimpleMKKM, s (CPU)", "ratio (CPU)"
        )
        for name in MULTI_VIEW:
            real_set(args.data, name)
        return
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
