"""Operational space by articulated inertias of clusters, for contacts on mechanisms with loops.

The algorithms are those of contact/operational_space/recursive.py. With the wrenches Y against the motion of the bodies of a
cluster, U and D of articulated.py, and the axes S of its joints,

    t = G^T (tau - S^T Y),   X^T Y + U D^-1 t for the handles o;   then y'' = D^-1 (t - U^T a_o),   q'' = G y''

For unit forces of a constraint this is M^-1 J^T: the extended force propagators of Chignoli et al. (section VIII, equations 62
and 67), continued to all clusters.
"""

from __future__ import annotations

from typing import Any

from ...spatial import ZERO_FORCE
from ..contact.contact_rows import Branches, ContactRows, contact_jacobian, wrench
from ..contact.operational_space import recursive
from ..contact.operational_space.by_factors import write_projector
from ..contact.operational_space.dense_factors import (
    ReducedRows,
    damp_rows,
    dot,
    gathered,
    invert,
    solve_dependent,
    spread_out,
    write_times_inverse,
)
from ..contact.operational_space.recursive import ReducedContacts, contact_accelerations, wrenches
from ..kinematics import joint_transforms
from .aba import InwardPass, accelerations, inward_pass
from .articulated import ArticulatedClusters, articulated_clusters, joint_forces, responses
from .cluster_tree import ClusterTree, unconstrained
from .counterparts import for_mechanism
from .maps import maps, spanning_configuration, write_projected
from .pv_osim import write_products
from .pv_osimr import by_branches, pv_osimr


@for_mechanism(recursive.inertia_pv_osim)
def inertia_pv_osim(mech: ClusterTree, contacts: ContactRows, q, damping, results) -> None:
    """Write (J M^-1 J^T + damping 1)^-1, and the strain."""
    result, strain = results
    A = articulated_clusters(mech, q)
    write_products(A, of_unit_forces(A, contacts), result)
    strain[0] = invert(len(contacts.owner), result, damping)


@for_mechanism(recursive.inertia_pv_osimr)
def inertia_pv_osimr(mech: ClusterTree, contacts: ContactRows, branches: Branches, q, damping, results) -> None:
    """Write (J M^-1 J^T + damping 1)^-1, and the strain."""
    result, strain = results
    pv_osimr(mech, contacts, branches, q, result)
    strain[0] = invert(len(contacts.owner), result, damping)


@for_mechanism(recursive.apply)
def apply(mech: ClusterTree, contacts: ContactRows, q, x, y) -> None:
    """Write J M^-1 J^T x without the matrix."""
    A = articulated_clusters(mech, q)
    a = responses(A, of_forces(A, contacts, x), [0.0] * len(mech.parent))
    for r, along in enumerate(motions_along(contacts, a)):
        y[r] = along


@for_mechanism(recursive.bias)
def bias(mech: ClusterTree, contacts: ContactRows, q, v, beta) -> None:
    """Write J' v - J M^-1 (c + g)."""
    inward = inward_pass(mech, q, v, [0.0] * len(mech.parent), [ZERO_FORCE] * len(mech.tree.parent))
    for r, along in enumerate(unconstrained_row_accelerations(mech, contacts, inward)):
        beta[r] = along


@for_mechanism(recursive.consistent_inverse)
def consistent_inverse(mech: ClusterTree, contacts: ContactRows, q, results) -> None:
    """Write M^-1 J^T (J M^-1 J^T)^-1, nv by m, and the strain."""
    result, strain = results
    strain[0] = write_consistent_inverse(mech, contacts, q, result)


def write_consistent_inverse(mech: ClusterTree, contacts: ContactRows, q, result):
    """Write M^-1 J^T (J M^-1 J^T)^-1. Returns the strain."""
    n, m = len(mech.parent), len(contacts.owner)
    A = articulated_clusters(mech, q)
    B = [[0.0] * n for _ in range(m)]
    columns = [motions_along(contacts, responses(A, u, B[r])) for r, u in enumerate(of_unit_forces(A, contacts))]
    return write_times_inverse(m, list(zip(*columns, strict=True)), B, result)


@for_mechanism(recursive.null_space_projector)
def null_space_projector(mech: ClusterTree, contacts: ContactRows, q, results) -> None:
    """Write 1 - M^-1 J^T (J M^-1 J^T)^-1 J, and the strain."""
    N, strain = results
    n, m = len(mech.parent), len(contacts.owner)
    inverse = [[0.0] * m for _ in range(n)]
    strain[0] = write_consistent_inverse(mech, contacts, q, inverse)
    write_projector(n, m, inverse, jacobian(mech, contacts, q), N)


