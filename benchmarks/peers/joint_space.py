"""The inverse and the sparse factors of the mass matrix, compared with Pinocchio and NumPy, in one run.

    python benchmarks/peers/joint_space.py [--batch 4096] [--seconds 2] [ROBOT ...]

Pinocchio computes only the upper triangle of the inverse. Its user copies it to the lower triangle, here by a preallocated mask
into a preallocated array. It has no batch calls for these functions, so a batch is a loop over states. Ratios are of medians;
the calls of both alternate, on one thread.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from measure import Calls, machine, options, pivoted, rows
from pinocchio_peer import Pair

import featherweight
from featherweight.array_types import Array
from featherweight.robot.dynamics import packed_factors


class Peers:
    """Calls of Pinocchio for one state, with preallocated arrays."""

    def __init__(self, pair: Pair) -> None:
        self.model, self.data = pair.model, pair.data
        n = pair.robot.nv
        self.full = np.empty((n, n))
        self.below = np.tri(n, k=-1, dtype=bool)

    def inverse(self, q: Array) -> Array:
        pin.computeMinverse(self.model, self.data, q)
        upper = self.data.Minv
        np.copyto(self.full, upper)
        np.copyto(self.full, upper.T, where=self.below)
        return self.full

    def decompose_all(self, states: list[Array]) -> None:
        for q in states:
            pin.crba(self.model, self.data, q)
            pin.cholesky.decompose(self.model, self.data)


def calls(pair: Pair) -> Calls:
    """Return our call, the peer's call and the number of states, by comparison."""
    robot, n, peers = pair.robot, pair.batch, Peers(pair)
    inverse, factors, parent = robot.inverse_mass_matrix, packed_factors(robot), robot.model.tree.parent
    q, p = pair.q[0].copy(), pair.pq[:, 0].copy()
    states = [pair.pq[:, k] for k in range(n)]
    out = np.empty((n, robot.nv, robot.nv))
    packed = factors(pair.q)
    M = robot.mass_matrix(pair.q)
    return {
        "inverse, one state": (lambda: inverse(q), lambda: peers.inverse(p), 1),
        "inverse, batch": (
            lambda: inverse(pair.q, out=out, threads=1),
            lambda: [peers.inverse(s) for s in states],
            n,
        ),
        "CRBA and LTDL, batch": (
            lambda: factors(pair.q, out=packed, threads=1),
            lambda: peers.decompose_all(states),
            n,
        ),
        "LTDL of given matrices, beside numpy.linalg.cholesky, batch": (
            lambda: featherweight.ltdl(M, parent, check=False, threads=1),
            lambda: np.linalg.cholesky(M),
            n,
        ),
    }


def main() -> None:
    given = options(__doc__, robots=True)
    print(f"{machine()}; Pinocchio {pin.__version__}, NumPy {np.__version__}; batches of {given.batch}\n")
    table = []
    for name in given.robots:
        pair = Pair(name, given.batch)
        order = pair.order[1]
        ours = pair.robot.inverse_mass_matrix(pair.q[0])[np.ix_(order, order)]
        theirs = Peers(pair).inverse(pair.pq[:, 0].copy())
        difference = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
        print(f"{name}: inverses agree to {difference:.1e}; ours is by {pair.robot.inverse_mass_matrix.algorithm!r}")
        table += rows(name, calls(pair), given.seconds)
    print()
    cells = ((name, what, f"{ours} / {theirs}, **{ratio} ×**") for name, what, ours, theirs, ratio in table)
    print(pivoted("µs per state, ours / peer", cells))


if __name__ == "__main__":
    main()
