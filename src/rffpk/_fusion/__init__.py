"""Fusion of kernels: the common base class, kernels as operators, two solvers."""
