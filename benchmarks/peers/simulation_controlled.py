"""One robot under a controller compared with MuJoCo, stepped from Python: Talos on its feet, and Panda by computed torque.

Springs and dampers hold the posture of Talos. A controller in NumPy adds PD forces and a feed-forward of gravity. It is
excluded from the time of single steps, and included if `run` calls it (in MuJoCo: a loop around `mj_step`). Panda follows
sines, with forces by each library's inverse dynamics. For times of the step alone, the forces are given in advance.
"""

from __future__ import annotations

import mujoco
import numpy as np
from measured_row import Row, alternating, clock, warned
from robots_in_mujoco import STEP, mujoco_states, urdf_in_mujoco
from simulation_models import PANDA, set_state, soles, standing_talos, talos_in_mujoco, talos_posture

import featherweight as fw
from featherweight.array_types import Array

KP, KD = 20.0, 0.2  # [N m/rad, N m s/rad]


class Standing:
    """Talos in both libraries, standing."""

    def __init__(self, friction: bool) -> None:
        robot, self.m = standing_talos(friction), talos_in_mujoco(True, friction)
        self.q = talos_posture(robot)
        self.sim = fw.Simulation(robot, STEP, q=self.q, spheres=soles(), shapes=False, ground=fw.Plane())
        self.data = mujoco.MjData(self.m)
        set_state(self.m, self.data, mujoco_states(self.m, robot, self.q[None], np.zeros((1, robot.nv)))[0])
        self.hold = np.zeros(robot.nv)
        self.hold[6:] = 0.5 * robot.gravity_force(self.q)[6:]
        at = {j.name: (j.q_slice.start, j.v_slice.start) for j in robot.joints[1:]}
        order = [at[self.m.joint(k).name] for k in range(1, self.m.njnt)]
        self.theirs_q, self.theirs_hold = self.q[[i for i, _ in order]], self.hold[[n for _, n in order]]

    def controller(self, time: float, q: Array, v: Array) -> Array:
        tau = self.hold.copy()
        tau[6:] += KP * (self.q[7:] - q[7:]) - KD * v[6:]
        return tau

    def their_controller(self) -> Array:
        return np.asarray(self.theirs_hold + KP * (self.theirs_q - self.data.qpos[7:]) - KD * self.data.qvel[6:])

    def steps(self, n: int) -> float:
        spent, sim = 0.0, self.sim
        for _ in range(n):
            tau = self.controller(0.0, sim.q, sim.v)
            begun = clock()
            sim.step(tau)
            spent += clock() - begun
        return spent

    def their_steps(self, n: int) -> float:
        spent, m, data = 0.0, self.m, self.data
        for _ in range(n):
            tau = self.their_controller()
            begun = clock()
            data.qfrc_applied[6:] = tau
            mujoco.mj_step(m, data)
            spent += clock() - begun
        return spent

    def run(self, n: int) -> None:
        self.sim.run(n * STEP, self.controller, every=n)

    def their_run(self, n: int) -> None:
        for _ in range(n):
            self.data.qfrc_applied[6:] = self.their_controller()
            mujoco.mj_step(self.m, self.data)


def standing(friction: bool, rounds: int, steps: int = 300) -> list[Row]:
    peer = Standing(friction)
    what = "Talos on its feet" + (", dry friction at 20 joints" if friction else "")
    a, b, c, d = alternating(
        (
            lambda: peer.steps(steps),
            lambda: peer.their_steps(steps),
            lambda: peer.run(steps),
            lambda: peer.their_run(steps),
        ),
        rounds,
    )
    peer.data.qfrc_applied[:] = 0.0
    e, f = alternating(
        (lambda: peer.sim.run(steps * STEP, every=steps), lambda: mujoco.mj_step(peer.m, peer.data, steps)), rounds
    )  # fmt: skip
    touching = len(peer.sim.contacts()[0])
    assert touching and peer.data.ncon, "both must be standing"
    heights = peer.sim.q[2], peer.data.qpos[2]
    work = peer.sim.solver
    steps_of_solver = f"Newton steps {work['newton_steps']}, interior-point steps {work['interior_steps']}"
    told = f"base at {heights[0]:.4f} and {heights[1]:.4f} m; {steps_of_solver}"
    told = "; ".join(x for x in (told, warned(peer.data)) if x)
    each = 1e6 / steps
    return [
        Row(what, "a step, controller excluded", each * a, each * b, told),
        Row(what, "`run` with a controller", each * c, each * d),
        Row(what, f"{steps} steps", each * e, each * f),
    ]


