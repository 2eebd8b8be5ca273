"""Fits of rows in a .npy file that are read block by block: their seconds of reading and computing.

    python -m bench.speed.streams --folder DIR [--rows N] [--limit GB] [--cold]

Rows of 50 float32 columns, k = 10, PowerKMeans and RFFKernelPowerKMeans with 108 frequencies. The
file is made in DIR and deleted at the end. Each fit runs in a process of its own, with a limit of
its address space if that is asked for. --cold drops the file from the page cache before each
reading, so that it comes from the disk. "Pass" are the passes over all rows that end the fit, in
the median; they take at least the longer of reading and computing. "All readings" is the sum of
that longer part over all readings of a fit, two more than passes; the search takes the rest.
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
from bench.timing import timed
from rffpk import PowerKMeans, RFFKernelPowerKMeans
from rffpk.sources import from_npy, spill

COLUMNS, CLUSTERS, D = 50, 10, 108
MADE = 200_000  # rows at a time
MODELS: dict[str, Any] = {
    "PowerKMeans": PowerKMeans(CLUSTERS, random_state=0),
    "RFFKernelPowerKMeans": RFFKernelPowerKMeans(CLUSTERS, n_frequencies=D, random_state=0),
}


def rows(n: int) -> Any:
    """A source of clusters that overlap."""

    def blocks() -> Any:
        random = np.random.default_rng(0)
        centers = 0.35 * random.standard_normal((CLUSTERS, COLUMNS), dtype=np.float32)
        return (around(centers, min(MADE, n - begin), random) for begin in range(0, n, MADE))

    return blocks


def cold(path: Path) -> Any:
    """A source that drops the file from the page cache before it is read."""
    source = from_npy(path)

    def blocks() -> Any:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return source()

    return blocks


def fit(name: str, path: Path, is_cold: bool) -> dict[str, float]:
    """A fit in this process."""
    source = cold(path) if is_cold else from_npy(path)
    labels = path.with_suffix(".labels.npy")
    seconds, model = timed(lambda: MODELS[name].fit(source, labels_to=labels))
    passes = [r for r in model.history_ if "reading" in r]
    found = {
        key: float(np.median([r[key] for r in passes]))
        for key in ("seconds", "reading", "computing")
    }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"fit": seconds, "passes": len(passes), "peak": peak, **found}


def measured(name: str, args: argparse.Namespace, path: Path) -> dict[str, float]:
    """A fit in a process of its own."""
    command = [sys.executable, "-m", "bench.speed.streams", "--folder", args.folder, "--fit", name]
    limit = None
    if args.limit:
        size = int(args.limit * 2**30)
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size))  # noqa: E731
    run = subprocess.run(
        command + ["--cold"] * args.cold,
        preexec_fn=limit, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(run.stdout)


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--limit", type=float, metavar="GB")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--fit", choices=MODELS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    path = Path(args.folder) / "rffpk-streams.npy"
    if args.fit:
        print(json.dumps(fit(args.fit, path, args.cold)))
        return
    try:
        spill(rows(args.rows), path)
        tables.print_heading(
            "estimator", "rows", "file, GB", "pass, s", "reading, s", "computing, s",
            "pass / longer part", "fit, s", "readings", "fit / all readings", "peak, MB",
        )  # fmt: skip
        for name in MODELS:
            found = measured(name, args, path)
            longer, readings = max(found["reading"], found["computing"]), found["passes"] + 2
            tables.print_row(
                name,
                f"{args.rows:.0e}",
                f"{path.stat().st_size / 2**30:.1f}",
                f"{found['seconds']:.2f}",
                f"{found['reading']:.2f}",
                f"{found['computing']:.2f}",
                f"{found['seconds'] / longer:.2f}",
                f"{found['fit']:.1f}",
                f"{readings:.0f}",
                f"{found['fit'] / (readings * longer):.2f}",
                f"{found['peak']:.0f}",
            )
    finally:
        path.unlink(missing_ok=True)
        path.with_suffix(".labels.npy").unlink(missing_ok=True)


if __name__ == "__main__":
    main()
