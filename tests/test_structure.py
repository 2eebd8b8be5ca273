"""The architecture: imports point one way, and versions agree."""

import ast
import doctest
import graphlib
import importlib
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
from contracts.plan import TUNING

import rffpk

PACKAGE = Path(rffpk.__file__).parent

# Folders, and modules beside them; modules without a line stand with `fusion`. A module imports
# from its own line and the lines above. On one line no modules import each other in a circle.
LAYERS = [
    {"_core"},
    {"system"},
    {"rows", "_reference", "metrics", "sources"},
    {"spaces"},
    {"anneal", "choose"},
    {"fusion", "estimators"},
    {"selection", "plot", "model_files"},
    {"__init__"},
    {"__main__"},
]
# Imports that point the other way. `save` is a method of all estimators, and its module, which is
# loaded when it is called, names them all. The list of the rest may only shrink.
CALLED = {("estimators.base", "model_files"), ("model_files", "__init__")}
UPWARD = {
    "system.config": {"rows.checks"},
}

RANK = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}


def rank_of(module):
    return RANK.get(module.split(".")[0], RANK["fusion"])


PATHS = sorted(PACKAGE.glob("**/*.py"))


def module_of(path):
    """Return the name of a module below the package; of the folder for an __init__."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


def imported_modules(path, modules):
    """Find the modules of the package that a module imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            package, *parts = name.split(".")
            if package == "rffpk":
                known = (".".join(parts[:n]) for n in (2, 1))
                yield next((module for module in known if module in modules), "__init__")


def test_imports_point_one_way():
    assert {len(path.relative_to(PACKAGE).parts) for path in PATHS} == {1, 2}
    modules = {path: module_of(path) for path in PATHS}
    known = set(modules.values())
    assert {module.split(".")[0] for module in known} >= set(RANK)
    graph = {module: {*imported_modules(path, known)} for path, module in modules.items()}
    for module, other in CALLED:
        graph[module].remove(other)
    for module, imported in graph.items():
        upward = {other for other in imported if rank_of(other) > rank_of(module)}
        assert upward == UPWARD.get(module, set()), module
    for folder in known & {path.parent.name for path in PATHS} - {"_core"}:
        assert not graph[folder], f"{folder}/__init__.py imports {graph[folder]}"
    graph.pop("_core")  # its __init__ gathers the names of its modules
    graphlib.TopologicalSorter(graph).prepare()


@pytest.mark.parametrize("cls", [getattr(rffpk, name) for name in rffpk.__all__])
def test_few_classes_lie_between_an_estimator_and_that_of_scikit_learn(cls):
    bases = [base for base in getattr(cls, "__mro__", ()) if base.__module__.startswith("rffpk.")]
    assert len([base for base in bases if base.__name__ != "CallbackSupportMixin"]) <= 4


def test_fields_of_tuning_have_comments_and_are_read():
    """The comment of a field stands above it. Functions read it when they are called."""
    path = PACKAGE / "system" / "tuning.py"
    lines, code = path.read_text().splitlines(), "".join(p.read_text() for p in PATHS if p != path)
    for group in ast.parse(path.read_text()).body:
        if isinstance(group, ast.ClassDef) and group.name != "Tuning":
            assert hasattr(TUNING, group.name.lower())
            for field in filter(lambda node: isinstance(node, ast.AnnAssign), group.body):
                assert lines[field.lineno - 2].startswith("    # "), field.target.id
                assert f".{field.target.id}" in code, field.target.id
    for path in PATHS:
        nodes = [*ast.walk(ast.parse(path.read_text()))]
        bodies = [node.body for node in nodes if isinstance(node, ast.FunctionDef)]
        inside = {node for body in bodies for line in body for node in ast.walk(line)}
        for node in nodes:
            is_read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
            assert not (is_read and node.id == "TUNING") or node in inside, path


