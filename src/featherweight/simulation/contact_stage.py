"""Parts of a robot that may touch, and joints with limits or dry friction, as arrays and functions for steps."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import Any

import numpy as np

from ..array_types import Array, Matrix
from ..contact import contact_model
from ..contact.compliant.contact_passes import Subtrees, subtrees
from ..contact.contact_model import ContactModel
from ..contact.contact_settings import ContactSettings
from ..contact.factors.branches import padded
from ..contact.laws import COMPLIANT, COULOMB, RIGID
from ..engine.function import CompiledFunction
from ..robot.constraints.contact import BilateralContact
from ..robot.system import placements
from .contact_inertia import ContactInertia, MappedRows, Method
from .inverse_weights import Compliance
from .scene import TouchingParts
from .scene_building import OVERLAP, Links, make_scene
from .step_model import StepModel

MOST_COUPLED = 100  # velocities of a robot up to which its matrix is eliminated as a whole


class ContactStage:
    """Contact data that are the same for all robots and steps.

    G, the Delassus matrix of all bodies that may touch, is one function, compiled once; the current contacts select rows of it.
    Limits and dry friction of joints add their rows when any is active.
    """

    def __init__(
        self, model: StepModel, parts: TouchingParts, settings: ContactSettings, algorithm: str | Method
    ) -> None:  # fmt: skip
        robot, forces, touching = model.struck, model.forces, make_scene(model.struck, parts)
        self.robot, self.forces, self.touching = robot, forces, touching
        self.scene, self.bodies, self.names = touching.scene, touching.bodies, touching.names
        self.numbers = np.array([[b.name for b in robot.bodies].index(name) for name in self.bodies], dtype=np.int64)
        bodies = self._contacts_of_bodies()
        dry = forces.friction if parts.joint_friction else np.zeros_like(forces.friction)
        free = forces.constant & (forces.equality_of_row < 0)  # limits of constant lengths have no effect, and any force
        lower, upper = np.where(free, -np.inf, parts.lower), np.where(free, np.inf, parts.upper)
        self.joint_dofs = contact_model.limited_rows(lower, upper, dry, forces.equality_of_row)
        self.rows = contact_model.joint_rows(forces.at, lower, upper, dry, settings.step, forces.equality_of_row)
        limited = [int(r) for r in self.joint_dofs if r >= forces.joint_rows]
        mapped = MappedRows(forces.mapped, forces.rows, forces.moved_by(limited))
        self.inertia = ContactInertia(robot, bodies, self.joint_dofs, bool(self.rows.friction.any()), algorithm, mapped)
        directed = bool(len(touching.surfaces) or len(touching.tangents) or touching.adhesion.any())
        settings = settings._replace(turning=bool(touching.turning.any()), patches=settings.patches and not directed)
        more: dict[str, Any] = {"turning": touching.turning} if settings.turning else {}
        self.compliance = Compliance(model.robot, forces, touching, self.rows, settings.step) if settings.law != RIGID else None
        if self.compliance:
            more["yielding"], more["yielding_rows"] = self.compliance.numbers()
        if touching.adhesion.any():
            more["adhesion"] = np.column_stack([touching.adhesion, touching.scene.gap[touching.pairs]])
        width, branch_of_row = np.array([c.size for c in bodies], dtype=np.int64), self.inertia.branch_of_row
        self.settings, self.model = settings, ContactModel(
            width, touching.friction, touching.restitution, self.rows, settings,
            branch_of_row[[robot.model.placed_bodies[b].row for b in self.numbers]], branch_of_row[self.joint_dofs].copy(),
            robot.nv, surfaces=touching.surfaces, tangents=touching.tangents, **more,
        )  # fmt: skip
        self.body_placements: Any = robot.frame_placement(self.bodies) if self.bodies else None
        self.body_velocities: Any = robot.frame_velocity(self.bodies, "local") if self.bodies else None

    @cached_property
    def signs(self) -> Matrix:
        """The signs (rows, n) of the impulses of limits and dry friction at the degrees of freedom that they act on."""
        signs = np.zeros((len(self.rows.joint), self.forces.rows))
        signs[np.arange(len(signs)), self.rows.dof] = self.rows.sign
        return signs

    @cached_property
    def internal(self) -> Array:
        """Mark each possible contact point (candidates,) of two bodies of the robot, not of the world."""
        pairs = self.scene.pair[self.touching.pairs]
        return np.asarray((self.scene.body[pairs] >= 0).all(axis=1))

    def _contacts_of_bodies(self) -> list[BilateralContact]:
        """Return the rows of each body: three of its single contact point, or all six."""
        contacts, scene, count = [], self.scene, self.touching.sphere_count
        in_pairs = set(scene.pair[scene.pair[:, 1] < count].ravel().tolist())
        for b, name in enumerate(self.bodies):
            own = np.flatnonzero(scene.body == b)
            lone = len(own) == 1 and own[0] < count and scene.radius[own[0]] == 0.0 and own[0] not in in_pairs
            T = np.eye(4)
            if lone:
                T[:3, 3] = scene.placement[own[0], 9:]
            contacts.append(BilateralContact(name, "point" if lone else "weld", placement=T))
        return contacts

    @cached_property
    def convex(self) -> bool:
        """Return whether contacts have the convex law of MJCF files, without corrections of its solution."""
        s = self.settings
        return s.law == COMPLIANT and s.cones != COULOMB and not (s.in_step or s.rounds)

    @cached_property
    def in_passes(self) -> bool:
        """Return whether contacts are solved in passes of articulated bodies (see `contact.compliant.contact_passes`).

        That is so for the convex laws of MJCF files, and trees. Contacts of very many bodies couple too many velocities; the
        factor of the problem's matrix then replaces passes (see `contact.compliant.primal_by_factor`).
        """
        robot = self.robot
        small = robot.nv <= MOST_COUPLED or not self.coupling
        return self.convex and small and self.inertia.algorithm == "auto" and self.touches and not robot.closed

    @property
    def touches(self) -> bool:
        """Return whether there may be contacts or active joint rows."""
        return bool(self.bodies or len(self.rows.joint))

    @property
    def coupling(self) -> bool:
        """Return whether two moving bodies may touch, or tendons have limits or dry friction."""
        bodies = self.scene.body[self.scene.pair]
        return bool((bodies >= 0).all(axis=1).any() or (self.joint_dofs >= self.robot.nv).any())

    @cached_property
    def pass_functions(self) -> tuple[CompiledFunction[Any] | None, ...] | None:
        """The functions of `PassCalls` of the robot, if contacts are solved in passes."""
        if not self.in_passes:
            return None
        rows = tuple(self.joint_dofs[self.joint_dofs < self.robot.nv].tolist())
        of_bodies = placements([self.robot.model.placed_bodies[b] for b in self.numbers])
        functions = self.robot.step_functions.contact_passes(of_bodies, rows, padded(self.robot.nv))
        *of_all, loads, axes = functions
        return (*of_all, loads, self.body_velocities, axes) if self.coupling else (*functions[:2], None, None, None, None)

    @property
    def subtrees(self) -> Subtrees:
        """The velocities that move each body that may touch."""
        return subtrees(self.robot.parent, [self.robot.model.placed_bodies[b].row for b in self.numbers])

    def copied(self) -> ContactStage:
        """Return a stage that may exclude other pairs of shapes; all else is shared."""
        other = copy.copy(self)
        other.scene = self.scene._replace(enabled=self.scene.enabled.copy())
        other.touching = self.touching._replace(scene=other.scene)
        return other

    def leave_out(self, candidates: Array, gaps: Array) -> None:
        """Exclude the pairs of shapes of one robot that overlap here: the file draws them inside each other."""
        pairs = self.touching.pairs[candidates[gaps < -OVERLAP]]
        self.scene.enabled[pairs[self.touching.drawn[pairs]]] = False

    @property
    def excluded(self) -> list[Links]:
        first = self.scene.first[~self.scene.enabled]
        return list(dict.fromkeys(self.touching.links[c] for c in first))

    @property
    def looks_back(self) -> bool:
        """Return whether the problem needs velocities before the step: surfaces bounce, or impacts come before the motion."""
        return self.settings.in_step or self.settings.law != RIGID or bool(self.model.restitution.any())
