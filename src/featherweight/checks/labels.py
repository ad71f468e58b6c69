"""Checks of tables whose columns have names, such as those of pandas, which NumPy would read by their order alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def check_labels(what: str, x: Any, labels: Sequence[str]) -> None:
    """Raise ValueError for a table, or a series of numbers with names, whose names are labels of other places than theirs.

    `labels` are the names of the numbers along the last axis, "" for those without one. Other names are ignored, and so are
    names of tables with another number of columns, which raise an error by their shape.
    """
    named = getattr(x, "columns", None)
    if named is None and getattr(x, "ndim", None) == 1:
        named = getattr(x, "index", None)
    if named is None or callable(named):
        return
    names = [*named]
    if len(names) != len(labels):
        return
    for k, name in enumerate(names):
        if isinstance(name, str) and name and name in labels and labels[k] != name:
            right = [x for x in labels if x]
            raise ValueError(
                f"{what}: column {k} is {name!r}, which belongs in column {labels.index(name)}, because numbers are read in "
                f"the order of the robot's joints; select the columns in this order: {right}"
            )
