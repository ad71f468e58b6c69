"""Terms of a controller's tick in one call: those of Pinocchio's computeAllTerms.

    python benchmarks/peers/controller_tick.py [--seconds 2] [ROBOT ...]

The terms are mass matrix, bias force, placements and Jacobians of all joints, centre of mass and its Jacobian, kinetic and
potential energy. The script compares one compiled function, which computes shared terms once, with separate calls of the same
functions, and with Pinocchio with preallocated model and data. All are called from Python for one state. Our functions write to
preallocated arrays (`out=`), as Pinocchio does, or make new ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
from measure import machine, markdown, median_times, options
from pinocchio_peer import Pair

import featherweight as fw
from featherweight import CompiledFunction


def all_terms(robot: fw.Robot) -> list[CompiledFunction[Any]]:
    """Return the functions of the terms."""
    return [
        robot.mass_matrix,
        robot.bias_force,
        robot.frame_placement([j.child for j in robot.joints]),
        robot.joint_jacobian,
        robot.center_of_mass,
        robot.center_of_mass_jacobian,
        robot.kinetic_energy,
        robot.potential_energy,
    ]


def row(name: str, seconds: float) -> list[str]:
    pair = Pair(name, 2)
    robot, model, data = pair.robot, pair.model, pair.data
    parts = all_terms(robot)
    tick = robot.together(*parts)
    q, v = pair.q[0].copy(), pair.v[0].copy()
    pq, pv = pair.pq[:, 0].copy(), pair.pv[:, 0].copy()
    pin.computeAllTerms(model, data, pq, pv)
    _, moved = pair.order
    difference = np.abs(tick(q, v).mass_matrix[np.ix_(moved, moved)] - data.M).max() / np.abs(data.M).max()
    assert difference < 1e-12, difference
    given = [(q, v)[: len(f.program.inputs)] for f in parts]

    def apart() -> None:
        for f, arguments in zip(parts, given, strict=True):
            f(*arguments)

    out = tuple(np.empty(r.shape) for r in tick.program.outputs)
    calls = (lambda: tick(q, v, out=out), lambda: tick(q, v), apart, lambda: pin.computeAllTerms(model, data, pq, pv))
    written, one, several, theirs = median_times(calls, seconds)
    saved = 1.0 - tick.operations.flops / sum(o.flops for o in tick.parts.values())
    numbers = [f"{1e6 * t:.2f}" for t in (written, one, several, theirs)]
    ratios = [f"{theirs / written:.1f}", f"{theirs / one:.1f}"]
    return [name, *numbers, *ratios, f"{tick.operations.flops:,}", f"{100 * saved:.0f} %"]


def main() -> None:
    given = options(__doc__, robots=True)
    print(f"{machine()}; Pinocchio {pin.__version__}\n")
    times = ["together, out= [µs]", "together [µs]", "separate calls [µs]", "computeAllTerms [µs]"]
    heads = ["robot", *times, "ratio, out=", "ratio", "flops", "flops saved by sharing"]
    print(markdown(heads, [row(name, given.seconds) for name in given.robots]))


if __name__ == "__main__":
    main()
