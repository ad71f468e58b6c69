"""Frames relative to other frames, which take the place of the world, and the rates of Jacobians.

An observer fixed to a frame sees all joints of the tree move between bodies, like an observer on the ground. On the path from
the observer up to the ground, each joint moves the bodies above it, in the opposite direction. In the observer's axes, with
motions of the points at its origin, S_j the motion of joint j and W_i the velocity of its body i (Featherstone 2008, section
2.11),

    W_j = W_p + S_j v_j          S_j' = W_j x S_j          A_j = A_p + S_j a_j + S_j' v_j

For a joint of several degrees of freedom, whose axes are fixed in its last body, S_j' uses that body's W. The velocity of a
frame relative to another is the sum of S_j v_j over the joints that carry it, minus the sum over those that carry the other,
so that joints that carry both cancel. Seen from the other frame, these are the references `world` and, at the frame's origin,
`local_world_aligned`; seen from the frame itself they are `local`.
"""

from __future__ import annotations

from typing import NamedTuple

from ..model.tree import INNER, Placements, Tree
from ..spatial import IDENTITY3, ZERO3, ZERO_MOTION, Mat3, Motion, Vec3, unit_motion
from .frames import (
    LOCAL,
    LOCAL_WORLD_ALIGNED,
    Written,
    of_components,
    pointwise,
    seen_at,
    write_column,
    write_motion,
    write_placement,
)
from .kinematics import joint_transforms, mat3, vec3


class View(NamedTuple):
    """Poses of the rows' frames and, last, of the ground, relative to an observer on a frame."""

    axes: list[Mat3]
    origins: list[Vec3]
    above: list[int]  # 1 for rows that carry the observer


def view_from(tree: Tree, row: int, axes: Mat3, at: Vec3, X) -> View:
    """Return the view from a frame with these axes at this point of a row's frame."""
    n = len(tree.parent)
    R = [IDENTITY3] * (n + 1)
    o = [ZERO3] * (n + 1)
    above = [0] * n
    R[row] = axes.transpose()  # -1, the ground, is the last
    o[row] = ZERO3 - R[row] @ at
    j = row
    while j >= 0:
        p = tree.parent[j]
        above[j] = 1
        if tree.kind[j] == INNER:
            R[p] = R[j]
            o[p] = o[j]
        else:
            R[p] = R[j].product(X[j].orientation().transpose())
            o[p] = o[j] - R[p] @ X[j].p
        j = p
    for i in range(n):
        if above[i] == 0:
            p = tree.parent[i]
            if tree.kind[i] == INNER:
                R[i] = R[p]
                o[i] = o[p]
            else:
                R[i] = R[p].product(X[i].orientation())
                o[i] = o[p] + R[p] @ X[i].p
    return View(R, o, above)


def view_of(tree: Tree, frames: Placements, k: int, X) -> View:
    """Return the view from frame k of `frames`."""
    return view_from(tree, frames.row[k], mat3(frames.rotation, k), vec3(frames.translation, k), X)


def about(view: View, p: Vec3) -> View:
    """Return the same view, with the origin at the point p."""
    o = [x - p for x in view.origins]
    return View(view.axes, o, view.above)


def axes_in(tree: Tree, view: View):
    """Return S of the header for all rows."""
    S = [ZERO_MOTION] * len(tree.parent)
    for j in range(len(tree.parent)):
        s = unit_motion(tree.axis[j], 1.0)
        R = view.axes[j]
        S[j] = seen_at(Motion(R @ s.ang, R @ s.lin), view.origins[j])
    return S


def summed(tree: Tree, view: View, row: int, m):
    """Return the motions of all rows' bodies and, last, of the ground, given those of joints, m.

    They are relative to an observer on `row`.
    """
    n = len(tree.parent)
    W = [ZERO_MOTION] * (n + 1)
    j = row
    while j >= 0:
        p = tree.parent[j]
        W[p] = W[j] - m[j]
        j = p
    for i in range(n):
        if view.above[i] == 0:
            W[i] = W[tree.parent[i]] + m[i]
    return W


def velocities_in(tree: Tree, view: View, row: int, S, v):
    """Return W of the header."""
    m = [ZERO_MOTION] * len(tree.parent)
    for j in range(len(tree.parent)):
        m[j] = v[j] * S[j]
    return summed(tree, view, row, m)


def accelerations_in(tree: Tree, view: View, row: int, S, W, v, a):
    """Return A of the header."""
    m = [ZERO_MOTION] * len(tree.parent)
    for j in range(len(tree.parent)):
        m[j] = a[j] * S[j] + v[j] * W[tree.last[j]].cross(S[j])
    return summed(tree, view, row, m)


def origin_in(view: View, frames: Placements, k: int) -> Vec3:
    """Return the origin of frame k of `frames`."""
    j = frames.row[k]
    origin: Vec3 = view.origins[j] + view.axes[j] @ vec3(frames.translation, k)
    return origin


def counted(tree: Tree, j: int, other: int):
    """Return the sign of each joint in the motion of a frame on row j relative to one on row `other`: 1, -1 or 0."""
    sign = [0] * len(tree.parent)
    while j >= 0:
        sign[j] += 1
        j = tree.parent[j]
    while other >= 0:
        sign[other] -= 1
        other = tree.parent[other]
    return sign


