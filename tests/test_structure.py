"""The architecture: imports point one way, and versions agree."""

import ast
import doctest
import importlib
from importlib.metadata import version
from pathlib import Path

import pytest

import rffpk

PACKAGE = Path(rffpk.__file__).parent

# A module imports from lines above its own only.
LAYERS = [
    {"_core", "_reference", "_linalg", "_tiles"},
    {"_config", "_checks"},
    {"_stats"},
    {"feature_maps", "_seeding", "_schedule", "_store"},
    {"_anneal", "_annealed", "kernels"},
    {"_portfolio", "_dual", "_operators"},
    {"_estimator", "_dual_estimator"},
    {"power", "exact"},
    {"multiview", "_embedding", "_anchored", "_partitions"},
    {"mkkm", "simplemkkm", "smkc", "famkkm", "nystroem"},
    {"metrics"},
    {"__init__"},
    {"__main__"},
]
RANK = {module: rank for rank, modules in enumerate(LAYERS) for module in modules}


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "rffpk":
                yield parts[1] if len(parts) > 1 and parts[1] in RANK else "__init__"


def test_imports_point_one_way():
    paths = sorted(PACKAGE.glob("*.py"))
    assert {path.stem for path in paths} == set(RANK) - {"_core"}
    for path in paths:
        for module in imported_modules(path):
            assert RANK[module] < RANK[path.stem], f"{path.stem} imports {module}"


def test_only_public_names_of_other_packages_are_imported():
    for path in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and not node.module.startswith("rffpk"):
                names = [*node.module.split("."), *(alias.name for alias in node.names)]
                private = [n for n in names if n.startswith("_") and not n.startswith("__")]
                assert not private, f"{path.stem}: {private}"


def test_the_package_is_typed_and_its_version_is_the_installed_one():
    assert (PACKAGE / "py.typed").exists()
    assert rffpk.__version__ == version("rffpk") == rffpk.show_config()["version"]


def test_every_public_name_has_a_docstring():
    for name in set(rffpk.__all__) - {"__version__"}:
        assert getattr(rffpk, name).__doc__, name


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.stem)
def test_examples_in_docstrings_run(path):
    name = "rffpk" if path.stem == "__init__" else f"rffpk.{path.stem}"
    failures, _ = doctest.testmod(importlib.import_module(name))
    assert not failures
