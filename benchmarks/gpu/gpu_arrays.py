"""Arrays on a device, by the installed array library, and the device's attributes."""

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

BLOCK = 3e-3  # least time between two readings of a clock [s]
READINGS = (5, 25)


class Library(Protocol):
    """An array library on one device."""

    name: str

    def array(self, x: Any) -> Array:
        """Return a copy of a NumPy array on the device."""

    def empty(self, like: Array) -> Array: ...

    def numpy(self, x: Array) -> Any: ...

    def copy(self, source: Array, goal: Array) -> None: ...

    def synchronize(self) -> None: ...

    def elapsed(self, call: Call, times: int) -> float:
        """Return the time of some calls by device events [s]."""


class Torch:
    name = "PyTorch"

    def __init__(self) -> None:
        self.torch: Any = importlib.import_module("torch")
        if not self.torch.cuda.is_available():
            raise ImportError("PyTorch finds no device")

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
            raise ImportError("CuPy finds no device")

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
    """Return the library of this name, or the first that finds a device; raise ImportError if there is none."""
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
    """Return the calls per reading of the clock, and the readings, for a total of about `most` seconds."""
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
    """Return the median wall-clock time of a call [s], in about `most` seconds. `wait` returns when all calls are done."""
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
    """Return the median time of a call by device events [s]."""
    inner, readings = _calls(call, lib.synchronize, most)
    return statistics.median(lib.elapsed(call, inner) / inner for _ in range(readings))


def copy_bandwidth(lib: Library, size: int) -> float:
    """Return the bandwidth [bytes/s], read and written, of a copy of `size` bytes on the device."""
    source = lib.array(np.arange(size // 4, dtype=np.float32))
    goal = lib.empty(source)
    return 2.0 * size / median_by_events(lib, lambda: lib.copy(source, goal), 0.3)


# of enum CUdevice_attribute
MULTIPROCESSORS, CLOCK, MEMORY_CLOCK, BUS, RATIO = 16, 13, 36, 37, 87


def driver_device(index: int = 0) -> Device:
    """Return a device by its driver; raise OSError without a driver, RuntimeError if the driver reports an error."""
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
    """Return a device by the driver's attributes: clocks in kHz, two bus words per memory cycle."""
    bandwidth = 2.0 * 1e3 * of[MEMORY_CLOCK] * of[BUS] / 8.0
    return Device(name, of[MULTIPROCESSORS], 1e3 * of[CLOCK], bandwidth, double=1.0 / of[RATIO])
