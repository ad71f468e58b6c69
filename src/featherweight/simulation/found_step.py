"""A computed step of one robot that was not taken, for derivatives."""

from __future__ import annotations

from typing import Any

from ..array_types import Array
from ..engine.function import CompiledFunction
from .contact_stage import ContactStage
from .implicit_drives import DriveWork
from .stage_records import WITH_CONTROL, RobotStages
from .step_model import StepModel


class FoundStep:
    """Arrays of a step, and functions of the robot with its parameters in the step."""

    def __init__(self, model: StepModel, contacts: ContactStage, stages: RobotStages) -> None:
        self.model, self.contacts, self.stages = model, contacts, stages
        self.robot, self.forces = model.robot, model.forces

    @property
    def driving(self) -> DriveWork | None:
        """Drives that the step evaluates at its end."""
        return self.stages.joints.driving if self.model.driven and self.stages.state.given[WITH_CONTROL] else None

    def at_armature(self, function: CompiledFunction[Any], *arguments: Array, **more: Any) -> Any:
        """Evaluate a function of the moving robot with the armature of the step."""
        if not self.model.driven:
            return function(*arguments, **more)
        parametric = self.model.moving.parametric(function, bodies=False)
        given = arguments if parametric is function else (*arguments, self.stages.inertias.armature)
        return parametric(*given, **more)
