"""Forward dynamics of mechanisms with loops, compared with Pinocchio's `constraintDynamics` and `lcaba`, in one run.

    python benchmarks/peers/loops.py [--batch 4096] [--seconds 2]

Pinocchio solves the spanning tree with loops as point constraints, or welds, between two joints. Both algorithms regularize
constraints and refine the result by proximal iterations: `constraintDynamics` factorizes the matrix of tree and constraints,
and `lcaba` is the articulated-body recursion in an elimination order for loops. Each runs with the regularization in
REGULARIZATIONS and the smallest number of iterations for which its accelerations agree with ours, to AGREEMENT of the largest
one. An algorithm that never agrees has no time in the table. The ratio is that of the faster algorithm. Model, data and
constraints are preallocated; a batch is a loop over states. Ratios are of medians; all calls alternate, on one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin
from measure import machine, median_times, options, pivoted

import featherweight as fw
from featherweight.array_types import Array
from featherweight.model.description import Description
from featherweight.model.types import WORLD, LoopType

Dynamics = Callable[[Array, Array, Array], Any]  # takes q, v, tau

AGREEMENT = 1e-8  # lcaba reaches 1e-9 to 1e-11, by mechanism
CLOSED = 1e-11  # largest misclosure of the states
REGULARIZATIONS = (1e-4, 1e-6, 1e-8, 1e-10)
ALGORITHMS = ("constraintDynamics", "lcaba")


def parallel_leg(legs: int = 1) -> Description:
    """Return a hopping robot whose legs are planar five-bars: two driven thighs, and two shanks with a common ball joint."""
    link = fw.Inertia(0.4, (0.0, 0.0, -0.1), (2e-3, 0.0, 0.0, 2e-3, 0.0, 1e-4))
    bodies = [fw.Body("trunk", fw.Inertia(6.0, (0.0, 0.0, 0.0), (0.1, 0.0, 0.0, 0.2, 0.0, 0.2)))]
    joints = [fw.Joint("flight", fw.JointType.FLOATING, WORLD, "trunk")]
    loops, driven = [], []
    for k in range(legs):
        for side, x in (("front", 0.05), ("back", -0.05)):
            bodies += [fw.Body(f"{side}_thigh{k}", link), fw.Body(f"{side}_shank{k}", link)]
            hip = fw.Pose(p=(0.3 * k + x, 0.0, 0.0))
            joints.append(fw.Joint(f"{side}_hip{k}", fw.JointType.REVOLUTE, "trunk", f"{side}_thigh{k}", hip, (0.0, 1.0, 0.0)))
            knee = fw.Pose(p=(0.0, 0.0, -0.2))
            parent = f"{side}_thigh{k}"
            joints.append(fw.Joint(f"{side}_knee{k}", fw.JointType.REVOLUTE, parent, f"{side}_shank{k}", knee, (0.0, 1.0, 0.0)))
            driven.append(f"{side}_hip{k}")
        foot = fw.Pose(p=(0.0, 0.0, -0.25))
        loops.append(fw.Loop(f"foot{k}", LoopType.SPHERICAL, f"front_shank{k}", f"back_shank{k}", foot, foot))
    return fw.describe(bodies, joints, loops=loops, independent=["flight", *driven], name=f"{legs} parallel legs")


class Peer:
    """The spanning tree of a description in Pinocchio, with its loops as constraints."""

    def __init__(self, d: Description) -> None:
        self.tree = fw.build(replace(d, loops=(), couplings=(), closures=()))
        self.model = pin.Model()
        self.model.gravity = pin.Motion(np.array([*self.tree.gravity, 0.0, 0.0, 0.0]))
        self.at: dict[str | None, tuple[int, Any]] = {ground: (0, pin.SE3.Identity()) for ground in (WORLD, None)}
        inertias = {b.name: b.inertia for b in d.bodies}
        children = {j.child: j for j in d.joints}
        for moving in self.tree.joints:
            self._add(children[moving.child], inertias[moving.child])
        self.data = self.model.createData()
        self.constraints, self.datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for loop in d.loops:
            (a, A), (b, B) = self.at[loop.predecessor], self.at[loop.successor]
            one, other = A * se3(loop.predecessor_frame), B * se3(loop.successor_frame)
            kind = pin.ContactType.CONTACT_6D if loop.type is LoopType.WELD else pin.ContactType.CONTACT_3D
            self.constraints.append(pin.RigidConstraintModel(kind, self.model, a, one, b, other, pin.LOCAL))
            self.datas.append(self.constraints[-1].createData())
        pin.initConstraintDynamics(self.model, self.data, self.constraints, self.datas)
        pin.computeJointMinimalOrdering(self.model, self.data, self.constraints)

    def _add(self, joint: fw.Joint, inertia: fw.Inertia) -> None:
        parent, offset = self.at[joint.parent]
        flying = joint.type is fw.JointType.FLOATING
        kind = pin.JointModelFreeFlyer() if flying else pin.JointModelRevoluteUnaligned(np.array(joint.axis))
        index = self.model.addJoint(parent, kind, offset * se3(joint.placement), joint.name)
        xx, xy, xz, yy, yz, zz = inertia.rotational
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        body = pin.Inertia(inertia.mass, np.array(inertia.center), tensor)
        self.model.appendBodyToJoint(index, body, pin.SE3.Identity())
        self.at[joint.child] = (index, pin.SE3.Identity())

    def dynamics(self, algorithm: str, mu: float, iterations: int) -> Dynamics:
        """Return one of ALGORITHMS as a function of q, v and tau."""
        solve, settings = getattr(pin, algorithm), pin.ProximalSettings(1e-14, mu, iterations)
        return lambda q, v, tau: solve(self.model, self.data, q, v, tau, self.constraints, self.datas, settings)

    def agreeing(self, algorithm: str, error: Callable[[Dynamics], float]) -> tuple[Dynamics | None, str]:
        """Return the algorithm with the fewest iterations that agrees, or None, and a line about its error."""
        tried = []
        for iterations in range(1, 11):
            for mu in REGULARIZATIONS:
                candidate = self.dynamics(algorithm, mu, iterations)
                tried.append((error(candidate), iterations, mu))
                if tried[-1][0] <= AGREEMENT:
                    return candidate, f"{algorithm} agrees to {tried[-1][0]:.1e} with mu {mu:g}, iterations {iterations}"
        least, iterations, mu = min(tried)
        return None, f"{algorithm} is off by {least:.1e} at best, with mu {mu:g}, iterations {iterations}, so it is not timed"


def se3(pose: fw.Pose) -> Any:
    return pin.SE3(np.array(pose.R), np.array(pose.p))


MECHANISMS: dict[str, Callable[[], Description]] = {
    "four-bar": fw.robots.four_bar,
    "six-bar": fw.robots.six_bar,
    "one parallel leg": parallel_leg,
    "four parallel legs": lambda: parallel_leg(4),
}


def compared(name: str, d: Description, batch: int, seconds: float, algorithms: Sequence[str] = ALGORITHMS) -> list[list[str]]:
    """Return the rows for one state and for the batch; an algorithm of ALGORITHMS that is not named has no times."""
    robot, peer = fw.build(d), Peer(d)
    assert isinstance(robot, fw.ClosedRobot)
    rng = np.random.default_rng(0)
    drawn = robot.random_configuration(rng=rng, size=192)
    drawn = drawn[robot.opening(drawn) < CLOSED]
    regular = drawn[np.argsort(robot.singularity(drawn))[:64]]  # both lose digits near singular configurations
    q = np.tile(regular, (batch // 64, 1))
    v, tau = rng.standard_normal((2, len(q), robot.nv))
    moved = robot.spanning_velocity(q, v)
    driven = [r for c in robot._mechanism.clusters for r in c.independent]
    pushed = np.zeros_like(moved)
    pushed[:, driven] = tau
    states = [tuple(np.ascontiguousarray(x) for x in s) for s in zip(q, moved, pushed, strict=True)]
    ours = robot.forward_dynamics
    expected = ours(q[:64], v[:64], tau[:64])

    def error(dynamics: Dynamics) -> float:
        theirs = np.array([dynamics(*s)[driven] for s in states[:64]])
        return float(np.abs(expected - theirs).max() / np.abs(theirs).max())

    print(f"{name}: ours by {ours.algorithm!r}")
    peers = []
    for algorithm in ALGORITHMS:
        dynamics, line = peer.agreeing(algorithm, error) if algorithm in algorithms else (None, f"{algorithm} does not run")
        print(f"  {line}")
        peers.append(dynamics)
    assert any(peers)
    one = tuple(x[0].copy() for x in (q, v, tau))
    out = np.empty_like(v)
    calls: list[tuple[str, Callable[[], Any], int]] = [
        ("one state", lambda: ours(*one), 1),
        ("batch", lambda: ours(q, v, tau, out=out, threads=1), len(q)),
    ]
    rows = []
    for kind, call, count in calls:
        theirs = [partial(repeated, dynamics, states[:count]) for dynamics in peers if dynamics]
        s, *times = (t / count for t in median_times([call, *theirs], seconds))
        cells, faster = iter([f"{1e6 * t:.3f}" for t in times]), min(times)
        rows.append(
            [
                name,
                kind,
                f"{1e6 * s:.3f}",
                *(next(cells) if dynamics else "" for dynamics in peers),
                f"{faster / s:.1f}",
            ]
        )
    return rows


def repeated(dynamics: Dynamics, states: list[tuple[Array, ...]]) -> None:
    for q, v, tau in states:
        dynamics(q, v, tau)


def main() -> None:
    given = options(__doc__)
    print(f"{machine()}; Pinocchio {pin.__version__}; batches of {given.batch}\n")
    rows = [row for name, make in MECHANISMS.items() for row in compared(name, make(), given.batch, given.seconds)]
    print()
    cells = ((name, kind, f"{' / '.join(times)}, **{ratio} ×**") for name, kind, *times, ratio in rows)
    print(pivoted(f"µs per state, ours / {' / '.join(ALGORITHMS)}", cells))


if __name__ == "__main__":
    main()
