"""Mechanisms with gears and loops, compared with MuJoCo, which uses equality constraints for them.

Ours steps independent joints, MuJoCo the spanning tree with slightly compliant constraints. Forces are random, and the same on
the joints of both. Remarks have the difference of joint angles after the steps of a call, and the violation of MuJoCo's
constraints.
"""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np
from measured_row import Row, alternating, warned
from mujoco_fleet import MujocoFleet
from robots_in_mujoco import STEP, angles, mujoco_states
from simulation_models import four_bar, mechanism_in_mujoco, set_state

import featherweight as fw
from featherweight.model.description import Description

MECHANISMS: dict[str, tuple[Callable[[], Description], float]] = {  # functions, and the magnitude of forces [N m]
    "Mini Cheetah with rotors": (fw.robots.mini_cheetah, 1.0),
    "MIT Humanoid with rotors": (fw.robots.mit_humanoid, 2.0),
    "four-bar": (four_bar, 1.0),
}


class Mechanism:
    """A mechanism in both libraries, with states and forces."""

    def __init__(self, d: Description, force: float, robots: int, steps: int) -> None:
        self.robot, self.m = fw.build(d), mechanism_in_mujoco(d)
        self.sim = fw.Simulation(self.robot, STEP, joints=fw.JointOptions(limits=False), threads=2)
        rng = np.random.default_rng(0)
        self.q = np.array([self.robot.random_configuration(rng=rng) for _ in range(robots)])
        self.v = 0.5 * rng.standard_normal((robots, self.robot.nv))
        self.tau = force * rng.standard_normal((robots, steps, self.robot.nv))
        self.states = mujoco_states(self.m, self.robot, self.q, self.v, d.couplings)
        self.applied = np.zeros((robots, steps, self.m.nv))
        dof = {self.m.joint(k).name: self.m.jnt_dofadr[k] for k in range(self.m.njnt)}
        for j in self.robot.joints:
            if j.type is fw.JointType.FLOATING:
                self.tau[:, :, j.v_slice] = 0.0
            elif j.v_slice.stop > j.v_slice.start:
                self.applied[:, :, dof[j.name]] = self.tau[:, :, j.v_slice.start]


def one(name: str, d: Description, force: float, rounds: int, steps: int = 300) -> list[Row]:
    peer = Mechanism(d, force, 1, steps)
    sim, m, data = peer.sim, peer.m, mujoco.MjData(peer.m)
    opened = 0.0

    def ours() -> None:
        sim.reset(peer.q[0], peer.v[0])
        for tau in peer.tau[0]:
            sim.step(tau)

    def theirs() -> None:
        set_state(m, data, peer.states[0])
        for applied in peer.applied[0]:
            data.qfrc_applied[:] = applied
            mujoco.mj_step(m, data)

    def ours_held() -> None:
        sim.reset(peer.q[0], peer.v[0])
        sim.run(steps * STEP, tau=peer.tau[0, 0], every=steps)

    def theirs_held() -> None:
        set_state(m, data, peer.states[0])
        data.qfrc_applied[:] = peer.applied[0, 0]
        mujoco.mj_step(m, data, steps)

    a, b = alternating((ours, theirs), rounds)
    mine, other = angles(m, peer.robot)
    differ = float(np.abs(sim.q[mine] - data.qpos[other]).max())
    opened = float(np.abs(data.efc_pos).max())
    c, e = alternating((ours_held, theirs_held), rounds)
    told = "; ".join(x for x in (f"{differ:.1g} rad after {steps} steps, open {opened:.1g}", warned(data)) if x)
    return [
        Row(name, "a step", 1e6 * a / steps, 1e6 * b / steps, told),
        Row(name, f"{steps} steps", 1e6 * c / steps, 1e6 * e / steps, warned(data)),
    ]


def many(name: str, d: Description, force: float, robots: int, steps: int, rounds: int) -> Row:
    peer = Mechanism(d, force, robots, steps)
    ends = np.empty_like(peer.q)

    def ours() -> None:
        ends[:] = peer.sim.rollout(peer.q, peer.v, tau=peer.tau, every=steps)[0][:, -1]

    with MujocoFleet(peer.m, peer.states, steps, peer.applied, mujoco.mjtState.mjSTATE_QFRC_APPLIED) as theirs:
        a, b = alternating((ours, theirs.run), rounds)
    mine, other = angles(peer.m, peer.robot)
    differ = np.abs(ends[:, mine] - theirs.end_positions[:, other]).max(axis=1)
    told = f"{np.median(differ):.1g} rad after {steps} steps, at worst {differ.max():.1g}"
    each = 1e6 / (robots * steps)
    told = "; ".join(x for x in (told, warned(*theirs.datas)) if x)
    return Row(f"{robots} × {name}", "rollout", each * a, each * b, told)


def rows(robots: int, steps: int, rounds: int) -> list[Row]:
    found = []
    for name, (make, force) in MECHANISMS.items():
        d = make()
        found += one(name, d, force, rounds)
        found.append(many(name, d, force, robots, steps, rounds))
    return found
