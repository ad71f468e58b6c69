"""Compilation of LLVM IR to object code for this machine, and loading of object code.

If LLVM cannot get memory, it terminates the process, or returns the address 0. Therefore memory is requested first, and
MemoryError is raised if there is none.
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
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate, count, islice, pairwise
from typing import Any, NamedTuple
from weakref import WeakSet, WeakValueDictionary

import llvmlite
import llvmlite.binding as llvm

from ...forks import new_lock
from ...threads import processors, share_out
from . import perf_map

MIB = 1 << 20
BYTES_TO_LOAD = (1 * MIB, 4)  # memory that LLVM needs: constant part, and per byte of object code
BYTES_TO_COMPILE = (32 * MIB, 10)  # constant part, and per byte of IR
LONGEST_EXIT, LONGEST_FORK = 10.0, 60.0  # [s] longest waits of the interpreter's exit, and of a fork, for LLVM in other threads
MOST_INLINED = 50  # instructions of a function of loops that is inlined
REGIONS = 16  # memory regions with separate permissions, of which systems limit the number; code needs three or four


class Host(NamedTuple):
    """Properties of a machine that object code depends on, and vector widths that suit its processor."""

    triple: str
    cpu: str
    features: str
    llvm: str
    vector_bytes: int
    fma: bool
    assembly: bool  # whether `x86_assembly` writes parts of traces

    def lanes(self, precision: str) -> int:
        """Return the number of states in one vector."""
        return self.vector_bytes // (8 if precision == "double" else 4)


@functools.cache
def host() -> Host:
    """Return the machine of this process."""
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
    """Return LLVM's code generator.

    Small code addresses constants relative to the instruction, which saves bytes: instruction fetch is the bottleneck.
    """
    h = host()
    return _machine_of(h.triple, h.cpu, h.features)


def _machine_of(triple: str, cpu: str, features: str) -> llvm.TargetMachine:
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(cpu=cpu, features=features, opt=2, reloc="pic", codemodel="small")


def machine_for(triple: str, cpu: str) -> llvm.TargetMachine:
    """Return LLVM's code generator for another kind of processor."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return _machine_of(triple, cpu, "")


def compile_object(*modules: str) -> bytes:
    """Compile modules that call each other, in parallel; their instructions are already in order. Return object code."""
    objects = [b""] * len(modules)

    def compile_some(start: int, stop: int) -> None:
        for k in range(start, stop):
            machine = _machine()
            with parsed(modules[k], machine) as module:
                objects[k] = emitted(machine, module)

    share_out(compile_some, len(modules), min(processors(), len(modules)))
    return joined(objects)


def emitted(machine: llvm.TargetMachine, module: llvm.ModuleRef, text: bool = False) -> bytes:
    """Return object code, or assembly text.

    llvmlite admits one thread at a time to LLVM, but a module in its own context needs no lock.
    """
    emit = _emit_without_lock()
    if emit is None:
        return machine.emit_assembly(module).encode() if text else bytes(machine.emit_object(module))
    with llvm.ffi.OutputString() as error:
        with _compilers.emitting:
            buffer = emit(machine, module, int(not text), error)
        if not buffer:
            raise RuntimeError(str(error))
    try:
        return ctypes.string_at(llvm.ffi.lib.LLVMPY_GetBufferStart(buffer), llvm.ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        llvm.ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


@functools.cache
def _emit_without_lock() -> Callable[..., int] | None:
    """Return llvmlite's own function by its symbol in the library; None if it is not the expected one."""
    try:
        known = llvm.ffi.lib.LLVMPY_TargetMachineEmitToMemory
        emit = ctypes.CDLL(llvm.ffi.lib._name).LLVMPY_TargetMachineEmitToMemory
        emit.argtypes, emit.restype = known.argtypes, known.restype
    except (AttributeError, OSError):
        return None
    return emit


def joined(objects: Sequence[bytes]) -> bytes:
    """Concatenate objects, after their number and lengths."""
    return b"".join([struct.pack(f"<{len(objects) + 1}Q", len(objects), *map(len, objects)), *objects])


def _parts(joined: bytes) -> list[bytes]:
    """Split joined objects."""
    (count,) = struct.unpack_from("<Q", joined)
    lengths = struct.unpack_from(f"<{count}Q", joined, 8)
    ends = list(accumulate(lengths, initial=8 * (count + 1)))
    return [joined[begin:end] for begin, end in pairwise(ends)]


def compile_optimized(ir: str) -> bytes:
    """Compile a small module, for which LLVM's optimizations pay off, for this machine."""
    machine = _machine()
    with parsed(ir, machine) as module:
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
        builder.getModulePassManager().run(module, builder)
        return joined([bytes(machine.emit_object(module))])


def compile_loops(ir: str, machine: llvm.TargetMachine | None = None) -> bytes:
    """Compile kernels with loops, for this machine or another."""
    machine = machine or _machine()
    with parsed(ir, machine) as module:
        optimize_loops(module, machine)
        return joined([emitted(machine, module)])


def compile_together(
    loops: str, others: Mapping[str, Sequence[str]], further: str, exported: Collection[str], machine: llvm.TargetMachine
) -> bytes:
    """Compile a kernel with loops, functions with instructions in order, and IR that calls both, into one object file.

    `others` are modules of one function each, by the name that it gets in `further`; the kernel is called `loop` there. All
    names but `exported` are local to the file.
    """
    _ask_for_memory(BYTES_TO_COMPILE, len(loops) + len(further) + sum(len(text) for texts in others.values() for text in texts))
    with llvm.create_context() as context:

        def read(text: str) -> llvm.ModuleRef:
            module = llvm.parse_assembly(text, context)
            module.triple, module.data_layout = machine.triple, str(machine.target_data)
            return module

        with read(loops) as whole:
            optimize_loops(whole, machine)
            for name, texts in others.items():
                one = read(texts[0])
                for text in texts[1:]:
                    one.link_in(read(text))
                [entry] = [f for f in one.functions if not f.is_declaration and _is_visible(f)]
                entry.name = name
                _make_local(one, {name})
                whole.link_in(one)
            _merge(whole, machine)
            whole.link_in(read(further))
            _make_local(whole, exported)
            return emitted(machine, whole)


def _merge(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Merge constants, and then functions, that are equal, such as those that move rows to lanes."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_constant_merge_pass()
    passes.add_merge_functions_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1)))


