"""Robots without the bodies that only gears and loops move, for comparison (Chignoli et al. 2023, section II-C)."""

from __future__ import annotations

from dataclasses import replace

from ..checks import checked
from ..model.description import Description
from ..model.editing.acting import without_joints
from ..model.editing.kept_parts import with_sensors_of_rest
from ..model.types import Inertia, ModelError, Vector, controls_of, dot


@checked
def unconstrained(description: Description) -> Description:
    """Return the independent tree alone, without the mass of dependent bodies, which are mostly rotors.

    The function removes dependent joints and the bodies that they move. For a `Closure` it removes the independent joints and
    keeps the links that the differential drives. Raises ModelError if the parent of a remaining body is removed.
    """
    driven = {joint for closure in description.closures for joint in closure.joints}
    left_out = (set(description.dependent) - driven) | (set(description.independent) & driven)
    gone = {j.child for j in description.joints if j.name in left_out}
    joints = tuple(j for j in description.joints if j.name not in left_out)
    if lost := [j.child for j in joints if j.parent in gone]:
        raise ModelError(f"{description.source}: {', '.join(lost)} are on dependent bodies, so there is no independent tree")
    tendons, actuators = without_joints(description, left_out)
    shapes = tuple(s for s in description.shapes if s.body not in gone)
    drives, touching = controls_of(actuators), {s.name for s in shapes}
    result = replace(
        description,
        name=f"unconstrained_{description.name}",
        bodies=tuple(b for b in description.bodies if b.name not in gone),
        joints=joints,
        frames=tuple(f for f in description.frames if f.body not in gone),
        loops=(),
        couplings=(),
        closures=(),
        independent=(),
        dependent=(),
        shapes=shapes,
        tendons=tendons,
        actuators=actuators,
        contact_pairs=tuple(pair for pair in description.contact_pairs if touching.issuperset(pair.shapes)),
        configurations=tuple(
            replace(
                c,
                coordinates=tuple((joint, x) for joint, x in c.coordinates if joint not in left_out),
                controls=tuple((actuator, u) for actuator, u in c.controls if actuator in drives),
            )
            for c in description.configurations
        ),
    )
    return with_sensors_of_rest(result)


@checked
def approximate(description: Description) -> Description:
    """Return the independent tree, with the rotors' reflected inertia as armature of the joints, N² I_rotor.

    A rotor that follows several joints, through belts, adds to each with its own ratio: the diagonal of G^T I G. Closures and
    loops have no such approximation, and add nothing.
    """
    moved = {j.name: j for j in description.joints}
    inertias = {b.name: b.inertia for b in description.bodies}
    armature = {j.name: j.armature for j in description.joints}
    for coupling in description.couplings:
        rotor = moved[coupling.joint]
        moment = _about(inertias[rotor.child], rotor.axis)
        for joint, (ratio, *higher) in coupling.terms:
            if any(higher):
                raise ModelError(
                    f"{description.source}: coupling {coupling.name!r} is not linear, so it has no reflected inertia"
                )
            armature[joint] += ratio * ratio * moment
    tree = unconstrained(description)
    joints = tuple(replace(j, armature=armature[j.name]) for j in tree.joints)
    return replace(tree, name=f"approximate_{description.name}", joints=joints)


def _about(inertia: Inertia, axis: Vector) -> float:
    """Return the moment of inertia about an axis through the body's origin [kg m²]."""
    mass, c, (xx, xy, xz, yy, yz, zz) = inertia
    x, y, z = axis
    central = xx * x * x + yy * y * y + zz * z * z + 2.0 * (xy * x * y + xz * x * z + yz * y * z)
    return central + mass * (dot(c, c) - dot(c, axis) * dot(c, axis))
