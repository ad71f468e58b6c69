"""Collision queries and distances of robots' shapes, compared with Pinocchio and coal, in one run.

    python benchmarks/peers/collisions.py [--batch 4096] [--seconds 2] [ROBOT ...]

Both libraries replace meshes by convex hulls, test the same pairs (without those that the SRDF file disables), and use one
processor. Users of Pinocchio loop over states; `computeCollisions` stops at the first collision of a state. Distances are those
of 64 states. Ratios are of medians; the calls of both alternate.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
from collision_peer import CollisionPeer
from measure import FILES, ROBOTS, machine, median_times, options, pivoted

import featherweight as fw

SRDF = {
    "panda": "panda_description/srdf/panda.srdf",
    "talos_reduced": "talos_data/srdf/talos.srdf",
    "hyq": "hyq_description/srdf/hyq.srdf",
}
FEW = 64  # states for distances
NEAR = 0.05  # [m]

Call = Callable[[], Any]


def calls(robot: fw.Robot, peer: CollisionPeer, q: Any) -> dict[str, tuple[Call, Call, int]]:
    """Return our call, the peer's call and the number of states, by function."""
    states = [peer.configuration(row) for row in q]
    few, model, data, shapes, found = q[:FEW], peer.model, peer.data, peer.shapes, peer.found

    def distances() -> None:
        for state in states[:FEW]:
            pin.computeDistances(model, data, shapes, found, state)

    def one() -> None:
        pin.computeDistances(model, data, shapes, found, states[0])

    return {
        "in collision": (lambda: robot.in_collision(q), lambda: [peer.collide(s) for s in states], len(q)),
        "in collision, one state": (lambda: robot.in_collision(q[0]), lambda: peer.collide(states[0]), 1),
        "distances, one state": (lambda: robot.distances(q[0]), one, 1),
        "distances, all pairs": (lambda: robot.distances(few), distances, len(few)),
        f"distances, within {NEAR} m": (lambda: robot.distances(few, within=NEAR), distances, len(few)),
    }


def main() -> None:
    given = options(__doc__, robots=True)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    names = [name for name in given.robots if name in SRDF]
    print(f"{machine()}; Pinocchio {pin.__version__}; batches of {given.batch}\n")
    cells = []
    for name in names:
        file, base = FILES[name]
        robot = fw.load(ROBOTS / file, base, srdf=ROBOTS / SRDF[name], mimic="independent")
        peer = CollisionPeer(robot, ROBOTS / file, ROBOTS / SRDF[name], ROBOTS.parents[1])
        q = robot.random_configuration(rng=0, size=given.batch)
        hits = robot.in_collision(q)
        differ = np.mean(hits != np.array([peer.collide(peer.configuration(row)) for row in q]))
        pairs = len(robot.collision_pairs())
        print(f"{name}: {pairs} pairs; {np.mean(hits):.1%} of the states collide; answers differ in {differ:.1%}")
        for what, (call, other, states) in calls(robot, peer, q).items():
            a, b = (1e6 * t / states for t in median_times([call, other], given.seconds))
            cells.append((what, name, f"{a:.1f} / {b:.1f}, **{b / a:.2f} ×**"))
    print()
    print(pivoted("µs per state, ours / Pinocchio", cells))


if __name__ == "__main__":
    main()
