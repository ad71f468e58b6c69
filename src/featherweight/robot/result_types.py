"""Result types of functions with several results, for type checkers: the fields of their named tuples.

A compiled function makes the class of its results from its program. A result is therefore a named tuple with these fields,
but not an instance of these classes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..array_types import Array


class IntegrateDerivatives(NamedTuple):
    """Results of `integrate_derivatives`, (..., nv, nv) each: as velocities at the result, by velocities at q, and by v."""

    dresult_dq: Array
    dresult_dv: Array


class DifferenceDerivatives(NamedTuple):
    """Results of `difference_derivatives`, (..., nv, nv) each: by velocities at q0, and at q1."""

    dresult_dq0: Array
    dresult_dq1: Array


class InverseDynamicsDerivatives(NamedTuple):
    """Results of `inverse_dynamics_derivatives`, (..., nv, nv) each."""

    dtau_dq: Array
    dtau_dv: Array
    dtau_da: Array


class ForwardDynamicsDerivatives(NamedTuple):
    """Results of `forward_dynamics_derivatives`, (..., nv, nv) each."""

    da_dq: Array
    da_dv: Array
    da_dtau: Array


class InverseDynamicsSecondDerivatives(NamedTuple):
    """Results of `inverse_dynamics_second_derivatives`, (..., nv, nv, nv) each."""

    d2tau_dqdq: Array
    d2tau_dqdv: Array
    d2tau_dvdv: Array
    d2tau_dadq: Array


class ForwardDynamicsSecondDerivatives(NamedTuple):
    """Results of `forward_dynamics_second_derivatives`, (..., nv, nv, nv) each."""

    d2a_dqdq: Array
    d2a_dqdv: Array
    d2a_dvdv: Array
    d2a_dtaudq: Array


class InverseDynamicsHessian(NamedTuple):
    """Results of `inverse_dynamics_hessian`, (..., nv, nv) each."""

    dqdq: Array
    dqdv: Array
    dvdv: Array
    dqda: Array


class ForwardDynamicsHessian(NamedTuple):
    """Results of `forward_dynamics_hessian`, (..., nv, nv) each."""

    dqdq: Array
    dqdv: Array
    dvdv: Array
    dqdtau: Array


class ConstrainedDynamics(NamedTuple):
    """Results of `constrained_dynamics` under m constraint rows."""

    acceleration: Array  # (..., nv)
    force: Array  # (..., m)
    strain: Any  # a float for one state, (...) for many


class ImpactDynamics(NamedTuple):
    """Results of `impact` at m constraint rows."""

    velocity: Array  # (..., nv)
    impulse: Array  # (..., m)
    strain: Any  # a float for one state, (...) for many


class ConstrainedDerivatives(NamedTuple):
    """Results of `forward_dynamics_derivatives` under m constraint rows.

    Derivatives of accelerations are (..., nv, nv), those of forces (..., m, nv).
    """

    dacceleration_dq: Array
    dacceleration_dv: Array
    dacceleration_dtau: Array
    dforce_dq: Array
    dforce_dv: Array
    dforce_dtau: Array
