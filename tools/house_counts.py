"""Print the size and shape of the package.

Use: `python tools/house_counts.py ROOT [--fits] [--collect]`. ROOT is a checkout.

`--fits` counts the functions that fits enter, and needs the package to be installed from ROOT.
`--collect` measures the collection of the tests in CPU seconds.
"""

from __future__ import annotations

import ast
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import TypeVar

from sizes import lines_of_code

Node = TypeVar("Node", bound=ast.AST)

QUESTIONS = {  # lines that ask a question which one place should answer
    "which form has a table": (
        r"isinstance\([^)]*(?:SparseRows|NarrowRows|Csr|Narrow)\b|issparse\("
    ),
    "are there weights": r"\b(?:\w*weights?|p|w)\b\)? is (?:not )?None",
    "is it a stream": r"\bstream is (?:not )?None|stream\.head|is_read\b",
    "are views missing": r"\b(?:present|coverage) is (?:not )?None",
    "is there typicality": r"\beta is (?:not )?None",
    "is it the unit sphere": r"unit_centroids|spherical|\.sphere\b",
    "is the map the identity": (
        r"any\((?:self\.|mapping\.)?maps\)|each is (?:not )?None|\btime_\b"
    ),
    "which estimator is it": (
        r"getattr\((?:model|estimator|self|parameters), \"|hasattr\((?:model|estimator|self)"
    ),
    "are there many clusters": r"(?:>=|<) (?:MANY|TUNING\.starts\.(?:some|many))\b|\.many\b",
    "is there a checkpoint": r"\bcheckpoint\b|\.kept\(",
    "are objects the same": r"\bid\(",
    "which measure": r"_measure\(|\bwant (?:==|!=)",
}
BANNED = {"found", "some", "few", "more", "each", "given", "others", "those"}
INNER = re.compile(r"^[ ]+(?:from rffpk|import rffpk)", re.M)

_FOLDERS = r"_\w+|anneal|choose|estimators|fusion|maps|rows|spaces|system"
_INTERNAL = re.compile(rf"rffpk(?:\.(?:{_FOLDERS})|$)")  # modules
_LIMIT = re.compile(rf'"((?:{_FOLDERS}|diffusion|multiview)[\w.]*\.[_A-Z][_A-Z]+)"')
_ATTRIBUTE = re.compile(
    r"\b(?:model|mapped|found|state|batches|module|given|spectrum|diffusion|config|stream|small"
    r"|alone|again|self|reported)\.(?!_replace\b)(_[a-z]\w+)"
)
_PATCHED = re.compile(r"setattr\(\s*[\w.\"]+, \"(_\w+)\"")

FITS = [
    "rffpk.PowerKMeans(8, random_state=0)",
    "rffpk.RFFKernelPowerKMeans(8, random_state=0)",
    "rffpk.DiffusionPowerKMeans('auto', noise='auto', random_state=0)",
    "rffpk.KernelPowerKMeans(8, random_state=0)",
    "rffpk.FuzzyCMeans(8, random_state=0)",
    "rffpk.RFFMultiKernelPowerKMeans(8, random_state=0)",
]
TRACE = """
import sys, inspect, warnings
from pathlib import Path
import numpy as np, rffpk
from sklearn.datasets import make_blobs
warnings.simplefilter("ignore")
home = str(Path(rffpk.__file__).parent)
X = make_blobs(3000, 10, centers=8, random_state=0)[0].astype("float32")
V = [X[:, :3], X[:, 3:6], X[:, 6:]]
model, names = eval(sys.argv[1]), set()
def look(frame, event, arg):
    c = frame.f_code
    if (event == "call" and c.co_filename.startswith(home)
            and c.co_flags & inspect.CO_OPTIMIZED and "<" not in c.co_name):
        names.add((c.co_filename, c.co_qualname))
sys.setprofile(look)
model.fit(V if "Multi" in sys.argv[1] else X)
sys.setprofile(None)
print(len(names), "functions in", len({f for f, _ in names}), "files:", sys.argv[1])
"""


