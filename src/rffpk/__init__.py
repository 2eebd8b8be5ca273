"""Annealed kernel clustering, fuzzy and scalable: one fused pass over the rows."""

from rffpk import _core as _core  # before the OpenMP of scikit-learn may bind this thread
from rffpk._config import __version__, show_config
from rffpk.coregsc import CoregSC
from rffpk.diffusion import DiffusionPowerKMeans
from rffpk.diffusion_map import DiffusionMap
from rffpk.exact import KernelKMeans, KernelPowerKMeans, MultiKernelPowerKMeans
from rffpk.famkkm import FAMKKM
from rffpk.feature_maps import RandomFourierFeatures
from rffpk.fuzzy import FuzzyCMeans, cmeans
from rffpk.kernels import center_kernel, normalize_kernel
from rffpk.lkam import LKAM
from rffpk.lmkkm import LMKKM
from rffpk.metrics import (
    clustering_accuracy,
    fuzzy_silhouette,
    partition_coefficient,
    partition_entropy,
    purity_score,
    xie_beni_index,
)
from rffpk.mkkm import MKKM, AverageMKKM
from rffpk.mkkm_mr import MKKMMR
from rffpk.model_files import load
from rffpk.multiview import RFFMultiKernelPowerKMeans
from rffpk.mvclfa import MVCLFA
from rffpk.nystroem import NystroemKernelKMeans
from rffpk.onkc import ONKC
from rffpk.power import PowerKMeans, RFFKernelPowerKMeans
from rffpk.rmkkm import RMKKM
from rffpk.selection import select_n_clusters
from rffpk.simplemkkm import SimpleMKKM
from rffpk.smkc import SMKC

__all__ = [
    "FAMKKM",
    "LKAM",
    "LMKKM",
    "MKKM",
    "MKKMMR",
    "MVCLFA",
    "ONKC",
    "RMKKM",
    "SMKC",
    "AverageMKKM",
    "CoregSC",
    "DiffusionMap",
    "DiffusionPowerKMeans",
    "FuzzyCMeans",
    "KernelKMeans",
    "KernelPowerKMeans",
    "MultiKernelPowerKMeans",
    "NystroemKernelKMeans",
    "PowerKMeans",
    "RFFKernelPowerKMeans",
    "RFFMultiKernelPowerKMeans",
    "RandomFourierFeatures",
    "SimpleMKKM",
    "__version__",
    "center_kernel",
    "clustering_accuracy",
    "cmeans",
    "fuzzy_silhouette",
    "load",
    "normalize_kernel",
    "partition_coefficient",
    "partition_entropy",
    "purity_score",
    "select_n_clusters",
    "show_config",
    "xie_beni_index",
]
