"""Functions of robots in JAX: under `jit`, `vmap`, `grad`, `jvp`, `jacfwd`, `jacrev`, `lax.scan` and `shard_map`.

    from featherweight.jax import wrap

    forward_dynamics = wrap(robot.forward_dynamics)
    jax.jit(jax.grad(lambda q: forward_dynamics(q, v, tau).sum()))(q)

XLA calls the machine code, or starts the kernel on its stream; Python has no part in it.
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

from ..engine.call_arrays import batch_axes, bound
from ..engine.function import CompiledFunction
from ..engine.result_class import result_class
from .primitive import call
from .simulated_step import ArrayState, stepping

__all__ = ["step", "wrap"]


def step(simulation: Any) -> Callable[..., ArrayState]:
    """Return the step of a `Simulation` as a function of JAX's arrays, with gradients through contact.

        step = featherweight.jax.step(simulation)
        q, v = step(q, v, tau=tau, control=control)

    q (..., nq), v (..., nv), tau (..., nv) and control (..., nu) broadcast; tau and control are zero unless given. The
    simulation stays as it is: its robot, step size, ground and contact model are taken, not its state. `jit`, `vmap`, `grad`,
    `vjp`, `jacrev` and `lax.scan` go through; there is no forward differentiation (`jvp`, `jacfwd`), and no second derivative.
    XLA calls Python for it, once for all robots of a batch; the derivative is that of `Simulation.derivatives`, which works on
    one robot after the other.

    Gradients by configurations are tangent to their manifold, as those of `wrap`. Raises TypeError for what is no simulation,
    and for wrong shapes ValueError; a step that cannot be taken ends the computation with the words of `SimulationError`.
    """
    if not hasattr(simulation, "step_function"):
        raise TypeError(f"step takes a featherweight.Simulation; got {simulation!r}")
    return stepping(simulation.step_function())


def wrap(function: CompiledFunction[Any]) -> Callable[..., Any]:
    """A function of a robot as one of JAX's arrays, with its arguments by place or by name, optional ones too.

    Leading axes broadcast. Arguments promote as JAX's do: results are float32, or float64 where an argument is and 64 bits are
    enabled (`jax_enable_x64`). Several results are a named tuple.

    It computes where its arguments are: on processors, where large batches are shared among XLA's threads; or on CUDA devices,
    on XLA's stream, with the extra `cuda`. The latter is tested with stand-ins for XLA and for the driver, and has not been run
    on a device. Arrays that are spread over several devices are gathered on each, unless `shard_map` has each compute its own.

    Derivatives, of any order, are by arrays. Changes of a configuration that lead away from unit quaternions count by their
    projection on the changes that velocities make, and cotangents q_bar (nq) lie among those: <q_bar, dq> = <v_bar, v> where
    dq is what q changes by along v.

    Raises TypeError for what is no compiled function, ValueError for one that is not traced. The function raises TypeError for
    a wrong number or name of arguments and ValueError for a wrong shape, naming the argument, and NotImplementedError
    where it does not compute.
    """
    if not isinstance(function, CompiledFunction):
        wanted = "a compiled function of a robot, such as robot.forward_dynamics"
        raise TypeError(f"wrap takes {wanted}; got {function!r}{_advice(function)}")
    function.machine_code  # noqa: B018  # raises where it is not traced

    def wrapped(*args: Any, **named: Any) -> Any:
        f = function.chosen(named)
        pairs = zip(bound(f.program, args, named), f.program.inputs, strict=True)
        arrays = [_array(x, f"{f.name}: {argument.name}") for x, argument in pairs]
        batch_axes(f.program, arrays)  # raises where they do not fit
        dtype = jnp.promote_types(jnp.result_type(*arrays, float), jnp.float32)
        values = call(f, [x.astype(dtype) for x in arrays])
        outputs = f.program.outputs
        return values[0] if len(outputs) == 1 else result_class(f.name, tuple(y.name for y in outputs))(*values)

    wrapped.__name__ = wrapped.__qualname__ = function.name
    wrapped.__doc__ = function.__doc__
    return wrapped


def _advice(function: Any) -> str:
    """Return a hint for what closes loops, which no single compiled function does; an empty string for other arguments."""
    closes = hasattr(getattr(function, "__self__", None), "tangent_step")
    return "; of a robot with loops, wrap robot.tangent_step" if closes else ""


def _array(x: Any, what: str) -> jax.Array:
    try:
        return jnp.asarray(x)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must be an array of numbers: {error}") from None
