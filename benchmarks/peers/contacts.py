"""Talos in contact: the Delassus matrix and constrained forward dynamics, compared with Pinocchio in one run.

    python benchmarks/peers/contacts.py [--batch 4096] [--seconds 2]

Pinocchio is called in its fastest way: with preallocated model, data, constraint models and result, and one proximal iteration
without regularization. It has no batch call for these functions, so a batch is a loop over states. Ratios are of medians; the
calls of both alternate, on one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import derivatives
import numpy as np
import pinocchio as pin
from measure import machine, median_times, options, pivoted
from pinocchio_peer import Pair

import featherweight as fw
from featherweight.array_types import Array

FEET = ("left_sole_link", "right_sole_link")
HANDS = ("gripper_left_base_link", "gripper_right_base_link")

Call = Callable[[], Any]


class Peer(derivatives.Peer):
    """Pinocchio's Delassus matrix of 6-D contacts on frames."""

    def dynamics(self, q: Array, v: Array, tau: Array) -> Any:
        return pin.constraintDynamics(self.model, self.data, q, v, tau, self.constraints, self.datas, self.settings)

    def delassus(self, q: Array) -> Any:
        return pin.computeDelassusMatrix(self.model, self.data, q, self.constraints, self.datas)


def compared(pair: Pair, what: str, frames: tuple[str, ...], seconds: float) -> list[tuple[str, str, str]]:
    """Return the cells of both functions, for one state and for the batch."""
    space = pair.robot.operational_space([fw.BilateralContact(f) for f in frames])
    delassus, dynamics = space.delassus(), space.constrained_dynamics
    peer = Peer(pair.model, feet=frames)
    q, v, tau = (x[0].copy() for x in (pair.q, pair.v, pair.u))
    p, pv, ptau = (x[:, 0].copy() for x in (pair.pq, pair.pv, pair.pu))
    states = [tuple(np.ascontiguousarray(x) for x in state) for state in zip(pair.pq.T, pair.pv.T, pair.pu.T, strict=True)]
    expected, accelerations = np.array(peer.delassus(p)), np.array(peer.dynamics(p, pv, ptau))
    errors = [_error(delassus(q), expected), _error(dynamics(q, v, tau).acceleration[pair.order[1]], accelerations)]
    print(f"{what}: agree to {errors[0]:.1e}, by {delassus.algorithm!r}, and {errors[1]:.1e}, by {dynamics.algorithm!r}")
    matrices, results = delassus(pair.q), dynamics(pair.q, pair.v, pair.u)
    calls: list[tuple[str, str, Call, Call, int]] = [
        ("Delassus matrix", "one state", lambda: delassus(q), lambda: peer.delassus(p), 1),
        (
            "Delassus matrix",
            "batch",
            lambda: delassus(pair.q, out=matrices, threads=1),
            lambda: [peer.delassus(s[0]) for s in states],
            len(states),
        ),
        (
            "constrained dynamics",
            "one state",
            lambda: space.forward_dynamics(q, v, tau),
            lambda: peer.dynamics(p, pv, ptau),
            1,
        ),
        (
            "constrained dynamics",
            "batch",
            lambda: dynamics(pair.q, pair.v, pair.u, out=results, threads=1),
            lambda: [peer.dynamics(*s) for s in states],
            len(states),
        ),
    ]
    cells = []
    for function, kind, ours, other, count in calls:
        a, b = (1e6 * t / count for t in median_times([ours, other], seconds))
        cells.append((what, f"{function}, {kind}", f"{a:.3f} / {b:.3f}, **{b / a:.1f} ×**"))
    return cells


def _error(ours: Array, theirs: Array) -> float:
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def main() -> None:
    given = options(__doc__)
    print(f"{machine()}; Pinocchio {pin.__version__}; batches of {given.batch}\n")
    pair = Pair("talos_reduced", given.batch)
    cells: list[tuple[str, str, str]] = []
    for what, frames in (("two feet", FEET), ("feet and hands", FEET + HANDS)):
        cells += compared(pair, what, frames, given.seconds)
    print()
    print(pivoted("µs per state, ours / Pinocchio", cells))


if __name__ == "__main__":
    main()
