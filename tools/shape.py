"""The size and shape of the package, as numbers that work on it should lower.

    python tools/shape.py

Prints what three fits enter, what an import loads, how many parameters the estimators have, and how
many lines of code and of docstrings of classes there are. `python tools/shape.py entered` prints
the functions that the three fits enter instead, by file, with their lines of code.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from inspect import CO_OPTIMIZED
from pathlib import Path
from typing import Any

from sizes import ROOT, lines_of_code
from sklearn.datasets import make_blobs

import rffpk

PACKAGE = Path(rffpk.__file__).parent
SOURCES = sorted((ROOT / "src/rffpk").rglob("*.py"))
FITS = {
    "PowerKMeans(8)": rffpk.PowerKMeans(8, random_state=0),
    "DiffusionPowerKMeans('auto', noise='auto')": rffpk.DiffusionPowerKMeans(
        "auto", noise="auto", random_state=0
    ),
    "KernelPowerKMeans(8)": rffpk.KernelPowerKMeans(8, random_state=0),
}
CLASSES = (
    rffpk.PowerKMeans, rffpk.RFFKernelPowerKMeans, rffpk.DiffusionPowerKMeans,
    rffpk.RFFMultiKernelPowerKMeans, rffpk.FuzzyCMeans, rffpk.KernelPowerKMeans,
    rffpk.MultiKernelPowerKMeans,
)  # fmt: skip


def functions_entered(model: Any, X: Any) -> set[tuple[str, str]]:
    """The functions of the package that `model.fit(X)` enters, by file and name, without lambdas
    and comprehensions."""
    found = set()

    def profile(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if (
            event == "call"
            and PACKAGE in Path(code.co_filename).parents
            and code.co_flags & CO_OPTIMIZED  # no module and no class, which an import enters
            and "<" not in code.co_name
        ):
            found.add((code.co_filename, code.co_qualname))

    sys.setprofile(profile)
    try:
        model.fit(X)
    finally:
        sys.setprofile(None)
    return found


def modules_loaded(statement: str) -> list[str]:
    """The modules of the package that a statement loads in a new process."""
    code = f"{statement}\nimport sys\nprint(*(m for m in sys.modules if m.startswith('rffpk')))"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()


def docstring_lines(source: str) -> Iterator[tuple[str, int]]:
    """The public classes of a module, and the lines of their docstrings."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            text = ast.get_docstring(node, clean=False)
            if text is not None:
                yield node.name, text.count("\n") + 1


def print_entered(name: str, entered: set[tuple[str, str]]) -> None:
    """The functions of a fit by their files, with their lines of code."""
    print(f"\n{name}: {len(entered)}")
    for path in sorted({path for path, _ in entered}):
        source = Path(path).read_text()
        tree = ast.parse(source)
        code, lines = lines_of_code(source, tree), dict[str, int]()
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                lines[node.name] = len(code & {*range(node.lineno, (node.end_lineno or 0) + 1)})
        names = sorted(name for place, name in entered if place == path)
        text = ", ".join(f"{name} {lines.get(name.split('.')[-1], 0)}" for name in names)
        print(f"  {Path(path).relative_to(PACKAGE)} ({len(names)}): {text}")


def main() -> None:
    X = make_blobs(3000, 10, centers=8, random_state=0)[0].astype("float32")
    if sys.argv[1:] == ["entered"]:
        for name, model in FITS.items():
            print_entered(name, functions_entered(model, X))
        return
    for name, model in FITS.items():
        print(f"functions entered by a fit of {name}: {len(functions_entered(model, X))}")
    loaded = modules_loaded("from rffpk import PowerKMeans")
    print(f"modules that importing PowerKMeans loads: {len(loaded)}")
    for each in CLASSES:
        print(f"parameters of {each.__name__}: {len(each().get_params(deep=False))}")
    texts = [path.read_text() for path in SOURCES]
    print(f"lines of Python code: {sum(len(lines_of_code(t, ast.parse(t))) for t in texts)}")
    lines = dict(entry for text in texts for entry in docstring_lines(text))
    longest = max(lines, key=lambda name: lines[name])
    print(f"lines of docstrings of classes: {sum(lines.values())}, "
          f"the most in {longest}: {lines[longest]}")  # fmt: skip


if __name__ == "__main__":
    main()
