"""Derivatives, compared with Pinocchio's and with the underlying functions, in one run.

    python benchmarks/peers/derivatives.py [--quick] [--batch 1024] [--seconds 2] [--robots ROBOT ...]

Pinocchio is called in its fastest way: model, data and constraints are preallocated, states are contiguous, and results refer
to its data without copies. It has no batch call for derivatives. Its time per state of a batch is therefore estimated: a loop
over states, minus the same loop over calls with a model without joints, which is the overhead of calls from Python. Contacts
are solved without regularization, in one iteration. Our functions write to preallocated arrays. All run on one thread.
Everything is compiled before it is measured; second derivatives compile for minutes. Ratios are of medians; compared calls
alternate.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from loops import parallel_leg
from measure import FILES, machine, median_times, pivoted
from pinocchio_peer import Pair

import featherweight as fw
from featherweight.array_types import Array
from featherweight.engine.function import CompiledFunction

Call = Callable[[], Any]

LOOPED = 128  # states in a loop over Pinocchio's calls
HANDS = {"talos_reduced": "left_sole_link", "g1_29dof": "left_ankle_roll_link", "hyq": "lf_foot", "panda": "panda_hand_tcp"}
FEET = {
    "talos_reduced": ("weld", ("left_sole_link", "right_sole_link")),
    "g1_29dof": ("weld", ("left_ankle_roll_link", "right_ankle_roll_link")),
    "hyq": ("point", ("lf_foot", "rf_foot", "lh_foot", "rh_foot")),
}
MECHANISMS: dict[str, Callable[[], fw.Description]] = {
    "mini_cheetah": fw.robots.mini_cheetah,
    "mit_humanoid": fw.robots.mit_humanoid,
    "tello": fw.robots.tello,
    "jvrc1": fw.robots.jvrc1,
    "four_bar": fw.robots.four_bar,
    "parallel_leg": parallel_leg,
    "parallel_legs": lambda: parallel_leg(4),
}
BESIDE = "µs per state, ours / Pinocchio"
LARGEST = 8_000_000  # numbers in a batch's results: 64 MB; batches are shorter for large results
AGREE = 1e-7  # relative to the largest entry; contacts may be nearly singular at random configurations


class Peer:
    """Calls of Pinocchio for one state, also with a model without joints, which measures the overhead of calls."""

    def __init__(self, model: Any, kind: str = "weld", feet: Sequence[str] = (), hand: str = "universe") -> None:
        self.model, self.data = model, model.createData()
        self.hand = model.getFrameId(hand)
        self.constraints, self.datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        what = pin.ContactType.CONTACT_6D if kind == "weld" else pin.ContactType.CONTACT_3D
        for foot in feet:
            frame = model.frames[model.getFrameId(foot)]
            self.constraints.append(pin.RigidConstraintModel(what, model, frame.parentJoint, frame.placement, pin.LOCAL))
            self.datas.append(self.constraints[-1].createData())
        pin.initConstraintDynamics(model, self.data, self.constraints, self.datas)
        self.settings = pin.ProximalSettings(1e-12, 0.0, 1)

    def inverse(self, q: Array, v: Array, a: Array) -> Any:
        return pin.computeRNEADerivatives(self.model, self.data, q, v, a)

    def forward(self, q: Array, v: Array, tau: Array) -> Any:
        return pin.computeABADerivatives(self.model, self.data, q, v, tau)

    def constrained(self, q: Array, v: Array, tau: Array) -> Any:
        m, d, constraints, datas, settings = self.model, self.data, self.constraints, self.datas, self.settings
        pin.constraintDynamics(m, d, q, v, tau, constraints, datas, settings)
        return pin.computeConstraintDynamicsDerivatives(m, d, constraints, datas, settings)

    def velocity(self, q: Array, v: Array, a: Array) -> Any:
        pin.computeForwardKinematicsDerivatives(self.model, self.data, q, v, a)
        return pin.getFrameVelocityDerivatives(self.model, self.data, self.hand, pin.LOCAL)


class Comparison(NamedTuple):
    """A function of ours and the corresponding method of `Peer`."""

    name: str
    function: CompiledFunction[Any]
    method: Callable[..., Any]
    arguments: int = 3


def comparisons(pair: Pair) -> Iterable[Comparison]:
    robot = pair.robot
    yield Comparison("inverse dynamics", robot.inverse_dynamics_derivatives, Peer.inverse)
    yield Comparison("forward dynamics", robot.forward_dynamics_derivatives, Peer.forward)
    if pair.name in FEET:
        kind, feet = FEET[pair.name]
        space = robot.operational_space([fw.BilateralContact(foot, kind) for foot in feet])
        what = f"contact dynamics, {space.size} rows"
        yield Comparison(what, space.forward_dynamics_derivatives, Peer.constrained)
    velocity = robot.frame_velocity(HANDS[pair.name], "local").derivative()
    yield Comparison("frame velocity", velocity, Peer.velocity, 2)


def ways(function: CompiledFunction[Any], arguments: Sequence[Array]) -> tuple[Call, Call]:
    """Return calls for the first state and for all states, into preallocated arrays."""
    first = [x[0].copy() for x in arguments]
    one, many = blank(function(*first)), blank(function(*arguments))
    return lambda: function(*first, out=one), lambda: function(*arguments, out=many, threads=1)


def blank(results: Any) -> Any:
    """Return new arrays of the shapes of results."""
    return tuple(np.empty_like(x) for x in results) if isinstance(results, tuple) else np.empty_like(results)


def looped(call: Callable[..., Any], states: Sequence[tuple[Array, ...]]) -> Call:
    def loop() -> None:
        for state in states:
            call(*state)

    return loop


def difference(pair: Pair, c: Comparison, peer: Peer) -> float:
    """Return the largest difference of derivatives by q and v over some states, relative to the largest entry.

    Point contacts are compared at rest. Pinocchio constrains their classical acceleration, which has other derivatives at
    velocities that the contact does not allow.
    """
    moving = 0.0 if c.method is Peer.constrained and peer.constraints[0].type == pin.ContactType.CONTACT_3D else 1.0
    order, worst = pair.order[1], 0.0
    for k in range(8):
        ours = c.function(*(x[k] for x in (pair.q, moving * pair.v, pair.u)[: c.arguments]))
        theirs = c.method(peer, pair.pq[:, k], moving * pair.pv[:, k], pair.pu[:, k])
        for x in ((0, 1), (3, 4)) if c.method is Peer.constrained else ((0, 1),):  # accelerations, forces
            scale = max(abs(theirs[i]).max() for i in x)
            for i in x:
                a = ours[i][..., order]
                a = a if len(a) < len(order) else a[order]
                worst = max(worst, float(abs(a - theirs[i]).max() / scale))
    return worst


def peer_cells(pair: Pair, given: argparse.Namespace) -> Iterable[tuple[str, str, str]]:
    kind, feet = FEET.get(pair.name, ("weld", ()))
    peer, nobody, n = Peer(pair.model, kind, feet, HANDS[pair.name]), Peer(pin.Model()), min(pair.batch, LOOPED)
    states = [tuple(x[:, k].copy() for x in (pair.pq, pair.pv, pair.pu)) for k in range(n)]
    nothing = [(np.zeros(0), np.zeros(0), np.zeros(0))] * n
    for c in comparisons(pair):
        theirs, empty = c.method.__get__(peer), c.method.__get__(nobody)
        error = difference(pair, c, peer)
        if not error < AGREE:
            raise ArithmeticError(f"{pair.name}, {c.name}: differs from Pinocchio's by {error:.1e}")
        one, many = ways(c.function, (pair.q, pair.v, pair.u)[: c.arguments])
        single = median_times([one, looped(theirs, states[:1])], given.seconds, given.rounds)
        calls = [many, looped(theirs, states), looped(empty, nothing)]
        whole, loop, entries = median_times(calls, given.seconds, given.rounds)
        each = whole / pair.batch, (loop - entries) / n
        yield from compared(pair.name, c.name, single, each)


def compared(robot: str, function: str, one: Sequence[float], batch: Sequence[float]) -> Iterable[tuple[str, str, str]]:
    """Yield the cells of single calls and of a batch from our time and Pinocchio's [s per state]."""
    for row, (ours, theirs) in ((robot, one), (f"{robot}, batch", batch)):
        yield row, function, f"{1e6 * ours:.3f} / {1e6 * theirs:.2f}, **{theirs / ours:.1f} ×**"


