"""Kernels, and the algorithms that fuse them."""

# The algorithms' updates, each of which lowers its objective.
from rffpk.fusion import base, baselines, famkkm, mkkm, operators, smkc

# The weights whose powers sum to one.
from rffpk.fusion.rmkkm import NormedWeights

# Banks of kernels and checks of kernel matrices.
from rffpk.spaces import kernels

# Kernel values of rows, centered and normalized, and what a user says of a kernel.
from rffpk.spaces.kernels import FittedKernel, Specification

__all__ = ["FittedKernel", "NormedWeights", "Specification", "base", "baselines", "famkkm",
           "kernels", "mkkm", "operators", "smkc"]  # fmt: skip
