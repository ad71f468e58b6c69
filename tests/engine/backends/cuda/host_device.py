"""Emulation of a device by this machine: its memory is the host's, and the threads of a kernel run one after the other.

Kernels come as the LLVM IR for devices, and are compiled for this machine's processor: the code is the same, except for a few
instructions that tell a thread its number.
"""

from __future__ import annotations

import ctypes
import itertools
import re
import weakref
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from featherweight.engine.backends.cuda import code, device_code
from featherweight.engine.backends.cuda.device_array import DeviceArray
from featherweight.engine.backends.cuda.emit_thread import NVIDIA
from featherweight.engine.backends.llvm.jit import emitted, host, joined, load_object, parsed
from featherweight.engine.function import CompiledFunction

needs_fma = pytest.mark.skipif(not host().fma, reason="without hardware fma, this machine rounds differently from devices")
ctypes.CDLL("libgcc_s.so.1", ctypes.RTLD_GLOBAL)  # rounds to float16 if the processor cannot
PHASES = ("fw_bring", "fw_prepare", "fw_compute", "fw_take", "fw_copy_element")


def for_host(ir: str) -> str:
    """Return a module without its kernel, whose phases can be called."""
    ir = re.sub(rf"define {NVIDIA.convention} .*?\n}}\n", "", ir, flags=re.S)
    ir = "\n".join(line for line in ir.splitlines() if not re.match(r"target triple|declare .*llvm\.nvvm|@fw_shared", line))
    for phase in PHASES:
        ir = ir.replace(f"define internal void @{phase}(", f"define void @{phase}(")
    return ir


def compiled(ir: str) -> bytes:
    """Return object code without LLVM's optimizations, because kernels of whole steps run a few times only."""
    h = host()
    target = llvm.Target.from_triple(h.triple)
    machine = target.create_target_machine(cpu=h.cpu, features=h.features, opt=0, reloc="pic", codemodel="small")
    with parsed(ir, machine) as module:
        return joined([emitted(machine, module)])


class HostKernel:
    def __init__(self, ir: str, shared_bytes: int) -> None:
        found = re.findall(r"@(\w+)\(i32 %thread", ir)
        self.phases = [p for p in PHASES if p in found]
        self.object_code = load_object(compiled(for_host(ir)), *self.phases)
        self.most_shared = max(shared_bytes, 48 << 10)


class HostMemory:
    """Memory of the device at `handle`, filled with NaN; it is freed when it is closed or unreferenced."""

    def __init__(self, device: HostDevice, size: int) -> None:
        room = (ctypes.c_uint8 * (size + 64))()
        self.handle, self.size = -(-ctypes.addressof(room) // 64) * 64, size
        device.memory[self.handle] = room
        ctypes.memset(self.handle, 0xFF, size)
        self.close = weakref.finalize(self, device.memory.pop, self.handle, None)


class HostDevice:
    """The part of `driver.Device` that the tests need."""

    ordinal, name, capability, driver_version, shared_bytes = 0, "host", (9, 0), 12080, 232448

    def __init__(self) -> None:
        self.memory: dict[int, Any] = {}
        self.launches: list[tuple[int, int, int]] = []
        self.streams = itertools.count(100)
        self.assembled = 0
        self.own_stream = 7
        self.asked: list[int] = []
        self.free = 1 << 33

    def assemble(self, ptx: bytes, most_registers: int | None = None) -> bytes:
        self.assembled += 1
        return ptx

    def load(self, cubin: bytes, entry: str, shared_bytes: int = 0) -> HostKernel:
        assert entry in ("fw_kernel", "fw_copy")
        return HostKernel(cubin.decode(), shared_bytes)

    def launch(
        self, kernel: HostKernel, blocks: int, threads: int, shared_bytes: int, stream: int, words: Sequence[int]
    ) -> None:
        assert threads <= 1024 and 0 < blocks < 2**31 and shared_bytes <= kernel.most_shared and len(words) <= 512
        self.launches.append((blocks, threads, stream))
        given = [ctypes.c_int64(x) for x in words]
        shared = (ctypes.c_uint8 * max(shared_bytes, 1))()
        begins = [] if kernel.phases == ["fw_copy_element"] else [ctypes.c_void_p(ctypes.addressof(shared))]
        for block in range(blocks):
            ctypes.memset(shared, 0xFF, shared_bytes)  # NaN
            for phase in kernel.phases:
                function = ctypes.CFUNCTYPE(None)(kernel.object_code.address(phase))
                for thread in range(threads):
                    function(ctypes.c_int32(thread), ctypes.c_int32(block), *begins, *given)

    def free_bytes(self) -> int:
        return self.free

    def allocate(self, size: int, stream: int) -> HostMemory:
        self.asked.append(size)
        return HostMemory(self, size)

    def pinned(self, size: int) -> HostMemory:
        return HostMemory(HostDevice(), size)

    def copy(self, goal: int, source: int, size: int, stream: int) -> None:
        ctypes.memmove(goal, source, size)

    def stream(self) -> int:
        return next(self.streams)

    def follow(self, stream: int, before: int) -> None:
        pass

    def synchronize(self, stream: int) -> None:
        pass

    def mark(self, stream: int) -> float:
        """Return the time of launches until now: as many milliseconds as their blocks have threads."""
        return float(sum(blocks * threads for blocks, threads, _ in self.launches))


class Array:
    """An array that reveals only the address of its elements: a NumPy array, declared to be on the device."""

    def __init__(self, x: Any) -> None:
        self.x = np.asarray(x)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        x = self.x
        return {"version": 3, "shape": x.shape, "strides": x.strides, "typestr": x.dtype.str,
                "data": (x.ctypes.data, not x.flags.writeable)}  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


def view_of(x: Any, stream: int, name: str) -> DeviceArray:
    """Return the location of elements, as cuda-core returns it for memory of a device."""
    told = x.__cuda_array_interface__
    strides = told["strides"] or np.empty(told["shape"], told["typestr"]).strides
    pointer, read_only = told["data"]
    return DeviceArray(pointer, told["shape"], strides, np.dtype(told["typestr"]), 0, x, not read_only)


def seen(x: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the data of an array on the device."""
    return np.array(np.asarray(device_code._Shadow(x)))


def install(monkeypatch: Any) -> HostDevice:
    """Install this machine as device 0."""
    device = HostDevice()
    monkeypatch.setattr(code, "assembly", lambda ir, capability, loops=False: ir.encode())
    for name in ("libraries.device", "device_array.device"):
        monkeypatch.setattr(f"featherweight.engine.backends.cuda.{name}", lambda ordinal=0: device)
    monkeypatch.setattr("featherweight.engine.backends.cuda.libraries.seen", view_of)
    monkeypatch.setattr("featherweight.engine.backends.cuda.device_code.device_of", lambda ordinal=0: device)
    return device


def computed(f: CompiledFunction[Any], *args: Any, **named: Any) -> Any:
    """Return a function's results from the emulated device."""
    there: dict[str, Any] = {name: Array(x) for name, x in named.items()}
    result: Any = f(*map(Array, args), **there)
    return type(result)(*map(seen, result)) if isinstance(result, tuple) else seen(result)


def assert_same(f: CompiledFunction[Any], *args: Any, **named: Any) -> None:
    """Check equal bits on the device and here, with one type and shape."""
    results, wanted = computed(f, *args, **named), f(*args, **named)
    for x, y in zip(*(r if isinstance(r, tuple) else (r,) for r in (results, wanted)), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_array_equal(x, y)
