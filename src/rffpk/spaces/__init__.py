"""Spaces in which rows are clustered: features, kernels, neighbor graphs."""
