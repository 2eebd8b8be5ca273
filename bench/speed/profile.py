"""Measure the nanoseconds a row of each part of the pass, which runs alone on one thread."""

from __future__ import annotations

from functools import partial
from itertools import product

from bench import commands, tables
from bench.speed.adapters import Setting
from bench.speed.problems import PROBLEMS
from bench.timing import median, seconds
from rffpk import _core
from rffpk.rows.arrays import Fourier


def profile(setting: Setting, repeats: int) -> list[float]:
    """Return the time of no part, of each part and of all parts."""
    rows, theta = setting.rows, setting.theta.astype(setting.dtype)
    omegas = [m.frequencies if isinstance(m, Fourier) else None for m in rows.maps]

    def run(stages: int) -> float:
        return seconds(
            lambda: _core.fused_pass(
                rows.xs, omegas, rows.shifts, theta, rows.alpha, None,
                _core.POWER, -3.0, 1, stages=stages,
            )
        )  # fmt: skip

    masks = (0, *_core.STAGES.values(), sum(_core.STAGES.values()))
    return [median(partial(run, mask), repeats) / rows.n * 1e9 for mask in masks]


def main() -> None:
    args = commands.arguments(
        __doc__, problems=(*range(len(PROBLEMS)),), dtypes=("float32", "float64"), repeats=5
    )
    tables.print_heading("problem", "dtype", "nothing", *_core.STAGES, "all")
    for index, dtype in product(args.problems, args.dtypes):
        parts = profile(Setting(PROBLEMS[index], dtype, 1), args.repeats)
        tables.print_row(PROBLEMS[index].name, dtype, *tables.cells(parts, ".1f"))


if __name__ == "__main__":
    main()
