"""What is needed of the CUDA driver, through NVIDIA's own bindings (`cuda-bindings`, which need no toolkit).

Contexts are the devices' primary ones, which PyTorch, CuPy and JAX share. Streams and memory are plain numbers, as those
libraries tell them. Nothing of CUDA is loaded before the first call here.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property
from typing import Any

import numpy as np

from .driver_calls import MOST_ARGUMENT_BYTES, AssemblerLog, Context, LaunchParameters, bindings, call, constant, forked

OPTIMIZATION = 4  # the assembler's highest level
OLDEST_DRIVER = 12000  # 1000 major + 10 minor: whose functions compiled callers know
POOLED_BYTES = 1 << 30  # of freed memory that a device's pool keeps: else the system gets it back at each synchronization

_parameters = LaunchParameters()


def devices() -> int:
    """How many devices there are. Raises ImportError without cuda-bindings, RuntimeError without a driver or any device."""
    return int(call("cuDeviceGetCount"))


def ordinal_of(pointer: int) -> int:
    """The number of the device that memory is on. Raises RuntimeError where it is not a device's."""
    return int(call("cuPointerGetAttribute", constant("CUpointer_attribute", "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL"), pointer))


def address(name: str) -> int:
    """Of a function of the driver, for callers that are compiled. Raises as `devices`, and RuntimeError where it has none."""
    flags = constant("CUdriverProcAddress_flags", "CU_GET_PROC_ADDRESS_DEFAULT")
    found = int(call("cuGetProcAddress", name.encode(), OLDEST_DRIVER, flags)[0] or 0)
    if not found:
        raise RuntimeError(f"CUDA's driver has no function {name}")
    return found


@cache
def device(ordinal: int = 0) -> Device:
    """A device by its number. Raises as `devices`, and RuntimeError where there is none of that number."""
    count = devices()
    if not 0 <= ordinal < count:
        raise RuntimeError(f"CUDA has no device {ordinal}: there are {count}, numbered from 0")
    return Device(ordinal)


