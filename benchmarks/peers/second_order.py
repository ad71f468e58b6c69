"""Second derivatives of the dynamics, and their products with one vector (Hessians), beside a time that a paper publishes.

    python benchmarks/peers/second_order.py [--batch 4096] [--seconds 2]

The paper is S. Singh, R. P. Russell and P. M. Wensing, "On the Analytical Second-Order Derivatives of Rigid-Body Dynamics". It
publishes the time of a quadruped in C++, on a machine of its own; the quadruped here is HyQ. Everything is compiled before it
is measured. Single calls come from Python, and batches run on one thread, shorter for large results. All calls write to
preallocated arrays, and alternate.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import numpy as np
from derivatives import LARGEST, ways
from measure import FILES, ROBOTS, machine, markdown, median_times, options

import featherweight as fw

NAMES = ("hyq", "panda")
PUBLISHED = {("hyq", "inverse_dynamics_second_derivatives"): 51.0}  # [µs], for a quadruped of 12 joints on a floating base
FUNCTIONS = {
    "inverse_dynamics_derivatives": "first derivatives of inverse dynamics",
    "inverse_dynamics_second_derivatives": "second derivatives of inverse dynamics",
    "inverse_dynamics_hessian": "Hessian of inverse dynamics",
    "forward_dynamics_hessian": "Hessian of forward dynamics",
}
HEADER = ["robot", "function", "numbers", "one call [µs]", "batch [µs per state]", "published [µs]", "mul + add"]


def rows(name: str, batch: int, seconds: float) -> Iterable[list[str]]:
    path, base = FILES[name]
    robot = fw.load(ROBOTS / path, base=base, mimic="independent")
    rng = np.random.default_rng(0)
    q = robot.random_configuration(rng=rng, size=batch)
    v, u, weights = rng.standard_normal((3, batch, robot.nv))
    functions = {member: getattr(robot, member) for member in FUNCTIONS}
    numbers = {member: sum(y.size for y in function.program.outputs) for member, function in functions.items()}
    states = {member: min(batch, LARGEST // size) for member, size in numbers.items()}
    calls = []
    for member, function in functions.items():
        arguments = (q, v, u, weights) if member.endswith("hessian") else (q, v, u)
        calls.append(ways(function, [x[: states[member]] for x in arguments]))
    times = iter(median_times(list(chain(*calls)), seconds * len(functions)))
    for member, function in functions.items():
        one, many = next(times), next(times) / states[member]
        published = f"{PUBLISHED[name, member]:g}" if (name, member) in PUBLISHED else ""
        cells = f"{numbers[member]}", f"{1e6 * one:.2f}", f"{1e6 * many:.2f}", published, f"{function.operations.flops}"
        yield [name, FUNCTIONS[member], *cells]


def main() -> None:
    given = options(__doc__)
    print(f"{machine()}; batches of up to {given.batch} states on one thread\n")
    print(markdown(HEADER, [row for name in NAMES for row in rows(name, given.batch, given.seconds)]))


if __name__ == "__main__":
    main()
