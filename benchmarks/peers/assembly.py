"""Closing loops of mechanisms as drawing programs export them, beside SciPy, in one run.

    python benchmarks/peers/assembly.py [--each 5] [--starts 20]

Mechanisms of `loop_generators`: welded loops of 4 to 60 joints that are far from closed at zero, numbers rounded to 1e-6.
SciPy's `least_squares` works on log6 of the loops' frames, which Pinocchio computes, from starting points anywhere, to 1e-4 m
and rad. `random_configuration` starts from nowhere, too; what it finds is checked by Pinocchio. Times are of one closed
configuration, without building robots or models: SciPy's until the first one is closed, and from all its starting points.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from measure import machine, markdown
from scipy.optimize import least_squares

import featherweight as fw
from featherweight.model.loop_generators import closed_mechanism
from featherweight.model.types import WORLD, Description, JointType, Pose

Array = np.ndarray[Any, np.dtype[Any]]

CLOSED = 1e-4  # [m, rad]
SIZES = {
    "planar": (4, 6, 10, 20, 40, 60),
    "spatial": (7, 8, 12, 20, 40, 60),
    "linkage": (7, 13, 22, 31, 43),
    "platform": (36, 48, 60),
}


class Peer:
    """The spanning tree of a description in Pinocchio, and the frames of its loops."""

    def __init__(self, d: Description) -> None:
        self.model = pin.Model()
        at: dict[str | None, int] = {WORLD: 0}
        for j in d.joints:
            slides = j.type is JointType.PRISMATIC
            kind = pin.JointModelPrismaticUnaligned if slides else pin.JointModelRevoluteUnaligned
            at[j.child] = self.model.addJoint(at[j.parent], kind(np.array(j.axis)), placed(j.placement), j.name)
        self.data = self.model.createData()
        self.loops = [
            (at[x.predecessor], placed(x.predecessor_frame), at[x.successor], placed(x.successor_frame)) for x in d.loops
        ]

    def residual(self, q: Array) -> Array:
        pin.forwardKinematics(self.model, self.data, q)
        o = self.data.oMi
        return np.concatenate([pin.log6((o[a] * A).actInv(o[b] * B)).vector for a, A, b, B in self.loops])

    def closes(self, start: Array) -> bool:
        return bool(np.abs(least_squares(self.residual, start).fun).max() <= CLOSED)


def placed(pose: Pose) -> Any:
    return pin.SE3(np.array(pose.R), np.array(pose.p))


class Outcome(NamedTuple):
    ours: bool
    theirs: bool
    time: float  # [s]
    first: float
    every: float

    @property
    def ratio(self) -> float:
        return self.time / self.first


def compared(d: Description, starts: int) -> Outcome:
    peer = Peer(d)
    guesses = np.random.default_rng(0).uniform(-np.pi, np.pi, (starts, len(d.joints)))
    begun, first = time.perf_counter(), 0.0
    for guess in guesses:
        if peer.closes(guess) and not first:
            first = time.perf_counter() - begun
    every = time.perf_counter() - begun
    try:
        robot = fw.build(d)
    except fw.ModelError as error:
        print(f"  {error}")
        return Outcome(False, first > 0.0, np.nan, first or every, every)
    spent = []
    for seed in range(3):
        begun = time.perf_counter()
        q = robot.random_configuration(seed)
        spent.append(time.perf_counter() - begun)
    closed = np.abs(peer.residual(q[peer.order(robot)])).max() <= CLOSED
    return Outcome(bool(closed), first > 0.0, statistics.median(spent), first or every, every)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=5, help="mechanisms of each kind and size")
    parser.add_argument("--starts", type=int, default=20, help="of SciPy")
    options = parser.parse_args()
    print(machine())
    rows, outcomes = [], []
    for kind, sizes in SIZES.items():
        for joints in sizes:
            own = [compared(closed_mechanism(kind, joints, seed=seed), options.starts) for seed in range(options.each)]
            outcomes += own
            rows.append([f"{kind}, {joints} joints", *told(own)])
            print(" | ".join(rows[-1]), flush=True)
    rows.append(["all", *told(outcomes)])
    headings = [
        "mechanism",
        "closed by SciPy",
        "of these by us",
        "by us alone",
        "ms",
        "SciPy, first",
        "times",
        "SciPy, all",
        "times",
    ]
    print(markdown(headings, rows))


def told(own: list[Outcome]) -> list[str]:
    theirs = [x for x in own if x.theirs]
    ours = [x for x in own if x.ours]
    time_, first, every = (1e3 * statistics.median([getattr(x, name) for x in own]) for name in ("time", "first", "every"))
    faster, faster_all = (statistics.median([getattr(x, name) / x.time for x in ours]) for name in ("first", "every"))
    share = f"{100.0 * sum(x.ours for x in theirs) / max(1, len(theirs)):.0f} %"
    alone = str(sum(not x.theirs for x in ours))
    return [
        f"{len(theirs)} of {len(own)}",
        share,
        alone,
        f"{time_:.1f}",
        f"{first:.1f}",
        f"{faster:.1f}",
        f"{every:.0f}",
        f"{faster_all:.0f}",
    ]


if __name__ == "__main__":
    main()
