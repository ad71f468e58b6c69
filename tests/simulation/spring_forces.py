"""Forces of damping and springs, as NumPy evaluates them: what compiled steps and MuJoCo's forces are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from featherweight.simulation.forces.at_joints import ForcesAtJoints
from featherweight.simulation.forces.laws import coordinate_of_row, nonlinear_damper_force, nonlinear_spring_force, spring_force
from oracles.states import Array


def spring_forces(forces: ForcesAtJoints, q: Array, v: Array) -> Array:
    """Return forces (..., nv) of damping and springs at q (..., nq)."""
    S, s = forces.map(q), forces.springs
    rates = v if S is None else (S * v[..., None, :]).sum(axis=-1)
    x = np.array(forces.all_coordinates(q)[..., s.at])
    flat, turned = q.reshape(-1, q.shape[-1]), x.reshape(-1, x.shape[-1])
    for r in np.flatnonzero(s.quaternion >= 0):
        turned[:, r] = [coordinate_of_row(s, y, int(r)) for y in flat]
    rest = np.minimum(np.maximum(x, s.rest), s.rest + s.slack)
    force: Any = spring_force((s.damping, s.stiffness, rest), x, rates, 0.0)
    for r, poly in zip(s.nonlinear, s.poly.T, strict=True):
        first, stretched = int(r - s.axis[r]), x - rest
        extent = np.linalg.norm(stretched[..., first : first + 3], axis=-1) if s.axis[r] >= 0 else stretched[..., r]
        force[..., r] += nonlinear_spring_force(poly, stretched[..., r], extent) + nonlinear_damper_force(poly, rates[..., r])
    return np.asarray(force if S is None else (np.swapaxes(S, -1, -2) * force[..., None, :]).sum(axis=-1))
