"""Second derivatives of the dynamics of a robot, and their products with vectors from the left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..algorithms import forward_dynamics_derivatives as implicit
from ..array_types import Array
from ..engine.derivative_program import JacobianProgram, PullbackProgram
from ..engine.execution import result_class
from ..engine.function import CompiledFunction
from ..engine.program import ComposedProgram, Input, Output, Program
from ..names import knows_keywords
from .compiled_member import compiled
from .dynamics import forward_dynamics, inverse_dynamics
from .dynamics_derivatives import BY, analytic, forward_dynamics_derivatives, inverse_dynamics_derivatives
from .system import NotDefinedError, System

if TYPE_CHECKING:
    from .result_types import (
        ForwardDynamicsHessian,
        ForwardDynamicsSecondDerivatives,
        InverseDynamicsHessian,
        InverseDynamicsSecondDerivatives,
    )

PAIRS = ("dqdq", "dqdv", "dvdv")


@compiled
def inverse_dynamics_second_derivatives(robot: System) -> CompiledFunction[InverseDynamicsSecondDerivatives]:
    """Second derivatives of inverse dynamics at q, v, a: d2tau_dqdq, _dqdv, _dvdv and _dadq = dM/dq, (nv, nv, nv) each.

    Entry [i, j, k] of d2tau_dxdy is the derivative of entry [i, j] of dtau_dx by y_k. Derivatives by q are taken with
    respect to velocities, one after the other, so for a free-flyer or a ball joint they need not be symmetric in j and k.
    The function uses forward differentiation of the first derivatives. Singh, Russell and Wensing (2023) give recursions.

        robot.inverse_dynamics_second_derivatives(q, v, a).d2tau_dqdq  # (nv, nv, nv)
    """
    _require_traced(robot, "inverse_dynamics_second_derivatives")
    first = analytic(inverse_dynamics_derivatives(robot))
    pairs = {f"ddtau_d{x}_d{y}": f"d2tau_d{x}d{y}" for x, y in ("qq", "qv", "vv", "aq")}
    name, doc = "inverse_dynamics_second_derivatives", inverse_dynamics_second_derivatives.__doc__
    return _chosen(robot, name, JacobianProgram(first.program, "", ("q", "v")), pairs, doc)


@knows_keywords
def forward_dynamics_second_derivatives(
    robot: System, q: npt.ArrayLike, v: npt.ArrayLike, tau: npt.ArrayLike, *, threads: int | None = None
) -> ForwardDynamicsSecondDerivatives:
    """Return second derivatives of forward dynamics: d2a_dqdq, _dqdv, _dvdv and _dtaudq = dM⁻¹/dq (..., nv, nv, nv).

    The result is a named tuple, with entries as in `inverse_dynamics_second_derivatives`. It is computed by matrix
    products from the second derivatives of inverse dynamics, because ID(x, a(x, tau)) = tau (Singh, Russell and Wensing
    2023). If you need the product of the second derivatives with a vector, `forward_dynamics_hessian` is far cheaper.
    """
    _require_traced(robot, "forward_dynamics_second_derivatives")
    a = forward_dynamics(robot)(q, v, tau, threads=threads)
    by_q, by_v, inverse = forward_dynamics_derivatives(robot)(q, v, tau, threads=threads)
    qq, qv, vv, M_q = inverse_dynamics_second_derivatives(robot)(q, v, a, threads=threads)
    transposed = np.swapaxes(M_q, -1, -2)  # [i, j, l] of entry [i, l] of M by q_j

    def times(B: Array) -> Array:
        return np.asarray(transposed @ B[..., None, :, :])

    turned = times(by_q)
    tensors = (
        qq + turned + np.swapaxes(turned, -1, -2),
        qv + times(by_v),
        vv,
        np.swapaxes(times(inverse), -1, -2),
    )
    n = robot.nv
    solved = (-(inverse @ x.reshape(*x.shape[:-2], n * n)).reshape(x.shape) for x in tensors)
    fields = *(f"d2a_{pair}" for pair in PAIRS), "d2a_dtaudq"
    result: ForwardDynamicsSecondDerivatives = result_class("forward_dynamics_second_derivatives", fields)(*solved)
    return result


@compiled
def inverse_dynamics_hessian(robot: System) -> CompiledFunction[InverseDynamicsHessian]:
    """Hessian of tau_barᵀ tau for inverse dynamics at q, v, a, weights tau_bar (nv): dqdq, dqdv, dvdv, dqda, (nv, nv) each.

    The Hessian is the product of tau_bar with `inverse_dynamics_second_derivatives`; the function does not compute the
    latter. Entry [j, k] is the derivative by entry j of the first variable and entry k of the second variable in the name.
    The function uses forward differentiation of the cotangents.
    """
    program, pairs = _curvature(robot)
    doc = inverse_dynamics_hessian.__doc__
    return _chosen(robot, "inverse_dynamics_hessian", program, pairs, doc)


@compiled
def forward_dynamics_hessian(robot: System) -> CompiledFunction[ForwardDynamicsHessian]:
    """Hessian of a_barᵀ a for forward dynamics at q, v, tau, weights a_bar (nv): dqdq, dqdv, dvdv, dqdtau, (nv, nv) each.

    The function uses the Hessian of inverse dynamics with the weights M⁻¹ a_bar, and the first derivatives (Singh, Russell
    and Wensing 2023). Differential dynamic programming needs this Hessian.
    """
    n = robot.nv
    square = (n, n)
    inverse = Input("da_dtau", square)
    weigh = robot.bind("weights", implicit.weighted, (inverse, Input("a_bar", (n,))), (Output("tau_bar", (n,)),))
    program, pairs = _curvature(robot)
    renamed = {name: f"W_{pair}" for name, pair in pairs.items()}
    curved = ComposedProgram("curved", (program,), tuple(renamed.values()), also=tuple(renamed.items()))
    results = (*PAIRS, "dqdtau")
    dynamics, first = forward_dynamics(robot).alternatives["crba-ltdl"], analytic(forward_dynamics_derivatives(robot))

    def combined(kernel: Callable[..., None], inputs: Sequence[str], outputs: Sequence[str]) -> Program:
        known = [Input(name, square) for name in inputs]
        return robot.bind(kernel.__name__, kernel, known, [Output(name, square) for name in outputs]).program

    parts = (
        dynamics.program,
        first.program,
        weigh.program,
        curved,
        combined(implicit.hessian_by_configuration, ("da_dq", "da_dtau", "W_dqdq", "W_dqda"), ("dqdq", "dqdtau")),
        combined(implicit.hessian_by_velocity, ("da_dv", "W_dqdv", "W_dvdv", "W_dqda"), ("dqdv", "dvdv")),
    )
    doc = forward_dynamics_hessian.__doc__ or ""
    whole = ComposedProgram("forward_dynamics_hessian", parts, results, doc, first=("q", "v", "tau", "a_bar"))
    return CompiledFunction(whole, robot.execution_of(whole), "implicit")


def _require_traced(robot: System, name: str) -> None:
    """Raise NotDefinedError, a ValueError, if the trace of the first derivatives alone exceeds the budget."""
    robot.require_dynamics(name)
    if inverse_dynamics_derivatives(robot).too_large:
        raise NotDefinedError(
            f"{name} is not defined: the first derivatives of {robot.name} are too large to be traced, and second "
            "derivatives need their trace. Use the Hessians, products of second derivatives with a vector"
        )


def _curvature(robot: System) -> tuple[Program, dict[str, str]]:
    """Return the derivatives of the cotangents of inverse dynamics, and the selection of the wanted ones."""
    pairs = {"dq_bar_dq": "dqdq", "dq_bar_dv": "dqdv", "dv_bar_dv": "dvdv", "dq_bar_da": "dqda"}
    return JacobianProgram(PullbackProgram(inverse_dynamics(robot).program), "", BY), pairs


def _chosen(robot: System, name: str, program: Program, names: dict[str, str], doc: str | None) -> CompiledFunction[Any]:
    """Select and rename results of a program."""
    whole = ComposedProgram(name, (program,), tuple(names.values()), doc or "", tuple(names.items()))
    return CompiledFunction(whole, robot.execution_of(whole), "forward")
