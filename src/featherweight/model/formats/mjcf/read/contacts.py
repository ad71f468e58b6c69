"""Contacts of MJCF files beyond the parameters of each geom: named pairs, neighbours, and settings that are not simulated.

With <flag override="enable"/>, all contacts have the friction, margin and softness of <option>, whatever geoms and pairs give.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from .....array_types import Array
from ....contact_rules import (
    TOUCHING_LEFT_OUT,
    TWO_FRICTIONS,
    ContactPair,
    NeighbourRule,
    Softness,
)
from ...unsupported import nonnegative
from ..mujoco_types import MjModel, Mujoco
from ..numbers import disabled, softness_of


class Overrides(NamedTuple):
    """Parameters that replace those of all contacts of a file."""

    frictions: tuple[float, float]  # sliding
    margin: float
    softness: Softness
    turning: tuple[float, float]  # torsional and rolling


def overrides(mujoco: Mujoco, model: MjModel) -> Overrides | None:
    """Return the overrides; None if the file does not enable them."""
    if not model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_OVERRIDE:
        return None
    first, second, *turning = (float(x) for x in model.opt.o_friction[:4])
    return Overrides(
        (first, second),
        float(model.opt.o_margin),
        softness_of(model.opt.o_solref, model.opt.o_solimp),
        (turning[0], turning[1]),
    )


def in_pairs(model: MjModel) -> set[int]:
    """Return the numbers of the geoms that pairs name."""
    return {*map(int, model.pair_geom1), *map(int, model.pair_geom2)}


def read_contact_pairs(mujoco: Mujoco, model: MjModel, shapes: Mapping[int, str], source: str) -> tuple[ContactPair, ...]:
    """Return the contact pairs of geoms that are shapes; `shapes` are the names of these by number."""
    pairs, over = [], overrides(mujoco, model)
    for k, (i, j) in enumerate(_pairs(model)):
        friction = over.frictions[0] if over else float(model.pair_friction[k, 0])
        margin = over.margin if over else float(model.pair_margin[k])
        if i in shapes and j in shapes:
            soft = over.softness if over else softness_of(model.pair_solref[k], model.pair_solimp[k])
            turning = over.turning if over else (float(model.pair_friction[k, 2]), float(model.pair_friction[k, 3]))
            adhesion, gap, condim = (
                float(values_of(model, "pair_adhesion")[k, 0]),
                nonnegative(float(model.pair_gap[k]), "gap", f"{source}: contact pair of '{shapes[i]}' and '{shapes[j]}'"),
                int(model.pair_dim[k]),
            )
            names, seconds = (
                (shapes[i], shapes[j]),
                (None, None) if over else (_second(model, k, 1, 3), _second(model, k, 4, 6)),
            )
            pairs.append(ContactPair(names, friction, condim, margin, soft, turning, adhesion, gap, *seconds))
    return tuple(pairs)


def _pairs(model: MjModel) -> Iterator[tuple[int, int]]:
    yield from zip(map(int, model.pair_geom1), map(int, model.pair_geom2), strict=True)


def _second(model: MjModel, k: int, i: int, condim: int) -> float | None:
    """Return friction i of a pair, if it differs from that of the previous direction.

    Only contacts with at least a given condim have it.
    """
    before, own = map(float, model.pair_friction[k, i - 1 : i + 1])
    return own if model.pair_dim[k] >= condim and own != before else None


def values_of(model: MjModel, field: str) -> Array:
    """Return the values of a field for each geom or pair (n, k); zeros if the version of MuJoCo lacks it."""
    count = model.ngeom if field.startswith("geom") else model.npair
    values = np.asarray(getattr(model, field, np.zeros(6 * count)), float)
    return values.reshape(count, -1) if count else np.zeros((0, 6))


def read_neighbour_rule(mujoco: Mujoco, model: MjModel) -> NeighbourRule:
    return NeighbourRule.NONE if disabled(mujoco, model.opt, "FILTERPARENT") else NeighbourRule.MOVING


def unused_of_contacts(mujoco: Mujoco, model: MjModel, shapes: Mapping[int, str]) -> Iterator[tuple[str, str]]:
    """Yield, in words, the contact settings of the file that are not simulated; `shapes` as in `read_contact_pairs`."""
    if disabled(mujoco, model.opt, "CONTACT"):
        return
    touching = (model.geom_contype | model.geom_conaffinity).astype(bool)
    touching[list(in_pairs(model))] = True
    condim = np.concatenate([model.geom_condim[touching], model.pair_dim])
    uneven = 0
    if over := overrides(mujoco, model):
        rolling = model.opt.o_friction[3] != model.opt.o_friction[4]
        uneven = int(np.sum(((over.frictions[0] != over.frictions[1]) & (condim > 1)) | (rolling & (condim == 6))))
    for kind, number in (
        (TWO_FRICTIONS, uneven),
        ("contact pairs of geoms that are left out", sum(not {i, j} <= shapes.keys() for i, j in _pairs(model))),
        (TOUCHING_LEFT_OUT, sum(bool(there) and i not in shapes for i, there in enumerate(touching))),
    ):
        if number:
            yield kind, f"{int(number)}"
