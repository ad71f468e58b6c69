"""Parts of a robot's file that would change its motion and that simulations ignore."""

from __future__ import annotations

from ..model.contact_rules import (
    TAKEN_AS_EXACT,
    TOUCHING_AS_MESHES,
    TOUCHING_LEFT_OUT,
    TWO_FRICTIONS,
)
from ..model.formats.unsupported import LEFT_OUT, MESHES_IN_FLUID, UNDRIVEN
from .left_out_at_joints import (
    COMPENSATED_TOGETHER,
    CONFLICTING_LIMITS,
    EFFORTS_OF_FOLLOWERS,
    LIMITS_OF_SEVERAL,
    SPRINGS_OF_SEVERAL,
)
from .system import EQUAL_LIMITS, System

CHANGING_MOTION = (
    "actuators",
    "bodies with forces of plugins",
    "limits, forces and drives of joints that close loops",
    MESHES_IN_FLUID,
    UNDRIVEN,
    "physics that is not used",
    "restitution",
    "springs of tendons that yield",
    "springs that yield",
    "static frictions that differ from dynamic ones, which count",
    "swing limits of ball joints",
    TWO_FRICTIONS,
    TOUCHING_LEFT_OUT,
    TOUCHING_AS_MESHES,
    TAKEN_AS_EXACT,
    LEFT_OUT,
    SPRINGS_OF_SEVERAL,
    LIMITS_OF_SEVERAL,
    CONFLICTING_LIMITS,
    EFFORTS_OF_FOLLOWERS,
    COMPENSATED_TOGETHER,
)
"""Keys of a report for parts that change the motion; other parts, such as cameras and sensors, do not."""


def not_simulated(robot: System) -> dict[str, str]:
    """Return the parts of the file that would change the robot's motion and that simulations ignore, by kind.

    A simulation warns about this part of `robot.report()`.
    """
    report = robot.report()
    return {kind: report[kind] for kind in (*CHANGING_MOTION, EQUAL_LIMITS) if kind in report}
