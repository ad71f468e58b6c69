"""Inverse inertias of bodies and joints, which determine the compliance of contacts, limits and dry friction as in MuJoCo."""

from __future__ import annotations

import numpy as np

from ..array_types import Array
from ..contact.compliance import IMMOVABLE, numbers_of, weights_of_cones
from ..contact.joint_rows import JointRows
from ..model.model import CompliantLoop, MovingBody, MovingJoint
from ..model.types import PYRAMIDAL, Coupling, Frame, JointType, Pose
from ..robot.robot import Robot
from ..robot.tendons.tendon_table import CompliantRow
from .forces_at_joints import ForcesAtJoints
from .scene_building import TouchingScene


def yielding_numbers(
    robot: Robot, forces: ForcesAtJoints, touching: TouchingScene, rows: JointRows, step: float
) -> tuple[Array, Array, Array]:
    """Return the numbers of contacts (candidates, 11) and of joint rows (rows, 11) for `compliance`, and inverse inertias.

    The inverse inertias [1/kg] (candidates,) are for frictionless contacts. As in MuJoCo, they are those of the initial
    configuration of the file, also if it is beyond limits.
    """
    start, model = robot.start(within_limits=False), robot.model
    inverse = np.asarray(robot.inverse_mass_matrix(start))
    weights = weights_of_contacts(robot, start, touching, inverse)
    of_dofs, softness = weights_of_dofs(robot, forces, start, inverse), []
    compliant = {forces.rows - len(forces.compliant_rows) + k: x for k, x in enumerate(forces.compliant_rows)}
    for dof, friction in zip(rows.dof, rows.friction, strict=True):
        if dof in compliant:
            row = compliant[int(dof)]
            softness.append(row.by.loop.softness if isinstance(row.by, CompliantLoop) else row.by.softness)
            of_dofs[dof] = weight_of_compliant_row(robot, start, row, inverse, of_dofs)
        else:
            softness.append((forces.softness("dry_friction") if friction else forces.softness("limit"))[dof])
    edges = 4.0 + 2.0 * (touching.turning > 0.0).sum(axis=1)
    first = np.ones(len(weights))
    if len(touching.tangents):
        first = np.where(touching.tangents[:, 0] > 0.0, touching.tangents[:, 0], 1.0)
    mu, pyramids = first * touching.friction, model.cone == PYRAMIDAL
    normal, sliding = weights_of_cones(weights, mu, model.impratio, pyramids, edges)
    alone = of_dofs[rows.dof], np.ones(len(softness))
    own = touching.friction, mu * mu if pyramids else 0.0 * mu
    contacts = numbers_of(touching.softness, normal, first * first * sliding, step, *own)
    return contacts, numbers_of(softness, *alone, step), np.maximum(weights, IMMOVABLE)


def weights_of_contacts(robot: Robot, q: Array, touching: TouchingScene, inverse: Array) -> Array:
    """Return the inverse mass [1/kg] (candidates,) at contacts: the sum of both sides at q (nq,).

    Each side is a link of the file, also if it is fixed to others, at its own centre of mass, averaged over three directions.
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
        return np.zeros(len(sides))
    J = np.asarray(robot.frame_jacobian([Frame(name, name, Pose(p=centers[name])) for name in names])(q))[:, :3]
    of_links = dict(zip(names, np.einsum("bij,jk,bik->b", J, inverse, J) / 3.0, strict=True))
    of_links |= {body.name: 1.0 / body.mass for body, _ in sliding_bodies(robot)}
    return np.array([sum(of_links[name] for name in pair if name is not None) for pair in sides])


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


def weight_of_compliant_row(robot: Robot, q: Array, row: CompliantRow, inverse: Array, of_dofs: Array) -> float:
    """Return the inverse mass or inertia of the two sides of an equality, summed, at q (nq,)."""
    if row.rows:
        return float(sum(of_dofs[r] for r in row.rows))
    if isinstance(row.by, Coupling):
        first = {j.name: j.v_slice.start for j in robot.model.joints}
        return float(sum(of_dofs[first[name]] for name in (row.by.joint, *(name for name, _ in row.by.terms))))
    assert isinstance(row.by, CompliantLoop)
    loop, part = row.by.loop, slice(0, 3) if row.component < 3 else slice(3, 6)
    total = 0.0
    for link, center in zip((loop.predecessor, loop.successor), row.by.centers, strict=True):
        J = np.asarray(robot.frame_jacobian(Frame(loop.name, link, Pose(p=center)))(q))[part]
        total += float(np.einsum("ij,jk,ik->", J, inverse, J)) / 3.0
    return total


def weights_of_dofs(robot: Robot, forces: ForcesAtJoints, q: Array, inverse: Array) -> Array:
    """Return the inverse inertia [1/kg, 1/(kg m²)] (rows,) of each degree of freedom of all joints, and of lengths, at q (nq,).

    Joints with several degrees of freedom have one value for translation and one for rotation.
    """
    S = forces.map(q)
    S = np.eye(robot.nv) if S is None else S
    weights = np.einsum("ij,jk,ik->i", S, inverse, S)
    for j in robot.model.joints:
        first = j.v_slice.start
        for part in (slice(first, first + 3), slice(first + 3, first + 6)):
            if j.type.nv >= part.stop - first:
                weights[part] = weights[part].mean()
    for body, joints in sliding_bodies(robot):
        for j in joints:
            weights[j.v_slice] = 1.0 / body.mass
    for r, j in enumerate(forces.balls, forces.joint_rows + len(forces.tendons)):
        weights[r] = weights[j.v_slice.start]  # a zero angle has no axis
    for rows, moving in forces.rows_of_places():
        weights[rows] = weights[moving]
    return np.asarray(weights)
