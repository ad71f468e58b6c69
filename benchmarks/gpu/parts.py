"""The parts of a run, in order: functions with goals first, other libraries last."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cases import CHEETAH, G1, PANDA, TALOS, Case
from figures import Figure, Prepared, by_peer, copied, fitting, on_processors, starts, sweep, timed
from rollouts import NAMES, rollouts
from roofline import BYTES
from runner import TRIAL, Run
from sass import disassembled

Part = Callable[[Run], Iterator[Figure]]

MUJOCO = "mujoco_peers.py"
HERE = Path(__file__).parent
PEER = 150.0  # time limit of a peer with its compilation [s]
LARGE = 30_000  # multiplications and additions
LARGE_TAKES = 150.0  # seconds
OTHERS = (  # measured on the processors too
    (TALOS, "inverse dynamics"),
    (PANDA, "forward dynamics"),
    (CHEETAH, "forward dynamics, rotors"),
    (G1, "forward dynamics"),
)


def functions(run: Run) -> Iterator[Figure]:
    """Measure the functions that the assembler compiles within seconds, those with goals first."""
    for case in sorted(run.cases, key=lambda c: not c.goals):
        if not large(case):
            for precision in BYTES:
                ready = Prepared(case, precision, fitting(case.function, precision, case.batch), run.lib)
                yield figure(run, "functions", ready)
                if not run.trial:
                    ready.tune()
                    yield figure(run, "tuned", ready)
    if not run.results.code:
        run.skip("Machine code was not counted (no code, or no nvdisasm): bounds are those of the operations.")


def derivatives(run: Run) -> Iterator[Figure]:
    """Measure the large functions, which the assembler compiles in a minute each, while time is left."""
    for precision in BYTES:
        for case in sorted(filter(large, run.cases), key=lambda c: not c.goals):
            if run.left > LARGE_TAKES:
                batch = fitting(case.function, precision, case.batch)
                yield figure(run, "functions", Prepared(case, precision, batch, run.lib))
            else:
                run.skip(f"{case.robot}, {case.name}, {precision} is left out: {run.left:.0f} s were left.")


def large(case: Case) -> bool:
    return case.function.operations.flops > LARGE


def figure(run: Run, part: str, ready: Prepared) -> Figure:
    """Measure a function on the device, and count its machine code."""
    code = None if ready.code is None else disassembled(ready.code)
    if code is not None:
        run.results.code[f"{ready.case.robot}, {ready.case.name}, {ready.precision}, {part}"] = code
    return timed(part, ready, run.lib)


def compiling(run: Run) -> Iterator[Figure]:
    case = run.case(TALOS)
    if case is not None:
        found = starts(case, run.lib, 1 if run.trial else 3)
        run.results.starts.extend(s._replace(goal=None) if run.trial else s for s in found)
    yield from ()


def batches(run: Run) -> Iterator[Figure]:
    case = run.case(TALOS)
    if case is not None:
        yield from sweep(case, run.lib, run.batches())


def copies(run: Run) -> Iterator[Figure]:
    for robot in (TALOS, PANDA):
        case = run.case(robot)
        if case is not None and not run.trial:
            yield from (copied(case, precision) for precision in BYTES)


def steps(run: Run) -> Iterator[Figure]:
    yield from rollouts(TRIAL, None, NAMES[:1]) if run.trial else rollouts()


def processors(run: Run) -> Iterator[Figure]:
    case = run.case(TALOS)
    if case is not None:
        yield from on_processors(case, run.batches(2**18))
    for robot, name in OTHERS:
        case = run.case(robot, name)
        if case is not None:
            yield from on_processors(case, (case.batch,))


def peer(name: str, *options: str) -> Part:
    """Return a part that another process measures."""

    def figures(run: Run) -> Iterator[Figure]:
        worlds = ["--worlds", str(TRIAL)] if run.trial and name == MUJOCO else []
        command = [str(HERE / name), *options, *worlds, "--robots", str(run.given.robots)]
        lines, reason = by_peer(command, min(PEER, max(run.left, 1.0)))
        for line in lines:
            found: dict[str, Any] = json.loads(line)
            yield Figure("peers", **found)
        if reason:
            run.skip(f"{' '.join([name, *options])} {reason}.")

    return figures


def building(run: Run) -> Iterator[Figure]:
    """Start GRiD's compilation, which takes minutes, in the background at the lowest priority."""
    if find_spec("grid_rbd") is not None:
        command = [sys.executable, str(HERE / "grid_peer.py"), "--build", "--robots", str(run.given.robots)]
        quiet: dict[str, Any] = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        run.beside = subprocess.Popen(["nice", "-n", "19", *command], start_new_session=True, **quiet)
    yield from ()


def grid(run: Run) -> Iterator[Figure]:
    if run.beside is not None and run.wait() is None:
        run.skip("grid_peer.py is left out: GRiD was still compiling.")
        return
    yield from peer("grid_peer.py")(run)


PARTS: dict[str, Part] = {
    "building": building,
    "functions": functions,
    "compiling": compiling,
    "batches": batches,
    "copies": copies,
    "processors": processors,
    "steps": steps,
    "warp": peer(MUJOCO, "warp"),
    "mjx": peer(MUJOCO, "mjx", "--worlds", "32768"),
    "derivatives": derivatives,
    "mjx64": peer(MUJOCO, "mjx", "--worlds", "32768", "--precision", "float64"),
    "grid": grid,
}
