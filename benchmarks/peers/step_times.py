"""Step times of falling and lying robots, compared with MuJoCo: median, 99 % quantile and maximum.

    pip install --no-deps mjlab gymnasium-robotics
    python benchmarks/peers/step_times.py [FILE.xml ...] [--steps 400] [--long 0] [--only NAME] [--seconds 120]
                                          [--contact file] [--torque 0]

Scenes are robots of installed packages and of the FILEs (MJCF), and piles of boxes, with a step of 5 ms and a floor if the file
has none (`falling_scenes`). Both simulators step alternately; the first ten steps are left out. The mean over some hundred
steps hides single steps that take a hundred times as long, which matter in a control loop. Ratios are MuJoCo's time over ours.

`--contact` chooses our contact law; the default is that of the files, which is MuJoCo's. `--torque T` adds random forces of T
at all joints, new in each step, and leaves out the first half of the steps, in which robots fall.

Without inputs, a robot comes to rest. With `--long N`, it keeps moving for N steps: it gets random controls and small random
changes of its velocity every 20 steps, and starts again every 400 steps.

A step that fails (SimulationError) is counted, and the robot starts again. A scene ends early after `--seconds`. Iterations are
the largest number of our contact solver in a step.
"""

from __future__ import annotations

import argparse
import gc
import time
import warnings
from pathlib import Path

import mujoco
import numpy as np
from falling_scenes import FallingScene, falling_scenes, kick
from measure import machine, markdown

import featherweight as fw
from featherweight.array_types import Array
from featherweight.simulation.simulation_options import FILE, LAWS

LEFT_OUT = 10  # first steps, in which caches fill
HELD, ANEW = 20, 400  # steps between changes of inputs, and between resets, in long runs
KICK = 0.1  # [rad/s, m/s], change of velocities in long runs
SHOWN = 60  # characters of a message that are shown
HEADER = [
    "scene", "nv", "contacts of MuJoCo", "steps", "ours, µs: median", "p99", "longest",
    "MuJoCo, µs: median", "p99", "longest", "ratio of medians", "iterations", "failed steps",
]  # fmt: skip


class Timed:
    """Step times [s] of both simulators, and further cells of a scene."""

    def __init__(self, scene: FallingScene, contact: str, torque: float) -> None:
        self.scene, self.torque, self.rng = scene, torque, np.random.default_rng(0)
        self.sim, self.data = scene.simulation(contact), mujoco.MjData(scene.mujoco_model)
        self.order = fw.MujocoOrder(self.sim.robot, scene.mujoco_model)
        model = scene.mujoco_model
        self.moved = model.jnt_type[model.dof_jntid] != mujoco.mjtJoint.mjJNT_FREE
        self.tau: Array | None = None
        self.q, self.v = self.sim.q.copy(), self.sim.v.copy()
        self.control: Array | None = None
        self.ours: list[float] = []
        self.theirs: list[float] = []
        self.contacts, self.iterations = 0, 0
        self.failures: list[str] = []

    def stir(self, k: int) -> None:
        """Change inputs and velocities, or reset, before step k of a long run."""
        if k % ANEW == 0:
            self.sim.reset(self.q, self.v)
            mujoco.mj_resetData(self.scene.mujoco_model, self.data)
        if k % HELD == 0:
            kick(self.sim, KICK * self.rng.standard_normal(len(self.v)), self.q)
            self.data.qvel += KICK * self.rng.standard_normal(len(self.data.qvel))
            controls = self.scene.random_controls(self.rng, len(self.data.ctrl))
            self.data.ctrl[:] = controls
            self.control = controls[: self.sim.forces.nu] if 0 < self.sim.forces.nu <= len(controls) else None

    def push(self) -> None:
        """Change the random forces at joints, the same for both simulators."""
        self.data.qfrc_applied[:] = self.torque * self.rng.standard_normal(len(self.moved)) * self.moved
        S = np.array([self.order.state(self.sim.q, e).qvel for e in np.eye(len(self.sim.v))])
        self.tau = S @ self.data.qfrc_applied

    def step(self) -> None:
        """Take and measure a step of each simulator."""
        begun = time.perf_counter()
        try:
            self.sim.step(self.tau, self.control)
        except fw.SimulationError as error:
            self.failures.append(error.what)
            self.sim.reset(self.q, self.v)
        between = time.perf_counter()
        mujoco.mj_step(self.scene.mujoco_model, self.data)
        self.theirs.append(time.perf_counter() - between)
        self.ours.append(between - begun)
        self.contacts = max(self.contacts, self.data.ncon)
        counts = (n for n in self.sim.solver.values() if isinstance(n, int))
        self.iterations = max(self.iterations, sum(counts))

    def cells(self) -> list[str]:
        """Return a row of the table."""
        first = max(LEFT_OUT, len(self.ours) // 2 if self.torque else 0)
        ours, theirs = (1e6 * np.array(times[first:]) for times in (self.ours, self.theirs))
        (x, slow, worst), (y, theirs_slow, theirs_worst) = (
            (np.median(t), np.quantile(t, 0.99), t.max()) for t in (ours, theirs)
        )
        told = f"{len(self.failures)}: {self.failures[0][:SHOWN]}" if self.failures else "0"
        return [
            self.scene.name, f"{self.scene.mujoco_model.nv}", f"{self.contacts}", f"{len(self.ours):,}",
            f"{x:.0f}", f"{slow:.0f}", f"{worst:.0f}",
            f"{y:.0f}", f"{theirs_slow:.0f}", f"{theirs_worst:.0f}",
            f"{y / x:.2f}", f"{self.iterations}", told,
        ]  # fmt: skip


def timed(scene: FallingScene, options: argparse.Namespace) -> list[str]:
    """Return the row of a scene, or the reason why it is not simulated."""
    try:
        times = Timed(scene, options.contact, options.torque)
    except (ValueError, NotImplementedError, fw.SimulationError) as error:
        return [scene.name, *[""] * (len(HEADER) - 2), f"not simulated: {str(error)[:SHOWN]}"]
    gc.collect()
    gc.disable()
    ends = time.perf_counter() + options.seconds
    for k in range(options.long or options.steps):
        if k > LEFT_OUT and time.perf_counter() > ends:
            break
        if options.long:
            times.stir(k)
        if options.torque:
            times.push()
        times.step()
    gc.enable()
    return times.cells()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--long", type=int, default=0, metavar="N", help="number of steps of a robot that keeps moving")
    parser.add_argument("--seconds", type=float, default=120.0, help="time limit per scene [s]")
    parser.add_argument("--only", default="", metavar="NAME", help="only scenes whose names contain this text")
    parser.add_argument("--contact", choices=LAWS, default=FILE, help="contact law of our simulation")
    parser.add_argument("--torque", type=float, default=0.0, help="random forces at joints [N m, N]")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # warnings of features that are not simulated
    print(f"{machine()}, MuJoCo {mujoco.__version__}\n")
    print(markdown(HEADER, []), flush=True)
    for scene in falling_scenes(options.files, options.only):
        cells = timed(scene, options)
        print(markdown(HEADER, [cells]).splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