def nodes(source: str, kind: type[Node]) -> list[Node]:
    """Return the nodes of a kind."""
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, kind)]


def numeric_constants(source: str) -> int:
    """Count upper-case names at module level that are bound to an expression with a number."""
    count = 0
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
            values = (n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant))
            is_numeric = any(type(value) in (int, float) for value in values)
            count += is_numeric * sum(name.strip("_").isupper() for name in names)
    return count


def banned_names(source: str) -> int:
    """Count stores to variables with banned names."""
    names = nodes(source, ast.Name)
    return sum(isinstance(name.ctx, ast.Store) and name.id in BANNED for name in names)


def imported_names(source: str) -> list[str]:
    """Return the private names of the package that a test module imports."""
    return [
        f"{node.module}.{alias.name}"
        for node in nodes(source, ast.ImportFrom)
        for alias in node.names
        if _INTERNAL.match(node.module or "")
        and (node.module != "rffpk" or alias.name.startswith("_"))
        and alias.name not in ("_core", "_reference")
    ]


def private_names(tests: Path) -> dict[str, int]:
    """Count private names of the package that tests use, each once."""
    # named_mutants.py has texts of the package, which are no uses
    paths = [path for path in tests.rglob("*.py") if path.stem != "named_mutants"]
    sources = "\n".join(path.read_text() for path in paths)
    names = {name for path in paths for name in imported_names(path.read_text())}
    attributes = _ATTRIBUTE.findall(sources) + _PATCHED.findall(sources)
    return {
        "imported": len(names),
        "limits": len({*_LIMIT.findall(sources)}),
        "attributes": len({*attributes}),
    }


def print_questions(sources: list[str]) -> None:
    """Print how many lines and modules ask each question."""
    for question, pattern in QUESTIONS.items():
        lines = [
            sum(bool(re.search(pattern, line)) for line in source.split("\n")) for source in sources
        ]
        modules = sum(map(bool, lines))
        print(f"lines that ask {question!r}: {sum(lines)} in {modules} modules")


def print_collection(root: Path) -> None:
    """Print the CPU seconds of collecting all tests."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", ""]
    done = subprocess.run(command, cwd=root, stdout=subprocess.DEVNULL, check=False)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    failed = f" (it failed: {done.returncode})" if done.returncode else ""
    print(f"CPU seconds of the collection: {seconds:.1f}{failed}")


def main(arguments: list[str]) -> None:
    """Print all numbers of a checkout."""
    root = Path(arguments[0])
    modules = {path: path.read_text() for path in sorted((root / "src/rffpk").rglob("*.py"))}
    sources = [*modules.values()]
    code = [len(lines_of_code(source, ast.parse(source))) for source in sources]
    print("lines of code:", sum(code))
    print("modules with code:", sum(map(bool, code)))
    print("functions:", sum(1 for source in sources for _ in nodes(source, ast.FunctionDef)))
    print_questions(sources)
    constants = [numeric_constants(s) for path, s in modules.items() if path.stem != "tuning"]
    print("numeric constants at module level outside tuning:", sum(constants))
    inner = [len(INNER.findall(s)) for path, s in modules.items() if path.name != "__init__.py"]
    print("imports of the package inside functions:", sum(inner))
    print("stores to variables with banned names:", sum(map(banned_names, sources)))
    lines = [path.read_text().count("\n") for path in (root / "tests").rglob("*.py")]
    print("lines of tests:", sum(lines))
    print("private names in tests:", private_names(root / "tests"), flush=True)
    if "--fits" in arguments:
        for fit in FITS:
            subprocess.run([sys.executable, "-c", TRACE, fit], check=False)
    if "--collect" in arguments:
        print_collection(root)


if __name__ == "__main__":
    main(sys.argv[1:])
