"""Models with other reflected inertias at their joints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..names import choose_from
from .model import Model


def with_armature(model: Model, armature: Mapping[str, float]) -> Model:
    """Return the same model with the given reflected inertias [kg m², kg] at the named joints."""
    known = {j.name for j in model.joints}
    for name, value in armature.items():
        if name not in known:
            raise ValueError(f"{model.name} has no moving joint {choose_from(name, [j.name for j in model.joints])}")
        if not value >= 0.0:
            raise ValueError(f"armature of joint {name!r} must be zero or more; got {value}")
    rows = list(model.tree.armature)
    for j in model.joints:
        for row in range(j.v_slice.start, j.v_slice.stop):
            rows[row] = float(armature.get(j.name, rows[row]))
    joints = tuple(replace(j, armature=float(armature.get(j.name, j.armature))) for j in model.joints)
    return replace(model, joints=joints, tree=model.tree._replace(armature=tuple(rows)))
