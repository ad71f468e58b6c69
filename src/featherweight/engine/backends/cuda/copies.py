"""Copies of elements with any strides on a device, with conversion: they produce the rows that a kernel needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..llvm.ir import Function, pointer_type
from .emit_thread import ATTRIBUTES, GLOBAL, OUTLINED, Target

AXES = 8
THREADS = 128
ENTRY = "fw_copy"
FLOATS = {2: "half", 4: "float", 8: "double"}  # by size in bytes


def takes(dtype: np.dtype[Any]) -> bool:
    """Return whether elements of a type can be copied; those with the other byte order cannot."""
    return dtype.isnative and (dtype.itemsize in FLOATS if dtype.kind == "f" else dtype.kind in "iub")


def emit_copy(source: np.dtype[Any], goal: np.dtype[Any], target: Target) -> str:
    """Return a module whose kernel copies elements of one type to another, a floating-point one.

    Its parameters are eight bytes each: the number of elements, the addresses of the first element and of its goal, and for
    each of `AXES` axes, the last first, its length and the strides in bytes on both sides.
    """
    lengths = [(f"%length{k}", f"%from{k}", f"%to{k}") for k in range(AXES)]
    G = pointer_type(GLOBAL)
    parameters = ["i64 %count", f"{G} %from", f"{G} %to", *(f"i64 {x}" for axis in lengths for x in axis)]
    f = Function("void", "fw_copy_element", ["i32 %thread", "i32 %block", *parameters])
    thread, block = (f.cast("zext", "i32", x, "i64") for x in ("%thread", "%block"))
    element = f.add(f.mul(block, THREADS), thread)
    with f.choice(f.less(element, "%count")) as (yes, no):
        with yes:
            rest, places = element, ["0", "0"]
            for length, *strides in lengths:
                before = f.div(rest, length)
                index = f.sub(rest, f.mul(before, length))
                places = [f.add(place, f.mul(index, stride)) for place, stride in zip(places, strides, strict=True)]
                rest = before
            near, far = (f.at("i8", pointer, place, GLOBAL) for pointer, place in zip(("%from", "%to"), places, strict=True))
            value = _converted(f, f.load(_kind(source), near, align=source.itemsize, space=GLOBAL), source, goal)
            f.store(_kind(goal), value, far, align=goal.itemsize, space=GLOBAL)
        with no:
            pass
    f.ret()
    kernel = Function("void", ENTRY, parameters, target.convention, OUTLINED)
    passed = [f"i32 {kernel.value(x)}" for x in (target.thread, target.block)]
    kernel.call("void", "@fw_copy_element", *passed, *parameters)
    kernel.ret()
    head = f'target triple = "{target.triple}"'
    return "\n".join([head, *target.declarations, str(f), str(kernel), ATTRIBUTES])


def _kind(dtype: np.dtype[Any]) -> str:
    return FLOATS[dtype.itemsize] if dtype.kind == "f" else f"i{8 * dtype.itemsize}"


def _converted(f: Function, value: str, source: np.dtype[Any], goal: np.dtype[Any]) -> str:
    if source.kind != "f":
        return f.cast("sitofp" if source.kind == "i" else "uitofp", _kind(source), value, _kind(goal))
    if source.itemsize == goal.itemsize:
        return value
    return f.cast("fpext" if source.itemsize < goal.itemsize else "fptrunc", _kind(source), value, _kind(goal))


def copy_parameters(
    shape: Sequence[int], source: tuple[int, Sequence[int]], goal: tuple[int, Sequence[int]]
) -> list[tuple[int, list[int]]]:
    """Return the number of elements and the parameters of each launch, for an array of a shape.

    Each side has an address and strides. Axes that are contiguous on both sides are merged; if more than `AXES` remain, there
    are several launches.
    """
    axes: list[tuple[int, int, int]] = []
    for n, a, b in zip(reversed(shape), reversed(source[1]), reversed(goal[1]), strict=True):
        if n == 1:
            continue
        if axes and (a, b) == (axes[-1][0] * axes[-1][1], axes[-1][0] * axes[-1][2]):
            axes[-1] = (axes[-1][0] * n, *axes[-1][1:])
        else:
            axes.append((n, a, b))
    inner = axes[:AXES] + [(1, 0, 0)] * (AXES - len(axes))
    count = int(np.prod([n for n, _, _ in inner]))
    outer = axes[AXES:]
    launches = []
    for index in np.ndindex(*(n for n, _, _ in outer)):
        moved = [sum(i * axis[side] for i, axis in zip(index, outer, strict=True)) for side in (1, 2)]
        launches.append((count, [count, source[0] + moved[0], goal[0] + moved[1], *(x for axis in inner for x in axis)]))
    return launches
