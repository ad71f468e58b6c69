"""Position drives for a robot's joints, given by gains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from numpy.typing import ArrayLike

from ..checks import NAME, NONNEGATIVE, checked, dict_of, either, list_of
from .types import Actuator, JointType

DRIVEN = (JointType.REVOLUTE, JointType.CONTINUOUS, JointType.PRISMATIC)

OF_JOINTS = either([NONNEGATIVE, dict_of(NAME, NONNEGATIVE), list_of(NONNEGATIVE)]).worded(
    "a finite number, zero or more, or one for each joint, in a list or in a dict by name"
)

OfJoints = Annotated[float | Mapping[str, float] | ArrayLike, OF_JOINTS]
"""A number for all joints, or one for each."""


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


@checked
@dataclass(frozen=True)
class PD:
    """A drive at each joint that pulls it to a target u: joint force = stiffness (u - q) - damping q'.

    Stiffness [N m/rad, N/m] and damping [N m s/rad, N s/m] are numbers for all joints, lists or arrays in the order of the
    driven joints, or mappings from joint names. `joints` names the driven joints; the default is all independent joints with
    one degree of freedom. The controls are targets [rad, m] in the order of the joints, clipped to the joints' limits; forces
    are clipped to the joints' efforts.

    A simulation evaluates these drives at the end of its step (implicitly), so that any gains are stable:

        sim = featherweight.Simulation(robot, 0.01, actuators=featherweight.PD(80.0, 3.0))
        sim.step(control=q)  # targets

    To follow a moving target with the velocity w, give u + w damping / stiffness.
    """

    stiffness: OfJoints
    damping: OfJoints = 0.0
    joints: Iterable[str] | None = None

    def actuators(self, joints: Iterable[DrivenJoint]) -> tuple[Actuator, ...]:
        """Return the drives of those of `joints` that are driven.

        Raises ValueError for unknown names, and for gains that are negative, infinite or missing.
        """
        known = {j.name: j for j in joints if j.type in DRIVEN}
        names = tuple(known if self.joints is None else self.joints)
        by_name = {what: x for what, x in (("stiffness", self.stiffness), ("damping", self.damping)) if isinstance(x, Mapping)}
        for what, named in {"joints": names, **by_name}.items():
            if unknown := [name for name in named if name not in known]:
                raise ValueError(
                    f"PD: {what} names {unknown[0]!r}, which is not an independent joint with one degree of freedom; "
                    f"there are {', '.join(known)}"
                )
        gains = zip(self._gains("stiffness", names), self._gains("damping", names), strict=True)
        return tuple(
            Actuator(name, name, gain=kp, bias=(0.0, -kp, -kd), control=(known[name].lower, known[name].upper))
            for name, (kp, kd) in zip(names, gains, strict=True)
        )

    def _gains(self, what: str, names: Sequence[str]) -> list[float]:
        """Return the gains of the driven joints."""
        given: Any = getattr(self, what)
        if isinstance(given, Mapping):
            if missing := [name for name in names if name not in given]:
                raise ValueError(f"PD: {what} has no number for joint {missing[0]!r}")
            return [float(given[name]) for name in names]
        if isinstance(given, tuple) and len(given) != len(names):
            raise ValueError(
                f"PD: {what} has {len(given)} numbers, but there are {len(names)} driven joints: {', '.join(names)}; give a "
                "number for each, or one for all"
            )
        return [float(x) for x in given] if isinstance(given, tuple) else [float(given)] * len(names)
