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

PAGE = Path(__file__).parent.parent / "docs" / "extending.md"
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


def diff_with(path):
    """The diff of the page that adds or changes a file."""
    [found] = [diff for diff in DIFF.findall(PAGE.read_text()) if f"+++ b/{path}\n" in diff]
    return found


def apply(diff, folder):
    done = subprocess.run(
        ["git", "apply", "-"], cwd=folder, input=diff, capture_output=True, text=True
    )
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


@pytest.mark.parametrize("path", USES)
def test_a_diff_applies_and_what_it_adds_works(path, package, python):
    apply(diff_with(path), package)
    start = f"""
        import sys
        {HERE}
        import numpy as np
        import rffpk
        from sklearn.datasets import make_blobs

        assert rffpk.__file__.startswith({str(package)!r})
    """
    code = "\n".join(textwrap.dedent(part) for part in (start, USES[path]))
    others = os.environ.get("PYTHONPATH", "")  # perhaps with the metadata of the package
    python(code, PYTHONPATH=os.pathsep.join([str(package / "src"), others]))
