"""Constants, threads, memory, decompositions and clocks of a fit."""

# `config` has the limits of threads and memory. `linalg` has decompositions, whose failures are
# simulated. `report` has the clock of progress lines. `tree` has Ward's tree of many points.
from rffpk.system import config, linalg, report, tree

# Long calls end by Ctrl-C.
from rffpk.system.interrupts import interruptible

# The fields that tests replace by the fixture `tuning`.
from rffpk.system.tuning import TUNING

__all__ = ["TUNING", "config", "interruptible", "linalg", "report", "tree"]
