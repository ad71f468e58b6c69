"""An array on a device: the location of its elements, and the stream with pending work on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from .driver import LEGACY, core, device

CUDA, CUDA_MANAGED = 2, 13  # DLPack's numbers of kinds of devices


@dataclass(frozen=True, eq=False)
class DeviceArray:
    """An array on a device: strides are in bytes, `owner` keeps the memory alive, `stream` may have pending work on it.

    Other libraries import it without a copy: `torch.from_dlpack(x)`, `cupy.from_dlpack(x)`, `numba.cuda.as_cuda_array(x)`.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    ordinal: int
    owner: Any = field(default=None, repr=False)
    writable: bool = True
    stream: int | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __array__(self, *args: Any, **named: Any) -> Any:
        """Raise TypeError: NumPy would otherwise make an array of this object instead of its elements."""
        raise TypeError(
            f"an array on CUDA device {self.ordinal} is not a NumPy array: "
            "copy it here, by torch.from_dlpack(x).cpu() or cupy.from_dlpack(x).get()"
        )

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "shape": self.shape,
            "strides": self.strides,
            "typestr": self.dtype.str,
            "data": (self.pointer, not self.writable),
            "stream": None if self.stream is None else self.stream or LEGACY,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.ordinal

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a capsule; the user's `stream` waits (the default streams if it is None, none if it is -1)."""
        if copy or (dl_device is not None and tuple(map(int, dl_device)) != self.__dlpack_device__()):
            raise BufferError(f"an array on CUDA device {self.ordinal} can only be exported without a copy")
        if self.stream is not None and stream != -1:
            device(self.ordinal).follow(stream or LEGACY, self.stream or LEGACY)
        reach = sum(s * (n - 1) for s, n in zip(self.strides, self.shape, strict=True)) + self.dtype.itemsize
        memory = core().Buffer.from_handle(self.pointer, reach, owner=self)
        steps = tuple(s // self.dtype.itemsize for s in self.strides)
        view = _views().from_buffer(memory, self.shape, steps, dtype=self.dtype, is_readonly=not self.writable)
        return view.__dlpack__(max_version=max_version)


def seen(x: object, stream: int, name: str) -> DeviceArray:
    """Return the location of an array of any library; later work on `stream` finds its elements there.

    Raises TypeError for an object that is not an array of a NumPy number type. `name` is the argument's name, for errors.
    """
    try:
        view = _views().from_any_interface(x, stream_ptr=stream)
        dtype = np.dtype(view.dtype)
    except (BufferError, TypeError, NotImplementedError) as error:
        raise TypeError(f"{name} is not an array that can be read here ({error}); use one of float32 or float64") from None
    strides = compact(view.shape, dtype.itemsize) if view.strides is None else tuple(s * dtype.itemsize for s in view.strides)
    return DeviceArray(view.ptr, tuple(view.shape), strides, dtype, view.device_id, view, not view.readonly)


def _views() -> Any:
    core()
    return import_module("cuda.core.utils").StridedMemoryView


def compact(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return strides in bytes of contiguous rows."""
    strides = []
    for n in reversed(shape):
        strides.append(itemsize)
        itemsize *= max(n, 1)
    return tuple(reversed(strides))
