"""Forward dynamics of mechanisms with large loops: articulated bodies, with the forces of each loop as multipliers.

A cluster with n joints, m of them dependent, costs n^2 to n^3 by its velocity map G. This recursion takes the joints of the
cluster one by one, as a tree, and passes one wrench Y inwards for each constraint row (Popov-Vereshchagin; PV-OSIM and
PV-OSIMr of Sathya, Decré and Swevers), which costs n (1 + m + m^2):

    u_j = tau_j - S^T p_j,   p_p += X^T (p_j + u_j W_j)                   the tree without constraint forces
    u_rj = K_rj - S^T Y_rj,  Y_rp += Y_rj + u_rj W_j                      unit forces of the rows
    L = sum over j of u_rj d_j u_sj,   b = sum over j of u_rj d_j u_j     K H^-1 K^T, and K q'' without constraint forces

The forces f of the rows are eliminated at the output body o (Sathya and Carpentier 2024). There, L is regular because rows are
independent. Loops that carry other loops therefore cost as much as loops side by side:

    f = L^-1 (k - b + Y_o^T a_o),   IA_o += Y_o L^-1 Y_o^T,   p_o += Y_o L^-1 (k - b)

Accelerations are relative to zeta, the accelerations without q'' while o is at rest, so that p_j = IA_j zeta_j + w x* I w.
The rows are constraints of loops on two bodies, constraints on joints, and couplings q_f - P(q) = 0. Dependent velocities
follow from K_d q_d' = -K_i y'; G is not computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...model.tree import INNER, Placements, Tree
from ...spatial import IDENTITY3, ZERO3, ZERO_FORCE, ZERO_MOTION, Force, Motion, Vec3, unit_motion
from ..articulated import joint_acceleration, with_joint
from ..contact.operational_space.dense_factors import factorize, solve
from ..kinematics import (
    base_acceleration,
    external_forces,
    joint_transforms,
)
from .aba import ClusterPass, ClusterSolution, arriving_acceleration, inward_cluster, inward_row, outward_cluster, single_bodies
from .articulated import apparent_cluster_inertia, lower_solved
from .cluster_tree import Alignment, Cluster, ClusterTree, unconstrained
from .counterparts import takes_mechanism
from .loop_constraints import Moving, Posed, axis, carrying_body, closing_rates, closing_rows, point, second_rates
from .maps import TINY, maps, slopes, solve_square, spanning_configuration, spanning_velocity

OUTPUT = -2  # the output body in `Posed`


class Row(NamedTuple):
    """A constraint row: its wrench on a body b, whose opposite acts on a body a, and its entries for joints."""

    a: int
    b: int
    wrench: Force  # about the reference point, in the axes of the output body
    entries: Mapping[int, Any]


class Loop(NamedTuple):
    """A cluster at a configuration. All positions are relative to the origin of its first row."""

    P: Posed
    twists: dict[int, Motion]  # unit twists of the joints about the reference point
    rows: list[Row]  # the independent constraints of loops, then couplings
    rates: dict[int, Any]  # velocities of the joints
    T: dict[int, Motion]  # twists of the bodies relative to the output body


class Solved(NamedTuple):
    """Quantities of a cluster that its part of the outward pass needs."""

    loop: Loop
    zeta: dict[int, Motion]
    u: list[dict[int, Any]]  # of unit forces of the rows
    Y: list[Force]  # of the rows, on the output body in its frame
    C: Any  # factors of L
    reciprocal: Any
    rest: list[Any]  # k - b


def is_large(cluster: Cluster) -> bool:
    """Return whether a cluster with loops has at least as many independent velocities as constraint rows, and three or more."""
    return bool(cluster.dependent) and len(cluster.independent) >= max(3, len(cluster.dependent) + len(cluster.followers))


class InwardPass(NamedTuple):
    """Results of the inward pass; those of clusters are by their numbers."""

    A: ClusterPass
    large: dict[int, Solved]
    small: dict[int, ClusterSolution]
    maps: dict[int, Any]


@takes_mechanism
def aba_multipliers(mech: ClusterTree, bodies: Placements, q, v, tau, forces, result) -> None:
    """Write the independent accelerations under the independent joint forces `tau` and the `forces` on the bodies."""
    tree = mech.tree
    A, large, small, map_of = inward_pass(mech, q, v, tau, external_forces(tree, bodies, forces))
    a = [ZERO_MOTION] * len(tree.parent)
    for number, cluster in enumerate(mech.clusters):
        if number in large:
            outward_loop(mech, A, number, large[number], a, result)
        elif unconstrained(cluster):
            for k, j in enumerate(cluster.rows):
                arriving = arriving_acceleration(tree, A.X, A.c, a, j)
                result[cluster.start + k] = joint_acceleration(tree, j, A.W[j], A.d[j] * A.u[j], arriving)
                a[j] = with_joint(tree, j, A.W[j], A.d[j] * A.u[j], arriving)
        else:
            outward_cluster(mech, number, map_of[number], A.X, A.c, small[number], a, result)


def constraint_error(mech: ClusterTree, q) -> float:
    """Return the rounding error of K q'' in large loops, relative to its greatest term, under unit forces.

    It is large where bodies at the end of a loop are much lighter than others: constraint forces cancel there.
    """
    n, m = len(mech.tree.parent), len(mech.parent)
    pass_in = inward_pass(mech, q, [0.0] * m, [1.0] * m, [ZERO_FORCE] * n)
    a, result, worst = [ZERO_MOTION] * n, [0.0] * m, 0.0
    for number, S in pass_in.large.items():
        cluster, loop = mech.clusters[number], S.loop
        rates = outward_loop(mech, pass_in.A, number, S, a, result)
        left = row_rates(cluster, loop, rates, twists_of(mech, cluster, loop, rates))
        for row, x in zip(loop.rows[: len(left)], left, strict=True):
            terms = [abs(rate * (row.wrench.power(loop.twists[j]) + row.entries.get(j, 0.0))) for j, rate in rates.items()]
            worst = max(worst, abs(x) / (max(terms) + TINY))
    return worst


def inward_pass(mech: ClusterTree, q, v, tau, external) -> InwardPass:
    """Run the inward pass over all clusters."""
    tree = mech.tree
    qs = spanning_configuration(mech, q)
    X = joint_transforms(tree, qs)
    others = mech._replace(clusters=tuple(c for c in mech.clusters if not is_large(c)))
    M = maps(others, X, qs, v)
    vs = spanning_velocity(others, M, v)
    remaining, map_of, loops = iter(M), {}, {}
    for number, cluster in enumerate(mech.clusters):
        if is_large(cluster):
            loops[number] = moving_loop(mech, cluster, X, qs, v)
            for j, x in loops[number].rates.items():
                vs[j] = x
        else:
            map_of[number] = next(remaining)
    w, A = single_bodies(tree, X, vs, external)
    large: dict[int, Solved] = {}
    small: dict[int, ClusterSolution] = {}
    for number in range(len(mech.clusters) - 1, -1, -1):
        cluster = mech.clusters[number]
        if number in loops:
            turning = w[cluster.output] if cluster.output >= 0 else ZERO3
            large[number] = inward_loop(mech, A, number, loops[number], qs, turning, tau)
        elif unconstrained(cluster):
            for k in range(len(cluster.rows) - 1, -1, -1):
                inward_row(tree, A, cluster.rows[k], tau[cluster.start + k])
        else:
            small[number] = inward_cluster(mech, A, number, map_of[number], tau)
    return InwardPass(A, large, small, map_of)


def inward_loop(mech: ClusterTree, A: ClusterPass, number: int, loop: Loop, qs, turning: Vec3, tau) -> Solved:
    """Run a large cluster's part of the inward pass: add to the output body, and return the quantities for the outward pass."""
    tree, cluster = mech.tree, mech.clusters[number]
    o, P, m = cluster.output, loop.P, len(loop.rows)
    zeta = {OUTPUT: ZERO_MOTION if o >= 0 else base_acceleration(tree)}
    for j in cluster.rows:
        p = inner_parent(tree, P, j)
        zeta[j] = zeta[p] if tree.kind[j] == INNER else A.X[j] @ zeta[p] + A.c[j]
        if tree.last[j] == j:
            A.pA[j] = A.pA[j] + A.IA[j] @ zeta[j]
    joint_forces = dict.fromkeys(cluster.rows, 0.0) | {j: tau[cluster.start + k] for k, j in enumerate(cluster.independent)}
    relative = A._replace(c=[ZERO_MOTION] * len(A.c))
    Y: list[dict[int, Force]] = [{r.a: ZERO_FORCE} | {r.b: ZERO_FORCE} for r in loop.rows]
    for r, row in enumerate(loop.rows):
        Y[r][row.a] = Y[r][row.a] + row.wrench
        Y[r][row.b] = Y[r][row.b] - row.wrench
    u: list[dict[int, Any]] = [{} for _ in loop.rows]
    L = [[0.0] * m for _ in range(m)]
    rest = row_targets(mech, cluster, loop, bodies_of(loop, turning, zeta), qs)
    for j in reversed(cluster.rows):
        inward_row(tree, relative, j, joint_forces[j])
        p = inner_parent(tree, P, j)
        W = Force(P.R[j] @ A.W[j].ang, P.R[j] @ A.W[j].lin).translate(P.o[j])
        for r, row in enumerate(loop.rows):
            if j not in Y[r] and j not in row.entries:
                continue
            y = Y[r].get(j, ZERO_FORCE)
            u[r][j] = row.entries.get(j, 0.0) - y.power(loop.twists[j])
            Y[r][p] = Y[r].get(p, ZERO_FORCE) + (y + u[r][j] * W)
            x = A.d[j] * u[r][j]
            rest[r] = rest[r] - x * A.u[j]
            for s in range(r + 1):
                if j in u[s]:
                    L[r][s] = L[r][s] + x * u[s][j]
    C, reciprocal = factorize(m, L)
    at_output = [Y[r].get(OUTPUT, ZERO_FORCE).translate(ZERO3 - P.o[OUTPUT]) for r in range(m)]
    if o >= 0:
        f = solve(m, C, reciprocal, rest)
        for r in range(m):
            A.pA[o] = A.pA[o] + f[r] * at_output[r]
        A.IA[o] = apparent_cluster_inertia(A.IA[o], [0.0 - x for x in reciprocal], lower_solved(C, at_output))
    return Solved(loop, zeta, u, at_output, C, reciprocal, rest)


