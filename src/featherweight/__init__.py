"""Dynamics of articulated robots, compiled for the robot at hand."""

from .constraints import CenterOfMass, Difference, JacobianRows
from .contacts import Contact
from .engine.function import CompiledFunction
from .engine.trace import Operations
from .factorization import Factorization, ltdl, ltl
from .model import generators
from .model.types import Body, Description, Frame, Inertia, Joint, JointType, ModelError, Pose
from .operational_space import ConstrainedMotion, OperationalSpace
from .robot import Robot, build, load
from .version import __version__

__all__ = [
    "Body",
    "CenterOfMass",
    "CompiledFunction",
    "ConstrainedMotion",
    "Contact",
    "Description",
    "Difference",
    "Factorization",
    "Frame",
    "Inertia",
    "JacobianRows",
    "Joint",
    "JointType",
    "ModelError",
    "OperationalSpace",
    "Operations",
    "Pose",
    "Robot",
    "__version__",
    "build",
    "generators",
    "load",
    "ltdl",
    "ltl",
]
