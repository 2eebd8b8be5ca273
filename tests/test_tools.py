"""The tools that keep the source in order: they pass here, and find what they look for."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(not (ROOT / "tools").exists(), reason="only in the repository"),
]


def run(tool, *options, root=ROOT, cwd=None):
    return subprocess.run(
        [sys.executable, root / "tools" / tool, *options],
        capture_output=True, text=True, timeout=300, cwd=cwd,
    )  # fmt: skip


@pytest.fixture
def copy(tmp_path):
    """Copy the tools and the modules that they look at."""
    for folder in "tools", "src", "bench":
        for path in ROOT.glob(f"{folder}/**/*.py"):
            there = tmp_path / path.relative_to(ROOT)
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, there)
    return tmp_path


def change(path, pattern, new):
    text = path.read_text()
    changed = re.sub(pattern, new, text, count=1)
    assert changed != text
    path.write_text(changed)


@pytest.mark.parametrize("command", [("promises.py", "--check"), ("sizes.py",)])
def test_the_source_passes(command):
    done = run(*command)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


# How many functions of the package each fit may enter: lower a number when it falls.
MOST = {
    "PowerKMeans": 165,
    "RFFKernelPowerKMeans": 239,
    "DiffusionPowerKMeans": 355,
    "KernelPowerKMeans": 211,
    "FuzzyCMeans": 175,
    "RFFMultiKernelPowerKMeans": 326,
}


def test_fits_enter_no_more_functions():
    printed = run("house_counts.py", ROOT, "--fits").stdout
    lines = re.findall(r"^(\d+) functions in \d+ files: rffpk\.(\w+)", printed, re.M)
    entered = {name: int(number) for number, name in lines}
    assert entered.keys() == MOST.keys()
    assert not {name: number for name, number in entered.items() if number > MOST[name]}


MOST_CONSTANTS = 85  # numeric constants of modules outside `system.tuning`: lower it when it falls


def test_modules_have_no_more_numeric_constants():
    printed = run("house_counts.py", ROOT).stdout
    number = re.search(r"numeric constants at module level outside tuning: (\d+)", printed)[1]
    assert int(number) <= MOST_CONSTANTS


NOUN = "# Take those that fit.\n"


def test_faults_of_prose_are_printed(tmp_path):
    (tmp_path / "a.py").write_text(NOUN)
    done = run("prose_lint.py", ".", cwd=tmp_path)
    assert done.stdout.startswith("a.py:1: nouns: 'those' for a noun") and done.returncode == 1
    (tmp_path / "a.py").write_text("x = 0\n")
    done = run("prose_lint.py", ".", cwd=tmp_path)
    assert not done.stdout and not done.returncode


@pytest.mark.parametrize(
    "sentence", ['"{name} == {x}, must be 1. Pass 1."', 'MANY + "words."', '"{name}: is wrong"']
)
def test_sentences_of_advice_are_messages(tmp_path, sentence):
    many = f"MANY = {46 * 'a '!r}\n"
    (tmp_path / "a.py").write_text(f"{many}RULES = (Advice(ValueError, test, {sentence}),)\n")
    done = run("prose_lint.py", "a.py", cwd=tmp_path)
    assert done.stdout.startswith("a.py:2: message: ") and done.returncode == 1, done


def test_sentences_of_advice_begin_with_the_argument():
    calls = [
        node
        for node in ast.walk(ast.parse((ROOT / "src/rffpk/rows/advice.py").read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Advice"
    ]
    begins = r"""['"]{name}\S*: """
    assert len(calls) > 40
    assert not [x for x in calls if not re.match(begins, ast.unparse(x.args[-1]).lstrip("("))]


def test_long_functions_are_named(copy):
    path = copy / "src/rffpk/estimators/fuzzy.py"
    path.write_text(path.read_text() + "def f():\n" + "    x = 0\n" * 40)
    message = "fuzzy.py:f has 41 lines of code, more than 40"
    assert message in run("sizes.py", root=copy).stdout


def test_docstrings_comments_and_blank_lines_do_not_count(copy):
    path = copy / "src/rffpk/estimators/fuzzy.py"
    added = 'def f():\n    """Long.\n' + "\n    text\n" * 400 + '    """\n' + "    # why\n" * 400
    path.write_text(path.read_text() + added)
    assert run("sizes.py", root=copy).returncode == 0


def test_an_exception_that_is_no_longer_needed_is_named(copy):
    (copy / "src/rffpk/_reference.py").write_text("")
    assert "_reference.py:fused_pass is a needless exception" in run("sizes.py", root=copy).stdout


@pytest.mark.parametrize(
    "pattern, new, message",
    [
        ("A fit that fails leaves", "No fit that fails changes", "differs from the marks"),
        ('"Input", "A fit that', '"Inputs", "A fit that', r"promise\(group, sentence\)"),
        (r"(?=\n@pytest.mark.promise\()", "\n@pytest.mark.promise(like='nothing')", "at nothing"),
        (r"\n(@pytest.mark.promise\((?:.|\n)*?\n\))", r"\n\1\n\1", "two promises"),
    ],
)  # fmt: skip
def test_promises_that_the_page_has_otherwise_are_named(tmp_path, pattern, new, message):
    for path in [*ROOT.glob("tests/test_*.py"), *ROOT.glob("tools/*.py"), *ROOT.glob(".ci/*")]:
        there = tmp_path / path.relative_to(ROOT)
        there.parent.mkdir(exist_ok=True)
        shutil.copy(path, there)
    there = tmp_path / "docs" / "maintainers"
    there.mkdir(parents=True)
    shutil.copy(ROOT / "docs" / "maintainers" / "promises.md", there)
    assert run("promises.py", "--check", root=tmp_path).returncode == 0
    change(tmp_path / "tests" / "test_refusals.py", pattern, new)
    done = run("promises.py", "--check", root=tmp_path)
    assert done.returncode == 1 and re.search(message, done.stdout), done
