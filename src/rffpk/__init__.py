"""Annealed kernel clustering, fuzzy and scalable: one fused pass over the rows."""

from typing import TYPE_CHECKING

from rffpk import _core as _core  # before the OpenMP of scikit-learn may bind this thread
from rffpk._utils.config import __version__, get_include, show_config
from rffpk._utils.model_state import ESTIMATORS
from rffpk.diffusion import DiffusionPowerKMeans
from rffpk.exact import KernelKMeans, KernelPowerKMeans, MultiKernelPowerKMeans
from rffpk.fusion.coregsc import CoregSC
from rffpk.fusion.famkkm import FAMKKM
from rffpk.fusion.lkam import LKAM
from rffpk.fusion.lmkkm import LMKKM
from rffpk.fusion.mkkm import MKKM, AverageMKKM
from rffpk.fusion.mkkm_mr import MKKMMR
from rffpk.fusion.mvclfa import MVCLFA
from rffpk.fusion.nystroem import NystroemKernelKMeans
from rffpk.fusion.onkc import ONKC
from rffpk.fusion.rmkkm import RMKKM
from rffpk.fusion.simplemkkm import SimpleMKKM
from rffpk.fusion.smkc import SMKC
from rffpk.fuzzy import FuzzyCMeans, cmeans
from rffpk.maps.diffusion_map import DiffusionMap
from rffpk.maps.fourier import RandomFourierFeatures
from rffpk.maps.kernels import center_kernel, normalize_kernel
from rffpk.metrics import (
    clustering_accuracy,
    fuzzy_silhouette,
    partition_coefficient,
    partition_entropy,
    purity_score,
    repeated_scores,
    xie_beni_index,
)
from rffpk.model_files import load, save
from rffpk.multiview import RFFMultiKernelPowerKMeans
from rffpk.power import PowerKMeans, RFFKernelPowerKMeans
from rffpk.profiles import describe
from rffpk.selection import select_n_clusters

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
    "describe",
    "fuzzy_silhouette",
    "get_include",
    "load",
    "normalize_kernel",
    "partition_coefficient",
    "partition_entropy",
    "purity_score",
    "repeated_scores",
    "save",
    "select_n_clusters",
    "show_config",
    "xie_beni_index",
]

# What a model file may name.
ESTIMATORS.update(
    (name, each) for name, each in vars().items() if name in __all__ and isinstance(each, type)
)

if TYPE_CHECKING:
    from rffpk import plot as plot
    from rffpk import sources as sources
else:

    def __getattr__(name):
        """A public module that nothing has imported yet, such as `plot`."""
        from importlib import import_module, util

        module = f"{__name__}.{name}"
        if name.startswith("_") or util.find_spec(module) is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(module)
