"""The data sets of the data folder, with common preprocessing, and generated mixtures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from sklearn.preprocessing import normalize, scale

MULTI_VIEW = (
    "mfeat",
    "msrc_v1",
    "landuse21",
    "leaves100",
    "proteinfold",
    "prokaryotic",
    "3sources",
    "bbcsport",
)
COUNTS = {"3sources", "bbcsport", "tr11"}


def single_view(data: Path, name: str, key: str = "X") -> tuple[np.ndarray, np.ndarray]:
    """Rows in float64, without preprocessing, and classes."""
    stored = np.load(data / f"{name}.npz")
    return stored[key].astype(np.float64), stored["y"]


def n_classes(data: Path, name: str) -> int:
    return len(np.unique(np.load(data / f"{name}.npz")["y"]))


def by_number(key: str) -> int:
    return int(key[1:] or 0)


def views(
    data: Path, name: str, order: Callable[[str], int] | None = None
) -> tuple[list[np.ndarray], np.ndarray]:
    """All views in float64, without preprocessing, and classes.

    `order` is the sort key of the views' names, alphabetical by default: X10 before X2.
    """
    stored = np.load(data / f"{name}.npz")
    keys = sorted((key for key in stored if key.startswith("X")), key=order)
    return [stored[key].astype(np.float64) for key in keys], stored["y"]


def prepare(name: str, X: np.ndarray) -> np.ndarray:
    """Rows of length one for counts of words, standardised columns for all other data."""
    return normalize(X) if name in COUNTS else scale(X)


def prepared_views(data: Path, name: str) -> tuple[list[np.ndarray], np.ndarray]:
    found, y = views(data, name)
    return [prepare(name, view) for view in found], y


def around(centers: np.ndarray, n: int, random: np.random.Generator) -> np.ndarray:
    """n rows with unit variance about random rows of `centers`, in the dtype of `centers`."""
    X = random.standard_normal((n, centers.shape[1]), dtype=centers.dtype)
    X += centers[random.integers(len(centers), size=n)]
    return X


def gaussian_views(
    n: int, widths: Sequence[int], k: int = 10
) -> tuple[list[np.ndarray], np.ndarray]:
    """Float32 views of k Gaussian clusters, and classes."""
    random = np.random.default_rng(0)
    y = random.integers(k, size=n)
    found = []
    for d in widths:
        view = random.standard_normal((n, d), dtype=np.float32)
        view += (1.5 * random.standard_normal((k, d), dtype=np.float32))[y]
        found.append(view)
    return found, y


def uneven_views(n: int, widths: Sequence[int], k: int, noise: float = 1.0) -> list[np.ndarray]:
    """Float32 views of k clusters that overlap, in columns of unequal scale."""
    random = np.random.default_rng(0)
    y = random.integers(k, size=n)
    views = []
    for d in widths:
        centers = 2 * random.standard_normal((k, d), dtype=np.float32)
        views.append(centers[y] + noise * random.standard_normal((n, d), dtype=np.float32))
        views[-1] *= random.gamma(2, size=d).astype(np.float32)
    return views
