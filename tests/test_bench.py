"""The benchmarks: the origins of data sets, repeated fits, and measured classes."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import rffpk

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.skipif(not (ROOT / "bench").exists(), reason="only in the repository")


def test_the_origin_of_each_set_of_the_papers_tables_is_documented(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from bench.datasets import MULTI_VIEW
    from bench.papers.cells import EXPERIMENTS, stored_name

    lines = (ROOT / "bench" / "README.md").read_text().splitlines()
    rows = [re.fullmatch(r"\| `(\w+)` \| \d+ \| [^|]+ \| \d+ \|.*: .* \|.* \|", x) for x in lines]
    documented = [row[1] for row in rows if row]
    used = {stored_name(name) for names in EXPERIMENTS.values() for name in names}
    assert documented == sorted(documented)
    assert used | {*MULTI_VIEW} <= {*documented}


def test_pages_and_comments_name_commands_that_exist():
    pages = [ROOT / "README.md", *(p for x in ("bench", "docs") for p in (ROOT / x).rglob("*.md"))]
    sources = [path for path in (ROOT / "src").rglob("*.*") if path.suffix in (".py", ".h")]
    text = "\n".join(path.read_text() for path in (*pages, *sources))
    named = {*re.findall(r"\bbench\.(?:quality|speed|papers)\b(?:\.[a-z_]+)?", text)}
    paths = [ROOT / name.replace(".", "/") for name in named]
    assert len(paths) > 20
    assert all(path.is_dir() or path.with_suffix(".py").exists() for path in paths)


@pytest.mark.exhaustive
def test_repeats_on_one_embedding_have_the_labels_of_fits(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from bench.papers import methods

    X, _ = make_blobs(90, 6, centers=9, cluster_std=3.0, random_state=0)
    views = [X[:, :3], X[:, 3:]]
    labels = []
    for name in methods.SEEDLESS:
        run = methods.OneEmbedding(methods.VIEWS[name], n_init=1)
        for seed in range(3):
            fit = methods.VIEWS[name](9, n_init=1, random_state=seed).fit(views)
            np.testing.assert_array_equal(run(views, 9, seed), fit.labels_)
            labels.append(fit.labels_)
        assert run.seconds > 0
    assert len(np.unique(labels, axis=0)) > len(methods.SEEDLESS)  # seeds do change labels


def test_the_memory_of_each_class_is_measured(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from bench.speed.memory import CASES

    classes = {name for name in rffpk.__all__ if hasattr(getattr(rffpk, name), "fit")}
    assert {case.name for case in CASES} == classes
    page = (ROOT / "docs" / "maintainers" / "promises.md").read_text()
    section = page.split("## Memory of a fit")[1].split("\n## ")[0]
    assert all(f"`{name}" in section for name in classes)
