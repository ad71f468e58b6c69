"""Rates of centroidal momentum: h' = A_G q'' + A_G' q', and A_G' itself.

h' is the force that the motion of all bodies needs, about the centre of mass; gravity is not included, nor in A_G'. Consider
the inertial frame in which a point rests that moves with the robot. There, points r of the bodies that joint j carries have
velocities S_j(r) along column j, which change by S_j'(r) + w_j x r', with r' relative to that point, so that

    (Ic_j S_j)' = Ic_j S_j' + N_j w_j + sum of [m r' x S_j(r); 0]        N_j x = sum of [r x; 1] m x x r'   (spatial.Coriolis)

The point is first that of joint j's parent at the joint, as in inverse_dynamics_derivatives.py, and finally the centre of
mass. A momentum that moves faster by u gains [u x (Ic_j S_j).lin; 0].
"""

from __future__ import annotations

from ..model.tree import Tree
from ..spatial import ZERO3, ZERO_MOTION, ZERO_SYM3, Force, Motion, RigidInertia, unit_motion
from .centroidal import about_center, points_about_center, root_count, write_force, write_force_column
from .energy import composite_moments, whole_mass, world_axes
from .frames import write_vec3
from .inverse_dynamics_derivatives import composites, own_linear_velocities, point_velocities
from .kinematics import angular_velocities, joint_transforms
from .rnea import body_forces


def centroidal_momentum_rate(tree: Tree, q, v, qdd, rate) -> None:
    """Write h'."""
    write_force(net_force_about_center(tree, q, v, qdd), rate)


def centroidal_bias(tree: Tree, q, v, bias) -> None:
    """Write A_G' q'."""
    write_force(net_force_about_center(tree, q, v, [0.0] * len(tree.parent)), bias)


def center_of_mass_acceleration(tree: Tree, q, v, qdd, acceleration) -> None:
    """Write the acceleration of the centre of mass (3)."""
    write_vec3((1.0 / whole_mass(tree)) * net_force_about_center(tree, q, v, qdd).lin, acceleration, 0)


def net_force_about_center(tree: Tree, q, v, qdd) -> Force:
    """Return the force that the motion of all bodies needs, about the centre of mass and without gravity."""
    X = joint_transforms(tree, q)
    f = body_forces(tree, X, v, qdd, ZERO_MOTION)
    for j in range(len(tree.parent) - 1, -1, -1):
        p = tree.parent[tree.first[j]]
        if tree.last[j] == j and p >= 0:
            f[p] = f[p] + X[tree.first[j]].force_to_parent(f[j])
    mass, moment, _ = composite_moments(tree, X, 1.0)
    return about_center(tree, X, mass, moment, f)


def centroidal_map_rate(tree: Tree, q, v, rate) -> None:
    """Write A_G' (6, n)."""
    n = len(tree.parent)
    X = joint_transforms(tree, q)
    w, _ = angular_velocities(tree, X, v)
    slip = own_linear_velocities(tree, v)
    u = point_velocities(tree, X, w, slip)
    Ic, N = composites(tree, X, w, slip, u)
    Ic = [Ic[tree.last[j]] for j in range(n)]
    R, _ = world_axes(tree, X)
    r = points_about_center(tree, X, R, [I.mass for I in Ic], [I.moment for I in Ic])
    faster = velocities_about_center(tree, R, u, N)
    whole = Ic[0].centered()
    Q = N[tree.last[0]].momentum
    c = (1.0 / Ic[0].mass) * Ic[0].moment
    centered = RigidInertia(Ic[0].mass, ZERO3, ZERO_SYM3)
    K = N[tree.last[0]].moved_along(centered, (0.0 - 1.0 / Ic[0].mass) * Q, ZERO3 - c).K
    alone = root_count(tree) == 1
    for j in range(n):
        b = tree.last[j]
        s = unit_motion(tree.axis[j], 1.0)
        turned = Motion(w[b].cross(s.ang), w[b].cross(s.lin) + slip[tree.first[j]].cross(s.ang))
        f = Ic[j] @ turned + N[b] @ s.ang
        lin = R[j] @ f.lin
        if alone and tree.first[j] == 0:
            ang = R[j] @ (whole @ turned.ang + K @ s.ang + K.transpose() @ s.ang)
        else:
            ang = R[j] @ (f.ang + N[b].of_component(tree.axis[j])) + r[j].cross(lin)
            ang = ang + faster[j].cross(R[j] @ Ic[j].column(tree.axis[j]).lin)
        write_force_column(Force(ang, lin), rate, j)


def velocities_about_center(tree: Tree, R, u, N):
    """Return the velocity of the parent's point at each row's joint relative to the centre of mass, on the world's axes."""
    n = len(tree.parent)
    momentum = ZERO3
    for j in range(n):
        if tree.parent[j] < 0:
            momentum = momentum + R[j] @ N[tree.last[j]].momentum
    seen = [(0.0 - 1.0 / whole_mass(tree)) * momentum] * n
    for j in range(n):
        p = tree.parent[j]
        if p >= 0:
            seen[j] = seen[p] if tree.first[j] != j else seen[p] + R[p] @ u[j]
    return seen
