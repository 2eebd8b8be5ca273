"""The diffs of docs/extending.md apply to the package, and what they add works."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import rffpk

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "extending.md"
DIFF = re.compile(r"^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)
pytestmark = pytest.mark.skipif(
    not (PAGE.exists() and shutil.which("git")), reason="only in the repository, by git"
)

# Finders of editable installs come before the path.
HERE = "sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in type(f).__module__]"

USES = {
    "src/rffpk/harmonic.py": """
        X, _ = make_blobs(500, centers=5, random_state=2)
        model = rffpk.HarmonicKMeans(5, random_state=0).fit(X)
        same = rffpk.FuzzyCMeans(5, m=2.0, random_state=0).fit(X)
        np.testing.assert_array_equal(model.predict(X), same.labels_)
        assert model.s_ == -1
    """,
    "src/rffpk/maps/sketch.py": """
        from rffpk.maps.sketch import CountSketch
        from rffpk.power import AnnealedClusterer

        class SketchKMeans(AnnealedClusterer):
            def _problem(self, **more):
                return super()._problem(maps=self._maps, **more)

            def _maps(self, sample, context):
                return [CountSketch(n_components=50, random_state=0).fit(sample.some()[0][0])]

        X, _ = make_blobs(500, centers=5, random_state=2)
        model = SketchKMeans(5, random_state=0).fit(X)
        features = CountSketch(n_components=50, random_state=0).fit_transform(X)
        same = rffpk.PowerKMeans(5, random_state=0).fit(features)
        np.testing.assert_array_equal(model.predict(X), same.labels_)
    """,
}


RULE = """
    from rffpk import _core, _reference

    random = np.random.default_rng(0)
    x, theta = random.standard_normal((300, 4)), random.standard_normal((5, 4))
    weight, k, s = random.random(300), 5, -0.7
    columns = [x], [None], [np.zeros(4)], theta, np.ones(1), weight, _reference.ENTROPY, s
    passes = []
    for backend in _core, _reference:
        u = np.empty((300, k))
        *sums, soft, hard = backend.fused_pass(*columns, memberships=u, n_threads=1)
        passes.append([*sums, soft, hard, u])
    for ours, twin in zip(*passes):
        np.testing.assert_allclose(ours, twin, rtol=1e-12, atol=1e-12)
    squares = ((x[:, None] - theta) ** 2).sum(axis=2)
    mean = weight @ np.log(np.exp(s * squares).mean(axis=1)) / s
    np.testing.assert_allclose(soft, mean)
"""


def diff_with(path):
    """The diff of the page that adds or changes a file."""
    [found] = [diff for diff in DIFF.findall(PAGE.read_text()) if f"+++ b/{path}\n" in diff]
    return found


def apply(diff, folder):
    done = subprocess.run(
        ["git", "apply", "--unidiff-zero", "-"], cwd=folder, input=diff, capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.fixture
def package(tmp_path):
    """A copy of the package, with its compiled modules."""
    copy = tmp_path / "src" / "rffpk"
    shutil.copytree(Path(rffpk.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, module in sys.modules.items():
        if name.startswith("rffpk._core._"):
            there = copy / "_core" / Path(module.__file__).name
            if not there.exists():
                shutil.copy(module.__file__, there)
    return tmp_path


def check(uses, packages, python):
    """The code runs with the modified package in one of these folders."""
    start = f"""
        import sys
        {HERE}
        import numpy as np
        import rffpk
        from sklearn.datasets import make_blobs

        assert rffpk.__file__.startswith({str(packages)!r})
    """
    code = "\n".join(textwrap.dedent(part) for part in (start, uses))
    others = os.environ.get("PYTHONPATH", "")  # perhaps with the metadata of the package
    python(code, PYTHONPATH=os.pathsep.join([str(packages), others]))


@pytest.mark.parametrize("path", USES)
def test_a_diff_applies_and_what_it_adds_works(path, package, python):
    apply(diff_with(path), package)
    check(USES[path], package / "src", python)


@pytest.mark.exhaustive
def test_a_rule_in_c_is_that_of_the_twin(tmp_path, python):
    pytest.importorskip("mesonpy")
    source = tmp_path / "source"
    shutil.copytree(ROOT / "src", source / "src")
    for name in "meson.build", "meson.options", "pyproject.toml", "README.md", "LICENSE":
        shutil.copy(ROOT / name, source)
    apply(diff_with("src/rffpk/_core/weights.h"), source)
    install = [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # of ninja
    done = subprocess.run(
        [*install, "--target", tmp_path / "installed", source],
        env={**os.environ, "PATH": path}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    check(RULE, tmp_path / "installed", python)
