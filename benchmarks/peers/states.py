"""Deviations of motions that continue from a saved state from the motion that was not interrupted, ours and MuJoCo's.

    python benchmarks/peers/states.py [--robots 64] [--contact rigid]

Robots of Gymnasium fall for 400 steps, each with velocities of its own, and then move for 100 more steps under random controls.
These steps are repeated from the saved state, and from the saved configuration and velocity alone. Cells are the greatest
difference of a velocity [m/s, rad/s], over all robots, after 1 and after 100 steps. Both simulators take the integrators and
steps of the files.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
from measure import machine, markdown

import featherweight as fw
from featherweight.array_types import Array
from featherweight.simulation.simulation_options import FILE, LAWS

FILES = "hopper", "half_cheetah", "ant", "humanoid"
FALL, MORE = 400, 100  # steps
WHOLE, WITHOUT_IMPULSES = mujoco.mjtState.mjSTATE_INTEGRATION, mujoco.mjtState.mjSTATE_FULLPHYSICS
HEADER = [
    "robot", "robots", "`state`", "`reset(q, v)`: 1 step", "100 steps", "bytes",
    "MuJoCo, mjSTATE_INTEGRATION", "mjSTATE_FULLPHYSICS: 1 step", "100 steps", "bytes",
]  # fmt: skip


def ours(robot: fw.Robot, v: Array, control: Array, contact: str) -> list[str]:
    """Return cells of robots that start with velocities (robots, nv), and their controls (robots, MORE, nu)."""
    sim = fw.Simulation(robot, q=np.tile(robot.start(), (len(v), 1)), v=v, on_failure="stop", contact=contact)
    sim.step(steps=FALL)
    saved, continued = sim.state, [sim.v]
    for k in range(MORE):
        sim.step(control=control[:, k])
        continued.append(sim.v)
    repeated, anew = (
        np.array(continued).swapaxes(0, 1) - sim.rollout(*x, control=control)[1] for x in ((saved,), (saved.q, saved.v))
    )
    return [cell(repeated, MORE), cell(anew, 1), cell(anew, MORE), str(saved.block.nbytes // len(v))]


def theirs(path: str, v: Array, control: Array) -> list[str]:
    """Return cells of the same robots in MuJoCo, one after the other."""
    model = mujoco.MjModel.from_xml_path(path)
    data, found = mujoco.MjData(model), []
    for start, controls in zip(v, control, strict=True):
        mujoco.mj_resetData(model, data)
        data.qvel = start
        mujoco.mj_step(model, data, FALL)
        whole, part = (saved(model, data, x) for x in (WHOLE, WITHOUT_IMPULSES))
        continued = moved(model, data, controls)
        for what, state in ((WHOLE, whole), (WITHOUT_IMPULSES, part)):
            mujoco.mj_resetData(model, data)
            mujoco.mj_setState(model, data, state, what)
            found.append(continued - moved(model, data, controls))
    repeated, anew = np.array(found[::2]), np.array(found[1::2])
    return [cell(repeated, MORE), cell(anew, 1), cell(anew, MORE), str(whole.nbytes)]


def saved(model: mujoco.MjModel, data: mujoco.MjData, what: mujoco.mjtState) -> Array:
    """Return a part of MuJoCo's state."""
    state = np.zeros(mujoco.mj_stateSize(model, what))
    mujoco.mj_getState(model, data, state, what)
    return state


def moved(model: mujoco.MjModel, data: mujoco.MjData, controls: Array) -> Array:
    """Take steps, and return the velocities before them and after each."""
    found = [data.qvel.copy()]
    for control in controls:
        data.ctrl = control
        mujoco.mj_step(model, data)
        found.append(data.qvel.copy())
    return np.array(found)


def cell(difference: Array, step: int) -> str:
    """Return the greatest of differences (robots, steps, nv) after a step."""
    return f"{np.abs(difference[:, step]).max():.0e}".replace("0e+00", "0")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", type=int, default=64, help="the number of robots in a fleet")
    parser.add_argument("--contact", choices=LAWS, default=FILE, help="contact law of our simulation")
    given, rows = parser.parse_args(), []
    for name in FILES:
        path = str(Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / f"{name}.xml")
        for robots in (1, given.robots):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", fw.ModelWarning)
                robot, rng = fw.load(path), np.random.default_rng(0)
                v = 0.1 * rng.normal(size=(robots, robot.nv))
                control = rng.uniform(-1.0, 1.0, (robots, MORE, len(robot.controls)))
                rows.append([name, str(robots), *ours(robot, v, control, given.contact), *theirs(path, v, control)])
    print(f"{machine()}; MuJoCo {mujoco.__version__}\n")
    print(markdown(HEADER, rows))


if __name__ == "__main__":
    main()