class Device:
    """A device and its primary context. One for each number: `device`."""

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self._handle = call("cuDeviceGet", ordinal)
        context = call("cuDevicePrimaryCtxRetain", self._handle)  # kept until the process ends, as others keep it
        self.context = int(context)  # its address
        self.current = Context(context).current  # to be used in `with`, where the device must be the thread's current one
        self.name = call("cuDeviceGetName", 256, self._handle).partition(b"\0")[0].decode()
        self.capability = self._attribute("COMPUTE_CAPABILITY_MAJOR"), self._attribute("COMPUTE_CAPABILITY_MINOR")
        self.processors = self._attribute("MULTIPROCESSOR_COUNT")
        self.shared_bytes = self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
        self.driver_version = int(call("cuDriverGetVersion"))  # 1000 major + 10 minor
        self._dropped: deque[int] = deque()
        self._pools = bool(self._attribute("MEMORY_POOLS_SUPPORTED"))
        if self._pools:
            self._keep_freed_memory()

    def __repr__(self) -> str:
        return f"<Device {self.ordinal}: {self.name}, sm_{self.capability[0]}{self.capability[1]}>"

    def _attribute(self, name: str) -> int:
        attribute = constant("CUdevice_attribute", f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(call("cuDeviceGetAttribute", attribute, self._handle))

    def _keep_freed_memory(self) -> None:
        """Let the pool keep some, unless others in this process have said how much."""
        pool = call("cuDeviceGetDefaultMemPool", self._handle)
        threshold = constant("CUmemPool_attribute", "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD")
        if not int(call("cuMemPoolGetAttribute", pool, threshold)):
            call("cuMemPoolSetAttribute", pool, threshold, bindings().cuuint64_t(POOLED_BYTES))

    # code

    def assemble(self, ptx: bytes, most_registers: int | None = None) -> bytes:
        """Machine code for this device ("cubin"), by the driver. Raises RuntimeError with what its assembler says.

        The driver's linker takes functions that kernels call as a program's parts, as `ptxas -c` does: they stay functions.
        """
        log = AssemblerLog(**_options(most_registers))
        text = ptx.rstrip(b"\0") + b"\0"
        with self.current():
            state = log.call("cuLinkCreate", *log.options)
            try:
                kind = constant("CUjitInputType", "CU_JIT_INPUT_PTX")
                log.call("cuLinkAddData", state, kind, text, len(text), b"featherweight", 0, [], [])
                address, size = log.call("cuLinkComplete", state)
                return ctypes.string_at(int(address), size)
            finally:
                call("cuLinkDestroy", state)

    def load(self, code: bytes, most_registers: int | None = None) -> Module:
        """Code on this device: cubin as it is, or PTX, which is assembled as a whole and kept by the driver.

        Raises RuntimeError with the driver's log where it is for another device, or is no code.
        """
        log = AssemblerLog(**_options(most_registers))
        with self.current():
            return Module(self, log.call("cuModuleLoadDataEx", code, *log.options))

    def launch(self, kernel: DeviceKernel, blocks: int, threads: int, shared_bytes: int, stream: int, arguments: bytes) -> None:
        """Begin a kernel on a stream. `arguments` are laid out as its parameters are, 4096 bytes at most."""
        size = len(arguments)
        if size > MOST_ARGUMENT_BYTES:
            raise ValueError(f"a kernel's arguments of {size} bytes, but a launch takes at most {MOST_ARGUMENT_BYTES}")
        parameters = _parameters
        parameters.size[0] = size
        parameters.arguments[:size] = arguments
        with self.current():
            call(
                "cuLaunchKernel", kernel.handle, blocks, 1, 1, threads, 1, 1, shared_bytes, stream, 0, parameters.address
            )  # fmt: skip

    # memory

    def free_bytes(self) -> int:
        """Of the device's memory."""
        with self.current():
            return int(call("cuMemGetInfo")[0])

    def allocate(self, size: int, stream: int) -> int:
        """The address of new memory, for use on `stream` from now on. Raises MemoryError."""
        with self.current():
            try:
                return int(call("cuMemAllocAsync", max(size, 1), stream) if self._pools else call("cuMemAlloc", max(size, 1)))
            except MemoryError as error:
                raise MemoryError(f"no memory for {size} bytes on CUDA device {self.ordinal} ({self.name}): {error}") from None

    def free(self, pointer: int, stream: int) -> None:
        """Give memory back, after what was begun on `stream`."""
        with self.current():
            if self._pools:
                call("cuMemFreeAsync", pointer, stream)
            else:
                call("cuMemFree", pointer)

    def drop(self, pointer: int) -> None:
        """Have memory given back at the next `reclaim`. This calls nothing of the driver, so anyone may, at any time."""
        self._dropped.append(pointer)

    def reclaim(self) -> None:
        """Give back memory that was dropped, once nothing on the device uses it any more."""
        dropped = []
        with suppress(IndexError):  # no more
            while True:
                dropped.append(self._dropped.popleft())
        if dropped:
            self.synchronize()
        for pointer in dropped:
            self.free(pointer, 0)

    def pinned(self, size: int) -> PinnedBuffer:
        """Memory of the host that is copied from and to without a detour. Raises MemoryError."""
        with self.current():
            return PinnedBuffer(self, size)

    def to_device(self, pointer: int, host_pointer: int, size: int, stream: int) -> None:
        """Begin a copy to the device. The host's memory must last until it is done."""
        with self.current():
            call("cuMemcpyHtoDAsync", pointer, host_pointer, size, stream)

    def to_host(self, host_pointer: int, pointer: int, size: int, stream: int) -> None:
        """Begin a copy from the device. The host's memory must last until it is done."""
        with self.current():
            call("cuMemcpyDtoHAsync", host_pointer, pointer, size, stream)

    # order in time

    def stream(self) -> int:
        """A new stream, which waits for no other one; it lasts as long as the process."""
        with self.current():
            return int(call("cuStreamCreate", constant("CUstream_flags", "CU_STREAM_NON_BLOCKING")))

    @cached_property
    def own_stream(self) -> int:
        """For callers that have none."""
        return self.stream()

    def event(self, timing: bool = False) -> Event:
        """A mark in a stream's work."""
        flag = "CU_EVENT_DEFAULT" if timing else "CU_EVENT_DISABLE_TIMING"
        with self.current():
            return Event(self, call("cuEventCreate", constant("CUevent_flags", flag)))

    def record(self, event: Event, stream: int) -> None:
        """Set the mark after what was begun on `stream`."""
        with self.current():
            call("cuEventRecord", event.handle, stream)

    def wait(self, stream: int, event: Event) -> None:
        """Let what is begun on `stream` from now on wait for the mark."""
        with self.current():
            call("cuStreamWaitEvent", stream, event.handle, 0)

    def follow(self, stream: int, before: int) -> None:
        """Let what is begun on `stream` from now on wait for what was begun on another."""
        if stream != before:
            event = self.event()
            self.record(event, before)
            self.wait(stream, event)

    def synchronize(self, what: Event | int | None = None) -> None:
        """Let this thread wait: for a mark, for a stream's work, or for all of the device's."""
        with self.current():
            if what is None:
                call("cuCtxSynchronize")
            elif isinstance(what, Event):
                call("cuEventSynchronize", what.handle)
            else:
                call("cuStreamSynchronize", what)

    def milliseconds(self, begin: Event, end: Event) -> float:
        """Between two marks with timing, both of which are passed."""
        with self.current():
            return float(call("cuEventElapsedTime", begin.handle, end.handle))


def _options(most_registers: int | None) -> dict[str, int]:
    """For the driver's assembler."""
    limit = {} if most_registers is None else {"MAX_REGISTERS": most_registers}
    return {"OPTIMIZATION_LEVEL": OPTIMIZATION} | limit


def _release(device: Device, name: str, *arguments: Any) -> None:
    """For finalizers: there is nobody to tell of an error, and what a parent process has is not this one's to release."""
    if not forked():
        with suppress(RuntimeError), device.current():
            call(name, *arguments)


def released(owner: object, device: Device, release: Callable[..., None], *arguments: Any) -> None:
    """Have `release` called when the owner is gone, but not at the interpreter's end: the driver may have gone first."""
    weakref.finalize(owner, release, device, *arguments).atexit = False


class Module:
    """Machine code on a device, unloaded when nothing refers to this object or to a kernel of it."""

    def __init__(self, device: Device, handle: Any) -> None:
        self.device, self._handle = device, handle
        released(self, device, _release, "cuModuleUnload", handle)

    def kernel(self, name: str) -> DeviceKernel:
        """A function by its name. Raises RuntimeError where there is none."""
        with self.device.current():
            return DeviceKernel(self, call("cuModuleGetFunction", self._handle, name.encode()))


class DeviceKernel:
    """A function on a device, and what it takes there: registers and bytes of memory of its own a thread, threads a block."""

    def __init__(self, module: Module, handle: Any) -> None:
        self.module, self.handle = module, handle
        self.registers = self._attribute("NUM_REGS")
        self.local_bytes = self._attribute("LOCAL_SIZE_BYTES")
        self.most_threads = self._attribute("MAX_THREADS_PER_BLOCK")

    def _attribute(self, name: str) -> int:
        return int(call("cuFuncGetAttribute", constant("CUfunction_attribute", f"CU_FUNC_ATTRIBUTE_{name}"), self.handle))

    def allow_shared(self, size: int) -> None:
        """Let launches ask for so many bytes of dynamic shared memory a block: beyond 48 KiB they must be allowed."""
        attribute = constant("CUfunction_attribute", "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES")
        with self.module.device.current():
            call("cuFuncSetAttribute", self.handle, attribute, size)


class Event:
    """A mark in a stream's work, which goes when nothing refers to this object."""

    def __init__(self, device: Device, handle: Any) -> None:
        self.handle = handle
        released(self, device, _release, "cuEventDestroy", handle)


class PinnedBuffer:
    """Memory of the host at `pointer`, seen as bytes by `array`; it lasts as long as either."""

    def __init__(self, device: Device, size: int) -> None:
        self.pointer = int(call("cuMemHostAlloc", max(size, 1), 0))
        memory = (ctypes.c_uint8 * max(size, 1)).from_address(self.pointer)
        released(memory, device, _release, "cuMemFreeHost", self.pointer)
        self.array: np.ndarray[Any, np.dtype[np.uint8]] = np.frombuffer(memoryview(memory).cast("B"), np.uint8, size)
