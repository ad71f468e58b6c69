"""LLVM IR to object code for this machine, and object code to addresses.

LLVM ends the process where it gets no memory, or gives the address 0. So memory is asked for first, and MemoryError says that
there is none.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import gc
import hashlib
import mmap
import os
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, count, pairwise
from typing import NamedTuple
from weakref import WeakValueDictionary

import llvmlite
import llvmlite.binding as llvm

from ...threads import processors, share_out

MIB = 1 << 20
BYTES_TO_LOAD = (1 * MIB, 4)  # that LLVM takes: for anything, and for each byte of object code
BYTES_TO_COMPILE = (32 * MIB, 10)  # and for each byte of IR
LONGEST_EXIT = 10.0  # [s] that the interpreter's exit waits for compilations of threads that are left
REGIONS = 16  # of memory with rights of their own, of which systems allow so many a process; code takes three or four


class Host(NamedTuple):
    """Properties of a machine that object code depends on, and the widths that suit its processor."""

    triple: str
    cpu: str
    features: str
    llvm: str
    vector_bytes: int
    fma: bool
    assembly: bool  # whether parts of traces are written by `x86_assembly`

    def lanes(self, precision: str) -> int:
        """States that one vector holds."""
        return self.vector_bytes // (8 if precision == "double" else 4)


@functools.cache
def host() -> Host:
    """The machine that this process runs on."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    features = llvm.get_host_cpu_features()
    triple = llvm.get_process_triple()
    intel = triple.startswith(("x86_64", "i686", "amd64"))
    wide = 64 if features.get("avx512f") else 32 if features.get("avx2") else 16
    version = f"{llvmlite.__version__} LLVM {'.'.join(map(str, llvm.llvm_version_info))}"
    fma = not intel or bool(features.get("fma"))
    complete = wide == 32 or (wide == 64 and bool(features.get("avx512dq")) and bool(features.get("avx512vl")))
    assembly = triple.startswith("x86_64") and "linux" in triple and complete and fma
    return Host(triple, llvm.get_host_cpu_name(), features.flatten(), version, wide, fma, assembly)


def _machine() -> llvm.TargetMachine:
    """Small code addresses constants relative to the instruction: fewer bytes to fetch, and fetching is the limit."""
    h = host()
    return _machine_of(h.triple, h.cpu, h.features)


def _machine_of(triple: str, cpu: str, features: str) -> llvm.TargetMachine:
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(cpu=cpu, features=features, opt=2, reloc="pic", codemodel="small")


def machine_for(triple: str, cpu: str) -> llvm.TargetMachine:
    """LLVM's code generator for processors of another kind."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return _machine_of(triple, cpu, "")


def compile_object(*modules: str, machine: llvm.TargetMachine | None = None) -> bytes:
    """Object code of modules whose instructions are in order already, and which call each other; compiled side by side.

    It is for this machine, or, of one module, for another.
    """
    if len(modules) == 1:
        return _joined([_compiled(modules[0], machine)])
    objects = [b""] * len(modules)

    def compile_some(start: int, stop: int) -> None:
        for k in range(start, stop):
            objects[k] = _compiled(modules[k])

    share_out(compile_some, len(modules), min(processors(), len(modules)))
    return _joined(objects)


def _compiled(ir: str, machine: llvm.TargetMachine | None = None) -> bytes:
    machine = machine or _machine()
    with parsed(ir, machine) as module:
        return emitted(machine, module)


def emitted(machine: llvm.TargetMachine, module: llvm.ModuleRef, text: bool = False) -> bytes:
    """Object code, or assembly text. llvmlite lets one thread at a time into LLVM; what is in a context of its own needs no
    lock."""
    emit = _emit_without_lock()
    if emit is None:
        return machine.emit_assembly(module).encode() if text else bytes(machine.emit_object(module))
    with llvm.ffi.OutputString() as error:
        buffer = emit(machine, module, int(not text), error)
        if not buffer:
            raise RuntimeError(str(error))
    try:
        return ctypes.string_at(llvm.ffi.lib.LLVMPY_GetBufferStart(buffer), llvm.ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        llvm.ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


@functools.cache
def _emit_without_lock() -> Callable[..., int] | None:
    """llvmlite's own function, under another name of its library; None where it is not as it is known to be."""
    try:
        known = llvm.ffi.lib.LLVMPY_TargetMachineEmitToMemory
        emit = ctypes.CDLL(llvm.ffi.lib._name).LLVMPY_TargetMachineEmitToMemory
        emit.argtypes, emit.restype = known.argtypes, known.restype
    except (AttributeError, OSError):
        return None
    return emit


def _joined(objects: Sequence[bytes]) -> bytes:
    """Objects as one, after how many they are and how long."""
    return b"".join([struct.pack(f"<{len(objects) + 1}Q", len(objects), *map(len, objects)), *objects])


