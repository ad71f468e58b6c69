"""Motion of frames compared with Pinocchio, and arrays of rigid motions compared with Pinocchio and SciPy, in one run.

    python benchmarks/peers/frames.py [--batch 4096] [--seconds 2] [ROBOT ...]

The frame is the last one of the file. Users of Pinocchio run its recursion and then request the frame. It has no batch calls,
so a batch is a loop over states. Ratios are of medians; the calls of both alternate, on one thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
from measure import Calls, machine, markdown, options, rows
from pinocchio_peer import Pair
from scipy.spatial.transform import Rotation

from featherweight import se3
from featherweight.array_types import Array

ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


class Peers:
    """Calls of Pinocchio for one state."""

    def __init__(self, pair: Pair, frame: str) -> None:
        self.model, self.data, self.frame = pair.model, pair.data, pair.model.getFrameId(frame)

    def acceleration(self, q: Array, v: Array, a: Array) -> Any:
        pin.forwardKinematics(self.model, self.data, q, v, a)
        return pin.getFrameClassicalAcceleration(self.model, self.data, self.frame, ALIGNED)

    def jacobian_rate(self, q: Array, v: Array) -> Any:
        pin.computeJointJacobiansTimeVariation(self.model, self.data, q, v)
        pin.updateFramePlacement(self.model, self.data, self.frame)
        return pin.getFrameJacobianTimeVariation(self.model, self.data, self.frame, ALIGNED)


def of_robot(pair: Pair) -> Calls:
    robot, n = pair.robot, pair.batch
    name = robot.frames[-1].name
    peers = Peers(pair, name)
    acceleration, rate = robot.frame_classical_acceleration(name), robot.frame_jacobian_rate(name)
    ours = [(q.copy(), v.copy(), a.copy()) for q, v, a in zip(pair.q, pair.v, pair.u, strict=True)]
    theirs = [tuple(x[:, k].copy() for x in (pair.pq, pair.pv, pair.pu)) for k in range(n)]
    (q, v, a), (pq, pv, pa) = ours[0], theirs[0]
    assert np.allclose(acceleration(q, v, a), peers.acceleration(pq, pv, pa).vector, rtol=0.0, atol=1e-9)
    assert np.allclose(rate(q, v)[:, pair.order[1]], peers.jacobian_rate(pq, pv), rtol=0.0, atol=1e-9)
    out, matrices = np.empty((n, 6)), np.empty((n, 6, robot.nv))
    return {
        "acceleration, one state": (lambda: acceleration(q, v, a), lambda: peers.acceleration(pq, pv, pa), 1),
        "acceleration, batch": (
            lambda: acceleration(pair.q, pair.v, pair.u, out=out, threads=1),
            lambda: [peers.acceleration(*x) for x in theirs],
            n,
        ),
        "J', one state": (lambda: rate(q, v), lambda: peers.jacobian_rate(pq, pv), 1),
        "J', batch": (
            lambda: rate(pair.q, pair.v, out=matrices, threads=1),
            lambda: [peers.jacobian_rate(x, y) for x, y, _ in theirs],
            n,
        ),
    }


def of_motions(n: int) -> Calls:
    v = np.random.default_rng(0).standard_normal((n, 6))
    T, twists = se3.exp(v), [pin.Motion(x) for x in v]
    R, motions = np.ascontiguousarray(T[:, :3, :3]), [pin.SE3(x) for x in T]
    calls: Calls = {
        f"{name} of {what}": (lambda f=f, x=x: f(x), lambda g=g, y=y: [g(z) for z in y], n)  # type: ignore[misc]
        for name, what, f, x, g, y in (
            ("exp", "6 numbers", se3.exp, v, pin.exp6, twists),
            ("log", "a motion", se3.log, T, pin.log6, motions),
            ("Jexp", "6 numbers", se3.Jexp, v, pin.Jexp6, twists),
            ("Jlog", "a motion", se3.Jlog, T, pin.Jlog6, motions),
        )
    }
    return calls | {
        "exp3, beside SciPy": (lambda: se3.exp3(v[:, 3:]), lambda: Rotation.from_rotvec(v[:, 3:]).as_matrix(), n),
        "log3, beside SciPy": (lambda: se3.log3(R), lambda: Rotation.from_matrix(R).as_rotvec(), n),
        "log, one motion": (lambda: se3.log(T[0]), lambda: pin.log6(motions[0]), 1),
    }


def main() -> None:
    given = options(__doc__, robots=True)
    print(f"{machine()}; Pinocchio {pin.__version__}; batches of {given.batch}\n")
    table = [row for name in given.robots for row in rows(name, of_robot(Pair(name, given.batch)), given.seconds)]
    table += rows("none", of_motions(given.batch), given.seconds)
    print(markdown(["robot", "function", "ours [µs per state]", "peer [µs per state]", "ratio"], table))


if __name__ == "__main__":
    main()
