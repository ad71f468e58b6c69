"""Fit of 30 parameters of a seven-joint arm to a log of encoders, beside the same fit by differences of MuJoCo's rollout.

    python benchmarks/peers/identification.py [--seconds 60] [--peer-seconds 10] [--window 0.25]

The robot is a Panda with locked fingers. MuJoCo makes the logs with other parameters, a step of 0.25 ms and the integrator
"implicitfast". The fitted model, with steps of 1 ms and "Euler", is not exact. Encoders have noise of 1e-4 rad at 1 kHz.
The peer is the same fit (windows, starts, optimizer, stopping rules) with other motions: `mujoco.rollout` simulates all windows
on all threads, and the derivatives are forward differences by the starts of windows and by the parameters. It has a shorter
log, which featherweight fits as well, because it takes minutes. Times are wall times and processor times of this process. The
error on a log that was not used is that of positions 0.25 s after exact states.
"""

from __future__ import annotations

import argparse
import copy
import os
import tempfile
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any
from unittest.mock import patch

import mujoco
import mujoco.rollout
import numpy as np
from measure import machine, markdown
from numpy.typing import NDArray

import featherweight as fw
from featherweight.identification import Log, Parameter, fit, fitting
from featherweight.identification.shooting import Motion, Shooting

Floats = NDArray[np.float64]
STEP, NOISE = 1e-3, 1e-4
FINE = 4  # steps of the simulator of the log in a step of the fit
REST = np.array([0.0, -0.3, 0.0, -2.0, 0.0, 1.8, 0.3])
SIZE = np.array([0.3, 0.3, 0.3, 0.3, 0.4, 0.4, 0.5])
GAINS = np.array([400.0, 400.0, 300.0, 300.0, 60.0, 60.0, 30.0])
TRUE = {
    "damping": np.array([1.2, 0.8, 1.0, 0.6, 0.3, 0.25, 0.2]),
    "frictionloss": np.array([0.6, 0.5, 0.4, 0.5, 0.2, 0.1, 0.15]),
    "armature": np.array([0.2, 0.15, 0.15, 0.12, 0.05, 0.06, 0.04]),
}
MASS_FACTORS = {1: 1.2, 2: 0.9, 3: 1.15, 4: 0.85, 5: 1.1, 6: 1.3}  # of links 2 to 7
SHIFT = np.array([0.02, -0.01, 0.03])  # [m] of the centre of the last link


@dataclass
class Recorded:
    """A log, and the exact states at its times."""

    time: Floats
    tau: Floats
    q: Floats
    v: Floats

    def noisy(self, rng: np.random.Generator) -> Floats:
        return self.q + NOISE * rng.standard_normal(self.q.shape)


