"""Memory of one controller, and its compiled tick."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array
from ..engine.function import CompiledFunction, traced
from ..engine.loops.kernels import CompiledLoop, Table, machine_call
from ..engine.loops.prepared_calls import batch_calls, prepared_call
from ..engine.program import Input, KernelProgram, Output
from ..quadratic_programs.program import Sizes, quadratic_program
from ..robot.inverse_kinematics.tasks import CenterOfMassTask, FrameTask, PostureTask
from ..robot.robot import Robot
from ..spatial import Mat3, Vec3
from ..spatial.rotation_vector import rotation_vector
from .contacts import UnilateralContact
from .tasks import BASES, WholeBodyTask, columns_of, gains_of, weights_of
from .tick import CENTER, MOMENTUM, ORIENTATION, POSE, POSITION, POSTURE, Contacts, Joints, Result, Tasks, Terms, Tick, tick

TICK = CompiledLoop(tick, 1, what="whole-body control")
KINDS = {"pose": POSE, "position": POSITION, "orientation": ORIENTATION}


class Settings(NamedTuple):
    """Settings of a controller; see `WholeBodyControl`."""

    driven: tuple[str, ...] | None
    friction_edges: int
    limit_rate: float
    acceleration_weight: float
    force_weight: float


class Workspace:
    """Arrays of a controller, its table, and the call of its tick."""

    def __init__(
        self, robot: Robot, tasks: Sequence[WholeBodyTask], contacts: Sequence[UnilateralContact], settings: Settings
    ) -> None:
        self.robot = robot
        n, points = robot.nv, sum(len(c.corners) for c in contacts)
        self.joints = joints_of(robot, settings.driven)
        self.contacts = contacts_of(contacts, settings.friction_edges)
        self.tasks = tasks_of(robot, tasks)
        self.terms, self._kept = terms_of(robot, tasks, contacts, self.tasks)
        rows = sum(len(weights_of(robot, t)) for t in tasks)
        equalities = len(self.joints.passive) + max(len(self.contacts.rows), 3 * points) + len(self.contacts.rows) + rows
        limits = len(self.joints.driven) + len(self.contacts.limited)
        cone = np.arange(n, n + 3 * points, 3)
        program = quadratic_program(Sizes(n + 3 * points, rows, n, equalities, limits, points), cone, settings.friction_edges)
        result = Result(np.zeros(n), np.zeros(n), np.zeros((points, 3)), np.zeros((len(contacts), 6)))
        levels = sorted({t.priority for t in tasks})
        self.tick = Tick(
            len(levels), settings.limit_rate, settings.acceleration_weight, settings.force_weight, self.terms, self.tasks,
            self.contacts, self.joints, program, np.zeros((3 * points, n)), np.zeros(n + 3 * points), result,
        )  # fmt: skip
        table = Table(self.tick)
        table.kept = self._kept
        self.run = prepared_call(TICK.for_tables(table), table.address, 0, kept=table)

    def target_of(self, task: WholeBodyTask, number: int) -> Array:
        """Return the memory of the target of a task."""
        source = self.tasks.source[number]
        if isinstance(task, FrameTask):
            return self.tasks.target[source]
        return self.postures[source] if isinstance(task, PostureTask) else self.tasks.center

    @property
    def kept(self) -> list[Any]:
        """Objects that the tick needs in addition to its table."""
        return self._kept

    @property
    def postures(self) -> Array:
        """The targets of posture tasks (postures, nq)."""
        return self._kept[0]


def joints_of(robot: Robot, names: Sequence[str] | None) -> Joints:
    """Return drives and limits. Raises ValueError for unknown joints, and for those that follow others."""
    joints = [j for j in robot.joints if j.type not in BASES] if names is None else [robot.joint(x) for x in names]
    for j in joints:
        if j.v_slice.stop == j.v_slice.start and names is not None:
            raise ValueError(f"{robot.name}: joint {j.name!r} depends on others; a drive acts on an independent joint")
    driven = sorted({k for j in joints for k in range(j.v_slice.start, j.v_slice.stop)})
    least, most = robot.effort_bounds
    bounded, coordinate = [], []
    for j in robot.joints:
        if j.v_slice.stop - j.v_slice.start != 1 or j.q_slice.stop - j.q_slice.start != 1:
            continue
        row, at = j.v_slice.start, j.q_slice.start
        if np.isfinite([robot.lower[at], robot.upper[at], robot.velocity_limit[row]]).any():
            bounded.append(row)
            coordinate.append(at)
    return Joints(
        np.array(driven, np.int64), np.setdiff1d(np.arange(robot.nv), driven).astype(np.int64), least[driven], most[driven],
        np.array(bounded, np.int64), np.array(coordinate, np.int64), robot.lower[coordinate], robot.upper[coordinate],
        robot.velocity_limit[bounded],
    )  # fmt: skip


def contacts_of(contacts: Sequence[UnilateralContact], edges: int) -> Contacts:
    """Return contacts, all of them closed. Planes of a pyramid with so many edges have a smaller friction than the cone."""
    inside = np.cos(np.pi / edges) if edges else 1.0
    rows = [c.rows for c in contacts]
    limited = [k for k, c in enumerate(contacts) if np.isfinite(c.max_force)]
    return Contacts(
        np.cumsum([0, *(len(c.corners) for c in contacts)]).astype(np.int64),
        np.cumsum([0, *map(len, rows)]).astype(np.int64),
        np.concatenate([*rows, np.zeros((0, 6))]),
        np.array([c.damping for c in contacts]),
        np.concatenate([*(c.corners for c in contacts), np.zeros((0, 3))]),
        np.array([c.friction * inside for c in contacts for _ in c.corners]),
        np.array(limited, np.int64),
        np.array([contacts[k].max_force for k in limited]),
        np.ones(len(contacts), bool),
    )


def tasks_of(robot: Robot, tasks: Sequence[WholeBodyTask]) -> Tasks:
    """Return tasks, with targets and references of zero."""
    levels = sorted({t.priority for t in tasks})
    kinds, sources = [], []
    frames = postures = 0
    for t in tasks:
        if isinstance(t, FrameTask):
            kinds.append(KINDS[t.kind])
            sources.append(frames)
            frames += 1
        elif isinstance(t, PostureTask):
            kinds.append(POSTURE)
            sources.append(postures)
            postures += 1
        else:
            kinds.append(CENTER if isinstance(t, CenterOfMassTask) else MOMENTUM)
            sources.append(0)
    weights = [weights_of(robot, t) for t in tasks]
    columns = [columns_of(robot, t) or [0] * len(w) for t, w in zip(tasks, weights, strict=True)]
    gains = np.array([gains_of(t) for t in tasks])
    rows = sum(map(len, weights))
    turned = [isinstance(t, FrameTask) and t.kind != "position" and len({*w}) > 1 for t, w in zip(tasks, weights, strict=True)]
    return Tasks(
        np.array(kinds, np.int64), np.array([levels.index(t.priority) for t in tasks], np.int64), np.array(sources, np.int64),
        np.cumsum([0, *map(len, weights)]).astype(np.int64), np.array(turned, bool), gains[:, 0].copy(), gains[:, 1].copy(),
        np.concatenate(weights), np.concatenate(columns).astype(np.int64), np.tile(np.eye(4), (frames, 1, 1)), np.zeros(3),
        np.zeros(rows), np.zeros(rows),
    )  # fmt: skip


def terms_of(
    robot: Robot, tasks: Sequence[WholeBodyTask], contacts: Sequence[UnilateralContact], memory: Tasks
) -> tuple[Terms, list[Any]]:
    """Return the functions of the robot with their arrays, and objects to keep alive: first the targets of postures."""
    n, frames = robot.nv, [t.frame for t in tasks if isinstance(t, FrameTask)]
    postures = sum(isinstance(t, PostureTask) for t in tasks)
    named: dict[str, Any] = {"mass": robot.mass_matrix, "bias": robot.bias_force}
    if frames:
        named["placement"] = robot.frame_placement(frames)
        named["jacobian"] = robot.frame_jacobian(frames)
        named["drift"] = robot.frame_bias_acceleration(frames)
    if any(not isinstance(t, (FrameTask, PostureTask)) for t in tasks):
        named |= {"center": robot.center_of_mass, "momentum": robot.centroidal_map, "momentum_drift": robot.centroidal_bias}
    if contacts:
        feet = [c.frame for c in contacts]
        named["contact_jacobian"] = robot.frame_jacobian(feet, "local")
        named["contact_drift"] = robot.frame_bias_acceleration(feet, "local")
    function = robot.together(**named)
    arrays: dict[str, Array] = {
        "q": robot.neutral().copy(), "v": np.zeros(n), "mass": np.zeros((n, n)), "bias": np.zeros(n),
        "placement": np.zeros((len(frames), 4, 4)), "jacobian": np.zeros((len(frames), 6, n)),
        "drift": np.zeros((len(frames), 6)), "error": np.zeros((len(frames), 6)), "center": np.zeros(3),
        "momentum": np.zeros((6, n)), "momentum_drift": np.zeros(6), "posture_error": np.zeros((postures, n)),
        "contact_jacobian": np.zeros((len(contacts), 6, n)), "contact_drift": np.zeros((len(contacts), 6)),
    }  # fmt: skip
    inputs = [arrays[x.name] for x in function.program.inputs]
    function = traced(function) if function.address is None else function  # of robots with execution="interpreted"
    call = machine_call(function, *inputs, *(arrays[name] for name in named))
    errors = machine_call(None)
    kept: list[Any] = [np.tile(robot.neutral(), (postures, 1)), function, arrays]
    if frames:
        error = frame_errors(len(frames))
        errors = machine_call(error, arrays["placement"], memory.target, arrays["error"])
        kept.append(error)
    begin = np.broadcast_to(arrays["q"], (postures, robot.nq))
    differences = [begin, kept[0], arrays["posture_error"]]
    calls, more = batch_calls([traced(robot.difference)], [differences]) if postures else batch_calls([], [])
    per_mass = 1.0 / robot.mass if "center" in named else 0.0
    return Terms(call, errors, calls, per_mass, **arrays), [*kept, *more]


def frame_errors(count: int) -> CompiledFunction[Any]:
    """Return the function of placements and targets (count, 4, 4): the errors (count, 6) in the world's axes.

    They are differences of positions, and rotation vectors from the orientations to those of the targets.
    """
    inputs = tuple(Input(name, (count, 4, 4)) for name in ("placements", "targets"))
    program = KernelProgram("frame_errors", write_errors, (count,), inputs, (Output("errors", (count, 6)),))
    return CompiledFunction(program, "traced")


def write_errors(count: int, placements: Any, targets: Any, errors: Any) -> None:
    """Write the errors of all frames."""
    for k in range(count):
        T, wanted = placements[k], targets[k]
        turn = rotation_vector(rotation(wanted).product(rotation(T).transpose()))
        for i in range(3):
            errors[k][i] = wanted[i][3] - T[i][3]
            errors[k][3 + i] = (turn.x, turn.y, turn.z)[i]


def rotation(T: Any) -> Mat3:
    """Return the rotation of a homogeneous matrix."""
    return Mat3(*(Vec3(T[i][0], T[i][1], T[i][2]) for i in range(3)))
