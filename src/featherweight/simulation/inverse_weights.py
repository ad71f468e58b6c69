"""Inverse inertias of bodies and joints, which determine the compliance of contacts, limits and dry friction as in MuJoCo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..array_types import Array
from ..contact.compliant.compliance import numbers_of, weights_of_cones
from ..contact.joint_rows import JointRows
from ..model.contact_rules import Softness
from ..model.inertial_parameters import NAMES
from ..model.model import CompliantLoop, MovingBody, MovingJoint
from ..model.types import PYRAMIDAL, Coupling, Frame, JointType, Pose
from ..robot.robot import Robot
from ..robot.tendons.tendon_table import CompliantRow
from .forces.at_joints import ForcesAtJoints
from .scene_building import TouchingScene


class Inertias(NamedTuple):
    """Inertial parameters (..., nbodies, 10) of robots, and their armatures (..., k) as in `Robot.armature`."""

    parameters: Array
    armature: Array


class Compliance:
    """Numbers of the contacts and joint rows of a robot for `contact.compliant.compliance`, with its own inertias or others."""

    def __init__(self, robot: Robot, forces: ForcesAtJoints, touching: TouchingScene, rows: JointRows, step: float) -> None:
        self.robot, self.forces, self.touching, self.rows, self.step = robot, forces, touching, rows, step
        self._compliant = {forces.rows - len(forces.compliant_rows) + k: x for k, x in enumerate(forces.compliant_rows)}
        self.of_contacts = arrays_of(touching.softness)  # as in the file
        self._of_rows = arrays_of([self._softness(int(d), bool(f)) for d, f in zip(rows.dof, rows.friction, strict=True)])

    def _softness(self, dof: int, rubs: bool) -> Softness:
        if dof not in self._compliant:
            found: Softness = self.forces.softness("dry_friction" if rubs else "limit")[dof]
            return found
        by = self._compliant[dof].by
        return by.loop.softness if isinstance(by, CompliantLoop) else by.softness

    def numbers(
        self, inertias: Inertias | None = None, solref: Array | None = None, solimp: Array | None = None
    ) -> tuple[Array, Array]:
        """Return fields of `Yielding` of contacts (..., candidates, 12) and of joint rows (..., rows, 12).

        `solref` (..., 2) and `solimp` (..., 5) are factors of those of all contacts.
        """
        weights, of_rows = self.weights(inertias)
        touching, model = self.touching, self.robot.model
        edges = 4.0 + 2.0 * (touching.turning > 0.0).sum(axis=1)
        first = np.ones(len(touching.friction))
        if len(touching.tangents):
            first = np.where(touching.tangents[:, 0] > 0.0, touching.tangents[:, 0], 1.0)
        mu, pyramids = first * touching.friction, model.cone == PYRAMIDAL
        normal, sliding = weights_of_cones(weights, mu, model.impratio, pyramids, edges)
        own_solref, own_solimp = self.of_contacts
        if solref is not None:
            time, ratio = (solref[..., k, None] for k in range(2))
            x, y = own_solref[:, 0], own_solref[:, 1]
            given = np.where(x > 0.0, x * time, x / (time * ratio) ** 2), np.where(x > 0.0, y * ratio, y / time)
            own_solref = np.stack(given, axis=-1)
        if solimp is not None:
            own_solimp = own_solimp * solimp[..., None, :]
        square = mu * mu if pyramids else 0.0 * mu
        contacts = numbers_of(
            own_solref, own_solimp, normal, first * first * sliding, self.step, touching.friction, square, weights
        )
        return contacts, numbers_of(*self._of_rows, of_rows, np.ones(len(self.rows.dof)), self.step)

    def weights(self, inertias: Inertias | None = None) -> tuple[Array, Array]:
        """Return the inverse inertias of contacts without friction [1/kg] (..., candidates), and of joint rows (..., rows).

        As in MuJoCo, they are those of the initial configuration of the file, also if it is beyond limits.
        """
        robot, q = self.robot, self.robot.start(within_limits=False)
        inverse = np.asarray(robot.inverse_mass_matrix(q)) if inertias is None else inverse_mass_matrix(robot, q, inertias)
        bodies = None if inertias is None else inertias.parameters
        of_dofs = weights_of_dofs(robot, self.forces, q, inverse, bodies)
        for dof in {int(d) for d in self.rows.dof} & {*self._compliant}:
            of_dofs[..., dof] = weight_of_compliant_row(robot, q, self._compliant[dof], inverse, of_dofs)
        return weights_of_contacts(robot, q, self.touching, inverse, bodies), of_dofs[..., self.rows.dof]


def arrays_of(softness: Sequence[Softness]) -> tuple[Array, Array]:
    """Return `solref` (n, 2) and `solimp` (n, 5)."""
    n = len(softness)
    return np.array([x.solref for x in softness]).reshape(n, 2), np.array([x.solimp for x in softness]).reshape(n, 5)


def inverse_mass_matrix(robot: Robot, q: Array, inertias: Inertias) -> Array:
    """Return the inverse mass matrices (..., nv, nv) of robots with other inertias at q (nq,)."""
    function = robot.parametric(robot.mass_matrix)
    given = (inertias._asdict()[x.name] for x in function.program.inputs[1:])
    return np.linalg.inv(np.asarray(function(q, *given)))


def weights_of_contacts(
    robot: Robot, q: Array, touching: TouchingScene, inverse: Array, parameters: Array | None = None
) -> Array:
    """Return the inverse mass [1/kg] (..., candidates) at contacts: the sum of both sides at q (nq,).

    Each side is a link of the file, also if it is fixed to others, at its own centre of mass, averaged over three directions.
    Other inertial `parameters` (..., nbodies, 10) move the centres of bodies of one link.
    """
    centers = {b.name: b.center for b in robot.bodies} | dict(robot.model.link_centers)
    numbers = touching.scene.body[touching.scene.pair[touching.pairs]]
    numbers = np.where(numbers[:, :1] < 0, numbers[:, ::-1], numbers)  # the world comes second
    sides = [
        [(link if link in centers else touching.bodies[b]) if b >= 0 else None for link, b in zip(links, pair, strict=True)]
        for links, pair in zip(touching.links, numbers, strict=True)
    ]
    names = [*dict.fromkeys(name for pair in sides for name in pair if name is not None)]
    if not names:
        return np.zeros((*inverse.shape[:-2], len(sides)))
    J = np.asarray(robot.frame_jacobian([Frame(name, name, Pose(p=centers[name])) for name in names], reference="local")(q))
    linear = J[:, :3]
    if parameters is not None:
        moves = np.zeros((*parameters.shape[:-2], len(names), 3))
        for b, body in enumerate(robot.bodies):
            if body.name in names and len(body.links) == 1:
                y = parameters[..., b, :]
                mass = np.where(y[..., :1] > 0.0, y[..., :1], np.inf)
                moves[..., names.index(body.name), :] = y[..., 1:4] / mass - centers[body.name]
        linear = linear + np.cross(J[:, 3:], moves[..., None], axisa=-2, axisb=-2, axisc=-2)
    of_links = _weight(linear, inverse[..., None, :, :])
    for body, _ in sliding_bodies(robot):
        if body.name in names:
            k = names.index(body.name)
            of_links[..., k] = _weight_if_sliding(robot, body, parameters, of_links[..., k])
    found = np.zeros((*of_links.shape[:-1], len(sides)))
    for c, pair in enumerate(sides):
        for name in pair:
            if name is not None:
                found[..., c] += of_links[..., names.index(name)]
    return found


def _weight(J: Array, inverse: Array) -> Array:
    """Return the mean inverse inertias (...) of rows of Jacobians (..., 3, nv)."""
    return np.asarray(((J @ inverse) * J).sum(axis=(-2, -1)) / 3.0)


def _weight_if_sliding(robot: Robot, body: MovingBody, parameters: Array | None, weight: Array) -> Array:
    """Return the reciprocal of the mass of one of `sliding_bodies`, or the `weight` if its parameters change its axes."""
    if parameters is None:
        return np.full(np.shape(weight), 1.0 / body.mass)
    y = parameters[..., robot.bodies.index(body), :]
    apart = [k for k, name in enumerate(NAMES) if name not in ("m", "Ixx", "Iyy", "Izz")]
    return np.where((y[..., apart] == 0.0).all(axis=-1), 1.0 / y[..., 0], weight)


def sliding_bodies(robot: Robot) -> list[tuple[MovingBody, list[MovingJoint]]]:
    """Return the bodies, with their joints, for which MuJoCo takes the reciprocal of the mass, whatever their directions.

    They rest on the ground, only slide along axes of their own, in which their inertia is diagonal, and carry nothing.
    """
    above = {j.child: j for j in robot.model.joints}
    carriers, bodies, found = {j.parent for j in robot.model.joints}, {b.name for b in robot.bodies}, []
    for body in robot.bodies:
        joints = [above[body.name]]
        while joints[-1].parent is not None and joints[-1].parent not in bodies:
            joints.append(above[joints[-1].parent])
        _, xy, xz, _, yz, _ = body.inertia.rotational
        slides = all(j.type is JointType.PRISMATIC and max(map(abs, j.axis)) == 1.0 for j in joints)
        alone = joints[-1].parent is None and len(body.links) == 1 and body.name not in carriers
        if slides and alone and body.mass > 0.0 and not any((*body.center, xy, xz, yz)):
            found.append((body, joints))
    return found


def weight_of_compliant_row(robot: Robot, q: Array, row: CompliantRow, inverse: Array, of_dofs: Array) -> Array:
    """Return the inverse masses or inertias (...) of the two sides of an equality, summed, at q (nq,)."""
    if row.rows:
        return np.asarray(of_dofs[..., row.rows].sum(axis=-1))
    if isinstance(row.by, Coupling):
        first = {j.name: j.v_slice.start for j in robot.model.joints}
        rows = [first[name] for name in (row.by.joint, *(name for name, _ in row.by.terms))]
        return np.asarray(of_dofs[..., rows].sum(axis=-1))
    assert isinstance(row.by, CompliantLoop)
    loop, part = row.by.loop, slice(0, 3) if row.component < 3 else slice(3, 6)
    sides = zip((loop.predecessor, loop.successor), row.by.centers, strict=True)
    J = (np.asarray(robot.frame_jacobian(Frame(loop.name, link, Pose(p=center)))(q))[part] for link, center in sides)
    return np.asarray(sum(_weight(side, inverse) for side in J))


def weights_of_dofs(robot: Robot, forces: ForcesAtJoints, q: Array, inverse: Array, parameters: Array | None = None) -> Array:
    """Return the inverse inertias [1/kg, 1/(kg m²)] (..., rows) at the degrees of freedom of all joints, and of lengths.

    They are those at q (nq,). Joints with several degrees of freedom have one value for translation and one for rotation.
    `inverse` (..., nv, nv) is that of the mass matrix with the inertial `parameters` (..., nbodies, 10), by default the
    robot's.
    """
    S = forces.map(q)
    S = np.eye(robot.nv) if S is None else S
    weights = ((S @ inverse) * S).sum(axis=-1)
    for j in robot.model.joints:
        first = j.v_slice.start
        for part in (slice(first, first + 3), slice(first + 3, first + 6)):
            if j.type.nv >= part.stop - first:
                weights[..., part] = weights[..., part].mean(axis=-1, keepdims=True)
    for body, joints in sliding_bodies(robot):
        for j in joints:
            for k in range(j.v_slice.start, j.v_slice.stop):
                weights[..., k] = _weight_if_sliding(robot, body, parameters, weights[..., k])
    for r, j in enumerate(forces.balls, forces.joint_rows + len(forces.tendons)):
        weights[..., r] = weights[..., j.v_slice.start]  # a zero angle has no axis
    for rows, moving in forces.rows_of_places():
        weights[..., rows] = weights[..., moving]
    return np.asarray(weights)
