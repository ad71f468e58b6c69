"""Overhead of calls: positional or keyword arguments, result arrays, lists, small batches.

    python benchmarks/peers/calls.py [--seconds 2]

The script calls forward dynamics of a humanoid and of an arm for random states, beside Pinocchio. Each kind of call alternates
with the plain call f(q, v, tau); the table has the ratio of their medians. Batches run on one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
from measure import ROBOTS, machine, markdown, median_times, options

import featherweight as fw

FILES = {
    "romeo": ("romeo_description/urdf/romeo_small.urdf", "floating"),
    "xarm7": ("xarm_description/urdf/xarm7.urdf", "fixed"),
}


def ways(robot: fw.Robot) -> dict[str, Callable[[], Any]]:
    """Return the ways to call forward dynamics."""
    rng = np.random.default_rng(0)
    q = robot.random_configuration(rng=rng)
    v, tau = rng.standard_normal((2, robot.nv))
    fresh, f = robot.forward_dynamics.copy(), robot.forward_dynamics
    out = np.empty(robot.nv)
    listed, strided = [x.tolist() for x in (q, v, tau)], [np.repeat(x, 2)[::2] for x in (q, v, tau)]
    single = [x.astype(np.float32) for x in (q, v, tau)]

    def batch(n: int) -> list[Any]:
        return [robot.random_configuration(rng=rng, size=n), *rng.standard_normal((2, n, robot.nv))]

    eight, many, large = batch(8), batch(64), batch(4096)
    large_out = np.empty((4096, robot.nv))
    return {
        "f(q, v, tau)": lambda: f(q, v, tau),
        "f(q, v, tau, out=o)": lambda: f(q, v, tau, out=out),
        "f(q, v, tau, out=o), f never called without out": lambda: fresh(q, v, tau, out=out),
        "f(q=q, v=v, tau=tau)": lambda: f(q=q, v=v, tau=tau),
        "q a list": lambda: f(listed[0], v, tau),
        "all lists": lambda: f(*listed),
        "q float32": lambda: f(single[0], v, tau),
        "all float32": lambda: f(*single),
        "all strided": lambda: f(*strided),
        "8 states": lambda: f(*eight),
        "64 states": lambda: f(*many),
        "4096 states": lambda: f(*large, out=large_out, threads=1),
    }


def pinocchio_time(path: str, base: str, seconds: float) -> float:
    root = (pin.JointModelFreeFlyer(),) if base == "floating" else ()
    model = pin.buildModelFromUrdf(path, *root)
    data, q, v = model.createData(), pin.randomConfiguration(model), np.zeros(model.nv)
    return median_times([lambda: pin.aba(model, data, q, v, v)], seconds)[0]


def rows(name: str, seconds: float) -> list[list[str]]:
    file, base = FILES[name]
    robot = fw.load(ROBOTS / file, base)
    found = ways(robot)
    plain = found["f(q, v, tau)"]
    table = [[name, "Pinocchio's aba", f"{1e6 * pinocchio_time(str(ROBOTS / file), base, seconds):.2f}", ""]]
    for what, call in found.items():
        time, one = median_times([call, plain], seconds)
        table.append([name, what, f"{1e6 * time:.2f}", "1" if call is plain else f"{time / one:.2f}"])
    return table


def main() -> None:
    given = options(__doc__)
    print(f"{machine()}; Pinocchio {pin.__version__}\n")
    table = [row for name in FILES for row in rows(name, given.seconds)]
    print(markdown(["robot", "call", "time [µs]", "time relative to f(q, v, tau)"], table))


if __name__ == "__main__":
    main()