def _is_visible(x: llvm.ValueRef) -> bool:
    return bool(x.linkage == llvm.Linkage.external and x.visibility == llvm.Visibility.default)


def _make_local(module: llvm.ModuleRef, exported: Collection[str]) -> None:
    """Hide what a module defines from other files and modules, except some names."""
    for x in (*module.functions, *module.global_variables):
        if not x.is_declaration and x.name not in exported:
            x.visibility, x.linkage = llvm.Visibility.default, llvm.Linkage.internal


def optimize_loops(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Optimize kernels with loops, few of which gain by vectorization or unrolling.

    Sums keep their order, so hardly any loop could be vectorized. Short functions are inlined once, and each function is then
    optimized alone: LLVM's own order, which optimizes a function again for each caller, takes twice as long for time steps of
    simulations, and further optimizations six times as long, without a gain that exceeds 2 %.
    """
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.loop_vectorization = options.slp_vectorization = False
    options.loop_interleaving = options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    before = llvm.create_new_module_pass_manager()
    before.add_sroa_pass()
    before.add_simplify_cfg_pass()
    before.add_instruction_combine_pass()
    before.add_simplify_cfg_pass()
    before.run(module, builder)
    for f in module.functions:
        instructions = (i for block in f.blocks for i in block.instructions)
        if len([*islice(instructions, MOST_INLINED + 1)]) <= MOST_INLINED and b"noinline" not in b" ".join(f.attributes):
            f.add_function_attribute("alwaysinline")
    inlining = llvm.create_new_module_pass_manager()
    inlining.add_always_inliner_pass()
    inlining.add_global_dead_code_eliminate_pass()
    inlining.run(module, builder)
    alone = builder.getFunctionPassManager()
    for f in module.functions:
        if not f.is_declaration:
            alone.run(f, builder)


@contextmanager
def parsed(ir: str, machine: llvm.TargetMachine) -> Iterator[llvm.ModuleRef]:
    """Yield a module in its own context, which exists during the compilation. Raises MemoryError."""
    _ask_for_memory(BYTES_TO_COMPILE, len(ir))
    with llvm.create_context() as context, llvm.parse_assembly(ir, context) as module:
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        yield module


class Compilers:
    """Threads inside LLVM: one in a function of llvmlite, which has a lock for all, and others that emit code.

    The interpreter's exit stops them between two calls of LLVM, because LLVM's data end with the process. A fork does so, too,
    because the child inherits the locks inside LLVM, but no thread that would release them.
    """

    def __init__(self) -> None:
        self._joining = threading.RLock()
        self._emitting: WeakSet[Any] = WeakSet()  # locks
        self._own = _OwnLocks(self._joining, self._emitting)

    @property
    def emitting(self) -> Any:
        """The lock that this thread holds while it emits code. Others have locks of their own, so that none waits."""
        return self._own.emitting

    def stop(self, patience: float) -> None:
        """Wait until no other thread is inside LLVM, for `patience` [s] at most, and let none enter."""
        end = time.monotonic() + patience
        for lock in self._locks():
            self._own.taken.append(lock)  # before it is: Ctrl-C could strike between
            lock.acquire(timeout=max(end - time.monotonic(), 0.0))

    def _locks(self) -> Iterator[Any]:
        yield self._joining
        yield from [*self._emitting]
        yield _lock_of_llvmlite()

    def resume(self) -> None:
        """Let other threads enter LLVM again."""
        while self._own.taken:
            with suppress(RuntimeError):  # the wait took too long
                self._own.taken.pop().release()

    def begin_child(self) -> None:
        """Forget the threads of the parent."""
        self.resume()
        self.__init__()  # type: ignore[misc]


class _OwnLocks(threading.local):
    """Locks of each thread: the one that it holds while it emits code, and those that it took to stop all others."""

    def __init__(self, joining: Any, emitting: WeakSet[Any]) -> None:
        self.emitting, self.taken = threading.RLock(), list[Any]()
        with joining:
            emitting.add(self.emitting)


@functools.cache
def _lock_of_llvmlite() -> Any:
    """Return the lock that llvmlite holds during its calls of LLVM; another lock if it is not where it is expected."""
    try:
        return llvm.ffi.lib._lock._lock
    except AttributeError:
        return threading.RLock()


_compilers = Compilers()
atexit.register(_compilers.stop, LONGEST_EXIT)  # for good
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _compilers.stop(LONGEST_FORK),
        after_in_parent=_compilers.resume,
        after_in_child=_compilers.begin_child,
    )


class Code:
    """Machine code in this process, with the addresses of some symbols: functions or data.

    It is unloaded when this object is freed: keep the object as long as its addresses are used. Raises MemoryError.
    """

    def __init__(self, object_code: bytes, *symbols: str) -> None:
        self.size = len(object_code)  # in bytes
        _ask_for_memory(BYTES_TO_LOAD, self.size)
        library = llvm.JITLibraryBuilder().add_current_process()
        for part in _parts(object_code):
            library.add_object_img(part)
        for symbol in symbols:
            library.export_symbol(symbol)
        try:
            with _linking:
                self._library = library.link(_linker(), f"library {next(_numbers)}")
        except RuntimeError as error:
            raise MemoryError(f"LLVM failed to load the machine code of {', '.join(symbols)}: {error}") from None
        for part in _parts(object_code) if perf_map.WANTED else ():
            perf_map.map_functions(part, {symbol: self.address(symbol) for symbol in symbols})

    def address(self, symbol: str) -> int:
        """Return the address of a requested symbol."""
        return int(self._library[symbol])


@functools.cache
def _linker() -> llvm.LLJIT:
    """Return LLVM's linker, which stays for good. JITLink places an object in one piece, however full the address space is.

    It does not support all features of Windows objects.
    """
    return llvm.create_lljit_compiler(_machine(), use_jit_link=sys.platform != "win32")


_numbers = count()
_linking = new_lock()
_lock = new_lock()
_loaded: WeakValueDictionary[bytes, Code] = WeakValueDictionary()  # by hash of the object code


def load_object(object_code: bytes, *symbols: str) -> Code:
    """Load object code into this process; identical code is loaded once. Raises MemoryError."""
    name = hashlib.sha256(object_code).digest()
    with _lock:
        code = _loaded.get(name)
        if code is None:
            code = _loaded[name] = Code(object_code, *symbols)
        return code


def _ask_for_memory(needed: tuple[int, int], given: int) -> None:
    """Raise MemoryError if the system has not enough memory or memory regions, even after garbage collection."""
    size = needed[0] + needed[1] * given
    try:
        _take_memory(size)
    except OSError:
        gc.collect()
        try:
            _take_memory(size)
        except OSError as error:
            raise MemoryError(
                f"no memory for machine code ({error.strerror}); delete robots and functions that are no longer used"
            ) from None


def _take_memory(size: int) -> None:
    """Allocate and free as much memory as LLVM will need."""
    taken = []
    try:
        for k in range(REGIONS):
            rights = {"prot": mmap.PROT_READ | mmap.PROT_WRITE * (k % 2)} if hasattr(mmap, "PROT_READ") else {}
            taken.append(mmap.mmap(-1, size if k == 1 else mmap.PAGESIZE, **rights))
    finally:
        for area in taken:
            area.close()
