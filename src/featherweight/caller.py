"""Warnings that point at the line of the user."""

from __future__ import annotations

import sys
import warnings


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning that points at the calling line outside of this package."""
    package, level, frame = __name__.partition(".")[0], 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
