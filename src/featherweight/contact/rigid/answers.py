"""The derivative of rigid impulses by the velocities that they leave.

Impulses f and the velocities u after them satisfy f = P(f - u/rho) (`newton`), with P the projection on admissible impulses and
rho any positive number for each contact or row. With a small proximal term e, as in `newton`, rates of impulses and velocities
satisfy

    (1 - P' + e) df = -P' du / rho + e df_last         df = -G du + E df_last
    G = (1 - P' + e)⁻¹ P' / rho                          E = e (1 - P' + e)⁻¹

G is finite, and not symmetric for contacts that slide. Repeated, with df_last from the equation before, df converges to rates
that satisfy the equation without e (Rockafellar 1976), also of redundant contacts, whose impulses are not unique.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from ...array_types import Booleans, Integers, Matrix, Tensor, Vector
from ..laws import ContactLaw, project

OWN, INNER, OUTER = range(3)  # sides of a boundary between two states: sticking or closed inside, sliding or open outside
PROXIMAL = 1e-6  # e
EDGE = 1e2  # distance from another state, in units of the solver's residual, below which a contact is doubtful
EDGE_OF_GAPS = 1e-3  # distance from a change of a gap's effect, in units of slop, below which the gap counts as without effect


class RigidAnswers(NamedTuple):
    """Derivatives of the impulses of k contacts, then of joint rows."""

    G: Tensor  # (k + n, 3, 3), of joint rows the first entry
    E: Tensor  # (k + n, 3, 3)
    rho: Vector  # (k + n,) [m/s per N s]
    pushing: Booleans  # (k + n,) whether impulses change with velocities
    near: Booleans  # (k + n,) whether a contact or row is close to another state
    matters: Booleans  # (k + n,) whether the slopes of the step on both sides of the boundary to that state are different
    side: Integers  # (k + n,) OWN, INNER or OUTER: the state to take if another one is near
    sliding: Booleans  # (k,)
    aim: Vector  # (3,) [m/s] rho f - u of one contact
    projected: Vector  # (3,)
    slope: Matrix  # (3, 3) P'
    edge: Vector  # (1,) [m/s] distance from another state that is doubtful
    scale: Vector  # (1,) greatest derivative of the velocities of pushing contacts and rows, at constant acceleration


def rigid_answers(contacts: int, rows: int) -> RigidAnswers:
    """Return memory for contacts and joint rows."""
    n = contacts + rows
    G, E = np.zeros((2, n, 3, 3))
    (pushing, near, matters), side = np.zeros((3, n), bool), np.zeros(n, np.int64)
    aim, projected, edge, scale = np.zeros(3), np.zeros(3), np.zeros(1), np.zeros(1)
    sliding, slope = np.zeros(contacts, bool), np.zeros((3, 3))
    return RigidAnswers(G, E, np.zeros(n), pushing, near, matters, side, sliding, aim, projected, slope, edge, scale)


def write_rigid_answer(law: ContactLaw, c: int, rho: float, f: Vector, u: Vector, y: RigidAnswers) -> None:
    """Write G and E of contact c with impulses f (3,) and velocities u (3,) along its axes; note whether another state is near.

    G and E are those of the state that `side` names.
    """
    P, mu, G, E = y.slope, law.friction[c], y.G[c], y.E[c]
    for l in range(3):
        y.aim[l] = rho * f[l] - u[l]
    y.near[c] = is_near_another_state(law, c, y)
    if y.near[c] and y.side[c] != OWN:
        aim_beside_boundary(law, c, y)
    for l in range(3):
        y.projected[l] = y.aim[l]
    project(y.projected, mu, law.pyramid, 0, P)
    for l in range(3):
        if mu == 0.0:
            P[1, l] = P[2, l] = 0.0
    # the normal impulse depends on the normal velocity only
    first = 1.0 / (1.0 - P[0, 0] + PROXIMAL)
    a, b, d = 1.0 - P[1, 1] + PROXIMAL, -P[1, 2], 1.0 - P[2, 2] + PROXIMAL
    unit = 1.0 / (a * d - b * b)
    E[0, 0], E[0, 1], E[0, 2] = PROXIMAL * first, 0.0, 0.0
    E[1, 0], E[1, 1], E[1, 2] = PROXIMAL * first * unit * (d * P[1, 0] - b * P[2, 0]), PROXIMAL * unit * d, -PROXIMAL * unit * b
    E[2, 0], E[2, 1], E[2, 2] = PROXIMAL * first * unit * (a * P[2, 0] - b * P[1, 0]), -PROXIMAL * unit * b, PROXIMAL * unit * a
    scale = 1.0 / (PROXIMAL * rho)
    for i in range(3):
        for j in range(3):
            G[i, j] = scale * (E[i, 0] * P[0, j] + E[i, 1] * P[1, j] + E[i, 2] * P[2, j])
    y.rho[c], y.pushing[c] = rho, P[0, 0] > 0.0
    y.sliding[c] = P[0, 0] > 0.0 and mu > 0.0 and not (P[1, 1] == 1.0 and P[2, 2] == 1.0)


def is_near_another_state(law: ContactLaw, c: int, y: RigidAnswers) -> bool:
    """Return whether contact c, which aims at `aim`, is close to opening, sticking or sliding."""
    n, s, t, mu, edge = y.aim[0], abs(y.aim[1]), abs(y.aim[2]), law.friction[c], y.edge[0]
    if abs(n) <= edge:
        return True
    if n < 0.0 or mu == 0.0:
        return False
    if law.pyramid:
        return bool(abs(s - mu * n) <= edge or abs(t - mu * n) <= edge)
    return bool(abs(sqrt(s * s + t * t) - mu * n) <= edge)


def aim_beside_boundary(law: ContactLaw, c: int, y: RigidAnswers) -> None:
    """Move the aim of contact c to one side of the boundaries that are near: closed and sticking, or sliding or open."""
    n, edge, inside = y.aim[0], y.edge[0], y.side[c] == INNER
    most, beyond = law.friction[c] * n, -2.0 * edge if inside else 2.0 * edge
    if abs(n) <= edge:
        y.aim[0] = -beyond
    elif law.pyramid:
        for l in range(1, 3):
            if abs(abs(y.aim[l]) - most) <= edge:
                y.aim[l] *= max(most + beyond, 0.0) / max(abs(y.aim[l]), edge)
    else:
        factor = max(most + beyond, 0.0) / max(sqrt(y.aim[1] * y.aim[1] + y.aim[2] * y.aim[2]), edge)
        y.aim[1], y.aim[2] = factor * y.aim[1], factor * y.aim[2]


def write_rigid_row(law: ContactLaw, i: int, rho: float, f: float, u: float, y: RigidAnswers) -> None:
    """Write G and E of joint row i, and whether it is close to another state, as `write_rigid_answer` does."""
    k = len(law.friction)
    row, lower, upper, edge, aim = k + i, law.lower[i], law.upper[i], y.edge[0], rho * f - u
    y.near[row] = abs(aim - rho * lower) <= edge or abs(aim - rho * upper) <= edge
    within = rho * lower <= aim <= rho * upper
    if y.near[row] and y.side[row] != OWN:
        within = y.side[row] == INNER
    y.G[row, 0, 0], y.E[row, 0, 0] = (1.0 / (PROXIMAL * rho), 1.0) if within else (0.0, PROXIMAL / (1.0 + PROXIMAL))
    y.rho[row], y.pushing[row] = rho, within
