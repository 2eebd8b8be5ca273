"""Models as JSON and arrays: every kind of value that a model may hold, and no other.

Numbers, strings, lists and None stand for themselves. Anything else is an object with one name, its
kind. The arrays are kept apart, by their path in the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from rffpk._utils.arrays import Array
from rffpk._utils.sparse_rows import SparseRows, from_canonical
from rffpk._utils.tensor_files import ModelFileError, is_storable

_DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class Record:
    """A class whose instances are their attributes."""

    cls: type[Any]
    fields: dict[str, tuple[type[Any], ...]]  # of each attribute the types that it may have
    optional: tuple[str, ...] = ()  # attributes that an instance may lack


# What a file may contain, by name; filled by `rffpk` itself and by
# `rffpk.model_files`, which lie above all classes.
ESTIMATORS: dict[str, type[Any]] = {}
RECORDS: dict[str, Record] = {}


def class_name(model: Any) -> str:
    """The name of the class of an estimator of the package."""
    cls = type(model)
    if ESTIMATORS.get(cls.__name__) is not cls:
        raise TypeError(
            f"{cls.__name__} is no class of rffpk, and model files have no others: pickle it."
        )
    return cls.__name__


# ---- to JSON ------------------------------------------------------------------------------------


class Encoder:
    """Turns values into JSON, and collects their arrays.

    Raises a TypeError that names what cannot be stored.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._paths: dict[int, str] = {}  # of what occurs twice, by the identity of the object

    def estimator(self, model: Any, path: str = "") -> dict[str, dict[str, Any]]:
        """The parameters and the other attributes of an estimator, public ones first: what occurs
        twice has the path where it comes first."""
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
            parts = [value.start, value.stop, value.step]
            return {"slice": self._entries(parts, path)}
        if isinstance(value, np.dtype) and value.name in _DTYPES:
            return {"dtype": value.name}
        return self._object(value, path)

    def _entries(self, values: Any, path: str) -> list[Any]:
        return [self._value(value, f"{path}[{i}]") for i, value in enumerate(values)]

    def _object(self, value: Any, path: str) -> dict[str, Any]:
        """What may occur at several places of a model is stored once."""
        if id(value) in self._paths:
            return {"same": self._paths[id(value)]}
        if isinstance(value, (np.ndarray, np.generic)):
            found = self._array(value, path)
        elif ESTIMATORS.get(type(value).__name__) is type(value):
            found = {type(value).__name__: self.estimator(value, f"{path}.")}
        elif sparse.issparse(value) and value.format == "csr":
            found = {"csr": self._record(from_canonical(value), path)}
        else:
            found = self._record(value, path)
        self._paths[id(value)] = path
        return found

    def _array(self, value: Any, path: str) -> dict[str, Any]:
        if isinstance(value, np.ndarray) and value.dtype.kind in "OU" and value.ndim == 1:
            if all(isinstance(text, str) for text in value):
                return {"strings": [value.dtype.kind, *map(str, value)]}
        elif is_storable(value.dtype) and not isinstance(value, np.ma.MaskedArray):
            if isinstance(value, np.generic):
                self.arrays[path] = np.asarray(value)
                return {"scalar": ""}
            rows = value.flags.c_contiguous or not value.flags.f_contiguous
            self.arrays[path] = np.asarray(value if rows else value.T)
            return {"array": "C" if rows else "F"}
        return self._refuse(value, path)

    def _record(self, value: Any, path: str) -> dict[str, Any]:
        for kind, record in RECORDS.items():
            if type(value) is record.cls:
                fields = value._asdict() if issubclass(record.cls, tuple) else vars(value)
                return {kind: self.attributes(fields, f"{path}.")}
        return self._refuse(value, path)

    def _refuse(self, value: Any, path: str) -> Any:
        dtype = f" of {value.dtype}" if isinstance(value, (np.ndarray, np.generic)) else ""
        raise TypeError(
            f"{path} is a {type(value).__name__}{dtype}, which a model file cannot hold: set it to "
            "something else, or pickle the model."
        )


# ---- from JSON ----------------------------------------------------------------------------------


