"""An array on a device, as it is told to other libraries and by them: where elements lie, which work on them is not done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import dlpack
from .driver import device

LEGACY = 1  # the stream that streams wait for by default, as interfaces write it: 0 says the same in most places


@dataclass(frozen=True, eq=False)
class DeviceArray:
    """Elements on a device: strides are in bytes, `owner` keeps the memory, `stream` has work on it that may not be done.

    Other libraries take it without a copy: `torch.from_dlpack(x)`, `cupy.from_dlpack(x)`, `numba.cuda.as_cuda_array(x)`.
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
        """Raises TypeError: NumPy would make an array of this object, not of its elements."""
        raise TypeError(
            f"an array on CUDA device {self.ordinal} is none of NumPy's: "
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
        return dlpack.CUDA, self.ordinal

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule, whose user's `stream` (of the default streams where it is none; not at all where it is -1) waits."""
        if copy or (dl_device is not None and tuple(map(int, dl_device)) != self.__dlpack_device__()):
            raise BufferError(f"an array on CUDA device {self.ordinal} is handed on as it is, without a copy")
        if self.stream is not None and stream != -1:
            device(self.ordinal).follow(stream or LEGACY, self.stream or LEGACY)
        layout = dlpack.Strided(self.pointer, self.shape, self.strides, self.dtype, self.writable)
        return dlpack.export(layout, self.__dlpack_device__(), self, (max_version or (0, 0)) >= (1, 0))
