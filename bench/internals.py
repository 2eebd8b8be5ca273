"""The private names of the package that benchmarks import; they may change with the package."""

from rffpk import _core
from rffpk._anneal import feature_steps, hard_passes
from rffpk._anneal.decompositions import critical_exponent
from rffpk._anneal.kernel_rows import KernelRows
from rffpk._anneal.kernel_steps import KernelRun
from rffpk._anneal.objective import PowerMean
from rffpk._anneal.search import FitContext, Stage
from rffpk._reference import squared_distances
from rffpk._rows import dask_workers
from rffpk._rows.dask_workers import Partitions, make_partitions
from rffpk._rows.passes import centered, make_rows, one_pass
from rffpk._rows.rows import Rows
from rffpk._rows.sums import power_weights, typicality
from rffpk._utils.arrays import Fourier, Landmarks, Unit
from rffpk._utils.columns import NarrowRows, sparse_rows
from rffpk.fusion import baselines

__all__ = [
    "FitContext",
    "Fourier",
    "KernelRows",
    "KernelRun",
    "Landmarks",
    "NarrowRows",
    "Partitions",
    "PowerMean",
    "Rows",
    "Stage",
    "Unit",
    "_core",
    "baselines",
    "centered",
    "critical_exponent",
    "dask_workers",
    "feature_steps",
    "hard_passes",
    "make_partitions",
    "make_rows",
    "one_pass",
    "power_weights",
    "sparse_rows",
    "squared_distances",
    "typicality",
]