def outward_loop(mech: ClusterTree, A: ClusterPass, number: int, S: Solved, a, result) -> dict[int, Any]:
    """Run a large cluster's part of the outward pass; return the accelerations of all its joints."""
    tree, cluster = mech.tree, mech.clusters[number]
    m, o = len(S.u), cluster.output
    delta = {OUTPUT: a[o] if o >= 0 else ZERO_MOTION}
    f = solve(m, S.C, S.reciprocal, [S.rest[r] + S.Y[r].power(delta[OUTPUT]) for r in range(m)])
    rates = {}
    for j in cluster.rows:
        p = inner_parent(tree, S.loop.P, j)
        u = A.u[j]
        for r in range(m):
            if j in S.u[r]:
                u = u + f[r] * S.u[r][j]
        arriving = delta[p] if tree.kind[j] == INNER else A.X[j] @ delta[p]
        delta[j] = with_joint(tree, j, A.W[j], A.d[j] * u, arriving)
        a[j] = S.zeta[j] + delta[j]
        rates[j] = joint_acceleration(tree, j, A.W[j], A.d[j] * u, arriving)
    for k, j in enumerate(cluster.independent):
        result[cluster.start + k] = rates[j]
    return rates


def bodies_of(loop: Loop, turning: Vec3, zeta: dict[int, Motion]) -> dict[int, Moving]:
    """Return the motions of bodies without q'', in the axes of the output body, whose origin is at rest."""
    P, M = loop.P, {}
    for i, T in loop.T.items():
        velocity = T.lin + T.ang.cross(P.o[i]) + turning.cross(P.o[i] - P.o[OUTPUT])
        M[i] = Moving(turning + T.ang, P.R[i] @ zeta[i].ang, velocity, P.R[i] @ zeta[i].lin)
    return M


