"""Mutation testing: which small changes of a module do tests not notice?

    python tests/mutants.py rows/sums.py tests/test_pass.py --sample 40

Each mutant is a copy of the package in which one operator, number, condition or call of min or max
is another one. It is killed if a test fails or the tests take far too long. The survivors are
printed; docs/maintainers/testing.md says why some survive.
"""

import argparse
import ast
import compileall
import copy
import gc
import importlib.util
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder
from pathlib import Path
from py_compile import PycInvalidationMode

OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.LShift: ast.RShift, ast.And: ast.Or,
    ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Lt: ast.LtE,
    ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
NAMES = {"min": "max", "minimum": "maximum", "argmin": "argmax", "any": "all"}
NAMES |= {new: old for old, new in NAMES.items()}


def mutations(node):
    """Yield pairs of a description and a function that changes the node in place."""
    if isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)) and type(node.op) in OPERATORS:
        new = OPERATORS[type(node.op)]
        yield f"{type(node.op).__name__} -> {new.__name__}", lambda n: setattr(n, "op", new())
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        new = OPERATORS[type(node.ops[0])]
        yield (
            f"{type(node.ops[0]).__name__} -> {new.__name__}",
            lambda n: n.ops.__setitem__(0, new()),
        )
    elif isinstance(node, ast.UnaryOp):  # twice is not at all
        yield f"no {type(node.op).__name__}", lambda n: setattr(n, "operand", copy.copy(n))
    elif isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
        old = node.value
        new = not old if isinstance(old, bool) else old + 1 if isinstance(old, int) else 2 * old + 1
        yield f"{old} -> {new}", lambda n: setattr(n, "value", new)
    elif isinstance(node, ast.Name) and node.id in NAMES:
        yield f"{node.id} -> {NAMES[node.id]}", lambda n: setattr(n, "id", NAMES[n.id])
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield f"{node.attr} -> {NAMES[node.attr]}", lambda n: setattr(n, "attr", NAMES[n.attr])
    elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
        for value in (True, False):
            if not (isinstance(node, ast.While) and value):
                yield (
                    f"{type(node).__name__} {value}",
                    lambda n, value=value: setattr(n, "test", ast.Constant(value)),
                )


def nodes(tree):
    """Yield the nodes that are mutated, in order: no annotations, and no messages of errors."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns") or isinstance(tree, (ast.Raise, ast.ImportFrom)):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST):
                yield node
                yield from nodes(node)


def mutants(source):
    """Yield triples of a line, a description and the source of a mutant."""
    tree = ast.parse(source)
    for place, node in enumerate(nodes(tree)):
        for description, change in mutations(node):
            mutant = copy.deepcopy(tree)
            change([*nodes(mutant)][place])
            yield node.lineno, description, ast.unparse(mutant)


def copied_package(folder):
    """Copy the package with its compiled modules, wherever they are installed."""
    here = Path(importlib.util.find_spec("rffpk").origin).parent
    package = Path(folder, "rffpk")
    shutil.copytree(here, package, ignore=shutil.ignore_patterns("__pycache__"))
    code = """import sys, rffpk
for name, module in sys.modules.items():
    if name.startswith("rffpk._core._"):
        print(module.__file__)"""
    for path in subprocess.check_output([sys.executable, "-c", code], text=True).split():
        shutil.copy(path, package / "_core")
    # a module is compiled again only where it has another text
    compileall.compile_dir(package, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    # new processes find no editable package either
    Path(folder, "sitecustomize.py").write_text(
        "import sys\nsys.meta_path[:] = [x for x in sys.meta_path if isinstance(x, type)]\n"
    )
    return package


def import_all_but_the_package():
    """Import what tests need, for children of this process, and forget an editable package."""
    sys.meta_path[:] = [BuiltinImporter, FrozenImporter, PathFinder]
    for name in ("pytest", "hypothesis.strategies", "pandas", "sklearn.utils.estimator_checks"):
        importlib.import_module(name)
    gc.freeze()  # pytest collects garbage at its end


def survives(folder, tests, limit, marks=""):
    """Run the tests with the package in `folder` in a child; return whether they pass.

    The child has imported all but the package. New processes of tests have the package, too.
    """
    child = os.fork()
    if not child:
        signal.alarm(limit)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1), os.dup2(silent, 2)
        sys.path.insert(0, folder)
        sys.dont_write_bytecode = True
        os.environ["PYTHONPATH"], os.environ["PYTHONDONTWRITEBYTECODE"] = folder, "1"
        import pytest

        options = ["-x", "-q", "-m", marks, "--assert=plain", "-p", "no:cacheprovider"]
        os._exit(pytest.main([*options, *tests]))
    return os.waitpid(child, 0)[1] == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", help="a path in the package")
    parser.add_argument("tests", nargs="+", help="arguments of pytest")
    parser.add_argument("--sample", type=int, default=40, help="most mutants of the module")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    os.environ |= {"CI": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    with tempfile.TemporaryDirectory() as folder:
        path = copied_package(folder) / options.module
        import_all_but_the_package()
        source, started = path.read_text(), time.monotonic()
        if not survives(folder, options.tests, 600):
            sys.exit("The tests fail without a mutation.")
        limit, candidates = 30 + int(5 * (time.monotonic() - started)), [*mutants(source)]
        size = min(options.sample, len(candidates))
        for line, description, mutant in random.Random(options.seed).sample(candidates, size):
            path.write_text(mutant)
            if survives(folder, options.tests, limit):
                text = source.splitlines()[line - 1].strip()
                print(f"{options.module}:{line}: {description}: {text}", flush=True)
        print(f"tried {size} of {len(candidates)} mutants")


if __name__ == "__main__":
    main()
