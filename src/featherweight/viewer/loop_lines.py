"""Loops and couplings of a robot, as lines and as text."""

from __future__ import annotations

import numpy as np

from ..array_types import Array
from ..model.description import Description
from ..model.triangles import homogeneous_matrix
from ..model.types import WORLD, Pose
from ..robot.closed import ClosedRobot
from ..robot.robot import Robot


def loop_lines(robot: Robot, placements: dict[str, Array]) -> dict[str, Array]:
    """Return the ends (n, 2, 3) [m] of the lines of "loops" and of "couplings", for placements (4, 4) of the bodies.

    A loop is drawn as a line from the origin of each of its two bodies to the loop's frame there, and a line between the two
    frames, whose length is zero if the loop is closed. A coupling is a line between the bodies that two joints move. A robot
    without loops or without couplings has no entry for them.
    """
    d = loop_description(robot)
    if d is None:
        return {}
    loops, couplings = [], []
    for loop in d.loops:
        a, at_a = _origins(robot, loop.predecessor, loop.predecessor_frame, placements)
        b, at_b = _origins(robot, loop.successor, loop.successor_frame, placements)
        loops += [(a, at_a), (at_a, at_b), (at_b, b)]
    child = {j.name: j.child for j in d.joints}
    for c in d.couplings:
        end, _ = _origins(robot, child[c.joint], Pose(), placements)
        couplings += [(_origins(robot, child[name], Pose(), placements)[0], end) for name, _ in c.terms]
    lines = {"loops": loops, "couplings": couplings}
    return {name: np.array(ends, dtype=np.float32) for name, ends in lines.items() if ends}


def loop_description(robot: Robot) -> Description | None:
    """Return the description of a robot with loops or couplings; None for other robots."""
    return robot.description if isinstance(robot, ClosedRobot) else None


def _origins(robot: Robot, link: str | None, pose: Pose, placements: dict[str, Array]) -> tuple[Array, Array]:
    """Return the origins of a link and of a frame on it, in the world frame."""
    frame = next((f for f in robot.frames if f.name == link), None)
    T = np.eye(4) if frame is None else homogeneous_matrix(frame.placement)
    if frame is not None and frame.body is not None:
        T = placements[frame.body] @ T
    return T[:3, 3], (T @ homogeneous_matrix(pose))[:3, 3]


def described_loops(robot: Robot) -> list[str]:
    """Describe the loops and couplings of a robot, one line each."""
    d = loop_description(robot)
    if d is None:
        return []
    lines = [f"{loop.name}: {loop.type}, {loop.predecessor or WORLD} – {loop.successor}" for loop in d.loops]
    for c in d.couplings:
        terms = [
            f"{coefficient:.4g} {name}" + (f"^{power}" if power > 1 else "")
            for name, coefficients in c.terms
            for power, coefficient in enumerate(coefficients, 1)
            if coefficient
        ]
        lines.append(f"{c.joint} = {' + '.join([*terms, *([f'{c.offset:.4g}'] if c.offset else [])]) or '0'}")
    return lines + [f"{c.name}: {', '.join(c.joints)}" for c in d.closures]
