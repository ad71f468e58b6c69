"""Common interface of a tree and a mechanism with loops, so that each algorithm on top of it is written once.

A system is a Tree, or a ClusterTree with its independent velocities. Both have

    parent     the tree on whose paths the inertia matrix M has its entries
    M, c + g   the inertia matrix, and the forces due to velocities and gravity
    J, J' v    the Jacobian of constraint rows, and their accelerations without joint accelerations
"""

from __future__ import annotations

from ..model.tree import Tree
from .contact.constraint_rows import row_bias_acceleration, row_jacobian
from .crba import crba
from .mechanisms.counterparts import counterpart
from .rnea import bias_force, rnea


def kernel_for(system, kernel):
    """Return the kernel itself for a tree, or its counterpart for a mechanism."""
    return kernel if isinstance(system, Tree) else counterpart(kernel)


def write_mass_matrix(system, q, H) -> None:
    """Write M."""
    kernel_for(system, crba)(system, q, H)


def write_bias_force(system, q, v, tau) -> None:
    """Write c + g."""
    kernel_for(system, bias_force)(system, q, v, tau)


def write_joint_forces(system, bodies, q, v, qdd, forces, tau) -> None:
    """Write M q'' + c + g minus the joint forces of `forces` on the bodies."""
    kernel_for(system, rnea)(system, bodies, q, v, qdd, forces, tau)


def write_row_jacobian(system, rows, q, J) -> None:
    """Write J."""
    kernel_for(system, row_jacobian)(system, rows, q, J)


def row_bias(system, rows, q, v):
    """Return J' v."""
    return kernel_for(system, row_bias_acceleration)(system, rows, q, v)
