"""The demonstration: a humanoid robot's dynamics in numbers, their speed, and one picture."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from ..array_types import Array
from ..engine.function import CompiledFunction
from ..engine.threads import processors
from ..robot.build import load
from ..robot.robot import Robot
from ..robots.example_files import example
from ..version import __version__
from . import tables
from .console import make_console, progress, say
from .measure import time_functions
from .options import OutputOption, RepeatsOption, ThreadsOption

ROBOT = "talos_reduced"
CHUNK = 65_536  # states drawn at a time, to bound memory
BATCH = 4096  # states in a timed call
TOLERANCE = 1e-10  # error of the round trip relative to the largest joint force of a state; rounding errors are 1e-13

POSE = {
    "torso_1_joint": 0.10,
    "torso_2_joint": 0.06,
    "head_1_joint": 0.10,
    "arm_left_1_joint": -1.20,
    "arm_left_2_joint": 0.60,
    "arm_left_3_joint": 1.10,
    "arm_left_4_joint": -0.80,
    "arm_right_1_joint": -0.30,
    "arm_right_2_joint": -0.28,
    "arm_right_3_joint": 0.30,
    "arm_right_4_joint": -0.40,
    "leg_left_1_joint": 0.06,
    "leg_left_2_joint": 0.04,
    "leg_left_3_joint": -0.52,
    "leg_left_4_joint": 0.50,
    "leg_left_5_joint": 0.02,
    "leg_left_6_joint": -0.04,
    "leg_right_1_joint": -0.10,
    "leg_right_2_joint": -0.04,
    "leg_right_3_joint": 0.10,
    "leg_right_4_joint": 0.42,
    "leg_right_5_joint": -0.52,
    "leg_right_6_joint": 0.04,
}
"""A step forward [rad]; joints not named are at zero."""


SHOWN = (
    *("integrate", "inverse_dynamics", "forward_dynamics", "mass_matrix", "inverse_mass_matrix", "bias_force", "gravity_force"),
    *("kinetic_energy", "potential_energy", "center_of_mass", "center_of_mass_jacobian", "joint_jacobian"),
)
"""The functions of the demonstration; `featherweight ops` and `featherweight bench` show all functions."""


class RoundTrip(NamedTuple):
    """Forward dynamics of many states, and inverse dynamics of the results."""

    states: int
    seconds: float  # time of the calls of forward dynamics
    error: float  # largest relative error of the joint forces

    @property
    def passed(self) -> bool:
        return self.error <= TOLERANCE


def show_demo(
    output: OutputOption = Path("output"),
    states: Annotated[int, typer.Option(min=1, help="Number of states for forward dynamics.")] = 1_000_000,
    threads: ThreadsOption = None,
    repeats: RepeatsOption = 15,
) -> None:
    """Show the library on Talos, a humanoid robot: numbers, speed, and a picture."""
    if not demonstrate(make_console(), output, states, threads or processors(), repeats):
        raise typer.Exit(1)


def demonstrate(console: Console, output: Path, states: int, threads: int, repeats: int) -> bool:
    """Print the demonstration to `console` and save its picture in `output`; return whether its check passed."""
    path = example(ROBOT)
    output.mkdir(parents=True, exist_ok=True)
    robot = load(path, base="floating", mimic="independent")
    say(console, f"[bold]featherweight {__version__}[/bold]: dynamics of articulated robots, compiled for each robot\n")
    console.print(f"Talos, from {path}:", soft_wrap=True)
    size = f"{len(robot.bodies)} bodies, nq = {robot.nq}, nv = {robot.nv}, {robot.mass:.1f} kg"
    say(console, f"[bold]{size}[/bold], with a floating base")
    functions = shown_functions(robot)
    seconds = _call_all_once(robot, functions)
    say(console, f"{len(functions)} functions, compiled or read from the cache in {tables.format_duration(seconds)}\n")
    q = standing(robot)
    console.print(one_state_table(robot, functions, q), "", tables.operations_table(functions), "", sep="\n")

    round_trip = dynamics_of_many_states(console, robot, states, threads)
    _print_round_trip(console, round_trip, threads)

    batch = min(BATCH, states)
    with progress(console, "measuring", len(functions)) as step:
        timings = time_functions(robot, functions, batch, threads, repeats, step)
    console.print(tables.timings_table(timings, batch, threads), "", sep="\n")

    from .picture import save_picture  # imports matplotlib

    picture = output / "demo.png"
    save_picture(picture, robot, functions, q, timings, round_trip.states / round_trip.seconds, threads)
    console.print(f"Picture: {picture}", soft_wrap=True)
    return round_trip.passed


def shown_functions(robot: Robot) -> dict[str, CompiledFunction[Any]]:
    """Return the functions of the demonstration, by name."""
    every = robot.functions
    return {name: every[name] for name in SHOWN}


def standing(robot: Robot) -> Array:
    """Return the configuration `POSE`, with the sole of the lower foot on the ground."""
    q = robot.neutral()
    for joint in robot.joints:
        if joint.name in POSE:
            q[joint.q_slice] = POSE[joint.name]
    soles = robot.frame_placement(("left_sole_link", "right_sole_link"))(q)
    q[2] -= soles[:, 2, 3].min()
    return q


def one_state_table(robot: Robot, functions: Mapping[str, CompiledFunction[Any]], q: Array) -> Table:
    """Return a table of each function's result at one state: the pose q, with random velocities and forces."""
    rng = np.random.default_rng(0)
    state = {"q": q, **{name: rng.standard_normal(robot.nv) for name in ("v", "a", "tau")}}
    table = tables.plain_table("One state, midway through a step")
    tables.with_columns(table, ("function", "result", "largest", "first entries"))
    for name, function in functions.items():
        inputs = [a.name for a in function.program.inputs]
        result = np.asarray(function(*(state[i] for i in inputs)))
        shape = " × ".join(map(str, result.shape)) or "number"
        largest = float(np.abs(result).max())
        entries = ", ".join(f"{x:.5g}" for x in _without_rounding(result.reshape(-1)[:3], largest))
        more = ", …" if result.size > 3 else ""
        table.add_row(f"{name}({', '.join(inputs)})", shape, f"{largest:.5g}" if result.ndim else "", entries + more)
    return table


