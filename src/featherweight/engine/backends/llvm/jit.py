"""LLVM IR to object code for this machine, and object code to addresses."""

from __future__ import annotations

import functools
from typing import NamedTuple

import llvmlite
import llvmlite.binding as llvm

_loaded: list[llvm.ExecutionEngine] = []  # code lives as long as the process: NumPy keeps bare addresses of it


class Host(NamedTuple):
    """What object code depends on, and the widths that suit the processor."""

    triple: str
    cpu: str
    features: str
    llvm: str
    vector_bytes: int
    fma: bool

    def lanes(self, precision: str) -> int:
        """States that one vector holds."""
        return self.vector_bytes // (8 if precision == "double" else 4)


@functools.cache
def host() -> Host:
    """The machine that this process runs on."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    triple = llvm.get_process_triple()
    intel = triple.startswith(("x86_64", "i686", "amd64"))
    wide = 64 if features.get("avx512f") else 32 if features.get("avx2") else 16
    version = f"{llvmlite.__version__} LLVM {'.'.join(map(str, llvm.llvm_version_info))}"
    fma = not intel or bool(features.get("fma"))
    return Host(triple, llvm.get_host_cpu_name(), features.flatten(), version, wide, fma)


def _machine() -> llvm.TargetMachine:
    """Small code addresses constants relative to the instruction: fewer bytes to fetch, and fetching is the limit."""
    h = host()
    target = llvm.Target.from_triple(h.triple)
    return target.create_target_machine(cpu=h.cpu, features=h.features, opt=2, reloc="pic", codemodel="small")


def compile_object(ir: str) -> bytes:
    """Object code of a module whose instructions are in order already."""
    machine = _machine()
    return bytes(machine.emit_object(_module(ir, machine)))


def compile_optimized(ir: str) -> bytes:
    """Object code of a small module, for which LLVM's optimizations are worth their time."""
    machine = _machine()
    module = _module(ir, machine)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))


def _module(ir: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    module = llvm.parse_assembly(ir)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    return module


def load_object(code: bytes, *symbols: str) -> list[int]:
    """Link object code into this process and return the addresses of `symbols`."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _loaded.append(engine)
    return [int(engine.get_global_value_address(symbol)) for symbol in symbols]
