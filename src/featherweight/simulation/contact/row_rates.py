"""Derivatives of what contacts are: points, normals and gaps of spheres, and the rows that see velocities there.

Rates are arrays with a last axis of directions, as in `force_rates`. What follows from the geometry of `detection` is here; a
height field has the slopes of the patch under a centre, and no jump of them at its edges.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .collision_scene import HEIGHTS, PLANE
from .contact_problem import body_of, write_axes
from .ground_contacts import normal_and_height

Array = np.ndarray[Any, np.dtype[Any]]


class BodyRates(NamedTuple):
    """Bodies that may touch: placements (bodies, 4, 4), Jacobians (bodies, 6, nv) of their velocities in their own axes, and
    rates (bodies, 6, directions) of the placements as such velocities."""

    placement: Array
    jacobian: Array
    tangent: Array


class GeometryRates(NamedTuple):
    """Rates of one contact's point (3, directions), normal (3, directions) and gap (directions,)."""

    point: Array
    normal: Array
    gap: Array


class SideRates(NamedTuple):
    """Rows (3, 6) of one side of a contact, of its body's velocity, and their rates (3, 6, directions).

    `rows` are those of impulses and approach, `felt` those of the Delassus matrix: of a body that touches with one point, the
    point itself in place of its projection on the ground.
    """

    body: int
    rows: Array
    drows: Array
    felt: Array
    dfelt: Array


def cross(a: Array, b: Array) -> Array:
    """a x b of vectors on the first axis, by direction."""
    if a.ndim < b.ndim:
        a = a[:, None]
    if b.ndim < a.ndim:
        b = b[:, None]
    return np.asarray(np.cross(a, b, axis=0))


def center_rates(scene: Any, s: int, bodies: BodyRates) -> tuple[Array, Array]:
    """The centre of a sphere in the world, and its rates."""
    b = int(scene.body[s])
    R, t, c = bodies.placement[b, :3, :3], bodies.tangent[b], scene.placement[s, 9:]
    return R @ c + bodies.placement[b, :3, 3], R @ (t[:3] + cross(t[3:], c))


def geometry_rates(scene: Any, pair: int, contacts: Any, c: int, bodies: BodyRates) -> GeometryRates:
    """Of contact c, of a pair: a sphere and the ground of the simulation, or two spheres."""
    n, gap = contacts.normal[c], float(contacts.gap[c])
    s, t = (int(k) for k in scene.pair[pair])
    x, dx = center_rates(scene, s, bodies)
    if scene.kind[t] >= PLANE:
        r = float(scene.size[s, 0])
        if scene.kind[t] == PLANE:
            dn, dgap = np.zeros_like(dx), n @ dx
        else:
            assert scene.kind[t] == HEIGHTS
            f = int(scene.data[t, 0])
            dn, dgap = _over_heights((scene.heights, scene.field_grid[f], scene.field_edges[f]), x, dx)
        return GeometryRates(dx - n[:, None] * dgap - (r + gap) * dn, dn, dgap)
    y, dy = center_rates(scene, t, bodies)
    apart = dx - dy
    distance = float(np.linalg.norm(x - y))
    dgap = n @ apart
    dn = (apart - n[:, None] * dgap) / max(distance, 1e-300)
    out = float(scene.size[t, 0]) + 0.5 * gap
    return GeometryRates(dy + 0.5 * n[:, None] * dgap + out * dn, dn, dgap)


def _over_heights(field: Any, x: Array, dx: Array) -> tuple[Array, Array]:
    """Rates of the normal of a height field below a centre x, and of the centre's distance from the tangent plane there."""
    heights, (first, nx, ny), edges = field
    *normal, height = normal_and_height(heights, (first, nx, ny), edges, x[0], x[1])
    n = np.array(normal)
    steps = [(x[k] - edges[k]) / edges[2 + k] for k in range(2)]
    inside = [0.0 <= s <= m - 1.0 for s, m in zip(steps, (nx, ny), strict=True)]
    i, j = (min(int(min(max(s, 0.0), m - 1.0)), m - 2) for s, m in zip(steps, (nx, ny), strict=True))
    H = heights[first : first + nx * ny].reshape(nx, ny)
    twist = (H[i + 1, j + 1] - H[i + 1, j] - H[i, j + 1] + H[i, j]) / (edges[2] * edges[3])
    slope = -n[:2] / n[2]
    dslope = twist * dx[1::-1] if all(inside) else np.zeros_like(dx[:2])
    raw = np.vstack([-dslope, np.zeros((1, dx.shape[1]))])  # of (-slope, 1), whose length is 1/nz
    dn = n[2] * (raw - n[:, None] * (n @ raw))
    return dn, n[2] * (dx[2] - slope @ dx[:2]) + (x[2] - height) * dn[2]


def axes_rates(axes: Array, dn: Array) -> Array:
    """Rates (3, 3, directions) of normal and tangents, as `write_axes` has them."""
    n, t = axes[0], axes[1]
    e = np.eye(3)[0 if abs(n[0]) < 0.9 else 1]
    length = np.linalg.norm(e - n * (n @ e))
    raw = -(dn * (n @ e) + n[:, None] * (e @ dn))
    dt = (raw - t[:, None] * (t @ raw)) / length
    return np.stack([dn, dt, cross(dn, t) + cross(n, dt)])


def side_rates(stage: Any, contacts: Any, c: int, bodies: BodyRates) -> tuple[GeometryRates, list[SideRates]]:
    """The geometry of contact c, and its rows on either side."""
    model, scene = stage.model, stage.scene
    axes = np.empty((3, 3))
    write_axes(contacts.normal[c], axes)
    geometry = geometry_rates(scene, int(stage.touching.pairs[contacts.candidate[c]]), contacts, c, bodies)
    daxes = axes_rates(axes, geometry.normal)
    sides = []
    for s in range(2):
        body = int(body_of(contacts, c, s))
        if body < 0:
            continue
        R, t = bodies.placement[body, :3, :3], bodies.tangent[body]
        sign = 1.0 - 2.0 * s
        y = sign * axes @ R
        dy = np.stack([cross(y[k], t[3:]) + sign * R.T @ daxes[k] for k in range(3)])
        p = R.T @ (contacts.point[c] - bodies.placement[body, :3, 3])
        dp = cross(p, t[3:]) + R.T @ geometry.point - t[:3]
        rows = _rows_at(p, dp, y, dy)
        felt = rows
        if model.width[body] == 3:
            center = scene.placement[int(np.flatnonzero(scene.body == body)[0]), 9:]
            felt = _rows_at(center, np.zeros_like(dp), y, dy)
        sides.append(SideRates(body, *rows, *felt))
    return geometry, sides


def _rows_at(p: Array, dp: Array, y: Array, dy: Array) -> tuple[Array, Array]:
    """Rows for velocities along y at a point p of a body, and their rates."""
    turning = np.stack([cross(dp, y[k]) + cross(p, dy[k]) for k in range(3)])
    return np.hstack([y, np.cross(p, y)]), np.concatenate([dy, turning], axis=1)
