"""Calls around a simulation step, compared with MuJoCo: inputs of any type, states, copies, runs, readings, fleets.

    python benchmarks/peers/surface.py [--seconds 1]

Each of our calls alternates with MuJoCo's way to the same end, with arrays made in advance; cells are medians, ours / MuJoCo's.
Robots are those of Gymnasium, with their files' steps and semi-implicit integration in both; they have fallen before the
measurement. Fleets run on one thread in both.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import mujoco.rollout
import numpy as np
from measure import machine, markdown, median_times, options

import featherweight as fw

FILES = "hopper", "half_cheetah", "ant", "humanoid"
FULL, PHYSICS = mujoco.mjtState.mjSTATE_INTEGRATION, mujoco.mjtState.mjSTATE_FULLPHYSICS
FALLEN, FLEET, PART, AHEAD = 400, 64, 1.0, 10  # steps, robots, seconds of a run, and steps of a rollout
Pair = tuple[Callable[[], Any], Callable[[], Any], int]  # our call, MuJoCo's, and the steps of both


class Scene:
    """A robot that has fallen, in both simulators."""

    def __init__(self, name: str) -> None:
        path = str(Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / f"{name}.xml")
        self.model = mujoco.MjModel.from_xml_path(path)
        self.model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
        self.data, self.robot = mujoco.MjData(self.model), fw.load(path)
        self.sim = fw.Simulation(self.robot, integrator="semi-implicit")
        self.fleet = fw.Simulation(
            self.robot, integrator="semi-implicit", q=np.tile(self.sim.q, (FLEET, 1)), threads=1, on_failure="reset"
        )
        self.sim.step(steps=FALLEN)
        self.fleet.step(steps=FALLEN)
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


def pairs(x: Scene) -> dict[str, Pair]:
    """Return the calls of both simulators by what they do."""
    sim, m, d, robot = x.sim, x.model, x.data, x.robot
    u, tau, forces = np.zeros(len(robot.controls)), np.zeros(robot.nv), np.zeros((len(robot.bodies), 6))
    theirs, saved, steps = np.zeros((m.nbody, 6)), sim.state, round(PART / sim.step_size)
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
    pushes, fleet_u = np.zeros((FLEET, len(robot.bodies), 6)), np.zeros((FLEET, len(robot.controls)))
    rollout, out = mujoco.rollout.Rollout(nthread=0), {n: np.empty((FLEET, n, len(physics))) for n in (1, AHEAD)}

    def rolled(steps: int) -> None:
        rollout.rollout(m, data, many, nstep=steps, state=out[steps])

    readings = {"sensors": (sim.sensors, lambda: d.sensordata.copy(), 1)} if m.nsensor else {}
    return {
        "step()": (sim.step, x.step, 1),
        "step(control=...)": (lambda: sim.step(control=u), x.step, 1),
        "step with joint forces": (lambda: sim.step(tau, u), lambda: x.stepped_with(tau), 1),
        "step with forces on bodies": (lambda: sim.step(None, u, forces), lambda: x.stepped_with(None, theirs), 1),
        "step with all three": (lambda: sim.step(tau, u, forces), lambda: x.stepped_with(tau, theirs), 1),
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
            lambda: sim.run(PART, lambda _, q, v: tau), lambda: x.recorded(steps, lambda: tau), steps,
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


def column(name: str, seconds: float) -> dict[str, str]:
    """Return the cells of a robot by call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fw.ModelWarning)
        found = pairs(Scene(name))
        times = {what: (median_times(calls, seconds), count) for what, (*calls, count) in found.items()}
    return {what: " / ".join(f"{1e6 * x / count:.1f}" for x in both) for what, (both, count) in times.items()}


def main() -> None:
    given = options(__doc__)
    columns = [column(name, given.seconds) for name in FILES]
    calls = list(dict.fromkeys(what for cells in columns for what in cells))
    print(f"{machine()}; MuJoCo {mujoco.__version__}\n")
    print(markdown(["call, µs", *FILES], [[what, *(cells.get(what, "") for cells in columns)] for what in calls]))


if __name__ == "__main__":
    main()
