"""Libraries of arrays on CUDA devices. A library may have a current stream, and memory that follows the stream.

PyTorch and CuPy have both. JAX has neither, and its arrays cannot be written: work on them is on a stream of our own, which
waits for JAX's, and is done when a call returns. Arrays of other libraries are read by the CUDA array interface (version 3) or
by DLPack; results are then `DeviceArray`s on the legacy stream. No library is imported here: a caller with arrays of a library
has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from .device_array import CUDA, CUDA_MANAGED, DeviceArray, compact, seen
from .driver import LEGACY, device


class Library:
    """The taking of arrays of a library, and making of results: here of arrays that are known only by what they offer.

    `name` is of an argument, for errors.
    """

    title = "the CUDA array interface"

    def on_device(self, x: Any) -> bool:
        """Whether an array of the library is on a device."""
        if hasattr(x, "__cuda_array_interface__"):
            return True
        return hasattr(x, "__dlpack_device__") and int(x.__dlpack_device__()[0]) in (CUDA, CUDA_MANAGED)

    def ordinal(self, x: Any, name: str) -> int:
        """Return the device that an array is on."""
        return int(x.__dlpack_device__()[1]) if hasattr(x, "__dlpack_device__") else seen(x, -1, name).ordinal

    def stream(self, ordinal: int) -> int:
        """Return where work on arrays is to be begun."""
        return LEGACY

    def view(self, x: Any, stream: int, name: str) -> DeviceArray:
        """Return where an array lies; what is begun on `stream` from now on finds its elements there. Raises TypeError."""
        return seen(x, stream, name)

    def view_to_write(self, x: Any, stream: int, name: str) -> DeviceArray:
        """Return the `view` of a caller's array for results. Raises TypeError or ValueError if the array cannot be written."""
        return _writable(self.view(x, stream, name), name)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], ordinal: int, stream: int) -> tuple[Any, DeviceArray]:
        """Return a result, for `finish`, and where it lies. Raises MemoryError, or the library's own error."""
        memory = device(ordinal).allocate(dtype.itemsize * int(np.prod(shape)), stream)
        x = DeviceArray(int(memory.handle), shape, compact(shape, dtype.itemsize), dtype, ordinal, memory, True, stream)
        return x, x

    def layout(self, x: Any) -> Hashable:
        """Return all that a call depends on but the elements and their address; None where that is not known so soon."""
        return None

    def address(self, x: Any) -> int:
        """Return where the first element of an array with a known layout lies."""
        raise NotImplementedError

    def finish(self, results: Sequence[Any], ordinal: int, stream: int) -> list[Any]:
        """Return the library's arrays of results, once all work on them is begun. Views must be kept until then."""
        return list(results)


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


DTYPES = {f"torch.float{8 * n}": np.dtype(f"f{n}") for n in (4, 8)}  # whose tensors are asked where they lie; others by DLPack


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
            raise TypeError(f"{name} requires a gradient, which does not pass through this function; give {name}.detach()")
        if str(x.layout) != "torch.strided":
            raise TypeError(f"{name} has layout {x.layout}; give {name}.to_dense()")
        if x._is_zerotensor():
            raise TypeError(f"{name} is a tensor of zeros that PyTorch does not store; give {name}.clone()")
        if x.is_neg() or x.is_conj():
            x = x.resolve_neg().resolve_conj()
        dtype = DTYPES.get(str(x.dtype))
        if dtype is None:
            return seen(x, stream, name)  # which says what it is
        strides = tuple(n * dtype.itemsize for n in x.stride())
        return DeviceArray(x.data_ptr(), tuple(x.shape), strides, dtype, x.device.index, x)  # on the stream that is current

    def layout(self, x: Any) -> Hashable:
        flags = x.requires_grad, x.is_neg(), x.is_conj(), x._is_zerotensor()
        return None if any(flags) else (x.shape, x.stride(), x.dtype, x.device, x.layout)

    def address(self, x: Any) -> int:
        return int(x.data_ptr())

    def view_to_write(self, x: Any, stream: int, name: str) -> DeviceArray:
        if x.is_neg() or x.is_conj():
            raise ValueError(f"{name} is a view whose elements are negated or conjugated when read; give another array")
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
        return seen(x, stream, name)

    def view_to_write(self, x: Any, stream: int, name: str) -> DeviceArray:
        raise TypeError(f"{name} is an array of JAX's, which cannot be written; call without out=")

    def finish(self, results: Sequence[Any], ordinal: int, stream: int) -> list[Any]:
        """Done before it returns: JAX would use the arguments' memory again, and knows nothing of our stream."""
        device(ordinal).synchronize(stream)
        from_dlpack = import_module("jax.dlpack").from_dlpack
        return [from_dlpack(DeviceArray(x.pointer, x.shape, x.strides, x.dtype, x.ordinal, x.owner)) for x in results]


OTHERS = Library()
NAMED: tuple[tuple[str, str, Library], ...] = (
    ("torch", "Tensor", _Torch()),
    ("cupy", "ndarray", _CuPy()),
    ("jax", "Array", _Jax()),
)
"""Libraries that are known by name: the module, the class of its arrays there."""