def test_only_public_names_of_other_packages_are_imported():
    for path in PATHS:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and not node.module.startswith("rffpk"):
                names = [*node.module.split("."), *(alias.name for alias in node.names)]
                private = [n for n in names if n.startswith("_") and not n.startswith("__")]
                assert not private, f"{path.stem}: {private}"


INNER = ("anneal", "choose", "estimators", "fusion", "rows", "spaces", "system")


def test_tests_import_private_modules_through_contracts():
    """The core and the twin are contracts as a whole."""
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem == "typed_use":  # only type checkers read it
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                private = node.module.startswith(tuple(f"rffpk.{name}" for name in INNER))
                assert not private, f"{path.name} imports {node.module}"


def test_a_contract_has_at_most_ten_names():
    for path in sorted((Path(__file__).parent / "contracts").glob("*.py")):
        tree = ast.parse(path.read_text())
        imported = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        names = [alias.name for node in imported for alias in node.names]
        assert len(names) <= 10, f"{path.name}: {names}"


SLOW = {
    "eig", "eigh", "eigsh", "eigvalsh", "fit", "fit_predict", "fit_transform", "inv", "load_digits",
    "lstsq", "partial_fit", "pinv", "qr", "solve", "svd",
}  # fmt: skip


def calls_at_import(node):
    """Yield the calls that an import makes: of decorators and defaults, not of bodies."""
    if isinstance(node, ast.Call):
        yield node
    is_run = not isinstance(node, (ast.If, ast.Lambda))  # a condition is that of a script
    inner = [*ast.iter_child_nodes(node)] if is_run else []
    if isinstance(node, ast.FunctionDef):
        inner = [*node.decorator_list, *node.args.defaults]
    for child in inner:
        yield from calls_at_import(child)


def test_no_fit_or_decomposition_is_computed_when_tests_are_collected():
    for path in Path(__file__).parent.glob("test_*.py"):
        calls = [ast.unparse(call.func) for call in calls_at_import(ast.parse(path.read_text()))]
        assert not {name for name in calls if name.rpartition(".")[2] in SLOW}, path.name


# Modules that may ask which form a table has: the operations on tables, and the arguments of the
# core. At the door, callers' matrices are asked whether they are sparse.
OF_FORMS = {"rows.table", "rows.passes"}
OF_DOOR = {"rows.advice", "rows.checks", "rows.containers", "rows.door", "rows.table"}
FORMS = {"Csr", "Narrow", "csr_array", "csr_matrix", "issparse", "isspmatrix"}
FIELDS = {"indptr", "indices", "stored", "toarray"}


def names_in(nodes):
    """Return the names and attributes in expressions."""
    parts = [part for node in nodes for part in ast.walk(node)]
    return {getattr(part, "id", getattr(part, "attr", None)) for part in parts}


def questions(tree):
    """Generate what asks for the form of a table, and whether it asks for a sparse matrix."""
    for node in ast.walk(tree):
        asked, words = set(), set()
        if isinstance(node, ast.Call):
            function = names_in([node.func])
            if {"isinstance", "issubclass"} & function:
                asked = names_in(node.args[1:])
            if {"hasattr", "getattr"} & function:
                words = {getattr(argument, "value", None) for argument in node.args[1:]} & FIELDS
            asked |= function & {"issparse", "isspmatrix"}
            if "map" in function:
                asked |= names_in(node.args[:1]) & {"issparse", "isspmatrix"}
        elif isinstance(node, ast.Compare) and "type" in names_in([node]):
            asked = names_in([node])
        elif isinstance(node, ast.match_case):
            asked = names_in([node.pattern])
            classes = [part for part in ast.walk(node.pattern) if isinstance(part, ast.MatchClass)]
            asked = names_in([part.cls for part in classes])
        if (asked & FORMS) or words:
            yield node, not words and asked & FORMS <= {"issparse", "isspmatrix"}


