"""Dynamics of articulated robots, compiled for the robot at hand."""

from .contacts import Contact
from .engine.function import CompiledFunction
from .engine.trace import Operations
from .factorization import Factorization, ltdl, ltl
from .model import generators
from .model.types import Body, Description, Frame, Inertia, Joint, JointType, ModelError, Pose
from .robot import Robot, build, load
from .version import __version__

__all__ = [
    "Body",
    "CompiledFunction",
    "Contact",
    "Description",
    "Factorization",
    "Frame",
    "Inertia",
    "Joint",
    "JointType",
    "ModelError",
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
