"""Figures, without a display."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


def subplots(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """A figure and its axes; exits if matplotlib is missing."""
    try:
        import matplotlib
    except ImportError:
        sys.exit("figures need matplotlib: pip install matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot.subplots(*args, **kwargs)


def save(figure: Any, path: Path, dpi: int = 100) -> None:
    from matplotlib import pyplot

    figure.tight_layout()
    figure.savefig(path, dpi=dpi)
    pyplot.close(figure)