class Derived(NamedTuple):
    """A derivative and its function."""

    name: str
    made: CompiledFunction[Any]
    more: tuple[Array, ...]  # additional arguments
    function: CompiledFunction[Any]


def derived(robot: fw.Robot, covector: Array, quick: bool) -> Iterable[Derived]:
    forward = robot.forward_dynamics
    yield Derived("derivatives of forward dynamics", robot.forward_dynamics_derivatives, (), forward)
    yield Derived("pullback of forward dynamics", forward.pullback, (covector,), forward)
    if not quick and not isinstance(robot, fw.ClosedRobot):
        inverse = robot.inverse_dynamics
        yield Derived("second derivatives of inverse dynamics", robot.inverse_dynamics_second_derivatives, (), inverse)
        yield Derived("Hessian of inverse dynamics", robot.inverse_dynamics_hessian, (covector,), inverse)
        yield Derived("Hessian of forward dynamics", robot.forward_dynamics_hessian, (covector,), forward)


def derived_cells(name: str, robot: fw.Robot, given: argparse.Namespace) -> Iterable[tuple[str, str, str]]:
    rng = np.random.default_rng(0)
    q = np.resize(robot.random_configuration(rng=rng, size=min(given.batch, 64)), (given.batch, robot.nq))
    v, tau, covector = rng.standard_normal((3, given.batch, robot.nv))
    for d in derived(robot, covector, given.quick):
        if d.made.too_large:
            yield name, d.name, "too large to trace"
            continue
        n = min(given.batch, max(1, LARGEST // sum(y.size for y in d.made.program.outputs)))
        states = [x[:n] for x in (q, v, tau)]
        one, many = ways(d.function, states)
        made_one, made_many = ways(d.made, (*states, *(x[:n] for x in d.more)))
        a, b, A, B = median_times([one, made_one, many, made_many], given.seconds, given.rounds)
        yield name, d.name, f"{1e6 * b:.2f}, {1e6 * B / n:.3f}"
        yield name, f"{d.name} / function", f"{b / a:.1f}, {B / A:.1f}"


def arguments(doc: str | None, known: list[str], default: list[str], batch: int) -> argparse.Namespace:
    """Return the options of the command line, with the seconds and rounds of each comparison."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", nargs="+", metavar="ROBOT", default=default, choices=known, help=", ".join(known))
    parser.add_argument("--batch", type=int, default=batch)
    parser.add_argument("--seconds", type=float, default=2.0, help="time of each comparison [s]")
    parser.add_argument("--quick", action="store_true", help="a tenth of the time, and no second derivatives")
    given = parser.parse_args()
    given.rounds = 8 if given.quick else 40
    given.seconds *= 0.1 if given.quick else 1.0
    return given


def main() -> None:
    known = [*FILES, *MECHANISMS]
    given = arguments(__doc__, known, known, 1024)
    print(f"{machine()}; Pinocchio {pin.__version__}; batches of {given.batch} on one thread; times in µs per state\n")
    beside: list[tuple[str, str, str]] = []
    made: list[tuple[str, str, str]] = []
    for name in given.robots:
        if name in FILES:
            pair = Pair(name, given.batch)
            beside += peer_cells(pair, given)
            robot = pair.robot
        else:
            robot = fw.build(MECHANISMS[name]())
        made += derived_cells(name, robot, given)
    if beside:
        print(pivoted(BESIDE, beside), end="\n\n")
    print(pivoted("µs, one call and in a batch", made))


if __name__ == "__main__":
    main()
