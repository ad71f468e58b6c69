"""The tick of whole-body control as a kernel for programs without Python."""

from __future__ import annotations

import numpy as np

from ..engine.loops.standalone import Port, StandaloneLoop
from ..quadratic_programs.active_set import MOST_STEPS
from ..quadratic_programs.program import statuses
from ..robot.inverse_kinematics.tasks import FrameTask
from ..robot.robot import Robot
from ..robot.standalone_facts import limits_of, names_of
from .tasks import AngularMomentumTask, WholeBodyTask, target_part, target_shape
from .workspace import TICK, Workspace

STATUSES = statuses("limits exclude each other", "the equations of motion and the contacts contradict each other")


def standalone_tick(work: Workspace, robot: Robot, tasks: tuple[WholeBodyTask, ...], contacts: list[str]) -> StandaloneLoop:
    """Return the tick of a workspace, which nothing else uses."""
    terms, memory, result = work.terms, work.tasks, work.tick.result
    inputs = [Port("q", terms.q, "configuration"), Port("v", terms.v, "velocity")]
    for k, task in enumerate(tasks):
        if not isinstance(task, AngularMomentumTask):
            shape = target_shape(robot, task)
            into = work.target_of(task, k)
            numbers = np.full(into.shape, -1.0)
            target_part(task, numbers)[...] = np.arange(np.prod(shape), dtype=float).reshape(shape)
            picked = tuple(map(int, numbers.reshape(-1)))
            inputs.append(Port(f"target_{task.called}", into, f"target of {task.called!r}", shape, picked))
    for k, task in enumerate(tasks):
        rows = slice(memory.begin[k], memory.begin[k + 1])
        inputs.append(Port(f"velocity_{task.called}", memory.velocity[rows], f"reference velocity of {task.called!r}"))
        inputs.append(
            Port(f"acceleration_{task.called}", memory.acceleration[rows], f"reference acceleration of {task.called!r}")
        )
    closed = f"1 for each closed contact, otherwise 0, in the order {', '.join(contacts)}"
    inputs.append(Port("closed", work.contacts.closed, closed))
    return StandaloneLoop(
        "Whole-body control: the joint forces of one tick, by one quadratic program for each priority.",
        TICK,
        (work.tick,),
        (0,),
        tuple(inputs),
        (
            Port("tau", result.tau, "joint forces"),
            Port("acceleration", result.acceleration, "acceleration"),
            Port("forces", result.forces, "forces at the corners of contacts, in the contacts' axes"),
            Port("wrenches", result.wrenches, "force and moment of each contact, in its frame"),
        ),
        STATUSES,
        kept=work.kept,
        bounds={"MOST_STEPS_OF_THE_QUADRATIC_PROGRAM": MOST_STEPS},
        names=names_of(robot, [t.frame for t in tasks if isinstance(t, FrameTask)]) | {"contact_names": contacts},
        constants=limits_of(robot),
    )
