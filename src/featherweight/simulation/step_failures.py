"""Words for steps that are not taken: from a status, and the arrays that the attempt has left, to a SimulationError."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine.loops.kernels import call_machine
from . import step_status
from .contact_stage import ContactStage
from .failure import SimulationError
from .robot_tables import StagesTable
from .smooth_motion import MIDPOINT_ITERATIONS, energies, greatest
from .stage_records import RobotStages
from .step_model import StepModel

Array = np.ndarray[Any, np.dtype[Any]]


class FailedStep:
    """A step of one robot that was not taken, and the arrays that the attempt has left."""

    def __init__(self, model: StepModel, contacts: ContactStage, table: StagesTable, time: float) -> None:
        self.model, self.contacts, self.table, self.time = model, contacts, table, time
        self.stages: RobotStages = table.content

    def error(self, status: int, robot: int, robots: int) -> SimulationError:
        """Return the error for a status. Raises an exception of a function that is Python's."""
        for error in self.table.errors:
            self.table.errors.clear()
            raise error
        s = self.stages
        match status:
            case step_status.NO_NUMBER:
                tau, control = s.state.tau, s.state.control
                what = self._not_finite("joint force tau", tau) or self._not_finite("control", control)
            case step_status.DIVERGED:
                what = "the iterations of the implicit midpoint step diverge; take a shorter step"
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
        return SimulationError(what, self.time, robot, robots)

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
        scale = greatest(s.state.v) + greatest(s.step.free) + s.numbers.step * max(1.0, s.numbers.gravity)
        change = greatest(s.midpoint.left) / scale
        return (
            f"the implicit midpoint step is not found: iteration {MIDPOINT_ITERATIONS} changes {change:.2g} of the velocity; "
            "take a shorter step"
        )

    def _open_loops(self) -> str:
        """Close the loops once more by the robot's own function, which says which of them stay open."""
        calls = self.stages.calls
        call_machine(calls.advance if self.model.integrator == "semi-implicit" else calls.integrate)
        try:
            self.model.robot.close(self.stages.point.x, attempts=0)  # type: ignore[attr-defined]
        except ValueError as error:
            return str(error)
        return f"{self.model.robot.name}: the loops cannot be closed; {self.stages.loops.opened[0]:.3g} is left open"

    def _too_deep(self) -> str:
        t, most = self.stages.touching, self.model.max_penetration
        c = int(t.contacts.gap[: t.counts[0]].argmin())
        name, deep = self.contacts.names[int(t.contacts.candidate[c])], f"{-t.contacts.gap[c]:.3g} m"
        what = f"{name} overlap by {deep}" if " and the " in name else f"{name} is {deep} deep in the ground"
        return f"{what}, more than {most:g} m (max_penetration of ContactOptions)"

    def _unsolved(self) -> str:
        residual, allowed, *_ = self.stages.touching.report
        return (
            f"the contact solver did not converge: {residual:.3g} m/s are left of Coulomb's law for "
            f"{self.stages.touching.counts[0]} contacts, {allowed:.3g} allowed; take a shorter step, or a greater tolerance"
        )

    def _limit(self) -> str:
        """Name the limit beyond which a joint of a loop has to stay."""
        t, q, robot, names = self.stages.touching, self.stages.point.coordinates, self.model.robot, self.model.forces.names
        rows = t.model.rows
        row = int(t.kinematics.gap.argmin())
        dof, which, x = int(rows.dof[row]), "lower" if rows.sign[row] > 0.0 else "upper", float(q[rows.at[row]])
        return (
            f"joint {names[dof]!r} is at {x:.4g}, beyond its {which} limit {rows.bound[row]:.4g}, and loops "
            f"({robot.loops_of(dof)}){' and contacts' if t.counts[0] else ''} do not let it come back; "  # type: ignore[attr-defined]
            "start from a closed configuration within limits, as robot.random_configuration() finds where there is one, or "
            "leave limits out (joints=featherweight.JointOptions(limits=False))"
        )

    def _fastest(self) -> tuple[str, float]:
        """Return the joint that moves farthest in the step, and how far."""
        turn = self.model.h * np.abs(self.stages.step.after)
        return self.model.joint_of(int(turn.argmax())), float(turn.max())

    def _too_fast(self) -> str:
        name, turn = self._fastest()
        return (
            f"joint {name!r} moves by {turn:.3g} rad or m in the step, at {turn / self.model.h:.3g} rad/s or m/s: the "
            "motion diverges. Forces of a controller that follow the state (a PD law, say) are constant during a step; give "
            "them as drives, which the step takes at its end (actuators=featherweight.PD(...)), or take a shorter step"
        )

    def _gain(self) -> str:
        s, (name, turn) = self.stages, self._fastest()
        before, after = (sum(energies(s, q, v)) for q, v in ((s.state.q.copy(), s.state.v.copy()), (s.step.ahead, s.step.end)))
        return (
            f"the step gains energy that no force has worked for: {before:.6g} J before it, {after:.6g} J after; "
            f"joint {name!r} moves by {turn:.3g} rad or m in it, take a shorter step"
        )
