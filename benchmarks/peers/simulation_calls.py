"""Calls around a simulation step, compared with MuJoCo: inputs of any type, states, copies, runs, readings, fleets.

    pip install --no-deps mjlab         # for Go1 and G1
    python benchmarks/peers/simulation_calls.py [--seconds 1] [--only hopper ...] [--contact rigid]

Each of our calls alternates with MuJoCo's way to the same end, with arrays made in advance; cells are medians, ours / MuJoCo's.
Robots are those of Gymnasium, Go1 and G1 of mjlab without motors, the Panda of example-robot-data with position drives and
without shapes, and a four-bar linkage, whose loop is an equality constraint in MuJoCo. Steps are those of the files, 5 ms for
mjlab's and 1 ms for the last two, with semi-implicit integration in both. Robots have fallen and lie still. Fleets run
on one thread in both; each robot begins where the single one lies. Times are processor time of the calling thread, on which
other programs, and compilers in the background, have less effect.
"""

from __future__ import annotations

import argparse
import copy
import time
import warnings
from collections.abc import Callable
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np
from falling_scenes import FallingScene, folder_of
from measure import machine, markdown, median_times
from robots_in_mujoco import STEP, mujoco_states, urdf_in_mujoco
from simulation_models import ASSETS, PANDA, four_bar, mechanism_in_mujoco, set_state

import featherweight as fw
from featherweight.array_types import Array
from featherweight.simulation.simulation_options import FILE, LAWS

DRIVES = fw.PD(400.0, 40.0)
FULL, PHYSICS = mujoco.mjtState.mjSTATE_INTEGRATION, mujoco.mjtState.mjSTATE_FULLPHYSICS
FALLEN, FLEET, PART, AHEAD = 6000, 64, 1.0, 10  # steps, robots, seconds of a run, and steps of a rollout
Pair = tuple[Callable[[], Any], Callable[[], Any], int]  # our call, MuJoCo's, and the steps of both


class Scene:
    """A robot that has fallen, in both simulators; `start` is MuJoCo's, if it is not that of its file.

    `settings` are options of our simulations.
    """

    def __init__(self, robot: fw.Robot, model: Any, start: Array | None = None, **settings: Any) -> None:
        self.robot, self.model, self.data = robot, model, mujoco.MjData(model)
        self.model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
        settings |= {"integrator": "semi-implicit"}
        self.sim = fw.Simulation(robot, **settings)
        self.sim.step(steps=FALLEN)
        self.fleet = fw.Simulation(robot, threads=1, on_failure="reset", **settings)
        self.fleet.state = self.sim.state.repeated(FLEET)
        if start is not None:
            set_state(model, self.data, start)
        for _ in range(FALLEN):
            self.step()
        self.saved = np.zeros(mujoco.mj_stateSize(self.model, FULL))
        mujoco.mj_getState(self.model, self.data, self.saved, FULL)

    def step(self) -> None:
        mujoco.mj_step(self.model, self.data)

    def stepped_with(self, tau: Any = None, forces: Any = None) -> None:
        if tau is not None:
            self.data.qfrc_applied[:] = tau
        if forces is not None:
            self.data.xfrc_applied[:] = forces
        mujoco.mj_step(self.model, self.data)

    def set_state(self) -> None:
        mujoco.mj_setState(self.model, self.data, self.saved, FULL)

    def recorded(self, steps: int, controller: Callable[[], Any] | None = None) -> None:
        """Run and copy each state."""
        q, v = np.zeros((steps, self.model.nq)), np.zeros((steps, self.model.nv))
        for k in range(steps):
            if controller is not None:
                self.data.qfrc_applied[:] = controller()
            mujoco.mj_step(self.model, self.data)
            q[k], v[k] = self.data.qpos, self.data.qvel


def gymnasium_file(name: str, contact: str = FILE) -> Scene:
    path = ASSETS / f"{name}.xml"
    return Scene(fw.load(path), mujoco.MjModel.from_xml_path(str(path)), contact=contact)


def mjlab_file(name: str, contact: str) -> Scene | None:
    """Return a robot of the installed package on a floor, or None without the package."""
    folder = folder_of("mjlab")
    if folder is None:
        return None
    scene = FallingScene.of_file(folder / "asset_zoo/robots" / f"unitree_{name}" / f"xmls/{name}.xml")
    return Scene(fw.load(scene.text, folder="/"), scene.mujoco_model, contact=contact)


def panda() -> Scene:
    """Return the arm, which hangs without controls."""
    model = urdf_in_mujoco(PANDA).compile()
    return Scene(fw.load(PANDA, mimic="independent"), model, dt=STEP, shapes=False, actuators=DRIVES)


def linkage() -> Scene:
    robot, model = fw.build(four_bar()), mechanism_in_mujoco(four_bar())
    (start,) = mujoco_states(model, robot, robot.start()[None], np.zeros((1, robot.nv)))
    return Scene(robot, model, start, dt=STEP)


SCENES: dict[str, Callable[[str], Scene | None]] = {  # by the contact law of MJCF files
    "hopper": lambda contact: gymnasium_file("hopper", contact),
    "half_cheetah": lambda contact: gymnasium_file("half_cheetah", contact),
    "ant": lambda contact: gymnasium_file("ant", contact),
    "humanoid": lambda contact: gymnasium_file("humanoid", contact),
    "Go1": lambda contact: mjlab_file("go1", contact),
    "G1": lambda contact: mjlab_file("g1", contact),
    "Panda": lambda _: panda(),
    "four-bar": lambda _: linkage(),
}


