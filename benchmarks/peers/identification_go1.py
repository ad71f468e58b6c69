"""Fit of friction, inertias, drives and a delay of a Go1 that trots, to a log of encoders and base poses.

    python benchmarks/peers/identification_go1.py [--seconds 5] [--window 0.1] [--step 0.001]

MuJoCo makes the log with other parameters, a step of 0.5 ms and the integrator "implicitfast". The fitted model, with a longer
step and "Euler", is not exact: feet touch and leave the floor, and slip. Encoders have noise of 1 mrad, and base poses noise of
1 mm and 1 mrad, at 250 Hz; all measurements are 6 ms old. The error on a log that was not used is that of joint angles, and of
the position of the base, one window after exact states.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

import mujoco
import numpy as np
from measure import machine, markdown
from numpy.typing import NDArray

import featherweight as fw
from featherweight.environments.joystick_tasks import Go1Joystick
from featherweight.identification import Channel, Log, Parameter, fit

Floats = NDArray[np.float64]
FINE, CONTROL = 5e-4, 4e-3  # [s] step of the simulator of the log, period of controls and measurements
NOISE = 1e-3  # [rad, m]
LATE = 6e-3  # [s] age of measurements
FRICTION, TRUNK, SHIFT = 0.75, 1.25, np.array([0.02, -0.01, 0.015])  # factors of friction and of the trunk's mass, [m]
GAIN, DAMPING, DRY = 1.15, 1.4, 0.6  # factors, for all joints


@dataclass
class Recorded:
    """A log of n controls, and the exact states at their times."""

    time: Floats
    control: Floats
    q: Floats  # quaternions (x, y, z, w)
    v: Floats

    def measured(self, rng: np.random.Generator) -> Channel:
        """Return measurements that are late."""
        return Channel(self.q + NOISE * rng.standard_normal(self.q.shape), self.time + LATE)


def true_model(path: Path) -> mujoco.MjModel:
    """Return the model of the log."""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep, model.opt.integrator = FINE, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model.geom_friction[:, 0] *= FRICTION
    model.pair_friction[:, :2] *= FRICTION
    trunk = model.body("trunk").id
    model.body_mass[trunk] *= TRUNK
    model.body_inertia[trunk] *= TRUNK
    model.body_ipos[trunk] += SHIFT
    model.actuator_gainprm[:, 0] *= GAIN
    model.actuator_biasprm[:, 1:3] *= GAIN
    model.dof_damping[6:] *= DAMPING
    model.dof_frictionloss[6:] *= DRY
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def trotting(time: float, home: Floats, phase: float) -> Floats:
    """Return targets of the joints (12,), leg by leg: hip, thigh and calf of FR, FL, RR and RL."""
    found = home.copy().reshape(4, 3)
    for leg, diagonal in enumerate((0.0, np.pi, np.pi, 0.0)):
        s, c = np.sin(6.0 * np.pi * time + diagonal + phase), np.cos(6.0 * np.pi * time + diagonal + phase)
        found[leg] += 0.03 * np.sin((2.0 + phase) * time), -0.04 * c + 0.25 * max(s, 0.0), -0.5 * max(s, 0.0)
    return found.ravel()


def recorded(path: Path, seconds: float, phase: float) -> Recorded:
    """Return a log of a robot that trots."""
    model = true_model(path)
    data, n = mujoco.MjData(model), round(seconds / CONTROL)
    home = np.array([model.qpos0[model.jnt_qposadr[i]] for i in model.actuator_trnid[:, 0]])
    time: Floats = np.float64(CONTROL) * np.arange(n)
    found = Recorded(time, np.array([trotting(t, home, phase) for t in time]), np.empty((n, 19)), np.empty((n, 18)))
    for k in range(n):
        found.q[k], found.v[k] = data.qpos, data.qvel
        data.ctrl[:] = found.control[k]
        mujoco.mj_step(model, data, round(CONTROL / FINE))
    found.q[:, 3:7] = np.roll(found.q[:, 3:7], -1, axis=1)
    for q, v in zip(found.q, found.v, strict=True):
        v[:3] = rotation(q[3:7]).T @ v[:3]
    return found


def rotation(x: Floats) -> Floats:
    """Return the rotation (3, 3) of a quaternion (x, y, z, w)."""
    found = np.empty(9)
    mujoco.mju_quat2Mat(found, np.roll(x, 1))
    return found.reshape(3, 3)


def held_out_errors(sim: fw.Simulation, log: Recorded, window: float) -> tuple[float, float]:
    """Return the root mean square errors of joint angles [rad] and base positions [m] after windows from exact states."""
    length, each = round(window / CONTROL), round(CONTROL / sim.dt)
    first = np.arange(0, len(log.q) - length, length)
    moving, apart = sim.with_options(on_failure="stop"), np.empty((len(first), 19))
    for k, i in enumerate(first.tolist()):
        control = np.repeat(log.control[None, i : i + length], each, axis=1)
        q, _ = moving.rollout(log.q[i : i + 1], log.v[i : i + 1], control=control)
        apart[k] = q[0, -1] - log.q[i + length]
    return float(np.sqrt(np.mean(apart[:, 7:] ** 2))), float(np.sqrt(np.mean(np.sum(apart[:, :3] ** 2, axis=1))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of the log [s]")
    parser.add_argument("--window", type=float, default=0.1, help="length of windows [s]")
    parser.add_argument("--step", type=float, default=1e-3, help="step of the fitted simulation [s]")
    parser.add_argument("--law", default="squares", help="of residuals: squares, huber or student")
    given = parser.parse_args()
    warnings.simplefilter("ignore", fw.ModelWarning)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "go1.xml"
        Go1Joystick().robot().save(path)
        log, other = recorded(path, given.seconds, 0.0), recorded(path, 4.0, 0.5)
        robot = fw.load(path)
        sim = fw.Simulation(robot, dt=given.step)
        trunk = robot.bodies[0].name
        read = Log(log.time, {"q": log.measured(np.random.default_rng(2))}, control=log.control)
        parameters = [
            Parameter("friction"), Parameter("mass", trunk), Parameter("center", trunk), Parameter("gain"),
            Parameter("damping"), Parameter("dry_friction"), Parameter("delay"),
        ]  # fmt: skip

        def fitted() -> list[str]:
            wall, work = perf_counter(), process_time()
            found = fit(sim, read, parameters, window=given.window, law=given.law)
            wall, work = perf_counter() - wall, process_time() - work
            print(found, flush=True)
            before, after = (held_out_errors(s, other, given.window) for s in (sim, found.simulation))
            errors = [f"{1e3 * a:.2f} / {1e3 * b:.2f}" for a, b in zip(before, after, strict=True)]
            return [str(len(found.values)), f"{given.seconds:g}", f"{wall:.1f}", f"{work:.1f}", str(found.iterations), *errors]

        rows = [fitted()]
        print(machine())
        columns = "parameters", "log [s]", "wall [s]", "processors [s]", "Jacobians"
        print(markdown([*columns, "angles before / after [mrad]", "base before / after [mm]"], rows))


if __name__ == "__main__":
    main()
