"""Load data sets of scikit-learn and of the data folder, prepare them, and draw mixtures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

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


def single_view(data: Path, name: str, key: str = "X") -> Labelled:
    """Load rows in float64, without preprocessing, and classes."""
    stored = np.load(data / f"{name}.npz")
    return stored[key].astype(np.float64), stored["y"]


def first_view(data: Path, name: str) -> Labelled:
    """Load the only or the first view in float64, without preprocessing, and classes."""
    with np.load(data / f"{name}.npz") as stored:
        return stored["X" if "X" in stored else "X0"].astype(np.float64), stored["y"]


def n_classes(data: Path, name: str) -> int:
    """Return the number of classes of a stored data set."""
    return len(np.unique(np.load(data / f"{name}.npz")["y"]))


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


def gaussian_views(n: int, widths: Sequence[int], k: int = 10) -> LabelledViews:
    """Draw float32 views of k Gaussian clusters, and return their classes, too."""
    random = np.random.default_rng(0)
    y = random.integers(k, size=n)
    views = []
    for d in widths:
        view = random.standard_normal((n, d), dtype=np.float32)
        view += (1.5 * random.standard_normal((k, d), dtype=np.float32))[y]
        views.append(view)
    return views, y
