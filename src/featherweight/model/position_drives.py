"""Position drives for a robot's joints, given by gains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from .types import Actuator, JointType

DRIVEN = (JointType.REVOLUTE, JointType.CONTINUOUS, JointType.PRISMATIC)

Gain = float | Mapping[str, float]


class DrivenJoint(Protocol):
    """A joint of a description or of a robot."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> JointType: ...
    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...


@dataclass(frozen=True)
class PD:
    """A drive at each joint that pulls it to a target u: joint force = stiffness (u - q) - damping q'.

    Stiffness [N m/rad, N/m] and damping [N m s/rad, N s/m] are numbers for all joints, or mappings from joint names. `joints`
    names the driven joints; the default is all independent joints with one degree of freedom. The controls are targets [rad,
    m] in the order of the joints, clipped to the joints' limits; forces are clipped to the joints' efforts.

    A simulation evaluates these drives at the end of its step (implicitly), so that any gains are stable:

        sim = featherweight.Simulation(robot, 0.01, actuators=featherweight.PD(80.0, 3.0))
        sim.step(control=targets)

    To follow a moving target with the velocity w, give u + w damping / stiffness.
    """

    stiffness: Gain
    damping: Gain = 0.0
    joints: Iterable[str] | None = None

    def actuators(self, joints: Iterable[DrivenJoint]) -> tuple[Actuator, ...]:
        """Return the drives of those of `joints` that are driven.

        Raises ValueError for unknown names, and for gains that are negative, infinite or missing.
        """
        known = {j.name: j for j in joints if j.type in DRIVEN}
        names = tuple(known if self.joints is None else self.joints)
        for what, wanted in (("joints", names), ("stiffness", self.stiffness), ("damping", self.damping)):
            if not isinstance(wanted, int | float) and (unknown := [name for name in wanted if name not in known]):
                raise ValueError(
                    f"PD: {what} names {unknown[0]!r}, which is not an independent joint with one degree of freedom; "
                    f"there are {', '.join(known)}"
                )
        return tuple(self._drive(known[name]) for name in names)

    def _drive(self, joint: DrivenJoint) -> Actuator:
        kp, kd = (self._gain(what, joint.name) for what in ("stiffness", "damping"))
        return Actuator(joint.name, joint.name, gain=kp, bias=(0.0, -kp, -kd), control=(joint.lower, joint.upper))

    def _gain(self, what: str, name: str) -> float:
        given: Gain = getattr(self, what)
        if isinstance(given, Mapping) and name not in given:
            raise ValueError(f"PD: {what} has no number for joint {name!r}")
        gain = float(given[name] if isinstance(given, Mapping) else given)
        if not 0.0 <= gain < float("inf"):
            raise ValueError(f"PD: {what} of joint {name!r} must be a finite number, zero or more; got {gain}")
        return gain
