"""Derivatives by q of contact geometry: normals and gaps of spheres, and the rows of velocities there.

Their last axis is q, in velocities (nv,). The geometry is that of `detection`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Array, Integers
from ..collision.collision_scene import HEIGHTS, PLANE, CollisionScene
from ..collision.detection import ContactPoints
from ..collision.height_fields import MOST_PATCHES, FieldArrays, field_patches
from ..collision.round_contacts import SAME

PERMUTATIONS = np.zeros((3, 3, 3))
PERMUTATIONS[[0, 1, 2], [2, 0, 1], [1, 2, 0]], PERMUTATIONS[[0, 1, 2], [1, 2, 0], [2, 0, 1]] = 1.0, -1.0


class BodyRates(NamedTuple):
    """Bodies that may touch: their placements, and Jacobians of velocities in the bodies' axes."""

    placement: Array  # (bodies, 4, 4)
    jacobian: Array  # (bodies, 6, nv)
    width: Integers  # (bodies,) 3 for a body with a single contact point, else 6, as in `ContactModel`


class GeometryRates(NamedTuple):
    """Derivatives of normals (contacts, 3, nv) and gaps (contacts, nv); `doubtful` (contacts,) where they jump nearby."""

    normal: Array
    gap: Array
    doubtful: Array


class RowRates(NamedTuple):
    """Rows of contacts on the velocities of bodies, one side of a contact for each body, with their derivatives."""

    contact: Integers  # (sides,)
    body: Integers  # (sides,)
    rows: Array  # (sides, 3, 6)
    slopes: Array  # (sides, 3, 6, nv)

    def of_contacts(self, sides: Array, count: int) -> Array:
        """Return the sums (3 contacts, ...) of numbers (sides, 3, ...)."""
        sums = np.zeros((count, *sides.shape[1:]))
        np.add.at(sums, self.contact, sides)
        return sums.reshape(3 * count, *sides.shape[2:])

    def pulled(self, f: Array, bodies: int) -> tuple[Array, Array]:
        """Return the forces (bodies, 6) of impulses f (3 contacts,) on bodies, and their derivatives."""
        own = f.reshape(-1, 3)[self.contact]
        W, slopes = np.zeros((bodies, 6)), np.zeros((bodies, *self.slopes.shape[2:]))
        np.add.at(W, self.body, (own[:, None] @ self.rows)[:, 0])
        np.add.at(slopes, self.body, np.einsum("sr,srkv->skv", own, self.slopes))
        return W, slopes


def skew(x: Array) -> Array:
    """Return the matrices (..., 3, 3) of cross products with vectors x (..., 3)."""
    return (x @ PERMUTATIONS.reshape(3, 9)).reshape(*x.shape, 3)


def centers(scene: CollisionScene, s: Array, bodies: BodyRates) -> tuple[Array, Array]:
    """Return the centres (..., 3) of spheres in the world frame, and their derivatives."""
    b, c = scene.body[s], scene.placement[s, 9:]
    R, J = bodies.placement[b, :3, :3], bodies.jacobian[b]
    x = (R @ c[..., None])[..., 0] + bodies.placement[b, :3, 3]
    return x, R @ (J[..., :3, :] - skew(c) @ J[..., 3:, :])


def geometry_rates(scene: CollisionScene, pairs: Array, contacts: ContactPoints, bodies: BodyRates) -> GeometryRates:
    """Return the derivatives for contacts of pairs (contacts, 2): a sphere and the ground of the simulation, or two spheres."""
    x, dx = centers(scene, pairs[:, 0], bodies)
    dn, doubtful = np.zeros_like(dx), np.zeros(len(x), bool)
    for c in np.flatnonzero(scene.kind[pairs[:, 1]] != PLANE):
        (s, t), n = pairs[c], contacts.normal[c]
        if scene.kind[t] == HEIGHTS:
            dn[c], doubtful[c] = _over_heights(scene, t, x[c], dx[c], (n, scene.size[s, 0] + contacts.gap[c]))
        else:
            y, dy = centers(scene, t, bodies)
            dx[c] -= dy
            dn[c] = (dx[c] - np.outer(n, n @ dx[c])) / max(float(np.linalg.norm(x[c] - y)), 1e-300)
    return GeometryRates(dn, (contacts.normal[:, None] @ dx)[:, 0], doubtful)


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
    """Return derivatives (3, 3, nv) of normal and tangents, as `write_axes` defines them."""
    n, t = axes[0], axes[1]
    e = np.eye(3)[0 if abs(n[0]) < 0.9 else 1]
    length = np.linalg.norm(e - n * (n @ e))
    raw = -(dn * (n @ e) + n[:, None] * (e @ dn))
    dt = (raw - t[:, None] * (t @ raw)) / length
    return np.stack([dn, dt, skew(n) @ dt - skew(t) @ dn])


def row_rates(
    scene: CollisionScene, pairs: Array, contacts: ContactPoints, axes: Array, geometry: GeometryRates, bodies: BodyRates
) -> tuple[RowRates, RowRates]:
    """Return the rows of contacts with axes (contacts, 3, 3): for impulses and approach, and for the Delassus matrix.

    They differ for a body with a single contact point: the latter use the point itself instead of its projection on the ground.
    """
    both = np.stack([contacts.a, contacts.b], axis=1)
    contact, side = np.nonzero(both >= 0)
    body, sphere = both[contact, side], pairs[contact, side]
    R, J, center = bodies.placement[body, :3, :3], bodies.jacobian[body], scene.placement[sphere, 9:]
    Rt, turn, sign = R.swapaxes(1, 2), J[:, 3:], 1.0 - 2.0 * side
    y = sign[:, None, None] * axes[contact] @ R
    dy = skew(y) @ turn[:, None]
    for i, c in enumerate(contact):
        if geometry.normal[c].any():
            dy[i] += sign[i] * Rt[i] @ axes_rates(axes[c], geometry.normal[c])
    p = (Rt @ (contacts.point[contact] - bodies.placement[body, :3, 3])[:, :, None])[:, :, 0]
    out = ((center - p) * y[:, 0]).sum(axis=1)  # the point is at this distance from the centre, against the normal
    share = np.where(both.min(axis=1) < 0, 1.0, 0.5)[contact]  # of the gap
    dp = -(share[:, None] * geometry.gap[contact])[:, None] * y[:, 0, :, None] - out[:, None, None] * dy[:, 0]
    own = RowRates(contact, body, *_rows_at(p, dp, y, dy))
    lone = bodies.width[body] == 3
    if not lone.any():
        return own, own
    p[lone], dp[lone] = center[lone], 0.0
    return own, RowRates(contact, body, *_rows_at(p, dp, y, dy))


def _rows_at(p: Array, dp: Array, y: Array, dy: Array) -> tuple[Array, Array]:
    """Return rows for velocities along y at points p of bodies, and their derivatives."""
    arm = skew(p)
    turning = arm[:, None] @ dy - skew(y) @ dp[:, None]
    return np.concatenate([y, -y @ arm], axis=2), np.concatenate([dy, turning], axis=2)
