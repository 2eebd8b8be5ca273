"""Passes of the hard rule, and the bounds and candidate lists that they keep."""

# `Need` says which results a pass must have, and `hard_plan` which accelerations passes use.
# `add` and `remove` keep bounds valid when centroids are added or removed between passes.
# `find_directions`, `coordinates` and `along` bound distances, and change no label.
# `step` makes one pass.
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
