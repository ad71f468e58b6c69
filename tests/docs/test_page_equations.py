"""Tests of the equations of the pages on algorithms: independent code against the library.

Six-vectors are (angular, linear) and matrices are dense, so that a line here is a line of a page.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compared import delassus

import featherweight as fw
from featherweight.algorithms.kinematics import joint_transforms
from featherweight.spatial import unit_motion
from oracles.matrices import symmetric

RNG = np.random.default_rng(4)
ROBOT = fw.build(fw.generators.random_tree(8, rng=3, joint_types=("revolute", "prismatic"), masses=(0.5, 5.0)))
TREE = ROBOT.model.tree
N = len(TREE.parent)
Q, V, A, TAU = ROBOT.random_configuration(rng=1), *RNG.standard_normal((3, N))
E6 = np.eye(6)
Matrix = Any


def skew(x: Matrix) -> Matrix:
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def crm(v: Matrix) -> Matrix:
    """Return the matrix of v x for motions."""
    return np.block([[skew(v[:3]), np.zeros((3, 3))], [skew(v[3:]), skew(v[:3])]])


def crf(v: Matrix) -> Matrix:
    """Return the cross product v x* of a motion and a force."""
    return -crm(v).T


def inertia(m: float, h: Matrix, rotational: Matrix) -> Matrix:
    return np.block([[rotational, skew(h)], [skew(h).T, m * np.eye(3)]])


def above(i: int) -> list[int]:
    """Return row i and the rows that carry it, from i to the ground."""
    rows = []
    while i >= 0:
        rows.append(i)
        i = TREE.parent[i]
    return rows


def children(i: int) -> list[int]:
    return [k for k in range(N) if TREE.parent[k] == i]


X = [np.array([[*(x := (T @ unit_motion(k, 1.0))).ang, *x.lin] for k in range(6)]).T for T in joint_transforms(TREE, Q)]
S = [E6[k] for k in TREE.axis]
I = [inertia(TREE.mass[i], TREE.moment[i], symmetric(TREE.inertia[i])) for i in range(N)]
AG = np.array([0.0, 0.0, 0.0, *TREE.gravity])


def velocities() -> Matrix:
    v = np.zeros((N, 6))
    for i in range(N):
        p = TREE.parent[i]
        v[i] = (X[i] @ v[p] if p >= 0 else 0.0) + S[i] * V[i]
    return v


def composite() -> list[Matrix]:
    Ic = [x.copy() for x in I]
    for i in range(N - 1, -1, -1):
        if TREE.parent[i] >= 0:
            Ic[TREE.parent[i]] += X[i].T @ Ic[i] @ X[i]
    return Ic


def articulated() -> tuple[list[Matrix], list[Matrix], list[float]]:
    """Return Ia, W and d of aba.md."""
    IA, Ia, W, d = [x.copy() for x in I], [E6] * N, [E6[0]] * N, [0.0] * N
    for i in range(N - 1, -1, -1):
        U = IA[i] @ S[i]
        d[i] = 1.0 / (S[i] @ U)
        W[i] = d[i] * U
        Ia[i] = IA[i] - d[i] * np.outer(U, U)
        if TREE.parent[i] >= 0:
            IA[TREE.parent[i]] += X[i].T @ Ia[i] @ X[i]
    return Ia, W, d


def close(ours: Matrix, pages: Matrix) -> None:
    """Compare two doubles; the sums are short, so differences are rounding."""
    scale = np.abs(ours).max()
    np.testing.assert_allclose(pages, np.asarray(ours), rtol=1e-9, atol=1e-11 * scale)


def test_inverse_dynamics() -> None:
    v, a, f, tau = velocities(), np.zeros((N, 6)), np.zeros((N, 6)), np.zeros(N)
    for i in range(N):
        p = TREE.parent[i]
        a[i] = X[i] @ (a[p] if p >= 0 else -AG) + crm(v[i]) @ S[i] * V[i] + S[i] * A[i]
        f[i] = I[i] @ a[i] + crf(v[i]) @ I[i] @ v[i]
    for i in range(N - 1, -1, -1):
        tau[i] = S[i] @ f[i]
        if TREE.parent[i] >= 0:
            f[TREE.parent[i]] += X[i].T @ f[i]
    close(ROBOT.inverse_dynamics(Q, V, A), tau)


def test_the_force_of_a_field_of_accelerations() -> None:
    """Check the two forms of a body's force in rnea.md."""
    w, alpha, o = RNG.standard_normal((3, 3))
    m, h, rotational = TREE.mass[0], np.array(TREE.moment[0]), symmetric(TREE.inertia[0])
    second = 0.5 * np.trace(rotational) * np.eye(3) - rotational
    B = skew(alpha) + skew(w) @ skew(w)
    torque = np.cross(h, o) + sum(np.cross(second @ e, B @ e) for e in np.eye(3))
    np.testing.assert_allclose(torque, np.cross(h, o) + rotational @ alpha + np.cross(w, rotational @ w))
    np.testing.assert_allclose(m * o + B @ h, m * o + np.cross(alpha, h) + np.cross(w, np.cross(w, h)))


