"""The constant part of a simulation: the robot and how it moves, its scene, contact law and limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..array_types import Array
from ..contact.contact_settings import ContactSettings
from ..contact.laws import COULOMB, PYRAMIDS, RIGID
from ..model.editing.notes import warn_caller
from ..model.types import Actuator
from ..robot.robot import Robot
from .arguments import states
from .contact_stage import ContactStage
from .forces.at_joints import ForcesAtJoints, forces_at_joints
from .forces.implicit_drives import has_implicit_drives
from .forces.laws import BY_VELOCITY, drive_armature
from .inverse_weights import weights_of_dofs
from .scene import LEAST_FRICTION, ContactSphere, Ground, TouchingParts
from .simulation_options import REFUSE, ContactOptions, JointOptions, law_of, shapes_have_something_to_touch
from .starts import NO_LIMITS, JointLimits, LimitsOfStarts
from .step_model import StepModel

CLOSED = 1e-6  # [m, sines of angles] greatest opening of loops at a start


@dataclass(frozen=True, eq=False)
class Touchable:
    """Parts that may touch: spheres and pairs of these, shapes of the file (None for those that can), and a ground."""

    spheres: tuple[ContactSphere, ...]
    pairs: tuple[tuple[int, int], ...]
    ground: Ground | None
    shapes: bool | None


@dataclass(frozen=True, eq=False)
class Plant:
    """A robot in its scene. A reset may exclude pairs of shapes of `contacts`, which copies do not share."""

    model: StepModel
    contacts: ContactStage
    limits: JointLimits
    ground: Ground | None

    @property
    def robot(self) -> Robot:
        return self.model.robot

    @property
    def forces(self) -> ForcesAtJoints:
        return self.model.forces

    @cached_property
    def holds_rigidly(self) -> bool:
        return self.contacts.settings.law == RIGID

    @cached_property
    def input_sizes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the inputs of one robot in one step, in the order of `Inputs`."""
        robot = self.robot
        return {"tau": (robot.nv,), "control": (self.forces.nu,), "external_forces": (len(robot.bodies), 6)}

    @property
    def start(self) -> Array:
        """The default initial configuration (nq,); compliant limits may be violated."""
        return self.robot.start(within_limits=self.holds_rigidly)

    def states(self, q: ArrayLike | None, v: ArrayLike | None) -> tuple[Array, Array]:
        """Return states (..., nq) and (..., nv) as new arrays. Raises ValueError for those from which no step can be taken."""
        q, v = states(self.robot, self.start if q is None else q, v)
        if self.model.looped:
            opening = float(self.robot.opening(q).max())  # type: ignore[attr-defined]
            if opening > CLOSED:
                raise ValueError(f"q: loops are open by {opening:.3g}; close them with robot.close(q)")
        if self.holds_rigidly:
            self.limits.check(q)
        return q, v

    @cached_property
    def limits_of_starts(self) -> LimitsOfStarts:
        """Limits that hold rigidly; others accept every start."""
        return self.limits.of_starts if self.holds_rigidly else NO_LIMITS

    @cached_property
    def starts_freely(self) -> bool:
        """Return whether a start is right if its numbers are, within limits and with closed loops: no length has limits."""
        robot: Any = self.robot
        known = not self.model.looped or robot.residual.address is not None
        return known and bool((self.limits_of_starts.at < robot.nq).all())

    def copied(self) -> Plant:
        """Return a plant for another simulation of the same robot and scene."""
        return replace(self, contacts=self.contacts.copied())


