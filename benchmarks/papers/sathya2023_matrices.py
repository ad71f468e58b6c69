"""PV-OSIM and PV-OSIMr in the form of the paper, with 6 by 6 matrices, to explain differences between the counts.

The paper made its counts in this way (section IV-A): link frames, one matrix product after the other, zeros left out, and one
6 by 6 inverse for a floating base. Frames and branching links are those of the library's functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from featherweight import BilateralContact, Frame, Robot
from featherweight.algorithms.contact.contact_rows import Branches, ContactRows
from featherweight.engine.operations import Operations
from featherweight.engine.trace import count, trace
from featherweight.model.tree import FLOATING, INNER, Tree
from featherweight.spatial import sincos

Matrix = np.ndarray[Any, np.dtype[Any]]  # entries are numbers or traced expressions


def operations(robot: Robot, contacts: Sequence[BilateralContact], algorithm: str) -> Operations:
    """Return the operations, counted in the trace as those of the library's functions."""
    return count(trace(lambda q: [x for row in delassus(robot, contacts, algorithm, q) for x in row], [robot.nq]))


def delassus(robot: Robot, contacts: Sequence[BilateralContact], algorithm: str, q: Any) -> Matrix:
    """Return the Delassus matrix by "pv-osim" or "pv-osimr". "links first" is the latter for six constraints on each link,
    multiplied by the rows of the contacts at the end."""
    if algorithm == "links first":
        return links_first(robot, contacts, q)
    tree, made, branches = robot.delassus(contacts, "pv-osimr").program.kernels[0].constants
    straight = algorithm == "pv-osim"
    return by_matrices(tree, made, None if straight else branches, q)


def by_matrices(tree: Tree, contacts: ContactRows, branches: Branches | None, q: Any) -> Matrix:
    """Return the matrix by algorithm 1, or with branching links by algorithm 3."""
    m = len(contacts.owner)
    at = [] if branches is None else list(branches.row[:-1])
    first, passing = (contacts.first, contacts.supported) if branches is None else (branches.first, branches.passing)
    size = m + 6 * len(at)
    K = array([contacts.wrench[r] if r < m else [0.0] * 6 for r in range(size)])
    L = array([[0.0] * size for _ in range(size)])
    omega: dict[int, Matrix] = {}
    H = [link_inertia(tree, i) for i in range(len(tree.parent))]
    for i in reversed(range(len(tree.parent))):
        if (tree.kind[i] == INNER and i != tree.last[i]) or tree.kind[i] == FLOATING:
            continue
        k = at.index(i) if i in at else -1
        if k >= 0:
            K[m + 6 * k : m + 6 * k + 6] = array(np.eye(6).tolist())
        columns = [passing[a] for a in range(first[i], first[i + 1])]
        if tree.kind[i] == INNER:
            base = inverse(H[i])
            add_symmetric(L, columns, K[columns] @ base if k < 0 else base, K[columns])
            continue
        S = array([float(a == tree.axis[i]) for a in range(6)])
        U = H[i] @ S
        d = 1.0 / (S @ U)
        FS = K[columns] @ S
        add_symmetric(L, columns, (FS * d)[:, None], FS[:, None])
        p = tree.parent[i]
        if p >= 0:
            X = link_transform(tree, i, q)
            H[p] = H[p] + symmetric_product(X.T @ (H[i] - lower_outer(U * d, U)), X)
            if columns:
                K[columns] = (K[columns] - np.outer(FS * d, U)) @ X
    if branches is None:
        return mirrored(L)
    for k in range(len(at)):
        own, above = list(range(m + 6 * k, m + 6 * k + 6)), branches.above[k]
        if above >= 0:
            add_symmetric(L, own, K[own] @ omega[above], K[own])
        omega[k] = mirrored(L[np.ix_(own, own)])
    return blocks(contacts, branches, K, L, omega)


def blocks(contacts: ContactRows, branches: Branches, K: Matrix, L: Matrix, omega: dict[int, Matrix]) -> Matrix:
    """Return the matrix by lines 18 to 28 of algorithm 3."""
    m = len(contacts.owner)
    D = L[:m, :m].copy()
    at: dict[tuple[int, int], Matrix] = {}  # the rows of end-effector e at branching link k
    rows = [list(range(contacts.begin[e], contacts.begin[e + 1])) for e in range(len(contacts.link))]
    for e, own in enumerate(rows):
        k, there = branches.end_above[e], K[own]
        while k >= 0:
            at[e, k] = there
            if branches.above[k] >= 0:
                there = there @ K[m + 6 * k : m + 6 * k + 6]
            k = branches.above[k]
    moved = {key: there @ omega[key[1]] for key, there in at.items()}
    for e, own in enumerate(rows):
        for f in range(e + 1):
            k = branches.meet[e][f]
            if k >= 0:
                D[np.ix_(own, rows[f])] = D[np.ix_(own, rows[f])] + at[e, k] @ moved[f, k].T
    return mirrored(D)


