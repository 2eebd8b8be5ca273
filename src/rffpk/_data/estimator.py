"""The base of all estimators: pickles and model files carry the version that wrote them, and the
HTML representation a link to the documentation."""

from __future__ import annotations

import json
import os
from importlib.metadata import metadata
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from rffpk._config import __version__
from rffpk._data.model_state import Decoder, Encoder, class_name
from rffpk._data.progress import Observed
from rffpk._data.tensor_files import ModelFileError, parse_json, read_tensors, write_tensors
from rffpk._data.validation import takes_sparse

_KEY = "_rffpk_version"

# Of model files: the version of their layout, and the parts of an estimator.
_FORMAT = "1"
_PARTS = ("parameters", "attributes")
_SCALES = ("mean_", "scale_", "var_")  # of the StandardScaler before it, if there is one


def _line(version: str) -> tuple[str, ...]:
    """The part of a version within which pickles can be read: the major number, and the minor one
    before 1.0."""
    parts = version.split(".")
    return tuple(parts[: 2 if parts[0] == "0" else 1])


class VersionError(ValueError):
    """A pickle or a model file of a version that this one does not read."""


def _check_version(written: str, what: str) -> None:
    """Raise an error if the state of an estimator is that of another version; `what` says what
    became of it."""
    if _line(written) != _line(__version__):
        raise VersionError(
            f"This {what} by rffpk {written}, and rffpk {__version__} does not read it: fit it "
            f"again, or install rffpk {written}."
        )


def site() -> str:
    """The address of the documentation as the metadata of the package name it; empty if not."""
    entries = metadata("rffpk").get_all("Project-URL") or []
    urls = dict(entry.split(", ", 1) for entry in entries)
    return urls.get("Documentation", "").rstrip("/")


class Estimator(Observed, BaseEstimator):
    """scikit-learn's BaseEstimator with versioned pickles, model files and a link to the
    documentation."""

    # The names that scikit-learn's guide for developers gives for the HTML representation.
    _doc_link_module = "rffpk"

    @property
    def _doc_link_template(self) -> str:
        return f"{site()}/generated/rffpk.{{estimator_name}}.html" if site() else ""

    _takes_sparse = False  # whether X may be sparse

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = takes_sparse(self)
        return tags

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), _KEY: __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        _check_version(state.pop(_KEY, "0.0"), f"{type(self).__name__} was pickled")
        super().__setstate__(state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that `rffpk.load` reads.

        The file holds numbers and text only: unlike a pickle it cannot run code where it is read.

        Parameters
        ----------
        path : str or path
            The file, in the layout of safetensors. One that exists is replaced once the new one is
            complete; if that fails, it stays.

        Raises
        ------
        TypeError
            If a parameter is neither a number, a string, an array, a list, a tuple, a dict nor an
            estimator of this package; callables and RandomState instances for example.
        OSError
            If the file cannot be written.
        """
        write_model(os.fspath(path), self)


def write_model(path: str, model: Any) -> None:
    """Write an estimator, or the pipeline of a StandardScaler and one, to a file that `read_model`
    reads."""
    scaler = None
    if isinstance(model, Pipeline):
        scaler, model = (step for _, step in model.steps)
    name, encoder = class_name(model), Encoder()
    parts = encoder.estimator(model)
    if scaler is not None:
        values = {name: getattr(scaler, name) for name in _SCALES}
        parts["scaler"] = encoder.attributes(values, "scaler.")
    metadata = {"format": "rffpk " + _FORMAT, "version": __version__, "class": name}
    for part, content in parts.items():
        metadata[part] = json.dumps(content, separators=(",", ":"), allow_nan=False)
    write_tensors(path, metadata, encoder.arrays)


def read_model(path: str) -> Any:
    """The estimator or the pipeline in a file that `write_model` has written."""
    metadata, arrays = read_tensors(path)
    layout = metadata.get("format", "")
    if not layout.startswith("rffpk "):
        raise ModelFileError("is not a model file.")
    _check_version(metadata.get("version", "0.0"), "model was saved")
    if layout != "rffpk " + _FORMAT:
        raise VersionError(f"has the layout {layout!r}, rffpk {__version__} reads {_FORMAT}.")
    decoder = Decoder(arrays)
    content = {part: parse_json(metadata.get(part, ""), part) for part in _PARTS}
    try:
        model = decoder.estimator(metadata.get("class", ""), content)
        if "scaler" in metadata:
            scales = decoder.attributes(parse_json(metadata["scaler"], "scaler"), "scaler.")
            model = _scaled(model, scales)
    except RecursionError as error:
        raise ModelFileError("holds values that are nested too deeply.") from error
    if unused := decoder.unused():
        raise ModelFileError(f"holds arrays that belong to nothing: {sorted(unused)[:3]}.")
    return model


def _scaled(model: Any, scales: dict[str, Any]) -> Pipeline:
    """The pipeline of a StandardScaler with these attributes and a model."""
    d, scaler = getattr(model, "n_features_in_", None), StandardScaler()
    same = scales.keys() == {*_SCALES} and isinstance(d, int)
    if not same or any(
        not isinstance(values, np.ndarray) or (values.dtype, values.shape) != (np.float64, (d,))
        for values in scales.values()
    ):
        raise ModelFileError("holds a scaler of other columns than those of its model.")
    vars(scaler).update(scales, n_features_in_=d)
    return make_pipeline(scaler, model)
