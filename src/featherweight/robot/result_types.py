"""What functions with several results return, for type checkers: the fields of their named tuples.

A compiled function makes the class of its results from its program, so a result is a named tuple with these fields, and no
instance of these classes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class InverseDynamicsDerivatives(NamedTuple):
    """Of `inverse_dynamics_derivatives`: (..., nv, nv) each."""

    dtau_dq: Array
    dtau_dv: Array
    dtau_da: Array


class ForwardDynamicsDerivatives(NamedTuple):
    """Of `forward_dynamics_derivatives`: (..., nv, nv) each."""

    da_dq: Array
    da_dv: Array
    da_dtau: Array


class InverseDynamicsSecondDerivatives(NamedTuple):
    """Of `inverse_dynamics_second_derivatives`: (..., nv, nv, nv) each."""

    d2tau_dqdq: Array
    d2tau_dqdv: Array
    d2tau_dvdv: Array
    d2tau_dadq: Array


class ForwardDynamicsSecondDerivatives(NamedTuple):
    """Of `forward_dynamics_second_derivatives`: (..., nv, nv, nv) each."""

    d2a_dqdq: Array
    d2a_dqdv: Array
    d2a_dvdv: Array
    d2a_dtaudq: Array


class InverseDynamicsHessian(NamedTuple):
    """Of `inverse_dynamics_hessian`: (..., nv, nv) each."""

    dqdq: Array
    dqdv: Array
    dvdv: Array
    dqda: Array


class ForwardDynamicsHessian(NamedTuple):
    """Of `forward_dynamics_hessian`: (..., nv, nv) each."""

    dqdq: Array
    dqdv: Array
    dvdv: Array
    dqdtau: Array


class ConstrainedDynamics(NamedTuple):
    """Of `constrained_dynamics` of m constraint rows."""

    acceleration: Array  # (..., nv)
    force: Array  # (..., m)
    strain: Any  # a float for one state, (...) for many


class ImpactDynamics(NamedTuple):
    """Of `impact` at m constraint rows."""

    velocity: Array  # (..., nv)
    impulse: Array  # (..., m)
    strain: Any  # a float for one state, (...) for many


class ConstrainedDerivatives(NamedTuple):
    """Of `forward_dynamics_derivatives` under m constraint rows: (..., nv, nv) of accelerations, (..., m, nv) of forces."""

    dacceleration_dq: Array
    dacceleration_dv: Array
    dacceleration_dtau: Array
    dforce_dq: Array
    dforce_dv: Array
    dforce_dtau: Array