def links_first(robot: Robot, contacts: Sequence[BilateralContact], q: Any) -> Matrix:
    frames = list(dict.fromkeys(c.frame for c in contacts))
    D = delassus(robot, [BilateralContact(frame) for frame in frames], "pv-osimr", q)
    rows = array(np.vstack([rows_on_link(c, frames) for c in contacts]).tolist())
    product = array([[0.0] * len(rows) for _ in rows])
    add_symmetric(product, list(range(len(rows))), rows @ D, rows)
    return mirrored(product)


def rows_on_link(contact: BilateralContact, frames: Sequence[Frame | str]) -> Matrix:
    """Return the contact's rows on the velocities (linear, angular) of all frames."""
    R, (x, y, z) = np.array(contact.pose.R).T, contact.pose.p
    there = np.block([[R, -R @ [[0, -z, y], [z, 0, -x], [-y, x, 0]]], [np.zeros((3, 3)), R]])
    rows: Matrix = np.zeros((contact.size, 6 * len(frames)))
    k = 6 * frames.index(contact.frame)
    rows[:, k : k + 6] = contact.matrix @ there + 0.0
    return rows


def array(rows: Any) -> Matrix:
    return np.array(rows, dtype=object)


def add_symmetric(L: Matrix, columns: list[int], left: Matrix, right: Matrix) -> None:
    """Add the symmetric product of left and the transpose of right, below the diagonal."""
    for a, r in enumerate(columns):
        for b, s in enumerate(columns[: a + 1]):
            L[r, s] = L[r, s] + left[a] @ right[b]


def symmetric_product(A: Matrix, B: Matrix) -> Matrix:
    product = array([[0.0] * len(A) for _ in A])
    add_symmetric(product, list(range(len(A))), A, B.T)
    return mirrored(product)


def lower_outer(a: Matrix, b: Matrix) -> Matrix:
    """Return the lower triangle of a symmetric outer product."""
    return symmetric_product(a[:, None], b[None, :])


def mirrored(A: Matrix) -> Matrix:
    return array([[A[max(i, j), min(i, j)] for j in range(len(A))] for i in range(len(A))])


def inverse(A: Matrix) -> Matrix:
    """Return the inverse of a symmetric positive definite matrix by L D L^T."""
    n = len(A)
    L, d = array(np.eye(n).tolist()), [0.0] * n
    for i in range(n):
        scaled = [0.0] * i
        for j in range(i):
            scaled[j] = A[i, j] - sum((scaled[k] * L[j, k] for k in range(j)), 0.0)
            L[i, j] = scaled[j] * d[j]
        d[i] = 1.0 / (A[i, i] - sum((scaled[k] * L[i, k] for k in range(i)), 0.0))
    columns = array(np.eye(n).tolist())
    for i in range(n):
        for j in range(i):
            columns[i, j] = 0.0 - sum((L[i, k] * columns[k, j] for k in range(j, i)), 0.0)
    return symmetric_product(array([[columns[k, i] * d[k] for k in range(n)] for i in range(n)]), columns)


def link_inertia(tree: Tree, i: int) -> Matrix:
    """Return the inertia of a link (6, 6), angular before linear."""
    m, (hx, hy, hz), (xx, xy, xz, yy, yz, zz) = tree.mass[i], tree.moment[i], tree.inertia[i]
    rows = [[xx, xy, xz, 0.0, -hz, hy], [xy, yy, yz, hz, 0.0, -hx], [xz, yz, zz, -hy, hx, 0.0]]
    rows += [[0.0, hz, -hy, m, 0.0, 0.0], [-hz, 0.0, hx, 0.0, m, 0.0], [hy, -hx, 0.0, 0.0, 0.0, m]]
    return array(rows)


def link_transform(tree: Tree, i: int, q: Any) -> Matrix:
    """Return the transform of motion vectors from the parent's frame to that of a revolute joint."""
    E, (x, y, z) = np.array(tree.rotation[i]).T, tree.translation[i]
    fixed = array(np.block([[E, np.zeros((3, 3))], [-E @ [[0, -z, y], [z, 0, -x], [-y, x, 0]], E]]).tolist())
    s, c = sincos(q[tree.q_index[i]])
    turn = array(np.eye(6).tolist())
    for a in (0, 3):
        turn[a : a + 2, a : a + 2] = array([[c, s], [-s, c]])
    return turn @ fixed
