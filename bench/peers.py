"""List the classes and peers that several commands compare, with their default parameters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.mixture import GaussianMixture

from rffpk import DiffusionPowerKMeans, PowerKMeans, RFFKernelPowerKMeans

Fit = Callable[[Any, int, int], np.ndarray]  # of rows, k and a seed: labels

# Functions of k and `random_state` that return estimators.
METHODS: dict[str, Callable[..., Any]] = {
    "DiffusionPowerKMeans": DiffusionPowerKMeans,
    "RFFKernelPowerKMeans": RFFKernelPowerKMeans,
    "PowerKMeans": PowerKMeans,
    "KMeans": partial(KMeans, n_init=10),
    "SpectralClustering": partial(SpectralClustering, affinity="nearest_neighbors"),
    "Ward": lambda k, random_state: AgglomerativeClustering(k),
    "HDBSCAN": lambda k, random_state: HDBSCAN(copy=True),
    "GaussianMixture": GaussianMixture,
}


def fit(method: Callable[..., Any], **parameters: Any) -> Fit:
    """Return a function that fits a method and returns labels."""
    return lambda X, k, seed: method(k, random_state=seed, **parameters).fit(X).labels_
