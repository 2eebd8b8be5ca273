"""Model files: what they may contain, and their reader. `save` is a method of all estimators."""

from __future__ import annotations

import os
from typing import Any

from rffpk._anneal.centroid_model import RunningSums
from rffpk._anneal.cluster_number import NClustersSelection
from rffpk._anneal.kernel_products import CenteredKernel
from rffpk._anneal.objective import PowerMean, WeightedViews
from rffpk._utils.arrays import Fourier, Structure
from rffpk._utils.estimator import VersionError, read_model, write_model
from rffpk._utils.model_state import ESTIMATORS, RECORDS
from rffpk._utils.sparse_rows import SparseRows
from rffpk._utils.tensor_files import ModelFileError
from rffpk.fusion.operators import Exact, Finished, FourierFeatures, Nystroem
from rffpk.maps.graphs import Nodes
from rffpk.maps.kernels import FittedKernel
from rffpk.maps.neighbours import Neighbourhoods
from rffpk.maps.outliers import Cells, Outliers
from rffpk.maps.spectrum import Spectrum
from rffpk.maps.unit_rows import UnitRows
from rffpk.maps.whitening import Whitening
from rffpk.tables import TablePreprocessor

ESTIMATORS["TablePreprocessor"] = TablePreprocessor

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
    "Nodes": Nodes,
    "Whitening": Whitening,
    "UnitRows": UnitRows,
    "SparseRows": SparseRows,
    "FittedKernel": FittedKernel,
    "CenteredKernel": CenteredKernel,
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
    write_model(os.fspath(path), model)


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
        the same bits. Of a file that ``rffpk cluster --standardize --model`` has written, the
        pipeline of scikit-learn's StandardScaler and the estimator.

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
        return read_model(name)
    except (ModelFileError, VersionError) as error:
        raise type(error)(f"{name}: {error}") from error