def row_targets(mech: ClusterTree, cluster: Cluster, loop: Loop, M: dict[int, Moving], qs) -> list[Any]:
    """Return k of all rows."""
    k = second_rates(loop.P, M, cluster.alignments)
    for c in cluster.closings:
        k += closing_rates(mech.tree, c, qs, loop.rates, dict.fromkeys(c.rows, 0.0))
    k = [0.0 - k[i] for i in cluster.kept]
    for f in cluster.followers:
        curvature = 0.0
        for row, _, bend in slopes(mech, f, qs):
            curvature = curvature + bend * (loop.rates[row] * loop.rates[row])
        k.append(curvature)
    return k


# geometry and velocities


def moving_loop(mech: ClusterTree, cluster: Cluster, X, qs, v) -> Loop:
    """Return a cluster at a configuration, with the velocities of its rows for independent velocities."""
    tree = mech.tree
    first = X[cluster.rows[0]].p
    P = Posed({OUTPUT: IDENTITY3}, {OUTPUT: ZERO3 - first}, {}, {})
    twists = {}
    for j in cluster.rows:
        p = inner_parent(tree, P, j)
        if tree.kind[j] == INNER:
            P.R[j], P.o[j] = P.R[p], P.o[p]
        else:
            P.R[j] = X[j].axes_in_child(P.R[p])
            P.o[j] = P.o[p] + P.R[p] @ X[j].p if p != OUTPUT else X[j].p - first
        s = unit_motion(tree.axis[j], 1.0)
        P.w[j], P.l[j] = P.R[j] @ s.ang, P.R[j] @ s.lin
        twists[j] = Motion(P.w[j], P.o[j].cross(P.w[j]) + P.l[j])
    rows = [alignment_row(P, A) for A in cluster.alignments]
    for c in cluster.closings:
        rows += [Row(OUTPUT, OUTPUT, ZERO_FORCE, entries) for entries in closing_rows(tree, cluster, c, qs)]
    rows = [rows[k] for k in cluster.kept]
    for f in cluster.followers:
        entries = {f.row: 1.0}
        for row, slope, _ in slopes(mech, f, qs):
            entries[row] = entries.get(row, 0.0) - slope
        rows.append(Row(OUTPUT, OUTPUT, ZERO_FORCE, entries))
    still = Loop(P, twists, rows, {}, {})
    y = v[cluster.start : cluster.start + len(cluster.independent)]
    rates, T = loop_velocities(mech, cluster, still, qs, y)
    return still._replace(rates=rates, T=T)