def test_forward_dynamics() -> None:
    v, (Ia, W, d) = velocities(), articulated()
    c = [crm(v[i]) @ S[i] * V[i] for i in range(N)]
    pA, u, a, qdd = [crf(v[i]) @ I[i] @ v[i] for i in range(N)], np.zeros(N), np.zeros((N, 6)), np.zeros(N)
    for i in range(N - 1, -1, -1):
        u[i] = TAU[i] - S[i] @ pA[i]
        if TREE.parent[i] >= 0:
            pA[TREE.parent[i]] = pA[TREE.parent[i]] + X[i].T @ (pA[i] + Ia[i] @ c[i] + W[i] * u[i])
    for i in range(N):
        p = TREE.parent[i]
        a[i] = X[i] @ (a[p] if p >= 0 else -AG) + c[i]
        qdd[i] = d[i] * u[i] - W[i] @ a[i]
        a[i] += S[i] * qdd[i]
    for algorithm in ROBOT.forward_dynamics.candidates:
        close(ROBOT.forward_dynamics(Q, V, TAU, algorithm=algorithm), qdd)


def test_mass_matrix() -> None:
    Ic, M = composite(), np.zeros((N, N))
    for i in range(N):
        F = Ic[i] @ S[i]
        M[i, i] = S[i] @ F
        for j, k in zip(above(i)[1:], above(i), strict=False):
            F = X[k].T @ F
            M[i, j] = M[j, i] = S[j] @ F
    close(ROBOT.mass_matrix(Q), M)


def test_sparse_factors() -> None:
    M, D = ROBOT.mass_matrix(Q), np.zeros(N)
    H, L = np.array(M), np.eye(N)
    for k in range(N - 1, -1, -1):
        D[k] = H[k, k]
        for i in above(k)[1:]:
            a = H[k, i] / H[k, k]
            for j in above(i):
                H[i, j] -= H[k, j] * a
            L[k, i] = a
    close(ROBOT.factorize(Q).L, L)
    close(M, L.T @ np.diag(D) @ L)


def arrivals(W: list[Matrix], k: int, Y: Matrix) -> dict[int, tuple[float, Matrix]]:
    """Return u and Y at each row above k, for a wrench Y that passes from row k to its parent."""
    found = {}
    for i, below in zip(above(k)[1:], above(k), strict=False):
        Y = X[below].T @ Y
        found[i] = (-S[i] @ Y, Y)
        Y = Y + found[i][0] * W[i]
    return found


def mobilities(W: list[Matrix], d: list[float]) -> tuple[list[Matrix], list[Matrix], list[float]]:
    """Return O, R and e of inverse-mass-matrix.md, in the frames of the bodies."""
    O, R, e = [np.zeros((6, 6))] * N, [np.zeros(6)] * N, [0.0] * N
    for i in range(N):
        held = X[i] @ O[TREE.parent[i]] @ X[i].T if TREE.parent[i] >= 0 else np.zeros((6, 6))
        R[i] = held @ W[i]
        e[i] = d[i] + R[i] @ W[i]
        g = e[i] / 2 * S[i] - R[i]
        O[i] = held + np.outer(S[i], g) + np.outer(g, S[i])
    return O, R, e


def test_inverse_mass_matrix() -> None:
    _, W, d = articulated()
    O, R, e = mobilities(W, d)
    u = np.eye(N)
    wholly, entries = np.zeros((N, N)), np.diag(e)
    for k in range(N):
        for i, (left, Y) in arrivals(W, k, W[k]).items():
            u[k, i] = left
            entries[i, k] = entries[k, i] = (R[i] - e[i] * S[i]) @ Y
    for k in range(N):
        for l in range(N):
            common = [i for i in above(k) if i in above(l)]
            wholly[k, l] = sum(u[k, i] * d[i] * u[l, i] for i in common)
            if common and common[0] not in (k, l):
                c = common[0]
                entries[k, l] = arrivals(W, k, W[k])[c][1] @ O[c] @ arrivals(W, l, W[l])[c][1]
    for algorithm in ROBOT.inverse_mass_matrix.candidates:
        inverse = ROBOT.inverse_mass_matrix(Q, algorithm=algorithm)
        close(inverse, wholly)
        close(inverse, entries)


LEAVES = [i for i in range(N) if not children(i)]
CONTACTS = [fw.BilateralContact(ROBOT.bodies[i].name) for i in LEAVES]


