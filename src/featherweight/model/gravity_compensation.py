"""Gravity compensation: models with only the compensated masses, and models without them."""

from __future__ import annotations

from dataclasses import replace

from .model import Model
from .types import Pose, add, scale


def carried(model: Model) -> Model:
    """Return the model with only the compensated masses: its gravity forces are those of the compensation."""
    zeros = ((0.0,) * 3,) * len(model.tree.mass)
    bare = model.tree._replace(mass=(0.0,) * len(zeros), moment=zeros, inertia=((0.0,) * 6,) * len(zeros))
    return _with_weights(replace(model, tree=bare), 1.0)


def uncarried(model: Model) -> Model:
    """Return the model without the compensated masses: its potential energy is that of gravity and the compensation."""
    return _with_weights(model, -1.0)


def _with_weights(model: Model, sign: float) -> Model:
    """Return the model with the compensated masses, times a sign, at the centres of their links."""
    tree, rows = model.tree, {b.name: placed for b, placed in zip(model.bodies, model.placed_bodies, strict=True)}
    mass, moment = list(tree.mass), list(tree.moment)
    for m in model.carried:
        row, pose = rows[str(m.body)]
        mass[row] += sign * m.mass
        moment[row] = add(moment[row], scale(sign * m.mass, (pose @ Pose(p=m.center)).p))
    return replace(model, tree=tree._replace(mass=tuple(mass), moment=tuple(moment)))
