"""Functions of Dask arrays: block by block, wherever Dask's workers are.

Chunks of the leading axes are blocks of states, each of which is one call; chunks of core axes are put together first. Workers
receive the program of a function, not its code: a process compiles it once, or reads the cache.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from importlib import import_module
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .backends.host_arrays import HostArrays
from .lazy import lazy

if TYPE_CHECKING:
    from .runner import Runner
    from .ways import Way

KEPT = 128  # functions that a process keeps compiled, of those that were sent to it

Shape = tuple[int, ...]


class Sent:
    """Callable for blocks that is sent to the processes that have them; each process has one, however often it is sent."""

    def __init__(self, *made_of: Any) -> None:
        self.made_of = made_of

    def __call__(self, *blocks: Any) -> Any:
        raise NotImplementedError

    @cached_property
    def _pickled(self) -> bytes:
        """By value where it is of a program's main file, as Dask sends functions."""
        content: bytes = import_module("cloudpickle").dumps((type(self), self.made_of))
        return content

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self._pickled,)

    def __dask_tokenize__(self) -> tuple[str, str]:
        """Return the token that names of results follow from: the same function in another process has the same token."""
        return "featherweight", hashlib.sha256(self._pickled).hexdigest()


@lru_cache(KEPT)
def _received(pickled: bytes) -> Sent:
    kind, made_of = pickle.loads(pickled)
    sent: Sent = kind(*made_of)
    sent._pickled = pickled  # pickled again, it would be other bytes of the same
    return sent


class OnBlocks(Sent):
    """A function for blocks of states. Dask computes as many blocks at once as it has threads: each has one, unless told.

    The first call is one at a time, so that a process compiles once.
    """

    def __init__(
        self,
        make: Callable[[Way], Runner],
        way: Way,
        threads: int | None,
        device: str | None,
        runner: Runner | None = None,
    ) -> None:
        super().__init__(make, way, threads, device)
        self._run = make(way) if runner is None else runner
        self._threads, self._device = threads or 1, device
        self._begun, self._lock = False, Lock()
        self.__name__ = self._run.name

    def __call__(self, *blocks: Any) -> Any:
        if self._begun:
            return self._run(*blocks, threads=self._threads, device=self._device)
        with self._lock:
            values = self._run(*blocks, threads=self._threads, device=self._device)
            self._begun = True
        return values


def taken(x: Any, what: str) -> Any:
    """A Dask array of what is Dask's, and NumPy's of others."""
    later = lazy(x)
    return HostArrays().array(x, what) if later is None else later


class Shaped(NamedTuple):
    """Properties of an array that are known before it is computed."""

    shape: tuple[int, ...]
    ndim: int
    dtype: np.dtype[Any]


def shaped(x: Any, core: int) -> Shaped:
    """Lengths of leading axes that are not known are 1, which goes with all; those of `core` axes must be."""
    leading = x.ndim - core
    return Shaped(tuple(1 if k < leading and np.isnan(n) else n for k, n in enumerate(x.shape)), x.ndim, x.dtype)


class Result(NamedTuple):
    """Properties of a result that are known before it is computed."""

    name: str
    shape: Shape
    dtype: Any


class Item:
    """One result of several."""

    def __init__(self, place: int, name: str) -> None:
        self.place, self.__name__ = place, name

    def __call__(self, values: Sequence[Any]) -> Any:
        return values[self.place]


def of_blocks(call: Sent, name: str, inputs: Sequence[tuple[Any, Shape]], outputs: Sequence[Result]) -> list[Any]:
    """Dask arrays of the results of a function, named so, of arrays with their core shapes; nothing is computed."""
    blockwise: Any = import_module("dask.array").blockwise
    axes = max(a.ndim - len(core) for a, core in inputs)
    fresh = count(axes)  # indices of core axes, which are no others': those of arguments are contracted
    indexed: list[Any] = []
    for a, core in inputs:
        leading = a.ndim - len(core)
        indexed += [a, (*range(axes - leading, axes), *(next(fresh) for _ in core))]
    batch = tuple(range(axes))
    metas = [np.empty((0,) * (axes + len(r.shape)), r.dtype) for r in outputs]
    cores = [{next(fresh): size for size in r.shape} for r in outputs]
    if len(outputs) == 1:
        return [blockwise(call, (*batch, *cores[0]), *indexed, new_axes=cores[0], concatenate=True, meta=metas[0])]
    together = blockwise(call, batch, *indexed, concatenate=True, meta=np.empty((0,) * axes, object))
    return [
        blockwise(Item(k, f"{name}-{r.name}"), (*batch, *core), together, batch, new_axes=core, meta=meta)
        for k, (r, core, meta) in enumerate(zip(outputs, cores, metas, strict=True))
    ]
