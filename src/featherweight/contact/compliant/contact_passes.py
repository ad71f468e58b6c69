"""Newton's method of `primal_newton` with a pass of the articulated-body algorithm in each step.

The blocks of G of contacts with the ground become 6 x 6 matrices of their bodies, and those of joint rows numbers of their
joints: the robot solves the equations by a pass whose cost does not depend on contacts (`algorithms.contact.contact_passes`).
Contacts between two moving bodies couple all joints between them, and tendons those that they pass. The robot then writes the
matrix without them, to which their rows J are added. Its factor Lᵀ D L is eliminated from the leaves to the root, so that only
these rows cause fill-in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...array_types import Integers, Matrix, Shared, Tensor, Vector
from ...collision.detection import ContactPoints
from ...collision.triples import Triple, inner, minus, outer, plus
from ...engine.loops.kernels import MachineCall, aligned_numbers, call_machine, first_of_lanes, lanes, subtract_multiples
from ..contact_model import ContactModel
from ..contact_problem import ProblemRows, RowWork, row_work
from ..factors.block_equations import copy_numbers
from ..factors.branches import padded
from ..laws import is_stiff
from .answers import DIRECTIONS, answering_of, directions_of
from .primal_newton import PrimalNumbers, PrimalRows, primal_numbers, solve_primal

BLOCK = 4  # rows of the matrix


class Subtrees(NamedTuple):
    """Velocities in depth-first order. A velocity moves the bodies whose last velocity is in its subtree."""

    first: Shared[Integers]  # (n,) number of each velocity
    last: Shared[Integers]  # (n,) greatest number in its subtree
    of_body: Shared[Integers]  # (bodies,) number of each body's last velocity, -1 on the ground


def subtrees(parent: Sequence[int], of_body: Sequence[int]) -> Subtrees:
    """Return the subtrees of velocities with these parents; `of_body` are the last velocities of bodies."""
    n = len(parent)
    first, free, size = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64), np.ones(n, np.int64)  # the last one is the ground
    for j in range(n - 1, -1, -1):
        if parent[j] >= 0:
            size[parent[j]] += size[j]
    for j, p in enumerate(parent):
        first[j] = free[p]
        free[p] += size[j]
        free[j] = first[j] + 1
    first[-1] = -1
    return Subtrees(first[:-1].copy(), first[:-1] + size - 1, first[np.array(of_body, np.int64)])


class JointAxes(NamedTuple):
    """Motions of bodies by unit velocities of the n joints, in the world's axes."""

    linear: Matrix  # (n, 3) velocity at the place
    angular: Matrix  # (n, 3)
    place: Matrix  # (n, 3) origin of the joint's frame [m]


class PassWork(NamedTuple):
    """Arguments and results of the robot's functions, and workspace for contacts between two moving bodies."""

    stiffness: Tensor  # (bodies, 6, 6) K
    stiffening: Vector  # (rows,) D of joints with limits or dry friction
    factor: Matrix  # (n, 7)
    wrench: Matrix  # (bodies, 6)
    force: Vector  # (n,)
    motion: Matrix  # (bodies, 6)
    coupled_motion: Matrix  # (bodies, 6) motion of robots with coupled rows
    subtrees: Subtrees
    axes: JointAxes
    coupled: Integers  # (contacts,) contacts between two moving bodies
    matrix: Vector  # (n, padded n) M + Jᵀ G J, then its factor; J of tendons; J and -G J (6, padded n) of each coupled contact
    load: Vector  # (n,) Jᵀ r
    change: Vector  # (n,) x
    direction: Vector  # (n,) d
    dof: Integers  # (joints,) velocities of joints, and after these the rows of tendons, with limits or dry friction
    numbers: PrimalNumbers
    rows: RowWork


def pass_work(own: Subtrees, dof: Integers, contacts: int, rows: int, coupling: bool) -> PassWork:
    """Return workspace for a robot with these velocities and bodies, and `rows` of the joints and tendons `dof`."""
    n, bodies = len(own.first), len(own.of_body)
    force, load, change, direction = np.zeros((4, n))
    stiffening, (wrench, motion) = np.zeros(int((dof < n).sum())), np.zeros((2, bodies, 6))
    m, stride, coupled = 3 * contacts + rows, padded(n), contacts if coupling else 0
    matrix = aligned_numbers((n + len(dof) + 2 * DIRECTIONS * coupled) * stride if coupling else 0)
    coupled_motion = np.zeros((bodies if coupling else 0, 6))
    return PassWork(
        np.zeros((bodies, 6, 6)), stiffening, np.zeros((n, 7)), wrench, force, motion, coupled_motion, own,
        JointAxes(*np.zeros((3, n, 3))), np.zeros(coupled, np.int64), matrix, load, change, direction, dof,
        primal_numbers(contacts, m), row_work(contacts, rows),
    )  # fmt: skip