def _without_rounding(values: Array, largest: float) -> Array:
    """Return values, with zero in place of rounding errors."""
    return np.where(np.abs(values) < 1e-14 * largest, 0.0, values)


def dynamics_of_many_states(console: Console, robot: Robot, states: int, threads: int) -> RoundTrip:
    """Compute forward dynamics of random states and undo it by inverse dynamics; only forward dynamics is timed."""
    rng = np.random.default_rng(1)
    chunk = min(CHUNK, states)
    a, back = np.empty((chunk, robot.nv)), np.empty((chunk, robot.nv))
    seconds = error = 0.0
    starts = range(0, states, chunk)
    with progress(console, "forward dynamics of many states", len(starts)) as step:
        for start in starts:
            n = min(chunk, states - start)
            q = robot.random_configuration(rng=rng, size=n)
            v, tau = rng.standard_normal((n, robot.nv)), 10.0 * rng.standard_normal((n, robot.nv))
            if start == 0:
                robot.forward_dynamics(q, v, tau, out=a[:n], threads=threads)  # compiles
            begin = time.perf_counter()
            robot.forward_dynamics(q, v, tau, out=a[:n], threads=threads)
            seconds += time.perf_counter() - begin
            robot.inverse_dynamics(q, v, a[:n], out=back[:n], threads=threads)
            error = float(np.maximum(error, (_largest(back[:n] - tau) / _largest(tau)).max()))  # NaN stays NaN
            step("")
    return RoundTrip(states, seconds, error)


def _largest(rows: Array) -> Any:
    return np.abs(rows).max(axis=1)


def _print_round_trip(console: Console, round_trip: RoundTrip, threads: int) -> None:
    on = f"{threads} threads" if threads > 1 else "1 thread"
    took = f"took {tables.format_duration(round_trip.seconds)} on {on}"
    speed = f"{tables.format_rate(round_trip.states / round_trip.seconds)} states per second"
    say(console, f"[bold]Forward dynamics of {round_trip.states:,} states[/bold] {took}: [bold]{speed}[/bold]")
    verdict = "[bold green]pass[/bold green]" if round_trip.passed else "[bold red]fail[/bold red]"
    say(
        console,
        f"Inverse dynamics returns the forces of all {round_trip.states:,} states, with a relative error of at most "
        f"{round_trip.error:.1e} (tolerance {TOLERANCE:.0e}): {verdict}\n",
    )


def _call_all_once(robot: Robot, functions: Mapping[str, CompiledFunction[Any]]) -> float:
    """Call each function once, which compiles it or loads it from the cache; return the time in seconds."""
    start = time.perf_counter()
    for function in functions.values():
        function(*(robot.neutral() if a.rate else np.zeros(a.shape) for a in function.program.inputs))
    return time.perf_counter() - start