class Following:
    """Panda that follows sines by computed torque."""

    def __init__(self, steps: int) -> None:
        self.robot, self.m = fw.load(PANDA, mimic="independent"), urdf_in_mujoco(PANDA).compile()
        self.m.dof_frictionloss[:] = 0.0
        self.sim, self.data = fw.Simulation(self.robot, STEP, joints=fw.JointOptions(dry_friction=False)), mujoco.MjData(self.m)
        time = STEP * np.arange(steps)[:, None]
        lower, upper = self.sim.forces.lower, self.sim.forces.upper
        middle, width, rate = 0.5 * (lower + upper), 0.1 * (upper - lower), 2.0 + 0.3 * np.arange(self.robot.nv)
        self.q = middle + width * np.sin(rate * time)
        self.v, self.a = width * rate * np.cos(rate * time), -width * rate**2 * np.sin(rate * time)
        self.start = mujoco_states(self.m, self.robot, self.q[:1], self.v[:1])[0]
        names = [self.m.joint(k).name for k in range(self.m.njnt)]
        assert names == [j.name for j in self.robot.joints], "one order of joints"
        self.sim.reset(self.q[0], self.v[0])
        self.tau = self.robot.inverse_dynamics(self.q, self.v, self.a)
        self.tau += self.m.dof_damping * self.v

    def wanted(self, k: int, q: Array, v: Array) -> Array:
        return np.asarray(self.a[k] + 400.0 * (self.q[k] - q) + 40.0 * (self.v[k] - v))

    def given(self) -> None:
        self.sim.reset(self.q[0], self.v[0])
        for tau in self.tau:
            self.sim.step(tau)

    def their_given(self) -> None:
        set_state(self.m, self.data, self.start)
        for tau in self.tau:
            self.data.qfrc_applied[:] = tau
            mujoco.mj_step(self.m, self.data)

    def computed(self) -> None:
        sim, robot = self.sim, self.robot
        sim.reset(self.q[0], self.v[0])
        for k in range(len(self.q)):
            sim.step(robot.inverse_dynamics(sim.q, sim.v, self.wanted(k, sim.q, sim.v)))

    def their_computed(self) -> None:
        """Step with M a + bias from the results of the first half of a step, MuJoCo's fastest way."""
        m, data, tau = self.m, self.data, np.empty(self.m.nv)
        set_state(m, data, self.start)
        for k in range(len(self.q)):
            mujoco.mj_step1(m, data)
            mujoco.mj_mulM(m, data, tau, self.wanted(k, data.qpos, data.qvel))
            data.qfrc_applied[:] = tau + data.qfrc_bias
            mujoco.mj_step2(m, data)


def computed_torque(rounds: int, steps: int = 500) -> list[Row]:
    peer = Following(steps)
    a, b = alternating((peer.given, peer.their_given), rounds)
    differ = float(np.abs(peer.sim.q - peer.data.qpos).max())
    c, d = alternating((peer.computed, peer.their_computed), rounds)
    errors = (float(np.abs(x - peer.q[-1]).max()) for x in (peer.sim.q, peer.data.qpos))
    each = 1e6 / steps
    told = "errors {:.2g} and {:.2g} rad".format(*errors)
    return [
        Row("Panda, forces given", "a step", each * a, each * b, f"difference {differ:.1g} rad after {steps} steps"),
        Row("Panda, computed torque", "inverse dynamics and a step", each * c, each * d, told),
    ]
