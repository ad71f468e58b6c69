"""What is used of PyTorch, CuPy, JAX and Numba, on a machine without a device: their arrays say that they are on one."""

from __future__ import annotations

import ctypes
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from featherweight.engine.backends.cuda.dlpack import CUDA, Strided, export

Host = np.ndarray[Any, Any]
TORCH_STREAM, CUPY_STREAM, JAX_STREAM = 0x701, 0xC01, 0x1A1


class Tensor:
    """PyTorch's."""

    def __init__(self, host: Host, index: int | None = 0, dtype: str = "", **facts: Any) -> None:
        self.host, self.device = host, SimpleNamespace(index=index)
        self.is_cuda, self.shape, self.dtype = index is not None, host.shape, f"torch.{dtype or host.dtype.name}"
        self.facts = {"requires_grad": False, "layout": "torch.strided", "neg": False} | facts

    def __getattr__(self, name: str) -> Any:
        return self.__dict__["facts"][name]

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self.host.itemsize for s in self.host.strides)

    def data_ptr(self) -> int:
        return self.host.ctypes.data

    def _is_zerotensor(self) -> bool:
        return bool(self.facts.get("zeros"))

    def is_neg(self) -> bool:
        return bool(self.neg)

    def is_conj(self) -> bool:
        return False

    def resolve_neg(self) -> Tensor:
        return Tensor(-self.host, self.device.index) if self.neg else self

    def resolve_conj(self) -> Tensor:
        return self


class Parameter(Tensor):
    """A class that is derived from PyTorch's, as users have them, too."""


class CuPyArray:
    """CuPy's."""

    def __init__(self, host: Host, number: int = 0) -> None:
        self.host, self.device = host, SimpleNamespace(id=number)
        self.data = SimpleNamespace(ptr=host.ctypes.data)
        self.shape, self.strides, self.dtype = host.shape, host.strides, host.dtype


class JaxArray:
    """JAX's; `waiting` has the streams that were told to wait for it."""

    def __init__(self, host: Host, number: int = 0, platform: str = "gpu", spread: int = 1) -> None:
        self.host, self.number, self.platform, self.spread = host, number, platform, spread
        self.waiting: list[int | None] = []

    def devices(self) -> set[Any]:
        return {_JaxDevice(self.platform) for _ in range(self.spread)}

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.number

    def __dlpack__(self, stream: int | None = None) -> Any:
        self.waiting.append(stream)
        h = self.host
        return export(Strided(h.ctypes.data, h.shape, h.strides, h.dtype, True), (CUDA, self.number), self, False)


class JaxTracer(JaxArray):
    def devices(self) -> set[Any]:
        raise TypeError("ConcretizationTypeError")


class _JaxDevice:
    def __init__(self, platform: str) -> None:
        self.platform = platform


class InterfaceArray:
    """Of a library that offers the CUDA array interface alone, as Numba."""

    def __init__(self, host: Host, stream: int | None = None, **told: Any) -> None:
        self.host = host
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": host.shape,
            "typestr": host.dtype.str,
            "strides": None if host.flags.c_contiguous else host.strides,
            "data": (host.ctypes.data, not host.flags.writeable),
            "stream": stream,
        } | told


class DlpackArray:
    """Of a library that offers DLPack alone."""

    def __init__(self, host: Host, kind: int = CUDA) -> None:
        self.host, self.kind = host, kind

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 1

    def __dlpack__(self, stream: int | None = None) -> Any:
        h = self.host
        return export(Strided(h.ctypes.data, h.shape, h.strides, h.dtype, True), (self.kind, 1), self, False)


def modules() -> dict[str, ModuleType]:
    """By their names, as they would be in `sys.modules`."""
    torch, cupy, jax, jax_dlpack = (ModuleType(n) for n in ("torch", "cupy", "jax", "jax.dlpack"))
    torch.Tensor = Tensor  # type: ignore[attr-defined]
    torch.float32, torch.float64 = np.dtype("f4"), np.dtype("f8")  # type: ignore[attr-defined]
    torch.empty = lambda shape, dtype, device: Tensor(np.empty(shape, dtype), int(device[5:]))  # type: ignore[attr-defined]
    torch.cuda = SimpleNamespace(  # type: ignore[attr-defined]
        current_stream=lambda ordinal: SimpleNamespace(cuda_stream=TORCH_STREAM + ordinal)
    )
    cupy.ndarray = CuPyArray  # type: ignore[attr-defined]
    cupy.empty = lambda shape, dtype: CuPyArray(np.empty(shape, dtype))  # type: ignore[attr-defined]
    cupy.cuda = SimpleNamespace(  # type: ignore[attr-defined]
        Device=lambda number: nullcontext(), get_current_stream=lambda: SimpleNamespace(ptr=CUPY_STREAM)
    )
    jax.Array = JaxArray  # type: ignore[attr-defined]
    jax_dlpack.from_dlpack = _from_dlpack  # type: ignore[attr-defined]
    return {"torch": torch, "cupy": cupy, "jax": jax, "jax.dlpack": jax_dlpack}


def _from_dlpack(x: Any) -> JaxArray:
    """Its memory is where the stand-in for the driver has it, on the host."""
    x.__dlpack__(stream=JAX_STREAM)
    memory = (ctypes.c_char * (x.dtype.itemsize * int(np.prod(x.shape)))).from_address(x.pointer)
    host = np.ndarray(x.shape, x.dtype, memory)
    array = JaxArray(host, x.ordinal)
    array.kept = x  # type: ignore[attr-defined]
    return array
