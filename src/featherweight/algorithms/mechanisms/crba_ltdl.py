"""What follows from the inertia matrix of the independent velocities: its factors, its inverse, forward dynamics.

The matrix has the zeros of the clusters' own tree, in which the independent velocities of a cluster follow one another.
"""

from __future__ import annotations

from ...model.tree import Placements
from ...spatial import ZERO_FORCE
from ..contact.operational_space.by_factors import divide, divide_transposed
from ..kinematics import external_forces
from ..ltdl import invert_unit, ltdl_in_situ, pack, product_with_transpose
from .cluster_tree import Mechanism
from .crba import crba
from .rnea import loaded


def in_situ(mech: Mechanism, q):
    """L, with D on its diagonal."""
    n = len(mech.parent)
    H = [[0.0] * n for _ in range(n)]
    crba(mech, q, H)
    ltdl_in_situ(mech.parent, H)
    return H


def factors(mech: Mechanism, q, F) -> None:
    """The packed LTDL factors of the inertia matrix."""
    pack(mech.parent, in_situ(mech, q), F)


def solve_factored(mech: Mechanism, L, x):
    """H^-1 x."""
    y = list(x)
    divide_transposed(mech.parent, L, y)
    y = [a / L[i][i] for i, a in enumerate(y)]
    divide(mech.parent, L, y)
    return y


def crba_ltdl(mech: Mechanism, q, v, tau, result) -> None:
    """Accelerations that the independent joint forces `tau` give."""
    forward(mech, q, v, tau, [ZERO_FORCE] * len(mech.tree.parent), result)


def crba_ltdl_external(mech: Mechanism, bodies: Placements, q, v, tau, forces, result) -> None:
    """Accelerations that `tau` gives while `forces` act on the bodies."""
    forward(mech, q, v, tau, external_forces(mech.tree, bodies, forces), result)


def forward(mech: Mechanism, q, v, tau, external, result) -> None:
    """H^-1 (tau - c), with one external Force a row of the tree."""
    bias = [0.0] * len(mech.parent)
    loaded(mech, q, v, [0.0] * len(bias), external, bias)
    y = solve_factored(mech, in_situ(mech, q), [t - b for t, b in zip(tau, bias, strict=True)])
    for i, x in enumerate(y):
        result[i] = x


def inverse_by_factors(mech: Mechanism, q, inverse) -> None:
    """Write the inverse of the inertia matrix."""
    n = len(mech.parent)
    L = in_situ(mech, q)
    N = [[0.0] * n for _ in range(n)]
    invert_unit(mech.parent, L, N)
    product_with_transpose(mech.parent, N, [1.0 / L[i][i] for i in range(n)], inverse)


def solve_mass_matrix(mech: Mechanism, q, B, result) -> None:
    """Write the inverse times B."""
    L = in_situ(mech, q)
    for c in range(len(B[0])):
        for i, x in enumerate(solve_factored(mech, L, [row[c] for row in B])):
            result[i][c] = x
