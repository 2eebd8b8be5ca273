"""Measure passes over rows of small types and of length one, beside passes over float32 rows.

    python -m bench.speed.small_types [--rows N] [--repeats N]

Rows have 128 columns. Passes take turns on one thread, and the least CPU seconds of each count.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from bench import commands, tables
from bench.internals import Identity, Narrow, Unit, make_rows, one_pass, ones
from bench.timing import alternate, cpu_timed

COLUMNS = 128


def main() -> None:
    args = commands.arguments(__doc__, rows=1_000_000, repeats=5)
    random = np.random.default_rng(0)
    x = random.integers(-60, 60, (args.rows, COLUMNS), dtype=np.int8)
    wide = x.astype(np.float32)
    kinds = {
        "float32": wide,
        "float16": Narrow(wide.astype(np.float16)),
        "bfloat16": Narrow((wide.view(np.uint32) >> 16).astype(np.uint16)),
        "int8": Narrow(x),
    }
    tables.print_heading("k", *kinds, *(f"{name}, cosine" for name in kinds))
    shift = [np.zeros(COLUMNS, dtype=np.float32)]
    for k in (10, 100):
        theta = random.normal(0, 30, (k, COLUMNS)).astype(np.float32)
        measures = {}
        for mapped in (Identity(COLUMNS), Unit(COLUMNS)):
            for name, table in kinds.items():
                rows = make_rows([table], [mapped], ones(len(table)), 1, shift)
                measures[name, mapped] = partial(cpu_timed, partial(one_pass, rows, theta, -1.0))
        times = alternate(measures, args.repeats).values()
        least = [min(seconds for seconds, _ in turns) for turns in times]
        tables.print_row(k, *tables.cells((seconds / least[0] for seconds in least), ".2f"))


if __name__ == "__main__":
    main()
