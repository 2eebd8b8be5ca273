"""What decides how a fit computes: constants, threads, memory, decompositions and clocks."""

# Limits of threads and memory of the process, which fits only follow.
# Decompositions, whose drivers fail at matrices that nobody knows.
# The clock of lines that a fit prints.
# Trees of clusters, of more of them than a fit has.
from rffpk.system import config, linalg, report, tree

# Long calls end by Ctrl-C.
from rffpk.system.interrupts import interruptible

# The fields that tests replace by the fixture `tuning`.
from rffpk.system.tuning import TUNING

__all__ = ["TUNING", "config", "interruptible", "linalg", "report", "tree"]
