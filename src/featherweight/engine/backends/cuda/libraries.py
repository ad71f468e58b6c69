"""Libraries of arrays on CUDA devices, and the detection of arguments that are such arrays.

A library may have a current stream, and memory ordered by the stream. PyTorch and CuPy have both. JAX has neither, and its
arrays cannot be written: work on them uses our own stream, which waits for JAX's, and is finished when a call returns. Arrays
of other libraries are read by the CUDA array interface (version 3) or by DLPack; their results are `DeviceArray`s on the legacy
stream. No library is imported here: a caller with arrays of a library has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from importlib import import_module
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..host_arrays import TYPES
from .device_array import CUDA, CUDA_MANAGED, DeviceArray, compact, seen
from .driver import LEGACY, device


class Library:
    """Access to arrays of a library, and creation of results; this base class serves arrays of unknown libraries.

    `name` is the argument's name, for errors.
    """

    title = "the CUDA array interface"

    def on_device(self, x: Any) -> bool:
        """Return whether an array of the library is on a device."""
        if hasattr(x, "__cuda_array_interface__"):
            return True
        return hasattr(x, "__dlpack_device__") and int(x.__dlpack_device__()[0]) in (CUDA, CUDA_MANAGED)

    def ordinal(self, x: Any, name: str) -> int:
        """Return the device of an array."""
        return int(x.__dlpack_device__()[1]) if hasattr(x, "__dlpack_device__") else seen(x, -1, name).ordinal

    def stream(self, ordinal: int) -> int:
        """Return the stream for work on arrays."""
        return LEGACY

    def view(self, x: Any, stream: int, name: str) -> DeviceArray:
        """Return the location of an array; later work on `stream` finds its elements there. Raises TypeError."""
        return seen(x, stream, name)

    def view_to_write(self, x: Any, stream: int, name: str) -> DeviceArray:
        """Return the `view` of a caller's array for results. Raises TypeError or ValueError if the array cannot be written."""
        return _writable(self.view(x, stream, name), name)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], ordinal: int, stream: int) -> tuple[Any, DeviceArray]:
        """Return a result, for `finish`, and its location. Raises MemoryError, or the library's own error."""
        memory = device(ordinal).allocate(dtype.itemsize * int(np.prod(shape)), stream)
        x = DeviceArray(int(memory.handle), shape, compact(shape, dtype.itemsize), dtype, ordinal, memory, True, stream)
        return x, x

    def layout(self, x: Any) -> Hashable:
        """Return everything that a call depends on except the elements and their address; None if unknown at this point."""
        return None

    def address(self, x: Any) -> int:
        """Return the address of the first element of an array with a known layout."""
        raise NotImplementedError

    def finish(self, results: Sequence[Any], ordinal: int, stream: int) -> list[Any]:
        """Return the library's arrays of results, after all work on them has started. Views must be kept until then."""
        return list(results)


def _writable(view: DeviceArray, name: str) -> DeviceArray:
    """Return the view, if each element has its own writable memory."""
    if not view.writable:
        raise ValueError(f"{name} is read-only")
    steps = sorted((abs(s), n) for s, n in zip(view.strides, view.shape, strict=True) if n > 1)
    reach = view.dtype.itemsize
    for step, n in steps:
        if step < reach:
            raise ValueError(f"{name} has elements that share memory; use an array without overlapping elements")
        reach += step * (n - 1)
    return view


DTYPES = {f"torch.float{8 * n}": np.dtype(f"f{n}") for n in (4, 8)}  # tensors with known addresses; others use DLPack


class _Torch(Library):
    title = "PyTorch"

    def on_device(self, x: Any) -> bool:
        return bool(x.is_cuda)

    def ordinal(self, x: Any, name: str) -> int:
        return int(x.device.index)

    def stream(self, ordinal: int) -> int:
        return int(sys.modules["torch"].cuda.current_stream(ordinal).cuda_stream) or LEGACY

    def view(self, x: Any, stream: int, name: str) -> DeviceArray:
        if x.requires_grad:
            raise TypeError(f"{name} requires a gradient, which does not pass through this function; use {name}.detach()")
        if str(x.layout) != "torch.strided":
            raise TypeError(f"{name} has layout {x.layout}; use {name}.to_dense()")
        if x._is_zerotensor():
            raise TypeError(f"{name} is a tensor of zeros that PyTorch does not store; use {name}.clone()")
        if x.is_neg() or x.is_conj():
            x = x.resolve_neg().resolve_conj()
        dtype = DTYPES.get(str(x.dtype))
        if dtype is None:
            return seen(x, stream, name)  # which raises a specific error
        strides = tuple(n * dtype.itemsize for n in x.stride())
        return DeviceArray(x.data_ptr(), tuple(x.shape), strides, dtype, x.device.index, x)  # on the current stream

    def layout(self, x: Any) -> Hashable:
        flags = x.requires_grad, x.is_neg(), x.is_conj(), x._is_zerotensor()
        return None if any(flags) else (x.shape, x.stride(), x.dtype, x.device, x.layout)

    def address(self, x: Any) -> int:
        return int(x.data_ptr())

    def view_to_write(self, x: Any, stream: int, name: str) -> DeviceArray:
        if x.is_neg() or x.is_conj():
            raise ValueError(f"{name} is a view whose elements are negated or conjugated when read; use another array")
        return super().view_to_write(x, stream, name)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], ordinal: int, stream: int) -> tuple[Any, DeviceArray]:
        torch = sys.modules["torch"]
        x = torch.empty(shape, dtype=getattr(torch, dtype.name), device=f"cuda:{ordinal}")
        return x, self.view(x, stream, "a result")


