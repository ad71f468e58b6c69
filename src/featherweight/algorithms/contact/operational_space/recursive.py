"""Operational space by articulated inertias, for contacts: forces are passed inwards, accelerations outwards.

With the wrench Y against each body's motion, u_i = tau_i - S^T Y_i, and X^T (Y_i + u_i W_i) for the parent; then q''_i = d_i
u_i - W_i^T X a_p. For unit forces of a constraint this is M^-1 J^T: the extended force propagators of Wensing, Featherstone
and Orin (2012), continued to all joints.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....model.tree import Tree
from ....spatial import ZERO3, ZERO_FORCE, Motion
from ...aba import accelerations, articulated_bodies
from ...articulated import articulated_inertias, joint_forces, responses
from ...kinematics import base_acceleration, joint_transforms, spatial_velocities, velocity_products
from ..constraint_rows import ConstraintRows, unit_wrenches, write_entries
from ..contact_rows import Branches, ContactRows, contact_jacobian, wrench
from ..delassus.pv_osim import by_pairs, pv_osim
from ..delassus.pv_osimr import by_branches, pv_osimr
from .by_factors import write_products, write_projector
from .dense_factors import (
    ReducedRows,
    Reduction,
    damp_rows,
    gathered,
    invert,
    solve_dependent,
    spread_out,
    write_times_inverse,
)


def inertia_pv_osim(tree: Tree, contacts: ContactRows, q, damping, results) -> None:
    """Write (J M^-1 J^T + damping 1)^-1, and the strain."""
    result, strain = results
    pv_osim(tree, contacts, q, result)
    strain[0] = invert(len(contacts.owner), result, damping)


def inertia_pv_osimr(tree: Tree, contacts: ContactRows, branches: Branches, q, damping, results) -> None:
    """Write (J M^-1 J^T + damping 1)^-1, and the strain."""
    result, strain = results
    pv_osimr(tree, contacts, branches, q, result)
    strain[0] = invert(len(contacts.owner), result, damping)


def pv_osim_rows(tree: Tree, rows: ConstraintRows, q, D) -> None:
    """Write J M^-1 J^T for any rows: u of unit forces of the rows, and one product for each pair and joint."""
    n, m = len(tree.parent), len(rows.K)
    X = joint_transforms(tree, q)
    W, d = articulated_inertias(tree, X)
    F = unit_wrenches(tree, rows, X)
    tau = [[0.0] * n for _ in range(m)]
    write_entries(rows.entries, q, tau)
    u = [[0.0] * n for _ in range(m)]
    for r in range(m):
        u[r] = joint_forces(tree, X, W, tau[r], [ZERO_FORCE - F[r][i] for i in range(n)])
    write_products(n, m, u, d, D)


def wrenches(tree: Tree, contacts: ContactRows, f):
    """Return the wrenches of constraint forces f against the motion of each row: their negatives."""
    Y = [ZERO_FORCE] * len(tree.parent)
    for r in range(len(contacts.owner)):
        i = contacts.link[contacts.owner[r]]
        if i >= 0:
            Y[i] = Y[i] - f[r] * wrench(contacts, r)
    return Y


def apply(tree: Tree, contacts: ContactRows, q, x, y) -> None:
    """Write J M^-1 J^T x without the matrix."""
    n = len(tree.parent)
    X = joint_transforms(tree, q)
    W, d = articulated_inertias(tree, X)
    u = joint_forces(tree, X, W, [0.0] * n, wrenches(tree, contacts, x))
    a = responses(tree, X, W, d, u, [0.0] * n)
    for r in range(len(contacts.owner)):
        i = contacts.link[contacts.owner[r]]
        y[r] = wrench(contacts, r).power(a[i]) if i >= 0 else 0.0


def bias(tree: Tree, contacts: ContactRows, q, v, beta) -> None:
    """Write J' v - J M^-1 (c + g)."""
    b = unconstrained_row_accelerations(tree, contacts, inward_pass(tree, q, v, [0.0] * len(tree.parent)), v)
    for r in range(len(contacts.owner)):
        beta[r] = b[r]


class InwardPass(NamedTuple):
    """Results of unconstrained forward dynamics up to the joint forces u, which `aba.accelerations` continues outwards."""

    X: Any
    w: Any  # angular velocities
    c: Any  # velocity-product accelerations
    W: Any
    d: Any
    u: Any


def inward_pass(tree: Tree, q, v, tau) -> InwardPass:
    X = joint_transforms(tree, q)
    w, c = velocity_products(tree, X, v)
    W, d, u = articulated_bodies(tree, X, w, c, tau, [ZERO_FORCE] * len(tree.parent))
    return InwardPass(X, w, c, W, d, u)


def unconstrained_row_accelerations(tree: Tree, contacts: ContactRows, A: InwardPass, v):
    """Return J q'' + J' v without constraint forces."""
    a = accelerations(tree, A.X, A.c, A.W, A.d, A.u, [0.0] * len(tree.parent))
    return contact_accelerations(tree, contacts, A.X, A.w, v, a)


