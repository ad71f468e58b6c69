"""Functions in JAX compared with calls from NumPy, and a robot's step compared with MJX on this machine's processors.

    python benchmarks/peers/jax_peer.py [--batch 4096] [--seconds 2] [ROBOT ...]

Needs an environment with jax, mujoco-mjx, gymnasium and example-robot-data. The overhead of `jit` is the time of a call minus
its time from NumPy. JAX's own part is the time of a function under `jit` that adds one, with the same arguments and results. In
a loop of XLA, in which each call waits for the previous one, there is no such part. Batches are measured with and without JAX's
own part of a call. MJX steps the same robot without contacts, limits, friction and damping (its Euler steps), in single
precision; ours does by forward dynamics and `integrate`. XLA compiles MJX for a minute or more, unless
JAX_COMPILATION_CACHE_DIR contains the code. Compared calls alternate.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from measure import FILES, ROBOTS, machine, markdown, median_times, options
from robots_in_mujoco import STEP, mujoco_states, rates_in_mujoco, urdf_in_mujoco

import featherweight as fw
from featherweight.array_types import Array
from featherweight.engine.threads import processors
from featherweight.jax import wrap

with contextlib.redirect_stdout(sys.stderr):  # it reports there that it has no Warp
    from mujoco import mjx

CALLS = ["robot", "from NumPy", "jit", "tau + 1 in jit", "jit overhead", "in a loop", "loop overhead"]
BATCHES = ["robot", "function", "threads", "from NumPy", "out=", "jit", "NumPy / jit", "without JAX's part"]
STEPS = ["robot", "ours", "MJX", "ratio", "acceleration difference, median", "largest", "MJX compiles [s]"]
ROUNDS = 1000  # calls in a loop


def waiting(f: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    return lambda: jax.block_until_ready(f(*args))


def one_state(name: str, robot: fw.Robot, seconds: float) -> list[str]:
    """Return the times of a call of forward dynamics [µs]."""
    f = wrap(robot.forward_dynamics)
    x = states(robot, ())

    def nothing(q: Any, v: Any, tau: Any) -> Any:
        return tau + 1.0

    def looped(q: Any, v: Any, tau: Any) -> Any:
        return jax.lax.fori_loop(0, ROUNDS, lambda _, a: f(q, v, tau + 1e-9 * a), tau)

    on_jax = [jnp.asarray(y) for y in x]
    calls = [
        lambda: robot.forward_dynamics(*x),
        waiting(jax.jit(f), *on_jax),
        waiting(jax.jit(nothing, keep_unused=True), *on_jax),
        waiting(jax.jit(looped), *on_jax),
    ]
    ours, jitted, empty, loop = (1e6 * t for t in median_times(calls, seconds))
    loop /= ROUNDS
    return [name, *(f"{t:.2f}" for t in (ours, jitted, empty, jitted - empty - ours, loop, loop - ours))]


def batches(name: str, robot: fw.Robot, batch: int, seconds: float) -> list[list[str]]:
    """Return the times per state of a batch [µs]."""
    x, one = states(robot, (batch,)), [jnp.asarray(y) for y in states(robot, ())]
    on_jax = [jnp.asarray(y) for y in x]
    rows = []
    nothing = waiting(jax.jit(lambda q, v, tau: tau + 1.0, keep_unused=True), *one)
    for f in (robot.forward_dynamics, robot.inverse_dynamics):
        work, out = f.machine_code, f(*x)
        calls: list[Callable[[], Any]] = [
            functools.partial(f, *x),
            functools.partial(f, *x, out=out),
            waiting(jax.jit(wrap(f)), *on_jax),
            nothing,
        ]
        ours, given, jitted, part = (1e6 * t / batch for t in median_times(calls, seconds))
        threads = max(1, min(processors(), batch // work.states_of_thread))
        figures = [f"{t:.3f}" for t in (ours, given, jitted)]
        rows.append([name, f.name, str(threads), *figures, f"{ours / jitted:.2f}", f"{ours / (jitted - part):.2f}"])
    return rows


def states(robot: fw.Robot, batch: tuple[int, ...]) -> list[Array]:
    rng = np.random.default_rng(0)
    q = robot.random_configuration(rng=rng, size=batch)
    return [q, *rng.standard_normal((2, *batch, robot.nv))]


def beside_mjx(name: str, robot: fw.Robot, batch: int, seconds: float) -> list[list[str]]:
    """Return the times per robot and step of a batch [µs], or no rows for a robot that MuJoCo refuses."""
    try:
        model = same_in_mujoco(name)
    except ValueError as error:
        print(f"MuJoCo refuses {name}: {' '.join(str(error).split())}\n")
        return []
    q, v, tau = states(robot, (batch,))
    tau *= 0.0
    theirs = mjx.put_model(model)
    state = mujoco_states(model, robot, q, v)
    qpos, qvel = (jnp.asarray(x, jnp.float32) for x in np.split(state[:, 1 : 1 + model.nq + model.nv], [model.nq], axis=1))
    data = jax.vmap(lambda a, b: mjx.make_data(theirs).replace(qpos=a, qvel=b))(qpos, qvel)
    forward_dynamics, integrate = wrap(robot.forward_dynamics), wrap(robot.integrate)

    def step(q: Any, v: Any) -> Any:
        v = v + STEP * forward_dynamics(q, v, jnp.zeros_like(v))
        return integrate(q, STEP * v), v

    begun = time.perf_counter()
    their_step = jax.jit(jax.vmap(mjx.step, in_axes=(None, 0))).lower(theirs, data).compile()
    compiling = time.perf_counter() - begun
    on_jax = [jnp.asarray(x, jnp.float32) for x in (q, v)]
    ours, other = (
        1e6 * t / batch for t in median_times([waiting(jax.jit(step), *on_jax), waiting(their_step, theirs, data)], seconds, 5)
    )
    a = rates_in_mujoco(model, robot, q, v, robot.forward_dynamics(q, v, tau))
    differences = abs(a - np.asarray(their_step(theirs, data).qacc)).max(axis=-1) / abs(a).max(axis=-1)
    spread = [f"{x:.0e}" for x in np.quantile(differences, (0.5, 1.0))]
    return [[name, f"{ours:.2f}", f"{other:.1f}", f"{other / ours:.0f}", *spread, f"{compiling:.0f}"]]


def same_in_mujoco(name: str) -> Any:
    file, base = FILES[name]
    spec = urdf_in_mujoco(ROBOTS / file)
    if base == "floating":
        spec.worldbody.first_body().add_freejoint()
    for equality in list(spec.equalities):  # joints that mimic others
        spec.delete(equality)
    model = spec.compile()
    model.dof_frictionloss[:] = 0.0
    model.dof_damping[:] = 0.0
    off = mujoco.mjtDisableBit
    model.opt.disableflags |= int(off.mjDSBL_CONSTRAINT | off.mjDSBL_CONTACT | off.mjDSBL_EULERDAMP)
    return model


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(markdown(header, rows), end="\n\n", flush=True)


def main() -> None:
    given = options(__doc__, robots=True)
    print(f"{machine()}; JAX {jax.__version__}, MuJoCo {mujoco.__version__}; times in µs per call or per state\n")
    files = {name: FILES[name] for name in given.robots}
    robots = {name: fw.load(ROBOTS / file, base=base, mimic="independent") for name, (file, base) in files.items()}
    with jax.enable_x64(True):
        table(CALLS, [one_state(name, robot, given.seconds) for name, robot in robots.items()])
        table(BATCHES, [row for name, robot in robots.items() for row in batches(name, robot, given.batch, given.seconds)])
    table(STEPS, [row for name, robot in robots.items() for row in beside_mjx(name, robot, given.batch, given.seconds)])


if __name__ == "__main__":
    main()
