"""What of a robot's file would change its motion, and is not simulated."""

from __future__ import annotations

from ..model.contact_rules import (
    ADHESION,
    CONVEYING,
    SOFT,
    SOFT_HOLDS,
    TOUCHING_AS_MESHES,
    TOUCHING_LEFT_OUT,
    TWO_FRICTIONS,
)
from ..model.formats.unsupported import LEFT_OUT
from .left_out_at_joints import (
    EFFORTS_OF_FOLLOWERS,
    LIMITS_OF_SEVERAL,
    LIMITS_WITHOUT_ROOM,
    SPRINGS_OF_SEVERAL,
)
from .model_view import EQUAL_LIMITS
from .system import System

CHANGING_MOTION = (
    "actuators",
    "bodies with forces of plugins",
    "gravity compensation by drives with limits (actuatorgravcomp), which do not cut it",
    "effort limits of joints that a tendon drives together",
    "effort limits that differ by direction, read as the greater",
    "geoms with drag of their own (fluidshape), taken as their links' boxes",
    "wind",
    "limits of the drives' force along tendons, whose gears differ",
    "springs of tendons that yield",
    "springs that yield",
    CONVEYING,
    ADHESION,
    TWO_FRICTIONS,
    TOUCHING_LEFT_OUT,
    TOUCHING_AS_MESHES,
    SOFT,
    SOFT_HOLDS,
    LEFT_OUT,
    SPRINGS_OF_SEVERAL,
    LIMITS_OF_SEVERAL,
    LIMITS_WITHOUT_ROOM,
    EFFORTS_OF_FOLLOWERS,
)
"""Kinds in a report of a file; others, as cameras and sensors, only show, measure, or name something."""


def not_simulated(robot: System) -> dict[str, str]:
    """What the file holds that would change the robot's motion and that no simulation here knows, by kind: the part of
    `robot.report()` that a simulation warns of."""
    report = robot.report()
    return {kind: report[kind] for kind in (*CHANGING_MOTION, EQUAL_LIMITS) if kind in report}
