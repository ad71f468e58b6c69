"""Properties that all knots of a problem share, and those that the knots of a span share."""

from __future__ import annotations

from typing import NamedTuple

from ..algorithms.knots import Drive
from ..engine.program import Input
from ..model.expansion import CURVED
from ..model.model import MovingJoint
from ..robot.arguments import Q
from ..robot.constraints.contact import BilateralContact
from ..robot.robot import Robot
from .passive_forces import PassiveForces

SEMI_IMPLICIT, RK4 = "semi-implicit", "rk4"
SIMULATED = "simulated"  # steps of a `Simulation`, which `simulated_steps` takes
LONGEST, ROOT = "longest", "root"  # a free step is longest root² [s]


class System(NamedTuple):
    """A robot with its controls and parameters, which all stages share."""

    robot: Robot
    drives: tuple[Drive, ...]  # one for each control
    parameters: int  # number of parameters
    passive: PassiveForces
    integrator: str = SEMI_IMPLICIT
    free: bool = False  # whether steps of some knots are free
    exact: bool = False  # whether the Hessian has second derivatives of steps

    @property
    def rows(self) -> int:
        """The rows of the derivative of a step.

        Those of the velocity, after those of the configuration with "rk4", free steps or a simulation; the last one is that of
        a free step.
        """
        return self.robot.nv * (2 if self.integrator in (RK4, SIMULATED) or self.free else 1) + self.free

    @property
    def simulated(self) -> bool:
        """Return whether knots are steps of a simulation; functions of knots then have the rows of terms only."""
        return self.integrator == SIMULATED

    @property
    def controls(self) -> int:
        """The number of controls in the solver: the step is the first one if it is free."""
        return len(self.drives) + self.free

    @property
    def armature(self) -> bool:
        """Return whether drives are evaluated at the end of a step."""
        return any(d.armature for d in self.drives)

    @property
    def curved(self) -> tuple[MovingJoint, ...]:
        """The joints on curved manifolds."""
        return tuple(j for j in self.robot.joints if j.type in CURVED and j.v_slice.stop > j.v_slice.start)

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """The first velocity and the number of velocities of joints on curved manifolds."""
        return tuple((j.v_slice.start, j.type.nv) for j in self.curved)

    @property
    def apart(self) -> tuple[tuple[int, int], ...]:
        """The blocks with derivatives of their own in the recursion; none if D has rows for configurations."""
        return () if self.rows > self.robot.nv else self.blocks

    @property
    def q(self) -> Input:
        """The input for configurations."""
        return self.robot.input(Q)


class Span(NamedTuple):
    """Knots with the same functions: steps under the same contacts, or the impact at which contacts begin."""

    knots: int
    contacts: tuple[BilateralContact, ...]
    step: float  # [s], 0 for an impact
    impact: bool = False
    numbered: bool = True  # False for an impact of phases that repeat, whose knot has the number of the step after it
    least: float | None = None  # the least square root of a free step relative to `step`, and of that after an impact

    @property
    def free(self) -> bool:
        """Return whether the solver chooses the step."""
        return self.least is not None
