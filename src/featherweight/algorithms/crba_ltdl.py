"""Forward dynamics through the joint-space inertia matrix: CRBA, LTDL and back-substitution (Featherstone 2005)."""

from __future__ import annotations

from ..model.tree import Placements, Tree
from ..spatial import ZERO_FORCE
from .crba import crba
from .kinematics import external_forces
from .ltdl import ltdl_in_situ, pack, row_starts, solve
from .rnea import newton_euler


def factors(tree: Tree, q, F) -> None:
    """The packed LTDL factors of the inertia matrix."""
    n = len(tree.parent)
    H = [[0.0] * n for _ in range(n)]
    crba(tree, q, H)
    ltdl_in_situ(tree.parent, H)
    pack(tree.parent, H, F)


def forward_dynamics(tree: Tree, q, v, tau, external, qdd) -> None:
    """H q'' = tau - c for the bias force c, solved with the sparse factors of H."""
    n = len(tree.parent)
    bias = [0.0] * n
    newton_euler(tree, q, v, [0.0] * n, external, bias)
    H = [[0.0] * n for _ in range(n)]
    starts = row_starts(tree.parent)
    F = [0.0] * (starts[n - 1] + n)
    crba(tree, q, H)
    ltdl_in_situ(tree.parent, H)
    pack(tree.parent, H, F)
    for i in range(n):
        bias[i] = tau[i] - bias[i]
    solve(tree.parent, 1, F, bias, qdd)


def crba_ltdl(tree: Tree, q, v, tau, qdd) -> None:
    """Accelerations that the joint forces `tau` give."""
    forward_dynamics(tree, q, v, tau, [ZERO_FORCE] * len(tree.parent), qdd)


def crba_ltdl_external(tree: Tree, bodies: Placements, q, v, tau, forces, qdd) -> None:
    """Accelerations that the joint forces `tau` give while `forces` act on the bodies."""
    forward_dynamics(tree, q, v, tau, external_forces(tree, bodies, forces), qdd)
