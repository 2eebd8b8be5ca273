"""Measure the papers' tables and figures on the available data sets, beside published values.

Writes Markdown to --out. Cells, the entries of the tables, are cached in --cache, so that an
interrupted run continues. Entries of the page that the cache does not have stay as they
are, so that a part of the tables or methods can be measured again. Points of a grid except the best
have --grid-repeats repeats. A cell has --cell-limit seconds, and --jobs cells at a time share the
cores.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import chain
from pathlib import Path

import rffpk
from bench import commands
from bench.papers import figures, tables
from bench.papers.cells import EXPERIMENTS, Cache, Cell, run, stored_name
from bench.papers.methods import AVERAGED

RESULTS = Path("bench/results/papers")
PACKAGES = ("python", "numpy", "scipy", "scikit-learn")

INTRODUCTION = """{command}: repeats differ by their seeds, 0, 1, ... Left is the paper's protocol.
A grid is searched by the labels only where the paper does so (best of N). Right are our defaults,
without labels. They are in bold where ACC (or NMI, if the paper has no ACC) is at least the
published value. Scores are means and standard deviations in percent, and differences are ours minus
published. Seconds are of one fit, without the preparation of views, kernels and scaling. A run
replaces the entries that it measured and leaves all other entries, so that seconds of different
methods may be of different runs. [Choices](choices.md) says what a paper leaves open. The last run
measured {methods}."""


def main() -> None:
    known = commands.Names([*EXPERIMENTS, *figures.FIGURES])
    args = commands.arguments(
        __doc__, data=commands.NEEDS_DATA, only=known, methods={"nargs": "+"}, repeats=5,
        grid_repeats=int, cell_limit=60.0, jobs=1, out={"type": Path, "default": RESULTS},
        cache={"type": Path, "default": Path("papers.jsonl")},
    )  # fmt: skip
    os.environ["OMP_NUM_THREADS"] = str(threads(args.jobs))
    wanted = args.only
    sets = {stored_name(each) for name in wanted for each in EXPERIMENTS.get(name, [])}
    if sets and not any((args.data / f"{name}.npz").exists() for name in sets):
        commands.stop(
            f"{args.data} has none of the sets {', '.join(sorted(sets))}; bench/README.md says "
            "where they come from."
        )
    args.out.mkdir(parents=True, exist_ok=True)
    cache = Cache(args.cache)
    fill(cache, [name for name in EXPERIMENTS if name in wanted], args)
    for name in figures.FIGURES:
        if name not in wanted:
            continue
        print(f"figure {name}", flush=True)
        try:
            text = figures.measure(name, args.data)
        except FileNotFoundError as error:
            print(f"left out: {error.filename} is missing")
        else:
            cache.put({"key": f"figure / {name}", "text": text})
    write(cache, args)


def threads(jobs: int) -> int:
    """Return the threads of a cell: a limit of the environment, or a share of the cores."""
    return int(os.environ.get("OMP_NUM_THREADS") or max(1, (os.cpu_count() or 1) // jobs))


def fill(cache: Cache, experiments: list[str], args: argparse.Namespace) -> None:
    """Run the cells that the cache lacks, or holds with fewer repeats.

    All points of a grid run with --grid-repeats, and then the best until it has all repeats.
    """
    grids = [
        grid
        for name in experiments
        for (_, method), protocols in tables.groups(name, args.data).items()
        for grid in protocols.values()
        if grid and (not args.methods or method in args.methods)
    ]
    searched = [grid for grid in grids if len(grid) > 1 and grid[0].method not in AVERAGED]
    plain = [grid for grid in grids if grid not in searched]
    compute(cache, [*chain(*searched)], args.grid_repeats or args.repeats, args)
    compute(cache, [*chain(*plain)], args.repeats, args)
    while True:
        best = [tables.best_variant(grid, cache.found) for grid in searched]
        todo = [pair[0] for pair in best if pair]
        if not compute(cache, todo, args.repeats, args):
            return


def compute(cache: Cache, wanted: list[Cell], repeats: int, args: argparse.Namespace) -> int:
    """Run the cells that the cache lacks, print the time left, and return their number."""
    bounds = repeats, args.cell_limit
    todo = [cell for cell in wanted if cache.wants(cell.key, *bounds)]
    started = time.monotonic()
    with ThreadPoolExecutor(args.jobs) as pool:  # each thread waits for a process
        running = [pool.submit(run, cell, args.data, *bounds) for cell in todo]
        for number, future in enumerate(as_completed(running), 1):
            record = future.result()
            cache.put(record)
            left = (time.monotonic() - started) / number * (len(todo) - number) / 60
            end = f"NMI {record['rows'][-1][1]:.1f}" if record["rows"] else ""
            print(
                f"[{number}/{len(todo)}, {left:.0f} min left] {record['key']}: "
                f"{len(record['rows'])} repeats {end} {record['note']}",
                flush=True,
            )
    return len(todo)


def write(cache: Cache, args: argparse.Namespace) -> None:
    """Write all tables from the cache and the page, with versions, seeds and hardware."""
    path = args.out / "tables.md"
    page = path.read_text() if path.exists() else ""
    earlier = tables.earlier_rows(page)
    measured = dict.fromkeys(key.split(" / ")[2] for key in cache.found if " / " in key[9:])
    config = rffpk.show_config()
    versions = ", ".join(f"{key} {config[key]}" for key in PACKAGES)
    hardware = (
        f"{os.cpu_count()} cores, {platform.machine()}, {config['isa']}, {args.jobs} cells at a "
        f"time, with threads for {threads(args.jobs)} of the cores each"
    )
    command = f"python -m bench.papers --data DIR --repeats {args.repeats}"
    command += f" --grid-repeats {args.grid_repeats}" if args.grid_repeats else ""
    command = f"`{command} --cell-limit {args.cell_limit:g} --jobs {args.jobs}`"
    parts = [
        "# The papers' tables",
        "",
        INTRODUCTION.format(command=command, methods="; ".join(measured)),
        f"rffpk {config['version']}, {versions}; {hardware}.",
        "",
        "## Claims",
        "",
        tables.claims(args.data, cache.found, earlier),
        "## Tables",
        "",
        *(tables.table(name, args.data, cache.found, earlier) for name in EXPERIMENTS),
        "## Figures",
        "",
    ]
    drawn = dict(re.findall(r"^### (.+)\n\n((?:(?!#).*\n?)*)", page, re.MULTILINE))
    for name in figures.FIGURES:
        text = cache.found.get(f"figure / {name}", {}).get("text") or drawn.get(name)
        if text:
            parts += [f"### {name}", "", text.strip(), ""]
    path.write_text("\n".join(parts))
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
