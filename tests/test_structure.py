"""The architecture: imports point one way, and versions agree."""

import ast
import doctest
import importlib
from importlib.metadata import version
from pathlib import Path

import pytest

import rffpk

PACKAGE = Path(rffpk.__file__).parent

# A module imports only modules of the lines above its own.
LAYERS = [
    {"_data.arrays", "_data.interrupts", "_data.messages", "_data.sparse_rows", "_core", "_docs"},
    {"_data.presence", "_data.containers"},
    {"_data.files", "_data.tiles", "_data.decompositions", "_data.sums", "_data.validation"},
    {"_reference", "_data.collections", "_data.views", "_data.streams", "_data.progress"},
    {"_config", "_data.tensor_files"},
    {"_data.partitions"},
    {"_data.rows"},
    {"_data.passes", "_data.model_state"},
    {"_data.estimator"},
    {"_data.survey", "metrics", "sources"},
    {"_data.store"},
    {"feature_maps"},
    {"_annealing.objective", "_annealing.ends", "_annealing.schedule", "_annealing.checkpoint"},
    {"_annealing.critical", "_annealing.bounds", "_annealing.search", "kernels"},
    {"_annealing.feature_steps", "_annealing.centroid_model", "_annealing.kernel_products"},
    {
        *("_annealing.seeding", "_annealing.compression", "_annealing.swaps"),
        *("_annealing.kernel_steps", "_annealing.batches"),
    },
    {"_annealing.fit", "_annealing.kernel_fit"},
    {"_diffusion.neighbourhoods"},
    {"_diffusion.spectrum"},
    {"diffusion_map", "_fusion.weights"},
    {"_fusion.operators"},
    {"power", "exact", "fuzzy", "rmkkm"},
    {"diffusion", "multiview", "_fusion.skeleton", "_fusion.smkc_solver", "_fusion.famkkm_solver"},
    {"_fusion.spectral", "selection"},
    {
        *("mkkm", "coregsc", "lkam", "lmkkm", "mkkm_mr", "mvclfa", "onkc", "simplemkkm", "smkc"),
        *("famkkm", "nystroem"),
    },
    {"plot", "model_files"},
    {"__init__"},
    {"__main__"},
]
RANK = {module: rank for rank, modules in enumerate(LAYERS) for module in modules}
PATHS = sorted(PACKAGE.glob("**/*.py"))


def module_of(path):
    """The name of a module below the package; that of a folder for its __init__."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "rffpk":
                parts = name.split(".")[1:]
                known = (".".join(parts[:n]) for n in (2, 1))
                yield next((module for module in known if module in RANK), "__init__")


def test_imports_point_one_way():
    modules = {path: module_of(path) for path in PATHS}
    folders = {module for module in modules.values() if (PACKAGE / module).is_dir()}
    assert set(modules.values()) - folders == set(RANK) - {"_core"}
    for folder in folders - {"_core"}:
        assert not [*imported_modules(PACKAGE / folder / "__init__.py")]
    for path, module in modules.items():
        for imported in imported_modules(path):
            if module != "_core":
                assert RANK[imported] < RANK[module], f"{module} imports {imported}"


def test_folders_have_no_subfolders():
    assert {len(path.relative_to(PACKAGE).parts) for path in PATHS} == {1, 2}


@pytest.mark.parametrize(
    "cls",
    [
        rffpk.PowerKMeans, rffpk.FuzzyCMeans, rffpk.RFFKernelPowerKMeans,
        rffpk.DiffusionPowerKMeans, rffpk.RFFMultiKernelPowerKMeans, rffpk.KernelKMeans,
        rffpk.KernelPowerKMeans, rffpk.MultiKernelPowerKMeans, rffpk.RMKKM,
    ],
)  # fmt: skip
def test_few_classes_lie_between_an_estimator_and_that_of_scikit_learn(cls):
    own = [base for base in cls.__mro__ if base.__module__.startswith("rffpk.")]
    assert len(own) - 1 <= 3


def test_only_public_names_of_other_packages_are_imported():
    for path in PATHS:
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


@pytest.mark.parametrize("path", PATHS, ids=module_of)
def test_examples_in_docstrings_run(path):
    module = module_of(path)
    name = "rffpk" if module == "__init__" else f"rffpk.{module}"
    failures, _ = doctest.testmod(importlib.import_module(name))
    assert not failures
