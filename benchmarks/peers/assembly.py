"""Closing the loops of mechanisms as exported by CAD programs, compared with SciPy, in one run.

    python benchmarks/peers/assembly.py [--each 5] [--starts 20] [--first]

Mechanisms of `loop_generators`: welded loops of 4 to 60 joints that are far from closed at zero, with numbers rounded to 1e-6.
SciPy's `least_squares` minimizes log6 of the loops' frames, which Pinocchio computes, from random starting points, to 1e-4 m
and rad. `random_configuration` also starts at random; Pinocchio checks its results. Times exclude the construction of robots
and models. They are those of one closed configuration, compared with SciPy's time until its first, and of as many
configurations as SciPy has starting points, compared with SciPy's time from all of them. With --first, SciPy stops at its first
success, so that more mechanisms can be tried.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from loop_generators import closed_mechanism
from loops import se3
from measure import machine, markdown
from scipy.optimize import least_squares

import featherweight as fw
from featherweight.array_types import Array
from featherweight.model.description import Description
from featherweight.model.types import WORLD, JointType

CLOSED = 1e-4  # [m, rad]
SIZES = {
    "planar": (4, 8, 20, 60),
    "spatial": (7, 9, 20, 60),
    "linkage": (7, 13, 22, 31),
    "platform": (36, 60),
}


class Peer:
    """The spanning tree of a description in Pinocchio, and the frames of its loops."""

    def __init__(self, d: Description) -> None:
        self.model = pin.Model()
        at: dict[str | None, int] = {WORLD: 0}
        for j in d.joints:
            slides = j.type is JointType.PRISMATIC
            kind = pin.JointModelPrismaticUnaligned if slides else pin.JointModelRevoluteUnaligned
            at[j.child] = self.model.addJoint(at[j.parent], kind(np.array(j.axis)), se3(j.placement), j.name)
        self.data = self.model.createData()
        self.loops = [(at[x.predecessor], se3(x.predecessor_frame), at[x.successor], se3(x.successor_frame)) for x in d.loops]

    def order(self, robot: fw.Robot) -> list[int]:
        """Return the indices of Pinocchio's coordinates in ours."""
        places = {j.name: j.q_slice.start for j in robot.joints}
        return [places[name] for name in self.model.names[1:]]

    def residual(self, q: Array) -> Array:
        pin.forwardKinematics(self.model, self.data, q)
        o = self.data.oMi
        return np.concatenate([pin.log6((o[a] * A).actInv(o[b] * B)).vector for a, A, b, B in self.loops])

    def closes(self, start: Array) -> bool:
        return bool(np.abs(least_squares(self.residual, start).fun).max() <= CLOSED)


class Outcome(NamedTuple):
    """Result for a mechanism: whether it was closed, and times [s]: ours of one and of many, SciPy's of its first and of
    all.
    """

    here: bool
    scipy: bool
    one: float
    first: float
    many: float
    every: float


def compared(d: Description, starts: int, only_first: bool) -> Outcome:
    peer = Peer(d)
    guesses = np.random.default_rng(0).uniform(-np.pi, np.pi, (starts, len(d.joints)))
    begun, first = time.perf_counter(), 0.0
    for guess in guesses:
        if peer.closes(guess) and not first:
            first = time.perf_counter() - begun
            if only_first:
                break
    every = np.nan if only_first else time.perf_counter() - begun
    try:
        robot = fw.build(d)
        one, q = timed(lambda seed: robot.random_configuration(rng=seed, size=1))
        many = np.nan if only_first else timed(lambda seed: robot.random_configuration(rng=seed, size=starts))[0]
    except ValueError as error:
        print(f"  {error}")
        return Outcome(False, first > 0.0, np.nan, first or np.nan, np.nan, every)
    closed = np.abs(peer.residual(q[0, peer.order(robot)])).max() <= CLOSED
    return Outcome(bool(closed), first > 0.0, one, first or np.nan, many, every)


def timed(call: Callable[[int], Array]) -> tuple[float, Array]:
    """Return the median time over three seeds, and the last result."""
    spent = []
    for seed in range(3):
        begun = time.perf_counter()
        result = call(seed)
        spent.append(time.perf_counter() - begun)
    return statistics.median(spent), result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=5, help="mechanisms of each kind and size")
    parser.add_argument("--starts", type=int, default=20, help="starting points of SciPy")
    parser.add_argument("--first", action="store_true", help="stop SciPy at the first start that closes the loops")
    options = parser.parse_args()
    print(machine())
    rows, outcomes = [], []
    for kind, sizes in SIZES.items():
        for joints in sizes:
            made = [closed_mechanism(kind, joints, rng=seed) for seed in range(options.each)]
            own = [compared(d, options.starts, options.first) for d in made]
            outcomes += own
            rows.append([f"{kind}, {joints} joints", *told(own)])
            print(" | ".join(rows[-1]), flush=True)
    rows.append(["all", *told(outcomes)])
    n = options.starts
    headings = ["mechanism", "closed by SciPy", "closed by both", "closed by Featherweight only"]
    headings += ["one configuration [ms]", "SciPy, first configuration [ms]", "ratio"]
    headings += [f"{n} configurations [ms]", f"SciPy, {n} starts [ms]", "ratio"]
    print(markdown(headings, rows))


def told(own: list[Outcome]) -> list[str]:
    both = [x for x in own if x.scipy and x.here]
    theirs = sum(x.scipy for x in own)
    share = f"{100.0 * len(both) / theirs:.1f} %" if theirs else ""
    times = [[1e3 * x.one, 1e3 * x.first, x.first / x.one, 1e3 * x.many, 1e3 * x.every, x.every / x.many] for x in both]
    medians = np.median(times, axis=0) if both else np.full(6, np.nan)
    return [f"{theirs} of {len(own)}", share, str(sum(x.here for x in own) - len(both)), *(f"{x:.3g}" for x in medians)]


if __name__ == "__main__":
    main()
