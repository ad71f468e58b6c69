"""Kinetic and potential energy, and the centre of mass."""

from __future__ import annotations

from ..model.tree import Tree
from ..spatial import ZERO3, Vec3, unit_motion
from .frames import world_poses
from .joint_space import write_mass_matrix
from .kinematics import joint_transforms, rigid_inertia, spatial_velocities, vec3
from .mechanisms.counterparts import takes_mechanism


def kinetic_energy(tree: Tree, q, v, energy) -> None:
    """The sum of 1/2 v^T I v over bodies and 1/2 armature q'^2 over joints."""
    u = spatial_velocities(tree, joint_transforms(tree, q), v)
    total = 0.0
    for j in range(len(tree.parent)):
        total = total + tree.armature[j] * (v[j] * v[j])
        if tree.last[j] == j:
            total = total + (rigid_inertia(tree, j) @ u[j]).power(u[j])
    energy[0] = 0.5 * total


@takes_mechanism
def kinetic_energy_by_mass_matrix(system, q, v, energy) -> None:
    """1/2 v^T M v, of a tree or a mechanism."""
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
    """tau^T v."""
    total = 0.0
    for j in range(len(system.parent)):
        total = total + tau[j] * v[j]
    power[0] = total


def composite_moments(tree: Tree, X):
    """Of what each row of the tree carries the mass, and the first moment in its own frame; and that of all in the world."""
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
    return mass, moment, total


def first_moment(tree: Tree, X) -> Vec3:
    """Mass times centre of mass of the whole robot, in the world."""
    total: Vec3 = composite_moments(tree, X)[2]
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


def center_of_mass_jacobian(tree: Tree, q, J) -> None:
    """The Jacobian (3, n) of the centre of mass: a joint moves the part of the robot's mass that it carries."""
    X = joint_transforms(tree, q)
    R, _ = world_poses(tree, X)
    mass, moment, _ = composite_moments(tree, X)
    whole = 0.0
    for j in range(len(tree.parent)):
        whole = whole + tree.mass[j]
    for j in range(len(tree.parent)):
        s = unit_motion(tree.axis[j], 1.0 / whole)
        column = R[j] @ (s.ang.cross(moment[j]) + mass[j] * s.lin)
        J[0][j] = column.x
        J[1][j] = column.y
        J[2][j] = column.z
