"""Dynamics of articulated robots, compiled for the robot at hand."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .engine.function import CompiledFunction
from .engine.operations import Operations
from .engine.trace import Arithmetic, evaluate
from .model import generators
from .model.builder import Mechanism
from .model.contact_rules import ContactPair
from .model.description import Description
from .model.types import (
    Actuator,
    Body,
    Closure,
    Configuration,
    Coupling,
    Frame,
    Inertia,
    Joint,
    JointType,
    Loop,
    LoopType,
    ModelError,
    ModelWarning,
    Pose,
    Shape,
    ShapeType,
)
from .robot.build import build, load, read
from .robot.constraints.constraint import CenterOfMass, Difference, JacobianRows
from .robot.constraints.contact import Contact
from .robot.constraints.operational_space import ConstrainedMotion, Impact, OperationalSpace
from .robot.factorization import Factorization, ltdl, ltl
from .robot.robot import Robot
from .version import __version__

if TYPE_CHECKING:
    from . import identification, robots, se3
    from .robot.closed import ClosedRobot
    from .robot.inverse_kinematics.inverse_kinematics import InverseKinematics
    from .robot.inverse_kinematics.tasks import CenterOfMassTask, FrameTask, PostureTask
    from .robot.mujoco_order import MujocoOrder
    from .robot.trajectory import Trajectory
    from .simulation import HeightField, Plane, Point, Simulation, SimulationError, Sphere
    from .viewer import Window

__all__ = [
    "Actuator",
    "Arithmetic",
    "Body",
    "CenterOfMass",
    "CenterOfMassTask",
    "ClosedRobot",
    "Closure",
    "CompiledFunction",
    "Configuration",
    "ConstrainedMotion",
    "Contact",
    "ContactPair",
    "Coupling",
    "Description",
    "Difference",
    "Factorization",
    "Frame",
    "FrameTask",
    "HeightField",
    "Impact",
    "Inertia",
    "InverseKinematics",
    "JacobianRows",
    "Joint",
    "JointType",
    "Loop",
    "LoopType",
    "Mechanism",
    "ModelError",
    "ModelWarning",
    "MujocoOrder",
    "OperationalSpace",
    "Operations",
    "Plane",
    "Point",
    "Pose",
    "PostureTask",
    "Robot",
    "Shape",
    "ShapeType",
    "Simulation",
    "SimulationError",
    "Sphere",
    "Trajectory",
    "Window",
    "__version__",
    "build",
    "evaluate",
    "generators",
    "identification",
    "load",
    "ltdl",
    "ltl",
    "read",
    "robots",
    "se3",
]


_LATER = {
    "ClosedRobot": ".robot.closed",
    "InverseKinematics": ".robot.inverse_kinematics.inverse_kinematics",
    **dict.fromkeys(("CenterOfMassTask", "FrameTask", "PostureTask"), ".robot.inverse_kinematics.tasks"),
    "Window": ".viewer",
    **dict.fromkeys(("HeightField", "Plane", "Point", "Simulation", "SimulationError", "Sphere"), ".simulation"),
    "MujocoOrder": ".robot.mujoco_order",
    "Trajectory": ".robot.trajectory",
}
"""What only some programs need, and where it is; imported when it is asked for."""

_EXTRAS = {"Window": ("viser", "trimesh")}
"""Packages without which a name cannot be imported: `from featherweight import *` then leaves it out."""

for _name, _packages in _EXTRAS.items():
    if not all(map(find_spec, _packages)):
        __all__.remove(_name)


def __getattr__(name: str) -> Any:
    if name in ("identification", "robots", "se3"):
        return import_module(f".{name}", __name__)
    if name in _LATER:
        return getattr(import_module(_LATER[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
