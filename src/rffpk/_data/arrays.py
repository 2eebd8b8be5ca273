"""The types of arrays in annotations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Signs S3, S2, S1, int8 of shape (blocks, 3, p), and scale of structured frequencies.
Structure = tuple[NDArray[np.int8], float]
