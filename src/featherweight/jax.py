"""Functions of robots in JAX: under `jit`, `vmap`, `grad`, `jvp`, `jacfwd`, `jacrev`, `lax.scan` and `shard_map`.

    from featherweight.jax import wrap

    forward_dynamics = wrap(robot.forward_dynamics)
    jax.jit(jax.grad(lambda q: forward_dynamics(q, v, tau).sum()))(q)

XLA calls the machine code directly, or launches the kernel on its stream, without Python.
"""

from .extras import imports_from_extra

with imports_from_extra("jax", "featherweight.jax needs JAX", "jax"):
    from .bridges.jax_arrays.optimal_plan import ArrayPlan, OptimalPlan, plan
    from .bridges.jax_arrays.simulated_step import ArrayState, SimulatedStep, step
    from .bridges.jax_arrays.wrapped import Wrapped, wrap

__all__ = ["ArrayPlan", "ArrayState", "OptimalPlan", "SimulatedStep", "Wrapped", "plan", "step", "wrap"]
