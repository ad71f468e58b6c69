"""Joint limits in a simulation, and starts that violate them."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..array_types import Array
from ..contact.laws import RETURN_SPEED
from ..model.editing.notes import warn_caller
from ..robot.robot import Robot
from .forces_at_joints import ForcesAtJoints
from .simulation_options import ALL

FAR = 0.2
"""[rad, m] greatest violation of a limit by a start. Rounding and careless digits put zero configurations up to 0.1 beyond
limits, Gymnasium's noise around a start is 0.1, and normal noise of 0.05 is nearly always below 0.2. Zero configurations
farther beyond, from 0.26 on, belong to hands, arms and legs that must be bent."""
ROUNDED = 1e-3  # [rad, m] allowed violation for files with three digits, however narrow the range
SHOWN = 5  # number of joints in a message


class JointLimits:
    """Lower and upper limits (n,) by degree of freedom of all joints, infinite if a simulation ignores them.

    `kept` is True, False, or "all", which includes lower limits equal to upper ones. CAD programs write 0 and 0 for joints
    without limits, and MuJoCo also ignores these.
    """

    def __init__(self, robot: Robot, forces: ForcesAtJoints, kept: bool | str) -> None:
        equal = forces.lower == forces.upper
        ignored = ~np.zeros_like(equal) if not kept else equal & (kept != ALL)
        self.lower, self.upper = np.where(ignored, -np.inf, forces.lower), np.where(ignored, np.inf, forces.upper)
        self._rows = np.flatnonzero(np.isfinite(self.lower) | np.isfinite(self.upper))
        self._robot, self._forces, self._names, self._told = robot, forces, forces.names, False
        self._low, self._high = self.lower[self._rows], self.upper[self._rows]
        self._far = np.clip(self._high - self._low, ROUNDED, FAR)

    @property
    def any(self) -> bool:
        """Return whether any joint has a limit."""
        return len(self._rows) > 0

    def check(self, q: Array) -> None:
        """Check initial states (..., nq).

        Raises ValueError for a joint beyond its limit by more than `FAR` or the width of its range, unless a configuration of
        the robot's file is as far beyond; that issues a ModelWarning, once.
        """
        x = self._forces.coordinates(q, self._rows)
        outside = np.maximum(self._low - x, x - self._high) > self._far
        if not outside.any():
            return
        low, high = self._widened
        refused = np.maximum(low - x, x - high) > self._far
        if refused.any():
            raise ValueError(
                f"q: beyond joint limits: {self._told_of(x, refused)}. A start may be at most {FAR:g} rad or m beyond, and at "
                f"most the joint's range. Clamp it ({clamping_advice(self._robot)}), or disable limits "
                "(joints=featherweight.JointOptions(limits=False))"
            )
        if not self._told:
            self._told = True
            warn_caller(
                f"{self._robot.name}: its own configuration is beyond joint limits: {self._told_of(x, outside)}; they are "
                f"pushed back at {RETURN_SPEED:g} rad/s or m/s. To start within them: {clamping_advice(self._robot)}"
            )

    @cached_property
    def _widened(self) -> tuple[Array, Array]:
        """Limits widened to include the robot's named configurations."""
        own = [self._robot.start()]
        for name in self._robot.configurations:
            try:
                own.append(self._robot.configurations[name])
            except ValueError:  # a configuration whose loops cannot be closed is not a start
                continue
        x = self._forces.coordinates(np.array(own), self._rows)
        return np.minimum(self._low, x.min(axis=0)), np.maximum(self._high, x.max(axis=0))

    def _kind(self, k: int) -> str:
        tendon = 0 <= self._rows[k] - self._forces.joint_rows < len(self._forces.tendons)
        return "tendon" if tendon else "joint"

    def _told_of(self, x: Array, those: Array) -> str:
        """Describe the joints (..., k) at x, with their limits, of the first robot with any."""
        robot = int(np.atleast_2d(those).any(axis=1).argmax())
        found = np.flatnonzero(np.atleast_2d(those)[robot])
        texts = [
            f"{self._kind(k)} {self._names[self._rows[k]]!r} at {np.atleast_2d(x)[robot, k]:.4g} (limits {self._low[k]:.4g} to "
            f"{self._high[k]:.4g})"
            for k in found[:SHOWN]
        ]  # fmt: skip
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        return ", ".join(texts) + more + (f" of robot {robot}" if x.ndim > 1 else "")


def clamping_advice(robot: Robot) -> str:
    """Return code that brings a configuration q within limits."""
    clamped = "numpy.clip(q, robot.lower, robot.upper)"
    return f"q = robot.close({clamped})" if robot.closed else f"q = {clamped}"
