"""CUDA devices through NVIDIA's `cuda-core`, which needs no toolkit.

Contexts are the devices' primary ones, which PyTorch, CuPy and JAX share. Streams are numbers, as those libraries give them.
Nothing of CUDA is loaded before the first call here.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property, lru_cache
from importlib import import_module
from typing import Any

from ....extras import install_command

LEGACY = 1  # the number of the stream for which other streams wait by default; 0 means the same in most places
OLDEST_DRIVER = 12000  # 1000 major + 10 minor: whose functions compiled callers know


@cache
def core() -> Any:
    """Return the module `cuda.core`. Raises ImportError, which says what to install."""
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
    except Exception as error:  # cuda-core has classes of its own for errors of the driver
        raise RuntimeError(f"CUDA device {ordinal} cannot be used; a device needs NVIDIA's driver: {error}") from error


def address(name: str) -> int:
    """Return the address of a function of the driver, for callers that are compiled. Raises RuntimeError where it has none."""
    flags = _bindings().CUdriverProcAddress_flags.CU_GET_PROC_ADDRESS_DEFAULT
    found = int(_called("cuGetProcAddress", name.encode(), OLDEST_DRIVER, flags)[0] or 0)
    if not found:
        raise RuntimeError(f"CUDA's driver has no function {name}")
    return found


def _bindings() -> Any:
    return import_module("cuda.bindings.driver")


def _called(name: str, *arguments: Any) -> Any:
    """Return the results of a function of the driver that cuda-core does not offer."""
    status, *results = getattr(_bindings(), name)(*arguments)
    if status:
        raise RuntimeError(f"{name} failed: {status.name}")
    return results


class Device:
    """A device and its primary context. One for each number: `device`."""

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self.context = 0  # its address, once it is known
        self._of_thread = threading.local()  # cuda-core's object for the device, where it has been current
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
        """Make the device this thread's current one within; gives cuda-core's object for it."""
        place = getattr(self._of_thread, "place", None)
        if place is not None and int(_called("cuCtxGetCurrent")[0]) == self.context:
            yield place
            return
        place = core().Device(self.ordinal)  # starts the driver
        (before,) = _called("cuCtxGetCurrent")
        place.set_current()  # once in each thread, whatever is current there
        self._of_thread.place = place
        try:
            yield place
        finally:
            _called("cuCtxSetCurrent", before)

    # code

    def assemble(self, ptx: bytes, most_registers: int | None = None) -> bytes:
        """Return machine code for this device ("cubin"). Raises an error with the words of the assembler."""
        with self.current():
            return assembled(ptx, self.capability, most_registers)

    def load(self, cubin: bytes, entry: str, shared_bytes: int = 0) -> Any:
        """Return a kernel by its name, which may ask for so many bytes of shared memory a block."""
        with self.current():
            kernel = core().ObjectCode.from_cubin(cubin).get_kernel(entry)
            attribute = _bindings().CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            _called("cuKernelSetAttribute", attribute, shared_bytes, kernel.handle, self.ordinal)
            return kernel

    def launch(self, kernel: Any, blocks: int, threads: int, shared_bytes: int, stream: int, words: Sequence[int]) -> None:
        """Begin a kernel, whose parameters are words of eight bytes, on a stream."""
        with self.current():
            core().launch(_stream(stream), _launch_config(blocks, threads, shared_bytes), kernel, *words)

    # memory

    def free_bytes(self) -> int:
        """Return how much memory nobody has taken."""
        with self.current():
            return int(_called("cuMemGetInfo")[0])

    def allocate(self, size: int, stream: int) -> Any:
        """Return new memory at `handle`, for use on `stream`; it is freed, after what was begun there, when the object goes.

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
        """Return memory of the host at `handle` that is copied without a detour."""
        with self.current():
            return core().LegacyPinnedMemoryResource().allocate(max(size, 1))

    def copy(self, goal: int, source: int, size: int, stream: int) -> None:
        """Begin a copy between addresses of the device, or of the host, whose memory must last until it is done."""
        if size:
            with self.current():
                to, begin = (core().Buffer.from_handle(pointer, size) for pointer in (goal, source))
                begin.copy_to(to, stream=_stream(stream))

    # order in time

    def stream(self) -> int:
        """Return a new stream, which waits for no other one; it lasts as long as the process."""
        with self.current() as place:
            self._streams.append(place.create_stream())
            return int(self._streams[-1].handle)

    @cached_property
    def own_stream(self) -> int:
        """The stream for callers that have none."""
        return self.stream()

    def follow(self, stream: int, before: int) -> None:
        """Let what is begun on `stream` from now on wait for what was begun on another."""
        if stream != before:
            with self.current():
                _stream(stream).wait(_stream(before))

    def synchronize(self, stream: int) -> None:
        """Let this thread wait for a stream's work."""
        with self.current():
            _stream(stream).sync()

    def mark(self, stream: int) -> Any:
        """Return a mark in a stream's work; the difference of two is the time between them [ms]."""
        with self.current():
            return _stream(stream).record(options={"timing_enabled": True})


def assembled(ptx: bytes, capability: tuple[int, int], most_registers: int | None = None) -> bytes:
    """Return machine code of PTX: by the library nvJitLink if it is installed, else by the driver."""
    major, minor = capability
    options = core().LinkerOptions(arch=f"sm_{major}{minor}", max_register_count=most_registers, optimization_level=3)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*nvjitlink", RuntimeWarning)  # that the driver does it: it knows all that we need
        return bytes(core().Linker(core().ObjectCode.from_ptx(ptx), options=options).link("cubin").code)


@lru_cache(256)
def _launch_config(blocks: int, threads: int, shared_bytes: int) -> Any:
    return core().LaunchConfig(grid=blocks, block=threads, shmem_size=shared_bytes)


@lru_cache(256)
def _stream(number: int) -> Any:
    return core().Stream.from_handle(number or LEGACY)
