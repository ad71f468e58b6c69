"""Detection of the kernels that read inertias: they run on a tree whose inertias raise when they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ..algorithms.mechanisms.cluster_tree import ClusterTree
from ..engine.program import KernelProgram
from ..engine.trace import trace
from ..model.tree import Tree

MASSES = ("mass", "moment", "inertia")  # fields of the tree


class _Read(Exception):
    """Raised when a kernel reads a watched value."""


class _Watched:
    """A stand-in for numbers that detects whether a kernel reads them."""

    def __getitem__(self, *index: object) -> Any:
        raise _Read

    __iter__ = __len__ = __getitem__


def with_trees(program: KernelProgram, change: Callable[[Tree], Tree]) -> KernelProgram:
    """Return the kernel with another tree, or with a mechanism of another tree."""

    def changed(constant: object) -> Any:
        if isinstance(constant, ClusterTree):
            return constant._replace(tree=change(constant.tree))
        return change(constant) if isinstance(constant, Tree) else constant

    return replace(program, constants=tuple(map(changed, program.constants)))


def reads(program: KernelProgram, fields: Iterable[str]) -> bool:
    """Return whether a kernel reads any of these fields of its tree."""
    if not any(isinstance(c, (Tree, ClusterTree)) for c in program.constants):
        return False
    watched: Any = _Watched()
    try:
        found = with_trees(program, lambda tree: tree._replace(**dict.fromkeys(fields, watched)))
        trace(found.flat, [x.size for x in found.inputs])
    except _Read:
        return True
    return False


def reads_masses(program: KernelProgram) -> bool:
    """Return whether a kernel reads the masses, first moments or rotational inertias of its tree."""
    return reads(program, MASSES)
