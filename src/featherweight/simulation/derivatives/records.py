"""Arrays for the derivatives of the acceleration of one robot (`acceleration`), and of the steps of many robots."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Array, BooleanMatrix, Booleans, IntegerMatrix, Integers, Matrix, Tensor, Vector
from ...contact.compliant.answers import DIRECTIONS
from ...contact.contact_slopes import ContactSlopes, contact_slopes
from ...contact.rigid.answers import RigidAnswers, rigid_answers
from ...engine.loops.kernels import LANES, MachineCall, aligned_numbers
from ..smooth_motion import clear
from ..stage_records import FOUND, RobotStages
from .equations import Places, Sizes, places
from .loads import LoadSlopes, load_slopes


class SlopeCalls(NamedTuple):
    """Functions of the robot at q; velocities of bodies are in their axes."""

    dynamics: MachineCall  # q, v, acceleration, forces -> by_q, by_v, mass, with the armature of the step
    settled: MachineCall  # the same with the inertia that represents dampers, if they act after impulses
    spanning: MachineCall  # q, v, forces of rows -> spread, swept, mapped, if loops move joints
    spanning_after: MachineCall  # q, after, pushes -> spread, swept_after, mapped_after
    struck: MachineCall  # q, v, joint forces with impulses, forces on bodies -> acceleration before dampers act
    jacobian: MachineCall  # q -> jacobian
    motions: MachineCall  # q, after -> turned, for robots with loops
    moved: MachineCall  # q, increment -> x
    motions_before: MachineCall  # q, v -> turned_before


class Paths(NamedTuple):
    """Joints of velocities, and bodies that they move."""

    joint: Integers  # (n,) armature of each row, or -1
    first: Integers  # (n,) first row of the joint of each row
    moves: BooleanMatrix  # (bodies that may touch, n) whether a row moves a body, for robots without loops


class Bundles(NamedTuple):
    """Bundles of contacts: consecutive contacts of the same two bodies, with the same weight of the velocity before the step.

    Each has a block of `contact_slopes`.
    """

    counts: Integers  # (2,) of bundles, and of joint rows
    bodies: IntegerMatrix  # (contacts, 2) of each bundle, or -1
    before: Vector  # (contacts,) weight of each bundle
    of: Integers  # (contacts,) bundle of each contact


class AccelerationSlopes(NamedTuple):
    """Derivatives of one robot's acceleration, and workspace."""

    numbers: Vector
    at: Places
    one: Places  # the same for a single column
    load: LoadSlopes
    acceleration: Vector  # (n,) with impulses
    after: Vector  # (n,) velocity w with these impulses
    forces: Matrix  # (bodies, 6) of the user and of contacts
    paths: Paths
    velocity: Matrix  # (bodies that may touch, 6) at w
    velocity_seen: Matrix  # (bodies, 6) at w and v, weighted by 1 and `before` of the bundle
    contact: ContactSlopes
    bundles: Bundles
    doubtful: Booleans  # (contacts + joint rows,) whether a contact or row is at the boundary between two states
    nonsmooth: Booleans  # (nu + na,) whether the force of a control or activation is at a limit
    increment: Vector  # (n,) small motion
    start: Matrix  # (n, 6) derivatives of positions after the step by those of the joint at its start
    pushes: Vector  # (loop rows,) forces of limits and dry friction, spread over the step
    probes: Matrix  # (3, n + na) accelerations and activations after the step, on both sides of the state and there
    impulses: Vector  # (m,) of all rows
    responding: Vector  # (m,) velocities y of all rows
    spare: Vector  # (m,)
    slope: Matrix  # (6, 6) G of one contact
    rigid: RigidAnswers  # of rigid contacts
    is_rigid: bool  # whether contacts are rigid; otherwise their law is convex
    by_differences: bool  # whether the forces are differentiated by differences
    by_loads: bool  # whether differences of the load are enough, without drives that a step evaluates at its end
    calls: SlopeCalls


