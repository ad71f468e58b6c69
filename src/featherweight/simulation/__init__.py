"""Simulation with contact: what users call is in `featherweight` itself."""

from ..robot.trajectory import Trajectory
from .failure import SimulationError
from .scene import ContactPoint, ContactSphere, HeightField, Plane
from .simulation import Simulation

__all__ = ["ContactPoint", "ContactSphere", "HeightField", "Plane", "Simulation", "SimulationError", "Trajectory"]
