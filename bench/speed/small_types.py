"""CPU seconds of a pass over rows of small types and of length one, over those of float32 rows.

    python -m bench.speed.small_types [--rows N] [--repeats N]

Rows of 128 columns; the passes take turns, and the least of each counts.
"""

from __future__ import annotations

import time

import numpy as np

from bench import commands, tables
from bench.internals import NarrowRows, Unit, make_rows, one_pass

COLUMNS = 128


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    x = rng.integers(-60, 60, (args.rows, COLUMNS), dtype=np.int8)
    wide = x.astype(np.float32)
    bits = (wide.view(np.uint32) >> 16).astype(np.uint16)
    kinds = {
        "float32": wide,
        "float16": NarrowRows(wide.astype(np.float16)),
        "bfloat16": NarrowRows(bits),
        "int8": NarrowRows(x),
    }
    tables.print_heading("k", *kinds, *(f"{name}, cosine" for name in kinds))
    shift = [np.zeros(COLUMNS, dtype=np.float32)]
    for k in (10, 100):
        theta = rng.normal(0, 30, (k, COLUMNS)).astype(np.float32)
        runs = [
            make_rows([rows], [each], None, 1, shift)
            for each in (None, Unit(COLUMNS))
            for rows in kinds.values()
        ]
        seconds = np.full((args.repeats, len(runs)), np.inf)
        for line in seconds:
            for i, rows in enumerate(runs):
                started = time.process_time()
                one_pass(rows, theta, -1.0)
                line[i] = time.process_time() - started
        least = seconds.min(axis=0)
        tables.print_row(k, *(f"{ratio:.2f}" for ratio in least / least[0]))


if __name__ == "__main__":
    main()
