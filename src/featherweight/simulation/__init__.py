"""Simulation with contact. The public names are in `featherweight` itself."""

from ..robot.trajectory import Trajectory
from .scene import ContactPoint, ContactSphere, HeightField, Plane
from .simulation import Simulation
from .simulation_options import ContactOptions, JointOptions
from .state import State
from .step_failures import SimulationError

__all__ = [
    "ContactOptions",
    "ContactPoint",
    "ContactSphere",
    "HeightField",
    "JointOptions",
    "Plane",
    "Simulation",
    "SimulationError",
    "State",
    "Trajectory",
]
