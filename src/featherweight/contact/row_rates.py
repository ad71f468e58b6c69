"""Derivatives by q of contact geometry, and of the rows of velocities at contacts.

Their last axis is q, in velocities (nv,). `collision.contact_motion` has the motion of contacts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Array, Integers
from ..collision.collision_scene import CollisionScene
from ..collision.detection import ContactPoints

PERMUTATIONS = np.zeros((3, 3, 3))
PERMUTATIONS[[0, 1, 2], [2, 0, 1], [1, 2, 0]], PERMUTATIONS[[0, 1, 2], [1, 2, 0], [2, 0, 1]] = 1.0, -1.0


class BodyRates(NamedTuple):
    """Bodies that may touch: their placements, and Jacobians of velocities in the bodies' axes."""

    placement: Array  # (bodies, 4, 4)
    jacobian: Array  # (bodies, 6, nv)
    width: Integers  # (bodies,) 3 for a body with a single contact point, else 6, as in `ContactModel`


class GeometryRates(NamedTuple):
    """Derivatives of normals and points (contacts, 3, nv), and gaps (contacts, nv)."""

    normal: Array
    point: Array
    gap: Array


def geometry_rates(motion: Array, margins: Array, contacts: ContactPoints, bodies: BodyRates) -> GeometryRates:
    """Return the derivatives for contacts with motions (contacts, MOVES, 7) of their normal, middle and gap.

    Points on the ground are halfway of the margin above it; `margins` (contacts,) are NaN for other contacts, whose point is in
    the middle between the surfaces.
    """
    rates = np.zeros((len(motion), 7, bodies.jacobian.shape[2]))
    for side, body in enumerate((contacts.a, contacts.b)):
        moving = body >= 0
        rates[moving] += motion[moving, 6 * side : 6 * side + 6].swapaxes(1, 2) @ bodies.jacobian[body[moving]]
    normal, point, gap = rates[:, :3], rates[:, 3:6], rates[:, 6]
    on_ground = ~np.isnan(margins)
    n, dn, dg = contacts.normal[on_ground, :, None], normal[on_ground], gap[on_ground, None]
    point[on_ground] -= 0.5 * (n * dg + contacts.gap[on_ground, None, None] * dn)
    return GeometryRates(normal, point, gap)


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
    dp = Rt @ geometry.point[contact] - (J[:, :3] - skew(p) @ turn)  # relative to the body
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
