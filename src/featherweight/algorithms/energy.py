"""Kinetic and potential energy, and the centre of mass."""

from __future__ import annotations

from ..model.tree import Tree
from ..spatial import ZERO3, Vec3
from .kinematics import joint_transforms, rigid_inertia, spatial_velocities, vec3


def kinetic_energy(tree: Tree, q, v, energy) -> None:
    """The sum of 1/2 v^T I v over bodies and 1/2 armature q'^2 over joints."""
    u = spatial_velocities(tree, joint_transforms(tree, q), v)
    total = 0.0
    for j in range(len(tree.parent)):
        total = total + tree.armature[j] * (v[j] * v[j])
        if tree.last[j] == j:
            total = total + (rigid_inertia(tree, j) @ u[j]).power(u[j])
    energy[0] = 0.5 * total


def first_moment(tree: Tree, X) -> Vec3:
    """Mass times centre of mass of the whole robot, in the world."""
    n = len(tree.parent)
    mass = [0.0] * n
    moment = [ZERO3] * n
    total = ZERO3
    for j in range(n - 1, -1, -1):
        mass[j] = mass[j] + tree.mass[j]
        moment[j] = moment[j] + vec3(tree.moment, j)
        in_parent = X[j].rotate_to_parent(moment[j]) + mass[j] * X[j].p
        p = tree.parent[j]
        if p >= 0:
            mass[p] = mass[p] + mass[j]
            moment[p] = moment[p] + in_parent
        else:
            total = total + in_parent
    return total


def potential_energy(tree: Tree, q, energy) -> None:
    """Minus gravity times first moment: zero with the centre of mass at the world's origin."""
    g = tree.gravity
    energy[0] = 0.0 - Vec3(g[0], g[1], g[2]).dot(first_moment(tree, joint_transforms(tree, q)))


def center_of_mass(tree: Tree, q, center) -> None:
    """The centre of mass of the moving bodies, in the world."""
    total = 0.0
    for j in range(len(tree.parent)):
        total = total + tree.mass[j]
    c = (1.0 / total) * first_moment(tree, joint_transforms(tree, q))
    center[0] = c.x
    center[1] = c.y
    center[2] = c.z