def relative_placement(tree: Tree, frames: Placements, other: Placements, q, placement) -> None:
    """Write homogeneous matrices (frames, 4, 4) in the frame `other`."""
    view = view_of(tree, other, 0, joint_transforms(tree, q))
    for k in range(len(frames.row)):
        R = view.axes[frames.row[k]].product(mat3(frames.rotation, k))
        write_placement(R, origin_in(view, frames, k), placement[k])


def relative_jacobian(tree: Tree, frames: Placements, other: Placements, reference: int, q, J) -> None:
    """Write Jacobians (frames, 6, n)."""
    X = joint_transforms(tree, q)
    view = view_of(tree, other, 0, X)
    for k in range(len(frames.row)):
        if reference == LOCAL:
            view = view_of(tree, frames, k, X)
        S = axes_in(tree, about(view, origin_in(view, frames, k)) if reference == LOCAL_WORLD_ALIGNED else view)
        sign = counted(tree, frames.row[k], other.row[0])
        for j in range(len(tree.parent)):
            write_column((1.0 * sign[j]) * S[j], J[k], j)


def relative_velocity(tree: Tree, frames: Placements, other: Placements, reference: int, q, v, velocity) -> None:
    """Write velocities (frames, 6)."""
    X = joint_transforms(tree, q)
    row = other.row[0]
    view = view_of(tree, other, 0, X)
    W = velocities_in(tree, view, row, axes_in(tree, view), v)
    for k in range(len(frames.row)):
        if reference == LOCAL:
            view = view_of(tree, frames, k, X)
            W = velocities_in(tree, view, frames.row[k], axes_in(tree, view), v)
            m = ZERO_MOTION - W[row]
        else:
            m = W[frames.row[k]]
            if reference == LOCAL_WORLD_ALIGNED:
                m = seen_at(m, ZERO3 - origin_in(view, frames, k))
        write_motion(m, velocity[k])


def relative_acceleration(tree: Tree, frames: Placements, other: Placements, written: Written, q, v, a, acceleration) -> None:
    """Write accelerations (frames, 6)."""
    X = joint_transforms(tree, q)
    row = other.row[0]
    view = view_of(tree, other, 0, X)
    S = axes_in(tree, view)
    W = velocities_in(tree, view, row, S, v)
    A = accelerations_in(tree, view, row, S, W, v, a)
    for k in range(len(frames.row)):
        if written.reference == LOCAL:
            view = view_of(tree, frames, k, X)
            S = axes_in(tree, view)
            W = velocities_in(tree, view, frames.row[k], S, v)
            A = accelerations_in(tree, view, frames.row[k], S, W, v, a)
            u = ZERO_MOTION - W[row]
            m = ZERO_MOTION - A[row]
        else:
            u = W[frames.row[k]]
            m = A[frames.row[k]]
            if written.reference == LOCAL_WORLD_ALIGNED:
                shift = ZERO3 - origin_in(view, frames, k)
                u = seen_at(u, shift)
                m = seen_at(m, shift)
        if written.classical == 1:
            m = pointwise(m, u)
        write_motion(m, acceleration[k])


def relative_bias_acceleration(tree: Tree, frames: Placements, other: Placements, reference: int, q, v, acceleration) -> None:
    """Write velocity-product accelerations (frames, 6)."""
    still = [0.0] * len(tree.parent)
    relative_acceleration(tree, frames, other, of_components(reference), q, v, still, acceleration)


def jacobian_rate(tree: Tree, frames: Placements, other: Placements, reference: int, q, v, J) -> None:
    """Write time derivatives (frames, 6, n) of Jacobians."""
    X = joint_transforms(tree, q)
    row = other.row[0]
    whole = view_of(tree, other, 0, X)
    for k in range(len(frames.row)):
        view = whole
        if reference == LOCAL:
            row = frames.row[k]
            view = view_of(tree, frames, k, X)
        elif reference == LOCAL_WORLD_ALIGNED:
            view = about(whole, origin_in(whole, frames, k))
        S = axes_in(tree, view)
        W = velocities_in(tree, view, row, S, v)
        point = ZERO3  # velocity of the point about which motions are taken
        if reference == LOCAL_WORLD_ALIGNED:
            point = W[frames.row[k]].lin
        sign = counted(tree, frames.row[k], other.row[0])
        for j in range(len(tree.parent)):
            u = W[tree.last[j]]
            write_column((1.0 * sign[j]) * Motion(u.ang, u.lin - point).cross(S[j]), J[k], j)


def joint_jacobian_rate(tree: Tree, q, v, J) -> None:
    """Write time derivatives (6, n) of all rows' joint motions, in the world's axes."""
    view = view_from(tree, -1, IDENTITY3, ZERO3, joint_transforms(tree, q))
    S = axes_in(tree, view)
    W = velocities_in(tree, view, -1, S, v)
    for j in range(len(tree.parent)):
        write_column(W[tree.last[j]].cross(S[j]), J, j)
