"""The public surface is the recorded one: `python tests/test_public.py` writes the record.

Names with their signatures, the attributes of fitted models with their dtypes, and exceptions.
"""

import importlib
import inspect
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

import rffpk

RECORD = Path(__file__).parent / "golden" / "public.txt"
# Names of public modules, beside the names of the package.
MODULES = {
    "cells": ["cluster"],
    "compat.skfuzzy": ["Prediction", "cmeans", "cmeans_predict"],
    "metrics": ["RepeatedScores"],
    "plot": ["clusters", "convergence", "memberships", "profile", "tree"],
    "profiles": ["ClusterProfiles"],
    "selection": ["NClustersSelection"],
    "sources": ["from_array", "from_arrow", "from_dask", "from_npy", "from_parquet", "spill"],
    "tables": ["TablePreprocessor"],
}
X = np.random.RandomState(0).randn(30, 4) + 5 * np.eye(4)[np.arange(30) % 3]
CLASSES = [getattr(rffpk, name) for name in rffpk.__all__]
CLASSES = [cls for cls in CLASSES if inspect.isclass(cls) and hasattr(cls, "fit")]


def signature_of(function):
    """Return a signature without annotations, whose names are private."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # of an exception
        return "(...)"
    bare = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))


def names():
    """Yield each public name with its signature, and the methods of classes."""
    public = [("rffpk", name) for name in rffpk.__all__ if name != "__version__"]
    public += [(f"rffpk.{path}", name) for path in MODULES for name in MODULES[path]]
    for path, name in public:
        value = getattr(importlib.import_module(path), name)
        yield f"{path}.{name}{signature_of(value)}"
        for method, function in inspect.getmembers(value, inspect.isfunction):
            is_own = function.__module__.startswith("rffpk") and method[0] != "_"
            if is_own and method != "set_callbacks":  # of some versions of scikit-learn
                yield f"{path}.{name}.{method}{signature_of(function)}"
    for path in "rffpk.metrics", "rffpk.model_files":  # whose names stand in `rffpk`, too
        module = importlib.import_module(path)
        yield f"{path}: {' '.join(name for name in rffpk.__all__ if hasattr(module, name))}"
    yield f"rffpk.capi: {' '.join(sorted(importlib.import_module('rffpk.capi').__pyx_capi__))}"


def attributes():
    """Yield the kinds of all attributes of fitted models, for rows of each precision."""
    for cls in CLASSES:
        parameters = {"random_state": 0}
        if "n_clusters" in inspect.signature(cls).parameters:
            parameters["n_clusters"] = 3
        kinds = [kinds_of(cls(**parameters), X.astype(dtype)) for dtype in ("float64", "float32")]
        for name in sorted({*kinds[0], *kinds[1]}):
            both = [kind.get(name, "none") for kind in kinds]
            yield f"{cls.__name__}.{name}: {' or '.join(dict.fromkeys(both))}"


def kinds_of(model, rows):
    """Return the kinds of the attributes that a fit sets: a type, or a dtype and dimensions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows)
    properties = inspect.getmembers(type(model), lambda value: isinstance(value, property))
    fitted = {*vars(model), *(name for name, _ in properties if hasattr(model, name))}
    values = {name: getattr(model, name) for name in fitted if name[0] != "_" and name[-1] == "_"}
    return {
        name: f"{value.dtype} of {value.ndim}d" if is_array(value) else type(value).__name__
        for name, value in values.items()
    }


def is_array(value):
    return isinstance(value, np.ndarray)


class OldPickle(rffpk.PowerKMeans):
    def __getstate__(self):
        return {**super().__getstate__(), "_rffpk_version": "0.1.0"}


FAULTS = {
    "predict before fit": lambda: rffpk.PowerKMeans(2).predict(X),
    "a parameter out of range": lambda: rffpk.PowerKMeans(0).fit(X),
    "an unknown option": lambda: rffpk.PowerKMeans(2, metric="none").fit(X),
    "more clusters than rows": lambda: rffpk.PowerKMeans(31).fit(X),
    "an entry that is not finite": lambda: rffpk.PowerKMeans(2).fit(X * np.inf),
    "rows of text": lambda: rffpk.PowerKMeans(2).fit([["a"], ["b"], ["c"]]),
    "complex rows": lambda: rffpk.PowerKMeans(2).fit(X * 1j),
    "other columns": lambda: rffpk.PowerKMeans(2, random_state=0).fit(X).predict(X[:, :2]),
    "a negative weight": lambda: rffpk.PowerKMeans(2).fit(X, sample_weight=np.full(30, -1.0)),
    "an unknown parameter": lambda: rffpk.PowerKMeans(2).set_params(none=1),
    "a pickle of another version": lambda: pickle.loads(pickle.dumps(OldPickle(2).fit(X))),
    "a file that is no model": lambda: rffpk.load(__file__),
    "no file": lambda: rffpk.load(Path(__file__).parent / "none.safetensors"),
    "an unknown name": lambda: rffpk.none,
}  # fmt: skip


def exceptions():
    """Yield the classes of the exceptions that faults raise."""
    for fault, call in FAULTS.items():
        try:
            call()
        except Exception as error:
            classes = [cls.__name__ for cls in type(error).__mro__]
            yield f"{fault}: {' < '.join(classes[: classes.index('Exception')])}"


SECTIONS = {function.__name__: function for function in (names, attributes, exceptions)}


@pytest.mark.parametrize("section", SECTIONS)
def test_the_public_surface_is_the_recorded_one(section):
    """A change here is a change for users."""
    recorded = RECORD.read_text().partition(f"# {section}\n")[2].partition("\n\n")[0]
    assert [*SECTIONS[section]()] == recorded.splitlines()


if __name__ == "__main__":
    texts = ["\n".join([f"# {name}", *SECTIONS[name]()]) + "\n" for name in SECTIONS]
    RECORD.write_text("\n".join(texts))
