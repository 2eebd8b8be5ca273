"""Rows of a data set: tables, checks, sources, samples, passes."""
