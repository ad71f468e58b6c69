"""Detection of arguments that are computed later: Dask's arrays, and xarray's variables of Dask arrays, without importing Dask.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any


def lazy(x: Any) -> Any:
    """Return the Dask array of an argument, or of its data (xarray's variables); None for other arguments.

    If such an argument exists, Dask is already imported.
    """
    array = getattr(sys.modules.get("dask.array"), "Array", None)
    if array is None or isinstance(x, array):
        return None if array is None else x
    data = getattr(x, "data", None)
    return data if isinstance(data, array) else None


def some_are_lazy(args: Iterable[Any]) -> bool:
    return "dask.array" in sys.modules and any(lazy(x) is not None for x in args)
