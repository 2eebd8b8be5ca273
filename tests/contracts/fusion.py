"""Kernels, and the algorithms that fuse them."""

# The updates of the algorithms, each of which lowers its objective.
from rffpk.fusion import base, baselines, famkkm, mkkm, operators, smkc

# The weights whose powers sum to one.
from rffpk.fusion.baselines import NormedWeights

# Banks of kernels and checks of kernel matrices.
from rffpk.spaces import kernels

# A fitted kernel, and the specification of a kernel by a user.
from rffpk.spaces.kernels import FittedKernel, Specification

__all__ = ["FittedKernel", "NormedWeights", "Specification", "base", "baselines", "famkkm",
           "kernels", "mkkm", "operators", "smkc"]  # fmt: skip
