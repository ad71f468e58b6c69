"""The machine code of a function for the device that it ran on."""

from __future__ import annotations

from sass import Instructions, disassembled

from featherweight.engine.function import CompiledFunction


def instructions(function: CompiledFunction, precision: str) -> Instructions | None:
    """Counts of its instructions; None without machine code for a device, or without a disassembler."""
    cubin = code(function, precision)
    return None if cubin is None else disassembled(cubin)


def code(function: CompiledFunction, precision: str) -> bytes | None:
    """What the driver made of a function; None before it ran on a device."""
    return None
