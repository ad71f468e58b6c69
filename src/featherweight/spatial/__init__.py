"""Spatial vector algebra (Featherstone, *Rigid Body Dynamics Algorithms*, chapter 2) on named tuples of scalars.

A scalar is a float, a traced expression, or a float of machine code: the same source serves all three executions. Vectors are
ordered [angular; linear]. Inertias store only their distinct entries, so symmetric entries are never computed twice.
"""

from .coriolis import ZERO_CORIOLIS, Coriolis, coriolis_of_turning
from .inertia import (
    ZERO_ARTICULATED,
    ZERO_CROSS,
    ZERO_MOBILITY,
    ZERO_RIGID,
    ArticulatedInertia,
    CrossInertia,
    Mobility,
    RigidInertia,
    mobility,
)
from .lie import (
    Quaternion,
    exp_se2,
    exp_se3,
    exp_so3,
    log_se2,
    log_se3,
    log_so3,
    quaternion_at,
)
from .motion import ZERO_FORCE, ZERO_MOTION, Force, Motion, acceleration_field, unit_motion
from .transform import IDENTITY, NO_TURN, Transform
from .vectors import IDENTITY3, ZERO3, ZERO_SYM3, Mat3, Scalar, Sym3, Vec3, rotation_from_quaternion, sincos, sqrt

__all__ = [
    "IDENTITY",
    "IDENTITY3",
    "NO_TURN",
    "ZERO3",
    "ZERO_ARTICULATED",
    "ZERO_CORIOLIS",
    "ZERO_CROSS",
    "ZERO_FORCE",
    "ZERO_MOBILITY",
    "ZERO_MOTION",
    "ZERO_RIGID",
    "ZERO_SYM3",
    "ArticulatedInertia",
    "Coriolis",
    "CrossInertia",
    "Force",
    "Mat3",
    "Mobility",
    "Motion",
    "Quaternion",
    "RigidInertia",
    "Scalar",
    "Sym3",
    "Transform",
    "Vec3",
    "acceleration_field",
    "coriolis_of_turning",
    "exp_se2",
    "exp_se3",
    "exp_so3",
    "log_se2",
    "log_se3",
    "log_so3",
    "mobility",
    "quaternion_at",
    "rotation_from_quaternion",
    "sincos",
    "sqrt",
    "unit_motion",
]
