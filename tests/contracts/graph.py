"""Neighbor graphs, their eigenvectors, and the choice of a graph."""

# The rule that chooses among graphs, and the criteria of a number of clusters.
from rffpk.choose import graph_choice
from rffpk.choose import number as criteria

# Leading eigenvectors of a graph, compared with a full decomposition.
from rffpk.spaces import spectrum

# The search in cells.
from rffpk.spaces.near_cells import near_cells

# The nearest landmarks of rows, their number, and searches that several trials share. The number
# and the places of landmarks. The graph of mutual neighbors.
from rffpk.spaces.neighbors import (
    NeighbourCount,
    Neighbourhoods,
    Shared,
    centroid_landmarks,
    landmark_numbers,
    mutual_neighbours,
)

__all__ = [
    "NeighbourCount",
    "Neighbourhoods",
    "Shared",
    "centroid_landmarks",
    "criteria",
    "graph_choice",
    "landmark_numbers",
    "mutual_neighbours",
    "near_cells",
    "spectrum",
]
