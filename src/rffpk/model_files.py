"""Model files: every kind of value that a model may hold, and no other, as JSON and arrays.

Numbers, strings, lists and None stand for themselves. Anything else is an object with one name, its
kind. The arrays are kept apart, by their path in the model.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import signature
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints, overload

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import rffpk
from rffpk.anneal.fitted import Centroids, KernelCentroids, RunningSums
from rffpk.anneal.records import PowerMean, WeightedViews
from rffpk.choose.noise import Cells, Outliers
from rffpk.choose.selection import NClustersSelection
from rffpk.estimators.base import Clusterer, VersionError, check_version
from rffpk.fusion.operators import Exact, Finished, FourierFeatures, Nystroem
from rffpk.rows.arrays import Array, Fourier, Identity, Structure
from rffpk.rows.door import Shape
from rffpk.rows.store import ScaledColumns
from rffpk.rows.table import Csr, UnitRows, from_canonical
from rffpk.spaces.diffusion import DiffusionSpace
from rffpk.spaces.fourier import FourierSpace
from rffpk.spaces.graph import Nodes
from rffpk.spaces.kernels import FittedKernel
from rffpk.spaces.near_cells import NearCells
from rffpk.spaces.neighbors import Neighbourhoods
from rffpk.spaces.spectrum import Spectrum
from rffpk.spaces.whitening import Whitening
from rffpk.system.config import __version__
from rffpk.system.files import path_of
from rffpk.system.tensor_files import (
    ModelFileError,
    is_storable,
    parse_json,
    read_tensors,
    write_tensors,
)
from rffpk.tables import TablePreprocessor

M = TypeVar("M")

_FORMAT = "1"  # the version of the layout
_PARTS = ("parameters", "attributes")  # of an estimator in a file
_SCALES = ("mean_", "scale_", "var_")  # arrays of a StandardScaler before the estimator
_NAMES = "feature_names_in_"  # the names of the columns, if any

_DTYPES = ("float32", "float64")

# What a file may contain, by name: estimators, and classes whose instances are their attributes.
_CLASSES = (getattr(rffpk, name) for name in rffpk.__all__ if name[0].isupper())
ESTIMATORS: dict[str, type[Any]] = {
    cls.__name__: cls for cls in (TablePreprocessor, *_CLASSES) if issubclass(cls, BaseEstimator)
}
RECORDS: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        Fourier, Identity, Structure, PowerMean, WeightedViews, RunningSums, Cells, Outliers,
        NClustersSelection, Spectrum, Neighbourhoods, NearCells, Nodes, Whitening, UnitRows,
        ScaledColumns, Shape, Csr, FittedKernel, Exact, FourierFeatures, Nystroem, Finished,
        FourierSpace, DiffusionSpace, Centroids, KernelCentroids,
    )
}  # fmt: skip

_MATRICES = (sparse.csr_array, sparse.csr_matrix)  # written as records of rows

# Functions that check whether the arrays of an instance fit together.
_VALID: dict[type[Any], Callable[[Any], bool]] = {Csr: Csr.is_valid}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model, or a pipeline that ends in one, to a file that `load` reads.

    Parameters
    ----------
    model : object
        A fitted estimator of this package. Or a pipeline of scikit-learn with one such estimator
        after a StandardScaler that centers and scales, or a `rffpk.tables.TablePreprocessor`.
    path : str or path
        The file, as for the method `save`. Reading it runs no code.

    Raises
    ------
    TypeError
        If the pipeline has other steps, or the model something that a file cannot hold.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import os, tempfile
    >>> import rffpk
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), rffpk.PowerKMeans(3, random_state=0)).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rffpk.save(model, os.path.join(folder, "model"))
    ...     again = rffpk.load(os.path.join(folder, "model"))
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    before, model = _steps(model)
    name, encoder = type(model).__name__, Encoder()
    if ESTIMATORS.get(name) is not type(model):
        raise TypeError(f"{name} is not a class of rffpk, which a model file needs: pickle model.")
    parts = encoder.estimator(model)
    if isinstance(before, TablePreprocessor):
        parts["table"] = encoder.estimator(before, "table.")
    elif before is not None:
        values = {name: vars(before)[name] for name in (*_SCALES, _NAMES) if name in vars(before)}
        parts["scaler"] = encoder.attributes(values, "scaler.")
    metadata = {"format": "rffpk " + _FORMAT, "version": __version__, "class": name}
    for part, content in parts.items():
        metadata[part] = json.dumps(content, separators=(",", ":"), allow_nan=False)
    write_tensors(path_of(path, "path"), metadata, encoder.arrays)


@overload
def load(path: str | os.PathLike[str]) -> Clusterer: ...


@overload
def load(path: str | os.PathLike[str], kind: type[M]) -> M: ...


def load(path: str | os.PathLike[str], kind: type[Any] = object) -> Any:
    """Read a model that its method `save` has written.

    Parameters
    ----------
    path : str or path
        The file.
    kind : type, optional
        The class of the model, such as `PowerKMeans` or scikit-learn's Pipeline. A type checker
        then knows the attributes of this class, and by default the attributes of all clusterers.

    Returns
    -------
    model : object
        An estimator of this package, with the parameters and fitted attributes that were saved:
        the same bits. If a pipeline was saved, as ``rffpk cluster --model`` may do, the pipeline of
        scikit-learn's StandardScaler or a `TablePreprocessor` and the estimator.

    Raises
    ------
    ValueError
        If the file is no model file, or is damaged (`rffpk.model_files.ModelFileError`), or was
        written by a version whose files this one does not read (`rffpk.model_files.VersionError`).
    TypeError
        If the model is not of the class `kind`.
    OSError
        If the file cannot be read.

    Notes
    -----
    The file is data: nothing in it is executed or imported, and only classes of this package are
    made. A checksum finds damage, it proves no origin: who can write the file chooses the model.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> import rffpk
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = rffpk.PowerKMeans(10, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/digits.safetensors")
    ...     again = rffpk.load(f"{folder}/digits.safetensors", rffpk.PowerKMeans)
    >>> bool((again.predict(X) == model.labels_).all())
    True
    """
    name = path_of(path, "path")
    try:
        model = _read(name)
    except (ModelFileError, VersionError) as error:
        raise type(error)(f"{name}: {error}") from error
    if not isinstance(model, kind):
        held = type(model).__name__
        raise TypeError(f"kind={kind.__name__}: {name} holds a {held}. Pass kind={held}.")
    return model


def _steps(model: Any) -> tuple[Any, Any]:
    """Return the step before an estimator, or None, and the estimator.

    The step is a StandardScaler or a TablePreprocessor of a pipeline. Other pipelines are refused.
    """
    if not isinstance(model, Pipeline):
        return None, model
    *before, last = (step for _, step in model.steps)
    if len(before) == 1:
        (first,) = before
        scales = type(first) is StandardScaler and first.with_mean and first.with_std
        if scales or type(first) is TablePreprocessor:
            return first, last
    raise TypeError(
        f"model has the steps {[type(step).__name__ for step in before]} before "
        f"{type(last).__name__}, must have a StandardScaler that centers and scales, or a "
        "TablePreprocessor: pickle model."
    )


def _read(path: str) -> Any:
    """Read the estimator or the pipeline in a file that `save` has written."""
    metadata, arrays = read_tensors(path)
    layout = metadata.get("format", "")
    if not layout.startswith("rffpk "):
        raise ModelFileError("is not a model file.")
    check_version(metadata.get("version", "0.0"), "model was saved")
    if layout != "rffpk " + _FORMAT:
        raise VersionError(f"has the layout {layout!r}, rffpk {__version__} reads {_FORMAT}.")
    decoder = Decoder(arrays)
    content = {part: parse_json(metadata.get(part, ""), part) for part in _PARTS}
    try:
        model = decoder.estimator(metadata.get("class", ""), content)
        if "scaler" in metadata:
            scales = decoder.attributes(parse_json(metadata["scaler"], "scaler"), "scaler.")
            model = _scaled(model, scales)
        if "table" in metadata:
            table = parse_json(metadata["table"], "table")
            table = decoder.estimator("TablePreprocessor", table, "table.")
            model = make_pipeline(table, model)
    except RecursionError as error:
        raise ModelFileError("holds values that are nested too deeply.") from error
    if unused := arrays.keys() - decoder.made.keys():
        raise ModelFileError(f"holds arrays that nothing refers to: {sorted(unused)[:3]}.")
    return model


def _scaled(model: Any, scales: dict[str, Any]) -> Pipeline:
    """Return the pipeline of a StandardScaler with the attributes `scales`, and a model.

    Raise a ModelFileError if `scales` lack an attribute, or do not fit the columns of the model."""
    d, scaler = getattr(model, "n_features_in_", None), StandardScaler()
    kinds = {name: np.dtype(object if name == _NAMES else np.float64) for name in scales}
    same = scales.keys() - {_NAMES} == {*_SCALES} and isinstance(d, int)
    if not same or any(
        not isinstance(values, np.ndarray) or (values.dtype, values.shape) != (kinds[name], (d,))
        for name, values in scales.items()
    ):
        raise ModelFileError("holds a scaler of other columns than its model has.")
    vars(scaler).update(scales, n_features_in_=d)
    return make_pipeline(scaler, model)


# ---- to JSON ------------------------------------------------------------------------------------


@dataclass
class Encoder:
    """Turns values into JSON and arrays; a TypeError names what cannot be stored."""

    arrays: dict[str, Array] = field(default_factory=dict)
    # the path at which each object occurs first, by the identity of the object
    _paths: dict[int, str] = field(default_factory=dict)

    def estimator(self, model: Any, path: str = "") -> dict[str, dict[str, Any]]:
        """Return the parameters and the other attributes of an estimator, public ones first.

        An object that occurs twice has the path where it comes first."""
        parameters = model.get_params(deep=False)
        others = {name: value for name, value in vars(model).items() if name not in parameters}
        others = dict(sorted(others.items(), key=lambda item: item[0].startswith("_")))
        return {
            "parameters": self.attributes(parameters, path),
            "attributes": self.attributes(others, path),
        }

    def attributes(self, values: dict[str, Any], path: str) -> dict[str, Any]:
        return {name: self._value(value, path + name) for name, value in values.items()}

    def _value(self, value: Any, path: str) -> Any:
        """Return a value as JSON; store arrays in `arrays` under `path`."""
        if value is None or type(value) in (bool, int):
            return value
        if isinstance(value, str):
            return str(value)
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if type(value) is list:
            return self._entries(value, path)
        if type(value) is tuple:
            return {"tuple": self._entries(value, path)}
        if type(value) is dict and all(isinstance(key, str) for key in value):
            return {"dict": {k: self._value(v, f"{path}[{k!r}]") for k, v in value.items()}}
        if type(value) is slice:
            return {"slice": self._entries([value.start, value.stop, value.step], path)}
        if isinstance(value, np.dtype) and value.name in _DTYPES:
            return {"dtype": value.name}
        if id(value) not in self._paths:
            found = self._object(value, path)
            self._paths[id(value)] = path
            return found
        return {"same": self._paths[id(value)]}  # an object at several places is stored once

    def _entries(self, values: Any, path: str) -> list[Any]:
        return [self._value(value, f"{path}[{i}]") for i, value in enumerate(values)]

    def _object(self, value: Any, path: str) -> dict[str, Any]:
        """Return an object as JSON; an instance of a class in RECORDS is its attributes."""
        if isinstance(value, (np.ndarray, np.generic)):
            return self._array(value, path)
        if ESTIMATORS.get(type(value).__name__) is type(value):
            return {type(value).__name__: self.estimator(value, f"{path}.")}
        if type(value) in _MATRICES:
            return {"csr": self._object(from_canonical(value), path)}
        for kind, cls in RECORDS.items():
            if type(value) is cls:
                fields = value._asdict() if issubclass(cls, tuple) else vars(value)
                return {kind: self.attributes(fields, f"{path}.")}
        return self._refuse(value, path)

    def _array(self, value: Any, path: str) -> dict[str, Any]:
        """Return a vector of strings as JSON, or store numbers in `arrays` under `path`.

        The JSON of numbers says whether they are in C order, in Fortran order, or a scalar."""
        if isinstance(value, np.ndarray) and value.dtype.kind in "OU" and value.ndim == 1:
            if all(isinstance(text, str) for text in value):
                return {"strings": [value.dtype.kind, *map(str, value)]}
        elif is_storable(value.dtype) and not isinstance(value, np.ma.MaskedArray):
            # an array in neither order is stored in C order
            rows = value.flags.c_contiguous or not value.flags.f_contiguous
            self.arrays[path] = np.asarray(value if rows else value.T)
            if isinstance(value, np.generic):
                return {"scalar": ""}
            return {"array": "C" if rows else "F"}
        return self._refuse(value, path)

    def _refuse(self, value: Any, path: str) -> Any:
        dtype = f" of {value.dtype}" if isinstance(value, (np.ndarray, np.generic)) else ""
        raise TypeError(
            f"{path} is a {type(value).__name__}{dtype}, which a model file cannot hold: set it to "
            "something else, or pickle the model."
        )


# ---- from JSON ----------------------------------------------------------------------------------


@dataclass
class Decoder:
    """Turns JSON and arrays into values; a ModelFileError is for what no Encoder writes."""

    arrays: dict[str, Array]
    made: dict[str, Any] = field(default_factory=dict)  # arrays, estimators and records, by path

    def estimator(self, name: str, content: Any, path: str = "") -> Any:
        """Make an estimator of the package, by the name of its class."""
        _require(name in ESTIMATORS, f"an estimator {name!r}")
        _require(isinstance(content, dict) and content.keys() == {*_PARTS}, f"no {name}")
        cls = ESTIMATORS[name]
        parameters, attributes = (self.attributes(content[part], path) for part in _PARTS)
        _require(parameters.keys() == cls().get_params(deep=False).keys(), f"other {name}")
        for attribute in attributes:  # none may replace a parameter or a method
            taken = attribute in parameters or callable(getattr(cls, attribute, None))
            _require(attribute.isidentifier() and not taken, f"{name}.{attribute}")
        model = cls(**parameters)
        vars(model).update(attributes)
        return model

    def attributes(self, values: Any, path: str) -> dict[str, Any]:
        _require(isinstance(values, dict), "attributes without names")
        return {name: self._value(value, path + name) for name, value in values.items()}

    def _value(self, value: Any, path: str) -> Any:
        """Return the value that JSON stands for; look up arrays in `arrays` by `path`."""
        if isinstance(value, list):
            return self._entries(value, path)
        if not isinstance(value, dict):
            return value
        _require(len(value) == 1, f"{path} of {len(value)} kinds")
        match value:
            case {"float": "inf" | "-inf" | "nan" as text}:
                return float(text)
            case {"tuple": list(entries)}:
                return tuple(self._entries(entries, path))
            case {"dict": dict(items)}:
                return {key: self._value(each, f"{path}[{key!r}]") for key, each in items.items()}
            case {"slice": [start, stop, step]}:
                return slice(*self._entries([start, stop, step], path))
            case {"dtype": "float32" | "float64" as name}:
                return np.dtype(name)
            case {"same": str(other)} if other in self.made:
                return self.made[other]
        [(kind, content)] = value.items()
        self.made[path] = self._object(kind, content, path)
        return self.made[path]

    def _entries(self, values: list[Any], path: str) -> list[Any]:
        return [self._value(value, f"{path}[{i}]") for i, value in enumerate(values)]

    def _object(self, kind: str, content: Any, path: str) -> Any:
        """Make an object that other places of the model may refer to."""
        array = self.arrays.get(path)
        match kind, content:
            case "strings", ["O" | "U" as letter, *texts] if all(type(t) is str for t in texts):
                return np.array(texts, dtype=object if letter == "O" else str)
            case "array", "C" if array is not None:
                return array
            case "array", "F" if array is not None:
                return array.T
            case "scalar", "" if array is not None and array.ndim == 0:
                return array[()]
            case "csr", {"Csr": rows} if len(content) == 1:
                return self._record("Csr", rows, path).matrix
        if kind in ESTIMATORS:
            return self.estimator(kind, content, f"{path}.")
        return self._record(kind, content, path)

    def _record(self, kind: str, content: Any, path: str) -> Any:
        """Make an instance of a class with the attributes that its annotations name.

        A class without annotations has any attributes."""
        _require(kind in RECORDS, f"{path}, a {kind!r}")
        cls, values = RECORDS[kind], self.attributes(content, f"{path}.")
        if hints := get_type_hints(cls):
            # all arguments of the constructor are there, and no attribute without annotation
            whole = signature(cls).parameters.keys() <= values.keys() <= hints.keys()
            _require(whole, f"{path}, another {kind}")
        for name in hints.keys() & values.keys():
            _require(_is_of(values[name], hints[name]), f"{path}.{name}")
        if issubclass(cls, tuple):
            return cls(**values)
        made = object.__new__(cls)  # no constructor runs: its results were stored
        vars(made).update(values)
        _require(cls not in _VALID or _VALID[cls](made), path)
        return made


def _is_of(value: Any, hint: Any) -> bool:
    """Return whether a value is of an annotated type; entries of containers are not checked.

    An integer may stand for a float."""
    kind = get_origin(hint) or hint
    if hasattr(kind, "__value__"):  # an alias by the statement `type`, as NDArray is in some NumPy
        return _is_of(value, kind.__value__)
    if kind in (Union, UnionType):
        return any(_is_of(value, each) for each in get_args(hint))
    if kind is Any:
        return True
    return isinstance(value, (float, int) if kind is float else kind)


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ModelFileError(f"holds {what}, which this version does not read.")
