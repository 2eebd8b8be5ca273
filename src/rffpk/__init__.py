"""Annealed kernel clustering, fuzzy and scalable: one fused pass over the rows."""

from rffpk._config import __version__, show_config
from rffpk.exact import KernelKMeans, KernelPowerKMeans, MultiKernelPowerKMeans
from rffpk.feature_maps import RandomFourierFeatures
from rffpk.kernels import center_kernel, normalize_kernel
from rffpk.metrics import clustering_accuracy, purity_score
from rffpk.mkkm import MKKM, AverageMKKM
from rffpk.multiview import RFFMultiKernelPowerKMeans
from rffpk.power import FuzzyCMeans, PowerKMeans, RFFKernelPowerKMeans

__all__ = [
    "MKKM",
    "AverageMKKM",
    "FuzzyCMeans",
    "KernelKMeans",
    "KernelPowerKMeans",
    "MultiKernelPowerKMeans",
    "PowerKMeans",
    "RFFKernelPowerKMeans",
    "RFFMultiKernelPowerKMeans",
    "RandomFourierFeatures",
    "__version__",
    "center_kernel",
    "clustering_accuracy",
    "normalize_kernel",
    "purity_score",
    "show_config",
]