def wrenches() -> list[tuple[int, Matrix]]:
    """Return the row of each constraint, and K^T there."""
    rows = ROBOT.operational_space(CONTACTS)._read
    return [(rows.link[rows.owner[r]], np.array(rows.wrench[r])) for r in range(len(rows.owner))]


def propagators(W: list[Matrix]) -> list[Matrix]:
    return [X[i].T @ (E6 - np.outer(W[i], S[i])) for i in range(N)]


def test_delassus_by_pv_osim() -> None:
    _, W, d = articulated()
    K = wrenches()
    u = np.zeros((len(K), N))
    for r, (link, Y) in enumerate(K):
        u[r, link] = -S[link] @ Y
        for i, (left, _) in arrivals(W, link, Y + u[r, link] * W[link]).items():
            u[r, i] = left
    for algorithm in ("pv-osim", "efpa", "kjr", "ltl", "dense", "pv-osimr"):
        close(delassus(ROBOT, CONTACTS, algorithm)(Q), u @ np.diag(d) @ u.T)


def carried(P: list[Matrix], K: list[tuple[int, Matrix]]) -> list[dict[int, Matrix]]:
    """Return K^T of each constraint at each row above."""
    found = []
    for link, Y in K:
        at = {link: Y}
        for i, below in zip(above(link)[1:], above(link), strict=False):
            at[i] = P[below] @ at[below]
        found.append(at)
    return found


def test_delassus_by_efpa_and_kjr() -> None:
    _, W, d = articulated()
    P, K = propagators(W), wrenches()
    at, pairs = carried(P, K), range(len(K))
    D, by_pairs = np.zeros((len(K), len(K))), np.zeros((len(K), len(K)))
    a: list[dict[int, Matrix]] = [{} for _ in K]
    omega = [np.zeros((6, 6))] * N
    for i in range(N):
        p = TREE.parent[i]
        omega[i] = (P[i].T @ omega[p] @ P[i] if p >= 0 else 0.0) + d[i] * np.outer(S[i], S[i])
        for r in pairs:
            if i in at[r]:
                a[r][i] = (P[i].T @ a[r][p] if p >= 0 else 0.0) + S[i] * d[i] * (S[i] @ at[r][i])
    for r in pairs:
        for s in pairs:
            c = max((i for i in at[r] if i in at[s]), default=-1)
            if c >= 0:
                D[r, s] = at[r][c] @ a[s][c]
                below = omega[c]
                for i in [i for i in above(K[r][0])[::-1] if i > c]:
                    below = P[i].T @ below
                by_pairs[r, s] = K[r][1] @ below @ at[s][c]
    close(ROBOT.delassus(CONTACTS, "efpa")(Q), D)
    close(ROBOT.delassus(CONTACTS, "kjr")(Q), by_pairs)


def test_delassus_by_pv_osimr() -> None:
    _, W, d = articulated()
    P, K = propagators(W), wrenches()
    branching = [i for i in range(N) if len(children(i)) > 1]
    omega: dict[int, Matrix] = {}
    for b in branching:
        across, total, i = E6, np.zeros((6, 6)), b
        while i >= 0 and (i == b or i not in branching):
            total = total + across.T @ np.outer(S[i], S[i]) @ across * d[i]
            across = P[i] @ across
            i = TREE.parent[i]
        omega[b] = total if i < 0 else total + across.T @ omega[i] @ across
    at, D = carried(P, K), ROBOT.delassus(CONTACTS, "pv-osimr")(Q)
    met = 0
    for r in range(len(K)):
        for s in range(len(K)):
            c = max((i for i in at[r] if i in at[s]), default=-1)
            if c in branching and K[r][0] != K[s][0]:
                np.testing.assert_allclose(D[r, s], at[r][c] @ omega[c] @ at[s][c], rtol=1e-9, atol=1e-11 * np.abs(D).max())
                met += 1
    assert met > 0


def in_the_world() -> tuple[list[Matrix], list[Matrix], list[Matrix]]:
    """Return S, composite inertias and velocities on the world's axes and about its origin; and N of derivatives.md."""
    X0: list[Matrix] = []
    for i in range(N):
        X0.append(X[i] @ X0[TREE.parent[i]] if TREE.parent[i] >= 0 else X[i])
    axes = [np.linalg.solve(X0[i], S[i]) for i in range(N)]
    bodies = [X0[i].T @ I[i] @ X0[i] for i in range(N)]
    v = [np.linalg.solve(X0[i], x) for i, x in enumerate(velocities())]
    return axes, bodies, v


def forces_of_turning(I: Matrix, v: Matrix) -> Matrix:
    """Return N of a body, 6 by 3: the sum of [r x (m x x r'); m x x r'], with r' = v + w x r."""
    m, h = I[5, 5], np.array([I[2, 4], I[0, 5], I[1, 3]])
    second = 0.5 * np.trace(I[:3, :3]) * np.eye(3) - I[:3, :3]
    swept = np.outer(v[3:], h) + skew(v[:3]) @ second  # the sum of m r' r^T
    return np.vstack([np.trace(swept) * np.eye(3) - swept, -skew(m * v[3:] + np.cross(v[:3], h))])


