"""Model files: what they may contain, and their reader. `save` is a method of all estimators."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from rffpk._anneal.batches import RunningSums
from rffpk._anneal.kernel_products import CenteredKernel
from rffpk._anneal.objective import PowerMean, WeightedViews
from rffpk._utils.arrays import Fourier, Structure
from rffpk._utils.estimator import VersionError, read_model
from rffpk._utils.model_state import RECORDS, Record
from rffpk._utils.sparse_rows import SparseRows
from rffpk._utils.tensor_files import ModelFileError
from rffpk.fusion.operators import Exact, Finished, Nystroem
from rffpk.fusion.operators import Fourier as FourierFeatures
from rffpk.maps.fourier import RandomFourierFeatures
from rffpk.maps.kernels import FittedKernel
from rffpk.maps.neighbours import Neighbourhoods
from rffpk.maps.spectrum import Spectrum
from rffpk.maps.whitening import Whitening

_ARRAY, _TABLE, _NONE = (np.ndarray,), (dict,), type(None)
_MAYBE_ARRAY = (np.ndarray, _NONE)
_INT, _FLOAT, _BOOL, _DTYPE = (int,), (float, int), (bool,), (np.dtype,)
_FEATURES = (FourierFeatures, Nystroem)

RECORDS |= {
    "Fourier": Record(Fourier, {"frequencies": (np.ndarray, Structure)}),
    "Structure": Record(Structure, {"signs": _ARRAY, "scale": _FLOAT, "n_frequencies": _INT}),
    "PowerMean": Record(PowerMean, {}),
    "WeightedViews": Record(
        WeightedViews,
        {"weight_entropy": _FLOAT, "eta": _MAYBE_ARRAY, "m": _FLOAT, "coverage": _MAYBE_ARRAY},
        optional=("coverage",),
    ),
    "RunningSums": Record(RunningSums, {"N": _ARRAY, "G": _ARRAY, "s": _FLOAT}),
    "Spectrum": Record(Spectrum, {"gaps": _ARRAY, "functions": _ARRAY, "shares": _ARRAY}),
    "Neighbourhoods": Record(
        Neighbourhoods,
        {
            "landmarks": (np.ndarray, SparseRows), "r": _INT, "bandwidth": _FLOAT,
            "n_threads": _INT, "radii": _MAYBE_ARRAY,
        },
    ),
    "Whitening": Record(
        Whitening, {"mean": _ARRAY, "matrix": _ARRAY, "unit": _BOOL, "n_threads": _INT}
    ),
    "SparseRows": Record(
        SparseRows, {"data": _ARRAY, "indices": _ARRAY, "indptr": _ARRAY, "shape": (tuple,)}
    ),
    "FittedKernel": Record(
        FittedKernel,
        {
            "x": (np.ndarray, SparseRows), "metric": (str,), "n": _INT, "dtype": _DTYPE,
            "n_threads": _INT, "definite": _BOOL, "precomputed": _BOOL, "diagonal": _ARRAY,
            "params": _TABLE, "_center": _BOOL, "_normalize": _BOOL, "_origin": _MAYBE_ARRAY,
            "_scale": (tuple, _NONE), "_shares": _MAYBE_ARRAY, "_columns": _MAYBE_ARRAY,
            "_mean": _FLOAT, "_raw_diagonal": _ARRAY, "_inverse_norms": _ARRAY,
        },
        optional=("x", "_raw_diagonal", "_inverse_norms"),
    ),
    "CenteredKernel": Record(
        CenteredKernel,
        {
            "kernel": (FittedKernel,), "n": _INT, "dtype": _DTYPE, "offsets": _ARRAY,
            "diagonal": _ARRAY, "_places": _ARRAY, "_mean": _FLOAT,
        },
    ),
    "Exact": Record(Exact, {"kernel": (FittedKernel,), "roots": _MAYBE_ARRAY}),
    "FourierFeatures": Record(FourierFeatures, {"mapping": (RandomFourierFeatures,)}),
    "Nystroem": Record(Nystroem, {"kernel": (FittedKernel,), "anchors": _ARRAY, "root": _ARRAY}),
    "Finished": Record(Finished, {"raw": _FEATURES, "mean": _ARRAY, "normalize": _BOOL}),
}  # fmt: skip


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
