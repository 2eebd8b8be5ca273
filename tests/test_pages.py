"""The pages: their blocks of Python run, in their order, and their links lead somewhere."""

import ast
import inspect
import json
import logging
import os
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import rffpk

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
WHICH = ROOT / "bench" / "results" / "which.jsonl"  # ARI of data sets and methods, by seed
FOLDERS = (DOCS, DOCS / "for", DOCS / "maintainers")
PAGES = [ROOT / "README.md", *(page for folder in FOLDERS for page in sorted(folder.glob("*.md")))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(path):
    return BLOCK.findall(path.read_text())


@pytest.fixture
def logger_as_it_was():
    """Reset changes that a page makes to the logger."""
    logger = logging.getLogger("rffpk")
    level, handlers = logger.level, list(logger.handlers)
    yield
    logger.setLevel(level)
    logger.handlers[:] = handlers


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "path", [p for p in PAGES if p.exists() and blocks(p)], ids=lambda p: p.stem
)
def test_blocks_of_python_run_without_warnings(path, logger_as_it_was):
    names = {"__name__": path.stem}
    if "matplotlib" in path.read_text():
        pytest.importorskip("matplotlib").use("agg")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for block in blocks(path):
            exec(compile(block, str(path), "exec"), names)


def source_of(module, name):
    """Return the text of a function of a module."""
    source = (Path(rffpk.__file__).parent / module).read_text()
    [node] = [node for node in ast.parse(source).body if getattr(node, "name", None) == name]
    return ast.get_source_segment(source, node)


def test_the_listing_of_a_fit_is_the_source():
    listing = re.findall(r"^```py\n(.*?)^```$", (DOCS / "fit.md").read_text(), re.M | re.S)
    *parts, of_start = listing
    assert "\n".join(part.rstrip() for part in parts) == source_of("anneal/fit.py", "fit")
    assert of_start.rstrip() == source_of("anneal/schedule.py", "anneal")
    assert source_of("anneal/fit.py", "fit").count("\n") <= 60


@pytest.mark.skipif(not (DOCS / "for").exists(), reason="only in the repository")
@pytest.mark.parametrize("page, truth", [("positions", "kinds"), ("topics", "y")])
def test_the_clusters_of_a_page_are_the_true_ones(page, truth):
    names = {}
    for block in blocks(DOCS / "for" / f"{page}.md"):
        exec(compile(block, page, "exec"), names)
    labels, truth = names["model"].labels_, names[truth]
    assert names["adjusted_rand_score"](truth, labels) > 0.95
    assert (labels[truth == -1] == -1).sum() >= 0.8 * (truth == -1).sum()


def anchors(path):
    """Return the anchors that headings of a page have on GitHub and in the built pages."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_links_lead_to_files_and_headings(path):
    text = path.read_text()
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert os.path.exists(path.parent / target), target
    for target, anchor in re.findall(r"\]\(([^)#:]*\.md|)#([^)]*)\)", text):
        assert anchor in anchors(path.parent / target if target else path), f"{target}#{anchor}"


def test_figures_of_pages_are_those_of_the_files(monkeypatch):
    """`python -m bench pages --fill` copies the files."""
    if not (ROOT / "bench").exists():
        pytest.skip("only in the repository")
    monkeypatch.syspath_prepend(str(ROOT))
    from bench import pages

    files = {path.stem: path.read_text() for path in pages.RESULTS.glob("*.md")}
    assert files.keys() == pages.TABLES.keys()
    shown = dict[str, tuple[str, str]]()
    for path in PAGES:
        text = path.read_text()
        begun = re.findall(r"<!-- figures (\S+) -->", text)
        found = [(name, table) for _, name, table, _ in pages.BLOCK.findall(text)]
        assert [name for name, _ in found] == begun, f"{path.name}: a block has no end"
        shown |= {f"{path.name}: {name}": (name, table) for name, table in found}
    assert {name for name, _ in shown.values()} == files.keys()
    for place, (name, table) in shown.items():
        assert table == files[name], f"{place}: python -m bench pages --fill"


@pytest.mark.skipif(not WHICH.exists(), reason="only in the repository")
def test_the_classes_that_pages_name_are_not_behind_k_means():
    """Data sets have numbers, or numbers and words."""
    numbers, words = {}, {}
    for record in map(json.loads, WHICH.read_text().splitlines()):
        of_set = (words if record["words"] else numbers).setdefault(record["set"], {})
        of_set.setdefault(record["method"], []).append(record["ARI"])
    for name, of_set in numbers.items():
        ours = "PowerKMeans" if name == "topics" else "DiffusionPowerKMeans"
        behind = np.subtract(of_set["KMeans"], of_set[ours])
        most = {"wine": 0.08, "blobs, 20 columns": 0.03}  # which docs/which.md names
        assert behind.max() <= most.get(name, 0.01), name
    behind = {}
    for name, of_set in words.items():
        ours, *peers = (
            np.mean(of_set[method]) for method in ("PowerKMeans", "KMeans", "KMeans, numbers alone")
        )
        behind[name] = max(peers) - ours
    assert {name for name, value in behind.items() if value > 0.05} == {"birds, words"}


def test_the_reference_has_the_first_sentence_of_each_docstring():
    page = (ROOT / "docs" / "api.md").read_text()
    for name in set(rffpk.__all__) - {"__version__"}:
        sentence = inspect.getdoc(getattr(rffpk, name)).split("\n\n")[0].replace("\n", " ")
        line = rf"^\| \[`{name}`\]\(\S+\) \| {re.escape(sentence)} \|$"
        assert re.search(line, page, re.MULTILINE), f"{name}: {sentence}"


def test_every_page_is_listed():
    own = DOCS / "maintainers"
    for path in PAGES[1:]:
        folder = own if path.parent == own and path.stem != "index" else DOCS
        name = path.relative_to(folder).as_posix()
        assert name == "index.md" or f"({name})" in (folder / "index.md").read_text(), name
