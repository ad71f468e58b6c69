"""Warnings about the inputs of the first steps of a simulation: forces on floating roots, and servos without controls."""

from __future__ import annotations

import numpy as np

from ..array_types import Array
from ..model.editing.notes import warn_caller
from ..model.types import Actuator, JointType
from .forces_at_joints import ForcesAtJoints

SHOWN = 3  # names of servos in a message
LOOKS = 1000  # steps whose joint forces are looked at: a look takes about a microsecond


class FirstInputs:
    """The warnings about inputs that a simulation may still issue, each once.

    No motor drives a floating joint, so joint forces there push the robot from outside: a user who gives them usually means
    the forces of the other joints. Position servos without a control exert no force, whereas MuJoCo's have the control zero.
    """

    def __init__(self, forces: ForcesAtJoints, root_forces: bool) -> None:
        self.robot, self.controls = forces.robot, forces.nu
        self.limp = [a.name for a in forces.actuators if is_servo(a)]
        floating = [j for j in self.robot.joints if j.type is JointType.FLOATING and j.independent]
        self.floating = {j.name: range(*j.v_slice.indices(self.robot.nv)) for j in floating}
        self.rows = np.array([k for rows in self.floating.values() for k in rows], np.int64)
        self.looks = LOOKS if floating and not root_forces else 0

    def look(self, tau: Array) -> None:
        """Warn about joint forces (..., nv) on a floating joint."""
        self.looks -= 1
        if not tau[..., self.rows].any():
            return
        self.looks = 0
        pushed, rows = next((name, rows) for name, rows in self.floating.items() if tau[..., list(rows)].any())
        warn_caller(
            f"{self.robot.name}: tau has forces on the floating joint {pushed!r}, in rows {rows.start} to {rows.stop - 1}, "
            "where a robot has no motor: they push it from outside. Set them to zero, or give root_forces=True to the "
            "Simulation if this is what you want"
        )

    def warn_of_limp_servos(self) -> None:
        """Warn about position servos that exert no force in a step without tau and control."""
        if self.limp:
            named = ", ".join(self.limp[:SHOWN]) + ", …" * (len(self.limp) > SHOWN)
            warn_caller(
                f"{self.robot.name}: {named} ({len(self.limp)} position servos) exert no force, because the step has neither "
                f"control= nor tau=. With control=np.zeros({self.controls}) they hold zero, as in MuJoCo; "
                "Simulation(actuators=[]) has none"
            )
        self.limp = []


def is_servo(a: Actuator) -> bool:
    """Return whether a drive holds a position."""
    servo = a.servo is not None and a.servo.stiffness > 0.0
    return servo or (a.orientation is not None and a.orientation.stiffness > 0.0) or a.bias[1] < 0.0
