"""Contact forces of a plan at their points in the world."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from ..array_types import Array
from ..robot.constraints.contact import BilateralContact
from ..robot.robot import Robot
from ..robot.trajectory import Contacts


def contacts_in_world(robot: Robot, contacts: Sequence[BilateralContact], q: Array, force: Array) -> Contacts:
    """Return points and forces (k n, 3) of n contacts at q (k, nq), those of one configuration together.

    `force` (k, rows) is on the axes of the contact frames.
    """
    if not contacts:
        return Contacts(np.zeros((0, 3)), np.zeros((0, 3)))
    T = np.asarray(robot.frame_placement([c.frame for c in contacts])(q))  # (k, n, 4, 4)
    origins, turns = np.array([c.pose.p for c in contacts]), np.array([c.pose.R for c in contacts])
    ends = accumulate((c.size for c in contacts), initial=0)
    own = [force[:, i : i + c.size] @ c.matrix[:, :3] for c, i in zip(contacts, ends, strict=False)]
    points = T[..., :3, 3] + np.einsum("knij,nj->kni", T[..., :3, :3], origins)
    forces = np.einsum("knij,njl,knl->kni", T[..., :3, :3], turns, np.stack(own, axis=1))
    return Contacts(points.reshape(-1, 3), forces.reshape(-1, 3))
