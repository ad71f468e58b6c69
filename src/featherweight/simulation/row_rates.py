"""Derivatives of contact geometry: points, normals and gaps of spheres, and the rows of velocities there.

Rates are arrays whose last axis is directions, as in `rates`. The geometry is that of `detection`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Array
from ..collision.collision_scene import HEIGHTS, PLANE, CollisionScene
from ..collision.detection import ContactPoints, body_of
from ..collision.height_fields import MOST_PATCHES, FieldArrays, field_patches
from ..collision.round_contacts import SAME
from ..contact.contact_problem import write_axes
from .contact_stage import ContactStage


class BodyRates(NamedTuple):
    """Bodies that may touch: placements, Jacobians and rates.

    Placements are (bodies, 4, 4). Jacobians (bodies, 6, nv) and the rates (bodies, 6, directions) of placements are velocities
    in the bodies' axes.
    """

    placement: Array
    jacobian: Array
    tangent: Array


class GeometryRates(NamedTuple):
    """Rates of one contact's point (3, directions), normal (3, directions) and gap (directions,).

    `doubtful` if they jump nearby.
    """

    point: Array
    normal: Array
    gap: Array
    doubtful: bool = False


class SideRates(NamedTuple):
    """Rows (3, 6) of one side of a contact, acting on its body's velocity, and their rates (3, 6, directions).

    `rows` are for impulses and approach, `felt` for the Delassus matrix. They differ for a body with a single contact point:
    `felt` uses the point itself instead of its projection on the ground.
    """

    body: int
    rows: Array
    drows: Array
    felt: Array
    dfelt: Array


def cross(a: Array, b: Array) -> Array:
    """Return a x b of vectors on the first axis, by direction."""
    if a.ndim < b.ndim:
        a = a[:, None]
    if b.ndim < a.ndim:
        b = b[:, None]
    return np.asarray(np.cross(a, b, axis=0))


def center_rates(scene: CollisionScene, s: int, bodies: BodyRates) -> tuple[Array, Array]:
    """Return the centre of a sphere in the world frame, and its rates."""
    b = int(scene.body[s])
    R, t, c = bodies.placement[b, :3, :3], bodies.tangent[b], scene.placement[s, 9:]
    return R @ c + bodies.placement[b, :3, 3], R @ (t[:3] + cross(t[3:], c))


def geometry_rates(scene: CollisionScene, pair: int, contacts: ContactPoints, c: int, bodies: BodyRates) -> GeometryRates:
    """Return the rates of contact c of a pair: a sphere and the ground of the simulation, or two spheres."""
    n, gap = contacts.normal[c], float(contacts.gap[c])
    s, t = (int(k) for k in scene.pair[pair])
    x, dx = center_rates(scene, s, bodies)
    if scene.kind[t] >= PLANE:
        r = float(scene.size[s, 0])
        dn, dgap, doubtful = np.zeros_like(dx), n @ dx, False
        if scene.kind[t] == HEIGHTS:
            dn, doubtful = _over_heights(scene, t, x, dx, (n, r + gap))
        return GeometryRates(dx - n[:, None] * dgap - (r + gap) * dn, dn, dgap, doubtful)
    y, dy = center_rates(scene, t, bodies)
    apart = dx - dy
    distance = float(np.linalg.norm(x - y))
    dgap = n @ apart
    dn = (apart - n[:, None] * dgap) / max(distance, 1e-300)
    out = float(scene.size[t, 0]) + 0.5 * gap
    return GeometryRates(dy + 0.5 * n[:, None] * dgap + out * dn, dn, dgap)


def _over_heights(scene: CollisionScene, t: int, x: Array, dx: Array, contact: tuple[Array, float]) -> tuple[Array, bool]:
    """Return rates of the normal at a centre x over a height field, and whether nearby centres touch another element.

    `contact` has the normal and the distance of the centre. A face has a constant normal; the normal of an edge or a vertex is
    the direction from it to the centre.
    """
    n, distance = contact
    f = int(scene.data[t, 0])
    field = FieldArrays(scene.fields.heights, tuple(int(k) for k in scene.fields.grid[f]), scene.fields.edges[f])
    R, o = scene.placement[t, :9].reshape(3, 3), scene.placement[t, 9:]

    def touched(at: Array) -> Array:
        patches = np.zeros((MOST_PATCHES, 11))
        rows = patches[: field_patches(field, tuple((at - o) @ R), distance + 3.0 * SAME, patches)]
        return np.array(rows[(rows[:, 3:6] @ R.T @ n).argmax()]) if len(rows) else np.full(11, -1.0)

    def same(row: Array) -> bool:
        """Identify a face by its normal, an edge by its direction, a vertex by its position."""
        what = {2: slice(3, 6), 1: slice(7, 10), 0: slice(0, 3)}[int(own[10])]
        return bool(row[10] == own[10] and np.abs(row[what] - own[what]).max() < SAME)

    own = touched(x)
    ways = SAME * np.vstack([np.eye(3), -np.eye(3)])
    doubtful = not all(same(touched(x + way)) for way in ways)
    if own[10] == 2:
        return np.zeros_like(dx), doubtful
    e = R @ own[7:10]
    dn = (dx - np.outer(n, n @ dx) - np.outer(e, e @ dx)) / max(float(own[6]), 1e-300)
    return dn, doubtful


def axes_rates(axes: Array, dn: Array) -> Array:
    """Return rates (3, 3, directions) of normal and tangents, as `write_axes` defines them."""
    n, t = axes[0], axes[1]
    e = np.eye(3)[0 if abs(n[0]) < 0.9 else 1]
    length = np.linalg.norm(e - n * (n @ e))
    raw = -(dn * (n @ e) + n[:, None] * (e @ dn))
    dt = (raw - t[:, None] * (t @ raw)) / length
    return np.stack([dn, dt, cross(dn, t) + cross(n, dt)])


def side_rates(
    stage: ContactStage, contacts: ContactPoints, c: int, bodies: BodyRates
) -> tuple[GeometryRates, list[SideRates]]:
    """Return the geometry of contact c, and its rows on either side."""
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
    """Return rows for velocities along y at a point p of a body, and their rates."""
    turning = np.stack([cross(dp, y[k]) + cross(p, dy[k]) for k in range(3)])
    return np.hstack([y, np.cross(p, y)]), np.concatenate([dy, turning], axis=1)
