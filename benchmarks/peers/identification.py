"""Fit of 30 parameters of a seven-joint arm to a log of encoders, beside the same fit by differences of MuJoCo's rollout.

    python benchmarks/peers/identification.py [--seconds 60] [--peer-seconds 10] [--window 0.25]

The robot is a Panda with locked fingers. MuJoCo makes the logs with other parameters, a step of 0.25 ms and the integrator
"implicitfast". The fitted model, with steps of 1 ms and "Euler", is not exact. Encoders have noise of 1e-4 rad at 1 kHz.
Both fits have the same windows, unknown starts of the windows, parameters and initial values. The peer perturbs all starts and
all parameters with `mujoco.rollout` on threads, and `scipy.optimize.least_squares` takes the sparse Jacobian. The peer has a
shorter log, which featherweight fits as well, because it takes minutes. Times are wall times and processor times of this
process. The error on a log that was not used is that of positions 0.25 s after exact states.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np
from measure import machine, markdown
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.sparse import csr_matrix

import featherweight as fw
from featherweight.identification import Log, Parameter, fit

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


class Peer:
    """The residuals of all windows and their Jacobian, by MuJoCo's rollouts."""

    def __init__(self, path: Path, log: Recorded, y: Floats, window: float) -> None:
        self.model, self.L = mujoco_model(path), round(window / STEP)
        self.W, self.y = len(y) // self.L, y[: len(y) // self.L * self.L]
        self.tau = log.tau[: len(self.y)].reshape(self.W, self.L, 7)
        self.data = [mujoco.MjData(self.model) for _ in range(os.cpu_count() or 1)]
        self.bodies, self.p = bodies_of(self.model), 30
        self.base = {name: getattr(self.model, f"dof_{name}").copy() for name in TRUE}
        self.mass = self.model.body_mass[self.bodies].copy()
        self.calls = 0

    def start(self) -> Floats:
        """Return the initial unknowns: parameters, and for each window q and v from parabolas."""
        found = []
        t = STEP * np.arange(11)
        for w in range(self.W):
            first = w * self.L
            rows = np.arange(max(first - 5, 0), max(first - 5, 0) + 11)
            c = np.linalg.lstsq(np.vander(t + STEP * (rows[0] - first), 3, increasing=True), self.y[rows], rcond=None)[0]
            found.append(np.concatenate([c[0], c[1]]))
        x = np.concatenate([*self.base.values(), self.mass[1:], self.model.body_ipos[self.bodies[6]]])
        return np.concatenate([x, np.ravel(found)])

    def changed(self, x: Floats) -> mujoco.MjModel:
        """Return a model with parameters x (30,)."""
        model = mujoco_copy(self.model)
        for i, name in enumerate(TRUE):
            getattr(model, f"dof_{name}")[:] = x[7 * i : 7 * i + 7]
        for j in range(1, 7):
            factor = x[20 + j] / self.mass[j]
            model.body_mass[self.bodies[j]] *= factor
            model.body_inertia[self.bodies[j]] *= factor
        model.body_ipos[self.bodies[6]] = x[27:30]
        return model

    def rolled(self, models: list[mujoco.MjModel], states: Floats, tau: Floats) -> Floats:
        """Return positions (rows, L, 7) at the steps of windows, of which the first is the start."""
        full = np.zeros((len(states), mujoco.mj_stateSize(self.model, FULL)))
        full[:, 1:15] = states
        out, _ = mujoco.rollout.rollout(models, self.data, full, tau, control_spec=mujoco.mjtState.mjSTATE_QFRC_APPLIED.value)
        self.calls += len(states) * self.L
        return np.concatenate([states[:, None, :7], out[:, :-1, 1:8]], axis=1)

    def predictions(self, x: Floats, which: list[int], small: Floats) -> Floats:
        """Return predictions (len(which), W, L, 7) with unknowns moved by `small`: none (-1), start numbers, parameters."""
        own = x[30:].reshape(self.W, 14)
        models, states = list[mujoco.MjModel](), []
        for k in which:
            moved, at = x[:30].copy(), own.copy()
            if 0 <= k < 14:
                at[:, k] += small[k]
            elif k >= 14:
                moved[k - 14] += small[k]
            models += [self.changed(moved)] * self.W
            states.append(at)
        tau = np.tile(self.tau, (len(which), 1, 1))
        return self.rolled(models, np.concatenate(states), tau).reshape(len(which), self.W, self.L, 7)

    def residuals(self, x: Floats) -> Floats:
        return ((self.predictions(x, [-1], np.zeros(44))[0] - self.y.reshape(self.W, self.L, 7)) / NOISE).ravel()

    def jacobian(self, x: Floats) -> Any:
        small = np.concatenate([np.full(7, 1e-5), np.full(7, 1e-4), 1e-5 * np.maximum(np.abs(x[:30]), 0.05)])
        base = self.predictions(x, [-1], small)[0]
        columns = [(self.predictions(x, [k], small)[0] - base) / (small[k] * NOISE) for k in range(44)]
        J = np.stack(columns, axis=-1).reshape(-1, 44)  # (W L 7, 44)
        rows = np.arange(len(J))
        window = rows // (self.L * 7)
        starts = 30 + 14 * window[:, None] + np.arange(14)
        index = np.concatenate([starts, np.tile(np.arange(30), (len(J), 1))], axis=1)
        return csr_matrix((J.ravel(), index.ravel(), 44 * np.arange(len(J) + 1)), shape=(len(J), 30 + 14 * self.W))


FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS


def mujoco_copy(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return a copy of a model."""
    import copy

    return copy.copy(model)


def held_out_error(sim: fw.Simulation, log: Recorded, window: float) -> float:
    """Return the root mean square error [rad] of positions after windows from exact states."""
    L = round(window / STEP)
    first = np.arange(0, len(log.q) - L, L)
    tau = np.stack([log.tau[i : i + L] for i in first])
    moving = sim.with_options(on_failure="stop")
    q, _ = moving.rollout(log.q[first], log.v[first], tau=tau)
    return float(np.sqrt(np.mean((q[:, -1] - log.q[first + L]) ** 2)))


def arguments_of(robot: fw.Robot, x: Floats) -> fw.Robot:
    """Return the robot with the peer's parameters."""
    P = robot.inertial_parameters
    for j in range(1, 7):
        P[j] *= x[20 + j] / P[j, 0]
    c, m = P[6, 1:4] / P[6, 0], P[6, 0]
    for sign, at in ((-1.0, c), (1.0, x[27:30])):
        S = m * (at @ at * np.eye(3) - np.outer(at, at))
        P[6, 4:] += sign * np.array([S[0, 0], S[0, 1], S[1, 1], S[0, 2], S[1, 2], S[2, 2]])
    P[6, 1:4] = m * x[27:30]
    return robot.with_inertial_parameters(P).with_armature(x[14:21])


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

        def fitted(seconds: float) -> tuple[Any, float, float]:
            n = round(seconds / STEP)
            wall, work = perf_counter(), process_time()
            found = fit(sim, Log(log.time[:n], {"q": y[:n]}, tau=log.tau[:n]), parameters, window=given.window)
            return found, perf_counter() - wall, process_time() - work

        fitted(2.0)  # compiles
        truth, rows = truth_of(path), []
        for seconds in dict.fromkeys((given.seconds, given.peer_seconds or given.seconds)):
            found, wall, work = fitted(seconds)
            rows.append([
                "featherweight", f"{seconds:g}", f"{wall:.1f}", f"{work:.1f}", str(found.iterations),
                f"{1e3 * held_out_error(sim, other, given.window):.3f}",
                f"{1e3 * held_out_error(found.simulation, other, given.window):.4f}",
                f"{np.median(np.abs(found.values / truth - 1.0)) * 100:.2f}",
            ])  # fmt: skip
            print(found)
        if given.peer_seconds:
            n = round(given.peer_seconds / STEP)
            short = Recorded(log.time[:n], log.tau[:n], log.q[:n], log.v[:n])
            peer = Peer(path, short, y[:n], given.window)
            wall, work = perf_counter(), process_time()
            x0 = peer.start()
            low = np.concatenate([np.full(27, 1e-6), np.full(len(x0) - 27, -np.inf)])
            scale = np.concatenate([np.maximum(np.abs(x0[:30]), 0.05), np.tile([0.1] * 7 + [1.0] * 7, peer.W)])
            best = least_squares(
                peer.residuals, x0, peer.jacobian, bounds=(low, np.inf), x_scale=scale, tr_solver="lsmr", ftol=1e-3, xtol=1e-6
            )
            wall, work = perf_counter() - wall, process_time() - work
            fit_of_peer = fw.Simulation(arguments_of(robot, best.x), dt=STEP, q=REST, shapes=False)
            fit_of_peer.reset(REST[None])
            fit_of_peer.vary(damping=best.x[None, :7] / 0.5, dry_friction=best.x[None, 7:14] / 0.3)
            error = held_out_many(fit_of_peer, best.x, other, given.window)
            rows.append([
                "mujoco.rollout, scipy", f"{given.peer_seconds:g}", f"{wall:.1f}", f"{work:.1f}", str(best.njev), "",
                f"{1e3 * error:.4f}", f"{np.median(np.abs(best.x[:30] / truth - 1.0)) * 100:.2f}",
            ])  # fmt: skip
        print(machine())
        columns = (
            "fit",
            "log [s]",
            "wall [s]",
            "processors [s]",
            "Jacobians",
            "error before [mrad]",
            "after [mrad]",
            "median error [%]",
        )
        print(markdown(list(columns), rows))


def held_out_many(sim: fw.Simulation, x: Floats, log: Recorded, window: float) -> float:
    """Return `held_out_error` with the peer's damping and friction."""
    L = round(window / STEP)
    first = np.arange(0, len(log.q) - L, L)
    sim.vary()
    sim.reset(log.q[first], log.v[first])
    sim.vary(
        damping=np.tile(x[:7] / 0.5, (len(first), 1)), dry_friction=np.tile(x[7:14] / 0.3, (len(first), 1))
    )  # fmt: skip
    q, _ = sim.rollout(log.q[first], log.v[first], tau=np.stack([log.tau[i : i + L] for i in first]))
    return float(np.sqrt(np.mean((q[:, -1] - log.q[first + L]) ** 2)))


def truth_of(path: Path) -> Floats:
    """Return the true values of the parameters."""
    model = mujoco_model(path)
    bodies = bodies_of(model)
    masses = [model.body_mass[bodies[j]] * f for j, f in MASS_FACTORS.items()]
    return np.concatenate([*TRUE.values(), masses, model.body_ipos[bodies[6]] + SHIFT])


if __name__ == "__main__":
    main()
