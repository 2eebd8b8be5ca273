"""Measure fits of rows in a .npy file that are read block by block: reading and computing.

Float32 rows of clusters that overlap alike in any number of columns; default fits, of FuzzyCMeans
with m="auto". The file is made in DIR and deleted at the end; with --keep it stays, and a later run
takes it. Each fit runs in a process of its own, in an address space of --limit GB. With --cold the
file leaves the page cache before each reading, so that it comes from the disk.
"Alone" is a reading of the file into one buffer, without a fit. "Pass" is the median pass over all
rows at the end of the fit. It takes at least the longer of reading and computing.
"""

from __future__ import annotations

import argparse
import os
import resource
from pathlib import Path
from typing import Any

import numpy as np

from bench import commands, tables
from bench.datasets import around
from bench.timing import in_own_process, seconds, spent
from rffpk import FuzzyCMeans, PowerKMeans, RFFKernelPowerKMeans
from rffpk.sources import from_npy, spill

MADE = 200_000  # rows at a time
BUFFER = 1 << 23  # bytes
APART = 2.5  # spread of the cluster means: their distances are 3.5 standard deviations of a row
MODELS: dict[str, Any] = {
    "PowerKMeans": PowerKMeans(),
    "FuzzyCMeans": FuzzyCMeans(m="auto"),  # with m = 2 all centroids merge from some 10 columns on
    "RFFKernelPowerKMeans": RFFKernelPowerKMeans(),
}


def rows(n: int, columns: int, clusters: int) -> Any:
    """Return a source of clusters that overlap."""

    def blocks() -> Any:
        random = np.random.default_rng(0)
        centers = random.standard_normal((clusters, columns), dtype=np.float32)
        centers *= np.float32(APART / columns**0.5)
        return (around(centers, min(MADE, n - begin), random) for begin in range(0, n, MADE))

    return blocks


def drop(path: Path) -> None:
    """Drop a file from the page cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())  # only what is written can be dropped
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read(path: Path) -> None:
    buffer = bytearray(BUFFER)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def fit(name: str, args: argparse.Namespace, path: Path) -> dict[str, float]:
    """Fit a model in this process, and return what it took."""
    if args.limit:
        size = int(args.limit * 2**30)
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    source, readings = from_npy(path), 0

    def blocks() -> Any:
        nonlocal readings
        readings += 1
        if args.cold:
            drop(path)
        return source()

    blocks.fresh = True  # type: ignore[attr-defined]
    model = MODELS[name].set_params(n_clusters=args.clusters, random_state=0, n_jobs=args.jobs)
    labels = path.with_suffix(".labels.npy")
    (wall, cpu), _ = spent(lambda: model.fit(blocks, labels_to=labels))
    passes = [r for r in model.history_ if "reading" in r]
    parts = ("seconds", "reading", "computing")
    medians = {key: float(np.median([r[key] for r in passes])) for key in parts}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"fit": wall, "cpu": cpu, "readings": readings, "peak": peak, **medians}


def table(args: argparse.Namespace, path: Path) -> None:
    size = path.stat().st_size / 2**30
    print(f"{args.rows:.0e} rows of {args.columns} columns, {size:.1f} GB", flush=True)
    if args.cold:
        drop(path)
    alone = seconds(lambda: read(path))
    print(f"read alone in {alone:.1f} s, {args.rows / alone:.2e} rows a second\n", flush=True)
    tables.print_heading(
        "estimator", "fit, s", "CPU s", "readings", "rows a second and reading", "alone / fit",
        "pass, s", "reading, s", "computing, s", "pass / longer part", "peak, MB",
    )  # fmt: skip
    for name in args.classes:
        took = in_own_process(fit, name, args, path)
        rate, share = took["readings"] / took["fit"], took["readings"] * alone / took["fit"]
        parts = took["seconds"], took["reading"], took["computing"]
        numbers = share, *parts, parts[0] / max(parts[1:])
        tables.print_row(
            name, *tables.cells((took["fit"], took["cpu"]), ".1f"), took["readings"],
            f"{rate * args.rows:.2e}", *tables.cells(numbers, ".2f"), f"{took['peak']:.0f}",
        )  # fmt: skip


def main() -> None:
    args = commands.arguments(
        __doc__, folder={"required": True}, rows=20_000_000, columns=50, clusters=10,
        classes=commands.Names(MODELS), jobs=int, limit=float, cold=False, keep=False,
    )  # fmt: skip
    path = Path(args.folder) / f"rffpk-streams-{args.rows}-{args.columns}.npy"
    try:
        if not path.exists():
            spill(rows(args.rows, args.columns, args.clusters), path)
        table(args, path)
    finally:
        path.with_suffix(".labels.npy").unlink(missing_ok=True)
        if not args.keep:
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
