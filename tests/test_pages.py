"""The pages: their blocks of Python run, in their order, and their links lead somewhere."""

import ast
import inspect
import json
import logging
import os
import re
import runpy
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import rffpk

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FOLDERS = (DOCS, DOCS / "for", DOCS / "maintainers")
PAGES = [ROOT / "README.md", *(page for folder in FOLDERS for page in sorted(folder.glob("*.md")))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


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


def test_towns_and_roads_are_found_in_positions():
    path = DOCS / "for" / "positions.md"
    if not path.exists():
        pytest.skip("only in the repository")
    names = {}
    for block in blocks(path):
        exec(compile(block, str(path), "exec"), names)
    found, kinds = names["model"].labels_, names["kinds"]
    assert names["adjusted_rand_score"](kinds, found) > 0.95
    assert (found[kinds == -1] == -1).mean() > 0.8


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_links_lead_to_files(path):
    for target in LINK.findall(path.read_text()):
        assert os.path.exists(path.parent / target), target


def anchors(path):
    """Return the anchors that headings of a page have on GitHub and in the built pages."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_links_lead_to_headings(path):
    for target, anchor in re.findall(r"\]\(([^)#:]*\.md|)#([^)]*)\)", path.read_text()):
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


def test_topics_are_found_by_the_class_that_their_page_names():
    path = DOCS / "for" / "topics.md"
    if not path.exists():
        pytest.skip("only in the repository")
    names = {}
    for block in blocks(path):
        exec(compile(block, str(path), "exec"), names)
    assert names["adjusted_rand_score"](names["y"], names["model"].labels_) > 0.99


def of_sets():
    """Return the recorded ARI of each data set and method, one for each seed.

    Data sets have numbers, or numbers and words; the numbers of the second kind alone count, too.
    """
    path = ROOT / "bench" / "results" / "which.jsonl"
    if not path.exists():
        pytest.skip("only in the repository")
    found = {False: {}, True: {}}
    for record in map(json.loads, path.read_text().splitlines()):
        of_set = found[record["words"]].setdefault(record["set"], {})
        of_set.setdefault(record["method"], []).append(record["ARI"])
    return found[False], found[True]


def test_the_classes_that_pages_name_are_not_behind_k_means():
    numbers, words = of_sets()
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


@pytest.mark.parametrize(
    ("page", "named"),
    [
        ("README.md", r"(?s)\A.*?```python.*?\bmodel = DiffusionPowerKMeans\("),
        ("README.md", r"tables with words take `PowerKMeans` after"),
        ("README.md", r'embeddings `PowerKMeans\(k, metric="cosine"\)`'),
        ("docs/start.md", r"(?s)\A.*?```python.*?\bmodel = DiffusionPowerKMeans\("),
        ("docs/which.md", r"(?s)\A.*?```python.*?\bmodel = DiffusionPowerKMeans\("),
        ("docs/which.md", r"a table with words and gaps \|[^|]*, then `PowerKMeans` \|"),
        ("docs/which.md", r'embeddings, word counts \| `PowerKMeans\(k, metric="cosine"\)` \|'),
        ("docs/for/tables.md", r"make_pipeline\(TablePreprocessor\(\), PowerKMeans\("),
        ("docs/for/topics.md", r'Take `PowerKMeans` with `metric="cosine"`'),
        ("docs/which_class.svg", r'(?s)Are rows embeddings.*?>PowerKMeans\(metric=&quot;'),
        ("docs/which_class.svg", r"(?s)are some words\?.*?monospace[^>]*>PowerKMeans<"),
        ("docs/which_class.svg", r"(?s)>DiffusionPowerKMeans</text>[^>]*>clusters of any shape"),
    ],
)  # fmt: skip
def test_pages_name_the_same_class_for_the_same_rows(page, named):
    if not (ROOT / page).exists():
        pytest.skip("only in the repository")
    assert re.search(named, (ROOT / page).read_text())


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


def test_names_of_attributes_are_quoted_once(monkeypatch):
    """numpydoc has made the head of a description bold: quotes inside would be printed."""
    monkeypatch.setenv("MPLBACKEND", "agg")  # which the configuration sets
    connected = {}
    app = SimpleNamespace(connect=lambda event, function, priority: connected.update(to=priority))
    configuration = runpy.run_path(str(DOCS / "conf.py"))
    configuration["setup"](app)
    assert connected["to"] > 500  # that of numpydoc
    assert configuration["sphinx_gallery_conf"]["capture_repr"] == ()  # no "Out: [Text(...)]"
    heads = ["**labels_** : ndarray", "**inertia_, s_, objective_** : float"]
    lines = [*heads, "of labels_, ``s_`` and `s_`", ">>> model.labels_"]
    configuration["quote_attributes"](app, "", "", None, None, lines)
    quoted = [*heads, "of ``labels_``, ``s_`` and `s_`", ">>> model.labels_"]
    assert lines == quoted
