"""Contacts of MJCF files beyond the numbers of each geom: named pairs, neighbours, and what is not simulated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...contact_rules import ADHESION, CONVEYING, ROLLING, SOFT, SPINNING, ContactPair, NeighbourRule
from .numbers import disabled
from .softness import differ_from_default


def in_pairs(model: Any) -> set[int]:
    """Numbers of the geoms that pairs name."""
    return {*map(int, model.pair_geom1), *map(int, model.pair_geom2)}


def read_contact_pairs(model: Any, shapes: Mapping[int, str]) -> tuple[ContactPair, ...]:
    """Of geoms that are shapes, whose names are given by number."""
    return tuple(
        ContactPair(
            (shapes[i], shapes[j]), float(model.pair_friction[k, 0]), int(model.pair_dim[k]), float(model.pair_margin[k])
        )
        for k, (i, j) in enumerate(_pairs(model))
        if i in shapes and j in shapes
    )


def _pairs(model: Any) -> Iterator[tuple[int, int]]:
    yield from zip(map(int, model.pair_geom1), map(int, model.pair_geom2), strict=True)


def read_neighbour_rule(mujoco: Any, model: Any) -> NeighbourRule:
    return NeighbourRule.NONE if disabled(mujoco, model.opt, "FILTERPARENT") else NeighbourRule.MOVING


def unused_of_contacts(mujoco: Any, model: Any, shapes: Mapping[int, str]) -> Iterator[tuple[str, str]]:
    """What the file says of contacts that is not simulated, in words; `shapes` as above."""
    if disabled(mujoco, model.opt, "CONTACT"):
        return
    touching = (model.geom_contype | model.geom_conaffinity).astype(bool)
    touching[list(in_pairs(model))] = True
    condim = np.concatenate([model.geom_condim[touching], model.pair_dim])
    friction = model.pair_friction
    soft = [
        np.count_nonzero(differ_from_default(solref, solimp))
        for solref, solimp in (
            (model.geom_solref[touching], model.geom_solimp[touching]),
            (model.pair_solref, model.pair_solimp),
        )
    ]
    for kind, number in (
        (SPINNING, np.count_nonzero(condim == 4)),
        (ROLLING, np.count_nonzero(condim == 6)),
        (SOFT, sum(soft)),
        (CONVEYING, np.count_nonzero(_any_of(model, "geom_surfacevel")[touching])),
        (
            ADHESION,
            np.count_nonzero(_any_of(model, "geom_adhesion")[touching]) + np.count_nonzero(_any_of(model, "pair_adhesion")),
        ),
        ("contact pairs with two frictions, read as the first", np.count_nonzero(friction[:, 0] != friction[:, 1])),
        ("contact pairs of geoms that are left out", sum(not {i, j} <= shapes.keys() for i, j in _pairs(model))),
        (
            "contacts that are found before they count (gap)",
            np.count_nonzero(model.geom_gap) + np.count_nonzero(model.pair_gap),
        ),
        (
            "numbers for all contacts in their place (override)",
            bool(model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_OVERRIDE),
        ),
    ):
        if number:
            yield kind, f"{int(number)}"


def _any_of(model: Any, field: str) -> Any:
    """For each geom or pair whether the field has an entry that is not zero; MuJoCo 3 has fewer fields."""
    count = model.ngeom if field.startswith("geom") else model.npair
    values = getattr(model, field, np.zeros(count))
    return np.asarray(values).reshape(count, -1).any(axis=1) if count else np.zeros(0, dtype=bool)
