"""Choices that a fit makes: number of clusters, noise, graph."""
