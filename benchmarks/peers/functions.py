"""Functions of q and v compared with Pinocchio: the centroidal map and its rate, the Coriolis matrix, the CoM Jacobian.

    python benchmarks/peers/functions.py [--quick] [--batch 4096] [--seconds 2] [--robots ROBOT ...]

The method is that of benchmarks/peers/derivatives.py: Pinocchio's data are preallocated, and its results refer to them. Its
time per state of a batch is a loop over states minus the overhead of calls from Python. Our functions write to preallocated
arrays on one thread. Ratios are of medians; compared calls alternate.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from derivatives import BESIDE, LOOPED, arguments, compared, looped, ways
from measure import FILES, machine, median_times, pivoted
from pinocchio_peer import Pair

from featherweight.array_types import Array
from featherweight.engine.function import CompiledFunction

AGREE = 1e-9  # relative to the largest entry


class Comparison(NamedTuple):
    """A function of ours, the call of Pinocchio, and the result in its data, with columns in Pinocchio's order."""

    function: CompiledFunction[Any]
    call: Callable[[Any, Any, Array, Array], Any]  # takes model, data, q, v
    result: Callable[[Any], Array]  # takes data


def comparisons(pair: Pair) -> Iterable[Comparison]:
    robot = pair.robot
    yield Comparison(robot.center_of_mass_jacobian, lambda m, d, q, v: pin.jacobianCenterOfMass(m, d, q), lambda d: d.Jcom)
    yield Comparison(robot.centroidal_map, lambda m, d, q, v: pin.computeCentroidalMap(m, d, q), lambda d: d.Ag)
    yield Comparison(robot.centroidal_map_rate, pin.dccrba, lambda d: d.dAg)
    yield Comparison(robot.coriolis_matrix, pin.computeCoriolisMatrix, lambda d: d.C)


def cells(pair: Pair, given: argparse.Namespace) -> Iterable[tuple[str, str, str]]:
    model, data, n = pair.model, pair.data, min(pair.batch, LOOPED)
    nobody = pin.Model()
    blank = nobody.createData()
    states = [(pair.pq[:, k].copy(), pair.pv[:, k].copy()) for k in range(n)]
    nothing = [(np.zeros(0), np.zeros(0))] * n
    order = pair.order[1]
    for c in comparisons(pair):
        arguments = [getattr(pair, x.name) for x in c.function.program.inputs]
        worst = 0.0
        for k in range(4):
            c.call(model, data, *states[k])
            ours = c.function(*(x[k] for x in arguments))[:, order]
            ours = ours[order] if len(ours) == len(order) else ours
            worst = max(worst, float(abs(ours - c.result(data)).max() / abs(ours).max()))
        if not worst < AGREE:
            raise ArithmeticError(f"{pair.name}, {c.function.name}: differs from Pinocchio's by {worst:.1e}")

        def theirs(q: Array, v: Array, c: Comparison = c) -> Any:
            return c.call(model, data, q, v)

        def empty(q: Array, v: Array, c: Comparison = c) -> Any:
            return c.call(nobody, blank, q, v)

        one, many = ways(c.function, arguments)
        single = median_times([one, looped(theirs, states[:1])], given.seconds, given.rounds)
        whole, loop, entries = median_times([many, looped(theirs, states), looped(empty, nothing)], given.seconds, given.rounds)
        each = whole / pair.batch, (loop - entries) / n
        yield from compared(pair.name, c.function.name, single, each)


def main() -> None:
    given = arguments(__doc__, list(FILES), ["talos_reduced", "panda"], 4096)
    print(f"{machine()}; Pinocchio {pin.__version__}; batches of {given.batch} on one thread; times in µs per state\n")
    print(pivoted(BESIDE, (cell for name in given.robots for cell in cells(Pair(name, given.batch), given))))


if __name__ == "__main__":
    main()
