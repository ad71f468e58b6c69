"""Kinetic and potential energy, and the centre of mass."""

from __future__ import annotations

from ..model.tree import INNER, PRISMATIC, REVOLUTE, Tree
from ..spatial import IDENTITY3, ZERO3, Vec3, unit_motion
from .crba_ltdl import write_mass_matrix
from .frames import write_vec3
from .kinematics import joint_transforms, rigid_inertia, spatial_velocities, vec3
from .mechanisms.counterparts import takes_mechanism


def kinetic_energy(tree: Tree, q, v, energy) -> None:
    """Write the sum of 1/2 v^T I v over bodies and 1/2 armature q'^2 over joints."""
    u = spatial_velocities(tree, joint_transforms(tree, q), v)
    total = 0.0
    for j in range(len(tree.parent)):
        total = total + tree.armature[j] * (v[j] * v[j])
        if tree.last[j] == j:
            total = total + (rigid_inertia(tree, j) @ u[j]).power(u[j])
    energy[0] = 0.5 * total


@takes_mechanism
def kinetic_energy_by_mass_matrix(system, q, v, energy) -> None:
    """Write 1/2 v^T M v, of a tree or a mechanism."""
    n = len(system.parent)
    H = [[0.0] * n for _ in range(n)]
    write_mass_matrix(system, q, H)
    total = 0.0
    for i in range(n):
        momentum = 0.5 * H[i][i] * v[i]
        j = system.parent[i]
        while j >= 0:
            momentum = momentum + H[i][j] * v[j]
            j = system.parent[j]
        total = total + momentum * v[i]
    energy[0] = total


@takes_mechanism
def mechanical_power(system, v, tau, power) -> None:
    """Write tau^T v."""
    total = 0.0
    for j in range(len(system.parent)):
        total = total + tau[j] * v[j]
    power[0] = total


def composite_moments(tree: Tree, X, unit):
    """Return mass and first moment of each row's subtree, in the row's frame, and the first moment of all bodies in the world.

    Masses are in units of 1 / `unit`. The first loop adds up the terms that are constant in a body's frame.
    """
    n = len(tree.parent)
    mass = [0.0] * n
    moment = [ZERO3] * n
    total = ZERO3
    for j in range(n - 1, -1, -1):
        p = tree.parent[j]
        mass[j] = mass[j] + unit * tree.mass[j]
        moment[j] = moment[j] + unit * vec3(tree.moment, j)
        if p >= 0:
            mass[p] = mass[p] + mass[j]
            moment[p] = moment[p] + mass[j] * X[j].p
        else:
            total = total + mass[j] * X[j].p
    for j in range(n - 1, -1, -1):
        p = tree.parent[j]
        in_parent = X[j].rotate_to_parent(moment[j])
        if p >= 0:
            moment[p] = moment[p] + in_parent
        else:
            total = total + in_parent
    return mass, moment, total


def potential_energy(tree: Tree, q, energy) -> None:
    """Write minus gravity times first moment: zero with the centre of mass at the world's origin."""
    g = tree.gravity
    energy[0] = 0.0 - Vec3(g[0], g[1], g[2]).dot(composite_moments(tree, joint_transforms(tree, q), 1.0)[2])


def center_of_mass(tree: Tree, q, center) -> None:
    """Write the centre of mass of the moving bodies, in the world."""
    c = composite_moments(tree, joint_transforms(tree, q), 1.0 / whole_mass(tree))[2]
    write_vec3(c, center, 0)


def center_of_mass_jacobian(tree: Tree, q, J) -> None:
    """Write the Jacobian (3, n) of the centre of mass: a joint moves the part of the robot's mass that it carries."""
    X = joint_transforms(tree, q)
    _, E = world_axes(tree, X)
    mass, moment, _ = composite_moments(tree, X, 1.0 / whole_mass(tree))
    for j in range(len(tree.parent)):
        s = unit_motion(tree.axis[j], 1.0)
        h = moment[j].spin(X[j].turn[0], X[j].turn[1]) if single(tree, j) else moment[j]
        column = E[j] @ (s.ang.cross(h) + mass[j] * s.lin)
        J[0][j] = column.x
        J[1][j] = column.y
        J[2][j] = column.z


def whole_mass(tree: Tree):
    """Return the mass of all bodies."""
    total = 0.0
    for j in range(len(tree.parent)):
        total = total + tree.mass[j]
    return total


def single(tree: Tree, j: int):
    """Return whether a row is a joint of one degree of freedom, whose axis is the z axis of both bodies."""
    return tree.kind[j] == REVOLUTE or tree.kind[j] == PRISMATIC


def world_axes(tree: Tree, X):
    """Return orientations in the world: of each row's frame, and of the frame that expresses the row's motion.

    For a single joint this is the frame before its rotation, so that the last joints of the tree rotate no axes.
    """
    n = len(tree.parent)
    R = [IDENTITY3] * n
    E = [IDENTITY3] * n
    for j in range(n):
        p = tree.parent[j]
        if p >= 0:
            R[j] = R[p]
        E[j] = R[j]
        if tree.kind[j] != INNER:
            if single(tree, j):
                E[j] = X[j].unturned().axes_in_child(R[j])
            R[j] = X[j].axes_in_child(R[j])
            if not single(tree, j):
                E[j] = R[j]
    return R, E
