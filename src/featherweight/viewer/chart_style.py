"""The common style of all charts."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import matplotlib

INK, FAINT, GRID = "#1d2733", "#66707c", "#e3e7eb"
BLUE, PALE = "#2f6db5", "#93bbe6"
GREEN, PURPLE, TEAL, ORANGE, RED = "#3f9a5f", "#8a5fb0", "#2a9d9a", "#e0822d", "#c8453b"
DPI = 200

_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10.0,
    "axes.edgecolor": GRID,
    "axes.labelcolor": FAINT,
    "axes.titlecolor": INK,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "grid.color": GRID,
    "xtick.color": FAINT,
    "ytick.color": INK,
    "xtick.major.size": 0.0,
    "xtick.minor.size": 0.0,
    "ytick.major.size": 0.0,
    "text.color": INK,
    "legend.frameon": False,
    "legend.handlelength": 1.0,
    "legend.handletextpad": 0.5,
    "legend.columnspacing": 1.4,
}


def style() -> AbstractContextManager[None]:
    """Return a context in which Matplotlib uses the style of all pictures."""
    return matplotlib.rc_context(_STYLE)
