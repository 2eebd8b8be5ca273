"""Neighbourhoods of rows, their graphs, and the spectra of these."""
