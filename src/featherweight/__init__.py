"""Dynamics of articulated robots, compiled for the robot at hand."""

from .engine.function import CompiledFunction
from .engine.trace import Operations
from .model import generators
from .model.types import Body, Description, Frame, Inertia, Joint, JointType, ModelError, Pose
from .robot import Robot, build, load
from .version import __version__

__all__ = [
    "Body",
    "CompiledFunction",
    "Description",
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
]