def inner_parent(tree: Tree, inside: Any, j: int) -> int:
    """Return the parent of a row if it is a row of the same cluster, otherwise OUTPUT."""
    p = tree.parent[j]
    return p if p in inside.w else OUTPUT


def alignment_row(P: Posed, A: Alignment) -> Row:
    """Return e . (p_b - p_a) or e . f as a constraint row: the wrench of its force on b."""
    e = axis(P, A.a, A.axis)
    if A.other < 0:
        wrench = Force(point(P, A.b).cross(e), e)
    else:
        wrench = Force(axis(P, A.b, A.other).cross(e), ZERO3)
    return Row(carrying_body(P, A.a), carrying_body(P, A.b), wrench, {})


def loop_velocities(mech: ClusterTree, cluster: Cluster, loop: Loop, qs, y):
    """Return the velocities of a cluster's rows, and the twists of its bodies relative to the output body."""
    given = followed_rates(mech, cluster, qs, dict(zip(cluster.independent, y, strict=True)))
    moved = twists_of(mech, cluster, loop, given)
    m = len(cluster.dependent)
    K_d = [[0.0] * m for _ in range(m)]
    for k, j in enumerate(cluster.dependent):
        unit = followed_rates(mech, cluster, qs, {j: 1.0})
        for r, x in enumerate(row_rates(cluster, loop, unit, twists_of(mech, cluster, loop, unit))):
            K_d[r][k] = x
    right = [[0.0 - x] for x in row_rates(cluster, loop, given, moved)]
    solved = [x[0] for x in solve_square(K_d, right)]
    more = followed_rates(mech, cluster, qs, dict(zip(cluster.dependent, solved, strict=True)))
    added = twists_of(mech, cluster, loop, more)
    rates = {j: given.get(j, 0.0) + more.get(j, 0.0) for j in cluster.rows}
    return rates, {j: moved[j] + added[j] for j in moved}


def followed_rates(mech: ClusterTree, cluster: Cluster, qs, rates: dict[int, Any]) -> dict[int, Any]:
    """Add the velocities of followers."""
    for f in cluster.followers:
        rates[f.row] = 0.0
        for row, slope, _ in slopes(mech, f, qs):
            rates[f.row] = rates[f.row] + slope * rates.get(row, 0.0)
    return rates


def twists_of(mech: ClusterTree, cluster: Cluster, loop: Loop, rates) -> dict[int, Motion]:
    """Return the twists of bodies relative to the output body, about the reference point."""
    T = {OUTPUT: ZERO_MOTION}
    for j in cluster.rows:
        T[j] = T[inner_parent(mech.tree, loop.P, j)] + rates.get(j, 0.0) * loop.twists[j]
    return T


def row_rates(cluster: Cluster, loop: Loop, rates, T) -> list[Any]:
    """Return the rates of the independent constraints of loops."""
    result = []
    for row in loop.rows[: len(cluster.kept)]:
        rate = row.wrench.power(T[row.b] - T[row.a])
        for j, x in row.entries.items():
            rate = rate + x * rates.get(j, 0.0)
        result.append(rate)
    return result
