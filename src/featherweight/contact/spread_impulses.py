"""Distribution of contact forces over all points of a patch, for readers of forces.

The solver sets the impulses of redundant contacts to zero (`patches`), and the motion does not determine the distribution of
forces over several contacts. Here the forces of each patch are replaced, within Coulomb's cones, by others with the same wrench
J f and a lesser norm. First they change along the direction of the patch's total force, in which each stays in its cone while
it does not pull, also if the patch slides; then freely. Both move straight towards the least norm. A force that reaches the
boundary of its cone is fixed, and the others continue.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array_types import Array, Booleans, Matrix, Vector
from ..collision.detection import ContactPoints
from ..engine.loops.kernels import compiled
from .contact_problem import write_axes
from .patches import find_patches, patch_work

SAME_GAP = 1e-9  # [m]
ROUNDING = 1e-13  # force, relative to a patch's normal force, that counts as zero
RANK = 1e-12  # singular value, relative to the greatest, that counts as zero: directions of impossible wrenches

_find_patches = compiled(find_patches)


def spread_impulses(
    contacts: ContactPoints, friction: Vector, restitution: Vector, force: Matrix, closed: Booleans, pyramid: bool
) -> Matrix:
    """Return forces (k, 3) or impulses of contacts, in the world frame, with the wrench of `force` for each patch.

    `friction` and `restitution` are those of candidates. Only `closed` (k,) contacts, those without a gap after the step, take
    part: forces at other contacts would violate Signorini's law.
    """
    spread = np.array(force, float)
    work = patch_work(len(spread))
    patches = _find_patches(contacts, friction, restitution, work)
    for p in range(patches):
        chosen = np.flatnonzero((work.patch == p) & closed)
        if len(chosen) > 1:
            axes, mu = np.zeros((3, 3)), float(friction[contacts.candidate[chosen[0]]])
            write_axes(contacts.normal[chosen[0]], axes)
            local = spread_in_patch(contacts.point[chosen] @ axes.T, spread[chosen] @ axes.T, mu, pyramid)
            spread[chosen] = local @ axes
    return spread


def closed_contacts(contacts: ContactPoints, friction: Vector, restitution: Vector, force: Matrix, solved: int) -> Booleans:
    """Return which contacts (k,) have no gap after a step; the first `solved` of them were in the solver.

    A contact that was left out is closed if all others of its patch carry a force, and its gap is the one that theirs imply.
    """
    work = patch_work(len(force))
    patches = _find_patches(contacts, friction, restitution, work)
    pressed = np.einsum("ki,ki->k", contacts.normal, force) > 0.0
    closed: Booleans = pressed.copy()
    for p in range(patches):
        alike = np.flatnonzero(work.patch == p)
        kept, left = alike[alike < solved], alike[alike >= solved]
        if len(left) and len(kept) and pressed[kept].all():
            arms = contacts.point - contacts.point[kept].mean(axis=0)
            arms = np.column_stack(
                [np.ones(len(arms)), arms - np.outer(arms @ contacts.normal[kept[0]], contacts.normal[kept[0]])]
            )
            gap = np.maximum(contacts.gap, 0.0)
            slope = np.linalg.lstsq(arms[kept], gap[kept], rcond=1e-9)[0]
            closed[left] = np.abs(arms[left] @ slope - gap[left]) <= SAME_GAP
    return closed


def spread_in_patch(points: Matrix, forces: Matrix, mu: float, pyramid: bool) -> Matrix:
    """Return other forces (n, 3) of one patch at points (n, 3), along its normal and two tangents."""
    normal = forces[:, 0].sum()
    if not normal > 0.0:
        return forces
    arms = points - points.mean(axis=0)
    size = np.abs(arms).max()
    arms = arms / size if size > 0.0 else arms
    along = (forces.sum(axis=0) / normal)[:, None]
    for directions in (along, np.eye(3)):
        forces = _least_forces(arms, forces, directions, (mu, pyramid, ROUNDING * float(normal)))
    return forces


def _least_forces(arms: Matrix, forces: Matrix, directions: Matrix, law: tuple[float, bool, float]) -> Matrix:
    """Return forces of lesser norm, changed along `directions` (3, d), which are orthogonal and of equal length."""
    free = np.arange(len(forces))
    while len(free) > 1:
        change = _change_to_least_norm(arms[free], forces[free], directions)
        if np.abs(change).max() <= law[2]:
            break
        way = _ways_in_cones(forces[free], change, *law)
        least = min(float(way.min()), 1.0)
        forces = forces.copy()
        forces[free] += least * change
        forces[free, 0] = np.maximum(forces[free, 0], 0.0)  # only rounding errors make it pull
        if least == 1.0:
            break
        free = free[way > least]
    return forces


def _change_to_least_norm(arms: Matrix, forces: Matrix, directions: Matrix) -> Matrix:
    """Return the change (n, 3) without wrench that leads to the least norm."""
    n, d = len(forces), directions.shape[1]
    pushes = np.broadcast_to(directions.T, (n, d, 3))
    wrenches = np.concatenate([pushes, np.cross(arms[:, None, :], pushes)], axis=2).reshape(n * d, 6)
    U, values, _ = np.linalg.svd(wrenches, full_matrices=False)
    held = U[:, values > RANK * values[0]]
    part = (forces @ directions).ravel() / (directions[:, 0] @ directions[:, 0])
    part = part - held @ (held.T @ part)
    return -(part - held @ (held.T @ part)).reshape(n, d) @ directions.T


def _ways_in_cones(forces: Matrix, change: Matrix, mu: float, pyramid: bool, rounding: float) -> Any:
    """Return how many times (n,) the change may be added until a force leaves its cone, beyond rounding errors."""
    pressing = _first_crossing(np.maximum(forces[:, 0], 0.0), change[:, 0])
    push, slip, further = mu * forces[:, 0], forces[:, 1:], change[:, 1:]
    if pyramid:
        room = np.maximum(push[:, None] + rounding - np.concatenate([slip, -slip], axis=1), 0.0)
        more = mu * change[:, :1] - np.concatenate([further, -further], axis=1)
        return np.minimum(pressing, _first_crossing(room, more).min(axis=1))
    most = np.maximum(push + rounding, np.linalg.norm(slip, axis=1))
    a = (further**2).sum(axis=1) - (mu * change[:, 0]) ** 2  # a t² + 2 b t - c is positive outside
    b = (slip * further).sum(axis=1) - most * mu * change[:, 0]
    c = np.maximum(most**2 - (slip**2).sum(axis=1), 0.0)
    root = np.sqrt(np.maximum(b * b + a * c, 0.0))
    late = np.divide(root - b, a, out=np.full(len(a), np.inf), where=a > 0.0)  # it first moves inward
    soon = np.divide(c, root + b, out=np.full(len(a), np.inf), where=(b > 0.0) & (b * b + a * c >= 0.0))
    return np.minimum(pressing, np.where(b > 0.0, soon, late))


def _first_crossing(room: Array, change: Array) -> Any:
    """Return how many times a change may be added to a quantity that must stay nonnegative."""
    return np.divide(room, -change, out=np.full(change.shape, np.inf), where=change < 0.0)