def pairs(x: Scene) -> dict[str, Pair]:
    """Return the calls of both simulators by what they do."""
    sim, m, d, robot = x.sim, x.model, x.data, x.robot
    u, tau, forces = np.zeros(sim.forces.nu), np.zeros(robot.nv), np.zeros((len(robot.bodies), 6))
    their_tau, theirs, saved, steps = np.zeros(m.nv), np.zeros((m.nbody, 6)), sim.state, round(PART / sim.dt)
    lists, single, strided = u.tolist(), u.astype(np.float32), np.repeat(u, 2)[::2]
    q, v = sim.q, sim.v

    def set_and_step() -> None:
        sim.state = saved
        sim.step(control=u)

    def they_set_and_step() -> None:
        x.set_state()
        x.step()

    def energy() -> Any:
        mujoco.mj_energyPos(m, d)
        mujoco.mj_energyVel(m, d)
        return d.energy[0] + d.energy[1]

    def contacts() -> list[Any]:
        force, found = np.zeros(6), []
        for k in range(d.ncon):
            mujoco.mj_contactForce(m, d, k, force)
            found.append((d.contact[k].pos.copy(), force.copy()))
        return found

    def forces_on_bodies() -> Any:
        mujoco.mj_rnePostConstraint(m, d)
        return d.cfrc_ext.copy()

    physics = np.zeros(mujoco.mj_stateSize(m, PHYSICS))
    mujoco.mj_getState(m, d, physics, PHYSICS)
    many, data = np.tile(physics, (FLEET, 1)), mujoco.MjData(m)
    pushes, fleet_u = np.zeros((FLEET, len(robot.bodies), 6)), np.zeros((FLEET, len(u)))
    rollout, out = mujoco.rollout.Rollout(nthread=0), {n: np.empty((FLEET, n, len(physics))) for n in (1, AHEAD)}

    def rolled(steps: int) -> None:
        rollout.rollout(m, data, many, nstep=steps, state=out[steps])

    readings = {"sensors()": (sim.sensors, lambda: d.sensordata.copy(), 1)} if m.nsensor else {}
    return {
        "step()": (sim.step, x.step, 1),
        "step(control=...)": (lambda: sim.step(control=u), x.step, 1),
        "step with joint forces": (lambda: sim.step(tau, u), lambda: x.stepped_with(their_tau), 1),
        "step with forces on bodies": (lambda: sim.step(None, u, forces), lambda: x.stepped_with(None, theirs), 1),
        "step with all three": (lambda: sim.step(tau, u, forces), lambda: x.stepped_with(their_tau, theirs), 1),
        "step, control a list": (lambda: sim.step(control=lists), x.step, 1),
        "step, control float32": (lambda: sim.step(control=single), x.step, 1),
        "step, control strided": (lambda: sim.step(control=strided), x.step, 1),
        "copy a state": (lambda: sim.state, lambda: mujoco.mj_getState(m, d, x.saved, FULL), 1),
        "set a state": (lambda: setattr(sim, "state", saved), x.set_state, 1),
        "set a state and step": (set_and_step, they_set_and_step, 1),
        "reset(q, v)": (lambda: sim.reset(q, v), x.set_state, 1),
        "q and v": (lambda: (sim.q, sim.v), lambda: (d.qpos.copy(), d.qvel.copy()), 1),
        "run, each step": (lambda: sim.run(PART, control=u), lambda: x.recorded(steps), steps),
        "run with a controller, each step": (
            lambda: sim.run(PART, lambda _, q, v: tau), lambda: x.recorded(steps, lambda: their_tau), steps,
        ),
        "copy the simulation": (lambda: copy.copy(sim), lambda: copy.copy(d), 1),
        "energy()": (sim.energy, energy, 1),
        "contacts()": (sim.contacts, contacts, 1),
        **readings,
        "contact_forces": (lambda: sim.contact_forces, forces_on_bodies, 1),
        f"fleet of {FLEET}, a robot's step": (lambda: x.fleet.step(control=fleet_u), lambda: rolled(1), FLEET),
        f"fleet of {FLEET} with forces on bodies": (
            lambda: x.fleet.step(control=fleet_u, external_forces=pushes), lambda: rolled(1), FLEET,
        ),
        f"rollout of {FLEET} from states, {AHEAD} steps": (
            lambda: x.fleet.rollout(x.fleet.state, steps=AHEAD), lambda: rolled(AHEAD), AHEAD * FLEET,
        ),
    }  # fmt: skip


def measured(name: str, seconds: float, contact: str) -> dict[str, tuple[float, float]]:
    """Return our time of each call around a step of a robot, and MuJoCo's [s]; none without the robot's package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fw.ModelWarning)
        scene = SCENES[name](contact)
        found = pairs(scene) if scene else {}
        times = {what: (median_times(calls, seconds, clock=time.thread_time), count) for what, (*calls, count) in found.items()}
    return {what: (ours / count, theirs / count) for what, ((ours, theirs), count) in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="time of each comparison [s]")
    parser.add_argument("--only", nargs="*", choices=SCENES, default=[*SCENES])
    parser.add_argument("--contact", choices=LAWS, default=FILE, help="contact law of robots from MJCF files")
    given = parser.parse_args()
    columns = [measured(name, given.seconds, given.contact) for name in given.only]
    calls = list(dict.fromkeys(what for times in columns for what in times))
    print(f"{machine()}; MuJoCo {mujoco.__version__}\n")
    rows = [[what, *(" / ".join(f"{1e6 * x:.1f}" for x in times.get(what, ())) for times in columns)] for what in calls]
    print(markdown(["call, µs", *given.only], rows))


if __name__ == "__main__":
    main()
