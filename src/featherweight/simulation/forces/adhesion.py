"""Drives that pull contacts together, as in MuJoCo's adhesion.

The n contacts of the drive's body share its force F: each is pulled together by F / n along its normal, before the solver
computes the impulses of the step. Without contacts the drive has no effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...array_types import BooleanMatrix, Integers, Matrix, Tensor, Vector
from ...collision.detection import ContactPoints
from .at_joints import ForcesAtJoints
from .laws import Drives, drive_force


class Adhesion(NamedTuple):
    """Drives that pull contacts together; may be empty."""

    drive: Integers  # (k,)
    gear: Vector  # (k,)
    sticks: BooleanMatrix  # (k, candidates) whether a contact belongs to the drive's body
    reach: Vector  # (candidates,) [m] greatest gap at which the drive pulls


def adhesion_of(forces: ForcesAtJoints, links: Sequence[tuple[str | None, str | None]], reach: Vector) -> Adhesion:
    """Return the adhesion of a robot's drives, for contact candidates between these links."""
    drives = forces.sticky
    sticks = [[forces.parts[k].adhesion in pair for pair in links] for k in drives]
    gears = [forces.parts[k].gear for k in drives]
    stuck = np.array(sticks, bool).reshape(len(drives), len(links))
    return Adhesion(np.array(drives, np.int64), np.array(gears, float), stuck, reach)


def add_adhesion(
    x: Adhesion, drives: Drives, inputs: Vector, contacts: ContactPoints, count: int, near: float, placement: Tensor,
    pull: Matrix,
) -> bool:  # fmt: skip
    """Add the wrenches of drives to `pull` (bodies, 6), in the bodies' axes and at their origins; return whether any acts."""
    acts = False
    for j in range(len(x.drive)):
        k, touching, v = x.drive[j], 0, drives.values
        for c in range(count):
            touching += 1 if holds(x, j, contacts, c, near) else 0
        if touching == 0:
            continue
        drive = 1.0, v[1, k], v[2, k], 0.0, 0.0, v[5, k], v[6, k], v[7, k], v[8, k]
        force = x.gear[j] * drive_force(drive, inputs[k], 0.0, 0.0) / touching
        acts = acts or force != 0.0
        for c in range(count):
            if holds(x, j, contacts, c, near):
                add_pull(contacts.a[c], -force, contacts.normal[c], contacts.point[c], placement, pull)
                add_pull(contacts.b[c], force, contacts.normal[c], contacts.point[c], placement, pull)
    return acts


def holds(x: Adhesion, j: int, contacts: ContactPoints, c: int, near: float) -> bool:
    candidate = contacts.candidate[c]
    return bool(x.sticks[j, candidate] and contacts.gap[c] < near + x.reach[candidate])


def add_pull(body: int, force: float, n: Vector, point: Vector, placement: Tensor, pull: Matrix) -> None:
    """Add a force along n at a point to the wrench on a body; forces on the world are ignored."""
    if body < 0:
        return
    T, w = placement[body], pull[body]
    x, y, z = point[0] - T[0, 3], point[1] - T[1, 3], point[2] - T[2, 3]
    a, b, c = y * n[2] - z * n[1], z * n[0] - x * n[2], x * n[1] - y * n[0]
    for i in range(3):
        w[i] += force * (T[0, i] * n[0] + T[1, i] * n[1] + T[2, i] * n[2])
        w[3 + i] += force * (T[0, i] * a + T[1, i] * b + T[2, i] * c)
