"""Annealed kernel clustering, fuzzy and scalable: one fused pass over the rows."""

from importlib import import_module, util
from typing import TYPE_CHECKING

from rffpk import _core as _core  # before the OpenMP of scikit-learn may bind this thread

if TYPE_CHECKING:
    from rffpk import plot as plot
    from rffpk import sources as sources
    from rffpk.estimators.annealing import Annealing as Annealing
    from rffpk.estimators.diffusion import DiffusionPowerKMeans as DiffusionPowerKMeans
    from rffpk.estimators.exact import KernelKMeans as KernelKMeans
    from rffpk.estimators.exact import KernelPowerKMeans as KernelPowerKMeans
    from rffpk.estimators.exact import MultiKernelPowerKMeans as MultiKernelPowerKMeans
    from rffpk.estimators.fuzzy import FuzzyCMeans as FuzzyCMeans
    from rffpk.estimators.fuzzy import cmeans as cmeans
    from rffpk.estimators.multiview import RFFMultiKernelPowerKMeans as RFFMultiKernelPowerKMeans
    from rffpk.estimators.multiview import Typicality as Typicality
    from rffpk.estimators.power import PowerKMeans as PowerKMeans
    from rffpk.estimators.random_features import RFFKernelPowerKMeans as RFFKernelPowerKMeans
    from rffpk.estimators.transformers import DiffusionMap as DiffusionMap
    from rffpk.estimators.transformers import RandomFourierFeatures as RandomFourierFeatures
    from rffpk.fusion.baselines import LKAM as LKAM
    from rffpk.fusion.baselines import LMKKM as LMKKM
    from rffpk.fusion.baselines import MVCLFA as MVCLFA
    from rffpk.fusion.baselines import ONKC as ONKC
    from rffpk.fusion.baselines import RMKKM as RMKKM
    from rffpk.fusion.baselines import CoregSC as CoregSC
    from rffpk.fusion.famkkm import FAMKKM as FAMKKM
    from rffpk.fusion.mkkm import MKKM as MKKM
    from rffpk.fusion.mkkm import MKKMMR as MKKMMR
    from rffpk.fusion.mkkm import AverageMKKM as AverageMKKM
    from rffpk.fusion.mkkm import NystroemKernelKMeans as NystroemKernelKMeans
    from rffpk.fusion.mkkm import SimpleMKKM as SimpleMKKM
    from rffpk.fusion.smkc import SMKC as SMKC
    from rffpk.metrics import clustering_accuracy as clustering_accuracy
    from rffpk.metrics import fuzzy_silhouette as fuzzy_silhouette
    from rffpk.metrics import partition_coefficient as partition_coefficient
    from rffpk.metrics import partition_entropy as partition_entropy
    from rffpk.metrics import purity_score as purity_score
    from rffpk.metrics import repeated_scores as repeated_scores
    from rffpk.metrics import xie_beni_index as xie_beni_index
    from rffpk.model_files import load as load
    from rffpk.model_files import save as save
    from rffpk.profiles import describe as describe
    from rffpk.selection import select_n_clusters as select_n_clusters
    from rffpk.spaces.kernels import center_kernel as center_kernel
    from rffpk.spaces.kernels import normalize_kernel as normalize_kernel
    from rffpk.system.config import __version__ as __version__
    from rffpk.system.config import get_include as get_include
    from rffpk.system.config import show_config as show_config

# The public names by their modules, which are imported when a name of theirs is asked for.
_HOMES = {
    "estimators.annealing": ["Annealing"],
    "estimators.diffusion": ["DiffusionPowerKMeans"],
    "estimators.exact": ["KernelKMeans", "KernelPowerKMeans", "MultiKernelPowerKMeans"],
    "estimators.fuzzy": ["FuzzyCMeans", "cmeans"],
    "estimators.multiview": ["RFFMultiKernelPowerKMeans", "Typicality"],
    "estimators.power": ["PowerKMeans"],
    "estimators.random_features": ["RFFKernelPowerKMeans"],
    "estimators.transformers": ["DiffusionMap", "RandomFourierFeatures"],
    "fusion.baselines": ["CoregSC", "LKAM", "LMKKM", "MVCLFA", "ONKC", "RMKKM"],
    "fusion.famkkm": ["FAMKKM"],
    "fusion.mkkm": ["MKKM", "MKKMMR", "AverageMKKM", "NystroemKernelKMeans", "SimpleMKKM"],
    "fusion.smkc": ["SMKC"],
    "metrics": [
        "clustering_accuracy",
        "fuzzy_silhouette",
        "partition_coefficient",
        "partition_entropy",
        "purity_score",
        "repeated_scores",
        "xie_beni_index",
    ],
    "model_files": ["load", "save"],
    "profiles": ["describe"],
    "selection": ["select_n_clusters"],
    "spaces.kernels": ["center_kernel", "normalize_kernel"],
    "system.config": ["__version__", "get_include", "show_config"],
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name):
        """Import a public name, or a public module not imported yet, such as `plot`."""
        if name in _HOME_OF:
            value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
            globals()[name] = value
            return value
        module = f"{__name__}.{name}"
        if name.startswith("_") or util.find_spec(module) is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(module)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