def test_which_form_a_table_has_is_asked_where_tables_are_defined():
    for path in PATHS:
        module = module_of(path)
        for node, of_matrix in questions(ast.parse(path.read_text())):
            allowed = OF_FORMS | OF_DOOR if of_matrix else OF_FORMS
            assert module in allowed, f"{module} asks: {ast.unparse(node)}"


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(x, Csr)", "isinstance(x, (Narrow, int))", "isinstance(x, table.Csr)",
        "isinstance(x, Csr | None)", "type(x) is Csr", "hasattr(x, 'indptr')",
        "getattr(x, 'stored', x)", "sparse.issparse(x)", "any(map(sparse.issparse, xs))",
        "isinstance(x, sparse.csr_array)", "match x:\n    case Csr():\n        pass",
    ],
)  # fmt: skip
def test_a_question_for_the_form_is_seen(line):
    assert [*questions(ast.parse(line))]


@pytest.mark.promise("Process-wide state", "`import rffpk` imports nothing that is optional.")
def test_the_package_imports_nothing_that_is_optional(python):
    """Besides what a part of scikit-learn imports, which is most of the time."""
    python(
        """
        import sys
        import sklearn.cluster, sklearn.pipeline
        before = {*sys.modules}
        import rffpk
        new = {name.partition(".")[0] for name in {*sys.modules} - before}
        new = {name for name in new if not name.startswith("_cython_")}  # of the compiled modules
        assert new - sys.stdlib_module_names <= {"rffpk"}, new
        assert "matplotlib" not in sys.modules and "rffpk.plot" not in sys.modules
    """.replace("\n        ", "\n")
    )


@pytest.mark.exhaustive
def test_public_modules_are_attributes(python):
    names = {name for name in map(module_of, PATHS) if not name.startswith("_") and "." not in name}
    for name in names - {"anneal", "choose", "estimators", "fusion", "rows", "spaces", "system"}:
        assert getattr(rffpk, name) is importlib.import_module(f"rffpk.{name}")
    assert python("import rffpk; print(rffpk.sources.from_array.__name__)") == "from_array\n"
    with pytest.raises(AttributeError, match="module 'rffpk' has no attribute 'PowerMeans'"):
        _ = rffpk.PowerMeans
    assert not hasattr(rffpk, "__wrapped__")


def test_public_names_are_loaded_when_asked_for_and_said_alike_for_type_checkers():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    [block] = [node for node in tree.body if isinstance(node, ast.If) and not node.orelse][:1]
    typed = {
        alias.name: node.module.removeprefix("rffpk.")
        for node in block.body
        for alias in node.names
        if node.module != "rffpk"
    }
    assert typed == rffpk._HOME_OF
    assert set(dir(rffpk)) >= {*rffpk.__all__}


def test_an_import_of_one_class_loads_what_its_fits_need_and_no_more(python):
    loaded = python("from rffpk import PowerKMeans; import sys; print(*sys.modules)").split()
    beside = ("fusion", "plot", "tables", "sources", "cells", "metrics", "model_files",
              "estimators.diffusion", "estimators.exact", "estimators.multiview",
              "rows.dask_workers", "anneal.journal", "choose.number", "choose.noise",
              "rows.table_files", "system.files", "system.tensor_files", "spaces.kernels",
              "spaces.spectrum", "spaces.whitening")  # fmt: skip
    assert not {f"rffpk.{name}" for name in beside} & {*loaded}


def test_the_package_is_typed_and_its_version_is_the_installed_one():
    assert (PACKAGE / "py.typed").exists()
    assert rffpk.__version__ == version("rffpk") == rffpk.show_config()["version"]


@pytest.mark.parametrize("path", PATHS, ids=module_of)
def test_examples_in_docstrings_run(path):
    module = module_of(path)
    name = "rffpk" if module == "__init__" else f"rffpk.{module}"
    without = ("LMKKM",) if find_spec("clarabel") is None else ()
    runner = doctest.DocTestRunner()
    for examples in doctest.DocTestFinder().find(importlib.import_module(name)):
        if not examples.name.endswith(without):
            runner.run(examples)
    assert not runner.summarize().failed
