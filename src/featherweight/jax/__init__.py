"""Functions of robots in JAX: under `jit`, `vmap`, `grad`, `jvp`, `jacfwd`, `jacrev`, `lax.scan` and `shard_map`.

    from featherweight.jax import wrap

    forward_dynamics = wrap(robot.forward_dynamics)
    jax.jit(jax.grad(lambda q: forward_dynamics(q, v, tau).sum()))(q)

XLA calls the machine code directly, or launches the kernel on its stream, without Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..extras import install_command

try:
    import jax
except ModuleNotFoundError as error:
    if error.name != "jax":
        raise
    raise ImportError(f"featherweight.jax needs JAX: {install_command('jax')}") from error

import jax.numpy as jnp

from ..engine.arguments import batch_axes, bound
from ..engine.function import CompiledFunction
from ..engine.result_class import result_class
from .optimal_plan import ArrayPlan, planning
from .primitive import call
from .simulated_step import ArrayState, stepping

__all__ = ["plan", "step", "wrap"]


def step(simulation: Any) -> Callable[..., ArrayState]:
    """Return the step of a `Simulation` as a function of JAX's arrays, with gradients through contact.

        step = featherweight.jax.step(simulation)
        q, v = step(q, v, tau=tau, control=control)

    q (..., nq), v (..., nv), tau (..., nv) and control (..., nu) broadcast; tau and control default to zero. The function uses
    the robot, step size, ground and contact model of the simulation, not its state, and does not change it. `jit`, `vmap`,
    `grad`, `vjp`, `jacrev` and `lax.scan` work; forward differentiation (`jvp`, `jacfwd`) and second derivatives do not. XLA
    calls Python for each step, once for all robots of a batch. The derivative is that of `Simulation.derivatives`, which
    processes one robot after the other.

    Gradients with respect to configurations are tangent to their manifold, as with `wrap`. Raises TypeError for an argument
    that is not a simulation, and ValueError for wrong shapes. A step that fails ends the computation with the message of
    `SimulationError`.
    """
    if not hasattr(simulation, "step_function"):
        raise TypeError(f"step takes a featherweight.Simulation; got {simulation!r}")
    return stepping(simulation.step_function())


def plan(ocp: Any, **options: Any) -> Callable[..., ArrayPlan]:
    """Return the solutions of an `OptimalControl` problem as a function of JAX's arrays, with gradients.

        plan = featherweight.jax.plan(ocp, iterations=200)
        q, v, u, cost = plan(q, v, targets={"hand": target}, parameters={...})

    Arguments are those of `OptimalControl.solve`, and `options` its keywords: q (nq,) with targets and parameters, or q (n, nq)
    for n problems. Gradients with respect to q, v, targets and parameters follow from the implicit function theorem at the
    solution, with exact curvature, through contacts, loops and active constraints. They are as accurate as the solution, which
    `tolerance=1e-10` or less makes precise. `jit`, `grad`, `vjp` and vmap (one problem after the other) work; forward
    differentiation and second derivatives do not. XLA calls Python for each call.
    Gradients with respect to configurations are tangent to their manifold, as with `wrap`. Raises TypeError for an argument
    that is not a problem; calls raise ValueError where the solver does not converge.
    """
    if not hasattr(ocp, "plan_function"):
        raise TypeError(f"plan takes a featherweight.OptimalControl; got {ocp!r}")
    return planning(ocp.plan_function(**options))


def wrap(function: CompiledFunction[Any]) -> Callable[..., Any]:
    """Return a function of a robot as a function of JAX's arrays, with positional or keyword arguments.

    Leading axes broadcast. Optional arguments are supported. Arguments promote as in JAX: results are float32, or float64 if an
    argument is float64 and 64-bit types are enabled (`jax_enable_x64`). Several results are a named tuple.

    The function computes on the device of its arguments: on processors, where XLA's threads share large batches, or on CUDA
    devices, on XLA's stream, with the extra `cuda`. The CUDA path is tested with substitutes for XLA and for the driver, and
    has not run on a device. Arrays that are spread over several devices are gathered on each, unless `shard_map` makes each
    device compute its own part.

    Derivatives of any order are with respect to arrays. Changes of a configuration that leave the unit quaternions count by
    their projection on the changes that velocities make. Cotangents q_bar (nq) are in the same space: <q_bar, dq> = <v_bar, v>,
    where dq is the change of q along v.

    Raises TypeError for an argument that is not a compiled function, and ValueError for one that is not traced. The returned
    function raises TypeError for a wrong number or name of arguments, ValueError for a wrong shape (both name the argument),
    and NotImplementedError on a device where it does not compute.
    """
    if not isinstance(function, CompiledFunction):
        wanted = "a compiled function of a robot, such as robot.forward_dynamics"
        raise TypeError(f"wrap takes {wanted}; got {function!r}{_advice(function)}")
    function.machine_code  # noqa: B018  # raises if it is not traced

    def wrapped(*args: Any, **named: Any) -> Any:
        f = function.chosen(named)
        pairs = zip(bound(f.program, args, named), f.program.inputs, strict=True)
        arrays = [_array(x, f"{f.name}: {argument.name}") for x, argument in pairs]
        batch_axes(f.program, arrays)  # raises if they do not fit
        dtype = jnp.promote_types(jnp.result_type(*arrays, float), jnp.float32)
        values = call(f, [x.astype(dtype) for x in arrays])
        outputs = f.program.outputs
        return values[0] if len(outputs) == 1 else result_class(f.name, tuple(y.name for y in outputs))(*values)

    wrapped.__name__ = wrapped.__qualname__ = function.name
    wrapped.__doc__ = function.__doc__
    return wrapped


def _advice(function: Any) -> str:
    """Return a hint for functions that close loops, which are not single compiled functions; otherwise an empty string."""
    closes = hasattr(getattr(function, "__self__", None), "tangent_step")
    return "; of a robot with loops, wrap robot.tangent_step" if closes else ""


def _array(x: Any, what: str) -> jax.Array:
    try:
        return jnp.asarray(x)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must be an array of numbers: {error}") from None
