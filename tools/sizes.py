"""Functions are short: `python tools/sizes.py` names the longer functions.

Lines of code are counted, without docstrings, comments and blank lines.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "bench", "tools")

MOST = 40  # lines of a function

# What may be longer, and why.
EXCEPTIONS = {
    "src/rffpk/_reference.py:fused_pass": "the pass in the order of docs/math.md",
    "src/rffpk/_reference.py:take_steps": "the steps of the core in their order",
}

_NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip


def main() -> int:
    paths = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    longer = {
        name: f"{name} has {lines} lines of code, more than {MOST}"
        for path in paths
        for name, lines in sizes(path)
        if lines > MOST
    }
    faults = [fault for name, fault in longer.items() if name not in EXCEPTIONS]
    faults += [f"{name} is a needless exception" for name in EXCEPTIONS if name not in longer]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


def sizes(path: Path) -> Iterator[tuple[str, int]]:
    """Yield each function of a module: the name, and the lines of code."""
    source, module = path.read_text(), path.relative_to(ROOT).as_posix()
    tree = ast.parse(source)
    code = lines_of_code(source, tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            inside = code & {*range(node.lineno, (node.end_lineno or 0) + 1)}
            yield f"{module}:{node.name}", len(inside)


def lines_of_code(source: str, tree: ast.Module) -> set[int]:
    """Return the numbers of the lines with code."""
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            doc = node.body[0]
            code -= {*range(doc.lineno, (doc.end_lineno or 0) + 1)}
    return code


if __name__ == "__main__":
    raise SystemExit(main())
