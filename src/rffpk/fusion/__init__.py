"""Fusion of several kernels: a base, kernels as operators, and a module for each method."""
