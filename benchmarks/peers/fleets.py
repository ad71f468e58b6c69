"""Fleets of robots compared with MuJoCo: microseconds per robot and step on all processors, and the ratio to ours.

    pip install --no-deps mjlab         # for Go1 and G1
    python benchmarks/peers/fleets.py [--only humanoid talos ...] [--robots 1024] [--rounds 9] [--mjbatch PYTHON ...]

Both simulate the same file with the same step from the same states under the same controls, in double precision. Robots of
gymnasium move under random controls with 50 steps per rollout; Talos, Go1 and G1 stand, with 20 steps (`fleet_scenes`). MuJoCo
is `mujoco.rollout` with preallocated results and one persistent thread per processor. Contacts follow the law of the files,
which is MuJoCo's, unless `--contact` selects another one for ours. Robots of ours that fail keep their last state, and the
table reports them.

Our fleet runs with the vectors of this processor. If these are longer than 256 bits, it also runs with vectors of 256 bits,
which most processors have (`--no-short` omits this), in its own process; both results must have the same bits. mjbatch and
mjbatch-uni need their own versions of MuJoCo: `--mjbatch` names the Python interpreters of environments that have one of them,
which also run in their own processes. Libraries alternate; times are medians of rounds.

To show that both libraries simulate the same motion, the table has the mean height of the centre of mass and the mean number of
contacts after the rollout, ours before MuJoCo's, and the median over robots of the largest difference of a joint. Ours counts
contacts up to a gap of a millimetre, MuJoCo from zero on. By the law of the files, motions agree until they are chaotic. With
another law, contacts yield only in MuJoCo, which evaluates contacts and limits four times per step for files with RK4 (ant,
hopper, humanoid, walker2d), ours once; and our step evaluates the springs of half_cheetah at its end, MuJoCo's at its
beginning.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

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

from featherweight.array_types import Array
from featherweight.engine.backends.llvm.jit import host
from featherweight.engine.threads import processors
from featherweight.simulation.simulation_options import FILE, LAWS

OF = 1024  # number of robots that `Fleet.share` multiplies
NOTHING = "-"


class Mjbatch(NamedTuple):
    """An environment with mjbatch or mjbatch-uni."""

    python: str  # its interpreter, or "" if the package cannot be imported
    name: str  # name of the package with versions


class Options(NamedTuple):
    """Options of the command line."""

    robots: int
    rounds: int
    contact: str
    short: bool  # whether to measure ours with vectors of 256 bits as well
    mjbatch: Sequence[Mjbatch]


class Measured(NamedTuple):
    """Times of a rollout [s], and further cells of the table."""

    theirs: float
    ours: float
    short: float | None
    mjbatch: Sequence[float | None]
    told: Sequence[str]  # cells of the table


def header(options: Options) -> list[str]:
    bits = 8 * host().vector_bytes
    short = [f"{AVX2} bits, µs", "ratio"] if options.short else []
    others = [cell for peer in options.mjbatch for cell in (f"{peer.name}, µs", "ratio")]
    seen = ["centre of mass, m", "contacts", "joint difference, rad or m", "remark"]
    return ["fleet", "steps", "MuJoCo, µs", f"ours, {bits} bits, µs", "ratio", *short, *others, *seen]


def row(name: str, options: Options) -> list[str] | None:
    """Return the row of a fleet, or None without its files."""
    fleet = FLEETS[name]
    scene = fleet.scene()
    if scene is None:
        return None
    robots = max(1, round(options.robots * fleet.share))
    try:
        times = measured(name, scene, robots, options)
    except (ValueError, NotImplementedError, RuntimeError) as error:  # errors of our loader, of the simulation, or of a process
        return [f"{robots} × {fleet.what}", *[NOTHING] * (len(header(options)) - 2), f"not simulated: {error}"]
    each = 1e6 / (robots * scene.steps)

    def beside(time: float | None) -> list[str]:
        return [NOTHING, NOTHING] if time is None else [f"{each * time:.2f}", f"{times.theirs / time:.2f}"]

    short = beside(times.short) if options.short else []
    others = [cell for time in times.mjbatch for cell in beside(time)]
    what = [f"{robots} × {fleet.what}", str(scene.steps), f"{each * times.theirs:.2f}"]
    return [*what, *beside(times.ours), *short, *others, *times.told]


def measured(name: str, scene: FleetScene, robots: int, options: Options) -> Measured:
    """Measure a fleet in all libraries, alternating."""
    sim = simulation_of(scene, options.contact)
    start = scene.start(sim, robots)
    m, states = scene.model, mujoco_states(scene.model, sim.robot, start.q, start.v)
    ours, theirs = OurFleet(sim, start.q, start.v, start.control), MujocoFleet(m, states, scene.steps, start.control)
    compile_vectors(ours.run)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        write(folder, scene, start, states)
        short = [PeerProcess("our_fleet.py", [name, options.contact, str(folder)])] if options.short else []
        others = [PeerProcess("mjbatch_process.py", [str(folder)], peer.python) for peer in options.mjbatch]
        stack.enter_context(theirs)
        for process in (*short, *others):
            stack.enter_context(process)
        calls = [theirs.run, ours.run, *(process.run for process in (*short, *others))]
        times = alternating(calls, options.rounds)
        same = not short or np.array_equal(np.load(folder / "ends.npy"), ours.ends[0])
    told = seen(ours, theirs)
    told[-1] = "; ".join(x for x in (told[-1], "" if same else f"results differ with {AVX2} bits") if x)
    return Measured(times[0], times[1], times[2] if short else None, times[2 + len(short) :], told)


def write(folder: Path, scene: FleetScene, start: Start, states: Array) -> None:
    """Write the scene and the initial states for peers in other processes."""
    (folder / "scene.xml").write_text(scene.text)
    np.savez(folder / "start.npz", states=states, **start._asdict())


def seen(ours: OurFleet, theirs: MujocoFleet) -> list[str]:
    """Return the cells of heights, contacts, joint differences, and problems."""
    m, robot = theirs.model, ours.sim.robot
    our_heights, _ = looked_at(m, mujoco_states(m, robot, *ours.ends))
    their_heights, their_contacts = looked_at(m, theirs.ends)
    mine, other = angles(m, robot)
    apart = np.abs(ours.ends[0][:, mine] - theirs.end_positions[:, other]).max(axis=1)
    failed = f"{ours.failed} of our robots failed" if ours.failed else ""
    alone = "" if ours.in_lanes else "ours ran without lanes"
    return [
        f"{our_heights.mean():.4f} / {their_heights.mean():.4f}",
        f"{ours.contacts:.2f} / {their_contacts.mean():.2f}",
        f"{np.median(apart):.1g}",
        "; ".join(x for x in (failed, alone, warned(*theirs.datas)) if x),
    ]


def mjbatch_of(python: str) -> Mjbatch:
    """Return the package of an environment with its version; report if there is none."""
    try:
        with PeerProcess("mjbatch_process.py", ["--name"], python) as peer:
            return Mjbatch(python, str(peer.ready))
    except (OSError, RuntimeError) as error:
        print(f"Without mjbatch, which {python} does not have: {error}\n")
        return Mjbatch("", "mjbatch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=list(FLEETS), default=list(FLEETS), metavar="NAME", help=", ".join(FLEETS))
    parser.add_argument("--robots", type=int, default=OF, help="robots per fleet (Talos: half)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--contact", choices=LAWS, default=FILE, help="contact law of our simulation")
    parser.add_argument("--no-short", action="store_true", help=f"do not measure vectors of {AVX2} bits")
    parser.add_argument(
        "--mjbatch", nargs="*", default=[sys.executable], metavar="PYTHON", help="Python interpreters with mjbatch"
    )
    given = parser.parse_args()
    short = not given.no_short and 8 * host().vector_bytes > AVX2
    print(f"{machine()}; MuJoCo {mujoco.__version__}; {processors()} threads; contact={given.contact!r}\n")
    found = [mjbatch_of(python) for python in given.mjbatch]
    options = Options(given.robots, given.rounds, given.contact, short, [peer for peer in found if peer.python])
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
