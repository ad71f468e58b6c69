"""Dynamics of articulated robots, compiled for the robot at hand."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .engine.function import CompiledFunction
from .engine.operations import Operations
from .engine.trace import Arithmetic, evaluate
from .model.builder import describe
from .model.contact_rules import ContactPair
from .model.description import Decomposition, Description
from .model.position_drives import PD
from .model.servos import Cogging, DCMotor, DriveInput, LuGre, OrientationServo, Servo, Winding
from .model.types import (
    Activation,
    ActivationType,
    Actuator,
    Axes,
    Body,
    Camera,
    CameraMode,
    CameraSensor,
    Closure,
    Configuration,
    ContactReduction,
    ControlDelay,
    Coupling,
    Frame,
    FrameForce,
    Inertia,
    Joint,
    JointType,
    Loop,
    LoopType,
    ModelError,
    ModelWarning,
    Muscle,
    Pose,
    Pulley,
    SampleInterpolation,
    Sensed,
    SensedKind,
    Sensor,
    SensorField,
    SensorKind,
    SensorSampling,
    SensorZone,
    Shape,
    ShapeType,
    Tendon,
    TendonPoint,
    TendonWrap,
)
from .names import meant
from .providers import register
from .robot.build import build, load, read
from .robot.constraints.constraint import CenterOfMass, Difference, JacobianRows
from .robot.constraints.contact import BilateralContact
from .robot.constraints.operational_space import ConstrainedMotion, Impact, OperationalSpace
from .robot.factorization import Factorization, ltdl, ltl
from .robot.robot import Robot
from .robot.system import NotDefinedError
from .version import __version__

if TYPE_CHECKING:
    from . import identification, paths, robots, se3
    from .exporting.library import export
    from .exporting.standalone_call import Standalone
    from .model import generators
    from .optimal_control.clearance import clearance
    from .optimal_control.controller import Controller
    from .optimal_control.problem import OptimalControl, Phase
    from .optimal_control.sampling import SamplingController
    from .optimal_control.terms import ContactForces, Duration, Effort, JointForces, JointVelocities, Residual
    from .robot.closed import ClosedRobot
    from .robot.inverse_kinematics.inverse_kinematics import InverseKinematics
    from .robot.inverse_kinematics.tasks import CenterOfMassTask, ClearanceTask, FrameTask, PostureTask
    from .robot.mujoco_order import MujocoOrder
    from .robot.trajectory import Trajectory
    from .robots.example_files import example
    from .simulation import (
        ContactOptions,
        ContactPoint,
        ContactSphere,
        HeightField,
        JointOptions,
        Plane,
        Simulation,
        SimulationError,
        State,
    )
    from .viewer import Window
    from .whole_body.contacts import UnilateralContact
    from .whole_body.control import WholeBodyControl
    from .whole_body.result import WholeBodyBatch, WholeBodyResult
    from .whole_body.tasks import AngularMomentumTask

__all__ = [
    "PD",
    "Activation",
    "ActivationType",
    "Actuator",
    "AngularMomentumTask",
    "Arithmetic",
    "Axes",
    "BilateralContact",
    "Body",
    "Camera",
    "CameraMode",
    "CameraSensor",
    "CenterOfMass",
    "CenterOfMassTask",
    "ClearanceTask",
    "ClosedRobot",
    "Closure",
    "Cogging",
    "CompiledFunction",
    "Configuration",
    "ConstrainedMotion",
    "ContactForces",
    "ContactOptions",
    "ContactPair",
    "ContactPoint",
    "ContactReduction",
    "ContactSphere",
    "ControlDelay",
    "Controller",
    "Coupling",
    "DCMotor",
    "Decomposition",
    "Description",
    "Difference",
    "DriveInput",
    "Duration",
    "Effort",
    "Factorization",
    "Frame",
    "FrameForce",
    "FrameTask",
    "HeightField",
    "Impact",
    "Inertia",
    "InverseKinematics",
    "JacobianRows",
    "Joint",
    "JointForces",
    "JointOptions",
    "JointType",
    "JointVelocities",
    "Loop",
    "LoopType",
    "LuGre",
    "ModelError",
    "ModelWarning",
    "MujocoOrder",
    "Muscle",
    "NotDefinedError",
    "OperationalSpace",
    "Operations",
    "OptimalControl",
    "OrientationServo",
    "Phase",
    "Plane",
    "Pose",
    "PostureTask",
    "Pulley",
    "Residual",
    "Robot",
    "SampleInterpolation",
    "SamplingController",
    "Sensed",
    "SensedKind",
    "Sensor",
    "SensorField",
    "SensorKind",
    "SensorSampling",
    "SensorZone",
    "Servo",
    "Shape",
    "ShapeType",
    "Simulation",
    "SimulationError",
    "Standalone",
    "State",
    "Tendon",
    "TendonPoint",
    "TendonWrap",
    "Trajectory",
    "UnilateralContact",
    "WholeBodyBatch",
    "WholeBodyControl",
    "WholeBodyResult",
    "Winding",
    "Window",
    "__version__",
    "build",
    "clearance",
    "describe",
    "evaluate",
    "example",
    "export",
    "generators",
    "identification",
    "load",
    "ltdl",
    "ltl",
    "paths",
    "read",
    "robots",
    "se3",
]


_LATER = {
    "ClosedRobot": ".robot.closed",
    "InverseKinematics": ".robot.inverse_kinematics.inverse_kinematics",
    **dict.fromkeys(("CenterOfMassTask", "ClearanceTask", "FrameTask", "PostureTask"), ".robot.inverse_kinematics.tasks"),
    "Window": ".viewer",
    **dict.fromkeys(("ContactOptions", "ContactPoint", "ContactSphere", "HeightField", "JointOptions"), ".simulation"),
    **dict.fromkeys(("Plane", "Simulation", "SimulationError", "State"), ".simulation"),
    **dict.fromkeys(("OptimalControl", "Phase"), ".optimal_control.problem"),
    **dict.fromkeys(
        ("ContactForces", "Duration", "Effort", "JointForces", "JointVelocities", "Residual"), ".optimal_control.terms"
    ),
    "clearance": ".optimal_control.clearance",
    "Controller": ".optimal_control.controller",
    "SamplingController": ".optimal_control.sampling",
    "MujocoOrder": ".robot.mujoco_order",
    "Trajectory": ".robot.trajectory",
    "AngularMomentumTask": ".whole_body.tasks",
    "UnilateralContact": ".whole_body.contacts",
    "WholeBodyBatch": ".whole_body.result",
    "WholeBodyControl": ".whole_body.control",
    "WholeBodyResult": ".whole_body.result",
    "export": ".exporting.library",
    "Standalone": ".exporting.standalone_call",
    "example": ".robots.example_files",
}
"""Names that only some programs need, and the modules that define them. A module is imported when its name is first used."""

_MODULES = {
    name: f".{name}"
    for name in ("casadi", "environments", "gym", "identification", "jax", "paths", "robots", "se3", "torch", "unisim")
}
_MODULES["generators"] = ".model.generators"
"""Parts to import by their names, and where they are."""

_EXTRAS = {"Window": ("viser", "trimesh")}
"""Packages without which a name cannot be imported: `from featherweight import *` then leaves it out."""

for _name, _packages in _EXTRAS.items():
    if not all(map(find_spec, _packages)):
        __all__.remove(_name)


register("load.example", f"{__name__}.robots.example_files", "example_names")
register("Description.decomposed", f"{__name__}.collision.decomposing", "decomposed")
register("Simulation.view", f"{__name__}.viewer", "view")
register("Simulation.render", f"{__name__}.viewer", "SimulationPictures")
register("Robot.picture", f"{__name__}.viewer", "png_of")
register("Trajectory.save", f"{__name__}.viewer", "save_motion")
register("Trajectory.plot", f"{__name__}.viewer", "plot_motion")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name], __name__)
    if name in _LATER:
        return getattr(import_module(_LATER[name], __name__), name)
    said = f"module {__name__!r} has no attribute {name!r}"
    if name in import_module(".viewer", __name__).__all__:
        raise AttributeError(f"{said}; featherweight.viewer has it")
    raise AttributeError(said if name.startswith("_") else said + meant(name, __dir__()))


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