def plant_of(
    robot: Robot,
    actuators: Sequence[Actuator],
    step: float,
    integrator: str,
    touchable: Touchable,
    contact: ContactOptions,
    joints: JointOptions,
) -> Plant:
    forces = forces_at_joints(robot, actuators, step)
    model = StepModel(robot, step, integrator, forces, joints.passive and forces.smooth, contact)
    if model.has_drives and not model.driven:
        why = "it is too large" if isinstance(contact.delassus, str) else "delassus of ContactOptions is a function"
        warn_caller(
            f"{robot.name}: steps evaluate stiffness and damping of its drives at their start, because {why}: high gains may "
            "be unstable; use a short step"
        )
    if model.by_file and tuple(actuators) != tuple(robot.actuators) and has_implicit_drives(forces, step):
        _warn_of_stiff_drives(model)
    limits = JointLimits(robot, forces, joints.limits)
    law, cones = law_of(contact.law, robot)
    if forces.compliant_rows and law == RIGID:
        law_of_file = "" if robot.model.cone is None else '"file" or '
        raise ValueError(
            f"{robot.name}: its equalities are compliant, and contact={contact.law!r} holds rigidly; take "
            f'contact={law_of_file}"compliant", or load the robot with equalities="exact"'
        )
    if law != RIGID:
        _require_what_yields(robot, touchable, contact, cones)
    shapes = touchable.shapes
    if shapes is None:
        shapes = shapes_have_something_to_touch(robot, touchable.ground)
    parts = TouchingParts(
        touchable.spheres, touchable.pairs, touchable.ground, shapes, contact.friction, contact.restitution, limits.lower,
        limits.upper, joint_friction=joints.dry_friction and bool(forces.friction.any()), file_axes=cones == PYRAMIDS,
        least_friction=LEAST_FRICTION if cones != COULOMB else 0.0, by_file=cones != COULOMB,
    )  # fmt: skip
    settings = ContactSettings(
        step=step, margin=float(contact.margin), slop=float(contact.slop),
        bounce=float(max(contact.bounce, 2.0 * step * math.hypot(*robot.gravity))), tolerance=float(contact.tolerance),
        pyramid=bool(contact.pyramid), in_step=not (model.staged or integrator == "semi-implicit"), law=law, cones=cones,
        rounds=robot.model.noslip if cones != COULOMB else 0, depth_bounded=law == RIGID or contact.overlaps == REFUSE,
    )  # fmt: skip
    with model.wait:
        return Plant(model, ContactStage(model, parts, settings, contact.delassus), limits, touchable.ground)


def _warn_of_stiff_drives(model: StepModel) -> None:
    """Issue a ModelWarning about drives of joints that may be unstable, because steps of MuJoCo evaluate them at their start.

    Such a drive, with the stiffness k and damping d, is stable on an inertia I if 2 h d + h² k < 4 I.
    """
    robot, forces, start = model.robot, model.forces, model.robot.start(within_limits=False)
    weights = weights_of_dofs(robot, forces, start, np.asarray(robot.inverse_mass_matrix(start)))
    undamped = forces.drives.values.copy()
    undamped[BY_VELOCITY] = 0.0
    damped = undamped if model.drives_damp else forces.drives.values
    bound = 2.0 * drive_armature(damped, model.h) - drive_armature(undamped, model.h)  # 2 h d + h² k
    stiff = np.flatnonzero(bound * weights[forces.drives.row] >= 4.0)
    if len(stiff):
        names = ", ".join(forces.actuators[k].name for k in stiff)
        warn_caller(
            f"{robot.name}: steps of {model.h:g} s by the law of the file evaluate drives at their start, which can be unstable"
            f" for {names}; take contact='rigid', which evaluates them at the end, "
            "or a shorter step"
        )


def _require_what_yields(robot: Robot, touchable: Touchable, contact: ContactOptions, cones: int) -> None:
    """Raise ValueError for options that contacts of other laws than the rigid one ignore."""
    ground = () if touchable.ground is None else (touchable.ground,)
    bounces = contact.restitution or any(surface.restitution for surface in (*touchable.spheres, *ground))
    if bounces or (contact.pyramid and cones != COULOMB):
        what, whose = "restitution" if bounces else "pyramid=True", "of its file" if cones != COULOMB else repr(contact.law)
        raise ValueError(
            f"{robot.name}: {what} needs rigid contact, and contacts yield by the law {whose}; use contact='rigid', or "
            f"law='rigid' of featherweight.ContactOptions"
        )
