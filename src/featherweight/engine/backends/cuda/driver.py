"""CUDA devices through NVIDIA's `cuda-core`, which needs no toolkit.

Contexts are the devices' primary ones, which PyTorch, CuPy and JAX share. Streams are numbers, as in those libraries. CUDA is
loaded at the first call here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property, lru_cache
from importlib import import_module
from typing import Any

from ....extras import install_command, without_warnings

LEGACY = 1  # the stream with which other streams synchronize by default; 0 means the same in most places
OLDEST_DRIVER = 12000  # 1000 major + 10 minor: the first version with the functions that compiled callers use


@cache
def core() -> Any:
    """Return the module `cuda.core`. Raises ImportError with instructions to install it."""
    try:
        return import_module("cuda.core")
    except ImportError as error:
        raise ImportError(f"CUDA needs the package cuda-core: {install_command('cuda')} ({error})") from None


@cache
def device(ordinal: int = 0) -> Device:
    """Return a device by its number. Raises ImportError without cuda-core, RuntimeError without a driver or such a device."""
    try:
        return Device(ordinal)
    except ImportError:
        raise
    except Exception as error:  # cuda-core has its own error classes
        raise RuntimeError(f"CUDA device {ordinal} cannot be used; a device needs NVIDIA's driver: {error}") from error


def address(name: str) -> int:
    """Return the address of a driver function, for compiled callers. Raises RuntimeError if it does not exist."""
    flags = _bindings().CUdriverProcAddress_flags.CU_GET_PROC_ADDRESS_DEFAULT
    found = int(_called("cuGetProcAddress", name.encode(), OLDEST_DRIVER, flags)[0] or 0)
    if not found:
        raise RuntimeError(f"CUDA's driver has no function {name}")
    return found


def _bindings() -> Any:
    return import_module("cuda.bindings.driver")


def _called(name: str, *arguments: Any) -> Any:
    """Return the results of a driver function that cuda-core does not provide."""
    status, *results = getattr(_bindings(), name)(*arguments)
    if status:
        raise RuntimeError(f"{name} failed: {status.name}")
    return results


class Device:
    """A device and its primary context; there is one object per number, returned by `device`."""

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self.context = 0  # its address, once known
        self._of_thread = threading.local()  # cuda-core's object for the device, in threads where it has been current
        self._streams: list[Any] = []
        with self.current() as place:
            self.context = int(place.context.handle)
            self.name = place.name
            self.capability = place.compute_capability.major, place.compute_capability.minor
            self.shared_bytes = place.properties.max_shared_memory_per_block_optin
        self.driver_version = int(_called("cuDriverGetVersion")[0])  # 1000 major + 10 minor

    def __repr__(self) -> str:
        return f"<Device {self.ordinal}: {self.name}, sm_{self.capability[0]}{self.capability[1]}>"

    @contextmanager
    def current(self) -> Iterator[Any]:
        """Make the device this thread's current one within the context; yields cuda-core's object for it."""
        place = getattr(self._of_thread, "place", None)
        if place is not None and int(_called("cuCtxGetCurrent")[0]) == self.context:
            yield place
            return
        place = core().Device(self.ordinal)  # starts the driver
        (before,) = _called("cuCtxGetCurrent")
        place.set_current()  # once in each thread
        self._of_thread.place = place
        try:
            yield place
        finally:
            _called("cuCtxSetCurrent", before)

    # code

    def assemble(self, ptx: bytes, most_registers: int | None = None) -> bytes:
        """Return machine code ("cubin") for this device. Raises an error with the assembler's message."""
        with self.current():
            return assembled(ptx, self.capability, most_registers)

    def load(self, cubin: bytes, entry: str, shared_bytes: int = 0) -> Any:
        """Return a kernel by its name, which may use up to `shared_bytes` of shared memory per block."""
        with self.current():
            kernel = core().ObjectCode.from_cubin(cubin).get_kernel(entry)
            attribute = _bindings().CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            _called("cuKernelSetAttribute", attribute, shared_bytes, kernel.handle, self.ordinal)
            return kernel

    def launch(self, kernel: Any, blocks: int, threads: int, shared_bytes: int, stream: int, words: Sequence[int]) -> None:
        """Launch a kernel on a stream; its parameters are words of eight bytes."""
        with self.current():
            core().launch(_stream(stream), _launch_config(blocks, threads, shared_bytes), kernel, *words)

    # memory

    def free_bytes(self) -> int:
        """Return the size of free memory in bytes."""
        with self.current():
            return int(_called("cuMemGetInfo")[0])

    def allocate(self, size: int, stream: int) -> Any:
        """Return new memory at `handle`, for use on `stream`; it is freed after earlier work there, when the object is freed.

        Raises MemoryError.
        """
        with self.current() as place:
            try:
                return place.memory_resource.allocate(max(size, 1), stream=_stream(stream))
            except Exception as error:
                if "OUT_OF_MEMORY" not in str(error):
                    raise
                raise MemoryError(f"no memory for {size} bytes on CUDA device {self.ordinal} ({self.name}): {error}") from None

    def pinned(self, size: int) -> Any:
        """Return pinned host memory at `handle`, which is copied without an intermediate buffer."""
        with self.current():
            return core().LegacyPinnedMemoryResource().allocate(max(size, 1))

    def copy(self, goal: int, source: int, size: int, stream: int) -> None:
        """Start a copy between addresses of the device or of the host; host memory must remain valid until it is finished."""
        if size:
            with self.current():
                to, begin = (core().Buffer.from_handle(pointer, size) for pointer in (goal, source))
                begin.copy_to(to, stream=_stream(stream))

    # synchronization

    def stream(self) -> int:
        """Return a new stream, which waits for no other one; it exists until the process ends."""
        with self.current() as place:
            self._streams.append(place.create_stream())
            return int(self._streams[-1].handle)

    @cached_property
    def own_stream(self) -> int:
        """The stream for callers without one."""
        return self.stream()

    def follow(self, stream: int, before: int) -> None:
        """Make later work on `stream` wait for earlier work on another stream."""
        if stream != before:
            with self.current():
                _stream(stream).wait(_stream(before))

    def synchronize(self, stream: int) -> None:
        """Wait for a stream's work."""
        with self.current():
            _stream(stream).sync()

    def mark(self, stream: int) -> Any:
        """Return an event on a stream; the difference of two is the time between them [ms]."""
        with self.current():
            return _stream(stream).record(options={"timing_enabled": True})


def assembled(ptx: bytes, capability: tuple[int, int], most_registers: int | None = None) -> bytes:
    """Return machine code of PTX, by the library nvJitLink if it is installed, otherwise by the driver."""
    major, minor = capability
    return bytes(_linker(core(), ptx, f"sm_{major}{minor}", most_registers).link("cubin").code)


@without_warnings
def _linker(core: Any, ptx: bytes, arch: str, most_registers: int | None) -> Any:
    """Return cuda-core's linker, which warns if it uses the driver, although the driver suffices."""
    options = core.LinkerOptions(arch=arch, max_register_count=most_registers, optimization_level=3)
    return core.Linker(core.ObjectCode.from_ptx(ptx), options=options)


@lru_cache(256)
def _launch_config(blocks: int, threads: int, shared_bytes: int) -> Any:
    return core().LaunchConfig(grid=blocks, block=threads, shmem_size=shared_bytes)


@lru_cache(256)
def _stream(number: int) -> Any:
    return core().Stream.from_handle(number or LEGACY)
