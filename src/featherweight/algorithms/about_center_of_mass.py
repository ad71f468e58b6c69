"""Inertias and velocities of links about the common centre of mass, in the world's axes.

    c = sum m_k c_k / sum m_k     d_k = c_k - c
    I_k = R_k diag(i_k) R_kᵀ + m_k (d² 1 - d dᵀ)     v_k(c) = v_k - w_k x d_k

These are MuJoCo's `cinert` and `cvel` for robots whose links form one tree; in MuJoCo, each tree has its own centre of mass.
"""

from __future__ import annotations

from typing import NamedTuple

from ..model.tree import Placements, Tree
from ..spatial import ZERO3, Motion
from .frames import frame_poses, seen_at, velocity_of_frame, write_vec3
from .kinematics import joint_transforms, spatial_velocities, vec3


class PrincipalInertias(NamedTuple):
    """Masses and principal moments of inertia of m links, in frames at their centres of mass."""

    masses: tuple[float, ...]  # (m,) [kg]
    moments: tuple[tuple[float, float, float], ...]  # (m, 3) [kg m²]


def about_center_of_mass(tree: Tree, links: Placements, inertias: PrincipalInertias, q, v, results) -> None:
    """Write the centre (3); inertias (m, 10), (xx, yy, zz, xy, xz, yz, m d, m); and velocities (m, 6), (angular, linear)."""
    center, inertia, velocity = results
    X = joint_transforms(tree, q)
    u = spatial_velocities(tree, X, v)
    R, o = frame_poses(tree, links, X)
    count = len(links.row)
    c, total = ZERO3, 0.0
    for k in range(count):
        c = c + inertias.masses[k] * o[k]
        total = total + inertias.masses[k]
    c = (1.0 / total) * c
    write_vec3(c, center, 0)
    for k in range(count):
        mass, i, d = inertias.masses[k], vec3(inertias.moments, k), o[k] - c
        x, y, z = R[k].x, R[k].y, R[k].z
        square = mass * d.dot(d)
        inertia[k][0] = weighted(x, i, x) + (square - mass * (d.x * d.x))
        inertia[k][1] = weighted(y, i, y) + (square - mass * (d.y * d.y))
        inertia[k][2] = weighted(z, i, z) + (square - mass * (d.z * d.z))
        inertia[k][3] = weighted(x, i, y) - mass * (d.x * d.y)
        inertia[k][4] = weighted(x, i, z) - mass * (d.x * d.z)
        inertia[k][5] = weighted(y, i, z) - mass * (d.y * d.z)
        write_vec3(mass * d, inertia[k], 6)
        inertia[k][9] = mass
        local = velocity_of_frame(links, k, u)
        m = seen_at(Motion(R[k] @ local.ang, R[k] @ local.lin), d)
        write_vec3(m.ang, velocity[k], 0)
        write_vec3(m.lin, velocity[k], 3)


def weighted(a, w, b):
    """Return a . diag(w) b."""
    return w.x * (a.x * b.x) + w.y * (a.y * b.y) + w.z * (a.z * b.z)
