"""Forward dynamics of Talos by MuJoCo Warp, or by MJX: accelerations of many worlds without contacts, limits or friction.

    python benchmarks/gpu/mujoco_peers.py warp|mjx [--worlds 8192 32768 131072] [--precision float32|float64] [--robots FOLDER]

Lines that begin with a brace are figures in JSON. Both libraries are called in their fastest way: model and data are on the
device, MuJoCo Warp's kernels are recorded as one graph, and MJX's function is compiled as a whole. They compute `mj_forward`:
kinematics, mass matrix, its factors, bias forces and accelerations. Without a device, both run on the processor.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import mujoco
import numpy as np
from cases import TALOS, load, options
from gpu_arrays import median_of
from measure import FILES
from robots_in_mujoco import forces_in_mujoco, mujoco_states, rates_in_mujoco, urdf_in_mujoco

import featherweight as fw
from featherweight.array_types import Array

Call = Callable[[], Any]

CHECKED = 64  # states
AGREE = {"float32": 1e-3, "float64": 1e-8}  # relative to the largest acceleration
WORLDS = (2**13, 2**15, 2**17)
OFF = ("CONTACT", "LIMIT", "EQUALITY", "FRICTIONLOSS", "SPRING", "DAMPER")


class Worlds(NamedTuple):
    """Talos in MuJoCo with states and forces of many worlds, and our accelerations of the first worlds."""

    model: Any
    q: Array
    v: Array
    forces: Array
    expected: Array


def worlds(robot: fw.Robot, path: Any, n: int) -> Worlds:
    spec = urdf_in_mujoco(path)
    spec.worldbody.first_body().add_freejoint()
    m = spec.compile()
    for what in OFF:
        m.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{what}"))
    rng = np.random.default_rng(0)
    q = robot.random_configuration(rng=rng, size=CHECKED)
    v, tau = rng.standard_normal((2, CHECKED, robot.nv))
    states = mujoco_states(m, robot, q, v)
    a = rates_in_mujoco(m, robot, q, v, robot.forward_dynamics(q, v, tau))
    whole = [np.resize(x, (n, x.shape[1])) for x in (states[:, 1:][:, : m.nq], states[:, 1 + m.nq :][:, : m.nv])]
    return Worlds(m, whole[0], whole[1], np.resize(forces_in_mujoco(m, robot, q, tau), (n, m.nv)), a)


def in_warp(w: Worlds, precision: str) -> tuple[Call, Call, Call]:
    """Return functions that compute, wait for the device, and read the accelerations."""
    mujoco_warp, warp = import_module("mujoco_warp"), import_module("warp")

    if precision != "float32":
        raise ValueError("MuJoCo Warp computes in float32 only")
    warp.config.quiet = True
    model = mujoco_warp.put_model(w.model)
    data = mujoco_warp.make_data(w.model, nworld=len(w.q), nconmax=1, njmax=1)
    for array, values in ((data.qpos, w.q), (data.qvel, w.v), (data.qfrc_applied, w.forces)):
        array.assign(values.astype(np.float32))
    mujoco_warp.forward(model, data)

    def compute() -> None:
        mujoco_warp.forward(model, data)

    if warp.get_device().is_cuda:
        with warp.ScopedCapture() as capture:
            mujoco_warp.forward(model, data)

        def compute() -> None:
            warp.capture_launch(capture.graph)

    return compute, warp.synchronize, lambda: data.qacc.numpy()[:CHECKED]


def in_mjx(w: Worlds, precision: str) -> tuple[Call, Call, Call]:
    jax, mjx = import_module("jax"), import_module("mujoco.mjx")

    jax.config.update("jax_enable_x64", precision == "float64")
    model = mjx.put_model(w.model)
    empty = mjx.make_data(w.model)

    def accelerations(q: Any, v: Any, forces: Any) -> Any:
        return mjx.forward(model, empty.replace(qpos=q, qvel=v, qfrc_applied=forces)).qacc

    function = jax.jit(jax.vmap(accelerations))
    arguments = [jax.device_put(x.astype(precision)) for x in (w.q, w.v, w.forces)]
    last = [function(*arguments)]

    def compute() -> None:
        last[0] = function(*arguments)

    return compute, lambda: last[0].block_until_ready(), lambda: np.asarray(last[0])[:CHECKED]


ENGINES = {"warp": ("MuJoCo Warp", in_warp), "mjx": ("MJX", in_mjx)}


def figure(engine: str, w: Worlds, precision: str, seconds: float) -> dict[str, Any]:
    """Return the figure of one number of worlds; raise ArithmeticError if accelerations differ from ours."""
    name, make = ENGINES[engine]
    begun = time.perf_counter()
    compute, wait, read = make(w, precision)
    compute()
    wait()
    first = time.perf_counter() - begun
    difference = float(np.abs(read() - w.expected).max() / np.abs(w.expected).max())
    if not difference < AGREE[precision]:
        raise ArithmeticError(f"{name}, {precision}: accelerations differ from ours by {difference:.1e} of the largest")
    spent = median_of(compute, wait, seconds)
    return {
        "library": name,
        "robot": TALOS,
        "function": "forward dynamics",
        "precision": precision,
        "batch": len(w.q),
        "seconds": spent,
        "difference": difference,
        "first": first,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options(parser)
    parser.add_argument("engine", choices=list(ENGINES))
    parser.add_argument("--worlds", type=int, nargs="+", default=list(WORLDS))
    parser.add_argument("--precision", choices=list(AGREE), default="float32")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each number of worlds")
    given = parser.parse_args()
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    robot, path = load(TALOS, given.robots), given.robots / FILES[TALOS][0]
    for n in given.worlds:
        print(json.dumps(figure(given.engine, worlds(robot, path, n), given.precision, given.seconds)), flush=True)


if __name__ == "__main__":
    main()
