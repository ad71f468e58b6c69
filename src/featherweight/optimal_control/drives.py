"""Controls of optimal control problems: joint forces, or the controls of a robot's actuators."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from ..algorithms.knots import Drive
from ..array_types import Array
from ..checks import NAME, argument, list_of
from ..model.position_drives import PD
from ..model.types import Actuator, JointType
from ..robot.robot import Robot
from ..simulation.arguments import parts_of

BASES = (JointType.FLOATING, JointType.PLANAR)  # joints without drives
OTHERS = ("tendon", "at", "activation", "muscle", "adhesion", "servo", "motor", "orientation", "delay")


DRIVEN = list_of(NAME).worded("a list of names of joints")


def joint_drives(robot: Robot, names: Iterable[str] | None) -> tuple[Drive, ...]:
    """Return drives whose controls are joint forces. Raises ValueError for joints that do not exist or follow others."""
    if names is None:
        driven = [j for j in robot.joints if j.type not in BASES]
        return tuple(Drive(k) for j in driven for k in range(j.v_slice.start, j.v_slice.stop))
    found: list[Drive] = []
    for name in dict.fromkeys(argument("OptimalControl: driven", names, DRIVEN)):
        j = robot.joint(name)
        if j.v_slice.stop == j.v_slice.start:
            raise ValueError(f"{robot.name}: joint {name!r} depends on others; a control acts on an independent joint")
        found += [Drive(k) for k in range(j.v_slice.start, j.v_slice.stop)]
    return tuple(found)


def actuator_list(robot: Robot, given: PD | Iterable[Actuator] | bool) -> tuple[Actuator, ...]:
    """Return the selected actuators. Raises ValueError if there are none."""
    found = (
        robot.actuators
        if given is True
        else given.actuators(j for j in robot.joints if j.independent)
        if isinstance(given, PD)
        else parts_of(Actuator, "actuators", given, "Actuator(...)")
    )
    if not found:
        raise ValueError(f"{robot.name} has no actuators; give actuators=featherweight.PD(...), or leave them out")
    return found


def drives_of(robot: Robot, actuators: Sequence[Actuator], steps: Collection[float]) -> tuple[Drive, ...]:
    """Return drives of actuators whose force is linear in their control, position and velocity.

    Stiffness and damping are evaluated at the end of a step h (implicitly), as in simulations, so that any gains are stable.
    With x' = x + h v' this is the force at x + h v, and an armature (`simulation.forces.implicit_drives`). For a step of zero
    it is the force at x. Raises ValueError for other actuators, by name, and for `steps` that differ.
    """
    found = []
    for a in actuators:
        other = next((x for x in OTHERS if getattr(a, x) is not None), "slopes" if any(a.slopes) else "")
        if other or a.joint is None:
            raise ValueError(
                f"OptimalControl: actuator {a.name!r} has {other or 'no joint'}; the problem supports actuators of joints "
                "whose force is gain u + b0 + b1 q + b2 v"
            )
        j = robot.joint(a.joint)
        if j.v_slice.stop - j.v_slice.start != 1:
            raise ValueError(
                f"OptimalControl: actuator {a.name!r} acts on {a.joint!r}, which is not an independent joint with one velocity"
            )
        if a.gain == 0.0 or a.gear == 0.0:
            raise ValueError(f"OptimalControl: the control of actuator {a.name!r} has no effect: its gain or gear is zero")
        gear, (b0, b1, b2) = a.gear, a.bias
        if (b1 < 0.0 or b2 < 0.0) and len(steps) > 1:
            raise ValueError(f"OptimalControl: actuator {a.name!r} has stiffness or damping; all phases need the same step")
        h, stiffness, damping = min(steps), gear * gear * b1, gear * gear * b2
        armature = -h * min(damping, 0.0) - h * h * min(stiffness, 0.0)
        damping += h * min(stiffness, 0.0)
        found.append(Drive(j.v_slice.start, gear * a.gain, j.q_slice.start, stiffness, damping, gear * b0, armature))
    return tuple(found)


def with_drives(robot: Robot, drives: Sequence[Drive]) -> Robot:
    """Return the robot with the armatures of drives."""
    more: dict[str, float] = {}
    for d in drives:
        if d.armature:
            joint = next(j for j in robot.joints if j.v_slice.start == d.velocity and j.v_slice.stop > d.velocity)
            more[joint.name] = more.get(joint.name, joint.armature) + d.armature
    return robot.with_armature(more) if more else robot


def control_bounds(actuators: Sequence[Actuator]) -> tuple[Array, Array]:
    """Return the least and greatest controls."""
    low, high = np.array([a.control for a in actuators], dtype=float).T
    return low, high


def force_bounds(robot: Robot, actuators: Sequence[Actuator]) -> tuple[Array, Array]:
    """Return the least and greatest joint forces (nv,): of joints, and of actuators that alone drive a joint."""
    low, high = np.array(robot.effort_bounds, dtype=float)
    joints = [a.joint for a in actuators]
    for a in actuators:
        if a.joint is not None and joints.count(a.joint) == 1:
            k = robot.joint(a.joint).v_slice.start
            ends = sorted(a.gear * x if math.isfinite(x) else math.copysign(x, a.gear * x) for x in a.force)
            low[k], high[k] = max(low[k], ends[0]), min(high[k], ends[1])
    return low, high
