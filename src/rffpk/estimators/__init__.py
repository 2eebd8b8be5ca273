"""Estimators: parameters, conventions, fitted attributes."""
