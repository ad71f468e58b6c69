"""Forces at the joints of MJCF files: damping, dry friction and springs, and actuators.

The values are those of MuJoCo's compiled model. Forces that <flag> disables are left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .....array_types import Array
from ....servos import UNBOUNDED
from ....types import NO_POLY, Actuator, ControlDelay, Coupling, JointDynamics, ModelError, SampleInterpolation, as_vector
from ...robot_numbers import unlimited
from ...unsupported import Unsupported, nonnegative
from ...xml import Names
from ..mujoco_types import MjModel, Mujoco
from ..numbers import disabled, first_controls, gears_of, softness_of, within
from ..servos import read_servo
from .levers import Lever, Tendons, poly_of
from .tendon_elements import as_range
from .transmissions import DYNAMICS, TRANSMISSIONS, activation_of, muscle_of, transmission_of

SERVOS = ("pid", "dcmotor", "so3")
# pairs of gain and bias types
ALIKE = (("muscle", "muscle"), ("muscle", "none"), ("pid", "affine"), ("dcmotor", "dcmotor"), ("so3", "so3"))
ACTUATORS = "actuators"  # key of reports for actuators that are not read


class MujocoForces:
    """The forces at the joints of a compiled model, except those of tendons."""

    def __init__(self, mujoco: Mujoco, model: MjModel, source: str, tendons: Mapping[int, Lever]) -> None:
        """`tendons` are the tendons whose length is that of one joint."""
        self.mujoco, self.model, self.source, self.tendons = mujoco, model, source, tendons
        self.rotors = self._reflected("actuator_armature")
        self.dampers = self._reflected("actuator_damping")
        self.nonlinear_dampers = [self._reflected("actuator_dampingpoly", k) for k in range(2)]

    def dynamics(self, j: int, name: str) -> JointDynamics:
        """Return the limits of joint number j and the forces at it, except those of tendons.

        Raises ModelError for a value that differs between the joint's coordinates, or is negative.
        """
        model, kinds = self.model, self.mujoco.mjtJoint
        kind, dof = int(model.jnt_type[j]), int(model.jnt_dofadr[j])
        scalar, free = kind in (kinds.mjJNT_HINGE, kinds.mjJNT_SLIDE), kind == kinds.mjJNT_FREE
        values = {
            "armature": self._same("dof_armature", "armature", j, name),
            "damping": self._same("dof_damping", "damping", j, name) + self.dampers.get(j, 0.0),
            "friction": self._same("dof_frictionloss", "friction", j, name),
            "stiffness": 0.0 if self._off("SPRING") else _first(model.jnt_stiffness[j]),
        }
        values = {what: nonnegative(x, what, f"{self.source}: joint '{name}'") for what, x in values.items()}
        spring = NO_POLY if self._off("SPRING") else poly_of(model, "jnt_stiffnesspoly", j)
        damper, more = poly_of(model, "dof_dampingpoly", dof), [x.get(j, 0.0) for x in self.nonlinear_dampers]
        has_spring = values["stiffness"] or any(spring)
        least, most = as_range(model.jnt_actfrcrange[j], model.jnt_actfrclimited[j])
        limited = not free and model.jnt_limited[j] and not disabled(self.mujoco, model.opt, "LIMIT")
        lower, upper = within(model.jnt_range[j], model.jnt_margin[j]) if limited else (-math.inf, math.inf)
        return JointDynamics(
            lower=unlimited(float(lower)) if scalar else -math.inf,
            upper=unlimited(float(upper)),
            stiffness=values["stiffness"],
            damping=0.0 if self._off("DAMPER") else values["damping"],
            dry_friction=0.0 if self._off("FRICTIONLOSS") else values["friction"],
            stiffness_poly=spring,
            damping_poly=NO_POLY if self._off("DAMPER") else (damper[0] + more[0], damper[1] + more[1]),
            limit_softness=softness_of(model.jnt_solref[j], model.jnt_solimp[j]),
            dry_friction_softness=softness_of(model.dof_solref[dof], model.dof_solimp[dof]),
            rest=float(model.qpos_spring[model.jnt_qposadr[j]]) if scalar and has_spring else 0.0,
            rest_pose=self._rest_pose(j) if free and has_spring else (),
            armature=values["armature"] + self.rotors.get(j, 0.0),
            effort=max(-least, most),
            effort_range=(least, most) if least != -most else None,
            drive_compensates=bool(model.jnt_actgravcomp[j]),
        )

    def _rest_pose(self, j: int) -> tuple[float, ...]:
        x, y, z, w, a, b, c = (float(x) for x in self.model.qpos_spring[self.model.jnt_qposadr[j] :][:7])
        return x, y, z, a, b, c, w

    def _off(self, what: str) -> bool:
        """Return whether a flag disables a force; MuJoCo before 3.4 has one flag for springs and dampers."""
        both = what in ("SPRING", "DAMPER") and disabled(self.mujoco, self.model.opt, "PASSIVE")
        return both or disabled(self.mujoco, self.model.opt, what)

    def _same(self, field: str, what: str, j: int, name: str) -> float:
        """Return the value that all degrees of freedom of a joint share."""
        kinds, start = self.mujoco.mjtJoint, int(self.model.jnt_dofadr[j])
        width = {kinds.mjJNT_FREE: 6, kinds.mjJNT_BALL: 3}.get(int(self.model.jnt_type[j]), 1)
        values = [_first(value) for value in getattr(self.model, field)[start : start + width]]
        if max(values) != min(values):
            remedy = "give all degrees of freedom the same"
            raise ModelError(f"{self.source}: joint '{name}': {what} differs between its coordinates; {remedy}")
        return values[0]

    def _reflected(self, field: str, k: int | None = None) -> dict[int, float]:
        """Return the contributions of actuators by joint: with gear g, g² times their armature or damping, or coefficient k."""
        values = self._of_actuators(field)
        values = values[:, k] if k is not None and values.ndim > 1 else values
        reflected: dict[int, float] = {}
        for a in map(int, np.flatnonzero(values)):
            if values[a] < 0.0 and k is None:
                nonnegative(float(values[a]), field.removeprefix("actuator_"), f"{self.source}: actuator '{self._name(a)}'")
                continue
            if lever := self._lever(a) or (self._turned(a) if "damping" in field else None):
                reflected[lever.joint] = reflected.get(lever.joint, 0.0) + lever.arm**2 * float(values[a])
        return reflected

    def _turned(self, a: int) -> Lever | None:
        """Return the ball or free joint of an actuator, whose dampers act on all of its velocities by the first gear."""
        model, transmissions = self.model, self.mujoco.mjtTrn
        if int(model.actuator_trntype[a]) not in (transmissions.mjTRN_JOINT, transmissions.mjTRN_JOINTINPARENT):
            return None
        return Lever(int(model.actuator_trnid[a, 0]), float(gears_of(model)[a, 0]), 0.0)

    def refuse_armature_elsewhere(self, unsupported: Unsupported) -> None:
        for a in map(int, np.flatnonzero(self._of_actuators("actuator_armature"))):
            if not self._lever(a):
                problem = "armature is supported on hinge and slide joints, and tendons of one of them, only"
                remedy = "set its armature to zero, move it to the joint"
                unsupported.refuse(f"{self.source}: armature of actuator '{self._name(a)}'", problem, remedy)

    def _name(self, a: int) -> str:
        return self.model.actuator(a).name or f"number {a}"

    def _of_actuators(self, field: str) -> Array:
        """Return a field of each actuator, zero if MuJoCo's version has no such field."""
        return getattr(self.model, field, np.zeros(len(self.model.actuator_trntype)))

    def _transmission(self, a: int) -> str:
        """Return "joint" for an actuator on a hinge or slide joint, otherwise the kind of its transmission."""
        model, transmissions, kinds = self.model, self.mujoco.mjtTrn, self.mujoco.mjtJoint
        kind = int(model.actuator_trntype[a])
        if kind not in (transmissions.mjTRN_JOINT, transmissions.mjTRN_JOINTINPARENT):
            return _word(transmissions(kind))
        j = int(model.actuator_trnid[a, 0])
        joint = int(model.jnt_type[j])
        if joint in (kinds.mjJNT_HINGE, kinds.mjJNT_SLIDE):
            return "joint"
        beside = " beside others" if model.body_jntnum[model.jnt_bodyid[j]] > 1 else ""
        return f"{_word(kinds(joint))} joint{beside}"

    def _lever(self, a: int) -> Lever | None:
        """Return the length of an actuator if it is that of one joint."""
        model, kind, gear = self.model, self._transmission(a), float(gears_of(self.model)[a, 0])
        if kind == "joint":
            return Lever(int(model.actuator_trnid[a, 0]), gear, 0.0)
        if kind == "tendon" and (lever := self.tendons.get(int(model.actuator_trnid[a, 0]))):
            return Lever(lever.joint, gear * lever.arm, gear * lever.offset)
        return None

    # actuators

    def actuators(self, joints: Mapping[int, str], bodies: Sequence[str]) -> dict[int, Actuator]:
        """Return actuators by number; `joints` and `bodies` are all names by number."""
        model = self.model
        count = len(model.actuator_trntype)
        names = Names(model.actuator(a).name for a in range(count))
        clipped, first = not disabled(self.mujoco, model.opt, "CLAMPCTRL"), first_controls(model)
        actuators: dict[int, Actuator] = {}
        for a in range(count):
            if self._obstacle(a):
                continue
            acts = transmission_of(self.mujoco, model, a, self._lever(a), joints, bodies)
            b0, b1, b2 = as_vector(model.actuator_biasprm[a, :3])
            g0, g1, g2 = as_vector(model.actuator_gainprm[a, :3])
            servo, u = read_servo(model, a, self._curves(a)[0], clipped), first[a]
            muscle = muscle_of(self.mujoco, model, a, acts.offset)
            affine = int(model.actuator_biastype[a]) == self.mujoco.mjtBias.mjBIAS_AFFINE
            sloping = int(model.actuator_gaintype[a]) == self.mujoco.mjtGain.mjGAIN_AFFINE
            actuators[a] = Actuator(
                model.actuator(a).name or names.new(f"{acts.word}_actuator"),
                acts.joint,
                acts.gear,
                1.0 if muscle else g0 + g1 * acts.offset if sloping else g0,
                (b0 + b1 * acts.offset, b1, b2) if affine else (0.0, 0.0, 0.0),
                UNBOUNDED if servo else as_range(model.actuator_ctrlrange[u], clipped and model.actuator_ctrllimited[u]),
                as_range(model.actuator_forcerange[a], model.actuator_forcelimited[a]),
                acts.tendon,
                acts.at,
                (g1 + 0.0, g2 + 0.0) if sloping else (0.0, 0.0),  # no -0
                activation_of(self.mujoco, model, a),
                muscle,
                acts.adhesion,
            )
            if servo:
                actuators[a] = replace(actuators[a], **servo)
            if delay := float(self._of_actuators("actuator_delay")[a]):
                samples, how = (int(x) for x in model.actuator_history[a])
                actuators[a] = replace(actuators[a], delay=ControlDelay(delay, samples, tuple(SampleInterpolation)[how]))
        return actuators

    def _obstacle(self, a: int) -> str:
        """Describe in one or two words why an actuator is not supported; empty if it is."""
        model, mujoco = self.model, self.mujoco
        if model.opt.disableactuator >> int(model.actuator_group[a]) & 1 or self._off("ACTUATION"):
            return "disabled"
        kind = self._transmission(a)
        if kind not in TRANSMISSIONS:
            return f"on {kind}"
        if int(model.actuator_plugin[a]) >= 0:
            return "plugin"
        for field, kinds, known in (
            ("actuator_dyntype", mujoco.mjtDyn, ("none", *DYNAMICS, *SERVOS)),
            ("actuator_gaintype", mujoco.mjtGain, ("fixed", "affine", "muscle", *SERVOS)),
            ("actuator_biastype", mujoco.mjtBias, ("none", "affine", "muscle", *SERVOS)),
        ):
            word = _word(kinds(int(getattr(model, field)[a])))
            if word not in known:
                return word
        gain, bias = self._curves(a)
        if (gain, bias) not in ALIKE and {gain, bias} & {"muscle", *SERVOS}:
            return f"{gain} gain and {bias} bias"
        lever = self._lever(a)
        if gain in SERVOS and lever is not None and lever.offset != 0.0:
            return f"{gain} on a tendon whose length has a constant part"
        return ""

    def _curves(self, a: int) -> tuple[str, str]:
        """Return the types of the gain and of the bias, in MJCF's words."""
        model, mujoco = self.model, self.mujoco
        return (
            _word(mujoco.mjtGain(int(model.actuator_gaintype[a]))),
            _word(mujoco.mjtBias(int(model.actuator_biastype[a]))),
        )

    def unused(self) -> Iterator[tuple[str, str]]:
        """Yield, in words, the actuators and springs at joints that are not read."""
        model = self.model
        others = Counter(filter(None, map(self._obstacle, range(len(model.actuator_trntype)))))
        if others:
            yield ACTUATORS, ", ".join(f"{count} {kind}" for kind, count in others.items())
        zero = np.zeros(1)
        for kind, number in (("springs that yield", np.count_nonzero(getattr(model, "jnt_springyield", zero))),):
            if number:
                yield kind, f"{number}"


def read_actuators(model: MjModel, joints: Sequence[str], couplings: Sequence[Coupling]) -> dict[int, Actuator]:
    """Return the actuators of a compiled model by number, as `read_mjcf` names them; `joints` are names of all its joints."""
    bodies = [model.body(i).name for i in range(model.nbody)]
    import mujoco  # type: ignore[import-untyped, unused-ignore]  # it is there, where a model is

    return MujocoForces(mujoco, model, "", Tendons(mujoco, model, couplings).levers).actuators(dict(enumerate(joints)), bodies)


def _first(value: ArrayLike) -> float:
    """Return a number; for a polynomial, the lowest coefficient."""
    return float(np.ravel(value)[0])


def _word(value: Any) -> str:
    """Return the last part of the name of MuJoCo's constant."""
    return str(value.name).rpartition("_")[2].lower()
