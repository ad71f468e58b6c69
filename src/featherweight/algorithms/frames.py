"""Frames fixed to bodies: placements, motions, Jacobians by the joint velocities, and forces at frames.

A frame's motion is written (linear, angular), in one of three references:

    local                 the frame's own axes and origin
    local_world_aligned   the frame's origin, the world's axes
    world                 the motion of the body's point at the world's origin, the world's axes

The velocity-product acceleration is J' v for the Jacobian J of the same reference: the part of the frame's acceleration that
does not depend on the joint accelerations. In the moving axes of `local` and in `world` this is the spatial acceleration, in
`local_world_aligned` the acceleration of the origin as a point.

A spatial acceleration is the rate of a spatial velocity. The classical acceleration of the body's point at the origin is the
spatial one plus w x v (Featherstone 2008, section 2.11).
"""

from __future__ import annotations

from typing import NamedTuple

from ..model.tree import INNER, Placements, Tree
from ..spatial import IDENTITY3, ZERO3, ZERO_MOTION, Mat3, Motion, Vec3, unit_motion
from .kinematics import (
    accelerations_of_velocities,
    joint_transforms,
    mat3,
    spatial_velocities,
    vec3,
    velocity_products,
)

LOCAL, LOCAL_WORLD_ALIGNED, WORLD = range(3)


class Written(NamedTuple):
    """The form of an acceleration: its reference, and whether it is the classical (1) or the spatial one (0)."""

    reference: int
    classical: int


def of_components(reference: int) -> Written:
    """Return the form of the acceleration that is the rate of a velocity's components."""
    return Written(reference, 1 if reference == LOCAL_WORLD_ALIGNED else 0)


def world_poses(tree: Tree, X):
    """Return orientation and origin of each row's frame in the world."""
    n = len(tree.parent)
    R = [IDENTITY3] * n
    o = [ZERO3] * n
    for j in range(n):
        p = tree.parent[j]
        if p < 0:
            R[j] = X[j].orientation()
            o[j] = X[j].p
        elif tree.kind[j] == INNER:
            R[j] = R[p]
            o[j] = o[p]
        else:
            R[j] = R[p].product(X[j].orientation())
            o[j] = o[p] + R[p] @ X[j].p
    return R, o


def frame_poses(tree: Tree, frames: Placements, X):
    """Return orientation and origin of each frame in the world."""
    R, o = world_poses(tree, X)
    m = len(frames.row)
    Rf = [IDENTITY3] * m
    of = [ZERO3] * m
    for k in range(m):
        j = frames.row[k]
        Rf[k] = mat3(frames.rotation, k)
        of[k] = vec3(frames.translation, k)
        if j >= 0:
            of[k] = o[j] + R[j] @ of[k]
            Rf[k] = R[j].product(Rf[k])
    return Rf, of


def frame_placement(tree: Tree, frames: Placements, q, placement) -> None:
    """Write homogeneous matrices (frames, 4, 4)."""
    R, o = frame_poses(tree, frames, joint_transforms(tree, q))
    for k in range(len(frames.row)):
        write_placement(R[k], o[k], placement[k])


def placement_rows(tree: Tree, frames: Placements, q, rows) -> None:
    """Write rotations by rows, then positions (frames, 12), for contact geometry."""
    R, o = frame_poses(tree, frames, joint_transforms(tree, q))
    for k in range(len(frames.row)):
        write_vec3(R[k].x, rows[k], 0)
        write_vec3(R[k].y, rows[k], 3)
        write_vec3(R[k].z, rows[k], 6)
        write_vec3(o[k], rows[k], 9)


def placement_tangent(placement, rate, velocity) -> None:
    """Write velocities (frames, 6), in the frames' own axes, of homogeneous matrices that change by `rate`."""
    for k in range(len(placement)):
        T, dT = placement[k], rate[k]
        x, y, z = (Vec3(T[0][i], T[1][i], T[2][i]) for i in range(3))
        dx, dy, dz = (Vec3(dT[0][i], dT[1][i], dT[2][i]) for i in range(3))
        p = Vec3(dT[0][3], dT[1][3], dT[2][3])
        write_motion(Motion(Vec3(z.dot(dy), x.dot(dz), y.dot(dx)), Vec3(x.dot(p), y.dot(p), z.dot(p))), velocity[k])


def frame_jacobian(tree: Tree, frames: Placements, reference: int, q, J) -> None:
    """Write Jacobians (frames, 6, n): the frame's velocity for unit joint velocities."""
    X = joint_transforms(tree, q)
    R, o = world_poses(tree, X)
    _, of = frame_poses(tree, frames, X)
    for k in range(len(frames.row)):
        for i in range(6):
            for j in range(len(tree.parent)):
                J[k][i][j] = 0.0
        j = frames.row[k]
        axes = mat3(frames.rotation, k)  # the frame in row j, on the way to the ground
        at = vec3(frames.translation, k)
        while j >= 0:
            s = unit_motion(tree.axis[j], 1.0)
            if reference == LOCAL:
                T = axes.transpose()
                m = Motion(T @ s.ang, T @ (s.lin + s.ang.cross(at)))
                R_up = X[j].orientation()
                at = X[j].p + R_up @ at
                axes = R_up.product(axes)
            else:
                point = of[k] if reference == LOCAL_WORLD_ALIGNED else ZERO3
                ang = R[j] @ s.ang
                m = Motion(ang, R[j] @ s.lin + ang.cross(point - o[j]))
            write_column(m, J[k], j)
            j = tree.parent[j]


