"""Featherweight compared with Pinocchio in one run: one state from Python, and batches by each library's batch call.

    python benchmarks/peers/pinocchio_peer.py [--batch 4096] [--seconds 2] [ROBOT ...]

Pinocchio is called in its fastest way: preallocated model and data, double arrays in its own (column) order, results in
preallocated arrays. Ratios are of medians; the calls of both alternate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
from measure import FILES, ROBOTS, beside, machine, markdown, median_times, options

import featherweight

TARGETS = {
    ("forward dynamics", "one"): dict.fromkeys(FILES, 3.0),
    ("inverse dynamics", "one"): dict.fromkeys(FILES, 1.5),
    ("mass matrix", "one"): dict.fromkeys(FILES, 1.5),
    ("forward dynamics", "batch"): {"talos_reduced": 20.0, "g1_29dof": 20.0, "hyq": 15.0, "panda": 15.0},
    ("inverse dynamics", "batch"): dict.fromkeys(FILES, 15.0),
}


class Pair:
    """A robot in both libraries, with the same states in both."""

    def __init__(self, name: str, batch: int) -> None:
        file, base = FILES[name]
        path = str(ROBOTS / file)
        self.batch = batch
        self.robot = featherweight.load(path, base, mimic="independent")  # as Pinocchio reads the file
        follow = featherweight.load(path, base).nv < self.robot.nv
        self.label = f"{name} ({self.robot.nv} DoF{', mimic joints independent' if follow else ''})"
        self.name = name
        root = (pin.JointModelFreeFlyer(),) if base == "floating" else ()
        self.model = pin.buildModelFromUrdf(path, *root)
        self.data = self.model.createData()
        self.pool = pin.ModelPool(self.model, 1)
        assert (self.model.nq, self.model.nv) == (self.robot.nq, self.robot.nv)
        rng = np.random.default_rng(0)
        self.q = self.robot.random_configuration(rng=rng, size=batch)
        self.v, self.u = rng.standard_normal((2, batch, self.robot.nv))
        self.out = np.empty_like(self.v)
        self.order = self._order()
        moved_q, moved_v = self.order
        self.pq, self.pv, self.pu = (
            np.asfortranarray(x.T) for x in (self.q[:, moved_q], self.v[:, moved_v], self.u[:, moved_v])
        )
        self.pout = np.asfortranarray(np.empty_like(self.v).T)

    def _order(self) -> tuple[Any, Any]:
        """Return the indices of Pinocchio's coordinates in ours: Pinocchio sorts the children of a body by name."""
        joints = {j.name: j for j in self.robot.joints}
        q: list[int] = []
        v: list[int] = []
        for name in self.model.names[1:]:
            j = joints[name]
            q += range(j.q_slice.start, j.q_slice.stop)
            v += range(j.v_slice.start, j.v_slice.stop)
        return np.array(q), np.array(v)

    def check(self) -> float:
        """Return the largest relative difference of forward dynamics over the batch."""
        ours = self.robot.forward_dynamics(self.q, self.v, self.u)[:, self.order[1]]
        pin.abaInParallel(1, self.pool, self.pq, self.pv, self.pu, self.pout)
        theirs = self.pout.T
        return float((np.linalg.norm(ours - theirs, axis=1) / np.linalg.norm(theirs, axis=1)).max())

    def one(self) -> dict[str, tuple[Any, Any]]:
        r, m, d = self.robot, self.model, self.data
        q, v, u = self.q[0].copy(), self.v[0].copy(), self.u[0].copy()
        pq, pv, pu = (x[:, 0].copy() for x in (self.pq, self.pv, self.pu))
        fd, id_, M = r.forward_dynamics, r.inverse_dynamics, r.mass_matrix
        return {
            "forward dynamics": (lambda: fd(q, v, u), lambda: pin.aba(m, d, pq, pv, pu)),
            "inverse dynamics": (lambda: id_(q, v, u), lambda: pin.rnea(m, d, pq, pv, pu)),
            "mass matrix": (lambda: M(q), lambda: pin.crba(m, d, pq)),
        }

    def many(self) -> dict[str, tuple[Any, Any]]:
        r, pool = self.robot, self.pool
        pq, pv, pu, pout = self.pq, self.pv, self.pu, self.pout
        fd, id_ = r.forward_dynamics, r.inverse_dynamics
        q, v, u, out = self.q, self.v, self.u, self.out
        aba, rnea = pin.abaInParallel, pin.rneaInParallel
        return {
            "forward dynamics": (lambda: fd(q, v, u, out=out, threads=1), lambda: aba(1, pool, pq, pv, pu, pout)),
            "inverse dynamics": (lambda: id_(q, v, u, out=out, threads=1), lambda: rnea(1, pool, pq, pv, pu, pout)),
        }


def row(pair: Pair, seconds: float) -> tuple[list[str], list[str]]:
    """Return the row of a robot, and the goals that it misses."""
    cells, missed = [pair.label], []
    for kind, calls, states in (("one", pair.one(), 1), ("batch", pair.many(), pair.batch)):
        for what, times in calls.items():
            ours, theirs = median_times(times, seconds)
            cells.append(beside(1e6 * ours / states, 1e6 * theirs / states))
            goal = TARGETS[what, kind][pair.name]
            if theirs / ours < goal:
                missed.append(f"{pair.name}, {what}, {kind}: {theirs / ours:.1f} times as fast, and the goal is {goal:g}")
    return cells, missed


def main() -> None:
    given = options(__doc__, robots=True)
    print(f"{machine()}; Pinocchio {pin.__version__}; batches of {given.batch}\n")
    rows, missed = [], []
    for name in given.robots:
        pair = Pair(name, given.batch)
        print(f"{name}: forward dynamics agree to {pair.check():.1e}")
        cells, below = row(pair, given.seconds)
        rows.append(cells)
        missed += below
    functions = list(pair.one()) + [f"{what}, batch" for what in pair.many()]
    print()
    print(markdown(["µs per state, ours / Pinocchio", *functions], rows))
    print("\n" + "\n".join(missed or ["all goals are met"]))


if __name__ == "__main__":
    main()