@for_mechanism(recursive.constrained_pv_osim)
def constrained_pv_osim(mech: ClusterTree, reduced: ReducedRows, q, v, tau, target, damping, results) -> None:
    """Write q'', the forces f, and their strain: M q'' + c + g = tau + J^T f, J q'' + J' v + damping f = target."""
    contacts, reduction = reduced
    inward = inward_pass(mech, q, v, tau, [ZERO_FORCE] * len(mech.tree.parent))
    A = articulated(mech, inward)
    D = square(len(contacts.owner))
    write_products(A, of_unit_forces(A, contacts), D)
    damp_rows(reduction, damping, D)
    write_constrained_motion(A, ReducedContacts(contacts, reduction, D), inward, target, results)


@for_mechanism(recursive.constrained_pv_osimr)
def constrained_pv_osimr(mech: ClusterTree, reduced: ReducedRows, q, v, tau, target, damping, results) -> None:
    """Write the results of `constrained_pv_osim`, with D accumulated along the branches of the tree."""
    branched, reduction = reduced
    contacts = branched.contacts
    inward = inward_pass(mech, q, v, tau, [ZERO_FORCE] * len(mech.tree.parent))
    A = articulated(mech, inward)
    D = square(len(contacts.owner))
    by_branches(A, contacts, branched.branches, D)
    damp_rows(reduction, damping, D)
    write_constrained_motion(A, ReducedContacts(contacts, reduction, D), inward, target, results)


def write_constrained_motion(A: ArticulatedClusters, reduced: ReducedContacts, inward: InwardPass, target, results) -> None:
    """Write the accelerations with the constraint forces that meet the target, these forces, and their strain."""
    contacts, reduction = reduced.contacts, reduced.reduction
    qdd, force, strain = results
    free = unconstrained_row_accelerations(A.mech, contacts, inward)
    b = [x - y for x, y in zip(gathered(reduction, target), free, strict=True)]
    f, strain[0] = solve_dependent(len(b), reduced.D, b, reduction.dependent)
    accelerations(A.mech, with_forces(A, inward, of_forces(A, contacts, f)), qdd)
    spread_out(reduction, f, force)


# Parts


def square(m: int) -> list[list[Any]]:
    return [[0.0] * m for _ in range(m)]


def of_forces(A: ArticulatedClusters, contacts: ContactRows, f):
    """Return u of each cluster for constraint forces f."""
    return joint_forces(A, [0.0] * len(A.mech.parent), wrenches(A.mech.tree, contacts, f))


def of_unit_forces(A: ArticulatedClusters, contacts: ContactRows):
    """Return u of each cluster, for a unit force of each constraint row."""
    m = len(contacts.owner)
    return [of_forces(A, contacts, [1.0 if r == s else 0.0 for s in range(m)]) for r in range(m)]


def motions_along(contacts: ContactRows, a) -> list[Any]:
    """Return the motions along the constraint rows, for those of the rows of the tree."""
    links = [contacts.link[e] for e in contacts.owner]
    return [wrench(contacts, r).power(a[i]) if i >= 0 else 0.0 for r, i in enumerate(links)]


def unconstrained_row_accelerations(mech: ClusterTree, contacts: ContactRows, inward: InwardPass):
    """Return J q'' + J' v without constraint forces."""
    a = accelerations(mech, inward, [0.0] * len(mech.parent))
    return contact_accelerations(mech.tree, contacts, inward.rows.X, inward.w, inward.v, a)


def articulated(mech: ClusterTree, inward: InwardPass) -> ArticulatedClusters:
    """Return the articulated quantities of an inward pass."""
    rows = inward.rows
    A = ArticulatedClusters(mech, rows.X, inward.maps, dict(enumerate(rows.W)), dict(enumerate(rows.d)), {}, {}, {})
    for number, s in enumerate(inward.solved):
        if s is not None:
            A.C[number], A.reciprocal[number], A.U[number] = s.C, s.reciprocal, s.U
    return A


def with_forces(A: ArticulatedClusters, inward: InwardPass, u) -> InwardPass:
    """Return an inward pass with further forces, whose u, or C^-1 t of clusters with loops, are given."""
    rows, solved = list(inward.rows.u), list(inward.solved)
    for number, cluster in enumerate(A.mech.clusters):
        s = solved[number]
        if unconstrained(cluster):
            for j, x in zip(cluster.rows, u[number], strict=True):
                rows[j] = rows[j] + x
        else:
            assert s is not None
            t = [x + dot(s.C[i][:i], u[number][:i]) for i, x in enumerate(u[number])]
            solved[number] = s._replace(u=[x + y for x, y in zip(s.u, t, strict=True)])
    return inward._replace(rows=inward.rows._replace(u=rows), solved=solved)


def jacobian(mech: ClusterTree, contacts: ContactRows, q):
    """Return J."""
    qs = spanning_configuration(mech, q)
    whole = [[0.0] * len(mech.tree.parent) for _ in contacts.owner]
    J = [[0.0] * len(mech.parent) for _ in contacts.owner]
    contact_jacobian(mech.tree, contacts, qs, whole)
    M = maps(mech, joint_transforms(mech.tree, qs), qs)
    for on_tree, row in zip(whole, J, strict=True):
        write_projected(mech, M, on_tree, row)
    return J
