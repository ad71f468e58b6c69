"""The inverse of the inertia matrix of the independent velocities, as in inverse.py for trees.

A step is a row outside all loops, or another cluster. For unit accelerations of its joints, its body b moves by Phi_b relative
to the output body o, and W = U D^-1. A force Y against the motion of body b gives t = -Phi_b^T Y and passes to o as T Y + W t,
where T moves it to the origin of o.

    global   With O_b, the motion of body b for a force on it,
                 R = O_o W,  E = D^-1 + R^T W,  O_b = O_o + sum of Phi_b g^T + g Phi_b^T,  g = Phi_b E / 2 - R
             the inverse is E for two velocities of a step, (R - Phi_b E)^T Y for the force Y from below body b, and, for two
             forces that meet in a step, t^T D^-1 t' + Y^T O_o Y' with the forces Y and Y' that pass to o. The cost is
             Theta(n^2). Axes are those of the roots, origins those of the bodies.
    local    Unit forces give C^-1 t at all steps between them and the ground, in the frames of the bodies.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from ...model.tree import INNER
from ...spatial import (
    IDENTITY3,
    ZERO3,
    ZERO_FORCE,
    ZERO_MOBILITY,
    ZERO_MOTION,
    Force,
    Mat3,
    Mobility,
    Motion,
    Vec3,
    unit_motion,
)
from .. import inverse as tree_inverse
from ..contact.operational_space.dense_factors import dot, solve
from ..inverse import orientations_from_roots
from .articulated import ArticulatedClusters, articulated_clusters, cluster_motion, joint_forces, responses
from .cluster_tree import ClusterTree, unconstrained
from .counterparts import for_mechanism
from .pv_osim import write_products

V = TypeVar("V", Motion, Force)


@for_mechanism(tree_inverse.inverse_local)
def inverse_local(mech: ClusterTree, q, inverse) -> None:
    """Write the inverse by the factors that unit forces build on their way to the ground, in the frames of the bodies."""
    A = articulated_clusters(mech, q)
    write_products(A, [joint_forces(A, e, without_wrenches(mech)) for e in units(len(mech.parent))], inverse)


@for_mechanism(tree_inverse.solve_mass_matrix)
def solve_mass_matrix(mech: ClusterTree, q, B, result) -> None:
    """Write the inverse times B, both nv by m."""
    n = len(mech.parent)
    A = articulated_clusters(mech, q)
    for c in range(len(B[0])):
        column = [0.0] * n
        responses(A, joint_forces(A, [row[c] for row in B], without_wrenches(mech)), column)
        for i in range(n):
            result[i][c] = column[i]


def units(n: int) -> list[list[float]]:
    return [[1.0 if i == k else 0.0 for i in range(n)] for k in range(n)]


def without_wrenches(mech: ClusterTree) -> list[Force]:
    return [ZERO_FORCE] * len(mech.tree.parent)


class Step(NamedTuple):
    """A row outside all loops, or another cluster: quantities of the header, on the root's axes."""

    start: int  # of its independent velocities
    output: int
    at: dict[int, Vec3]  # origins of its bodies that carry others, relative to that of the output body
    Phi: dict[int, list[Motion]]  # motions of these bodies
    W: list[Force]
    mobility: list[list[Any]]  # D^-1


class Column(NamedTuple):
    """The force of a column of the inverse where it arrives at a step: t, and the force that it passes to the output body."""

    number: int
    t: list[Any]
    Y: Force


@for_mechanism(tree_inverse.inverse_global)
def inverse_global(mech: ClusterTree, part, q, inverse) -> None:
    """Write columns part[0] to part[1] - 1 of the inverse above the diagonal, and the transposed entries.

    A step has one handle. With clusters on several bodies, the local recursion writes all columns.
    """
    if any(len(cluster.handles) > 1 for cluster in mech.clusters):
        inverse_local(mech, q, inverse)
        return
    every = steps(articulated_clusters(mech, q))
    O, E, Q = mobilities(every)
    for k in range(part[0], part[1]):
        for i in range(k + 1):
            inverse[i][k] = inverse[k][i] = 0.0
    waiting: dict[int, list[list[tuple[int, Force]]]] = {}  # columns at each body; those of a list have met
    for number in range(len(every) - 1, -1, -1):
        step = every[number]
        groups = [(body, group) for body in step.at for group in waiting.get(body, [])]
        for body, group in groups:
            for k, Y in group:
                for a, motion in enumerate(Q[number][body]):
                    write_entry(inverse, part, step.start + a, k, Y.power(motion))
        passed = [[passed_on(step, body, k, Y) for k, Y in group] for body, group in groups]
        write_meetings(inverse, part, step, O[step.output], passed)
        for a, row in enumerate(E[number]):
            for b, x in enumerate(row[: a + 1]):
                write_entry(inverse, part, step.start + b, step.start + a, x)
        met = [(column.number, column.Y) for group in passed for column in group]
        met += [(step.start + a, w) for a, w in enumerate(step.W)]
        waiting.setdefault(step.output, []).append(met)


