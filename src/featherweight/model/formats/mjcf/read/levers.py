"""Fixed tendons, and actuators, of MJCF files whose length is that of one joint: their forces become forces of the joint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ....types import NO_POLY, Coupling, Joint
from ...unsupported import Unsupported, nonnegative
from ..mujoco_types import MjModel, Mujoco
from ..numbers import disabled, gears_of, softness_of, within
from .tendons import fixed_tendon, length_by_one_joint

SCALARS = ("stiffness", "damping", "frictionloss", "armature")
OF_LATER_VERSIONS = {
    "springs of tendons that yield": ("tendon_springyield",),
}
"""Fields of tendons that are not read, by their description in a report; MuJoCo 3.3 lacks some of them."""


def poly_of(model: MjModel, field: str, k: int) -> tuple[float, float]:
    """Return the higher coefficients of a spring or a damper, zero if MuJoCo's version has none."""
    values = getattr(model, field, None)
    return NO_POLY if values is None else (float(values[k, 0]), float(values[k, 1]))


class Lever(NamedTuple):
    """A length that is arm × the coordinate of a hinge or slide joint + offset."""

    joint: int
    arm: float
    offset: float


class Tendons:
    """The tendons of a compiled model, for joints that follow others exactly by `couplings`."""

    def __init__(self, mujoco: Mujoco, model: MjModel, couplings: Sequence[Coupling]) -> None:
        self.mujoco, self.model = mujoco, model
        self.levers: dict[int, Lever] = {}
        self.led: list[int] = []  # tendons of several joints among these
        for t in range(model.ntendon):
            tendon = fixed_tendon(mujoco, model, t)
            found = None if tendon is None else length_by_one_joint(tendon, couplings)
            if found is not None and not self._acts_alone(t, int(model.joint(found[0]).id)):
                joint, arm, offset = found
                self.levers[t] = Lever(int(model.joint(joint).id), arm, offset)
                if tendon is None or set(tendon.terms) != {joint}:
                    self.led.append(t)

    def with_forces(self, joints: Sequence[Joint], names: Mapping[int, str], source: str) -> list[Joint]:
        """Return the joints with the forces of tendons; `names` are those of MuJoCo's joints by number."""
        changed = {j.name: j for j in joints}
        for t, lever in self.levers.items():
            joint = changed[names[lever.joint]]
            where = f"{source}: tendon '{self.model.tendon(t).name or f'number {t}'}'"
            changed[joint.name] = self._with(joint, t, lever, where)
        return [changed[j.name] for j in joints]

    def _with(self, joint: Joint, t: int, lever: Lever, where: str) -> Joint:
        """Return a joint with the forces of a tendon: F along the tendon is arm × F at the joint, and forces add up."""
        model, arm = self.model, lever.arm
        values = self.values(t, where)
        stiffness, rest = joint.stiffness, joint.rest
        if values["stiffness"]:
            more = arm * arm * values["stiffness"]
            length = float(model.tendon_lengthspring[t, 0])
            rest = (stiffness * rest + more * (length - lever.offset) / arm) / (stiffness + more)
            stiffness += more
        lower, upper = joint.lower, joint.upper
        if model.tendon_limited[t] and not disabled(self.mujoco, model.opt, "LIMIT"):
            lengths = within(model.tendon_range[t], model.tendon_margin[t])
            ends = sorted((length - lever.offset) / arm for length in lengths)
            lower, upper = max(lower, ends[0]), min(upper, ends[1])
        return replace(
            joint,
            lower=lower,
            upper=upper,
            stiffness=stiffness,
            rest=rest,
            damping=joint.damping + arm * arm * values["damping"],
            dry_friction=joint.dry_friction + abs(arm) * values["frictionloss"],
            armature=joint.armature + arm * arm * values["armature"],
        )

    def values(self, t: int, where: str) -> dict[str, float]:
        """Return stiffness, damping, frictionloss and armature."""
        return {what: nonnegative(self._value(what, t), what, where) for what in SCALARS}

    def polys(self, t: int) -> dict[str, tuple[float, float]]:
        """Return the higher coefficients of stiffness and damping, the latter including those of the drives along it."""
        spring, damper = (poly_of(self.model, f"tendon_{what}poly", t) for what in ("stiffness", "damping"))
        more = self._of_drives(t, "actuator_dampingpoly")
        return {
            "stiffness_poly": NO_POLY if self.off("SPRING") else spring,
            "damping_poly": NO_POLY if self.off("DAMPER") else (damper[0] + more[0], damper[1] + more[1]),
        }

    def damping_by_drives(self, t: int) -> float:
        """Return the damping [N s/m, N m s/rad] that the drives along a tendon add to its own."""
        return 0.0 if self.off("DAMPER") else float(self._of_drives(t, "actuator_damping")[0])

    def _of_drives(self, t: int, field: str) -> Any:
        """Return the sums of gear² times one or more fields of the drives along a tendon."""
        model = self.model
        values = np.atleast_2d(np.asarray(getattr(model, field, np.zeros((len(model.actuator_trntype), 2)))).T)
        on = (model.actuator_trntype == self.mujoco.mjtTrn.mjTRN_TENDON) & (model.actuator_trnid[:, 0] == t)
        return (values * (on * gears_of(model)[:, 0] ** 2)).sum(axis=1)

    def _acts_alone(self, t: int, joint: int) -> bool:
        """Return whether a tendon of one joint must act as a tendon, because a joint cannot express its forces.

        These are a spring with a slack range or a nonlinear spring where the joint's may be too, limits and dry friction with
        another softness than the joint's, bounded drives, and drives of joints that follow each other and have their own
        efforts.
        """
        first, last = self.model.tendon_lengthspring[t]
        slack = bool(first != last)  # over a range of lengths
        beside = slack or any(poly_of(self.model, "jnt_stiffnesspoly", joint))
        alone = self._value("stiffness", t) != 0.0 and beside
        alone = alone or self._has_own_softness(t, joint) or self.bounds_drives(t) or self._drives_bounded(t, joint)
        return alone or any(any(poly) for poly in self.polys(t).values())

    def _has_own_softness(self, t: int, joint: int) -> bool:
        """Return whether a tendon has a limit or dry friction with another softness than those of a joint."""
        model, dof = self.model, int(self.model.jnt_dofadr[joint])
        limit = softness_of(model.tendon_solref_lim[t], model.tendon_solimp_lim[t])
        friction = softness_of(model.tendon_solref_fri[t], model.tendon_solimp_fri[t])
        limited = bool(model.tendon_limited[t]) and limit != softness_of(model.jnt_solref[joint], model.jnt_solimp[joint])
        rubs = self._value("frictionloss", t) != 0.0
        return limited or (rubs and friction != softness_of(model.dof_solref[dof], model.dof_solimp[dof]))

    def _drives_bounded(self, t: int, joint: int) -> bool:
        """Return whether drives act along a tendon of joints that follow a joint, any of which has an effort limit."""
        model = self.model
        rows = slice(int(model.tendon_adr[t]), int(model.tendon_adr[t] + model.tendon_num[t]))
        together = {joint, *map(int, model.wrap_objid[rows])}
        on = (model.actuator_trntype == self.mujoco.mjtTrn.mjTRN_TENDON) & (model.actuator_trnid[:, 0] == t)
        return bool(len(together) > 1 and on.any() and model.jnt_actfrclimited[[*together]].any())

    def bounds_drives(self, t: int) -> bool:
        """Return whether the force of all drives along a tendon is bounded; MuJoCo 3.3 has no such bounds."""
        return bool(getattr(self.model, "tendon_actfrclimited", np.zeros(t + 1))[t])

    def _value(self, what: str, t: int) -> float:
        flag = {"stiffness": "SPRING", "damping": "DAMPER", "frictionloss": "FRICTIONLOSS"}.get(what)
        if flag and self.off(flag):
            return 0.0
        values = getattr(self.model, f"tendon_{what}", None)  # MuJoCo 3.3 has fewer fields
        return 0.0 if values is None else float(np.ravel(values[t])[0])  # the lowest coefficient of a polynomial

    def off(self, what: str) -> bool:
        """Return whether the file disables springs, dampers or dry friction."""
        return disabled(self.mujoco, self.model.opt, what)

    def refuse_armature(self, unsupported: Unsupported, source: str) -> None:
        for t in range(self.model.ntendon):
            if t not in self.levers and self._value("armature", t) != 0.0:
                problem = "tendon armature is supported where the tendon is that of one joint"
                remedy = "set its armature to zero, or move it to the joints"
                unsupported.refuse(f"{source}: tendon '{self.model.tendon(t).name or f'number {t}'}'", problem, remedy)

    def unused(self) -> Iterator[tuple[str, str]]:
        """Yield the properties of tendons that are not read, each with the number of tendons that have it."""
        model = self.model
        for kind, fields in OF_LATER_VERSIONS.items():
            values = [np.atleast_2d(getattr(model, field, np.zeros((model.ntendon, 1))).T).T for field in fields]
            if count := sum(any(rows[t].any() for rows in values) for t in range(model.ntendon)):
                yield kind, f"{count}"
