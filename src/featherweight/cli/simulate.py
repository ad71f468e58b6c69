"""The command that drops a robot on the ground."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ..array_types import Array
from ..model.description import Description
from ..model.types import JointType, ModelError
from ..robot.build import build
from ..robot.collision.shape_pairs import touching_pairs
from ..robot.robot import Robot
from ..simulation import ContactOptions, ContactSphere, Plane, Simulation, SimulationError, Trajectory
from ..simulation.simulation_options import FILE, LAWS, equalities_for, shapes_have_something_to_touch
from ..simulation.standins import spheres_of
from .console import make_console, wait_for_interrupt
from .options import Base, OutputOption, RobotFile, of_robot_file

FRAMES = 60  # recorded states per second
DAMPED = 0.02  # [s] ratio of damping to stiffness for --hold


@of_robot_file
def drop_robot(
    file: RobotFile,
    base: Annotated[Base | None, typer.Option(help="Base of the robot.", show_default="floating, if possible")] = None,
    seconds: Annotated[float, typer.Option("--time", min=1e-3, help="Duration [s].")] = 2.0,
    dt: Annotated[float, typer.Option(min=1e-6, help="Time step [s].")] = 1e-3,
    height: Annotated[float, typer.Option(min=0.0, help="Initial height above the ground [m].")] = 0.2,
    hold: Annotated[float, typer.Option(min=0.0, help="Stiffness of springs that hold the posture [N m/rad].")] = 0.0,
    friction: Annotated[float, typer.Option(min=0.0, help="Coefficient of Coulomb friction.")] = 0.8,
    restitution: Annotated[float, typer.Option(min=0.0, max=1.0, help="Coefficient of restitution.")] = 0.0,
    contact: Annotated[str, typer.Option(metavar="|".join(LAWS), help="Contact law: that of the file, or another one.")] = FILE,
    output: OutputOption = Path("output"),
    view: Annotated[bool, typer.Option("--view", help="Then play the motion in a window.")] = False,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Save the motion as one HTML file.")] = None,
) -> None:
    """Drop a robot on the ground, and show its motion, its energy, and the speed of the simulation."""
    from .charts import save_energy  # imports matplotlib

    console = make_console()
    equalities = equalities_for(contact)
    loaded = _built(with_springs(file.read(equalities), hold), base, equalities)
    try:
        options = ContactOptions(law=contact, friction=friction, restitution=restitution)
        sim, touching = _scene(loaded, dt, height, options)
        console.print(f"{loaded.name}: {loaded.nv} degrees of freedom, {touching}")
        _compile(sim, console)
    except (ValueError, SimulationError) as error:
        raise ModelError(f"{file.robot}: {error}") from error
    begun = time.perf_counter()
    motion, energies, failed = _simulate(sim, seconds, console)
    wall = time.perf_counter() - begun
    rate = sim.steps / wall
    console.print(
        f"{sim.time:.4g} s in {wall:.2f} s: {rate:,.0f} steps per second, {sim.time / wall:.2g} times real time; "
        f"{len(sim.contacts()[0])} contacts at the end"
    )
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"simulate_{file.stem}.png"
    save_energy(path, loaded.name, motion.times, energies)
    console.print(f"Chart: {path}", soft_wrap=True)
    if view or save is not None:
        _show(loaded, motion, view, save)
    if failed is not None:
        raise ModelError(f"{file.robot}: {failed}")


def _built(description: Description, base: Base | None, equalities: str) -> Robot:
    """Build the robot with the given base. The default is floating, unless the root floats already or has no mass."""
    if base is not None or any(j.type is JointType.FLOATING for j in description.joints):
        return build(description, base or "fixed", equalities=equalities)
    try:
        return build(description, "floating", equalities=equalities)
    except ModelError:
        return build(description, "fixed", equalities=equalities)


def _scene(robot: Robot, dt: float, height: float, contact: ContactOptions) -> tuple[Simulation, str]:
    """Return a simulation and a description of what may touch.

    The robot starts at its file's configuration if the file has a floor, or else above a ground if it floats.
    """
    if shapes_have_something_to_touch(robot, None):
        start = next((robot.configurations[name] for name in ("home", "qpos0") if name in robot.configurations), None)
        count = len(touching_pairs(robot))
        return Simulation(robot, dt, q=start, contact=contact), f"{count} pairs of the file's shapes can touch"
    spheres = spheres_of(robot) if any(j.type is JointType.FLOATING for j in robot.joints) else []
    ground = Plane() if spheres else None
    q = above_ground(robot, spheres, height)
    sim = Simulation(robot, dt, q=q, shapes=False, spheres=spheres, ground=ground, contact=contact)
    return sim, _what_may_touch(robot, spheres) if spheres else "no contacts, because the base is fixed"


def _what_may_touch(robot: Robot, spheres: list[ContactSphere]) -> str:
    bare = len({b.name for b in robot.bodies} - {s.frame for s in spheres})
    without = f"; {bare} bodies without collision shapes touch nothing" if bare else ""
    return f"{len(spheres)} points and spheres that can touch{without}"


def _compile(sim: Simulation, console: Any) -> None:
    """Compile the machine code in advance, so that the time does not count."""
    with console.status("compiling (a few seconds the first time on a machine; later loaded from disk)"):
        q = sim.q
        sim.run(2 * sim.dt, every=2)
        sim.reset(q)


def with_springs(description: Description, stiffness: float) -> Description:
    """Return the description with springs and dampers at all joints with one degree of freedom."""
    if stiffness == 0.0:
        return description
    joints = tuple(
        replace(j, stiffness=j.stiffness + stiffness, damping=j.damping + DAMPED * stiffness, rest=_start(j.lower, j.upper))
        if j.type.nv == 1
        else j
        for j in description.joints
    )
    return replace(description, joints=joints)


def above_ground(robot: Robot, spheres: list[ContactSphere], height: float) -> Array:
    """Return the neutral configuration within limits; a floating robot has its lowest point at a height [m]."""
    q = robot.neutral()
    for j in robot.joints:
        if j.type.nq == 1 and j.q_slice.stop > j.q_slice.start and not robot.closed:
            q[j.q_slice] = _start(j.lower, j.upper)
    floating = next((j for j in robot.joints if j.type is JointType.FLOATING), None)
    if floating is not None and spheres:
        frames = list(dict.fromkeys(s.frame for s in spheres))
        at = dict(zip(frames, robot.frame_placement(frames)(q), strict=True))
        lowest = min(float((at[s.frame] @ [*s.center, 1.0])[2]) - s.radius for s in spheres)
        q[floating.q_slice.start + 2] += height - lowest
    return q


def _start(lower: float, upper: float) -> float:
    """Return zero, or the nearest limit."""
    return min(max(0.0, lower), upper)


def _simulate(sim: Simulation, seconds: float, console: Any) -> tuple[Trajectory, Array, SimulationError | None]:
    """Simulate; return the motion, at most `FRAMES` states per second, the energies, and the failure or None.

    The energies are kinetic, potential and total.
    """
    every = max(1, round(1.0 / (FRAMES * sim.dt)))
    parts = [sim.run(0.0)]
    energies = [_energies(sim)]
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn()
    failed = None
    total = round(seconds / sim.dt)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("simulating", total=total, rate="")
        begun = time.perf_counter()
        while sim.steps < total:
            count = min(every, total - sim.steps)
            try:
                parts.append(sim.run(count * sim.dt, every=count).last())
            except SimulationError as error:
                failed = error
                break
            energies.append(_energies(sim))
            rate = sim.steps / (time.perf_counter() - begun)
            bar.update(task, completed=sim.steps, rate=f"t = {sim.time:.2f} s, {rate:,.0f} steps/s")
    return Trajectory.joined(parts), np.array(energies), failed


def _energies(sim: Simulation) -> list[float]:
    kinetic = float(sim.robot.kinetic_energy(sim.q, sim.v))
    return [kinetic, float(sim.robot.potential_energy(sim.q)), sim.energy()]


def _show(robot: Robot, motion: Trajectory, view: bool, save: Path | None) -> None:
    from ..viewer import Window  # imports viser

    with Window(robot, motion, port=None if view else 0, ground=0.0, quiet=True) as window:
        console = make_console()
        if save is not None:
            window.save(save)
            console.print(f"Recording: {save}", soft_wrap=True)
        if view:
            console.print(f"Window: {window.url}   (open it in a browser; Ctrl-C ends)", soft_wrap=True)
            wait_for_interrupt()
