"""Episodes of many robots, robot after robot in compiled code: controls, observations, rewards and ends.

The text of a task is a named tuple of numbers, workspace arrays and calls of the robot's functions, with these methods:

    begin(now)                 start of an episode: write the memory of the task
    act(now)                   before the steps: write controls from the action, store what rewards need; may run again
    measure(now, fleet, i)     compute what the methods below share, also at the start of an episode; i is the robot's number
    observe(now, seen)         write the observation
    reward(now, terms)         write the terms of the reward
    total(terms)               return the reward
    write_info(now, info)      write the entries of `info`, first those that are also known at the start
    ended(now)                 return whether the episode terminates
    remember(now)              end of a step: store what the next step needs
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..array_types import Booleans, IntegerMatrix, Integers, Matrix, Vector
from ..engine.loops.kernels import CompiledLoop
from ..robot.qpos_qvel import OrderArrays, write_qpos, write_qvel
from ..simulation.robot_stages import all_finite
from ..simulation.smooth_motion import clear, copy, copy_rows
from ..simulation.stage_records import FleetArrays
from ..simulation.step_status import TAKEN

ACT, ARRIVE, BEGIN, OBSERVE = range(4)


class Now(NamedTuple):
    """The current state of one robot of an environment, as texts of tasks see it."""

    q: Vector  # (nq,)
    v: Vector  # (nv,)
    qpos: Vector  # (nq,) in MuJoCo's order
    qvel: Vector  # (nv,) in MuJoCo's order and frames
    action: Vector  # (actions,)
    control: Vector  # (nu,)
    memory: Vector  # numbers that the task stores between steps
    drawn: Integers  # (2,) key of the episode's random numbers, and the counter of the next one
    parameters: Matrix  # (bodies, 10) inertial parameters, or no rows if all robots are identical
    armature: Vector  # (k,) or (0,)


class Episode(NamedTuple):
    """Data of one thread."""

    task: Any
    now: Now
    order: OrderArrays


class Episodes(NamedTuple):
    """Arrays with a row for each robot."""

    which: Integers  # robots to begin or to observe
    action: Matrix
    control: Matrix
    memory: Matrix
    drawn: IntegerMatrix
    seen: Matrix
    facts: Matrix  # entries of `info`, then terms of the reward
    entries: int  # count of the entries of `info`
    reward: Vector
    ended: Booleans
    failed: Booleans  # robots whose step failed


def work_on_episodes(one: Episode, many: Episodes, fleet: FleetArrays, first: int, stop: int, work: int) -> int:
    """Do one kind of work for robots first to stop, or for the entries first to stop of `which`; return their number.

    ACT does nothing, and returns 0, if an action is not finite.
    """
    for k in range(first, stop if work == ACT else first):
        if not all_finite(many.action[k]):
            return 0
    for k in range(first, stop):
        i = many.which[k] if work >= BEGIN else k
        load(one, many, fleet, i)
        if work == ACT:
            one.task.act(one.now)
            copy(one.now.control, many.control[i])
        else:
            if work == BEGIN:
                clear(one.now.memory)
                one.task.begin(one.now)
            one.task.measure(one.now, fleet, i)
            one.task.observe(one.now, many.seen[i])
            info, terms = many.facts[i, : many.entries], many.facts[i, many.entries :]
            one.task.write_info(one.now, info)
            if work == ARRIVE:
                one.task.reward(one.now, terms)
                many.reward[i] = one.task.total(terms)
                many.failed[i] = fleet.states.status[i] != TAKEN
                many.ended[i] = one.task.ended(one.now) or many.failed[i]
                one.task.remember(one.now)
        if work != OBSERVE:
            copy(one.now.memory, many.memory[i])
            many.drawn[i, 1] = one.now.drawn[1]
    return stop - first


def load(one: Episode, many: Episodes, fleet: FleetArrays, i: int) -> None:
    """Load the state of robot i into `now`."""
    now = one.now
    copy(fleet.states.q[i], now.q)
    copy(fleet.states.v[i], now.v)
    write_qpos(one.order, now.q, now.qpos)
    write_qvel(one.order, now.q, now.v, now.qvel)
    copy(many.action[i], now.action)
    copy(many.control[i], now.control)
    copy(many.memory[i], now.memory)
    now.drawn[0], now.drawn[1] = many.drawn[i, 0], many.drawn[i, 1]
    if len(now.parameters) > 0:
        copy_rows(fleet.varied.parameters[i], now.parameters)
        copy(fleet.varied.own_armature[i], now.armature)


WORK_ON_EPISODES = CompiledLoop(work_on_episodes, numbers=3, what="observations and rewards of an environment")