def initial_file(folder: Path) -> Path:
    """Write the robot from which the fits start."""
    robot = fw.read(fw.example("panda")).locked({"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0})
    arm = [j.name for j in robot.joints if j.type is not fw.JointType.FIXED]
    robot = robot.with_joint(arm, damping=0.5, dry_friction=0.3, armature=0.05, effort=1e3, limits=(-6.0, 6.0))
    path = folder / "panda7.xml"
    robot.save(path)
    path.write_text(path.read_text().replace("<compiler ", '<compiler fusestatic="true" ', 1))  # links without joints
    return path


def mujoco_model(path: Path, fine: int = 1) -> mujoco.MjModel:
    """Return the model of a file without collisions."""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.geom_contype[:] = model.geom_conaffinity[:] = 0
    model.opt.timestep = STEP / fine
    return model


def bodies_of(model: mujoco.MjModel) -> list[int]:
    """Return the body of each joint."""
    return [int(b) for b in model.jnt_bodyid]


def recorded(path: Path, seconds: float, seed: int) -> Recorded:
    """Return a motion of the true robot under a controller that follows sums of sines."""
    model = mujoco_model(path, FINE)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for name, x in TRUE.items():
        getattr(model, f"dof_{name}")[:] = x
    bodies = bodies_of(model)
    for joint, factor in MASS_FACTORS.items():
        model.body_mass[bodies[joint]] *= factor
        model.body_inertia[bodies[joint]] *= factor
    model.body_ipos[bodies[6]] += SHIFT
    mujoco.mj_setConst(model, mujoco.MjData(model))
    data, rng, n = mujoco.MjData(model), np.random.default_rng(seed), round(seconds / STEP)
    rate, phase = rng.uniform(1.0, 6.0, (4, 7)), rng.uniform(0.0, 6.0, (4, 7))
    data.qpos[:] = REST
    mujoco.mj_forward(model, data)
    time: Floats = np.float64(STEP) * np.arange(n)
    found = Recorded(time, *(np.empty((n, 7)) for _ in range(3)))
    for k in range(n):
        wanted = REST + 0.5 * SIZE * (np.sin(rate * found.time[k] + phase) - np.sin(phase)).sum(axis=0)
        found.q[k], found.v[k] = data.qpos, data.qvel
        found.tau[k] = GAINS * (wanted - data.qpos) - 0.6 * np.sqrt(GAINS) * data.qvel + data.qfrc_bias
        data.qfrc_applied[:] = found.tau[k]
        mujoco.mj_step(model, data, FINE)
    return found


class OfMuJoCo(Shooting):
    """Windows that `mujoco.rollout` simulates on all threads; derivatives are differences of them."""

    def __init__(self, *given: Any, model: mujoco.MjModel) -> None:
        super().__init__(*given)
        self.by_equations, self.model = False, model
        self.data = [mujoco.MjData(model) for _ in range(os.cpu_count() or 1)]
        self.bodies = bodies_of(model)
        self.mass = model.body_mass[self.bodies].copy()

    def changed(self, x: Floats) -> mujoco.MjModel:
        """Return a model with unknowns x (30,)."""
        model = copy.copy(self.model)
        for i, name in enumerate(TRUE):
            getattr(model, f"dof_{name}")[:] = x[7 * i : 7 * i + 7]
        for j in range(1, 7):
            factor = x[20 + j] / self.mass[j]
            model.body_mass[self.bodies[j]] *= factor
            model.body_inertia[self.bodies[j]] *= factor
        model.body_ipos[self.bodies[6]] = x[27:30]
        return model

    def motion(self, which: Any, X: Floats, q: Floats, v: Floats) -> Motion:
        windows, rows, steps = *q.shape[:2], self.windows.steps
        models = [self.changed(x) for x in X] * windows
        full = np.zeros((windows * rows, mujoco.mj_stateSize(self.model, FULL)))
        full[:, 1:15] = np.concatenate([q, v], axis=-1).reshape(-1, 14)
        tau = self._inputs(which, X, rows)["tau"]
        forces = mujoco.mjtState.mjSTATE_QFRC_APPLIED.value
        out, _ = mujoco.rollout.rollout(models, self.data, full, tau, control_spec=forces, chunk_size=rows)
        x = np.concatenate([full[:, None, 1:15], out[:, :, 1:15]], axis=1).reshape(windows, rows, steps + 1, 14)
        return Motion(x[..., :7], x[..., 7:], x[..., :0], ~np.isfinite(x).all(axis=(2, 3)))


FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS


def held_out_error(sim: fw.Simulation, log: Recorded, window: float) -> float:
    """Return the root mean square error [rad] of positions after windows from exact states."""
    L = round(window / STEP)
    first = np.arange(0, len(log.q) - L, L)
    tau = np.stack([log.tau[i : i + L] for i in first])
    moving = sim.with_options(on_failure="stop")
    q, _ = moving.rollout(log.q[first], log.v[first], tau=tau)
    return float(np.sqrt(np.mean((q[:, -1] - log.q[first + L]) ** 2)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the log [s]")
    parser.add_argument("--peer-seconds", type=float, default=10.0, help="length of the log of the peer [s]; 0 for no peer")
    parser.add_argument("--window", type=float, default=0.25, help="length of windows [s]")
    given = parser.parse_args()
    warnings.simplefilter("ignore", fw.ModelWarning)
    with tempfile.TemporaryDirectory() as folder:
        path = initial_file(Path(folder))
        log, other = recorded(path, given.seconds, 0), recorded(path, 20.0, 1)
        y = log.noisy(np.random.default_rng(2))
        robot = fw.load(path)
        sim = fw.Simulation(robot, dt=STEP, q=REST, shapes=False)
        bodies = [b.name for b in robot.bodies]
        parameters = [
            Parameter("damping"), Parameter("dry_friction"), Parameter("armature"), Parameter("mass", bodies[1:]),
            Parameter("center", bodies[6]),
        ]  # fmt: skip

        def fitted(what: str, seconds: float) -> list[str]:
            n = round(seconds / STEP)
            wall, work = perf_counter(), process_time()
            found = fit(sim, Log(log.time[:n], {"q": y[:n]}, tau=log.tau[:n]), parameters, window=given.window)
            wall, work = perf_counter() - wall, process_time() - work
            print(f"{what}\n{found}\n", flush=True)
            return [
                what, f"{seconds:g}", f"{wall:.1f}", f"{work:.1f}", str(found.iterations),
                f"{1e3 * held_out_error(sim, other, given.window):.3f}",
                f"{1e3 * held_out_error(found.simulation, other, given.window):.4f}",
                f"{np.median(np.abs(found.values / truth - 1.0)) * 100:.2f}",
            ]  # fmt: skip

        truth = truth_of(path)
        fitted("compiles", 2.0)
        rows = [fitted("featherweight", x) for x in dict.fromkeys((given.seconds, given.peer_seconds or given.seconds))]
        if given.peer_seconds:
            with patch.object(fitting, "Shooting", partial(OfMuJoCo, model=mujoco_model(path))):
                rows.append(fitted("differences of mujoco.rollout", given.peer_seconds))
        print(machine())
        columns = "fit", "log [s]", "wall [s]", "processors [s]", "Jacobians", "error before [mrad]", "after [mrad]"
        print(markdown([*columns, "median error [%]"], rows))


def truth_of(path: Path) -> Floats:
    """Return the true values of the parameters."""
    model = mujoco_model(path)
    bodies = bodies_of(model)
    masses = [model.body_mass[bodies[j]] * f for j, f in MASS_FACTORS.items()]
    return np.concatenate([*TRUE.values(), masses, model.body_ipos[bodies[6]] + SHIFT])


if __name__ == "__main__":
    main()