def joint_jacobian(tree: Tree, q, J) -> None:
    """Write motions of all rows' joints (6, n): velocities of the point at the world's origin, in the world's axes."""
    R, o = world_poses(tree, joint_transforms(tree, q))
    for j in range(len(tree.parent)):
        s = unit_motion(tree.axis[j], 1.0)
        ang = R[j] @ s.ang
        write_column(Motion(ang, R[j] @ s.lin + o[j].cross(ang)), J, j)


def frame_velocity(tree: Tree, frames: Placements, reference: int, q, v, velocity) -> None:
    """Write velocities (frames, 6)."""
    X = joint_transforms(tree, q)
    u = spatial_velocities(tree, X, v)
    R, o = frame_poses(tree, frames, X)
    for k in range(len(frames.row)):
        m = velocity_of_frame(frames, k, u)
        if reference != LOCAL:
            m = Motion(R[k] @ m.ang, R[k] @ m.lin)
            if reference == WORLD:
                m = seen_at(m, o[k])
        write_motion(m, velocity[k])


def frame_bias_acceleration(tree: Tree, frames: Placements, reference: int, q, v, acceleration) -> None:
    """Write velocity-product accelerations (frames, 6)."""
    X = joint_transforms(tree, q)
    w, c = velocity_products(tree, X, v)
    write_accelerations(tree, frames, of_components(reference), X, v, w, c, acceleration)


def frame_acceleration(tree: Tree, frames: Placements, written: Written, q, v, a, acceleration) -> None:
    """Write accelerations (frames, 6)."""
    X = joint_transforms(tree, q)
    w, c = velocity_products(tree, X, v)
    for j in range(len(tree.parent)):
        c[j] = c[j] + unit_motion(tree.axis[j], a[j])
    write_accelerations(tree, frames, written, X, v, w, c, acceleration)


def write_accelerations(tree: Tree, frames: Placements, written: Written, X, v, w, c, acceleration) -> None:
    """Write accelerations (frames, 6), given those of the joints, c, in the rows' frames with their origins as points."""
    u = spatial_velocities(tree, X, v)
    R, o = frame_poses(tree, frames, X)
    a = accelerations_of_velocities(tree, X, c)
    for k in range(len(frames.row)):
        j = frames.row[k]
        m = ZERO_MOTION
        if j >= 0:
            T = mat3(frames.rotation, k).transpose()
            at = vec3(frames.translation, k)
            m = Motion(T @ a[j].ang, T @ (a[j].lin + a[j].ang.cross(at) + w[j].cross(w[j].cross(at))))
        moving = velocity_of_frame(frames, k, u)
        if written.classical == 0 or written.reference == WORLD:
            m = Motion(m.ang, m.lin - moving.ang.cross(moving.lin))
        if written.reference != LOCAL:
            m = Motion(R[k] @ m.ang, R[k] @ m.lin)
            if written.reference == WORLD:
                m = seen_at(m, o[k])
                if written.classical == 1:
                    m = pointwise(m, seen_at(Motion(R[k] @ moving.ang, R[k] @ moving.lin), o[k]))
        write_motion(m, acceleration[k])


def seen_at(m: Motion, p: Vec3) -> Motion:
    """Return the same motion about an origin at -p."""
    return Motion(m.ang, m.lin + p.cross(m.ang))


def pointwise(a: Motion, v: Motion) -> Motion:
    """Return the acceleration of the point at the origin, for the spatial acceleration a of a body with the velocity v."""
    return Motion(a.ang, a.lin + v.ang.cross(v.lin))


def velocity_of_frame(frames: Placements, k: int, u) -> Motion:
    """Return the velocity of frame k in its own axes, from the velocities u of the rows."""
    j = frames.row[k]
    if j < 0:
        return ZERO_MOTION
    T = mat3(frames.rotation, k).transpose()
    return Motion(T @ u[j].ang, T @ (u[j].lin + u[j].ang.cross(vec3(frames.translation, k))))


def write_vec3(x: Vec3, out, start: int) -> None:
    out[start] = x.x
    out[start + 1] = x.y
    out[start + 2] = x.z


def write_placement(R: Mat3, o: Vec3, out) -> None:
    """Write a homogeneous matrix."""
    write_vec3(R.x, out[0], 0)
    write_vec3(R.y, out[1], 0)
    write_vec3(R.z, out[2], 0)
    out[0][3] = o.x
    out[1][3] = o.y
    out[2][3] = o.z
    for i in range(3):
        out[3][i] = 0.0
    out[3][3] = 1.0


def write_motion(m: Motion, out) -> None:
    write_vec3(m.lin, out, 0)
    write_vec3(m.ang, out, 3)


def write_column(m: Motion, out, j: int) -> None:
    for i in range(6):
        out[i][j] = (m.lin.x, m.lin.y, m.lin.z, m.ang.x, m.ang.y, m.ang.z)[i]


def wrench_on_body(body: int, R, p, in_world: bool, placement, wrench, at, rows) -> None:
    """Write external forces (nbodies, 6) of a wrench (force, moment) at a point `at` of a frame, in axes of world or frame.

    The frame is placed on its body by R (rows) and p; `placement` is that of the frame in the world.
    """
    force, moment = vec3([wrench], 0), vec3([wrench[3:]], 0)
    if in_world:
        back = mat3([placement[:3]], 0).transpose()
        force, moment = back @ force, back @ moment
    moment = moment + vec3([at], 0).cross(force)
    to_body = mat3([R], 0)
    force, moment = to_body @ force, to_body @ moment
    write_vec3(force, rows[body], 0)
    write_vec3(moment + vec3([p], 0).cross(force), rows[body], 3)
