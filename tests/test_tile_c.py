"""The tile without Python: a C program on this machine, and on an emulated 64-bit Arm."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CORE = HERE.parent / "src" / "rffpk" / "_core"

# As in _core/meson.build. `vector` is for gcc and clang, at the least level of the processor.
FLAGS = ["-std=gnu11", "-O2", "-fno-math-errno", "-ffp-contract=fast"]
VARIANTS = {"plain": ["-DRFFPK_PLAIN"], "vector": []}


def native():
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if not shutil.which(compiler[0]):
        pytest.skip(f"no C compiler {compiler[0]!r}")
    return compiler, []


def aarch64():
    compiler = shutil.which("aarch64-linux-gnu-gcc")
    emulator = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if not (compiler and emulator):
        pytest.skip("needs aarch64-linux-gnu-gcc and qemu-aarch64")
    return [compiler, "-static"], [emulator]


def output(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(not CORE.is_dir(), reason="the C sources are not beside the tests")
@pytest.mark.parametrize("bits", [32, 64], ids=["f32", "f64"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("machine", [native, aarch64])
def test_tile_agrees_with_the_formulas(machine, variant, bits, tmp_path):
    compiler, emulator = machine()
    program = tmp_path / "tile_test"
    flags = [*FLAGS, *VARIANTS[variant], f"-DRFFPK_ISA={variant}", f"-I{CORE}"]
    sources = [CORE / "tile.c", HERE / "tile_test.c"]
    output([*compiler, *flags, f"-DRFFPK_BITS={bits}", *sources, "-lm", "-o", program])
    assert output([*emulator, program]).startswith("ok: ")
