"""Messages for steps that fail: from a status and the arrays of the failed attempt to a SimulationError."""

from __future__ import annotations

import numpy as np

from ..array_types import Array
from ..contact.impulses import greatest_of
from ..engine.loops.kernels import call_machine
from . import step_status
from .contact_stage import ContactStage
from .failure import SimulationError
from .robot_tables import StagesTable
from .smooth_motion import MIDPOINT_ITERATIONS, energies
from .stage_records import ALLOWED, FOUND, RESIDUAL, RobotStages
from .step_model import StepModel

LOST = 6  # digits that accelerations lose at the start of a step, if this is worth a mention


class FailedStep:
    """A failed step of one robot, with the arrays of the attempt."""

    def __init__(self, model: StepModel, contacts: ContactStage, table: StagesTable, time: float) -> None:
        self.model, self.contacts, self.table, self.time = model, contacts, table, time
        self.stages: RobotStages = table.content

    def error(self, status: int, robot: int, robots: int) -> SimulationError:
        """Return the error for a status. Raises the exception of a Python function that failed in the step."""
        for error in self.table.errors:
            self.table.errors.clear()
            raise error
        s = self.stages
        match status:
            case step_status.NO_NUMBER:
                tau, control = s.state.tau, s.state.control
                what = self._not_finite("joint force tau", tau) or self._not_finite("control", control)
            case step_status.DIVERGED:
                what = "the iteration of the implicit midpoint rule diverges; use a shorter step"
            case step_status.UNSETTLED:
                what = self._unsettled()
            case step_status.OPEN_LOOPS:
                what = self._open_loops()
            case step_status.NO_VELOCITY:
                what = self._not_finite("velocity", s.step.free)
            case step_status.NO_VELOCITY_AFTER_CONTACT:
                what = self._not_finite("velocity after contact", s.step.after)
            case step_status.NO_STATE:
                after = self._not_finite("velocity after the step", s.step.end)
                what = after or self._not_finite("configuration after the step", s.step.ahead)
            case step_status.TOO_DEEP:
                what = self._too_deep()
            case step_status.UNSOLVED:
                what = self._unsolved()
            case step_status.LIMIT:
                what = self._limit()
            case step_status.TOO_FAST:
                what = self._too_fast()
            case _:
                what = self._gain()
        return SimulationError(what + self._irregular(), self.time, robot, robots)

    def _irregular(self) -> str:
        """Return the end of the message for a step that begins near a singular configuration."""
        q = self.stages.state.q
        found = self.model.robot.irregular(q[None], LOST) if np.isfinite(q).all() else None
        return "" if found is None else f"; the step begins {found[1]}"

    def _not_finite(self, what: str, x: Array) -> str:
        places = np.flatnonzero(~np.isfinite(x))
        if not len(places):
            return ""
        place = int(places[0])
        name = f"number {place}"
        for j in self.model.robot.joints if what != "control" else ():
            rows = j.q_slice if what.startswith("configuration") else j.v_slice
            if rows.start <= place < rows.stop:
                name = f"joint {j.name!r}"
        return f"the {what} at {name} is {x[place]}"

    def _unsettled(self) -> str:
        s = self.stages
        scale = greatest_of(s.state.v) + greatest_of(s.step.free) + s.numbers.step * max(1.0, s.numbers.gravity)
        change = greatest_of(s.midpoint.left) / scale
        return (
            f"the implicit midpoint rule does not converge: iteration {MIDPOINT_ITERATIONS} still changes {change:.2g} of the "
            "velocity; use a shorter step"
        )

    def _open_loops(self) -> str:
        """Close the loops again with the robot's own function, whose message names the open loops."""
        calls = self.stages.calls
        call_machine(calls.advance if self.model.integrator == "semi-implicit" else calls.integrate)
        try:
            self.model.robot.close(self.stages.point.x, attempts=0)  # type: ignore[attr-defined]
        except ValueError as error:
            return str(error)
        return f"{self.model.robot.name}: the loops cannot be closed; the residual is {self.stages.loops.opened[0]:.3g}"

    def _too_deep(self) -> str:
        t, most = self.stages.touching, self.model.max_penetration
        c = int(t.contacts.gap[: t.counts[FOUND]].argmin())
        name, deep = self.contacts.names[int(t.contacts.candidate[c])], f"{-t.contacts.gap[c]:.3g} m"
        what = f"{name} overlap by {deep}" if " and the " in name else f"{name} penetrates the ground by {deep}"
        return f"{what}, more than {most:g} m (max_penetration of ContactOptions)"

    def _unsolved(self) -> str:
        report = self.stages.touching.report
        residual, allowed = report[RESIDUAL], report[ALLOWED]
        return (
            f"the contact solver did not converge: the residual of Coulomb's law is {residual:.3g} m/s for "
            f"{self.stages.touching.counts[FOUND]} contacts, {allowed:.3g} allowed; use a shorter step or a larger tolerance"
        )

    def _limit(self) -> str:
        """Return the message for a joint of a loop beyond its limit."""
        t, q, robot, names = self.stages.touching, self.stages.point.coordinates, self.model.robot, self.model.forces.names
        rows = t.model.rows
        row = int(t.kinematics.gap.argmin())
        dof, which, x = int(rows.dof[row]), "lower" if rows.sign[row] > 0.0 else "upper", float(q[rows.at[row]])
        return (
            f"joint {names[dof]!r} is at {x:.4g}, beyond its {which} limit {rows.bound[row]:.4g}, and loops "
            f"({robot.loops_of(dof)}){' and contacts' if t.counts[FOUND] else ''} do not let it come back; "  # type: ignore[attr-defined]
            "start from a closed configuration within limits (robot.random_configuration() searches for one), or disable "
            "limits (joints=featherweight.JointOptions(limits=False))"
        )

    def _fastest(self) -> tuple[str, float]:
        """Return the joint that moves farthest in the step, and its displacement."""
        turn = self.model.h * np.abs(self.stages.step.after)
        return self.model.joint_of(int(turn.argmax())), float(turn.max())

    def _too_fast(self) -> str:
        name, turn = self._fastest()
        return (
            f"joint {name!r} moves by {turn:.3g} rad or m in the step, at {turn / self.model.h:.3g} rad/s or m/s: the "
            "motion diverges. Forces of a feedback controller (a PD law, for example) are constant during a step; replace them "
            "by drives, which the step evaluates at its end (actuators=featherweight.PD(...)), or use a shorter step"
        )

    def _gain(self) -> str:
        s, (name, turn) = self.stages, self._fastest()
        before, after = (sum(energies(s, q, v)) for q, v in ((s.state.q.copy(), s.state.v.copy()), (s.step.ahead, s.step.end)))
        return (
            f"the step gains energy without the work of a force: {before:.6g} J before it, {after:.6g} J after; "
            f"joint {name!r} moves by {turn:.3g} rad or m in it; use a shorter step"
        )
