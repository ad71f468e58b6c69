"""Functions of Dask arrays: block by block, on Dask's workers.

Chunks of the leading axes are blocks of states, one call each. Chunks of core axes are first joined. Workers receive the
program of a function, not its code; each process compiles it once, or reads it from the cache.
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
    from .ways import Way

KEPT = 128  # received functions that a process keeps compiled

Shape = tuple[int, ...]


class Sent:
    """A callable for blocks that is sent to worker processes; each process holds one copy."""

    def __init__(self, *made_of: Any) -> None:
        self.made_of = made_of

    def __call__(self, *blocks: Any) -> Any:
        raise NotImplementedError

    @cached_property
    def _pickled(self) -> bytes:
        """Pickle by value for functions of a program's main file, as Dask does."""
        content: bytes = import_module("cloudpickle").dumps((type(self), self.made_of))
        return content

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self._pickled,)

    def __dask_tokenize__(self) -> tuple[str, str]:
        """Return the token for names of results, equal for the same function in all processes."""
        return "featherweight", hashlib.sha256(self._pickled).hexdigest()


@lru_cache(KEPT)
def _received(pickled: bytes) -> Sent:
    kind, made_of = pickle.loads(pickled)
    sent: Sent = kind(*made_of)
    sent._pickled = pickled  # pickling again could give different bytes
    return sent


class OnBlocks(Sent):
    """A function for blocks of states.

    Dask computes as many blocks at once as it has threads; by default, a block uses one thread. The first call is serialized,
    so that a process compiles once.
    """

    def __init__(
        self,
        make: Callable[[Way], Callable[..., Any]],
        way: Way,
        threads: int | None,
        device: str | None,
        run: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(make, way, threads, device)
        self._run = make(way) if run is None else run
        self._threads, self._device = threads or 1, device
        self._begun, self._lock = False, Lock()
        self.__name__ = way.program.name

    def __call__(self, *blocks: Any) -> Any:
        if self._begun:
            return self._run(*blocks, threads=self._threads, device=self._device)
        with self._lock:
            values = self._run(*blocks, threads=self._threads, device=self._device)
            self._begun = True
        return values


def taken(x: Any, what: str) -> Any:
    """Return an argument as a Dask array if it is one, otherwise as a NumPy array."""
    later = lazy(x)
    return HostArrays().array(x, what) if later is None else later


class Shaped(NamedTuple):
    """Properties of an array that are known before it is computed."""

    shape: tuple[int, ...]
    ndim: int
    dtype: np.dtype[Any]


def shaped(x: Any, core: int) -> Shaped:
    """Return the shape of an argument, with length 1, which broadcasts, for unknown lengths of leading axes.

    Core axes must have known lengths.
    """
    leading = x.ndim - core
    return Shaped(tuple(1 if k < leading and np.isnan(n) else n for k, n in enumerate(x.shape)), x.ndim, x.dtype)


class Result(NamedTuple):
    """Properties of a result that are known before it is computed."""

    name: str
    shape: Shape
    dtype: Any


class Item:
    """One of several results."""

    def __init__(self, place: int, name: str) -> None:
        self.place, self.__name__ = place, name

    def __call__(self, values: Sequence[Any]) -> Any:
        return values[self.place]


def of_blocks(call: Sent, name: str, inputs: Sequence[tuple[Any, Shape]], outputs: Sequence[Result]) -> list[Any]:
    """Return Dask arrays of the results of a named function, from arrays with their core shapes, without computing them."""
    blockwise: Any = import_module("dask.array").blockwise
    axes = max(a.ndim - len(core) for a, core in inputs)
    fresh = count(axes)  # unique indices of core axes; those of arguments are contracted
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
