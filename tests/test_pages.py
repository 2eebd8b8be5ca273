"""The pages: their blocks of Python run, in their order, and their links lead somewhere."""

import inspect
import json
import logging
import os
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import rffpk

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("for/*.md"))]
README = (ROOT / "README.md").read_text() if (ROOT / "README.md").exists() else ""
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def blocks(path):
    return BLOCK.findall(path.read_text())


@pytest.fixture
def logger_as_it_was():
    """What a page sets of the logger is undone."""
    logger = logging.getLogger("rffpk")
    level, handlers = logger.level, list(logger.handlers)
    yield
    logger.setLevel(level)
    logger.handlers[:] = handlers


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "path", [p for p in PAGES if p.exists() and blocks(p)], ids=lambda p: p.stem
)
def test_blocks_of_python_run(path, logger_as_it_was):
    names = {"__name__": path.stem}
    if "matplotlib" in path.read_text():
        pytest.importorskip("matplotlib").use("agg")
    for block in blocks(path):
        exec(compile(block, str(path), "exec"), names)


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


def test_figures_of_the_readme_are_recorded_ones():
    results = ROOT / "bench" / "results"
    if not results.exists():
        pytest.skip("only in the repository")
    found = [json.loads(line) for line in (results / "labels.jsonl").read_text().splitlines()]
    lines = re.findall(r"^\| .*`(\w+)\b.*` *[^|]*\| \.(\d+) \| (\S+) \|", README, re.MULTILINE)
    assert len(lines) == 3
    for method, nmi, ari in lines:
        of_method = [record for record in found if record["method"] == method]
        real = [np.mean(record["NMI"]) for record in of_method if record["group"] == "real"]
        assert len(real) == 31 and round(float(np.mean(real)), 3) == float("0." + nmi)
        [noisy] = [record for record in of_method if record["set"] == "moons, noise"]
        assert round(float(np.mean(noisy["ARI"])), 2) == float(ari)


def test_topics_are_found_by_the_class_that_their_page_names():
    path = DOCS / "for" / "topics.md"
    if not path.exists():
        pytest.skip("only in the repository")
    names = {}
    for block in blocks(path):
        exec(compile(block, str(path), "exec"), names)
    assert names["adjusted_rand_score"](names["y"], names["model"].labels_) > 0.99


def test_the_class_for_tables_is_ahead_in_their_table():
    if not (DOCS / "for" / "tables.md").exists():
        pytest.skip("only in the repository")
    text = (DOCS / "for" / "tables.md").read_text()
    lines = re.findall(r"^\| [^|]+ \| (Diffusion)?PowerKMeans \| ([\d.]+) \|", text, re.MULTILINE)
    columns, diffusion = (
        np.array([float(x) for kind, x in lines if (kind == "Diffusion") == of]) for of in (0, 1)
    )
    ahead, behind = (columns > diffusion).sum(), (columns < diffusion).sum()
    said = f"of `DiffusionPowerKMeans` on {ahead} of {len(columns)} tables, and behind on {behind}"
    for page in (text, (DOCS / "start.md").read_text()):
        assert said in " ".join(page.split())


def test_the_reference_has_the_first_sentence_of_each_docstring():
    page = (ROOT / "docs" / "api.md").read_text()
    for name in set(rffpk.__all__) - {"__version__"}:
        sentence = inspect.getdoc(getattr(rffpk, name)).split("\n\n")[0].replace("\n", " ")
        line = rf"^\| \[`{name}`\]\(\S+\) \| {re.escape(sentence)} \|$"
        assert re.search(line, page, re.MULTILINE), f"{name}: {sentence}"


def test_every_page_is_listed():
    index = (ROOT / "docs" / "index.md").read_text()
    for path in PAGES[1:]:
        name = path.relative_to(DOCS).as_posix()
        assert path.stem == "index" or f"({name})" in index, name


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
