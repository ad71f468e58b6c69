"""Many robots alike, one after the other, each as many steps as it is to take: compiled, without Python in between."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..collision.detection import find_contacts
from ..engine.loops.kernels import CompiledLoop, call_machine
from .robot_stages import copy_rows
from .smooth_motion import clear_rows, copy
from .step import take_step


class FleetArrays(NamedTuple):
    """States and inputs of all robots, and what came of their steps. Inputs may be the same for all robots or all steps."""

    q: Any  # (robots, nq)
    v: Any  # (robots, nv)
    tau: Any  # (robots or 1, steps or 1, nv)
    control: Any  # (robots or 1, steps or 1, nu)
    external: Any  # (robots or 1, steps or 1, bodies, 6)
    given: Any  # (2,) bool, whether there are controls, and forces on bodies
    steps: Any  # (2,) int: how many are to be taken, -1 to look at contacts only; of which one in how many is kept
    active: Any  # (robots,) bool, those that are to take them
    taken: Any  # (robots,) int, how many each took: they go on from there
    kept_q: Any  # (robots, kept, nq), of those that are
    kept_v: Any
    last_row: Any  # (robots, joint rows)
    report: Any  # (robots, 5) of the solver
    opened: Any  # (robots,) of loops
    count: Any  # (robots, 2) int: contacts of the last step; -1 where the next one has no room for its own
    candidate: Any  # (robots, room) int, and the next three: contacts of the last step
    point: Any
    gap: Any
    force: Any
    wrench: Any  # (robots, bodies, 6) impulses on bodies that may touch
    friction: Any  # (robots, candidates), and the following, of robots that differ; or of none
    damping: Any
    stiffness: Any
    drives: Any  # (robots, 9, nu)
    lower: Any  # (robots, rows) of joint rows
    upper: Any
    parameters: Any  # (robots, bodies, 10)
    armature: Any  # (robots, k) with what meets damping and springs
    own_armature: Any  # (robots, k)
    middle_armature: Any  # (robots, n)


def run_robots(one: Any, many: Any, first: int, stop: int) -> int:
    """Steps of robots first to stop, by the stages of one; how many robots took all of theirs."""
    done = 0
    steps, every = many.steps[0], many.steps[1]
    for i in range(first, stop):
        if not many.active[i]:
            continue
        load_robot(one, many, i)
        if steps < 0:
            look(one, many, i)
            continue
        k = many.taken[i]
        while k < steps:
            load_inputs(one, many, i, k)
            if not take_step(one):
                break
            store_contacts(one, many, i)
            k += 1
            if len(many.kept_q) > 0 and k % every == 0:
                copy(one.q, many.kept_q[i, k // every])
                copy(one.v, many.kept_v[i, k // every])
        many.taken[i] = k
        store_robot(one, many, i)
        done += k == steps
    return done


def look(one: Any, many: Any, i: int) -> None:
    """What touches now, with nothing moved."""
    k = one.kinematics
    for body in range(len(k.velocity)):
        for j in range(6):
            k.velocity[body, j] = 0.0
    call_machine(one.calls.placement)
    found = find_contacts(one.scene, k.placement, k.velocity, one.settings, one.contacts, one.collisions)
    many.count[i, 0], many.count[i, 1] = max(found, 0), min(found, 0)
    for c in range(found):
        many.candidate[i, c], many.gap[i, c] = one.contacts.candidate[c], one.contacts.gap[c]


def load_robot(one: Any, many: Any, i: int) -> None:
    copy(many.q[i], one.q)
    copy(many.v[i], one.v)
    for c in range(many.count[i, 0]):
        copy(many.force[i, c], one.impulses.last_force[many.candidate[i, c]])
    copy(many.last_row[i], one.impulses.last_row)
    one.given[0], one.given[1] = many.given[0], many.given[1]
    if len(many.friction) > 0:
        copy(many.friction[i], one.friction)
    if len(many.damping) > 0:
        copy(many.damping[i], one.springs.damping)
    if len(many.stiffness) > 0:
        copy(many.stiffness[i], one.springs.stiffness)
    if len(many.drives) > 0:
        copy_rows(many.drives[i], one.drives.values)
    if len(many.lower) > 0:
        copy(many.lower[i], one.rows.lower)
        copy(many.upper[i], one.rows.upper)
    if len(many.parameters) > 0:
        copy_rows(many.parameters[i], one.parameters)
        copy(many.armature[i], one.base_armature)
        copy(many.armature[i], one.armature)
        copy(many.own_armature[i], one.own_armature)
    if len(many.middle_armature) > 0:
        copy(many.middle_armature[i], one.middle_armature)


def load_inputs(one: Any, many: Any, i: int, k: int) -> None:
    copy(many.tau[min(i, many.tau.shape[0] - 1), min(k, many.tau.shape[1] - 1)], one.tau)
    if many.given[0]:
        copy(many.control[min(i, many.control.shape[0] - 1), min(k, many.control.shape[1] - 1)], one.control)
    if many.given[1]:
        external = many.external[min(i, many.external.shape[0] - 1), min(k, many.external.shape[1] - 1)]
        copy_rows(external, one.external)
        copy_rows(external, one.forces)
    else:
        clear_rows(one.forces)  # where those of an earlier step, and of its contacts, are


def store_contacts(one: Any, many: Any, i: int) -> None:
    """Those of a step that was taken."""
    many.count[i, 0] = one.count[0]
    for c in range(one.count[0]):
        candidate = one.contacts.candidate[c]
        many.candidate[i, c], many.gap[i, c] = candidate, one.contacts.gap[c]
        copy(one.contacts.point[c], many.point[i, c])
        copy(one.impulses.last_force[candidate], many.force[i, c])
    copy_rows(one.impulses.wrench, many.wrench[i])


def store_robot(one: Any, many: Any, i: int) -> None:
    """The state after the last step that was taken; the stages are left without impulses to start from."""
    copy(one.q, many.q[i])
    copy(one.v, many.v[i])
    copy(one.impulses.last_row, many.last_row[i])
    copy(one.report, many.report[i])
    many.opened[i], many.count[i, 1] = one.opened[0], min(one.count[0], 0)
    for c in range(many.count[i, 0]):
        for j in range(3):
            one.impulses.last_force[many.candidate[i, c], j] = 0.0


RUN_ROBOTS = CompiledLoop(run_robots, numbers=2)
