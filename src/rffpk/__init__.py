"""Annealed kernel clustering, fuzzy and scalable: one fused pass over the rows."""

from rffpk._config import __version__, show_config
from rffpk.feature_maps import RandomFourierFeatures
from rffpk.metrics import clustering_accuracy, purity_score
from rffpk.multiview import RFFMultiKernelPowerKMeans
from rffpk.power import FuzzyCMeans, PowerKMeans, RFFKernelPowerKMeans

__all__ = [
    "FuzzyCMeans",
    "PowerKMeans",
    "RFFKernelPowerKMeans",
    "RFFMultiKernelPowerKMeans",
    "RandomFourierFeatures",
    "__version__",
    "clustering_accuracy",
    "purity_score",
    "show_config",
]