def acceleration_slopes(
    s: RobotStages, paths: Paths, mapped_rows: int, plain: bool, is_rigid: bool, by_loads: bool
) -> AccelerationSlopes:  # fmt: skip
    """Return arrays for the stages of one robot, without functions."""
    n, bodies, nu, na = len(s.state.v), len(s.touching.bodies), len(s.state.control), len(s.state.act)
    lengths = -1 if plain else len(s.touching.model.rows.joint)
    contacts, rows = len(s.touching.contacts.gap), len(s.touching.model.rows.joint)
    capacity, m, none = contacts + rows, 6 * contacts + rows, MachineCall(0, np.zeros(0, np.int64))
    at_joints, rigid = plain and s.joints.driving.alike > 0, contacts if is_rigid else 0
    at = places(Sizes(n, nu, na, bodies, mapped_rows, lengths, rigid, rows, is_rigid, at_joints))
    bundles = Bundles(
        np.zeros(2, np.int64), np.zeros((contacts, 2), np.int64), np.zeros(contacts), np.zeros(contacts, np.int64)
    )  # fmt: skip
    return AccelerationSlopes(
        numbers=aligned_numbers(at.size), at=at,
        one=at._replace(rates=at.column, struck=at.moved_column, width=LANES, solved=LANES),
        load=load_slopes(s), acceleration=np.zeros(n), after=np.zeros(n),
        forces=np.zeros_like(s.state.external), paths=paths,
        velocity=np.zeros((bodies, 6)), velocity_seen=np.zeros((bodies, 6)), contact=contact_slopes(contacts, rigid),
        bundles=bundles, doubtful=np.zeros(capacity, bool), nonsmooth=np.zeros(nu + na, bool), increment=np.zeros(n),
        start=np.zeros((n, DIRECTIONS)),
        pushes=np.zeros(mapped_rows), probes=np.zeros((3, n + na)), by_differences=not plain, by_loads=by_loads,
        impulses=np.zeros(m), responding=np.zeros(m), spare=np.zeros(m), slope=np.zeros((DIRECTIONS, DIRECTIONS)),
        rigid=rigid_answers(rigid, rows if is_rigid else 0), is_rigid=is_rigid,
        calls=SlopeCalls(*(none for _ in SlopeCalls._fields)),
    )  # fmt: skip


def matrix_at(y: AccelerationSlopes, place: int, *shape: int) -> Array:
    """Return a matrix in the vector of numbers."""
    return y.numbers[place : place + int(np.prod(shape))].reshape(shape)


# ---- derivatives of many robots


class RobotSlopes(NamedTuple):
    """Derivatives of the steps of many robots, and what is doubtful about them."""

    ends: Tensor  # (robots, 2 nv + na, 3 nv + na + nu), or (1, ...) for products with cotangents only
    cotangents: Matrix  # (robots, 2 nv + na) of the state after the step, or (0, ..)
    products: Matrix  # (robots, 3 nv + na + nu) of the state before, joint forces and controls
    unsure: Integers  # (robots,) 1 for robots with doubtful names
    candidates: IntegerMatrix  # (robots, contacts) those of contacts at the boundary between two states, then -1
    rows: BooleanMatrix  # (robots, joint rows) whether a row is at the boundary between two states
    limits: Matrix  # (robots, values that limits bound) 1 at a limit, see `StepModel.limits`
    nonsmooth: BooleanMatrix  # (robots, 3 nv + na + nu) whether the step has a kink along a direction
    impulses: Matrix  # (robots, joint rows) of limits and dry friction in the step, if its equations are differentiated


def begin_doubtful(x: RobotSlopes, i: int) -> None:
    """Forget what is doubtful about robot i."""
    x.unsure[i] = 0
    for c in range(x.candidates.shape[1]):
        x.candidates[i, c] = -1
    for r in range(x.rows.shape[1]):
        x.rows[i, r] = False
    clear(x.limits[i])
    for k in range(x.nonsmooth.shape[1]):
        x.nonsmooth[i, k] = False


def note_doubtful(one: RobotStages, y: AccelerationSlopes, x: RobotSlopes, i: int) -> None:
    """Note what is doubtful about the acceleration of robot i, next to what is known already."""
    t, n, na, controls = one.touching, len(y.after), len(one.state.act), len(one.state.control)
    capacity, known = x.candidates.shape[1], 0
    x.unsure[i] = 1
    for c in range(t.counts[FOUND]):
        if y.doubtful[c]:
            while known < capacity - 1 and x.candidates[i, known] >= 0:
                known += 1
            x.candidates[i, known] = t.contacts.candidate[c]
    for r in range(x.rows.shape[1]):
        x.rows[i, r] = x.rows[i, r] or y.doubtful[capacity + r]
    for k in range(x.limits.shape[1]):
        x.limits[i, k] = max(x.limits[i, k], y.load.ends[k])
    for k in range(len(y.nonsmooth)):
        place = 3 * n + na + k if k < controls else 2 * n + k - controls
        x.nonsmooth[i, place] = x.nonsmooth[i, place] or y.nonsmooth[k]


def multiply(ends: Matrix, cotangent: Vector, product: Vector) -> None:
    """Write the product of a transposed matrix and a vector."""
    clear(product)
    for row in range(len(cotangent)):
        for column in range(len(product)):
            product[column] += ends[row, column] * cotangent[row]
