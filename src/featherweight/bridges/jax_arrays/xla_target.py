"""Compiled functions as targets of XLA's custom calls."""

from __future__ import annotations

import ctypes
from typing import Any

import jax
import numpy as np

from ...engine import cache
from ...engine.backends.cuda import driver
from ...engine.backends.cuda.code import KernelRow
from ...engine.backends.llvm.jit import Code, compile_optimized, host
from ...engine.forks import new_lock
from ...engine.function import CompiledFunction
from ..xla.device_handler import DRIVER, emit_device_handler
from ..xla.host_handler import emit_handler

_lock = new_lock()
_targets: dict[str, tuple[Code, Any]] = {}  # by name; XLA never removes a target, so its code must stay


def target(function: CompiledFunction[Any], precision: str, many: bool) -> str:
    """Return the name of the target that computes one state, or many. Equal functions share a name in all processes."""
    machine = function.machine_code
    name = f"featherweight.{cache.key('xla', machine.identity, precision, many)}"
    with _lock:
        if name not in _targets:
            handler = _handler(emit_handler(function.program, precision, many, host().triple))
            code = machine.code(precision, many)
            _set_words(handler, code.address("loop" if many else "single"), machine.states_of_thread)
            _register(name, "cpu", handler, code)
    return name


def device_target(function: CompiledFunction[Any], precision: str) -> str:
    """Return the name of the target that launches the kernel, for one state or many, on each of JAX's CUDA devices.

    Kernels are loaded on all of these devices. Raises ImportError without cuda-core, and RuntimeError without a device.
    """
    ordinals = sorted(device.local_hardware_id for device in jax.local_devices(backend="cuda"))
    code = function.device_code
    name = f"featherweight.{cache.key('xla', code.identity, precision, 'cuda')}"
    with _lock:
        if name not in _targets:
            table = np.zeros((ordinals[-1] + 1, len(KernelRow._fields)), np.uint64)
            kernels = []
            for ordinal in ordinals:
                device = driver.device(ordinal)
                kernels.append(code.kernel(device, precision))
                table[ordinal] = kernels[-1].row(device)
            program = function.program
            handler = _handler(emit_device_handler(program.shapes, len(program.inputs)))
            _set_words(handler, *map(driver.address, DRIVER), table.ctypes.data, len(table))
            _register(name, "CUDA", handler, (table, kernels))
    return name


def _handler(ir: str) -> Code:
    """Return a separate copy of the code, because each handler has its own words."""
    return Code(cache.kept(lambda: compile_optimized(ir), "xla", host(), ir), "handler", "words")


def _set_words(handler: Code, *words: int) -> None:
    ctypes.memmove(handler.address("words"), (ctypes.c_uint64 * len(words))(*words), 8 * len(words))


def _register(name: str, platform: str, handler: Code, refers_to: Any) -> None:
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler.address("handler")), platform=platform)
    _targets[name] = handler, refers_to