class PassCalls(NamedTuple):
    """The functions of the robot; the last four only if contacts between two moving bodies are possible."""

    factor: MachineCall  # q, stiffness, stiffening -> factor
    response: MachineCall  # q, factor, wrench, force -> motion, direction
    matrix: MachineCall  # q, stiffness, stiffening -> matrix
    loads: MachineCall  # q, wrench, force -> load
    motions: MachineCall  # q, direction -> motion
    axes: MachineCall  # q -> axes


class RobotInPasses(NamedTuple):
    """A robot whose contacts are solved in passes."""

    calls: PassCalls
    passes: PassWork
    S: Matrix  # (n + tendons, n) from joint velocities to those of joints and tendons, or no rows without tendons


class Coupled(NamedTuple):
    """Numbers of active rows that couple several branches of a robot."""

    pairs: int  # contacts between two moving bodies
    tendons: int


class Scene(NamedTuple):
    """The rows of a problem, the numbers of Newton's method, and the robot."""

    model: ContactModel
    contacts: ContactPoints
    p: ProblemRows
    rows: PrimalRows
    calls: PassCalls
    passes: PassWork
    S: Matrix
    coupled: Coupled = Coupled(0, 0)


def scene_of(model: ContactModel, contacts: ContactPoints, p: ProblemRows, turning: int, robot: RobotInPasses) -> Scene:
    """Return the scene of a robot; the last `turning` contacts represent the turning of others."""
    law, work, numbers = p.law, robot.passes.rows, robot.passes.numbers
    own = answering_of(law, model.settings.cones, turning, work.turning, work.turning_friction)
    for i in range(len(p.start)):  # cones start at the pull of adhesion
        normal = i < 3 * len(law.friction) and i % 3 == 0
        numbers.first[i] = law.bias[i] - (law.compliance[i] * p.pull[i // 3] if normal else 0.0)
    return Scene(model, contacts, p, PrimalRows(own, p.start, p.pull, numbers), robot.calls, robot.passes, robot.S)


def solve_in_passes(scene: Scene, tolerance: float) -> tuple[float, int]:
    """Replace the impulses of the last step, `p.start`, by the solution; return the residual as a velocity, and the steps.

    The change x of the robot's velocities becomes `change`.
    """
    scene = write_coupled_rows(scene)
    scene.passes.change[:] = 0.0
    stiff = is_stiff(scene.model, scene.contacts.candidate, scene.p.active, scene.p.law)
    return solve_primal(write_moved, add_moved, write_response, scene, scene.rows, stiff, tolerance)


def add_moved(scene: Scene, part: float) -> None:
    """Add a part of d to x."""
    passes = scene.passes
    for i in range(len(passes.change)):
        passes.change[i] += part * passes.direction[i]


def write_response(scene: Scene) -> None:
    """Write x and the velocities J x of the impulses."""
    p, f, passes, k = scene.p, scene.p.start, scene.passes, len(scene.p.law.friction)
    passes.stiffness[:], passes.stiffening[:], passes.wrench[:], passes.force[:] = 0.0, 0.0, 0.0, 0.0
    for c in range(len(p.axes)):
        add_impulses(scene, c, (f[3 * c] - (p.pull[c] if c < k else 0.0), f[3 * c + 1], f[3 * c + 2]))
    add_forces(scene, f)
    call_machine(scene.calls.factor)
    call_machine(scene.calls.response)
    copy_numbers(scene.passes.direction, scene.passes.change)
    write_velocities(scene)


# ---- one step


def write_moved(scene: Scene) -> None:
    """Write J d to `moved`."""
    p, calls, passes, x = scene.p, scene.calls, scene.passes, scene.rows.x
    write_stiffness(scene)
    passes.wrench[:], passes.force[:] = 0.0, 0.0
    for c in range(len(p.axes)):
        add_impulses(scene, c, (x.right[3 * c], x.right[3 * c + 1], x.right[3 * c + 2]))
    add_forces(scene, x.right)
    if scene.coupled.pairs + scene.coupled.tendons == 0:
        call_machine(calls.factor)
        call_machine(calls.response)
    else:
        call_machine(calls.loads)
        call_machine(calls.matrix)
        add_coupled_rows(scene)
        solve_by_factor(passes)
        call_machine(calls.motions)
        for a in range(len(passes.motion)):
            copy_numbers(passes.coupled_motion[a], passes.motion[a])
    write_velocities(scene)


def add_impulses(scene: Scene, c: int, f: tuple[float, float, float]) -> None:
    """Add the wrenches on its bodies of a contact's impulses, or of the rotational ones of a contact that turns."""
    rows, wrench, body, b, waits = scene.p.rows, scene.passes.wrench, scene.contacts.a[c], scene.contacts.b[c], True
    own = rows[c, 0]
    added = (
        entry_of(own, f, 0), entry_of(own, f, 1), entry_of(own, f, 2), entry_of(own, f, 3), entry_of(own, f, 4),
        entry_of(own, f, 5),
    )  # fmt: skip
    while waits:
        a = first_of_lanes(body)
        if a == body:
            for j, x in enumerate(added):
                wrench[a, j] += x
            waits = False
    for j in range(6 if b >= 0 else 0):
        wrench[b, j] += entry_of(rows[c, 1], f, j)


def entry_of(rows: Matrix, f: tuple[float, float, float], j: int) -> float:
    """Return an entry of the wrench of impulses along three rows."""
    return rows[0, j] * f[0] + rows[1, j] * f[1] + rows[2, j] * f[2]


def add_forces(scene: Scene, f: Vector) -> None:
    """Add the joint forces of impulses of joint rows."""
    p, rows, k, force = scene.p, scene.model.rows, len(scene.p.law.friction), scene.passes.force
    for i in range(3 * len(p.axes), len(p.start)):
        r = p.active[i - 3 * k]
        dof, sign = scene.passes.dof[rows.joint[r]], rows.sign[r]
        if dof < len(force):
            force[dof] += sign * f[i]
        else:
            for j in range(len(force)):
                force[j] += sign * f[i] * scene.S[dof, j]


def write_velocities(scene: Scene) -> None:
    """Write `moved` for the motions of bodies and the velocities of joints."""
    p, rows, passes, k = scene.p, scene.model.rows, scene.passes, len(scene.p.law.friction)
    for c in range(len(p.axes)):
        write_velocity(scene, c)
    for i in range(3 * len(p.axes), len(p.start)):
        r = p.active[i - 3 * k]
        dof, speed = passes.dof[rows.joint[r]], 0.0
        if dof < len(passes.direction):
            speed = passes.direction[dof]
        else:
            for j in range(len(passes.direction)):
                speed += scene.S[dof, j] * passes.direction[j]
        passes.numbers.moved[i] = rows.sign[r] * speed


def write_velocity(scene: Scene, c: int) -> None:
    """Write the velocity at a contact for the motions of bodies."""
    rows, motion, moved = scene.p.rows, scene.passes.motion, scene.passes.numbers.moved
    body, b, waits, own = scene.contacts.a[c], scene.contacts.b[c], True, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    while waits:
        a = first_of_lanes(body)
        if a == body:
            own = motion[a, 0], motion[a, 1], motion[a, 2], motion[a, 3], motion[a, 4], motion[a, 5]
            waits = False
    u = v = w = 0.0
    for j, x in enumerate(own):
        u += rows[c, 0, 0, j] * x
        v += rows[c, 0, 1, j] * x
        w += rows[c, 0, 2, j] * x
    for j in range(6 if b >= 0 else 0):
        x = motion[b, j]
        u += rows[c, 1, 0, j] * x
        v += rows[c, 1, 1, j] * x
        w += rows[c, 1, 2, j] * x
    moved[3 * c], moved[3 * c + 1], moved[3 * c + 2] = u, v, w


def write_stiffness(scene: Scene) -> None:
    """Write K of bodies and D of joints, of contacts with the ground and of joint rows."""
    p, passes, joint = scene.p, scene.passes, scene.model.rows.joint
    x, k = passes.numbers, len(p.law.friction)
    passes.stiffness[:], passes.stiffening[:] = 0.0, 0.0
    for c in range(k):
        body, waits = scene.contacts.a[c], bool(scene.contacts.b[c] < 0 and x.slope[c, 0, 0] > 0.0)
        while waits:
            a = first_of_lanes(body)
            if a == body:
                add_contact(scene, c, passes.stiffness[a])
                waits = False
    for i in range(3 * len(p.axes), len(p.start)):
        if joint[p.active[i - 3 * k]] < len(passes.stiffening):
            passes.stiffening[joint[p.active[i - 3 * k]]] += x.stiffness[i]


def add_contact(scene: Scene, c: int, K: Matrix) -> None:
    """Add Jᵀ G J of a contact to the upper triangle of K of its body."""
    own, G, rows = scene.rows.own, scene.passes.numbers.slope[c], scene.p.rows[c, 0]
    add_stiffness(rows, G, 0, 0, rows, K)
    if directions_of(c, own) > 3:
        turning = scene.p.rows[len(scene.p.law.friction) + own.group[c], 0]
        add_stiffness(rows, G, 0, 3, turning, K)
        add_stiffness(turning, G, 3, 0, rows, K)
        add_stiffness(turning, G, 3, 3, turning, K)


def add_stiffness(A: Matrix, G: Matrix, row: int, column: int, B: Matrix, K: Matrix) -> None:
    """Add Aᵀ G B to the upper triangle of K, with the block of G that starts at a row and a column."""
    for j in range(6):
        x, y, z = B[0, j], B[1, j], B[2, j]
        u = G[row, column] * x + G[row, column + 1] * y + G[row, column + 2] * z
        v = G[row + 1, column] * x + G[row + 1, column + 1] * y + G[row + 1, column + 2] * z
        w = G[row + 2, column] * x + G[row + 2, column + 1] * y + G[row + 2, column + 2] * z
        for i in range(j + 1):
            K[i, j] += A[0, i] * u + A[1, i] * v + A[2, i] * w


# ---- contacts between two moving bodies


def write_coupled_rows(scene: Scene) -> Scene:
    """Write J of the contacts between two moving bodies, and of active tendons; return the scene with their numbers."""
    p, passes, k = scene.p, scene.passes, len(scene.p.law.friction)
    n, stride, pairs, tendons = len(passes.load), padded(len(passes.load)), 0, 0
    for c in range(k):
        if scene.contacts.b[c] >= 0:
            passes.coupled[pairs] = c
            pairs += 1
    if pairs > 0:
        call_machine(scene.calls.axes)
    for x in range(pairs):
        write_rows_of_pair(scene, passes.coupled[x], place_of_contact(passes, x))
    for i in range(3 * len(p.axes), len(p.start)):
        joint = scene.model.rows.joint[p.active[i - 3 * k]]
        if joint >= len(passes.stiffening):
            for j in range(n):
                passes.matrix[(n + joint) * stride + j] = scene.S[passes.dof[joint], j]
            tendons += 1
    return scene._replace(coupled=Coupled(pairs, tendons))


def write_rows_of_pair(scene: Scene, c: int, at: int) -> None:
    """Write J of a contact between two moving bodies, from a place in the matrix on."""
    passes, contacts, axes = scene.passes, scene.contacts, scene.p.axes
    tree, joints, J, stride = passes.subtrees, passes.axes, passes.matrix, padded(len(passes.load))
    one, other, point = tree.of_body[contacts.a[c]], tree.of_body[contacts.b[c]], row_of_three(contacts.point[c])
    first, second, third = row_of_three(axes[c, 0]), row_of_three(axes[c, 1]), row_of_three(axes[c, 2])
    for j in range(len(passes.load)):
        moves = moves_of(tree, j, one, other)
        velocity = plus(joints.linear[j], outer(joints.angular[j], minus(point, joints.place[j])))
        J[at + j] = moves * inner(first, velocity)
        J[at + stride + j] = moves * inner(second, velocity)
        J[at + 2 * stride + j] = moves * inner(third, velocity)
    if directions_of(c, scene.rows.own) > 3:
        turning = len(scene.p.law.friction) + scene.rows.own.group[c]
        for l in range(3):
            axis = row_of_three(axes[turning, l])
            for j in range(len(passes.load)):
                J[at + (3 + l) * stride + j] = moves_of(tree, j, one, other) * inner(axis, joints.angular[j])


def moves_of(tree: Subtrees, j: int, one: int, other: int) -> float:
    """Return 1 if velocity j moves one of two bodies, by the numbers of their last velocities, -1 for the other, 0 for both."""
    first, last = tree.first[j], tree.last[j]
    return (1.0 if first <= one <= last else 0.0) - (1.0 if first <= other <= last else 0.0)


def row_of_three(x: Vector) -> Triple:
    """Return the numbers of a row."""
    return x[0], x[1], x[2]


def place_of_contact(passes: PassWork, x: int) -> int:
    """Return the place of J of coupled contact number x."""
    n = len(passes.load)
    return (n + len(passes.dof) + 2 * DIRECTIONS * x) * padded(n)


def add_coupled_rows(scene: Scene) -> None:
    """Add Jᵀ G J of coupled contacts and of tendons to the lower triangle of the matrix."""
    p, passes, n, k = scene.p, scene.passes, len(scene.passes.load), len(scene.p.law.friction)
    for x in range(scene.coupled.pairs):
        c = passes.coupled[x]
        add_rows_of_pair(passes, place_of_contact(passes, x), passes.numbers.slope[c], directions_of(c, scene.rows.own))
    H, stride = passes.matrix, padded(n)
    for i in range(3 * len(p.axes), len(p.start)):
        joint, g = scene.model.rows.joint[p.active[i - 3 * k]], passes.numbers.stiffness[i]
        if joint >= len(passes.stiffening) and g > 0.0:
            J = (n + joint) * stride
            for j in range(n):
                if H[J + j] != 0.0:
                    subtract_multiples(H, j * stride, J, stride, length_for(j + 1), (-g * H[J + j],))


def add_rows_of_pair(passes: PassWork, J: int, G: Matrix, count: int) -> None:
    """Add Jᵀ G J of a coupled contact, whose J starts at a place, with `count` directions."""
    H, n, stride = passes.matrix, len(passes.load), padded(len(passes.load))
    G_J = J + DIRECTIONS * stride
    for l in range(count):
        subtract_multiples(H, G_J + l * stride, J, stride, length_for(n), (G[l, 0], G[l, 1], G[l, 2]), True)
        if count == DIRECTIONS:
            subtract_multiples(H, G_J + l * stride, J + 3 * stride, stride, length_for(n), (G[l, 3], G[l, 4], G[l, 5]))
    for i in range(n):
        for l in range(0, count, 3):
            u, v, w = H[J + l * stride + i], H[J + (l + 1) * stride + i], H[J + (l + 2) * stride + i]
            if u != 0.0 or v != 0.0 or w != 0.0:
                subtract_multiples(H, i * stride, G_J + l * stride, stride, length_for(i + 1), (u, v, w))


def solve_by_factor(passes: PassWork) -> None:
    """Write the solution `direction` for `load`; the matrix becomes its factor Lᵀ D L (Featherstone 2008, section 6.5).

    Rows are eliminated in blocks of four. Entries above the diagonal change, too, but are not read. Pivots become their
    inverses.
    """
    H, x, n, stride = passes.matrix, passes.direction, len(passes.load), padded(len(passes.load))
    copy_numbers(passes.load, x)
    for block in range(n, 0, -BLOCK):
        first = max(block - BLOCK, 0)
        for i in range(block - 1, first - 1, -1):
            unit = 1.0 / H[i * stride + i]
            for j in range(first, i):
                subtract_multiples(H, j * stride, i * stride, stride, length_for(j + 1), (unit * H[i * stride + j],))
                x[j] -= unit * H[i * stride + j] * x[i]
            H[i * stride + i] = unit
        for j in range(first):  # all blocks below others are whole
            a, b = gain_of(H, stride, first, j), gain_of(H, stride, first + 1, j)
            c, d = gain_of(H, stride, first + 2, j), gain_of(H, stride, first + 3, j)
            if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0:
                subtract_multiples(H, j * stride, first * stride, stride, length_for(j + 1), (a, b, c, d))
                x[j] -= a * x[first] + b * x[first + 1] + c * x[first + 2] + d * x[first + 3]
    for first in range(0, n, BLOCK):
        a = b = c = d = 0.0
        at = first * stride
        for j in range(first):
            a += H[at + j] * x[j]
            b += H[at + stride + j] * x[j]
            c += H[at + 2 * stride + j] * x[j]
            d += H[at + 3 * stride + j] * x[j]
        sums = a, b, c, d
        for i in range(first, min(first + BLOCK, n)):
            rest = x[i] - sums[i - first]
            for j in range(first, i):
                rest -= H[i * stride + j] * x[j]
            x[i] = rest * H[i * stride + i]


def length_for(count: int) -> int:
    """Return the number of entries of a row that are computed to obtain `count`: multiples of a vector for one robot."""
    return padded(count) if lanes() == 1 else count


def gain_of(H: Vector, stride: int, i: int, j: int) -> float:
    """Return an entry of a row times the inverse of its pivot."""
    return H[i * stride + j] * H[i * stride + i]
