"""A computed step of one robot that was not taken, for derivatives."""

from __future__ import annotations

import numpy as np

from ..array_types import Array
from .contact_stage import ContactStage
from .load_slopes import LoadSlopes
from .robot_tables import StagesTable
from .step_model import StepModel


class FoundStep:
    """Arrays of a step, and the slopes of the forces at joints; `at_a_limit` collects the names of values at a limit."""

    def __init__(self, model: StepModel, contacts: ContactStage, table: StagesTable) -> None:
        self.model, self.contacts, self.table, self.stages = model, contacts, table, table.content
        self.robot, self.forces = model.robot, model.forces
        self.at_a_limit = dict[str, None]()

    def slopes(self) -> LoadSlopes:
        """Return the slopes of forces at `point` (see `load_slopes`), in arrays that the next call overwrites."""
        slopes = self.table.slopes
        if slopes.write():
            names = (self.model.limits[k] for k in np.flatnonzero(slopes.content.ends))
            self.at_a_limit.update((f"{name} at its limit", None) for name in names)
        return slopes.content

    def velocity_slopes(self) -> Array:
        """Return the rates of the velocity after a semi-implicit step without impulses, by one compiled function."""
        y, s, step = self.slopes(), self.stages, self.stages.step
        given = s.state.q, s.state.v, s.point.load, step.acceleration, self.model.h, y.tau, y.position, y.velocity
        more = (y.control,) * (self.forces.nu > 0) + (y.force,) * self.robot.closed + self.armature
        slopes: Array = self.model.velocity_slopes(*given, *more)  # type: ignore[misc]
        return slopes

    @property
    def armature(self) -> tuple[Array, ...]:
        """The armature of the step, as a further argument of functions of the robot, if drives add to it."""
        return (self.stages.inertias.armature,) if self.model.driven else ()
