"""Kernels for trees that serve mechanisms with loops as they are, on the motion of the spanning tree.

The tree moves by q' = G y' and q'' = G y'' + g, where y' and y'' are the independent velocities and accelerations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import centroidal, centroidal_rates, energy, frames, regressors, relative_frames
from ..inverse_kinematics import iteration, task_rows
from .cluster_tree import ClusterTree
from .counterparts import for_mechanism
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
