"""Equality constraints of MJCF files: `connect` and `weld` close loops, `joint` and `tendon` couple coordinates.

MuJoCo enforces them by soft forces; here they hold exactly. The values are those of MuJoCo's compiled model, which derives
omitted values from the configuration qpos0. Inactive equalities have no effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import Polynomial

from ....contact_rules import Softness
from ....types import Closure, Coupling, Loop, LoopType, ModelError, Pose, as_vector
from ...unsupported import FOLLOW, REFUSE, Unsupported, excused, tolerate
from ..mujoco_types import MjModel, MjSpec, Mujoco
from ..numbers import as_pose, composed, softness_of
from .tendons import TendonEquality, fixed_tendon, hold_tendons

DEGREE = 64  # highest degree of composed couplings: three of the fourth degree


class _Follower(NamedTuple):
    """A joint whose coordinate is a polynomial of that of another."""

    name: str
    where: str
    leader: str
    polynomial: Any  # numpy.polynomial.Polynomial
    softness: Softness


def refuse_unsupported_equalities(mujoco: Mujoco, spec: MjSpec, source: str, unsupported: Unsupported) -> None:
    """Raise ModelError for active equalities of unsupported kinds, or make them inactive.

    These include equalities of spatial tendons.
    """
    kinds = mujoco.mjtEq
    for number, equality in enumerate(spec.equalities):
        if equality.active and equality.type not in (kinds.mjEQ_CONNECT, kinds.mjEQ_WELD, kinds.mjEQ_JOINT, kinds.mjEQ_TENDON):
            kind = equality.type.name.removeprefix("mjEQ_").lower()
            ends = " and ".join(f"'{end}'" for end in (equality.name1, equality.name2) if end)
            problem = "only connect, weld, joint and tendon are supported"
            where = f"{_where(source, equality.name, number)} ({kind} of {ends})"
            unsupported.refuse(where, problem, 'remove it, set active="false"')
            equality.active = False


def let_followers_go(mujoco: Mujoco, spec: MjSpec, source: str, mimic: str) -> list[tuple[str, str]]:
    """Refuse or remove equalities of joints and tendons, unless joints may follow others.

    Returns a description of the removed ones.
    """
    kinds = (mujoco.mjtEq.mjEQ_JOINT, mujoco.mjtEq.mjEQ_TENDON)
    found = [(n, e) for n, e in enumerate(spec.equalities) if mimic != FOLLOW and e.active and e.type in kinds]
    names = []
    for number, equality in found:
        if mimic == REFUSE:
            problem = f"it lets '{equality.name1}' follow '{equality.name2}'"
            remedy = 'load with mimic="follow", or with mimic="independent" to make all joints independent'
            raise ModelError(f"{_where(source, equality.name, number)}: {problem}; {remedy}")
        names.append(equality.name1)
        spec.delete(equality)
    return [("couplings", f"of {', '.join(names)}, taken as independent")] if names else []


def refuse_equalities_of_spatial_tendons(mujoco: Mujoco, model: MjModel, source: str, unsupported: Unsupported) -> None:
    """Raise ModelError for equalities of spatial tendons, or make them inactive."""
    for i in _active(model):
        if int(model.eq_type[i]) == mujoco.mjtEq.mjEQ_TENDON:
            ends = (int(t) for t in (model.eq_obj1id[i], model.eq_obj2id[i]) if t >= 0)
            if spatial := [model.tendon(t).name for t in ends if fixed_tendon(mujoco, model, t) is None]:
                problem = f"tendon '{spatial[0]}' is spatial, and only fixed ones are supported"
                unsupported.refuse(_where(source, model.equality(i).name, i), problem, 'remove it, set active="false"')
                model.eq_active0[i] = 0


def read_tendon_equalities(
    mujoco: Mujoco, model: MjModel, couplings: Sequence[Coupling], source: str
) -> tuple[tuple[Coupling, ...], tuple[Closure, ...]]:
    """Return the couplings, including those of active tendon equalities, in terms of joints that follow none; and closures."""
    equalities = []
    for i in _active(model):
        if int(model.eq_type[i]) == mujoco.mjtEq.mjEQ_TENDON:
            where = _where(source, model.equality(i).name, i)
            ends = (int(t) for t in (model.eq_obj1id[i], model.eq_obj2id[i]))
            first, second = (fixed_tendon(mujoco, model, t) if t >= 0 else None for t in ends)
            assert first is not None  # by `refuse_equalities_of_spatial_tendons`
            numbers = model.eq_data[i, :5], _softness(model, i)
            equalities.append(TendonEquality(_name(model, i), where, first, second, *numbers))
    return hold_tendons(equalities, couplings)


def read_loops(mujoco: Mujoco, model: MjModel, bodies: Sequence[str], source: str) -> Iterator[Loop]:
    """Yield a loop for each active connect (spherical) and weld; a weld of torquescale zero is a connect.

    `bodies` are the names of all bodies.
    """
    kinds, sites = mujoco.mjtEq, mujoco.mjtObj.mjOBJ_SITE
    for i in _active(model):
        if int(model.eq_type[i]) not in (kinds.mjEQ_CONNECT, kinds.mjEQ_WELD):
            continue
        ends = [int(model.eq_obj1id[i]), int(model.eq_obj2id[i])]
        if int(model.eq_objtype[i]) == sites:
            frames = [as_pose(model.site_pos[k], model.site_quat[k]) for k in ends]
            ends = [int(model.site_bodyid[k]) for k in ends]
        else:
            weld = int(model.eq_type[i]) == kinds.mjEQ_WELD
            data = model.eq_data[i]
            anchor = Pose(p=as_vector(data[0:3]))
            frames = [as_pose(data[3:6], data[6:10]), anchor] if weld else [anchor, Pose(p=as_vector(data[3:6]))]
        names = bodies[ends[0]], bodies[ends[1]]
        if model.body_weldid[ends[0]] == model.body_weldid[ends[1]]:
            problem = f"no joint moves body '{names[0]}' against '{names[1]}'"
            tolerate(_where(source, model.equality(i).name, i), problem, "remove it", "left out")
            continue
        rigid = int(model.eq_type[i]) == kinds.mjEQ_WELD and model.eq_data[i, 10] != 0.0
        kind, softness = LoopType.WELD if rigid else LoopType.SPHERICAL, _softness(model, i)
        scale = float(model.eq_data[i, 10]) if rigid else 1.0
        yield Loop(_name(model, i), kind, *names, frames[0], frames[1], softness, scale)


def read_couplings(mujoco: Mujoco, model: MjModel, source: str) -> tuple[Coupling, ...]:
    """Return a coupling for each active joint equality, in terms of joints that follow none."""
    followers: dict[str, _Follower] = {}
    for i in _active(model):
        if int(model.eq_type[i]) == mujoco.mjtEq.mjEQ_JOINT:
            joint, follower = _follower(model, i, _where(source, model.equality(i).name, i))
            with excused("left out"):
                _add(joint, follower, followers)
    return tuple(_coupling(joint, followers) for joint in followers)


REPEATED = "remove one of them, or exchange joint1 and joint2"


def _add(joint: str, new: _Follower, followers: dict[str, _Follower]) -> None:
    """Add a follower. An equality that says nothing new is left out; one of a joint that follows already is reversed.

    Joints that linear equalities lead around a cycle are fixed where the equalities meet, if not everywhere.
    """
    if joint in followers:
        first, problem = followers[joint], f"joint '{joint}' follows by equality '{followers[joint].name}' already"
        if new.leader == first.leader and np.array_equal(new.polynomial.coef, first.polynomial.coef):
            tolerate(new.where, problem, REPEATED, "left out")
            return
        if not new.leader or new.leader in followers or new.polynomial.degree() != 1:
            raise ModelError(f"{new.where}: {problem}; {REPEATED}")
        offset, slope = new.polynomial.coef
        joint, new = new.leader, new._replace(leader=joint, polynomial=Polynomial([-offset / slope, 1.0 / slope]))
    leader, around = new.leader, new.polynomial
    while leader in followers and around.degree() == 1:
        around, leader = composed(around, followers[leader].polynomial), followers[leader].leader
    if leader != joint:
        followers[joint] = new
        return
    message = f"joints '{joint}' and '{new.leader}' follow each other"
    if around.degree() != 1:
        raise ModelError(f"{new.where}: {message}, by a polynomial of degree {around.degree()}; remove one of the equalities")
    offset, slope = around.coef
    if np.allclose((offset, slope), (0.0, 1.0), rtol=1e-12, atol=1e-12):
        tolerate(new.where, message, REPEATED, "left out")
    elif abs(slope - 1.0) < 1e-12:
        raise ModelError(f"{new.where}: {message}, with an offset of {offset:g} around the cycle; remove one of the equalities")
    else:
        fixed = offset / (1.0 - slope)
        tolerate(new.where, f"{message} at one point only", "remove one of the equalities", f"'{joint}' is fixed at {fixed:g}")
        followers[joint] = new._replace(leader="", polynomial=Polynomial([fixed]))


# --- couplings


def _follower(model: MjModel, i: int, where: str) -> tuple[str, _Follower]:
    """Return the polynomial of a joint equality.

    MuJoCo: q1 - q1_0 = a0 + a1 (q2 - q2_0) + ..., where q_0 are the coordinates in qpos0; or q1 is constant.
    """
    one, two = int(model.eq_obj1id[i]), int(model.eq_obj2id[i])
    joint = model.joint(one).name
    coefficients = model.eq_data[i, :5]
    if two < 0 or not coefficients[1:].any():
        fixed = float(model.qpos0[model.jnt_qposadr[one]]) + float(coefficients[0])
        return joint, _Follower(_name(model, i), where, "", Polynomial([fixed]), _softness(model, i))
    q1, q2 = (float(model.qpos0[model.jnt_qposadr[k]]) for k in (one, two))
    polynomial = composed(Polynomial(coefficients), Polynomial([-q2, 1.0])) + q1
    return joint, _Follower(_name(model, i), where, model.joint(two).name, polynomial, _softness(model, i))


def _coupling(joint: str, followers: Mapping[str, _Follower]) -> Coupling:
    """Substitute leaders that are followers until one follows no other joint."""
    first = followers[joint]
    leader, polynomial = first.leader, first.polynomial
    while leader in followers:
        if polynomial.degree() * followers[leader].polynomial.degree() > DEGREE:
            problem = f"joint '{joint}' follows '{leader}', which follows another, by a polynomial of a degree above {DEGREE}"
            raise ModelError(f"{first.where}: {problem}; let it follow the last joint itself")
        polynomial, leader = composed(polynomial, followers[leader].polynomial), followers[leader].leader
    offset, *coefficients = (float(c) for c in polynomial.coef)
    return Coupling(first.name, joint, ((leader, tuple(coefficients)),) if leader else (), offset, first.softness)


# --- names and numbers


def _softness(model: MjModel, i: int) -> Softness:
    return softness_of(model.eq_solref[i], model.eq_solimp[i])


def _active(model: MjModel) -> list[int]:
    return [int(i) for i in np.flatnonzero(model.eq_active0)]


def _name(model: MjModel, i: int) -> str:
    """Return the equality's name, or a generated one."""
    taken = {model.equality(k).name for k in range(model.neq)}
    name: str = model.equality(i).name or f"equality{i}"
    while name in taken and not model.equality(i).name:
        name += "_"
    return name


def _where(source: str, name: str, number: int) -> str:
    return f"{source}: equality '{name}'" if name else f"{source}: equality number {number}"
