"""Failed steps: what a kernel notes of them, the words that this makes, and the error."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from ..array_types import Array, Vector
from ..checks import checked
from ..contact.impulses import greatest_of
from ..contact.joint_rows import farthest_beyond
from ..summaries import visible
from . import step_status
from .contact_stage import ContactStage
from .smooth_motion import MIDPOINT_ITERATIONS, energies
from .stage_records import ALLOWED, FOUND, RESIDUAL, RobotStages
from .step_model import StepModel

LOST = 6  # digits that accelerations lose at the start of a step, if this is worth a mention


def note_failure(s: RobotStages, status: int, symptoms: Vector) -> int:
    """Write the numbers that tell how a step failed; return the number of the element that made it fail.

    The elements are contact candidates, rows of limits or of loops, coordinates, controls and velocities.
    """
    step, t = s.step, s.touching
    if status == step_status.NO_FORCE:
        return note_not_finite(s.state.tau, symptoms)
    if status == step_status.NO_CONTROL:
        return note_not_finite(s.state.control, symptoms)
    if status == step_status.NO_VELOCITY:
        return note_not_finite(step.free, symptoms)
    if status == step_status.NO_VELOCITY_AFTER_CONTACT:
        return note_not_finite(step.after, symptoms)
    if status == step_status.NO_VELOCITY_AFTER_STEP:
        return note_not_finite(step.end, symptoms)
    if status == step_status.NO_CONFIGURATION:
        return note_not_finite(step.ahead, symptoms)
    if status == step_status.OPEN_LOOPS:
        symptoms[1] = s.loops.opened[0]
        return note_greatest(s.loops.residual, 1.0, symptoms)
    if status == step_status.UNSETTLED:
        scale = greatest_of(s.state.v) + greatest_of(step.free) + s.numbers.step * max(1.0, s.numbers.gravity)
        return note_greatest(s.midpoint.left, 1.0 / scale, symptoms)
    if status == step_status.TOO_DEEP:
        deepest = 0
        for c in range(t.counts[FOUND]):
            deepest = c if t.contacts.gap[c] < t.contacts.gap[deepest] else deepest
        symptoms[0] = -t.contacts.gap[deepest]
        return t.contacts.candidate[deepest]
    if status == step_status.UNSOLVED:
        symptoms[0], symptoms[1] = t.report[RESIDUAL], t.report[ALLOWED]
        return t.counts[FOUND]
    if status == step_status.LIMIT:
        row = farthest_beyond(t.model.rows, t.kinematics.gap)
        symptoms[0], symptoms[1] = s.point.coordinates[t.model.rows.at[row]], t.counts[FOUND]
        return row
    if status == step_status.TOO_FAST:
        return note_greatest(step.after, s.numbers.step, symptoms)
    if status == step_status.GAIN:
        place = note_greatest(step.after, s.numbers.step, symptoms)
        kinetic, potential = energies(s, s.state.q, s.state.v)
        symptoms[1] = kinetic + potential
        kinetic, potential = energies(s, step.ahead, step.end)
        symptoms[2] = kinetic + potential
        return place
    return 0


def note_not_finite(x: Vector, symptoms: Vector) -> int:
    """Write the first number that is not finite, and return its place."""
    place = len(x) - 1
    for k in range(len(x)):
        place = min(place, k) if not abs(x[k]) < inf else place
    symptoms[0] = x[place]
    return place


def note_greatest(x: Vector, scale: float, symptoms: Vector) -> int:
    """Write the greatest magnitude times a scale, and return its place."""
    place = 0
    for k in range(len(x)):
        place = k if abs(x[k]) > abs(x[place]) else place
    symptoms[0] = scale * abs(x[place])
    return place


class Failure(NamedTuple):
    """A failed step of robot `robot` of `robots`, from q (nq,): its status, and what `note_failure` noted."""

    status: int
    culprit: int
    symptoms: Array
    q: Array
    time: float
    robot: int
    robots: int

    def error(self, model: StepModel, contacts: ContactStage) -> SimulationError:
        found = model.robot.irregular(self.q[None], LOST) if np.isfinite(self.q).all() else None
        near = "" if found is None else f"; the step begins {found[1]}"
        return SimulationError(self._words(model, contacts) + near, self.time, self.robot, self.robots)

    def _words(self, model: StepModel, contacts: ContactStage) -> str:
        k, (x, y, z), h = self.culprit, self.symptoms.tolist(), model.h
        words = step_status.WORDS[self.status]
        match self.status:
            case step_status.DIVERGED:
                return f"{words}; use a shorter step"
            case step_status.UNSETTLED:
                return f"{words}: iteration {MIDPOINT_ITERATIONS} still changes {x:.2g} of the velocity; use a shorter step"
            case step_status.OPEN_LOOPS:
                opened = f"{model.robot.name}: {words}: the step opens them by {y:.3g} m"
                return f"{opened}, and {self._open_loop(model, x)}; use a shorter step"
            case step_status.NO_PLACEMENT:
                return words
            case step_status.TOO_DEEP:
                name = contacts.names[k]
                what = f"{name} overlap by" if " and the " in name else f"{name} penetrates the ground by"
                return f"{what} {x:.3g} m, more than {model.max_penetration:g} m (max_penetration of ContactOptions)"
            case step_status.UNSOLVED:
                return (
                    f"{words}: the residual of Coulomb's law is {x:.3g} m/s for {k} contacts, "
                    f"{y:.3g} allowed; use a shorter step or a larger tolerance"
                )
            case step_status.LIMIT:
                rows, dof = contacts.rows, int(contacts.rows.dof[k])
                which, loops = "lower" if rows.sign[k] > 0.0 else "upper", model.robot.loops_of(dof)  # type: ignore[attr-defined]
                return (
                    f"joint {model.forces.names[dof]!r} is at {x:.4g}, beyond its {which} limit {rows.bound[k]:.4g}, and loops "
                    f"({loops}){' and contacts' if y else ''} do not let it come back; start from a closed configuration "
                    "within limits (robot.random_configuration() searches for one), or disable limits "
                    "(joints=featherweight.JointOptions(limits=False))"
                )
            case step_status.TOO_FAST:
                return (
                    f"joint {model.joint_of(k)!r} moves by {x:.3g} rad or m in the step, at {x / h:.3g} rad/s or m/s: the "
                    "motion diverges. Forces of a feedback controller (a PD law, for example) are constant during a step; "
                    "replace them by drives, which the step evaluates at its end (actuators=featherweight.PD(...)), or use a "
                    "shorter step"
                )
            case step_status.GAIN:
                return (
                    f"{words}: {y:.6g} J before it, {z:.6g} J after; "
                    f"joint {model.joint_of(k)!r} moves by {x:.3g} rad or m in it; use a shorter step"
                )
        return f"the {step_status.NOT_FINITE[self.status]} at {self._place(model)} is {x}"

    def _place(self, model: StepModel) -> str:
        of_coordinates = self.status == step_status.NO_CONFIGURATION
        for j in model.robot.joints if self.status != step_status.NO_CONTROL else ():
            rows = j.q_slice if of_coordinates else j.v_slice
            if rows.start <= self.culprit < rows.stop:
                return f"joint {j.name!r}"
        return f"number {self.culprit}"

    def _open_loop(self, model: StepModel, left: float) -> str:
        """Return the words for the loop that is open most, by `left`, after attempts to close all."""
        if left < model.robot.step_functions.closing_tolerance:
            return "they close only in another assembly than that of the start"
        loop, unit = model.robot.step_functions.loop_of_residual(self.culprit)  # type: ignore[attr-defined]
        return f"{left:.3g} {unit} of {loop!r} is left open"


class SimulationError(RuntimeError):
    """A time step that fails. The state is the one before the step.

    `what` is the message without time and robot; `time` [s] is the time of that state; `robot` is the number in a batch (0 for
    a single robot).
    """

    @checked
    def __init__(self, what: str, time: float, robot: int = 0, batch: int = 1) -> None:
        where = f" in robot {robot} of {batch}" if batch > 1 else ""
        what = visible(what)
        super().__init__(f"at t = {time:.9g} s{where}: {what}; the state before this step is kept")
        self.what = what
        self.time = time
        self.robot = robot
        self._batch = batch

    def __reduce__(self) -> tuple[type[SimulationError], tuple[str, float, int, int]]:
        """Return the arguments, because copies and pickles otherwise take the message as the first of them."""
        return type(self), (self.what, self.time, self.robot, self._batch)
