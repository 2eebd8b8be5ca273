"""Measure a pass over several views beside passes over single views, and their lower bounds.

A pass over 10^6 rows in 3 views and over 10^5 in 12. --rows: fewer.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from statistics import median

import numpy as np

from bench import commands, tables, timing
from bench.speed.adapters import passes
from bench.speed.problems import Machine, Problem
from rffpk import show_config
from rffpk.rows.arrays import Fourier
from rffpk.rows.passes import centered, make_rows, shifted_features
from rffpk.rows.weights import ones


def make_views(n: int, widths: tuple[int, ...]) -> tuple[list[np.ndarray], list[Fourier]]:
    """Draw Gaussian rows and frequencies, D = 108 each, float32."""
    random = np.random.default_rng(0)
    xs = [random.standard_normal((n, d), dtype=np.float32) for d in widths]
    omegas = (random.standard_normal((d, 108)) / np.sqrt(2 * d) for d in widths)
    return xs, [Fourier(omega.astype(np.float32)) for omega in omegas]


def speed(n: int, widths: tuple[int, ...], k: int = 10) -> None:
    """Print the seconds of a pass over single views and over all, with the lower bounds."""
    threads = show_config()["threads"]
    xs, maps = make_views(n, widths)
    together = centered(make_rows(xs, maps, ones(len(xs[0])), threads))
    cases = {
        f"view {i}, d = {d}": centered(make_rows([x], [mapped], ones(len(x)), threads))
        for i, (d, x, mapped) in enumerate(zip(widths, xs, maps))
    }
    single = list(cases)
    cases["all views"] = together
    cases["all views, typicality"] = replace(together, eta=np.full(len(xs), 0.5), m=2.0)
    machine = Machine("float32", threads)
    bounds = dict(zip(single, (machine.lower_bound(Problem(n, d, 108, k)) for d in widths)))
    measures = {}
    for name, rows in cases.items():
        run = passes(rows, shifted_features(rows.take(np.arange(k))), -3.0)
        measures[name] = partial(timing.pinned, run, threads)
    took = {name: median(times) for name, times in timing.alternate(measures, 5).items()}
    print(f"\nn = {n}, {len(widths)} views of {sorted(set(widths))} columns, k = {k}\n")
    tables.print_heading("views", "s = -3, s", "lower bound, s", "of the sum of single passes")
    for name in cases:
        bound = bounds.get(name, sum(bounds.values()))
        share = took[name] / sum(took[other] for other in single)
        tables.print_row(name, f"{took[name]:.4f}", f"{bound:.4f}", f"{share:.2f}")


def main() -> None:
    args = commands.arguments(__doc__, rows=1_000_000)
    speed(args.rows, (20, 50, 100))
    speed(args.rows // 10, (50,) * 12)


if __name__ == "__main__":
    main()
