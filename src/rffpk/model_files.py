"""Model files: what they may contain, their writer and their reader."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import rffpk
from rffpk._anneal.centroid_model import RunningSums
from rffpk._anneal.objective import PowerMean, WeightedViews
from rffpk._rows.store import UnitRows
from rffpk._utils.arrays import Fourier, Structure
from rffpk._utils.columns import SparseRows
from rffpk._utils.config import __version__
from rffpk._utils.estimator import VersionError, check_version
from rffpk._utils.model_state import ESTIMATORS, RECORDS, Decoder, Encoder
from rffpk._utils.selection import NClustersSelection
from rffpk._utils.tensor_files import ModelFileError, parse_json, read_tensors, write_tensors
from rffpk.fusion.operators import Exact, Finished, FourierFeatures, Nystroem
from rffpk.maps.graphs import Nodes
from rffpk.maps.kernels import FittedKernel
from rffpk.maps.near_cells import NearCells
from rffpk.maps.neighbours import Neighbourhoods
from rffpk.maps.outliers import Cells, Outliers
from rffpk.maps.spectrum import Spectrum
from rffpk.maps.whitening import Whitening
from rffpk.tables import TablePreprocessor

_FORMAT = "1"  # the version of the layout
_PARTS = ("parameters", "attributes")  # of an estimator in a file
_TABLE = "TablePreprocessor"
_SCALES = ("mean_", "scale_", "var_")  # of the StandardScaler before it, if there is one
_NAMES = "feature_names_in_"  # of the columns, if they have names

_PUBLIC = (getattr(rffpk, name) for name in rffpk.__all__ if name[0].isupper())
ESTIMATORS.update(
    (cls.__name__, cls)
    for cls in (TablePreprocessor, *_PUBLIC)
    if isinstance(cls, type) and issubclass(cls, BaseEstimator)
)

RECORDS |= {
    "Fourier": Fourier,
    "Structure": Structure,
    "PowerMean": PowerMean,
    "WeightedViews": WeightedViews,
    "RunningSums": RunningSums,
    "Cells": Cells,
    "Outliers": Outliers,
    "NClustersSelection": NClustersSelection,
    "Spectrum": Spectrum,
    "Neighbourhoods": Neighbourhoods,
    "NearCells": NearCells,
    "Nodes": Nodes,
    "Whitening": Whitening,
    "UnitRows": UnitRows,
    "SparseRows": SparseRows,
    "FittedKernel": FittedKernel,
    "Exact": Exact,
    "FourierFeatures": FourierFeatures,
    "Nystroem": Nystroem,
    "Finished": Finished,
}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model, or a pipeline that ends in one, to a file that `load` reads.

    Parameters
    ----------
    model : object
        A fitted estimator of this package, or a pipeline of scikit-learn of a StandardScaler, which
        centers and scales, or a `rffpk.tables.TablePreprocessor` and one.
    path : str or path
        The file, as for the method `save`, which runs no code where it is read.

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
    _write(os.fspath(path), model)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that its method `save` has written.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    model : object
        An estimator of this package, with the parameters and fitted attributes that were saved:
        the same bits. Of a file that ``rffpk cluster --model`` has written, the pipeline of
        scikit-learn's StandardScaler or a `TablePreprocessor` and the estimator, if there is one.

    Raises
    ------
    ValueError
        If the file is no model file, or is damaged (`rffpk.model_files.ModelFileError`), or was
        written by a version whose files this one does not read (`rffpk.model_files.VersionError`).
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
    ...     again = rffpk.load(f"{folder}/digits.safetensors")
    >>> bool((again.predict(X) == model.labels_).all())
    True
    """
    name = os.fspath(path)
    try:
        return _read(name)
    except (ModelFileError, VersionError) as error:
        raise type(error)(f"{name}: {error}") from error


def _write(path: str, model: Any) -> None:
    """Write an estimator, or the pipeline of a StandardScaler or a TablePreprocessor and one, to a
    file that `_read` reads."""
    scaler = table = None
    if isinstance(model, Pipeline):
        *before, model = (step for _, step in model.steps)
        if len(before) == 1 and type(before[0]) is StandardScaler and _scales(before[0]):
            scaler = before[0]
        elif len(before) == 1 and type(before[0]).__name__ == _TABLE:
            table = before[0]
        else:
            raise TypeError(
                f"model has the steps {[type(step).__name__ for step in before]} before "
                f"{type(model).__name__}, must have a StandardScaler that centers and "
                f"scales, or a {_TABLE}: pickle model."
            )
    name, encoder = type(model).__name__, Encoder()
    if ESTIMATORS.get(name) is not type(model):
        raise TypeError(f"{name} is not a class of rffpk, which a model file needs: pickle model.")
    parts = encoder.estimator(model)
    if scaler is not None:
        values = {name: vars(scaler)[name] for name in (*_SCALES, _NAMES) if name in vars(scaler)}
        parts["scaler"] = encoder.attributes(values, "scaler.")
    if table is not None:
        parts["table"] = encoder.estimator(table, "table.")
    metadata = {"format": "rffpk " + _FORMAT, "version": __version__, "class": name}
    for part, content in parts.items():
        metadata[part] = json.dumps(content, separators=(",", ":"), allow_nan=False)
    write_tensors(path, metadata, encoder.arrays)


def _scales(scaler: StandardScaler) -> bool:
    """Whether its attributes are all that it does."""
    return bool(scaler.with_mean and scaler.with_std)


def _read(path: str) -> Any:
    """The estimator or the pipeline in a file that `_write` has written."""
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
            table = decoder.estimator(_TABLE, parse_json(metadata["table"], "table"), "table.")
            model = make_pipeline(table, model)
    except RecursionError as error:
        raise ModelFileError("holds values that are nested too deeply.") from error
    if unused := decoder.unused():
        raise ModelFileError(f"holds arrays that nothing refers to: {sorted(unused)[:3]}.")
    return model


def _scaled(model: Any, scales: dict[str, Any]) -> Pipeline:
    """The pipeline of a StandardScaler with these attributes and a model."""
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
