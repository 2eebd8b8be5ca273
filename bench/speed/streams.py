"""Fits of rows in a .npy file that are read block by block: their seconds of reading and computing.

    python -m bench.speed.streams --folder DIR [--rows N] [--columns D] [--clusters K]
        [--classes NAME ...] [--jobs N] [--limit GB] [--cold] [--keep]

Float32 rows of clusters that overlap alike in any number of columns; default fits, of FuzzyCMeans
with m="auto". The file is made in DIR and deleted at the end;
with --keep it stays, and one that is there is taken. Each fit runs in a process of its own, with a
limit of its address space if that is asked for. --cold drops the file from the page cache before
each reading, so that it comes from the disk. "Alone" is a reading of the file into one buffer,
without a fit. "Pass" are the passes over all rows that end the fit, in the median; they take at
least the longer of reading and computing. "All readings" is the sum of that longer part over all
readings of a fit; the search takes the rest.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bench import commands, tables
from bench.datasets import around
from bench.timing import clocks, seconds
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
    """A source of clusters that overlap."""

    def blocks() -> Any:
        random = np.random.default_rng(0)
        centers = random.standard_normal((clusters, columns), dtype=np.float32)
        centers *= np.float32(APART / columns**0.5)
        return (around(centers, min(MADE, n - begin), random) for begin in range(0, n, MADE))

    return blocks


def drop(path: Path) -> None:
    """Drop the file from the page cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())  # only what is written can be dropped
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read(path: Path) -> None:
    buffer = bytearray(BUFFER)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def fit(args: argparse.Namespace, path: Path) -> dict[str, float]:
    """A fit in this process."""
    source, readings = from_npy(path), 0

    def blocks() -> Any:
        nonlocal readings
        readings += 1
        if args.cold:
            drop(path)
        return source()

    blocks.fresh = True  # type: ignore[attr-defined]
    model = MODELS[args.fit].set_params(n_clusters=args.clusters, random_state=0, n_jobs=args.jobs)
    before = clocks()
    model.fit(blocks, labels_to=path.with_suffix(".labels.npy"))
    wall, cpu = clocks() - before
    passes = [r for r in model.history_ if "reading" in r]
    found = {
        key: float(np.median([r[key] for r in passes]))
        for key in ("seconds", "reading", "computing")
    }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "fit": wall, "cpu": cpu, "passes": len(passes), "readings": readings, "peak": peak, **found
    }  # fmt: skip


def measured(name: str, args: argparse.Namespace) -> dict[str, float]:
    """A fit in a process of its own."""
    command = [sys.executable, "-m", "bench.speed.streams", *sys.argv[1:], "--fit", name]
    limit = None
    if args.limit:
        size = int(args.limit * 2**30)
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size))  # noqa: E731
    run = subprocess.run(command, preexec_fn=limit, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(run.stdout)


def table(args: argparse.Namespace, path: Path) -> None:
    size = path.stat().st_size / 2**30
    print(f"{args.rows:.0e} rows of {args.columns} columns, {size:.1f} GB", flush=True)
    if args.cold:
        drop(path)
    alone = seconds(lambda: read(path))
    print(f"read alone in {alone:.1f} s, {args.rows / alone:.2e} rows a second\n", flush=True)
    tables.print_heading(
        "estimator", "fit, s", "CPU s", "readings", "rows a second and reading", "alone / fit",
        "pass, s", "reading, s", "computing, s", "pass / longer part", "fit / all readings",
        "peak, MB",
    )  # fmt: skip
    for name in args.classes:
        found = measured(name, args)
        longer, readings = max(found["reading"], found["computing"]), found["readings"]
        tables.print_row(
            name,
            f"{found['fit']:.1f}",
            f"{found['cpu']:.1f}",
            f"{readings:.0f}",
            f"{readings * args.rows / found['fit']:.2e}",
            f"{readings * alone / found['fit']:.2f}",
            f"{found['seconds']:.2f}",
            f"{found['reading']:.2f}",
            f"{found['computing']:.2f}",
            f"{found['seconds'] / longer:.2f}",
            f"{found['fit'] / (readings * longer):.2f}",
            f"{found['peak']:.0f}",
        )


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--classes", nargs="+", choices=MODELS, default=MODELS, metavar="NAME")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--limit", type=float, metavar="GB")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--fit", choices=MODELS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    path = Path(args.folder) / f"rffpk-streams-{args.rows}-{args.columns}.npy"
    if args.fit:
        print(json.dumps(fit(args, path)))
        return
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
