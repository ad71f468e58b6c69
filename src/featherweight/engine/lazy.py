"""Which arguments of a call are computed later: Dask's arrays, and xarray's of these, known without importing Dask."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any


def lazy(x: Any) -> Any:
    """The Dask array that an argument is, or has as its data (xarray's variables); None of others.

    Who has one has imported Dask.
    """
    array = getattr(sys.modules.get("dask.array"), "Array", None)
    if array is None or isinstance(x, array):
        return None if array is None else x
    data = getattr(x, "data", None)
    return data if isinstance(data, array) else None


def some_are_lazy(args: Iterable[Any]) -> bool:
    return "dask.array" in sys.modules and any(lazy(x) is not None for x in args)