def _parts(joined: bytes) -> list[bytes]:
    """The objects that were joined."""
    (count,) = struct.unpack_from("<Q", joined)
    lengths = struct.unpack_from(f"<{count}Q", joined, 8)
    ends = list(accumulate(lengths, initial=8 * (count + 1)))
    return [joined[begin:end] for begin, end in pairwise(ends)]


def compile_optimized(ir: str, machine: llvm.TargetMachine | None = None) -> bytes:
    """Object code of a small module, for which LLVM's optimizations are worth their time; for this machine or another."""
    machine = machine or _machine()
    with parsed(ir, machine) as module:
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
        builder.getModulePassManager().run(module, builder)
        return _joined([bytes(machine.emit_object(module))])


def compile_loops(ir: str, machine: llvm.TargetMachine | None = None) -> bytes:
    """Object code of kernels with loops, for this machine or another."""
    machine = machine or _machine()
    with parsed(ir, machine) as module:
        optimize_loops(module, machine)
        return _joined([emitted(machine, module)])


def optimize_loops(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Optimize kernels with loops, of which few gain by vectors or by being written out.

    Sums keep their order, so hardly any loop could be made of vectors; on steps of simulations, the further optimizations take
    three times as long and gain nothing that is measured.
    """
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.inlining_threshold = 50
    options.loop_vectorization = options.slp_vectorization = False
    options.loop_interleaving = options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


@contextmanager
def parsed(ir: str, machine: llvm.TargetMachine) -> Iterator[llvm.ModuleRef]:
    """A module, and a context with all its constants, for as long as it is compiled. Raises MemoryError."""
    _ask_for_memory(BYTES_TO_COMPILE, len(ir))
    with _compilers, llvm.create_context() as context, llvm.parse_assembly(ir, context) as module:
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        yield module


class Compilers:
    """Threads in LLVM, for which the interpreter's exit waits a while: LLVM's own data end with the process."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count, self._ended = 0, False

    def __enter__(self) -> None:
        with self._changed:
            while self._ended and threading.current_thread() is not threading.main_thread():
                self._changed.wait()  # a daemon, which ends with the process
            self._count += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._count -= 1
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.wait_for(lambda: self._count == 0, LONGEST_EXIT)


_compilers = Compilers()
atexit.register(_compilers.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        after_in_child=lambda: Compilers.__init__(_compilers)
    )  # a child has none of its parent's threads, and perhaps their lock


class Code:
    """Machine code in this process, of which some symbols have addresses: functions or data.

    It is unloaded when nothing refers to this object: who keeps an address keeps the code. Raises MemoryError.
    """

    def __init__(self, object_code: bytes, *symbols: str) -> None:
        _ask_for_memory(BYTES_TO_LOAD, len(object_code))
        library = llvm.JITLibraryBuilder().add_current_process()
        for part in _parts(object_code):
            library.add_object_img(part)
        for symbol in symbols:
            library.export_symbol(symbol)
        try:
            with _linking:
                self._library = library.link(_linker(), f"library {next(_numbers)}")
        except RuntimeError as error:
            raise MemoryError(f"LLVM does not load the machine code of {', '.join(symbols)}: {error}") from None

    def address(self, symbol: str) -> int:
        """Return the address of a symbol that was asked for."""
        return int(self._library[symbol])


@functools.cache
def _linker() -> llvm.LLJIT:
    """LLVM's, which stays for good. JITLink lays out an object in one piece, however full the address space is.

    It does not know all that objects of Windows have.
    """
    return llvm.create_lljit_compiler(_machine(), use_jit_link=sys.platform != "win32")


_numbers = count()
_linking = threading.Lock()
_lock = threading.Lock()
_loaded: WeakValueDictionary[bytes, Code] = WeakValueDictionary()  # by the hash of the object code


def load_object(object_code: bytes, *symbols: str) -> Code:
    """The code in this process, where equal code is once. Raises MemoryError."""
    name = hashlib.sha256(object_code).digest()
    with _lock:
        code = _loaded.get(name)
        if code is None:
            code = _loaded[name] = Code(object_code, *symbols)
        return code


def _ask_for_memory(needed: tuple[int, int], given: int) -> None:
    """Raises MemoryError where the system has not so much memory, or not so many regions of it, after what is garbage went."""
    size = needed[0] + needed[1] * given
    try:
        _take_memory(size)
    except OSError:
        gc.collect()
        try:
            _take_memory(size)
        except OSError as error:
            raise MemoryError(
                f"no memory for machine code ({error.strerror}); let go of robots and functions that are no longer used"
            ) from None


def _take_memory(size: int) -> None:
    """Take and give back what LLVM is going to take."""
    taken = []
    try:
        for k in range(REGIONS):
            rights = {"prot": mmap.PROT_READ | mmap.PROT_WRITE * (k % 2)} if hasattr(mmap, "PROT_READ") else {}
            taken.append(mmap.mmap(-1, size if k == 1 else mmap.PAGESIZE, **rights))
    finally:
        for area in taken:
            area.close()
