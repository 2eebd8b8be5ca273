"""Measure the core by the value of a tuning constant of src/rffpk/_core/tuning.h.

    python -m bench.speed.constants SLOT_ROWS 512 2048

The core is built as it is and once with each of the values. The builds run in turn on one problem
in one process. Printed is the median time of each over that of the core as it is. The constants of
the skinny product are measured with that product of --points rows and columns, LANDMARK_BLOCK with
a pass over landmark features, and the rest with the pass. With --threads 1 times are CPU seconds,
which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from bench import commands
from rffpk.rows.arrays import Landmarks

ROOT = Path(__file__).parents[2]
HEADER = ROOT / "src" / "rffpk" / "_core" / "tuning.h"

Array = NDArray[Any]
Run = Callable[[ModuleType], Array]


def constants() -> dict[str, str]:
    """Return the names of the tuning constants, and their values as text."""
    return dict(re.findall(r"^#define RFFPK_(\w+) (.+)$", HEADER.read_text(), re.MULTILINE))


def build(folder: Path, definition: str | None) -> ModuleType:
    """Build the core in `folder`, with a macro definition, as one module."""
    folder.mkdir()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    flags = [f"-Dc_args=-DRFFPK_{definition}"] if definition else []
    for command in (
        ["meson", "setup", "--buildtype=release", *flags, str(folder), str(ROOT)],
        ["meson", "compile", "-C", str(folder)],
    ):
        done = subprocess.run(
            command, env={**os.environ, "PATH": path}, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
    before, core = dict(sys.modules), ModuleType(folder.name)
    try:
        for name in ("_runtime", "_pass", "_products"):
            (library,) = folder.glob(f"src/rffpk/_core/{name}.*.so")
            spec = importlib.util.spec_from_file_location(f"rffpk._core.{name}", library)
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module  # where the others find _runtime
            spec.loader.exec_module(module)
            vars(core).update(vars(module))
    finally:
        sys.modules.update(before)
    return core


def pass_problem(args: argparse.Namespace) -> Run:
    """Return a function that runs one pass of a build and returns an array of its results."""
    random = np.random.default_rng(0)
    x = random.standard_normal((args.rows, args.columns), dtype=np.float32)
    omega = random.standard_normal((args.columns, args.frequencies), dtype=np.float32)
    omega *= 1 / args.columns
    phase = x[: args.clusters] @ omega
    theta = np.hstack([np.sin(phase), np.cos(phase)]) / np.float32(args.frequencies**0.5)
    shift = np.zeros(2 * args.frequencies, dtype=np.float32)
    inputs = [x], [omega], [shift], theta, np.ones(1), None
    return lambda core: core.fused_pass(*inputs, core.POWER, -3.0, args.threads)[0]


def landmark_problem(args: argparse.Namespace) -> Run:
    """Return such a function for the features of one pass with landmarks."""
    random = np.random.default_rng(0)
    x = random.standard_normal((args.rows, args.columns), dtype=np.float32)
    coordinates = random.standard_normal((args.landmarks, args.clusters), dtype=np.float32)
    landmarks = [Landmarks(x[: args.landmarks], 5, 0.0, coordinates)]
    origin = np.zeros((1, args.clusters), dtype=np.float32)
    inputs = [x], [None], [origin[0]], origin, np.ones(1), None

    def run(core: ModuleType) -> Array:
        return core.fused_pass(*inputs, core.HARD, -1.0, args.threads, landmarks=landmarks)[0]

    return run


def skinny_problem(args: argparse.Namespace) -> Run:
    """Return a function that runs one skinny product with a square matrix."""
    random = np.random.default_rng(0)
    coefficients = random.standard_normal((args.clusters, args.points), dtype=np.float32)
    values = random.standard_normal((args.points, args.points), dtype=np.float32)
    out = np.empty((args.clusters, args.points), dtype=np.float32)
    matrices: dict[int, Array] = {}

    def run(core: ModuleType) -> Array:
        if core.SKINNY_STRIDE not in matrices:
            matrix = core.empty_matrix(args.points, args.points, np.float32)
            matrix[:, : args.points] = values
            matrices[core.SKINNY_STRIDE] = matrix
        core.skinny_product(coefficients, matrices[core.SKINNY_STRIDE], out, args.threads)
        return out.copy()

    return run


def measure(run: Run, cores: list[ModuleType], args: argparse.Namespace) -> Array:
    """Measure the seconds of each build (rounds, builds), after a round that warms up."""
    clock = time.process_time if args.threads == 1 else time.perf_counter
    times = np.empty((args.rounds, len(cores)))
    reference = run(cores[0])
    for core in cores[1:]:
        np.testing.assert_allclose(run(core), reference, atol=1e-4 * np.abs(reference).max())
    for i in range(args.rounds):
        for j in np.roll(range(len(cores)), i):
            begin = clock()
            run(cores[j])
            times[i, j] = clock() - begin
    return times


def main() -> None:
    args = commands.arguments(
        __doc__, words="the name of a constant, then values", rows=1_000_000, columns=50,
        frequencies=108, clusters=10, landmarks=1000, points=8192, threads=os.cpu_count(),
        rounds=15,
    )  # fmt: skip
    known, (name, *values) = constants(), args.words or [""]
    if name not in known:
        commands.stop(f"name one of {', '.join(known)}, then values.")
    with tempfile.TemporaryDirectory() as folder, threadpoolctl.threadpool_limits(1, "blas"):
        cores = [build(Path(folder) / "base", None)]
        for i, value in enumerate(values):
            cores.append(build(Path(folder) / f"value_{i}", f"{name}={value}"))
        problem = pass_problem
        if name.startswith("SKINNY"):
            problem = skinny_problem
        elif name.startswith("LANDMARK"):
            problem = landmark_problem
        times = measure(problem(args), cores, args)

    print(f"{name}, {cores[0].isa()}, {args.threads} threads, {args.rounds} runs of each")
    print("       value  ratio of medians  quartiles of the ratios")
    medians, ratios = np.median(times, axis=0), times / times[:, :1]
    for j, value in enumerate([known[name], *values]):
        low, high = np.quantile(ratios[:, j], [0.25, 0.75])
        print(f"{value!s:>12}  {medians[j] / medians[0]:16.3f}  {low:.3f} to {high:.3f}")


if __name__ == "__main__":
    main()
