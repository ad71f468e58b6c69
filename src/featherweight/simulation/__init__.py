"""Simulation with contact: what users call is in `featherweight` itself."""

from .failure import SimulationError
from .scene import HeightField, Plane, Point, Sphere
from .simulation import Simulation
from .trajectory import Trajectory

__all__ = ["HeightField", "Plane", "Point", "Simulation", "SimulationError", "Sphere", "Trajectory"]
