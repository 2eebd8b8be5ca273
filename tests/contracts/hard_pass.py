"""Passes of the hard rule, and what is kept between them."""

# What a pass must tell of the rows.
# Centroids that come and go between passes keep what is known true.
# Directions leave out what rounding does, and change no label.
# Which of bounds, near centroids and directions a run of passes uses.
# One pass: its sums and what is known after it.
from rffpk.anneal.hard_pass import (
    Need,
    add,
    along,
    coordinates,
    find_directions,
    hard_plan,
    remove,
    step,
)

__all__ = ["Need", "add", "along", "coordinates", "find_directions", "hard_plan",
           "remove", "step"]  # fmt: skip
