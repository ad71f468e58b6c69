"""What each library of arrays has: a current stream, memory that follows it, or neither.

PyTorch and CuPy have both. JAX has neither, and its arrays cannot be written: work on them is on a stream of our own, which
waits for theirs, and is done when a call returns. Of others the CUDA array interface (version 3) is asked, or DLPack; results
are then `DeviceArray`s on the legacy stream. None of them is imported here: who calls with their arrays has done so.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from . import dlpack
from .device_array import LEGACY, DeviceArray
from .driver import Device, device, ordinal_of, released


class Library(Protocol):
    """How a library's arrays are taken, and results made. `name` is of an argument, for errors."""

    title: str

    def on_device(self, x: Any) -> bool:
        """Whether an array of the library is on a device."""

    def ordinal(self, x: Any, name: str) -> int:
        """The device that an array is on."""

    def stream(self, ordinal: int) -> int:
        """Where work on arrays is to be begun."""

    def view(self, x: Any, stream: int, name: str) -> DeviceArray:
        """Where an array lies; what is begun on `stream` from now on finds its elements there. Raises TypeError."""

    def view_to_write(self, x: Any, stream: int, name: str) -> DeviceArray:
        """As `view`, of an array of the caller's for results. Raises TypeError or ValueError where it cannot be written."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], ordinal: int, stream: int) -> tuple[Any, DeviceArray]:
        """A result, for `finish`, and where it lies. Raises MemoryError, or the library's own error."""

    def finish(self, results: Sequence[Any], ordinal: int, stream: int) -> list[Any]:
        """The library's arrays of results, once all work on them is begun. Views must be kept until then."""


def _writable(view: DeviceArray, name: str) -> DeviceArray:
    """The same, if each element has a place of its own that may be written."""
    if not view.writable:
        raise ValueError(f"{name} is read-only")
    steps = sorted((abs(s), n) for s, n in zip(view.strides, view.shape, strict=True) if n > 1)
    reach = view.dtype.itemsize
    for step, n in steps:
        if step < reach:
            raise ValueError(f"{name} has elements that share memory; give an array whose elements have each their own")
        reach += step * (n - 1)
    return view


class _Torch:
    title = "PyTorch"

    def on_device(self, x: Any) -> bool:
        return bool(x.is_cuda)

    def ordinal(self, x: Any, name: str) -> int:
        return int(x.device.index)

    def stream(self, ordinal: int) -> int:
        return int(sys.modules["torch"].cuda.current_stream(ordinal).cuda_stream)

    def view(self, x: Any, stream: int, name: str) -> DeviceArray:
        if x.requires_grad:
            raise TypeError(f"{name} requires a gradient, which does not pass through this function; give {name}.detach()")
        if str(x.layout) != "torch.strided":
            raise TypeError(f"{name} has layout {x.layout}; give {name}.to_dense()")
        x = x.resolve_neg().resolve_conj()
        try:
            dtype = np.dtype(str(x.dtype).removeprefix("torch."))
        except TypeError:
            raise TypeError(f"{name} holds {x.dtype}, which NumPy does not know; convert it to float32 or float64") from None
        strides = tuple(s * dtype.itemsize for s in x.stride())
        if x._is_zerotensor():
            raise TypeError(f"{name} is a tensor of zeros that PyTorch does not store; give {name}.clone()")
        return DeviceArray(x.data_ptr(), tuple(x.shape), strides, dtype, x.device.index, x)

    def view_to_write(self, x: Any, stream: int, name: str) -> DeviceArray:
        if x.is_neg() or x.is_conj():
            raise ValueError(f"{name} is a view whose elements are negated or conjugated when read; give another array")
        return _writable(self.view(x, stream, name), name)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], ordinal: int, stream: int) -> tuple[Any, DeviceArray]:
        torch = sys.modules["torch"]
        x = torch.empty(shape, dtype=getattr(torch, dtype.name), device=f"cuda:{ordinal}")
        return x, self.view(x, stream, "a result")

    def finish(self, results: Sequence[Any], ordinal: int, stream: int) -> list[Any]:
        return list(results)


class _CuPy:
    title = "CuPy"

    def on_device(self, x: Any) -> bool:
        return True

    def ordinal(self, x: Any, name: str) -> int:
        return int(x.device.id)

    def stream(self, ordinal: int) -> int:
        cuda = sys.modules["cupy"].cuda
        with cuda.Device(ordinal):
            return int(cuda.get_current_stream().ptr)

    def view(self, x: Any, stream: int, name: str) -> DeviceArray:
        return DeviceArray(x.data.ptr, x.shape, x.strides, x.dtype, x.device.id, x)

    def view_to_write(self, x: Any, stream: int, name: str) -> DeviceArray:
        return _writable(self.view(x, stream, name), name)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], ordinal: int, stream: int) -> tuple[Any, DeviceArray]:
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(ordinal):
            x = cupy.empty(shape, dtype)
        return x, self.view(x, stream, "a result")

    def finish(self, results: Sequence[Any], ordinal: int, stream: int) -> list[Any]:
        return list(results)