def steps(A: ArticulatedClusters) -> list[Step]:
    """Return the steps, from the ground outwards."""
    mech, tree = A.mech, A.mech.tree
    R = orientations_from_roots(tree, A.X)
    away = [R[p] @ A.X[j].p if p >= 0 and tree.kind[j] != INNER else ZERO3 for j, p in enumerate(tree.parent)]
    result = []
    for number, cluster in enumerate(mech.clusters):
        if unconstrained(cluster):
            result += [step_of_row(A, R, away, j, cluster.start + k) for k, j in enumerate(cluster.rows)]
        else:
            result.append(step_of_cluster(A, R, away, number))
    return result


def step_of_row(A: ArticulatedClusters, R, away, j: int, start: int) -> Step:
    tree = A.mech.tree
    axis = turned(R[j], unit_motion(tree.axis[j], 1.0))
    W = turned(R[j], A.W[j]).translate(away[j])
    return Step(start, tree.parent[j], {j: away[j]}, {j: [axis]}, [W], [[A.d[j]]])


def step_of_cluster(A: ArticulatedClusters, R, away, number: int) -> Step:
    cluster = A.mech.clusters[number]
    m, o = len(cluster.independent), cluster.output
    mobility = [solve(m, A.C[number], A.reciprocal[number], e) for e in units(m)]
    at: dict[int, Vec3] = {o: ZERO3}
    for j in cluster.rows:
        at[j] = at[A.mech.tree.parent[j]] + away[j]
    motions = [cluster_motion(A, number, e, dict.fromkeys(cluster.handles, ZERO_MOTION)) for e in units(m)]
    carrying = {other.output for other in A.mech.clusters}.intersection(cluster.rows)
    Phi = {b: [turned(R[b], motion[b]) for motion in motions] for b in sorted(carrying)}
    U = A.U[number].get(o, [ZERO_FORCE] * m)
    W = [turned(R[o] if o >= 0 else IDENTITY3, total(row, U)) for row in mobility]
    return Step(cluster.start, o, {b: at[b] for b in Phi}, Phi, W, mobility)


def turned(R: Mat3, x: V) -> V:
    """Return a motion or force on axes that R maps to."""
    return type(x)(R @ x.ang, R @ x.lin)


def total(weights, vectors):
    """Return the sum of weighted motions or forces."""
    result = weights[0] * vectors[0]
    for x, vector in zip(weights[1:], vectors[1:], strict=True):
        result = result + x * vector
    return result


def mobilities(every: list[Step]):
    """Return O of the bodies and the ground, and for each step E, and R - Phi_b E of its bodies."""
    O: dict[int, Mobility] = {-1: ZERO_MOBILITY}
    blocks: list[list[list[Any]]] = []
    Q: list[dict[int, list[Motion]]] = []
    for step in every:
        R = [O[step.output].motion(w) for w in step.W]
        E = [
            [step.mobility[max(a, b)][min(a, b)] + step.W[max(a, b)].power(R[min(a, b)]) for b in range(len(R))]
            for a in range(len(R))
        ]
        of_step: dict[int, list[Motion]] = {}
        for body, r in step.at.items():
            O[body] = O[step.output].translate(r)
            arriving = [Motion(x.ang, x.lin + x.ang.cross(r)) for x in R]
            own = [total(row, step.Phi[body]) for row in E]
            for motion, x, y in zip(step.Phi[body], own, arriving, strict=True):
                O[body] = O[body].plus_symmetric(motion, 0.5 * x - y)
            of_step[body] = [y - x for x, y in zip(own, arriving, strict=True)]
        blocks.append(E)
        Q.append(of_step)
    return O, blocks, Q


def passed_on(step: Step, body: int, k: int, Y: Force) -> Column:
    """Return column k with the force Y on a body of a step."""
    t = [0.0 - Y.power(motion) for motion in step.Phi[body]]
    onward = Y.translate(step.at[body])
    for x, w in zip(t, step.W, strict=True):
        onward = onward + x * w
    return Column(k, t, onward)


def write_meetings(inverse, part, step: Step, O: Mobility, groups: list[list[Column]]) -> None:
    """Write the entries of columns that meet in a step."""
    for g in range(1, len(groups)):
        for column in groups[g]:
            motion = O.motion(column.Y)
            rates = [dot(row, column.t) for row in step.mobility]
            for other in (other for earlier in groups[:g] for other in earlier):
                write_entry(inverse, part, other.number, column.number, dot(other.t, rates) + other.Y.power(motion))


def write_entry(inverse, part, i: int, k: int, x) -> None:
    """Write an entry and the transposed one, if they are in the part."""
    if part[0] <= max(i, k) < part[1]:
        inverse[i][k] = inverse[k][i] = x
