"""Derivatives of the dynamics against differences in fifty digits."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

import featherweight as fw
from featherweight.engine.function import CompiledFunction
from featherweight.engine.trace import Arithmetic, evaluate, trace
from oracles.states import Array, States, evaluated

ZERO = 1e-7  # relative to entries: cancelling terms of order one leave rounding of about 1e-15


def directional(f: CompiledFunction[Any], robot: fw.Robot, x: States, k: int, unit: Array) -> Array:
    """Return the derivative of f along a unit of argument k, by central differences with a step of 1e-20."""
    with mpmath.workdps(50):
        numbers = Arithmetic(mpmath.mpf, mpmath.sqrt, mpmath.sin, mpmath.cos)
        h = mpmath.mpf("1e-20")
        at = [[mpmath.mpf(float(y)) for y in part] for part in x]
        rate: Any = unit
        if k == 0:
            program = f.program.inputs[0].rate
            assert program is not None
            of_rate = trace(program.flat, [x.size for x in program.inputs])
            rate = evaluate(of_rate, [at[0], [mpmath.mpf(float(y)) for y in unit]], numbers)
        ends = []
        for side in (h, -h):
            moved = list(at)
            moved[k] = [y + side * dy for y, dy in zip(at[k], rate, strict=True)]
            ends.append(evaluate(f.trace, moved, numbers))
        return np.array([float((p - m) / (2 * h)) for p, m in zip(*ends, strict=True)])


def check_in_fifty_digits(robot: fw.Robot, x: States) -> None:
    rng = np.random.default_rng(5)
    for f, derivatives in (
        (robot.inverse_dynamics, robot.inverse_dynamics_derivatives),
        (robot.forward_dynamics, robot.forward_dynamics_derivatives),
    ):
        one = States(*(y[None] for y in x))
        for way in derivatives.alternatives.values():
            matrices = evaluated(way, *one)
            for k in range(3):
                unit = rng.standard_normal(robot.nv)
                exact = directional(f, robot, x, k, unit)
                assert np.linalg.norm(matrices[k][0] @ unit - exact) <= 1e-8 * max(float(np.linalg.norm(matrices[k])), ZERO)
