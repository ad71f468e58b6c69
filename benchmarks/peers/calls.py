"""What a call costs, by the way it is made: by place, by name, into an array, of lists, in small batches.

    python benchmarks/peers/calls.py [--seconds 2]

Forward dynamics of a humanoid and of an arm, of random states, beside Pinocchio's. Each way is measured in turn with the plain
call f(q, v, tau), and the ratio of their medians is what it costs. Batches are on one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from measure import ROBOTS, machine, markdown, median_times, options

import featherweight as fw

FILES = {
    "romeo": ("romeo_description/urdf/romeo_small.urdf", "floating"),
    "xarm7": ("xarm_description/urdf/xarm7.urdf", "fixed"),
}


class Way(NamedTuple):
    """A way to call forward dynamics, and what it may cost."""

    call: Callable[[], Any]
    states: int = 1
    most: float | None = None  # times the plain call
    of_large: float | None = None  # times the same number of states of a large batch, plus a microsecond


def ways(robot: fw.Robot) -> dict[str, Way]:
    rng = np.random.default_rng(0)
    q = robot.random_configuration(rng)
    v, tau = rng.standard_normal((2, robot.nv))
    fresh, f = robot.forward_dynamics.copy(), robot.forward_dynamics
    out = np.empty(robot.nv)
    listed, strided = [x.tolist() for x in (q, v, tau)], [np.repeat(x, 2)[::2] for x in (q, v, tau)]
    single = [x.astype(np.float32) for x in (q, v, tau)]

    def batch(n: int) -> list[Any]:
        return [robot.random_configuration(rng, n), *rng.standard_normal((2, n, robot.nv))]

    eight, many, large = batch(8), batch(64), batch(4096)
    large_out = np.empty((4096, robot.nv))
    return {
        "f(q, v, tau)": Way(lambda: f(q, v, tau)),
        "f(q, v, tau, out=o)": Way(lambda: f(q, v, tau, out=out), most=1.2),
        "the same, of a function never called without out": Way(lambda: fresh(q, v, tau, out=out), most=1.2),
        "f(q=q, v=v, tau=tau)": Way(lambda: f(q=q, v=v, tau=tau), most=1.5),
        "q a list": Way(lambda: f(listed[0], v, tau), most=2.0),
        "all lists": Way(lambda: f(*listed), most=2.0),
        "q float32": Way(lambda: f(single[0], v, tau), most=2.0),
        "all float32": Way(lambda: f(*single), most=2.0),
        "all strided": Way(lambda: f(*strided), most=2.0),
        "8 states": Way(lambda: f(*eight), 8, most=3.0),
        "64 states": Way(lambda: f(*many), 64, of_large=1.3),
        "4096 states": Way(lambda: f(*large, out=large_out, threads=1), 4096),
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
    plain = found["f(q, v, tau)"].call
    large = median_times([found["4096 states"].call], seconds)[0] / 4096
    table = [[name, "Pinocchio's aba", f"{1e6 * pinocchio_time(str(ROBOTS / file), base, seconds):.2f}", "", "", ""]]
    for what, way in found.items():
        time, one = median_times([way.call, plain], seconds)
        goal = "" if way.most is None else f"{way.most:g}"
        met = "" if way.most is None else "yes" if time <= way.most * one else "no"
        if way.of_large is not None:
            bound = way.of_large * large * way.states + 1e-6
            goal, met = f"{way.of_large:g} × of 4096, + 1 µs", "yes" if time <= bound else "no"
        table.append([name, what, f"{1e6 * time:.2f}", f"{time / one:.2f}", goal, met])
    return table


def main() -> None:
    given = options(__doc__)
    print(f"{machine()}; Pinocchio {pin.__version__}\n")
    table = [row for name in FILES for row in rows(name, given.seconds)]
    print(markdown(["robot", "call", "µs", "times the plain call", "goal", "met"], table))


if __name__ == "__main__":
    main()
