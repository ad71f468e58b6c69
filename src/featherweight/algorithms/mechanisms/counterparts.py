"""Kernels for mechanisms with loops that correspond to kernels for trees.

A kernel for trees either has a counterpart, registered by `for_mechanism`, or accepts a ClusterTree in place of a Tree, which
`takes_mechanism` declares. Modules register their kernels when they are imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

K = TypeVar("K", bound=Callable[..., Any])

_counterparts: dict[Callable[..., Any], Callable[..., Any]] = {}
_takes_mechanism: set[Callable[..., Any]] = set()


def for_mechanism(tree_kernel: Callable[..., Any]) -> Callable[[K], K]:
    """Register the decorated kernel as the counterpart of `tree_kernel`. Raises ValueError if there is one already."""

    def register(kernel: K) -> K:
        if tree_kernel in _counterparts:
            raise ValueError(
                f"{_name(tree_kernel)} has two kernels for mechanisms: {_name(_counterparts[tree_kernel])} and {_name(kernel)}"
            )
        _counterparts[tree_kernel] = kernel
        return kernel

    return register


def takes_mechanism(kernel: K) -> K:
    """Register a kernel that accepts mechanisms itself."""
    _takes_mechanism.add(kernel)
    return kernel


def counterpart(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel for mechanisms that corresponds to `kernel` for trees. Raises NotImplementedError if there is none."""
    if kernel in _takes_mechanism:
        return kernel
    if kernel not in _counterparts:
        raise NotImplementedError(
            f"{_name(kernel)} has no kernel for mechanisms with loops. Write one in algorithms/mechanisms and add "
            f"@for_mechanism({kernel.__name__}) above it, or @takes_mechanism above this one if it takes a ClusterTree itself"
        )
    return _counterparts[kernel]


def registered() -> tuple[Callable[..., Any], ...]:
    """Return all counterparts of kernels for trees, in the order of their names."""
    return tuple(sorted(_counterparts.values(), key=_name))


def _name(kernel: Callable[..., Any]) -> str:
    return f"{kernel.__module__}.{kernel.__qualname__}"
