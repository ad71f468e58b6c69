"""Kernels for trees that serve mechanisms with loops on the motion of the spanning tree: frames, momentum, regressors.

The tree moves by q' = G y' and q'' = G y'' + g, where y' and y'' are the independent velocities and accelerations. Regressors
of a mechanism are G^T Y_tree, because tau = G^T tau_tree. Its Coriolis matrix is G^T (C G + M G'), with C and M of the tree:
the forces are those of the tree's velocities, G^T (C q' + M g), because g = G' y', and M' = C + C^T holds for (G^T M G)' too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...model.tree import Placements
from .. import centroidal, centroidal_rates, energy, frames, regressors, relative_frames
from ..inverse_kinematics import iteration, task_rows
from ..regressors import PARAMETERS, JointColumns
from .cluster_tree import ClusterTree
from .counterparts import for_mechanism, takes_mechanism
from .maps import spanning_acceleration, spanning_configuration, write_projected
from .spanning import expanded, mapped

ACCELERATIONS = ("a", "qdd")


def registered(kernel: Callable[..., None], of_mechanism: Callable[..., None]) -> Callable[..., None]:
    """Register and return the counterpart of a kernel for trees; it has the kernel's name here, where `pickle` finds it."""
    functools.update_wrapper(of_mechanism, kernel, updated=())
    of_mechanism.__module__, of_mechanism.__qualname__ = __name__, kernel.__name__
    globals()[kernel.__name__] = of_mechanism
    return for_mechanism(kernel)(of_mechanism)


def on_spanning_tree(kernel: Callable[..., None]) -> Callable[..., None]:
    """Register and return the kernel for mechanisms that calls a kernel for trees with the motion of the spanning tree.

    The arguments q, v and a (or qdd) of the kernel are the motion; others are passed on.
    """
    names = kernel.__code__.co_varnames[1 : kernel.__code__.co_argcount]

    def of_mechanism(mech: ClusterTree, *arguments: Any) -> None:
        given = dict(zip(names, arguments, strict=True))
        if "v" not in given:
            given["q"] = spanning_configuration(mech, given["q"])
        else:
            given["q"], given["v"], M = expanded(mech, given["q"], given["v"])
            given |= {name: spanning_acceleration(mech, M, given[name]) for name in ACCELERATIONS if name in given}
        kernel(mech.tree, *given.values())

    return registered(kernel, of_mechanism)


def in_independent_velocities(kernel: Callable[..., None], several: bool = False) -> Callable[..., None]:
    """Register and return the kernel for mechanisms that writes J G for a kernel for trees that writes J at q.

    J is the last argument and q the one before; others are passed on. J may be `several` matrices.
    """

    def of_mechanism(mech: ClusterTree, *arguments: Any) -> None:
        *given, q, J = arguments
        qs, M = mapped(mech, q)
        results = J if several else [J]
        whole = [[[0.0] * len(mech.tree.parent) for _ in range(len(rows))] for rows in results]
        kernel(mech.tree, *given, qs, whole if several else whole[0])
        for rows, result in zip(whole, results, strict=True):
            for i, row in enumerate(rows):
                write_projected(mech, M, row, result[i])

    return registered(kernel, of_mechanism)


centroidal_map = in_independent_velocities(centroidal.centroidal_map)
center_of_mass_jacobian = in_independent_velocities(energy.center_of_mass_jacobian)
in_independent_velocities(frames.frame_jacobian, several=True)
in_independent_velocities(relative_frames.relative_jacobian, several=True)
for _kernel in (
    centroidal.center_of_mass_velocity,
    centroidal.centroidal_inertia,
    centroidal.centroidal_momentum,
    centroidal_rates.center_of_mass_acceleration,
    energy.center_of_mass,
    energy.kinetic_energy,
    energy.potential_energy,
    frames.frame_placement,
    frames.frame_velocity,
    frames.joint_jacobian,
    frames.placement_rows,
    iteration.task_errors,
    regressors.kinetic_energy_regressor,
    regressors.potential_energy_regressor,
    relative_frames.joint_jacobian_rate,
    relative_frames.relative_placement,
    relative_frames.relative_velocity,
    task_rows.weighted_errors,
):
    on_spanning_tree(_kernel)

