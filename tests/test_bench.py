"""The data folder of the benchmarks: sets that are missing, and where they come from."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.skipif(not (ROOT / "bench").exists(), reason="only in the repository")


def papers(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "bench.papers", *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize(
    "stored, only, message",
    [
        ([], [], "has no NAME.npz; bench/README.md says what"),
        (["other"], [], "has none of the sets 3sources, bbcsport, "),
        (["yale"], ["--only", "mkc-ae"], "has none of the sets mfeat; bench/README.md says where"),
    ],
)
def test_a_folder_without_the_data_sets_is_named_in_one_line(stored, only, message, tmp_path):
    for name in stored:
        np.savez(tmp_path / f"{name}.npz", X=np.eye(3), y=np.arange(3))
    out = tmp_path / "out"
    done = papers("--data", str(tmp_path), "--out", str(out), *only)
    assert done.returncode == 2 and not done.stdout and not out.exists()
    [line] = [line for line in done.stderr.splitlines() if "error:" in line]
    assert f"{tmp_path} {message}" in line and "Traceback" not in done.stderr


def test_a_figure_without_its_data_set_is_left_out(tmp_path):
    pytest.importorskip("matplotlib")
    np.savez(tmp_path / "yale.npz", X=np.eye(3), y=np.arange(3))
    out = tmp_path / "out"
    cache = str(tmp_path / "cache.jsonl")
    done = papers("--data", str(tmp_path), "--out", str(out), "--cache", cache, "--only", "anchors")
    assert done.returncode == 0, done.stderr
    assert f"left out: {tmp_path / 'mfeat.npz'} is missing" in done.stdout


def test_the_origin_of_each_set_of_the_papers_tables_is_documented(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    pytest.importorskip("matplotlib")
    from bench.datasets import MULTI_VIEW
    from bench.papers.cells import EXPERIMENTS, stored_name

    lines = (ROOT / "bench" / "README.md").read_text().splitlines()
    rows = [re.fullmatch(r"\| `(\w+)` \| \d+ \| [^|]+ \| \d+ \|.*: .* \|.* \|", x) for x in lines]
    documented = [row[1] for row in rows if row]
    used = {stored_name(name) for names in EXPERIMENTS.values() for name in names}
    assert documented == sorted(documented)
    assert used | {*MULTI_VIEW} <= {*documented}
