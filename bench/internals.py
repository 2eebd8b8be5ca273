"""Import the private names of the package that benchmarks need; they may change with it."""

from rffpk import _core
from rffpk.anneal import hard_pass, steps
from rffpk.anneal.decompositions import critical_exponent
from rffpk.anneal.kernel_steps import KernelLevel, KernelRows
from rffpk.anneal.records import PowerMean
from rffpk.anneal.schedule import FitContext, Stage
from rffpk.rows.arrays import Fourier, Identity, Landmarks
from rffpk.rows.passes import centered, column_rows, make_rows, one_pass
from rffpk.rows.rows import Rows
from rffpk.rows.table import sparse_rows
from rffpk.rows.weights import ones
from rffpk.system.tuning import TUNING

__all__ = [
    "TUNING",
    "FitContext",
    "Fourier",
    "Identity",
    "KernelLevel",
    "KernelRows",
    "Landmarks",
    "PowerMean",
    "Rows",
    "Stage",
    "_core",
    "centered",
    "column_rows",
    "critical_exponent",
    "hard_pass",
    "make_rows",
    "one_pass",
    "ones",
    "sparse_rows",
    "steps",
]