class _CuPy(Library):
    title = "CuPy"

    def on_device(self, x: Any) -> bool:
        return True

    def ordinal(self, x: Any, name: str) -> int:
        return int(x.device.id)

    def stream(self, ordinal: int) -> int:
        cuda = sys.modules["cupy"].cuda
        with cuda.Device(ordinal):
            return int(cuda.get_current_stream().ptr) or LEGACY

    def layout(self, x: Any) -> Hashable:
        return x.shape, x.strides, x.dtype, x.device.id

    def address(self, x: Any) -> int:
        return int(x.data.ptr)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], ordinal: int, stream: int) -> tuple[Any, DeviceArray]:
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(ordinal):
            x = cupy.empty(shape, dtype)
        return x, self.view(x, stream, "a result")


class _Jax(Library):
    title = "JAX"

    def on_device(self, x: Any) -> bool:
        """Return whether a JAX array is on a device; traced values are not, and JAX raises an error when they are converted."""
        try:
            return any(d.platform in ("gpu", "cuda") for d in x.devices())
        except TypeError:
            return False

    def ordinal(self, x: Any, name: str) -> int:
        if len(x.devices()) > 1:
            raise ValueError(f"{name} is spread over {len(x.devices())} devices; use an array on one device")
        return int(x.__dlpack_device__()[1])

    def stream(self, ordinal: int) -> int:
        return device(ordinal).own_stream

    def view(self, x: Any, stream: int, name: str) -> DeviceArray:
        self.ordinal(x, name)
        return seen(x, stream, name)

    def view_to_write(self, x: Any, stream: int, name: str) -> DeviceArray:
        raise TypeError(f"{name} is a JAX array, which cannot be written; call without out=")

    def finish(self, results: Sequence[Any], ordinal: int, stream: int) -> list[Any]:
        """Return the results when they are computed: JAX could reuse the arguments' memory, and does not know our stream."""
        device(ordinal).synchronize(stream)
        from_dlpack = import_module("jax.dlpack").from_dlpack
        return [from_dlpack(DeviceArray(x.pointer, x.shape, x.strides, x.dtype, x.ordinal, x.owner)) for x in results]


OTHERS = Library()
NAMED: tuple[tuple[str, str, Library], ...] = (
    ("torch", "Tensor", _Torch()),
    ("cupy", "ndarray", _CuPy()),
    ("jax", "Array", _Jax()),
)
"""Known libraries: the module, and the class of its arrays."""


__all__ = ["DeviceArray", "Library", "library_of", "library_of_class", "on_device"]

_libraries: WeakKeyDictionary[type, Library | None] = WeakKeyDictionary()


def on_device(x: object) -> bool:
    """Return whether an argument is an array on a device."""
    kind = type(x)
    if kind in TYPES:
        return False
    library = library_of_class(kind)
    return library is not None and library.on_device(x)


def library_of_class(kind: type) -> Library | None:
    """Return the library of a class of arrays, if they may be on a device."""
    if kind not in _libraries:
        _libraries[kind] = _find_library(kind)
    return _libraries[kind]


def _find_library(kind: type) -> Library | None:
    if issubclass(kind, (np.ndarray, np.generic, list, tuple, int, float, complex, str, bytes)):
        return None
    for module, attribute, library in NAMED:
        base = getattr(sys.modules.get(module), attribute, None)
        if base is not None and issubclass(kind, base):
            return library
    return OTHERS


def library_of(arrays: Sequence[Any], names: Sequence[str]) -> Library:
    """Return the library of all arrays of a call on a device. `names` are those of the arguments.

    Raises TypeError for arrays of several libraries, and ValueError for arrays on several devices.
    """
    libraries = [library_of_class(type(x)) or OTHERS for x in arrays]
    first = libraries[0]
    for library, name in zip(libraries, names, strict=True):
        if library is not first:
            raise TypeError(
                f"{names[0]} is an array of {first.title} and {name} one of {library.title}; use arrays of one library"
            )
    ordinals = [first.ordinal(x, name) for x, name in zip(arrays, names, strict=True)]
    for ordinal, name in zip(ordinals, names, strict=True):
        if ordinal != ordinals[0]:
            raise ValueError(f"{names[0]} is on CUDA device {ordinals[0]} and {name} on {ordinal}; use arrays on one device")
    return first
