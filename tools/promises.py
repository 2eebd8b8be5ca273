"""The page of promises: written from the marks of the tests that hold them.

`python tools/promises.py` writes the tables of `docs/maintainers/promises.md`; with `--check` it
writes nothing and fails where the page differs. A test holds a promise by
`@pytest.mark.promise(group, sentence)`, and another one the same promise by
`@pytest.mark.promise(like="test_of_that_name")`.
"""

from __future__ import annotations

import argparse
import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "maintainers" / "promises.md"
GROUPS = (
    "Threads", "Forks", "Process-wide state", "Memory", "Clusters of machines", "Determinism",
    "Memberships and trees", "Noise", "Input", "Progress", "Files",
)  # fmt: skip
_BLOCK = re.compile(r"(<!-- (\w+): written by tools/promises.py -->\n).*?(<!-- end -->)", re.S)
_STAGE = re.compile(r"^#   (\w+) +(.*(?:\n#     +.*)*)", re.M)


@dataclass
class Test:
    file: str
    name: str
    stage: str
    marks: list[ast.Call]


@dataclass
class Promise:
    group: str
    sentence: str
    holders: list[Test] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(description=f"Write the tables of {PAGE.relative_to(ROOT)}.")
    parser.add_argument("--check", action="store_true", help="only say whether the page differs")
    check = parser.parse_args().check
    page = PAGE.read_text()
    try:
        new = completed(page)
    except ValueError as error:
        print(error)
        return 1
    if new != page and check:
        print(f"{PAGE.name} differs from the marks of the tests: python tools/promises.py")
        return 1
    PAGE.write_text(new)
    return 0


def completed(page: str) -> str:
    tests = [test for path in sorted((ROOT / "tests").glob("test_*.py")) for test in tests_of(path)]
    tables = {"promises": promises_table(tests), "stages": stages_table(), "skips": skips_table()}
    return _BLOCK.sub(lambda found: found[1] + tables[found[2]] + found[3], page)


# ---- tests and their marks -----------------------------------------------------------------------


def tests_of(path: Path) -> list[Test]:
    """Return the tests of a file that have marks of promises, with their stages of CI."""
    tree = ast.parse(path.read_text())
    everywhere = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Assign)]
    left_out = [line for line in everywhere if "importorskip" in line or "exhaustive" in line]
    tests = []
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef):
            continue
        marks = [mark for mark in node.decorator_list if isinstance(mark, ast.Call)]
        marks = [mark for mark in marks if ast.unparse(mark.func) == "pytest.mark.promise"]
        slow = "pytest.mark.exhaustive" in map(ast.unparse, node.decorator_list)
        stage = stage_of(path.name) if left_out else "exhaustive" if slow else "tests"
        if marks:
            tests.append(Test(path.name, node.name, stage, marks))
    return tests


def stage_of(file: str) -> str:
    """Return the stage with the packages that the tests of a file need."""
    text = (ROOT / ".ci" / "stages.sh").read_text()
    stages = re.findall(r"^stage_(\w+)\(\) \{\n(.*?)^\}", text, re.M | re.S)
    return next((name for name, body in stages if f"tests/{file}" in body), "exhaustive")


def promises_of(tests: list[Test]) -> list[Promise]:
    promises: dict[str, Promise] = {}
    references = []
    for test in tests:
        for mark in test.marks:
            words = [ast.literal_eval(word) for word in mark.args]
            if mark.keywords:
                references.append((test, ast.literal_eval(mark.keywords[0].value)))
            elif len(words) != 2 or words[0] not in GROUPS:
                raise ValueError(
                    f"{test.file}::{test.name}: use promise(group, sentence) or promise(like=)."
                )
            elif test.name in promises:
                raise ValueError(
                    f"{test.file}::{test.name} is the name of two promises. Rename one test."
                )
            else:
                promises[test.name] = Promise(words[0], words[1], [test])
    for test, like in references:
        if like not in promises:
            raise ValueError(f"{test.file}::{test.name}: no promise stands at {like}.")
        promises[like].holders.append(test)
    return sorted(promises.values(), key=lambda promise: GROUPS.index(promise.group))


# ---- tables --------------------------------------------------------------------------------------


def promises_table(tests: list[Test]) -> str:
    lines, group = ["| promise | tests | stage |", "|---|---|---|"], ""
    for promise in promises_of(tests):
        if promise.group != group:
            group = promise.group
            lines.append(f"| **{group}** | | |")
        names = ", ".join(f"`{test.file}::{test.name}`" for test in promise.holders)
        stages = ", ".join(dict.fromkeys(test.stage for test in promise.holders))
        lines.append(f"| {promise.sentence} | {names} | {stages} |")
    return "\n".join(lines) + "\n"


def stages_table() -> str:
    lines = ["| stage | what it tests |", "|---|---|"]
    for name, text in _STAGE.findall((ROOT / ".ci" / "run").read_text()):
        text = re.sub(r" *\n# +", " ", text)
        lines.append(f"| `{name}` | {text} |")
    return "\n".join(lines) + "\n"


def skips_table() -> str:
    """Return a table of the packages and abilities of the machine that tests need."""
    needs: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and (need := need_of(node)):
                needs.setdefault(need, set()).add(path.name)
    lines = ["| reason | tests in |", "|---|---|"]
    lines += [f"| {need} | {', '.join(sorted(needs[need]))} |" for need in sorted(needs)]
    return "\n".join(lines) + "\n"


def need_of(call: ast.Call) -> str:
    """Return the reason that a call skips for, or nothing if it does not skip."""
    function = ast.unparse(call.func)
    if function == "pytest.importorskip" and isinstance(call.args[0], ast.Constant):
        return f"no `{ast.literal_eval(call.args[0])}`"
    if function == "pytest.mark.skipif":
        reason = next(word.value for word in call.keywords if word.arg == "reason")
        return str(ast.literal_eval(reason))
    if function == "pytest.skip" and isinstance(call.args[0], ast.Constant):
        return str(call.args[0].value)
    return ""


if __name__ == "__main__":
    raise SystemExit(main())
