"""Descriptions that docstrings share: written into the source, or compared with it.

`python tools/docstrings.py` writes the entries of `shared_docstrings.py` into the docstrings of the
package; with `--check` it writes nothing, and fails where they differ. Parameters of an estimator
come in the order of its signature, with their defaults.
"""

from __future__ import annotations

import argparse
import ast
import re
import textwrap
from pathlib import Path
from typing import Any

from shared_docstrings import CONVENTIONS, ESTIMATORS, Entries, entries

PACKAGE = Path(__file__).parents[1] / "src" / "rffpk"
WIDTH = 100  # of the lines of the source
INDENT = " " * 4

_TITLE = re.compile(r"\n\n(\w+)\n-{3,}\n")

Documented = ast.ClassDef | ast.FunctionDef
Classes = dict[str, ast.ClassDef]


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the entries that docstrings share.")
    parser.add_argument("--check", action="store_true", help="only say where the source differs")
    check = parser.parse_args().check
    sources = {path: path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
    nodes = [node for source in sources.values() for node in documented(source)]
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    faults = [f"no class is called {name}" for name in ESTIMATORS.keys() - classes.keys()]
    for path, source in sources.items():
        try:
            new = completed(source, classes)
        except ValueError as error:
            faults.append(f"{path}: {error}")
            continue
        if new != source and check:
            faults.append(f"{path}:{first_difference(source, new)}")
        elif new != source:
            path.write_text(new)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


def first_difference(source: str, new: str) -> str:
    lines = enumerate(zip(source.splitlines(), new.splitlines()), start=1)
    number, wanted = next((number, b) for number, (a, b) in lines if a != b)
    return f"{number}: must be {wanted.strip()!r}; python tools/docstrings.py writes it"


# ---- the source of a module ----------------------------------------------------------------------


def documented(source: str) -> list[Documented]:
    """The classes and functions that have a docstring, the last one first."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, Documented)]
    nodes.sort(key=lambda node: node.lineno, reverse=True)
    return [node for node in nodes if ast.get_docstring(node)]


def completed(source: str, classes: Classes) -> str:
    """The source with the shared entries in its docstrings."""
    lines = source.split("\n")
    for node in documented(source):
        doc = ast.get_docstring(node) or ""
        if isinstance(node, ast.ClassDef) and node.name in ESTIMATORS:
            new = estimator_docstring(doc, node, classes)
        else:
            new = conventional(doc)
        if new != doc:
            place = node.body[0]
            text = textwrap.indent(f'"""{new}\n"""', " " * place.col_offset)
            lines[place.lineno - 1 : place.end_lineno] = text.split("\n")
    return "\n".join(lines)


def fields(node: ast.ClassDef, classes: Classes) -> dict[str, dict[str, Any]]:
    """What is said of the parameters of an estimator, and of what its fit sets, by those of its
    bases too: the arguments of `dataclasses.field`."""
    found: dict[str, dict[str, Any]] = {}
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in classes:
            found |= fields(classes[base.id], classes)
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and "property" in map(
            ast.unparse, each.decorator_list
        ):
            found[each.name] = {"init": False}
        if not (isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)):
            continue
        if isinstance(each.value, ast.Call):
            words = each.value.keywords
            found[each.target.id] = {str(w.arg): ast.literal_eval(w.value) for w in words}
        elif each.value is not None:
            found[each.target.id] = {"default": ast.literal_eval(each.value)}
    return found


# ---- docstrings ----------------------------------------------------------------------------------


def conventional(doc: str) -> str:
    """The docstring of a function, in which scikit-learn's conventions have the same words."""
    summary, sections = split(doc)
    own = entries(sections.get("Parameters", ""))
    shared = {name: filled(*entry) for name, entry in CONVENTIONS.items() if name in own}
    if not shared:
        return doc
    return joined(summary, sections | {"Parameters": written(own | shared)})


def estimator_docstring(doc: str, node: ast.ClassDef, classes: Classes) -> str:
    """The docstring of an estimator with all of its parameters, and with the shared attributes
    among those that it has or that a fit is declared to set."""
    summary, sections = split(doc)
    shared = {name: filled(*entry) for name, entry in ESTIMATORS[node.name].items()}
    said = fields(node, classes)

    own = entries(sections.pop("Parameters", ""))
    known = own | shared
    parameters = [name for name, words in said.items() if words.get("init", True)]
    parameters.sort(key=lambda name: said[name].get("kw_only", True))
    if wrong := {*parameters} - known.keys() or own.keys() - {*parameters}:
        raise ValueError(f"{node.name} must have and describe {', '.join(sorted(wrong))}")
    described = {}
    for name in parameters:
        kind, text = known[name]
        kind = kind.partition(", default=")[0]
        described[name] = f"{kind}, default={literal(said[name]['default'])}", text

    own = entries(sections.pop("Attributes", ""))
    fitted = [name for name in said if name.endswith("_")]
    attributes = own | {name: shared[name] for name in (*own, *fitted) if name in shared}
    first = {"Parameters": written(described), "Attributes": written(attributes)}
    return joined(summary, first | sections)


def literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def split(doc: str) -> tuple[str, dict[str, str]]:
    """What comes before the sections of a docstring, and the sections by title."""
    summary, *parts = _TITLE.split(doc)
    return summary, dict(zip(parts[::2], parts[1::2]))


def joined(summary: str, sections: dict[str, str]) -> str:
    titled = [f"{title}\n{'-' * len(title)}\n{text}" for title, text in sections.items()]
    return "\n\n".join(part.rstrip() for part in (summary, *titled))


def filled(kind: str, text: str) -> tuple[str, str]:
    """An entry whose description fills the lines of the docstring of a class."""
    wrapper = textwrap.TextWrapper(
        WIDTH - len(INDENT), initial_indent=INDENT, subsequent_indent=INDENT,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return kind, wrapper.fill(" ".join(text.split()))


def written(described: Entries) -> str:
    return "\n".join(f"{name} : {kind}\n{text}" for name, (kind, text) in described.items())


if __name__ == "__main__":
    raise SystemExit(main())
