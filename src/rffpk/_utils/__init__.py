"""Validation, threads, linear algebra, files, progress, and the bases of all estimators."""