def sums(parts: list[Matrix]) -> list[Matrix]:
    """Return the sums over all bodies that a row carries."""
    whole = [np.array(x) for x in parts]
    for i in range(N - 1, -1, -1):
        if TREE.parent[i] >= 0:
            whole[TREE.parent[i]] += whole[i]
    return whole


def test_derivatives_of_inverse_dynamics() -> None:
    S0, I0, v = in_the_world()
    a, net = [np.zeros(6)] * N, [np.zeros(6)] * N
    psi1, psi2, Sv = [np.zeros((N, 6)) for _ in range(3)]
    for j in range(N):
        p = TREE.parent[j]
        vp, ap = (v[p], a[p]) if p >= 0 else (np.zeros(6), -AG)
        psi1[j] = crm(vp) @ S0[j]
        psi2[j] = crm(ap) @ S0[j] + crm(vp) @ psi1[j]
        Sv[j] = psi1[j] + crm(v[j]) @ S0[j]
        a[j] = ap + crm(v[j]) @ S0[j] * V[j] + S0[j] * A[j]
        net[j] = I0[j] @ a[j] + crf(v[j]) @ I0[j] @ v[j]
    Ic, f, turning = sums(I0), sums(net), sums([forces_of_turning(I0[j], v[j]) for j in range(N)])
    dq, dv = np.zeros((N, N)), np.zeros((N, N))
    for j in range(N):
        for i in above(j):
            dq[i, j] = S0[i] @ (Ic[j] @ psi2[j] + 2 * turning[j] @ psi1[j][:3] + crf(S0[j]) @ f[j])
            dv[i, j] = S0[i] @ (Ic[j] @ Sv[j] + 2 * turning[j] @ S0[j][:3])
            if i != j:
                dq[j, i] = (Ic[j] @ S0[j]) @ psi2[i] + 2 * (turning[j].T @ S0[j]) @ psi1[i][:3]
                dv[j, i] = (Ic[j] @ S0[j]) @ Sv[i] + 2 * (turning[j].T @ S0[j]) @ S0[i][:3]
    ours = ROBOT.inverse_dynamics_derivatives(Q, V, A)
    close(ours.dtau_dq, dq)
    close(ours.dtau_dv, dv)


def test_coriolis_matrix() -> None:
    S0, I0, v = in_the_world()
    Ic, turning = sums(I0), sums([forces_of_turning(I0[j], v[j]) for j in range(N)])
    rate = [crm(v[j]) @ S0[j] for j in range(N)]
    C = np.zeros((N, N))
    for j in range(N):
        for i in above(j):
            C[i, j] = S0[i] @ (Ic[j] @ rate[j] + turning[j] @ S0[j][:3])
            if i != j:
                C[j, i] = (Ic[j] @ S0[j]) @ rate[i] + (turning[j].T @ S0[j]) @ S0[i][:3]
    close(ROBOT.coriolis_matrix(Q, V), C)
    close(ROBOT.bias_force(Q, V), C @ V + ROBOT.gravity_force(Q))


def test_centroidal_map() -> None:
    S0, I0, _ = in_the_world()
    Ic, c = sums(I0), np.asarray(ROBOT.center_of_mass(Q))
    to_center = np.block([[np.eye(3), -skew(c)], [np.zeros((3, 3)), np.eye(3)]])  # transform of forces
    columns = np.array([to_center @ Ic[j] @ S0[j] for j in range(N)]).T
    close(ROBOT.centroidal_map(Q), np.vstack([columns[3:], columns[:3]]))


@pytest.mark.parametrize("size", [0.3, 2.5])
def test_steps_on_the_manifold(size: float) -> None:
    body = fw.build(fw.generators.chain(1, joint="floating"))
    l, w = size * RNG.standard_normal((2, 3))
    h = np.linalg.norm(w) / 2
    sinc, sinc2 = np.sin(h) / h, np.sin(2 * h) / (2 * h)
    moved = sinc2 * l + 0.5 * sinc**2 * np.cross(w, l) + (1 - sinc2) / (4 * h**2) * w * (w @ l)
    q = np.asarray(body.integrate(body.neutral(), np.concatenate([l, w])))
    close(q[:3], moved)
    close(q[3:] * np.sign(q[6] * np.cos(h)), np.array([*(0.5 * w * sinc), np.cos(h)]))
    back = moved - 0.5 * np.cross(w, moved) + (1 - h / np.tan(h)) / (4 * h**2) * np.cross(w, np.cross(w, moved))
    close(l, back)
