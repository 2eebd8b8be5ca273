"""Array types for annotations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Of structured frequencies: the signs S3, S2, S1, int8 of shape (blocks, 3, p), and the scale.
Structure = tuple[NDArray[np.int8], float]
