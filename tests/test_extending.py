"""The diffs of docs/maintainers/extending.md apply to the package, what they add works, and
compiled packages use its functions."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import rffpk

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "maintainers" / "extending.md"
CYTHON = re.compile(r"^```cython\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MESON = re.compile(r"^```meson\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DIFF = re.compile(r"^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)
pytestmark = pytest.mark.skipif(
    not (PAGE.exists() and shutil.which("git")), reason="only in the repository, by git"
)

USES = {
    "src/rffpk/estimators/harmonic.py": """
        X, _ = make_blobs(500, centers=5, random_state=2)
        model = rffpk.HarmonicKMeans(5, random_state=0).fit(X)
        same = rffpk.FuzzyCMeans(5, m=2.0, n_init=1, sample=None, random_state=0).fit(X)
        np.testing.assert_array_equal(model.predict(X), same.labels_)
        assert model.s_ == -1
    """,
    "src/rffpk/spaces/sketch.py": """
        from rffpk.spaces.sketch import CountSketch
        from rffpk.estimators.annealing import search_parameters
        from rffpk.anneal.feature_fit import Problem
        from rffpk.estimators.power import AnnealedClusterer

        class SketchKMeans(AnnealedClusterer):
            def _problem(self):
                return Problem(search_parameters(self), maps=self._maps)

            def _maps(self, sample, context):
                sketch = CountSketch(n_components=50, random_state=0)
                return [sketch.fit(sample.some()[0][0])]

        X, _ = make_blobs(500, centers=5, random_state=2)
        model = SketchKMeans(5, random_state=0).fit(X)
        features = CountSketch(n_components=50, random_state=0).fit_transform(X)
        same = rffpk.PowerKMeans(5, random_state=0).fit(features)
        np.testing.assert_array_equal(model.predict(X), same.labels_)
    """,
    "src/rffpk/_core/weights.h": """
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
""",
}


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr


def with_tools(**environment):
    """Return the environment in which Cython and Ninja are found."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, **environment}


