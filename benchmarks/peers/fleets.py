"""Many robots at once beside MuJoCo: microseconds of a robot's step on all processors, and how many times ours goes into it.

    pip install --no-deps mjlab         # for Go1 and G1
    python benchmarks/peers/fleets.py [--only humanoid talos ...] [--robots 1024] [--rounds 9] [--mjbatch PYTHON ...]

Both simulate the same file at the same step from the same states under the same controls, in double precision: robots of
gymnasium that move under random controls, 50 steps a rollout, and Talos, Go1 and G1 that stand, 20 steps (`fleet_scenes`).
MuJoCo is `mujoco.rollout` with a thread for each processor, which stay, and preallocated results. Ours has contacts that are
rigid unless `--contact` says otherwise; MuJoCo's yield. Robots of ours that fail stay where they are, and are told of.

Ours is measured with the vectors of this processor, and, where these are longer than 256 bits, again with vectors of 256
bits, which most processors have (`--no-short` leaves that out): in a process of its own, whose results must have the same
bits. mjbatch and mjbatch-uni need MuJoCo in versions of their own: `--mjbatch` names the Python of environments that have one
of them. They are measured as a process beside, too. Peers take turns; times are medians of rounds.

To see that both simulate the same, the table has the mean height of the centre of mass and the mean number of contacts after
the rollout, ours before MuJoCo's, and the median over robots of the greatest difference of a joint. Ours counts contacts up to
a gap of a millimetre, MuJoCo from zero on. Motions differ where contacts yield in MuJoCo only, and where a file asks for RK4
(ant, hopper, humanoid, walker2d): MuJoCo computes contacts and limits four times a step, ours once. Our step takes the springs
of half_cheetah at its end, MuJoCo's at its beginning.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
from fleet_scenes import FLEETS, FleetScene, Start
from limited_vectors import AVX2
from measure import machine, markdown
from measured_row import alternating, warned
from mujoco_fleet import MujocoFleet, looked_at
from our_fleet import OurFleet, simulation_of
from peer_process import PeerProcess
from robots_in_mujoco import angles, mujoco_states
from simulation_gymnasium import compile_vectors

from featherweight.engine.backends.llvm.jit import host
from featherweight.engine.threads import processors
from featherweight.simulation.simulation_options import LAWS, RIGID

Array = np.ndarray[Any, np.dtype[Any]]

OF = 1024  # robots, of which `Fleet.share` is a share
NOTHING = "-"


class Mjbatch(NamedTuple):
    """An environment with mjbatch or mjbatch-uni."""

    python: str  # its interpreter; empty where the package cannot be imported
    name: str  # of the package, with versions


class Options(NamedTuple):
    """What the command line asks for, and how."""

    robots: int
    rounds: int
    contact: str
    short: bool  # whether ours is measured with vectors of 256 bits, too
    mjbatch: Sequence[Mjbatch]


class Measured(NamedTuple):
    """Times of a rollout [s], and what is told of it."""

    theirs: float
    ours: float
    short: float | None
    mjbatch: Sequence[float | None]
    told: Sequence[str]  # cells


def header(options: Options) -> list[str]:
    bits = 8 * host().vector_bytes
    short = [f"{AVX2} bits, µs", "ratio"] if options.short else []
    others = [cell for peer in options.mjbatch for cell in (f"{peer.name}, µs", "ratio")]
    seen = ["centre of mass, m", "contacts", "joints apart, rad or m", "remark"]
    return ["fleet", "steps", "MuJoCo, µs", f"ours, {bits} bits, µs", "ratio", *short, *others, *seen]


def row(name: str, options: Options) -> list[str] | None:
    """Return the line of a fleet, or None without its files."""
    fleet = FLEETS[name]
    scene = fleet.scene()
    if scene is None:
        return None
    robots = max(1, round(options.robots * fleet.share))
    try:
        times = measured(name, scene, robots, options)
    except (ValueError, NotImplementedError, RuntimeError) as error:  # our loader's, the simulation's, or a process's
        return [f"{robots} × {fleet.what}", *[NOTHING] * (len(header(options)) - 2), f"not simulated: {error}"]
    each = 1e6 / (robots * scene.steps)

    def beside(time: float | None) -> list[str]:
        return [NOTHING, NOTHING] if time is None else [f"{each * time:.2f}", f"{times.theirs / time:.2f}"]

    short = beside(times.short) if options.short else []
    others = [cell for time in times.mjbatch for cell in beside(time)]
    what = [f"{robots} × {fleet.what}", str(scene.steps), f"{each * times.theirs:.2f}"]
    return [*what, *beside(times.ours), *short, *others, *times.told]


def measured(name: str, scene: FleetScene, robots: int, options: Options) -> Measured:
    """Measure a fleet of all peers in turn."""
    sim = simulation_of(scene, options.contact)
    start = scene.start(sim, robots)
    m, states = scene.model, mujoco_states(scene.model, sim.robot, start.q, start.v)
    ours, theirs = OurFleet(sim, start.q, start.v, start.control), MujocoFleet(m, states, scene.steps, start.control)
    compile_vectors(ours.run)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        write(folder, scene, start, states)
        short = [PeerProcess("our_fleet.py", [name, options.contact, str(folder)])] if options.short else []
        others = [PeerProcess("mjbatch_process.py", [str(folder)], peer.python) for peer in options.mjbatch if peer.python]
        stack.enter_context(theirs)
        for process in (*short, *others):
            stack.enter_context(process)
        calls = [theirs.run, ours.run, *(process.run for process in (*short, *others))]
        times = alternating(calls, options.rounds)
        of_others = iter(times[2 + len(short) :])
        same = not short or np.array_equal(np.load(folder / "ends.npy"), ours.ends[0])
    told = seen(ours, theirs)
    told[-1] = "; ".join(x for x in (told[-1], "" if same else f"other results with {AVX2} bits") if x)
    mjbatch = [next(of_others) if peer.python else None for peer in options.mjbatch]
    return Measured(times[0], times[1], times[2] if short else None, mjbatch, told)


def write(folder: Path, scene: FleetScene, start: Start, states: Array) -> None:
    """Leave what peers in other processes begin with."""
    (folder / "scene.xml").write_text(scene.text)
    np.savez(folder / "start.npz", states=states, **start._asdict())


def seen(ours: OurFleet, theirs: MujocoFleet) -> list[str]:
    """Return cells: heights, contacts, how far joints are apart, and what went wrong."""
    m, robot = theirs.model, ours.sim.robot
    our_heights, _ = looked_at(m, mujoco_states(m, robot, *ours.ends))
    their_heights, their_contacts = looked_at(m, theirs.ends)
    mine, other = angles(m, robot)
    apart = np.abs(ours.ends[0][:, mine] - theirs.end_positions[:, other]).max(axis=1)
    failed = f"{ours.failed} of ours failed" if ours.failed else ""
    alone = "" if ours.in_lanes else "ours without lanes"
    return [
        f"{our_heights.mean():.4f} / {their_heights.mean():.4f}",
        f"{ours.contacts:.2f} / {their_contacts.mean():.2f}",
        f"{np.median(apart):.1g}",
        "; ".join(x for x in (failed, alone, warned(*theirs.datas)) if x),
    ]


def mjbatch_of(python: str) -> Mjbatch:
    """Ask an environment for the name and the version of its package; without it, say so."""
    try:
        with PeerProcess("mjbatch_process.py", ["--name"], python) as peer:
            return Mjbatch(python, str(peer.ready))
    except (OSError, RuntimeError) as error:
        print(f"Without mjbatch, which {python} does not have: {error}\n")
        return Mjbatch("", "mjbatch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=list(FLEETS), default=list(FLEETS), metavar="NAME", help=", ".join(FLEETS))
    parser.add_argument("--robots", type=int, default=OF, help="of each fleet; of Talos half as many")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--contact", choices=LAWS, default=RIGID, help="law of our contacts")
    parser.add_argument("--no-short", action="store_true", help=f"leave out vectors of {AVX2} bits")
    parser.add_argument("--mjbatch", nargs="*", default=[sys.executable], metavar="PYTHON", help="with mjbatch or mjbatch-uni")
    given = parser.parse_args()
    short = not given.no_short and 8 * host().vector_bytes > AVX2
    print(f"{machine()}; MuJoCo {mujoco.__version__}; {processors()} threads; contact={given.contact!r}\n")
    options = Options(given.robots, given.rounds, given.contact, short, [mjbatch_of(python) for python in given.mjbatch])
    print(markdown(header(options), []), flush=True)
    missing = []
    for name in given.only:
        cells = row(name, options)
        if cells is None:
            missing.append(name)
        else:
            print(markdown(cells, []).splitlines()[0], flush=True)
    if missing:
        print(f"\nWithout {' and '.join(missing)}, whose files are in the package mjlab: pip install --no-deps mjlab")


if __name__ == "__main__":
    main()
