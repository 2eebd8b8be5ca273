"""Rows and maps as the compiled core and its twin take them."""

# The map of random Fourier features, by its matrix of frequencies.
# The map that takes the columns of a view as its features.
# The map to weighted means of the coordinates of near landmarks.
# Random frequencies as products of signs and Hadamard matrices.
# The map that scales rows to length one.
# The stable order of rows by their labels, of any number of clusters.
from rffpk.rows.arrays import Fourier, Identity, Landmarks, Structure, Unit, label_order

# Rows of float16, bfloat16, int8 or uint8, which passes widen to float32 as they read them.
# Sparse rows with sorted indices, without duplicates and zeros, whose input is left as it was.
from rffpk.rows.table import Narrow, sparse_rows

# Points in cells, laid out for a search.
from rffpk.spaces.near_cells import _laid_out as laid_out

__all__ = [
    "Fourier",
    "Identity",
    "Landmarks",
    "Narrow",
    "Structure",
    "Unit",
    "label_order",
    "laid_out",
    "sparse_rows",
]
