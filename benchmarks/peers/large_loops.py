"""Forward dynamics of large loops, compared with Pinocchio's `constraintDynamics` and `lcaba`, in one run.

    python benchmarks/peers/large_loops.py [--batch 256] [--seconds 2]

Rings have joints about parallel axes ("planar") or about random axes ("spatial"), random bodies, and a weld as their loop. A
ring on the ground is one chain whose end is welded to the ground. The others are two chains whose ends are connected, by a weld
or by a ball joint ("ball"). Tables and rules are those of loops.py. `lcaba` runs only for two chains: Pinocchio 4.1.0 crashes
with a loop that ends at the ground. Clusters are the cheapest algorithm for small rings, and multipliers for large ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pinocchio as pin
from loop_generators import closed_mechanism
from loops import ALGORITHMS, compared
from measure import machine, markdown, options

import featherweight as fw
from featherweight.model.description import Description
from featherweight.model.generators import from_parents
from featherweight.model.types import WORLD, LoopType

DIGITS = 15  # of the numbers of a ring: Pinocchio has no solution if redundant constraints contradict each other


def ring(kind: str, joints: int) -> Callable[[], Description]:
    """Return the maker of a ring on the ground."""
    return lambda: closed_mechanism(kind, joints, rng=0, digits=DIGITS)


def two_chains(loop: LoopType, joints: int) -> Callable[[], Description]:
    """Return the maker of two chains whose ends are connected where they are at a random configuration."""

    def make() -> Description:
        first = joints // 2
        parents = [-1, *range(first - 1), -1, *range(first, joints - 1)]
        made = from_parents(parents, rng=0)
        robot = fw.build(made)
        ends = made.joints[first - 1].child, made.joints[-1].child
        a, b = (fw.Pose.of(T) for T in robot.frame_placement(ends)(robot.random_configuration(rng=0)))
        return replace(made, loops=(fw.Loop("closing", loop, *ends, a.inverse() @ b),))

    return make


MECHANISMS: dict[str, Callable[[], Description]] = {
    **{f"planar, {n} joints": ring("planar", n) for n in (4, 8, 12, 20, 40, 60, 100, 200)},
    **{f"spatial, {n} joints": ring("spatial", n) for n in (8, 12, 20, 40, 60, 100, 200)},
    **{f"two chains, weld, {n} joints": two_chains(LoopType.WELD, n) for n in (8, 20, 60)},
    **{f"two chains, ball, {n} joints": two_chains(LoopType.SPHERICAL, n) for n in (8, 20, 60, 200)},
}


def main() -> None:
    given = options(__doc__, batch=256)
    print(f"{machine()}; Pinocchio {pin.__version__}; batches of {given.batch}\n")
    rows = []
    for name, make in MECHANISMS.items():
        d = make()
        grounded = any(WORLD in (x.predecessor, x.successor) for x in d.loops)
        rows += compared(name, d, given.batch, given.seconds, ALGORITHMS[:1] if grounded else ALGORITHMS)
    print()
    times = [f"{a} [µs per state]" for a in ("ours", *ALGORITHMS)]
    print(markdown(["mechanism", "call", *times, "ratio"], rows))


if __name__ == "__main__":
    main()
