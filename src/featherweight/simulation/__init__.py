"""Simulation with contact. The public names are in `featherweight` itself."""

from ..robot.trajectory import Trajectory
from .failure import SimulationError
from .scene import ContactPoint, ContactSphere, HeightField, Plane
from .simulation import Simulation
from .simulation_options import ContactOptions, JointOptions
from .state import State

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