@pytest.mark.exhaustive
def test_the_diffs_apply_and_what_they_add_works(tmp_path, python):
    pytest.importorskip("mesonpy")
    source, installed = tmp_path / "source", tmp_path / "installed"
    shutil.copytree(ROOT / "src", source / "src")
    for name in "meson.build", "meson.options", "pyproject.toml", "README.md", "LICENSE":
        shutil.copy(ROOT / name, source)
    for diff in DIFF.findall(PAGE.read_text()):
        if any(f"+++ b/{path}\n" in diff for path in USES):
            run(["git", "apply", "--unidiff-zero", "-"], cwd=source, input=diff)
    install = [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps"]
    run([*install, "--target", installed, source], env=with_tools())
    # finders of editable installs come before the path
    start = f"""
        import sys
        sys.meta_path[:] = [x for x in sys.meta_path if "editable" not in type(x).__module__]
        import numpy as np
        import rffpk
        from sklearn.datasets import make_blobs

        assert rffpk.__file__.startswith({str(installed)!r})
    """
    path = os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")])
    for code in USES.values():
        python(textwrap.dedent(start) + textwrap.dedent(code), PYTHONPATH=path)


# ---- compiled packages ---------------------------------------------------------------------------

TILE = """
# cython: language_level=3
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memset
from rffpk.capi cimport *
import numpy as np

cdef extern from "<stdlib.h>" nogil:
    void *aligned_alloc(size_t, size_t)

def tile(const double[:, ::1] x, const double[:, ::1] theta, int contract=RFFPK_CONTRACT):
    cdef const rffpk_kernels *kernels = tile_functions(8, contract)
    cdef size_t n = x.shape[0], d = x.shape[1], k = theta.shape[0]
    cdef double[::1] shift = np.zeros(d), alpha = np.ones(1), moments = np.empty(k * (d + 2))
    cdef double[::1] excess = np.empty(k), totals = np.empty(2)
    cdef int32_t[::1] labels = np.empty(n, dtype=np.int32)
    cdef rffpk_view view
    cdef rffpk_problem problem
    cdef rffpk_sums sums
    cdef rffpk_rows rows
    memset(&view, 0, sizeof(view))
    memset(&problem, 0, sizeof(problem))
    memset(&rows, 0, sizeof(rows))
    view.x, view.shift, view.d = &x[0, 0], &shift[0], d
    problem.views, problem.n_views, problem.alpha = &view, 1, &alpha[0]
    problem.theta, problem.k, problem.F = &theta[0, 0], k, d
    problem.rule, problem.stages = RFFPK_HARD, RFFPK_ALL_STAGES
    sums.moments, sums.excess, sums.totals = &moments[0], &excess[0], &totals[0]
    rows.labels = &labels[0]
    cdef void *prepared = aligned_alloc(RFFPK_ALIGN, padded(kernels.prepared_bytes(&problem)))
    cdef void *workspace = aligned_alloc(RFFPK_ALIGN, padded(kernels.workspace_bytes(&problem)))
    with nogil:
        kernels.prepare(&problem, prepared)
        status = kernels.run(&problem, prepared, 0, n, &sums, &rows, workspace)
    free(prepared)
    free(workspace)
    assert status == RFFPK_OK
    return np.asarray(labels), np.asarray(moments).reshape(k, d + 2)[:, :d]

cdef size_t padded(size_t n_bytes):
    return (n_bytes + RFFPK_ALIGN - 1) // RFFPK_ALIGN * RFFPK_ALIGN
"""

MORE = """
from rffpk.capi cimport fuzzy_pass_f32

def refused(float[:, ::1] x, size_t k, double s):
    fuzzy_pass_f32(&x[0, 0], &x[0, 0], NULL, x.shape[0], x.shape[1], k, s, 1, NULL, NULL, NULL,
                   NULL)

def weighted(float[:, ::1] x, float[:, ::1] theta, float[::1] p, double s, int n_threads):
    cdef float[:, ::1] u = np.empty((x.shape[0], theta.shape[0]), dtype=np.float32)
    cdef double[:, ::1] sums = np.empty(np.shape(theta))
    cdef double[::1] masses = np.empty(theta.shape[0])
    cdef double objective
    fuzzy_pass_f32(&x[0, 0], &theta[0, 0], &p[0], x.shape[0], x.shape[1], theta.shape[0], s,
                   n_threads, &u[0, 0], &sums[0, 0], &masses[0], &objective)
    return np.asarray(u), np.asarray(sums), np.asarray(masses), objective
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Build an extension of what the page shows, and of more functions, from its build file."""
    for module in ("Cython", "mesonbuild", "ninja"):
        pytest.importorskip(module)
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if not shutil.which(compiler[0]):
        pytest.skip(f"no C compiler {compiler[0]!r}")
    folder = tmp_path_factory.mktemp("extension")
    [example], [build] = (block.findall(PAGE.read_text()) for block in (CYTHON, MESON))
    (folder / "example.pyx").write_text(example + TILE + MORE)
    (folder / "meson.build").write_text(build)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    path = os.pathsep.join([str(Path(rffpk.__file__).parent.parent), *sys.path])
    meson = [sys.executable, "-m", "mesonbuild.mesonmain"]
    for command in (["setup", "build"], ["compile", "-C", "build"]):
        run([*meson, *command], cwd=folder, env=with_tools(PYTHONPATH=path))
    spec = importlib.util.spec_from_file_location("example", folder / "build" / f"example{suffix}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.exhaustive
def test_a_compiled_package_makes_a_step_of_fuzzy_c_means(compiled):
    X = make_blobs(3000, 5, centers=4, random_state=0)[0]
    before = X[:4] + 0.1
    u, after = compiled.step(X, before, -1.25)
    inverse = ((X[:, None] - before) ** 2).sum(axis=2) ** -1.25
    by_hand = inverse / inverse.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(u, by_hand, atol=1e-9)
    powers = by_hand**1.8
    np.testing.assert_allclose(after, powers.T @ X / powers.sum(axis=0)[:, None], rtol=1e-9)
    u, after = compiled.step(X, before, -np.inf)
    assert (u.argmax(axis=1) == by_hand.argmax(axis=1)).all() and {*u.ravel()} == {0, 1}


@pytest.mark.promise(
    "Threads",
    "The same holds for the sums that compiled packages get from `rffpk.capi`.",
)
@pytest.mark.exhaustive
def test_sums_of_a_compiled_package_have_weights_and_the_bits_of_one_thread(compiled):
    X = make_blobs(9000, 3, centers=4, random_state=0)[0].astype(np.float32) + 1000
    theta, p = X[:6] + 0.5, np.random.default_rng(0).random(9000, dtype=np.float32)
    u, sums, masses, objective = compiled.weighted(X, theta, p, -2.0, 1)
    d = ((X[:, None].astype(float) - theta) ** 2).sum(axis=2)
    by_hand = d**-2 / (d**-2).sum(axis=1, keepdims=True)
    g = p[:, None] * by_hand**1.5
    np.testing.assert_allclose(u, by_hand, atol=1e-3)
    np.testing.assert_allclose(masses, g.sum(axis=0), rtol=1e-4)
    np.testing.assert_allclose(sums, g.T @ X, rtol=1e-4)
    np.testing.assert_allclose(objective, (g * d).sum(), rtol=1e-4)
    for ours, same in zip(compiled.weighted(X, theta, p, -2.0, 2), (u, sums, masses, objective)):
        np.testing.assert_array_equal(ours, same)
    for arguments, message in {
        (0, -1.0): "k=0",
        (2, 0.5): "s=0.5: must be < 0",
        (2, np.nan): "s=nan: must be < 0",
    }.items():
        with pytest.raises(ValueError, match=message):
            compiled.refused(X, *arguments)


@pytest.mark.exhaustive
def test_a_compiled_package_runs_the_tile(compiled):
    X = make_blobs(700, 5, centers=4, random_state=0)[0]
    labels, sums = compiled.tile(X, X[:4].copy())
    np.testing.assert_array_equal(labels, ((X[:, None] - X[:4]) ** 2).sum(axis=2).argmin(axis=1))
    np.testing.assert_allclose(sums, [X[labels == j].sum(axis=0) for j in range(4)], rtol=1e-9)
    with pytest.raises(ImportError, match="compiled with contract 0 of rffpk"):
        compiled.tile(X, X[:4].copy(), 0)