class Decoder:
    """Turns JSON and arrays into values.

    Raises a ModelFileError for whatever an Encoder does not write.
    """

    def __init__(self, arrays: dict[str, Array]) -> None:
        self._arrays = arrays
        self._made: dict[str, Any] = {}  # arrays, estimators and records, by path
        self._kinds: dict[str, Callable[[Any, str], Any]] = {
            "float": self._float, "tuple": self._tuple, "dict": self._dict, "slice": self._slice,
            "dtype": self._dtype, "same": self._same, "strings": self._strings,
            "array": self._array, "scalar": self._scalar, "csr": self._csr,
        }  # fmt: skip

    def estimator(self, name: str, content: Any, path: str = "") -> Any:
        """An estimator of the package, by the name of its class."""
        _require(name in ESTIMATORS, f"an estimator {name!r}")
        _require(_names(content) == {"parameters", "attributes"}, f"no {name}")
        cls = ESTIMATORS[name]
        parameters = self.attributes(content["parameters"], path)
        attributes = self.attributes(content["attributes"], path)
        _require(parameters.keys() == cls().get_params(deep=False).keys(), f"other {name}")
        for attribute in attributes:
            taken = attribute in parameters or callable(getattr(cls, attribute, None))
            _require(attribute.isidentifier() and not taken, f"{name}.{attribute}")
        model = cls(**parameters)
        vars(model).update(attributes)
        return model

    def unused(self) -> set[str]:
        """The names of arrays that have not been read."""
        return self._arrays.keys() - self._made.keys()

    def attributes(self, values: Any, path: str) -> dict[str, Any]:
        _require(isinstance(values, dict), "attributes without names")
        return {name: self._value(value, path + name) for name, value in values.items()}

    def _value(self, value: Any, path: str) -> Any:
        if isinstance(value, list):
            return self._entries(value, path)
        if not isinstance(value, dict):
            return value
        _require(len(value) == 1, f"{path} of {len(value)} kinds")
        [(kind, content)] = value.items()
        if kind in self._kinds:
            return self._kinds[kind](content, path)
        if kind in ESTIMATORS:
            found = self.estimator(kind, content, f"{path}.")
        else:
            found = self._record(kind, content, path)
        self._made[path] = found
        return found

    def _entries(self, values: Any, path: str) -> list[Any]:
        _require(isinstance(values, list), f"{path} without entries")
        return [self._value(value, f"{path}[{i}]") for i, value in enumerate(values)]

    def _float(self, text: Any, path: str) -> float:
        _require(text in ("inf", "-inf", "nan"), path)
        return float(text)

    def _tuple(self, values: Any, path: str) -> tuple[Any, ...]:
        return tuple(self._entries(values, path))

    def _dict(self, values: Any, path: str) -> dict[str, Any]:
        _require(isinstance(values, dict), path)
        return {key: self._value(value, f"{path}[{key!r}]") for key, value in values.items()}

    def _slice(self, values: Any, path: str) -> slice:
        parts = self._entries(values, path)
        _require(len(parts) == 3, path)
        return slice(*parts)

    def _dtype(self, name: Any, path: str) -> np.dtype[Any]:
        _require(name in _DTYPES, path)
        return np.dtype(name)

    def _same(self, other: Any, path: str) -> Any:
        _require(isinstance(other, str) and other in self._made, path)
        return self._made[other]

    def _strings(self, values: Any, path: str) -> Array:
        texts = isinstance(values, list) and all(isinstance(text, str) for text in values)
        _require(texts and len(values) > 0 and values[0] in ("O", "U"), path)
        self._made[path] = np.array(values[1:], dtype=object if values[0] == "O" else str)
        return self._made[path]

    def _array(self, order: Any, path: str) -> Array:
        _require(order in ("C", "F") and path in self._arrays, path)
        array = self._arrays[path]
        self._made[path] = array if order == "C" else array.T
        return self._made[path]

    def _scalar(self, content: Any, path: str) -> Any:
        _require(path in self._arrays and self._arrays[path].ndim == 0, path)
        self._made[path] = self._arrays[path][()]
        return self._made[path]

    def _csr(self, content: Any, path: str) -> Any:
        _require(isinstance(content, dict) and content.keys() == {"SparseRows"}, path)
        self._made[path] = self._value(content, path).matrix
        return self._made[path]

    def _record(self, kind: str, content: Any, path: str) -> Any:
        _require(kind in RECORDS, f"{path}, a {kind!r}")
        record = RECORDS[kind]
        values = self.attributes(content, f"{path}.")
        missing = record.fields.keys() - values.keys() - {*record.optional}
        _require(not missing and values.keys() <= record.fields.keys(), f"{path}, another {kind}")
        for name, value in values.items():
            _require(isinstance(value, record.fields[name]), f"{path}.{name}")
        if issubclass(record.cls, tuple):
            return record.cls(**values)
        made = object.__new__(record.cls)
        vars(made).update(values)
        _require(not isinstance(made, SparseRows) or made.is_valid(), path)
        return made


def _names(content: Any) -> set[str]:
    return set(content) if isinstance(content, dict) else set()


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ModelFileError(f"holds {what}, which this version does not read.")
