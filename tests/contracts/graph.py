"""Neighbor graphs, their eigenvectors, and the choice of a graph."""

# The rule that chooses among graphs, and the criteria of a number of clusters.
from rffpk.choose import graph_choice
from rffpk.choose import number as criteria

# The graph and its components, leading eigenvectors, compared with a full decomposition, and how
# many landmarks there are, and where.
from rffpk.spaces import graph, neighbors, spectrum

# The search in cells.
from rffpk.spaces.near_cells import near_cells

# The nearest landmarks of rows, their number, and searches that several trials share. The graph of
# mutual neighbors.
from rffpk.spaces.neighbors import (
    NeighbourCount,
    Neighbourhoods,
    Shared,
    mutual_neighbours,
)

__all__ = [
    "NeighbourCount",
    "Neighbourhoods",
    "Shared",
    "criteria",
    "graph",
    "graph_choice",
    "mutual_neighbours",
    "near_cells",
    "neighbors",
    "spectrum",
]
