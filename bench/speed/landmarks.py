"""Landmark features against their product with the landmarks at the machine's sgemm rate.

    python -m bench.speed.landmarks [--rows N] [--threads N] [--repeats N]

Float32 rows of 50 columns, 1000 landmarks, 5 neighbours, 30 coordinates: the pass that makes the
features, its product alone, and the sums that the coordinates come from. The ratio is the time of
n d m multiply-adds at the rate of a product of 2000 x 2000, measured beside, over the seconds.
"""

from __future__ import annotations

import os
from functools import partial
from statistics import median

import numpy as np

from bench import commands, tables, timing
from bench.internals import Landmarks, _core, landmark_sums
from bench.speed.problems import Machine

D, M, R, Q = 50, 1000, 5, 30


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    random = np.random.default_rng(0)
    x = random.standard_normal((args.rows, D), dtype=np.float32)
    coordinates = random.standard_normal((M, Q), dtype=np.float32)
    landmarks = Landmarks(x[random.choice(len(x), M, replace=False)], R, 0.0, coordinates)
    features = np.empty((len(x), Q), dtype=np.float32)
    origin = np.zeros((1, Q), dtype=np.float32)
    given = [x], [None], [origin[0]], origin, np.ones(1), None, _core.HARD, -1.0, args.threads
    product = _core.STAGES["load"] | _core.STAGES["project"]
    calls = {
        "features": partial(_core.fused_pass, *given, landmarks=[landmarks], features=features),
        "the product alone": partial(
            _core.fused_pass, *given, landmarks=[landmarks], stages=product
        ),
        "sums for the coordinates": partial(landmark_sums, x, landmarks, None, args.threads),
    }
    machine = Machine("float32", args.threads)
    machine.gemm()
    measures = {
        name: partial(timing.pinned, partial(timing.seconds, call), args.threads)
        for name, call in calls.items()
    }
    took = timing.alternate({**measures, "gemm": machine.gemm}, args.repeats, warm_up=True)
    rate = median(took.pop("gemm"))
    floor = 2.0 * len(x) * D * M / rate
    print(f"n = {len(x)}, {args.threads} threads, sgemm {rate / 1e9:.0f} Gflop/s\n")
    tables.print_heading("", "s", "ratio")
    for name, times in took.items():
        tables.print_row(name, f"{median(times):.3f}", f"{floor / median(times):.2f}")


if __name__ == "__main__":
    main()
