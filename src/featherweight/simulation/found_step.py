"""A computed step of one robot that was not taken, for derivatives."""

from __future__ import annotations

import numpy as np

from ..array_types import Array
from .contact_stage import ContactStage
from .load_slopes import LoadSlopes
from .robot_tables import StagesTable
from .stage_records import FOUND, NEAR
from .step_model import StepModel
from .step_slopes import SlopesOfStep, free_slopes_of


class FoundStep:
    """Arrays of a step, and the slopes of the forces at joints; `at_a_limit` collects the names of values at a limit."""

    def __init__(self, model: StepModel, contacts: ContactStage, table: StagesTable) -> None:
        self.model, self.contacts, self.table, self.stages = model, contacts, table, table.content
        self.robot, self.forces = model.robot, model.forces
        self.at_a_limit, self.doubtful = dict[str, None](), dict[str, None]()

    def slopes(self) -> LoadSlopes:
        """Return the slopes of forces at `point` (see `load_slopes`), in arrays that the next call overwrites."""
        slopes = self.table.slopes
        if slopes.write():
            self._note_limits(slopes.content)
        return slopes.content

    def _note(self, slopes: SlopesOfStep) -> None:
        self._note_limits(slopes.content.load)
        self.doubtful.update(dict.fromkeys(slopes.doubtful()))

    def _note_limits(self, slopes: LoadSlopes) -> None:
        names = (self.model.limits[k] for k in np.flatnonzero(slopes.ends))
        self.at_a_limit.update((f"{name} at its limit", None) for name in names)

    def slopes_of_step(self) -> SlopesOfStep | None:
        """Return the derivatives of a semi-implicit step without contacts and joint rows; None for other integrators."""
        if self.model.integrator != "semi-implicit":
            return None
        slopes = free_slopes_of(self.table, self.model, self.contacts)
        if slopes.write():
            self._note(slopes)
        return slopes

    @property
    def touched(self) -> bool:
        """Return whether there are contacts, joints near their limits, or dry friction."""
        counts = self.stages.touching.counts
        return bool(counts[FOUND] > 0 or counts[NEAR] > 0)

    @property
    def armature(self) -> tuple[Array, ...]:
        """The armature of the step, as a further argument of functions of the robot, if drives add to it."""
        return (self.stages.inertias.armature,) if self.model.driven else ()
