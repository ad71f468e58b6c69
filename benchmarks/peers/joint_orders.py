"""Orders of joints, for peers in processes of their own."""

from __future__ import annotations

from typing import Any

import numpy as np


class Orders:
    """Coordinates and velocities of joints in the order of Pinocchio's model."""

    def __init__(self, model: Any, names: list[str]) -> None:
        joints = [model.joints[model.getJointId(name)] for name in names]
        self.q, self.v = np.array([j.idx_q for j in joints]), np.array([j.idx_v for j in joints])

    def state(self, q: Any, v: Any) -> tuple[Any, Any]:
        x, u = q.copy(), v.copy()
        x[self.q], u[self.v] = q[7:], v[6:]
        return x, u
