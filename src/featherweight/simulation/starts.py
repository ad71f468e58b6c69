"""Starts of simulations: joint limits that they violate, bodies that overlap, and warnings about the first inputs."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array, Integers, Vector
from ..contact.laws import PARTING_SPEED, RETURN_SPEED
from ..model.editing.notes import warn_caller
from ..model.types import Actuator, JointType
from ..robot.robot import Robot
from .contact_stage import ContactStage
from .forces.at_joints import ForcesAtJoints
from .simulation_options import ALL

FAR = 0.2
"""[rad, m] greatest violation of a limit by a start. Rounding and careless digits put zero configurations up to 0.1 beyond
limits, Gymnasium's noise around a start is 0.1, and normal noise of 0.05 is nearly always below 0.2. Zero configurations
farther beyond, from 0.26 on, belong to hands, arms and legs that must be bent."""
ROUNDED = 1e-3  # [rad, m] allowed violation for files with three digits, however narrow the range
SHOWN, FEW = 5, 3  # numbers of joints, and of overlaps or servos, in a message
WARNED = 0.01  # [m] least depth of an overlap for a warning
SUNK = 0.1  # [m] least depth in the ground for the question whether the robot floats
LOOKS = 1000  # steps whose joint forces are looked at: a look takes about a microsecond


class LimitsOfStarts(NamedTuple):
    """The joints whose limits a start has to respect."""

    at: Integers  # (n,) their coordinates
    low: Vector  # (n,) limits, and how far a start may be beyond them
    high: Vector
    far: Vector


NO_LIMITS = LimitsOfStarts(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0))


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
        self._robot, self._forces, self._names, self._warned = robot, forces, forces.names, False
        self._low, self._high = self.lower[self._rows], self.upper[self._rows]
        self._far = np.clip(self._high - self._low, ROUNDED, FAR)
        self.of_starts = LimitsOfStarts(forces.at[self._rows], self._low, self._high, self._far)

    @property
    def any(self) -> bool:
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
                f"q: beyond joint limits: {self._described(x, refused)}. A start may be at most {FAR:g} rad or m beyond, and "
                f"at most the joint's range. Clamp it ({clamping_advice(self._robot)}), or disable limits "
                "(joints=featherweight.JointOptions(limits=False))"
            )
        if not self._warned:
            self._warned = True
            warn_caller(
                f"{self._robot.name}: its own configuration is beyond joint limits: {self._described(x, outside)}; they are "
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

    def _described(self, x: Array, those: Array) -> str:
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
    clamped = "numpy.clip(q, robot.lower, robot.upper)"
    return f"q = robot.close({clamped})" if robot.closed else f"q = {clamped}"


class Overlap(NamedTuple):
    """Two overlapping objects: their names, their links (None for the world), and the depth [m]."""

    names: str
    links: tuple[str | None, str | None]
    depth: float


def overlaps(stage: ContactStage, candidates: Array, gaps: Array) -> list[Overlap]:
    """Return overlaps, deepest first, from the candidates and gaps of contacts of one robot."""
    order = np.argsort(gaps, kind="stable")
    deepest: dict[str, Overlap] = {}
    for c, gap in zip(candidates[order], gaps[order], strict=True):
        if gap < 0.0:
            deepest.setdefault(stage.names[c], Overlap(stage.names[c], stage.touching.links[c], -float(gap)))
    return list(deepest.values())


def overlaps_now(simulation: Any) -> list[Overlap]:
    """Return the current overlaps of the first robot of a simulation."""
    fleet = simulation._fleet
    return overlaps(fleet.contacts, *fleet.look())


def listed(found: list[Overlap]) -> str:
    texts = ", ".join(f"{x.names} by {x.depth:.3g} m" for x in found[:FEW])
    return texts + (f" and {len(found) - FEW} more" if len(found) > FEW else "")


def warn_of_overlaps(robot: Robot, found: list[Overlap]) -> None:
    """Warn about deep overlaps at the start."""
    deep = [x for x in found if x.depth > WARNED]
    if deep:
        sunk = max((x.depth for x in deep if None in x.links), default=0.0)
        standing = not any(j.type is JointType.FLOATING for j in robot.joints)
        asked = f". It is fixed to the world and stands {sunk:.2g} m in the ground: load it with base='floating' if it can move"
        warn_caller(
            f"{robot.name}: bodies overlap at the start: {listed(deep)}. They are separated at {PARTING_SPEED:g} m/s. Start "
            "from another configuration (robot.on_ground(q) puts a robot on the ground), or turn this into an error "
            "(contact=featherweight.ContactOptions(overlaps='refuse'))" + (asked if standing and sunk > SUNK else "")
        )


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
            named = ", ".join(self.limp[:FEW]) + ", …" * (len(self.limp) > FEW)
            warn_caller(
                f"{self.robot.name}: {named} ({len(self.limp)} position servos) exert no force, because the step has neither "
                f"control= nor tau=. With control=np.zeros({self.controls}) they hold zero, as in MuJoCo; "
                "Simulation(actuators=[]) has none"
            )
        self.limp = []


def is_servo(a: Actuator) -> bool:
    servo = a.servo is not None and a.servo.stiffness > 0.0
    return servo or (a.orientation is not None and a.orientation.stiffness > 0.0) or a.bias[1] < 0.0
