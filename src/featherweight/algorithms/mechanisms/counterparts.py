"""Which kernel serves a mechanism with loops, where one for a tree is asked for.

A kernel has a counterpart, which says so by `for_mechanism`, or takes a ClusterTree in place of a Tree itself and says so by
`takes_mechanism`. Modules register their kernels when they are imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

K = TypeVar("K", bound=Callable[..., Any])

_counterparts: dict[Callable[..., Any], Callable[..., Any]] = {}
_takes_mechanism: set[Callable[..., Any]] = set()


def for_mechanism(tree_kernel: Callable[..., Any]) -> Callable[[K], K]:
    """Register the kernel that follows in place of `tree_kernel`; raises ValueError where there is one already."""

    def register(kernel: K) -> K:
        if tree_kernel in _counterparts:
            raise ValueError(
                f"{_name(tree_kernel)} has two kernels for mechanisms: {_name(_counterparts[tree_kernel])} and {_name(kernel)}"
            )
        _counterparts[tree_kernel] = kernel
        return kernel

    return register


def takes_mechanism(kernel: K) -> K:
    """Register a kernel that runs on mechanisms as it is."""
    _takes_mechanism.add(kernel)
    return kernel


def counterpart(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel that does for a mechanism what `kernel` does for a tree; raises NotImplementedError for none."""
    if kernel in _takes_mechanism:
        return kernel
    if kernel not in _counterparts:
        raise NotImplementedError(
            f"{_name(kernel)} has no kernel for mechanisms with loops. Write one in algorithms/mechanisms and put "
            f"@for_mechanism({kernel.__name__}) above it, or @takes_mechanism above this one if it takes a ClusterTree itself"
        )
    return _counterparts[kernel]


def registered() -> tuple[Callable[..., Any], ...]:
    """All kernels for mechanisms that stand for one of a tree, in the order of their names."""
    return tuple(sorted(_counterparts.values(), key=_name))


def _name(kernel: Callable[..., Any]) -> str:
    return f"{kernel.__module__}.{kernel.__qualname__}"
