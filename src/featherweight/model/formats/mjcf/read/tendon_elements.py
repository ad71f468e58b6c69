"""Tendons of MJCF files that depend on more than one joint, as `Tendon`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ....types import Pulley, Tendon, TendonPoint, TendonWrap, as_vector
from ...robot_numbers import unlimited
from ...xml import Names
from ..mujoco_types import MjModel
from ..numbers import as_pose, disabled, softness_of, within
from .levers import Tendons


def tendon_names(model: MjModel) -> list[str]:
    """Return a name for each tendon."""
    names = Names(model.tendon(t).name for t in range(model.ntendon))
    return [model.tendon(t).name or names.new(f"tendon{t}") for t in range(model.ntendon)]


def read_tendons(tendons: Tendons, joints: Mapping[int, str], bodies: Sequence[str], source: str) -> tuple[Tendon, ...]:
    """Return tendons that are not those of one joint; `joints` and `bodies` are names by number.

    Tendons of one joint whose lengths sensors read are included without their forces, which the joint has.

    Raises ModelError for negative stiffness, damping or friction.
    """
    names = tendon_names(tendons.model)
    every = (t for t in range(tendons.model.ntendon) if t not in tendons.levers or t in sensed_tendons(tendons))
    found = {t: _tendon(tendons, t, names[t], joints, bodies, source) for t in every}
    return tuple(Tendon(x.name, x.terms) if t in tendons.levers else x for t, x in found.items())


def sensed_tendons(tendons: Tendons) -> set[int]:
    """Return the tendons whose lengths and velocities sensors read, by MuJoCo's numbers."""
    kinds, model = tendons.mujoco.mjtSensor, tendons.model
    return {int(model.sensor_objid[i]) for kind in (kinds.mjSENS_TENDONPOS, kinds.mjSENS_TENDONVEL)
            for i in np.flatnonzero(model.sensor_type == kind)}  # fmt: skip


def _tendon(tendons: Tendons, t: int, name: str, joints: Mapping[int, str], bodies: Sequence[str], source: str) -> Tendon:
    model, kinds = tendons.model, tendons.mujoco.mjtWrap
    rows = range(int(model.tendon_adr[t]), int(model.tendon_adr[t] + model.tendon_num[t]))
    fixed = int(model.wrap_type[rows[0]]) == kinds.mjWRAP_JOINT
    values = tendons.values(t, f"{source}: tendon '{name}'")
    limited = model.tendon_limited[t] and not disabled(tendons.mujoco, model.opt, "LIMIT")
    lower, upper = within(model.tendon_range[t], model.tendon_margin[t]) if limited else (-math.inf, math.inf)
    first, last = (float(x) for x in model.tendon_lengthspring[t])
    return Tendon(
        name,
        terms=tuple((joints[int(model.wrap_objid[w])], float(model.wrap_prm[w])) for w in rows) if fixed else (),
        path=() if fixed else tuple(_node(tendons, w, bodies) for w in rows),
        lower=unlimited(float(lower)),
        upper=unlimited(float(upper)),
        stiffness=values["stiffness"],
        rest=(first, last),
        damping=values["damping"] + tendons.damping_by_drives(t),
        dry_friction=values["frictionloss"],
        force=as_range(model.tendon_actfrcrange[t], True) if tendons.bounds_drives(t) else (-math.inf, math.inf),
        limit_softness=softness_of(model.tendon_solref_lim[t], model.tendon_solimp_lim[t]),
        dry_friction_softness=softness_of(model.tendon_solref_fri[t], model.tendon_solimp_fri[t]),
        **tendons.polys(t),
    )


def _node(tendons: Tendons, w: int, bodies: Sequence[str]) -> TendonPoint | TendonWrap | Pulley:
    model, kinds, kind = tendons.model, tendons.mujoco.mjtWrap, int(tendons.model.wrap_type[w])
    k = int(model.wrap_objid[w])
    if kind == kinds.mjWRAP_PULLEY:
        return Pulley(float(model.wrap_prm[w]))
    if kind == kinds.mjWRAP_SITE:
        return _site(model, k, bodies)
    side = int(model.wrap_prm[w])
    return TendonWrap(
        _body(model.geom_bodyid[k], bodies),
        as_pose(model.geom_pos[k], model.geom_quat[k]),
        float(model.geom_size[k, 0]),
        kind == kinds.mjWRAP_CYLINDER,
        _site(model, side, bodies) if side >= 0 else None,
    )


def _site(model: MjModel, k: int, bodies: Sequence[str]) -> TendonPoint:
    return TendonPoint(_body(model.site_bodyid[k], bodies), as_vector(model.site_pos[k]))


def _body(number: int, bodies: Sequence[str]) -> str | None:
    return bodies[int(number)] if number else None


def as_range(pair: Sequence[float], limited: bool) -> tuple[float, float]:
    """Return two bounds, infinite where there are none."""
    return (unlimited(float(pair[0])), unlimited(float(pair[1]))) if limited else (-math.inf, math.inf)