def contact_accelerations(tree: Tree, contacts: ContactRows, X, w, v, a):
    """Return J q'' + J' v, for accelerations a of the rows of the tree on a ground that accelerates upwards."""
    n = len(tree.parent)
    m = len(contacts.owner)
    up = [ZERO3] * n
    velocities = spatial_velocities(tree, X, v)
    for j in range(n):
        p = tree.parent[j]
        up[j] = X[j].rotate_to_child(up[p] if p >= 0 else base_acceleration(tree).lin)
    b = [0.0] * m
    for r in range(m):
        i = contacts.link[contacts.owner[r]]
        if i >= 0:
            b[r] = wrench(contacts, r).power(Motion(a[i].ang, a[i].lin - up[i] - w[i].cross(velocities[i].lin)))
    return b


def consistent_inverse(tree: Tree, contacts: ContactRows, q, results) -> None:
    """Write M^-1 J^T (J M^-1 J^T)^-1, n by m, and the strain."""
    result, strain = results
    strain[0] = write_consistent_inverse(tree, contacts, q, result)


def write_consistent_inverse(tree: Tree, contacts: ContactRows, q, result):
    """Write M^-1 J^T (J M^-1 J^T)^-1. Returns the strain."""
    n, m = len(tree.parent), len(contacts.owner)
    X = joint_transforms(tree, q)
    W, d = articulated_inertias(tree, X)
    B = [[0.0] * n for _ in range(m)]
    D = [[0.0] * m for _ in range(m)]
    for r in range(m):
        unit = [0.0] * m
        unit[r] = 1.0
        u = joint_forces(tree, X, W, [0.0] * n, wrenches(tree, contacts, unit))
        a = responses(tree, X, W, d, u, B[r])
        for s in range(r, m):
            i = contacts.link[contacts.owner[s]]
            D[s][r] = wrench(contacts, s).power(a[i]) if i >= 0 else 0.0
    return write_times_inverse(m, D, B, result)


def null_space_projector(tree: Tree, contacts: ContactRows, q, results) -> None:
    """Write 1 - M^-1 J^T (J M^-1 J^T)^-1 J, and the strain."""
    N, strain = results
    n, m = len(tree.parent), len(contacts.owner)
    inverse = [[0.0] * m for _ in range(n)]
    J = [[0.0] * n for _ in range(m)]
    strain[0] = write_consistent_inverse(tree, contacts, q, inverse)
    contact_jacobian(tree, contacts, q, J)
    write_projector(n, m, inverse, J, N)


def constrained_pv_osim(tree: Tree, reduced: ReducedRows, q, v, tau, target, damping, results) -> None:
    """Write q'', the forces f, and their strain: M q'' + c + g = tau + J^T f, J q'' + J' v + damping f = target."""
    contacts, reduction = reduced
    m = len(contacts.owner)
    A = inward_pass(tree, q, v, tau)
    D = [[0.0] * m for _ in range(m)]
    by_pairs(tree, contacts, A.X, A.W, A.d, D)
    damp_rows(reduction, damping, D)
    write_constrained_motion(tree, ReducedContacts(contacts, reduction, D), A, v, target, results)


def constrained_pv_osimr(tree: Tree, reduced: ReducedRows, q, v, tau, target, damping, results) -> None:
    """Write the results of `constrained_pv_osim`, with D accumulated along the branches of the tree."""
    branched, reduction = reduced
    contacts = branched.contacts
    m = len(contacts.owner)
    A = inward_pass(tree, q, v, tau)
    D = [[0.0] * m for _ in range(m)]
    by_branches(tree, contacts, branched.branches, A.X, A.W, A.d, D)
    damp_rows(reduction, damping, D)
    write_constrained_motion(tree, ReducedContacts(contacts, reduction, D), A, v, target, results)


class ReducedContacts(NamedTuple):
    """Contacts with independent rows, the map between these and all rows, and their Delassus matrix."""

    contacts: ContactRows
    reduction: Reduction
    D: Any


def write_constrained_motion(tree: Tree, reduced: ReducedContacts, A: InwardPass, v, target, results) -> None:
    """Write the accelerations with the constraint forces that meet the target, these forces, and their strain."""
    contacts, reduction = reduced.contacts, reduced.reduction
    qdd, force, strain = results
    n, m = len(tree.parent), len(contacts.owner)
    b = unconstrained_row_accelerations(tree, contacts, A, v)
    wanted = gathered(reduction, target)
    for r in range(m):
        b[r] = wanted[r] - b[r]
    f, strain[0] = solve_dependent(m, reduced.D, b, reduction.dependent)
    du = joint_forces(tree, A.X, A.W, [0.0] * n, wrenches(tree, contacts, f))
    accelerations(tree, A.X, A.c, A.W, A.d, [A.u[i] + du[i] for i in range(n)], qdd)
    spread_out(reduction, f, force)
