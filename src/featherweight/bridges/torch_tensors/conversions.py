"""Tensors on the processor from NumPy's arrays in double precision, and arrays from tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

from ...array_types import Array


def require_on_processor(owner: str, named: Mapping[str, Any]) -> None:
    """Raise TypeError, which names the argument of the owner, unless all are tensors of real numbers on the processor."""
    for name, x in named.items():
        if not isinstance(x, torch.Tensor) or not x.is_cpu or not x.is_floating_point():
            raise TypeError(f"{owner}: {name} must be a tensor of real numbers on the processor; got {x!r}")


def numbers(x: torch.Tensor) -> Array:
    """Return the numbers of a tensor, real ones in double precision."""
    return np.asarray(x.detach().resolve_neg().numpy(), np.float64 if x.is_floating_point() else None)


def tensors(values: Iterable[Array], dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """Return arrays as tensors."""
    return tuple(torch.as_tensor(np.ascontiguousarray(x), dtype=dtype) for x in values)