def _offers_device_memory(x: Any) -> bool:
    if hasattr(x, "__cuda_array_interface__"):
        return True
    return hasattr(x, "__dlpack_device__") and int(x.__dlpack_device__()[0]) in (dlpack.CUDA, dlpack.CUDA_MANAGED)


class _Memory:
    """Memory of a device's, dropped when nothing refers to this object: perhaps on a thread that may not call the driver."""

    def __init__(self, place: Device, size: int, stream: int) -> None:
        place.reclaim()
        self.pointer = place.allocate(size, stream)
        released(self, place, Device.drop, self.pointer)


class _Others:
    """Libraries that are known by what their arrays offer only."""

    title = "the CUDA array interface"

    def on_device(self, x: Any) -> bool:
        return _offers_device_memory(x)

    def ordinal(self, x: Any, name: str) -> int:
        if hasattr(x, "__dlpack_device__"):
            return int(x.__dlpack_device__()[1])
        pointer = x.__cuda_array_interface__["data"][0]
        return ordinal_of(pointer) if pointer else 0

    def stream(self, ordinal: int) -> int:
        return LEGACY

    def view(self, x: Any, stream: int, name: str) -> DeviceArray:
        if not hasattr(x, "__cuda_array_interface__"):
            return _by_dlpack(x, stream, name)
        told = x.__cuda_array_interface__
        if told.get("mask") is not None:
            raise TypeError(f"{name} has a mask; fill its elements with numbers")
        ordinal, dtype, shape = self.ordinal(x, name), np.dtype(told["typestr"]), tuple(told["shape"])
        if told.get("stream") is not None:
            device(ordinal).follow(stream, told["stream"])
        pointer, read_only = told["data"]
        strides = told.get("strides") or dlpack.compact(shape, dtype.itemsize)
        return DeviceArray(pointer or 0, shape, tuple(strides), dtype, ordinal, x, not read_only)

    def view_to_write(self, x: Any, stream: int, name: str) -> DeviceArray:
        return _writable(self.view(x, stream, name), name)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], ordinal: int, stream: int) -> tuple[Any, DeviceArray]:
        strides = dlpack.compact(shape, dtype.itemsize)
        memory = _Memory(device(ordinal), dtype.itemsize * int(np.prod(shape)), stream)
        x = DeviceArray(memory.pointer, shape, strides, dtype, ordinal, memory, True, stream)
        return x, x

    def finish(self, results: Sequence[Any], ordinal: int, stream: int) -> list[Any]:
        return list(results)


class _Jax(_Others):
    title = "JAX"

    def on_device(self, x: Any) -> bool:
        """Not of values that are traced, which are nowhere: JAX says so when they are made arrays."""
        try:
            return any(d.platform in ("gpu", "cuda") for d in x.devices())
        except TypeError:
            return False

    def ordinal(self, x: Any, name: str) -> int:
        if len(x.devices()) > 1:
            raise ValueError(f"{name} is spread over {len(x.devices())} devices; give an array on one")
        return int(x.__dlpack_device__()[1])

    def stream(self, ordinal: int) -> int:
        return device(ordinal).own_stream

    def view(self, x: Any, stream: int, name: str) -> DeviceArray:
        self.ordinal(x, name)
        return _by_dlpack(x, stream, name)

    def view_to_write(self, x: Any, stream: int, name: str) -> DeviceArray:
        raise TypeError(f"{name} is an array of JAX's, which cannot be written; call without out=")

    def finish(self, results: Sequence[Any], ordinal: int, stream: int) -> list[Any]:
        """Done before it returns: JAX would use the arguments' memory again, and knows nothing of our stream."""
        device(ordinal).synchronize(stream)
        from_dlpack = import_module("jax.dlpack").from_dlpack
        return [from_dlpack(DeviceArray(x.pointer, x.shape, x.strides, x.dtype, x.ordinal, x.owner)) for x in results]


def _by_dlpack(x: Any, stream: int, name: str) -> DeviceArray:
    """An array by its capsule, which keeps it."""
    capsule = x.__dlpack__(stream=stream)
    try:
        layout, (_, ordinal) = dlpack.read(capsule)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    pointer, shape, strides, dtype, writable = layout
    return DeviceArray(pointer, shape, strides, dtype, ordinal, capsule, writable)


OTHERS: Library = _Others()
NAMED: tuple[tuple[str, str, Library], ...] = (
    ("torch", "Tensor", _Torch()),
    ("cupy", "ndarray", _CuPy()),
    ("jax", "Array", _Jax()),
)
"""Libraries that are known by name: the module, the class of its arrays there."""
