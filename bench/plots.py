"""Draw figures without a display."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


def subplots(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Return a figure and its axes, or exit where matplotlib is missing."""
    try:
        import matplotlib
    except ImportError:
        sys.exit("figures need matplotlib: pip install matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot.subplots(*args, **kwargs)


def legend_beside(axes: Any) -> None:
    """Add one legend for a row of panels with the same lines, to the right of them."""
    axes[-1].legend(
        *axes[0].get_legend_handles_labels(), loc="upper left", bbox_to_anchor=(1.02, 1)
    )


def save(figure: Any, path: Path, dpi: int = 100) -> None:
    """Write a figure to a file, and close it."""
    from matplotlib import pyplot

    figure.tight_layout()
    figure.savefig(path, dpi=dpi)
    pyplot.close(figure)
