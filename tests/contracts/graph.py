"""Graphs of neighbors, what their walks tell, and how one of them is chosen."""

# The rule that chooses among graphs, and the criteria of a number of clusters.
from rffpk.choose import graph_choice
from rffpk.choose import number as criteria

# Slow functions of a walk, as a full decomposition has them.
from rffpk.spaces import spectrum

# The search in cells.
from rffpk.spaces.near_cells import near_cells

# Neighbors of rows among landmarks, how many there are, and searches that several trials share.
# How many landmarks there are, and where. The graph of neighbors of each other.
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
