"""The private names of the package that benchmarks import; they may change with the package."""

from rffpk import _core, onkc
from rffpk._annealing import bounds
from rffpk._annealing.critical import critical_exponent
from rffpk._annealing.kernel_products import Products
from rffpk._annealing.kernel_steps import KernelSpace
from rffpk._annealing.objective import PowerMean
from rffpk._annealing.schedule import Stage
from rffpk._annealing.search import FitContext
from rffpk._data import partitions
from rffpk._data.arrays import Fourier, Landmarks
from rffpk._data.partitions import Partitions, make_partitions
from rffpk._data.passes import make_rows, one_pass
from rffpk._data.rows import Rows
from rffpk._data.sparse_rows import sparse_rows
from rffpk._data.sums import power_weights, typicality
from rffpk._reference import squared_distances

__all__ = [
    "FitContext",
    "Fourier",
    "KernelSpace",
    "Landmarks",
    "Partitions",
    "PowerMean",
    "Products",
    "Rows",
    "Stage",
    "_core",
    "bounds",
    "critical_exponent",
    "make_partitions",
    "make_rows",
    "one_pass",
    "onkc",
    "partitions",
    "power_weights",
    "sparse_rows",
    "squared_distances",
    "typicality",
]
