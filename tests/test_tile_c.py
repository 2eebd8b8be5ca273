"""The pass in C without Python: a program on this machine, on an emulated 64-bit Arm, and on
Windows as Wine has it."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from rffpk import _core

HERE = Path(__file__).parent
CORE = HERE.parent / "src" / "rffpk" / "_core"

# As in _core/meson.build. `vector` is the narrowest level of the processor family.
FLAGS = ["-std=gnu11", "-O2", "-fno-math-errno", "-ffp-contract=fast"]
FLAGS += ["-DRFFPK_ONE_HOT_CLUSTERS=5"]  # for few clusters, as the formulas are slow
VARIANTS = {"plain": ["-DRFFPK_PLAIN"], "vector": []}
LEVELS = ["x86-64-v3", "x86-64-v4"]
VARIANTS |= {level.replace("-", "_"): [f"-march={level}"] for level in LEVELS}


def native(variant):
    for level in LEVELS:
        if f"-march={level}" in VARIANTS[variant] and level not in _core.isa_levels():
            pytest.skip(f"this processor does not run {level}")
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if not shutil.which(compiler[0]):
        pytest.skip(f"no C compiler {compiler[0]!r}")
    return compiler, []


def aarch64(variant):
    compiler = shutil.which("aarch64-linux-gnu-gcc")
    emulator = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if not (compiler and emulator):
        pytest.skip("needs aarch64-linux-gnu-gcc and qemu-aarch64")
    return [compiler, "-static"], [emulator]


def windows(variant):
    native(variant)  # what this processor runs
    compiler, runner = shutil.which("x86_64-w64-mingw32-gcc"), shutil.which("wine")
    if not (compiler and runner):
        pytest.skip("needs x86_64-w64-mingw32-gcc and wine")
    # GCC keeps vectors on a stack there that is not aligned for them (its bug 54412)
    return [compiler, "-Wa,-muse-unaligned-vector-move"], [runner]


def output(command):
    quiet = {**os.environ, "WINEDEBUG": "-all"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, env=quiet)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.promise("Memory", "Indices do not overflow at 2³¹ rows.")
@pytest.mark.exhaustive
@pytest.mark.skipif(not CORE.is_dir(), reason="the C sources are missing")
@pytest.mark.parametrize("bits", [32, 64], ids=["f32", "f64"])
@pytest.mark.parametrize(
    "machine, variant",
    [
        *((native, variant) for variant in VARIANTS),
        (aarch64, "vector"),  # `plain` is the same C as on this machine, and takes minutes there
        *((windows, variant) for variant in VARIANTS),
    ],
)
def test_tile_agrees_with_the_formulas(machine, variant, bits, tmp_path):
    compiler, emulator = machine(variant)
    program = tmp_path / "tile_test.exe"
    flags = [*FLAGS, *VARIANTS[variant], f"-DRFFPK_ISA={variant}", f"-I{CORE}"]
    sources = [CORE / "tile.c", HERE / "tile_test.c"]
    output([*compiler, *flags, f"-DRFFPK_BITS={bits}", *sources, "-lm", "-o", program])
    assert output([*emulator, program]).startswith("ok: ")
