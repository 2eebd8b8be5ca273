"""The private names of the package that benchmarks import: they change with the package."""

from rffpk import _core
from rffpk._annealing import dual
from rffpk._annealing.critical import critical_exponent
from rffpk._annealing.schedule import Step
from rffpk._data.passes import Rows, make_rows, one_pass
from rffpk._data.rules import power_weights, typicality
from rffpk._reference import squared_distances

__all__ = [
    "Rows",
    "Step",
    "_core",
    "critical_exponent",
    "dual",
    "make_rows",
    "one_pass",
    "power_weights",
    "squared_distances",
    "typicality",
]