# frames

frame_acceleration = on_spanning_tree(frames.frame_acceleration)
relative_acceleration = on_spanning_tree(relative_frames.relative_acceleration)


@for_mechanism(frames.frame_bias_acceleration)
def frame_bias_acceleration(mech: ClusterTree, placements, reference: int, q, v, result) -> None:
    frame_acceleration(mech, placements, frames.of_components(reference), q, v, [0.0] * len(mech.parent), result)


@for_mechanism(relative_frames.relative_bias_acceleration)
def relative_bias_acceleration(mech: ClusterTree, placements, other, reference: int, q, v, result) -> None:
    still = [0.0] * len(mech.parent)
    relative_acceleration(mech, placements, other, frames.of_components(reference), q, v, still, result)


# matrices


@takes_mechanism
def projected_coriolis(mech: ClusterTree, C, M, G, G_dot, result) -> None:
    """Write the Coriolis matrix, nv by nv."""
    n, m = len(mech.tree.parent), len(mech.parent)
    for k in range(m):
        forces = [0.0] * n
        for i in range(n):
            for j in range(n):
                forces[i] = forces[i] + C[i][j] * G[j][k] + M[i][j] * G_dot[j][k]
        for l in range(m):
            total = 0.0
            for i in range(n):
                total = total + G[i][l] * forces[i]
            result[l][k] = total


# regressors

NO_JOINTS = JointColumns((), (), ())


@for_mechanism(regressors.inverse_dynamics_regressor)
def inverse_dynamics_regressor(mech: ClusterTree, bodies: Placements, q, v, a, Y) -> None:
    extended_regressor(mech, bodies, NO_JOINTS, q, v, a, Y)


@for_mechanism(regressors.extended_regressor)
def extended_regressor(mech: ClusterTree, bodies: Placements, joints: JointColumns, q, v, a, Y) -> None:
    """Write the regressor; friction and armature are those of all joints of the spanning tree."""
    tree = mech.tree
    qs, vs, M = expanded(mech, q, v)
    columns = PARAMETERS * len(bodies.row) + len(joints.kind)
    whole = [[0.0] * columns for _ in tree.parent]
    regressors.extended_regressor(tree, bodies, joints, qs, vs, spanning_acceleration(mech, M, a), whole)
    for k in range(columns):
        projected = [0.0] * len(mech.parent)
        write_projected(mech, M, [row[k] for row in whole], projected)
        for i in range(len(mech.parent)):
            Y[i][k] = projected[i]


# centroidal momentum: the map A_G G, and functions of it

centroidal_momentum_rate = on_spanning_tree(centroidal_rates.centroidal_momentum_rate)


@for_mechanism(centroidal.centroidal_momentum_by_map)
def centroidal_momentum_by_map(mech: ClusterTree, q, v, momentum) -> None:
    A = [[0.0] * len(mech.parent) for _ in range(6)]
    centroidal_map(mech, q, A)
    centroidal.write_product(A, v, momentum)


@for_mechanism(centroidal.center_of_mass_velocity_by_jacobian)
def center_of_mass_velocity_by_jacobian(mech: ClusterTree, q, v, velocity) -> None:
    J = [[0.0] * len(mech.parent) for _ in range(3)]
    center_of_mass_jacobian(mech, q, J)
    centroidal.write_product(J, v, velocity)


@for_mechanism(centroidal_rates.centroidal_bias)
def centroidal_bias(mech: ClusterTree, q, v, bias) -> None:
    centroidal_momentum_rate(mech, q, v, [0.0] * len(mech.parent), bias)


@takes_mechanism
def projected_map_rate(mech: ClusterTree, A, rate, G, G_dot, result) -> None:
    """Write A_G' G + A_G G'."""
    n, m = len(mech.tree.parent), len(mech.parent)
    for i in range(6):
        for k in range(m):
            total = 0.0
            for r in range(n):
                total = total + rate[i][r] * G[r][k] + A[i][r] * G_dot[r][k]
            result[i][k] = total
