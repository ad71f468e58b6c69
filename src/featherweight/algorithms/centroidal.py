"""Centroidal momentum: the momentum of all bodies about their centre of mass, in the world's axes (Orin, Goswami and Lee 2013).

    h = (linear, angular) = A_G q',   column j of A_G = X_G^T Ic_j S_j        Ic_j: composite inertia of row j

Columns are computed in the frames of the rows, where S_j is a unit vector. The motion of a single joint on the ground moves
everything; its angular momentum about the centre of mass depends only on the inertia about that centre. Rotors (armature) are
not part of the bodies.
"""

from __future__ import annotations

from ..model.tree import INNER, Tree
from ..spatial import ZERO3, ZERO_FORCE, Force, Motion, Vec3, unit_motion
from .crba import composite_inertias
from .energy import center_of_mass_jacobian, composite_moments, single, whole_mass, world_axes
from .frames import write_vec3
from .inverse_dynamics_derivatives import own_linear_velocities, point_velocities
from .kinematics import angular_velocities, joint_transforms, rigid_inertia


def centroidal_map(tree: Tree, q, A) -> None:
    """Write A_G (6, n)."""
    X = joint_transforms(tree, q)
    Ic = composite_inertias(tree, X)
    R, E = world_axes(tree, X)
    r = points_about_center(tree, X, R, [I.mass for I in Ic], [I.moment for I in Ic])
    whole = Ic[0].centered()
    alone = root_count(tree) == 1
    for j in range(len(tree.parent)):
        I = Ic[j].spin(X[j].turn[0], X[j].turn[1]) if single(tree, j) else Ic[j]
        f = I.column(tree.axis[j])
        lin = E[j] @ f.lin
        if alone and tree.first[j] == 0:
            ang = R[j] @ (whole @ unit_motion(tree.axis[j], 1.0).ang)
        else:
            ang = E[j] @ f.ang + r[j].cross(lin)
        write_force_column(Force(ang, lin), A, j)


def centroidal_inertia(tree: Tree, q, inertia) -> None:
    """Write the rotational inertia of all bodies about the centre of mass (3, 3), with joints locked."""
    X = joint_transforms(tree, q)
    Ic = composite_inertias(tree, X)
    R, _ = world_axes(tree, X)
    r = points_about_center(tree, X, R, [I.mass for I in Ic], [I.moment for I in Ic])
    total = Ic[0].centered().rotate(R[0])
    if root_count(tree) > 1:
        total = Ic[0].rotate(R[0]).translate(r[0]).rotational
        for j in range(1, len(tree.parent)):
            if tree.parent[j] < 0:
                total = total + Ic[j].rotate(R[j]).translate(r[j]).rotational
    write_vec3(Vec3(total.xx, total.xy, total.xz), inertia[0], 0)
    write_vec3(Vec3(total.xy, total.yy, total.yz), inertia[1], 0)
    write_vec3(Vec3(total.xz, total.yz, total.zz), inertia[2], 0)


def centroidal_momentum(tree: Tree, q, v, momentum) -> None:
    """Write h."""
    X = joint_transforms(tree, q)
    mass, moment, _ = composite_moments(tree, X, 1.0)
    f = composite_momenta(tree, X, v, mass, moment)
    write_force(about_center(tree, X, mass, moment, f), momentum)


def centroidal_momentum_by_map(tree: Tree, q, v, momentum) -> None:
    """Write A_G q'."""
    A = [[0.0] * len(tree.parent) for _ in range(6)]
    centroidal_map(tree, q, A)
    write_product(A, v, momentum)


def center_of_mass_velocity_by_jacobian(tree: Tree, q, v, velocity) -> None:
    """Write J q'."""
    J = [[0.0] * len(tree.parent) for _ in range(3)]
    center_of_mass_jacobian(tree, q, J)
    write_product(J, v, velocity)


def center_of_mass_velocity(tree: Tree, q, v, velocity) -> None:
    """Write the velocity of the centre of mass (3)."""
    X = joint_transforms(tree, q)
    mass, moment, _ = composite_moments(tree, X, 1.0)
    f = composite_momenta(tree, X, v, mass, moment)
    write_vec3((1.0 / whole_mass(tree)) * about_center(tree, X, mass, moment, f).lin, velocity, 0)


def composite_momenta(tree: Tree, X, v, mass, moment):
    """Return the momentum of the bodies that a joint carries, at its last row in that row's frame.

    The momentum is relative to the parent's point at the joint.
    """
    n = len(tree.parent)
    w, _ = angular_velocities(tree, X, v)
    slip = own_linear_velocities(tree, v)
    u = point_velocities(tree, X, w, slip)
    f = [ZERO_FORCE] * n
    for j in range(n - 1, -1, -1):
        if tree.last[j] == j:
            first = tree.first[j]
            f[j] = f[j] + rigid_inertia(tree, j) @ Motion(w[j], slip[first])
            p = tree.parent[first]
            if p >= 0:
                first_moment = X[first].rotate_to_parent(moment[j]) + mass[j] * X[first].p
                f[p] = f[p] + X[first].force_to_parent(f[j]) + Force(first_moment.cross(u[first]), mass[j] * u[first])
    return f


def about_center(tree: Tree, X, mass, moment, f) -> Force:
    """Return the sum over the last rows of the roots, about the centre of mass and in the world's axes."""
    R, _ = world_axes(tree, X)
    r = points_about_center(tree, X, R, mass, moment)
    total = ZERO_FORCE
    for j in range(len(tree.parent)):
        if tree.parent[tree.first[j]] < 0 and tree.last[j] == j:
            total = total + Force(R[j] @ f[j].ang, R[j] @ f[j].lin).translate(r[j])
    return total


def points_about_center(tree: Tree, X, R, mass, moment):
    """Return the origin of each row's frame relative to the centre of mass, in the world's axes.

    The function reads composite `mass` and `moment` of the roots only.
    """
    n = len(tree.parent)
    r = [ZERO3] * n
    away = ZERO3  # mass times centre of mass, relative to the first root
    for j in range(n):
        if tree.parent[j] < 0:
            r[j] = X[j].p - X[0].p
            away = away + R[j] @ moment[j] + mass[j] * r[j]
    center = (1.0 / whole_mass(tree)) * away
    for j in range(n):
        p = tree.parent[j]
        if p < 0:
            r[j] = r[j] - center
        else:
            r[j] = r[p] if tree.kind[j] == INNER else r[p] + R[p] @ X[j].p
    return r


def root_count(tree: Tree) -> int:
    """Return the number of joints on the ground."""
    count = 0
    for j in range(len(tree.parent)):
        if tree.parent[j] < 0:
            count += 1
    return count


def write_product(A, v, result) -> None:
    """Write A v."""
    for i in range(len(A)):
        total = 0.0
        for j in range(len(v)):
            total = total + A[i][j] * v[j]
        result[i] = total


def write_force(f: Force, out) -> None:
    write_vec3(f.lin, out, 0)
    write_vec3(f.ang, out, 3)


def write_force_column(f: Force, out, j: int) -> None:
    for i in range(3):
        out[i][j] = f.component(3 + i)
        out[3 + i][j] = f.component(i)
