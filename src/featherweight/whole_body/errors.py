"""Errors of frames, as a traced function."""

from __future__ import annotations

from typing import Any

from ..engine.function import CompiledFunction
from ..engine.program import Input, KernelProgram, Output
from ..spatial import Mat3, Vec3
from ..spatial.rotation_vector import rotation_vector


def frame_errors(count: int) -> CompiledFunction[Any]:
    """Return the function of placements and targets (count, 4, 4): the errors (count, 6) in the world's axes.

    They are differences of positions, and rotation vectors from the orientations to those of the targets.
    """
    inputs = tuple(Input(name, (count, 4, 4)) for name in ("placements", "targets"))
    program = KernelProgram("frame_errors", write_errors, (count,), inputs, (Output("errors", (count, 6)),))
    return CompiledFunction(program, "traced")


def write_errors(count: int, placements: Any, targets: Any, errors: Any) -> None:
    """Write the errors of all frames."""
    for k in range(count):
        T, wanted = placements[k], targets[k]
        turn = rotation_vector(rotation(wanted).product(rotation(T).transpose()))
        for i in range(3):
            errors[k][i] = wanted[i][3] - T[i][3]
            errors[k][3 + i] = (turn.x, turn.y, turn.z)[i]


def rotation(T: Any) -> Mat3:
    """Return the rotation of a homogeneous matrix."""
    return Mat3(*(Vec3(T[i][0], T[i][1], T[i][2]) for i in range(3)))
