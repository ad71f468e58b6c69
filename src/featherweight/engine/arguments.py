"""Checks of the arguments and result arrays of one call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..names import unknown_keyword
from .backends.protocol import Executable
from .program import Program

_DOUBLE = np.dtype(np.float64)
_SINGLE = np.dtype(np.float32)


def bound(program: Program, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Return positional and named arguments in order."""
    names = [a.name for a in program.inputs]
    missing = names[len(args) :]
    if len(args) > len(names) or set(missing) != set(named):
        if len(args) > len(names):
            raise TypeError(f"{program} takes {', '.join(names)}; got {len(args)} arguments")
        if unknown := [x for x in named if x not in names]:
            raise unknown_keyword(str(program), unknown[0], [*names, *program.options])
        if twice := [x for x in named if x not in missing]:
            raise TypeError(f"{program} got {twice[0]} twice, by position and by name")
        raise TypeError(f"{program} takes {', '.join(names)}; missing: {', '.join(x for x in missing if x not in named)}")
    return (*args, *(named[n] for n in missing))


def batch_axes(program: Program, arrays: Sequence[Any]) -> tuple[int, ...]:
    """Return the batch axes. Raises TypeError or ValueError for an invalid argument, with its name."""
    batch: tuple[int, ...] | None = None
    for a, argument in zip(arrays, program.inputs, strict=True):
        if a.dtype is not _DOUBLE and a.dtype.kind not in "fiub":
            raise TypeError(f"{program.name}: {argument.name} must hold real numbers; got dtype {a.dtype}")
        axes = a.ndim - len(argument.shape)
        if axes < 0 or a.shape[axes:] != argument.shape:
            expected = ", ".join(["...", *map(str, argument.shape)])
            raise ValueError(f"{program.name}: {argument.name} must have shape ({expected}); got {a.shape}")
        if batch is None:
            batch = a.shape[:axes]
        elif batch != a.shape[:axes]:
            batch = _broadcast(program, arrays, batch, a.shape[:axes])
    assert batch is not None
    return batch


def _broadcast(program: Program, arrays: Sequence[Any], a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        shapes = ", ".join(f"{p.name} {x.shape}" for x, p in zip(arrays, program.inputs, strict=True))
        raise ValueError(f"{program.name}: batch axes do not broadcast: {shapes}") from None


def given_results(program: Program, executable: Executable, out: Any, batch: tuple[int, ...]) -> Sequence[Any]:
    """Return the caller's arrays for the results. Raises ValueError if they do not fit."""
    outputs = program.outputs
    if len(outputs) > 1 and (not isinstance(out, tuple) or len(out) != len(outputs)):
        names = ", ".join(r.name for r in outputs)
        given = str(out.shape) if isinstance(out, np.ndarray) else type(out).__name__
        raise ValueError(f"{program.name}: out must be a tuple of {len(outputs)} arrays ({names}); got {given}")
    arrays: list[Any] = []
    for x, output in zip(out if len(outputs) > 1 else (out,), outputs, strict=True):
        what = f"{program.name}: out" if len(outputs) == 1 else f"{program.name}: out for {output.name}"
        array, shape = executable.result(x, what), batch + output.shape
        if array.shape != shape:
            raise ValueError(f"{what} must be an array of shape {shape}; got {array.shape}")
        if array.dtype.kind not in "fc":  # NumPy would also cast to strings and objects
            raise TypeError(f"{what} must hold floating-point numbers; got dtype {array.dtype}")
        if any(executable.overlap(array, other) for other in arrays):
            raise ValueError(f"{program.name}: the array for {output.name} overlaps with another of out; give each its own")
        arrays.append(array)
    return arrays


def result_type(dtypes: Iterable[np.dtype[Any]]) -> np.dtype[Any]:
    """Return float32 if all arguments are floating-point numbers of at most single precision, otherwise float64."""
    return _SINGLE if all(d.kind == "f" and d.itemsize <= 4 for d in dtypes) else _DOUBLE
