"""Arrays on a device, by the library that is installed, and what the driver says of the device."""

from __future__ import annotations

import ctypes
import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from roofline import Device

Array = Any  # of a library
Call = Callable[[], Any]

BLOCK = 3e-3  # seconds that calls between two readings of a clock are to take at least
READINGS = (5, 25)


class Library(Protocol):
    """An array library on one device."""

    name: str

    def array(self, x: Any) -> Array:
        """A NumPy array's copy on the device."""

    def empty(self, like: Array) -> Array: ...

    def numpy(self, x: Array) -> Any: ...

    def copy(self, source: Array, goal: Array) -> None: ...

    def synchronize(self) -> None: ...

    def elapsed(self, call: Call, times: int) -> float:
        """Seconds on the device from the first to the last of some calls, by its own events."""


class Torch:
    name = "PyTorch"

    def __init__(self) -> None:
        self.torch: Any = importlib.import_module("torch")
        if not self.torch.cuda.is_available():
            raise ImportError("PyTorch sees no device")

    def array(self, x: Any) -> Array:
        return self.torch.from_numpy(np.ascontiguousarray(x)).cuda()

    def empty(self, like: Array) -> Array:
        return self.torch.empty_like(like)

    def numpy(self, x: Array) -> Any:
        return x.cpu().numpy()

    def copy(self, source: Array, goal: Array) -> None:
        goal.copy_(source)

    def synchronize(self) -> None:
        self.torch.cuda.synchronize()

    def elapsed(self, call: Call, times: int) -> float:
        begun, ended = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begun.record()
        for _ in range(times):
            call()
        ended.record()
        ended.synchronize()
        return 1e-3 * float(begun.elapsed_time(ended))


class Cupy:
    name = "CuPy"

    def __init__(self) -> None:
        self.cupy: Any = importlib.import_module("cupy")
        if not self.cupy.cuda.is_available():
            raise ImportError("CuPy sees no device")

    def array(self, x: Any) -> Array:
        return self.cupy.asarray(x)

    def empty(self, like: Array) -> Array:
        return self.cupy.empty_like(like)

    def numpy(self, x: Array) -> Any:
        return self.cupy.asnumpy(x)

    def copy(self, source: Array, goal: Array) -> None:
        self.cupy.copyto(goal, source)

    def synchronize(self) -> None:
        self.cupy.cuda.runtime.deviceSynchronize()

    def elapsed(self, call: Call, times: int) -> float:
        begun, ended = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        begun.record()
        for _ in range(times):
            call()
        ended.record()
        ended.synchronize()
        return 1e-3 * float(self.cupy.cuda.get_elapsed_time(begun, ended))


class Processor:
    """NumPy on this machine's processors."""

    name = "NumPy"

    def array(self, x: Any) -> Array:
        return np.ascontiguousarray(x)

    def empty(self, like: Array) -> Array:
        return np.empty_like(like)

    def numpy(self, x: Array) -> Any:
        return x

    def copy(self, source: Array, goal: Array) -> None:
        np.copyto(goal, source)

    def synchronize(self) -> None:
        pass

    def elapsed(self, call: Call, times: int) -> float:
        begun = time.perf_counter()
        for _ in range(times):
            call()
        return time.perf_counter() - begun


LIBRARIES: dict[str, Callable[[], Library]] = {"torch": Torch, "cupy": Cupy, "processor": Processor}


def library(name: str = "auto") -> Library:
    """The one asked for, or the first that sees a device. Raises ImportError where there is none."""
    if name != "auto":
        return LIBRARIES[name]()
    reasons = []
    for candidate in ("torch", "cupy"):
        try:
            return LIBRARIES[candidate]()
        except ImportError as error:
            reasons.append(f"{candidate}: {error}")
    raise ImportError(f"no array library with a device: {'; '.join(reasons)}")


def _calls(call: Call, wait: Call, most: float) -> tuple[int, int]:
    """Calls between two readings of a clock, and readings, so that all take about `most` seconds."""
    call()
    wait()
    begun = time.perf_counter()
    call()
    wait()
    once = max(time.perf_counter() - begun, 1e-6)
    inner = max(1, round(BLOCK / once))
    least, greatest = READINGS
    return inner, min(greatest, max(least, int(most / (inner * once))))


def median_of(call: Call, wait: Call, most: float = 1.0) -> float:
    """Median time of a call [s] by the clock on the wall, in about `most` seconds. `wait` returns when all is computed."""
    inner, readings = _calls(call, wait, most)
    times = []
    for _ in range(readings):
        begun = time.perf_counter()
        for _ in range(inner):
            call()
        wait()
        times.append((time.perf_counter() - begun) / inner)
    return statistics.median(times)


def median_by_events(lib: Library, call: Call, most: float = 1.0) -> float:
    """The same by the device's own events."""
    inner, readings = _calls(call, lib.synchronize, most)
    return statistics.median(lib.elapsed(call, inner) / inner for _ in range(readings))


def copy_bandwidth(lib: Library, size: int) -> float:
    """Bytes read and written in a second by a copy of so many [bytes] on the device."""
    source = lib.array(np.arange(size // 4, dtype=np.float32))
    goal = lib.empty(source)
    return 2.0 * size / median_by_events(lib, lambda: lib.copy(source, goal), 0.3)


# of enum CUdevice_attribute
MULTIPROCESSORS, CLOCK, MEMORY_CLOCK, BUS, RATIO = 16, 13, 36, 37, 87


def driver_device(index: int = 0) -> Device:
    """What the driver says of a device. Raises OSError where there is no driver, RuntimeError where it refuses."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def checked(what: str, status: int) -> None:
        if status:
            raise RuntimeError(f"{what} failed with error {status} of the CUDA driver")

    checked("cuInit", cuda.cuInit(0))
    device, name = ctypes.c_int(), ctypes.create_string_buffer(128)
    checked("cuDeviceGet", cuda.cuDeviceGet(ctypes.byref(device), index))
    checked("cuDeviceGetName", cuda.cuDeviceGetName(name, len(name), device))

    def attribute(number: int) -> int:
        value = ctypes.c_int()
        checked(f"cuDeviceGetAttribute({number})", cuda.cuDeviceGetAttribute(ctypes.byref(value), number, device))
        return value.value

    return described(name.value.decode(), {k: attribute(k) for k in (MULTIPROCESSORS, CLOCK, MEMORY_CLOCK, BUS, RATIO)})


def described(name: str, of: dict[int, int]) -> Device:
    """A device by the driver's attributes: clocks in kHz, two words of the bus a cycle of the memory."""
    bandwidth = 2.0 * 1e3 * of[MEMORY_CLOCK] * of[BUS] / 8.0
    return Device(name, of[MULTIPROCESSORS], 1e3 * of[CLOCK], bandwidth, double=1.0 / of[RATIO])
