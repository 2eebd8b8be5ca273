"""State of the process: other threads do not see that the package runs."""

import ast
import os
import random
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from contracts.plan import report
from sklearn.exceptions import ConvergenceWarning
from test_docs import FITS

import rffpk
from rffpk.profiles import describe

PACKAGE = Path(rffpk.__file__).parent


# ---- what no module does ------------------------------------------------------------------------

# Functions that change what other threads see, if only for a moment.
CHANGES = {
    "umask", "chdir", "fchdir", "putenv", "unsetenv", "setlocale", "seterr", "seterrcall",
    "set_printoptions", "set_string_function", "catch_warnings", "simplefilter", "filterwarnings",
    "resetwarnings", "setswitchinterval", "setrecursionlimit", "set_start_method", "setLevel",
    "basicConfig", "disable", "set_config", "setrlimit", "setdefaulttimeout", "rcParams",
    "threadpool_limits",
}  # fmt: skip
UNSHARED = {  # of modules whose other functions and attributes are shared
    "np.random": {"RandomState", "default_rng", "Generator", "Philox"}, "os.environ": {"get"},
}  # fmt: skip


def changes(path):
    """Yield calls and assignments of a module that change the state of the process."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            name, owner = node.attr, ast.unparse(node.value)
            is_set = owner in ("sys", "os", "warnings") and isinstance(node.ctx, ast.Store)
            shared = owner in UNSHARED and name not in UNSHARED[owner]
            if name in CHANGES or is_set or shared or (owner, name) == ("signal", "signal"):
                yield f"{owner}.{name}"
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if alias.name in CHANGES)
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
            yield "os.environ"


@pytest.mark.promise(
    "Process-wide state",
    "The package changes no state of the process: no umask, folder, environment, locale, "
    "signal handler, filter of warnings, logging level or recursion limit. With "
    "`random_state=None` it draws from NumPy's global generator, as scikit-learn does. "
    "Handling of floating-point errors and scikit-learn's configuration change in the calling "
    "thread alone, while it runs. The command line, a process of its own, sets how warnings "
    "are printed.",
)
def test_only_the_command_line_changes_the_process():
    found = {path.name: {*changes(path)} for path in PACKAGE.glob("**/*.py")}
    assert found.pop("__main__.py") == {
        "warnings.catch_warnings", "warnings.showwarning", "sys.stderr",
    }  # fmt: skip
    assert not any(found.values()), {path: names for path, names in found.items() if names}


# ---- files --------------------------------------------------------------------------------------

X = np.random.RandomState(0).randn(60, 4)


@pytest.mark.promise(
    "Process-wide state",
    "Written files have the permissions of those that they replace, or those of any new file "
    "under the umask.",
)
@pytest.mark.skipif(os.name == "nt", reason="no permissions as elsewhere here")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o007])
def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path, mask):
    model, before = rffpk.PowerKMeans(2, random_state=0).fit(X), os.umask(mask)
    try:
        model.save(tmp_path / "model")
    finally:
        os.umask(before)
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.promise(like="test_a_new_file_has_the_permissions_of_any_new_file")
@pytest.mark.skipif(os.name == "nt", reason="no permissions as elsewhere here")
def test_a_file_is_written_with_the_permissions_of_the_one_that_it_replaces(tmp_path, monkeypatch):
    place, model, during = tmp_path / "model", rffpk.PowerKMeans(2), []
    place.touch()
    monkeypatch.setattr(os, "fsync", lambda number: during.append(os.fstat(number).st_mode & 0o777))
    for mode in (0o600, 0o666, 0o444):
        place.chmod(mode)
        model.save(place)
        assert place.stat().st_size and place.stat().st_mode & 0o777 == mode
        assert during.pop() & ~mode == 0  # nobody reads it who may not read the file before


# ---- warnings -----------------------------------------------------------------------------------


@pytest.mark.promise(
    "Process-wide state",
    "Warnings of the refits of `describe` are hidden. Warnings of other threads are not.",
)
def test_a_warning_of_another_thread_is_seen_while_ours_are_not_wanted(monkeypatch):
    """Whatever an inner fit warns of is not said; what another thread says meanwhile is."""
    model, inner, said = rffpk.PowerKMeans(2, random_state=0).fit(X), rffpk.PowerKMeans.fit, []

    def fit(self, *arguments, **options):
        with ThreadPoolExecutor(1) as other:
            other.submit(warnings.warn, "of another thread", ConvergenceWarning).result()
        report.warn("of an inner fit.", ConvergenceWarning)
        said.append(self)
        return inner(self, *arguments, **options)

    monkeypatch.setattr(rffpk.PowerKMeans, "fit", fit)
    filters = list(warnings.filters)
    with pytest.warns(ConvergenceWarning) as seen:
        warnings.simplefilter("always")
        describe(model, X, n_resamples=2, random_state=0)
    texts = [str(warning.message) for warning in seen]
    assert texts.count("of another thread") == len(said) == 2
    assert "of an inner fit." not in texts
    assert warnings.filters == filters


# ---- the rest -----------------------------------------------------------------------------------


def state():
    generator = np.random.get_state()  # noqa: NPY002
    return {
        "folder": os.getcwd(), "environment": dict(os.environ), "errors": np.geterr(),
        "NumPy's generator": (generator[1].tobytes(), *generator[2:]),
        "Python's generator": random.getstate(), "filters": list(warnings.filters),
    }  # fmt: skip


@pytest.mark.promise(like="test_only_the_command_line_changes_the_process")
@pytest.mark.parametrize("name", FITS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_fit_leaves_the_state_of_the_process(name, tmp_path):
    parameters, rows = FITS[name][0]
    cls = getattr(rffpk, name)
    options = {"n_clusters": 3, "noise": 0.1}
    options = {key: options[key] for key in options.keys() & cls().get_params()}
    model = cls(**options, **parameters, random_state=0)
    before = state()
    model.fit(rows)
    (model.predict if hasattr(model, "predict") else model.transform)(rows)
    model.save(tmp_path / "model")
    rffpk.load(tmp_path / "model")
    assert state() == before
