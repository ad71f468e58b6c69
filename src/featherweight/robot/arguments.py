"""Arguments of a robot's functions, which are declared as configurations, as velocities or with a shape."""

from __future__ import annotations

from typing import NamedTuple

from ..engine.program import Input


class Configuration(NamedTuple):
    """A configuration (nq). Derivatives with respect to it are along velocities."""

    name: str


class Velocity(NamedTuple):
    """An array (nv) in the order of v, such as a velocity, an acceleration or joint forces."""

    name: str


Argument = Configuration | Velocity | Input
"""An argument whose size the robot knows, or one of any shape."""

Q, Q0, Q1 = Configuration("q"), Configuration("q0"), Configuration("q1")
V, A, TAU = Velocity("v"), Velocity("a"), Velocity("tau")
DAMPING = Input("damping", (), optional=True)
