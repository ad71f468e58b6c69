"""Simulation with contact: what users call is in `featherweight` itself."""

from ..robot.trajectory import Trajectory
from .failure import SimulationError
from .scene import HeightField, Plane, Point, Sphere
from .simulation import Simulation

__all__ = ["HeightField", "Plane", "Point", "Simulation", "SimulationError", "Sphere", "Trajectory"]
