"""A stand-in for `cuda.bindings.driver`, on a machine without a device: it keeps what it is told, and answers as that does."""

from __future__ import annotations

import ctypes
import struct
from collections import Counter
from typing import Any

OUT_OF_MEMORY, NO_DEVICE, INVALID_PTX, NOT_FOUND = 2, 100, 218, 500
TITLES = {
    OUT_OF_MEMORY: (b"CUDA_ERROR_OUT_OF_MEMORY", b"out of memory"),
    NO_DEVICE: (b"CUDA_ERROR_NO_DEVICE", b"no CUDA-capable device is detected"),
    INVALID_PTX: (b"CUDA_ERROR_INVALID_PTX", b"a PTX JIT compilation failed"),
    NOT_FOUND: (b"CUDA_ERROR_NOT_FOUND", b"named symbol not found"),
}
ATTRIBUTES = {
    "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR": 9,
    "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR": 0,
    "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT": 132,
    "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448,
    "CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED": 1,
    "CU_FUNC_ATTRIBUTE_NUM_REGS": 64,
    "CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES": 16,
    "CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK": 1024,
}
CONTEXT, OTHER_CONTEXT, FUNCTION = 0xC0, 0xC1, 0x33
LARGEST = 1 << 30  # bytes that there are


class Names:
    """An enumeration, whose members are their names."""

    def __init__(self, note: Any) -> None:
        self._note = note

    def __getattr__(self, member: str) -> str:
        self._note(member)
        return member


class CUresult:
    CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NO_DEVICE = OUT_OF_MEMORY, NO_DEVICE


class DriverDouble:
    """Functions return tuples that begin with a status. `told` has all calls, `failing` the statuses of those that fail."""

    CUresult = CUresult
    cuuint64_t = int

    def __init__(self, count: int = 2, attributes: dict[str, int] | None = None) -> None:
        self.count, self.attributes = count, ATTRIBUTES | (attributes or {})
        self.told: list[tuple[Any, ...]] = []
        self.failing: dict[str, int] = {}
        self.contexts: list[int] = []
        self.address = 0xADD
        self.memory: dict[int, Any] = {}
        self.launched: list[bytes] = []
        self.constants: set[tuple[str, str]] = set()
        self._log: bytearray | None = None
        self._handles = 1000

    def __getattr__(self, name: str) -> Any:
        if name.startswith("cu"):
            return lambda *arguments: self._answered(name, arguments)
        if name.startswith("CU"):
            return Names(lambda member: self.constants.add((name, member)))
        raise AttributeError(name)

    def _answered(self, name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        self.told.append((name, *arguments))
        if name in self.failing:
            if name == "cuLinkAddData" and self._log is not None:
                self._log[:12] = b"ptxas: line "
            return (self.failing[name], None) if hasattr(type(self), f"_{name}") else (self.failing[name],)
        answer = getattr(self, f"_{name}", lambda *arguments: ())(*arguments)
        if isinstance(answer, int) and answer < 0:
            return -answer, None
        return (0, *answer) if isinstance(answer, tuple) else (0, answer)

    def calls(self, name: str) -> list[list[Any]]:
        return [arguments for other, *arguments in self.told if other == name]

    @property
    def counts(self) -> Counter[str]:
        return Counter(name for name, *_ in self.told)

    def _handle(self, *_: Any) -> int:
        self._handles += 1
        return self._handles

    _cuStreamCreate = _cuEventCreate = _cuModuleLoadDataEx = _cuDeviceGetDefaultMemPool = _handle

    def _cuGetErrorName(self, status: int) -> Any:
        return TITLES[status][0]

    def _cuGetErrorString(self, status: int) -> Any:
        return TITLES[status][1]

    def _cuDriverGetVersion(self) -> int:
        return 13000

    def _cuGetProcAddress(self, name: bytes, version: int, flags: str) -> tuple[int, int]:
        return self.address, 0

    def _cuDeviceGetCount(self) -> int:
        return self.count

    def _cuDeviceGet(self, ordinal: int) -> int:
        return ordinal

    def _cuDeviceGetName(self, length: int, handle: int) -> bytes:
        return b"Stand-in".ljust(length, b"\0")

    def _cuDeviceGetAttribute(self, attribute: str, handle: int) -> int:
        return self.attributes[attribute]

    def _cuDevicePrimaryCtxRetain(self, handle: int) -> int:
        return CONTEXT

    def _cuCtxGetCurrent(self) -> int:
        return self.contexts[-1] if self.contexts else 0

    def _cuCtxPushCurrent(self, context: int) -> tuple[()]:
        self.contexts.append(context)
        return ()

    def _cuCtxPopCurrent(self) -> int:
        return self.contexts.pop()

    def _cuMemPoolGetAttribute(self, pool: int, attribute: str) -> int:
        return 0

    def _cuMemGetInfo(self) -> tuple[int, int]:
        return LARGEST // 2, LARGEST

    def _cuLinkCreate(self, count: int, names: list[str], values: list[Any]) -> int:
        self._log = values[names.index("CU_JIT_ERROR_LOG_BUFFER")]
        return self._handle()

    def _cuLinkComplete(self, state: int) -> tuple[int, int]:
        self._cubin = ctypes.create_string_buffer(b"cubin")
        return ctypes.addressof(self._cubin), 5

    def _cuModuleGetFunction(self, module: int, name: bytes) -> int:
        return FUNCTION if name == b"rows" else -NOT_FOUND

    def _cuFuncGetAttribute(self, attribute: str, function: int) -> int:
        return self.attributes[attribute]

    def _cuLaunchKernel(self, *arguments: Any) -> tuple[()]:
        buffer_key, buffer, size_key, size, end = (ctypes.c_size_t * 5).from_address(arguments[-1])
        assert (buffer_key, size_key, end) == (1, 2, 0)
        self.launched.append(ctypes.string_at(buffer, struct.unpack("P", ctypes.string_at(size, 8))[0]))
        return ()

    def _cuMemAlloc(self, size: int, *_: Any) -> int:
        if size > LARGEST:
            return -OUT_OF_MEMORY
        block = ctypes.create_string_buffer(size)
        self.memory[ctypes.addressof(block)] = block
        return ctypes.addressof(block)

    _cuMemAllocAsync = _cuMemHostAlloc = _cuMemAlloc

    def _cuMemFree(self, pointer: int, *_: Any) -> tuple[()]:
        del self.memory[pointer]
        return ()

    _cuMemFreeAsync = _cuMemFreeHost = _cuMemFree

    def _cuMemcpyHtoDAsync(self, to: int, source: int, size: int, stream: int) -> tuple[()]:
        ctypes.memmove(to, source, size)
        return ()

    _cuMemcpyDtoHAsync = _cuMemcpyHtoDAsync

    def _cuEventElapsedTime(self, begin: int, end: int) -> float:
        return 2.5

    def _cuPointerGetAttribute(self, attribute: str, pointer: int) -> int:
        return 1
