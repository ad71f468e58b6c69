"""The regressor of inverse dynamics compared with Pinocchio's, in one run.

    python benchmarks/peers/regressors.py [--seconds 2] [ROBOT ...]

Pinocchio is called in its fastest way: model and data are preallocated, states are contiguous, and results refer to its data
without copies. It has no batch call for regressors. Its time per state of a batch is therefore estimated: a loop over states,
minus the same loop over calls with a model without joints, which is the overhead of calls from Python. Our functions write to a
preallocated array, on one thread. The sizes of batches fit the second-level cache, exceed it, and need main memory: a matrix
has many numbers, most of them zero. The column "filling" has the time in which NumPy fills the array with one number, which is
nearly a lower bound for batches. Ratios are of medians; compared calls alternate.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin
from derivatives import LOOPED, looped
from measure import FILES, machine, markdown, median_times
from pinocchio_peer import Pair

Array = np.ndarray[Any, np.dtype[Any]]
Call = Callable[[], Any]

SIZES = (1 << 20, 1 << 23, 1 << 27)  # largest size of a batch's results [bytes]
AGREE = 1e-9  # relative to the largest entry
TIMES = ["ours [µs per state]", "Pinocchio [µs per state]", "ratio", "filling [µs per state]"]
HEADER = ["robot", "matrix", "mul + add", "states", "result [MB]", *TIMES, "relative difference"]


def difference(pair: Pair) -> float:
    """Return the largest difference over some states, relative to the largest entry."""
    robot, worst = pair.robot, 0.0
    ids = [pair.model.getJointId(j.name) for j in robot.joints]
    columns = np.concatenate([10 * (i - 1) + np.arange(10) for i in ids])
    rows = np.argsort(pair.order[1])
    for k in range(8):
        ours = robot.inverse_dynamics_regressor(pair.q[k], pair.v[k], pair.u[k])
        theirs = pin.computeJointTorqueRegressor(pair.model, pair.data, pair.pq[:, k], pair.pv[:, k], pair.pu[:, k])
        worst = max(worst, float(abs(ours - theirs[np.ix_(rows, columns)]).max() / abs(theirs).max()))
    return worst


def regressor_of(model: Any) -> Callable[[Array, Array, Array], Any]:
    """Return Pinocchio's regressor with preallocated data; a model without joints measures the overhead of calls."""
    return partial(pin.computeJointTorqueRegressor, model, model.createData())


def one_call(pair: Pair, seconds: float) -> tuple[float, float, float]:
    """Return the times [s] of our function, of Pinocchio's, and of filling the matrix."""
    f, peer = pair.robot.inverse_dynamics_regressor, regressor_of(pair.model)
    q, v, a = (x[0].copy() for x in (pair.q, pair.v, pair.u))
    pq, pv, pa = (x[:, 0].copy() for x in (pair.pq, pair.pv, pair.pu))
    out = np.empty(f.program.outputs[0].shape)
    calls: list[Call] = [lambda: f(q, v, a, out=out), lambda: peer(pq, pv, pa), lambda: out.fill(0.5)]
    ours, theirs, filling = median_times(calls, seconds)
    return ours, theirs, filling


def batch(pair: Pair, seconds: float) -> tuple[float, float, float]:
    """Return the three times per state of a batch [s]."""
    f, peer, nobody = pair.robot.inverse_dynamics_regressor, regressor_of(pair.model), regressor_of(pin.Model())
    n, count = pair.batch, min(pair.batch, LOOPED)
    out = np.empty((n, *f.program.outputs[0].shape))
    states = [tuple(x[:, i].copy() for x in (pair.pq, pair.pv, pair.pu)) for i in range(count)]
    empty = looped(nobody, [(np.zeros(0), np.zeros(0), np.zeros(0))] * count)
    ours: Call = lambda: f(pair.q, pair.v, pair.u, out=out, threads=1)  # noqa: E731
    times = median_times([ours, looped(peer, states), empty, lambda: out.fill(0.5)], seconds)
    return times[0] / n, (times[1] - times[2]) / count, times[3] / n


def rows_of(name: str, seconds: float) -> Iterable[list[str]]:
    pair = Pair(name, 8)
    f = pair.robot.inverse_dynamics_regressor
    nv, p = f.program.outputs[0].shape
    error = difference(pair)
    if not error < AGREE:
        raise ArithmeticError(f"{name}: differs from Pinocchio's by {error:.1e}")
    for n in (1, *(max(size // (8 * nv * p) // 8, 1) * 8 for size in SIZES)):  # whole vectors
        times = one_call(pair, seconds) if n == 1 else batch(Pair(name, n), seconds)
        ours, theirs, filling = (1e6 * t for t in times)
        cells = [f"{ours:.2f}", f"{theirs:.2f}", f"{theirs / ours:.1f}", f"{filling:.2f}"]
        yield [name, f"{nv} × {p}", f"{f.operations.flops}", f"{n}", f"{8e-6 * n * nv * p:.3g}", *cells, f"{error:.0e}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="*", default=["talos_reduced", "panda"], metavar="ROBOT", help=", ".join(FILES))
    parser.add_argument("--seconds", type=float, default=2.0, help="time of each comparison [s]")
    given = parser.parse_args()
    print(f"{machine()}; Pinocchio {pin.__version__}; one thread; times in µs per state\n")
    print(markdown(HEADER, [row for name in given.robots for row in rows_of(name, given.seconds)]))


if __name__ == "__main__":
    main()
