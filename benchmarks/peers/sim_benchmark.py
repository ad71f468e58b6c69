"""The tests of SimBenchmark: friction, restitution, stacking, momentum and energy, compared with MuJoCo.

    python benchmarks/peers/sim_benchmark.py [rolling bouncing balls elastic momentum energy] [--rounds 3]

D. Kang and J. Hwangbo, "SimBenchmark: physics engine benchmark for robotics applications",
https://github.com/leggedrobotics/SimBenchmark: scenes and measures are those of its pages (docs/*/index.html) and of its
parameters (benchmark/res/yaml/*.yaml).

- rolling: a box of 10 kg on the ground carries 5 x 5 balls of 1 kg. Friction is 0.4 below and 0.8 above. 150 N push the box
  along y, or 60 degrees from x. Mean square of the errors of the velocities of the box and one ball, in 4 s [m²/s²].
- bouncing: 7 x 7 balls of 10 kg fall from 5 m, without friction and loss. Mean square of the error of energy, in 20 s [J²].
- balls: 6 x 6 x 6 balls of 10 kg fall apart, without friction and bounce. Mean of the sum of squared overlaps, in 10 s [m²].
- elastic: the same from a metre higher, without loss. Mean square of the change of energy, in 10 s [J²].
- momentum: a ball of 10 kg hits ANYmal at 5 m/s, without gravity and friction. Mean square of the change of momentum, in 10 s
  [N² s²].
- energy: a force of twice the weight lifts ANYmal for a second, and it falls for two. Mean square of the change of energy [J²].

ANYmal is version B of the package example-robot-data; SimBenchmark has its own file. Here its shapes touch only the ball, and
nothing in the test of energy. Balls start at other random places. MuJoCo runs with its defaults and elliptic cones; it has no
coefficient of restitution. RaiSim's numbers are the published ones (data/*/sample.csv, and default.csv of rolling, error
reduction off), on an Intel Core i7-7700HQ at 2.8 GHz. The time of a step is that of all steps in one call, without records.
"""

from __future__ import annotations

import argparse
import itertools
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from measure import ROBOTS, machine, pivoted
from robots_in_mujoco import rotated

import featherweight as fw
from featherweight.array_types import Array

G = 9.81
ANYMAL = ROBOTS / "anymal_b_simple_description/robots/anymal.urdf"
STANCE = {"HAA": 0.03, "HFE": 0.4, "KFE": -0.8}  # joint angles of the left front leg [rad]
FREE = mujoco.mjtJoint.mjJNT_FREE


@dataclass(frozen=True, eq=False)
class Motion:
    """States of one simulator: positions and velocities (n, bodies, 3) of free bodies in the world, and data of tests."""

    position: Array
    velocity: Array
    energy: Array
    momentum: Array


RIGID = fw.ContactOptions(law="rigid")


@dataclass(frozen=True, eq=False)
class Scene:
    """A scene as an MJCF file with its initial state."""

    test: str
    text: str
    step: float
    duration: float
    error: Callable[[Motion], float]
    integrators: dict[str, str] = field(default_factory=lambda: {"semi-implicit": "Euler"})  # ours, and MuJoCo's, if any
    options: fw.ContactOptions = RIGID
    joints: dict[str, float] = field(default_factory=dict)  # initial coordinates
    moving: dict[str, Array] = field(default_factory=dict)  # initial velocities of free bodies
    force: Array | None = None  # force on the first free body, in the world
    lifted: float = 0.0  # seconds in which a force first lifts the robot
    published: tuple[float, float] | None = None  # RaiSim's error, and the seconds for all steps

    @property
    def steps(self) -> int:
        return round(self.duration / self.step)

    def cells(self, rounds: int) -> Iterator[tuple[str, str, str]]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "scene.xml"
            path.write_text(self.text)
            for ours, theirs in self.integrators.items():
                yield self.cell(f"featherweight, {ours}", partial(Ours, self, path, ours), rounds)
                if theirs:
                    yield self.cell(f"MuJoCo, {theirs}", partial(Theirs, self, path, theirs), rounds)
        if self.published:
            error, seconds = self.published
            yield self._cell("RaiSim, published", f"{error:.2g}", seconds / self.steps)

    def cell(self, name: str, make: Callable[[], Any], rounds: int) -> tuple[str, str, str]:
        try:
            simulator = make()
            error = self.error(simulator.motion())
            samples = []
            for _ in range(rounds):
                simulator.begin()
                begun = time.perf_counter()
                simulator.go()
                samples.append(time.perf_counter() - begun)
        except fw.SimulationError as refused:
            print(f"{self.test}, {1e3 * self.step:g} ms, {name}: refused {refused}".split(", more")[0])
            return f"{self.test}, {1e3 * self.step:g} ms", name, "refused"
        return self._cell(name, f"{error:.2g}", statistics.median(samples) / self.steps)

    def _cell(self, name: str, error: str, seconds: float) -> tuple[str, str, str]:
        return f"{self.test}, {1e3 * self.step:g} ms", name, f"{error}, {1e6 * seconds:.3g}"


class Ours:
    """A scene in this library."""

    def __init__(self, scene: Scene, path: Path, integrator: str) -> None:
        self.scene, self.robot = scene, fw.load(path)
        off = fw.JointOptions(limits=False)
        self.sim = fw.Simulation(self.robot, scene.step, integrator, contact=scene.options, joints=off)
        self.free = [j for j in self.robot.joints if j.type is fw.JointType.FLOATING]
        q, v = self.sim.q.copy(), np.zeros(self.robot.nv)
        for joint in self.robot.joints:
            if joint.name in scene.joints:
                q[joint.q_slice] = scene.joints[joint.name]
            if joint.child in scene.moving:
                v[joint.v_slice.start : joint.v_slice.start + 3] = scene.moving[joint.child]
        self.q, self.v, self.tau = q, v, np.zeros(self.robot.nv)
        if scene.lifted:
            self.lift()
        elif scene.force is not None:  # the body does not turn
            self.tau[self.free[0].v_slice.start :][:3] = scene.force

    def lift(self) -> None:
        first, force = self.free[0], self.scene.force
        assert force is not None

        def controller(time: float, q: Array, v: Array) -> Array:
            tau = np.zeros(self.robot.nv)
            x, y, z, w = q[first.q_slice][3:]
            tau[first.v_slice][:3] = rotated(np.array([[-x, -y, -z, w]]), force[None])[0]
            return tau

        self.sim.reset(self.q, self.v)
        self.sim.run(self.scene.lifted, controller)
        self.q, self.v = self.sim.q.copy(), self.sim.v.copy()

    def begin(self) -> None:
        self.sim.reset(self.q, self.v)

    def go(self) -> None:
        self.sim.run(self.scene.duration, every=self.scene.steps, tau=self.tau)

    def motion(self) -> Motion:
        self.begin()
        t = self.sim.run(self.scene.duration, tau=self.tau)
        at = [t.q[:, j.q_slice] for j in self.free]
        velocity = [rotated(x[:, 3:], t.v[:, j.v_slice][:, :3]) for x, j in zip(at, self.free, strict=True)]
        energy = self.robot.kinetic_energy(t.q, t.v) + self.robot.potential_energy(t.q)
        momentum = self.robot.mass * self.robot.center_of_mass_velocity(t.q, t.v)
        return Motion(np.stack([x[:, :3] for x in at], 1), np.stack(velocity, 1), energy, momentum)


class Theirs:
    """A scene in MuJoCo."""

    def __init__(self, scene: Scene, path: Path, integrator: str) -> None:
        self.scene, self.m = scene, mujoco.MjModel.from_xml_path(str(path))
        m = self.m
        m.opt.timestep, m.opt.cone = scene.step, mujoco.mjtCone.mjCONE_ELLIPTIC
        m.opt.integrator = {"Euler": mujoco.mjtIntegrator.mjINT_EULER, "RK4": mujoco.mjtIntegrator.mjINT_RK4}[integrator]
        self.data = mujoco.MjData(m)
        free = [k for k in range(m.njnt) if m.jnt_type[k] == FREE]
        self.at = np.array([m.jnt_qposadr[k] + np.arange(3) for k in free])
        self.rates = np.array([m.jnt_dofadr[k] + np.arange(3) for k in free])
        self.q, self.v, self.applied = self.data.qpos.copy(), np.zeros(m.nv), np.zeros(m.nv)
        for name, coordinate in scene.joints.items():
            self.q[m.joint(name).qposadr[0]] = coordinate
        for name, velocity in scene.moving.items():
            self.v[m.body(name).dofadr[0] :][:3] = velocity
        if scene.force is not None:
            self.applied[self.rates[0]] = scene.force
        if scene.lifted:
            self.begin()
            mujoco.mj_step(m, self.data, round(scene.lifted / scene.step))
            self.q, self.v, self.applied = self.data.qpos.copy(), self.data.qvel.copy(), np.zeros(m.nv)

    def begin(self) -> None:
        mujoco.mj_resetData(self.m, self.data)
        self.data.qpos[:], self.data.qvel[:], self.data.qfrc_applied[:] = self.q, self.v, self.applied

    def go(self) -> None:
        mujoco.mj_step(self.m, self.data, self.scene.steps)

    def motion(self) -> Motion:
        self.begin()
        self.m.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
        states: list[tuple[Array, Array, float, Array]] = []
        for _ in range(self.scene.steps + 1):
            mujoco.mj_forward(self.m, self.data)
            mujoco.mj_subtreeVel(self.m, self.data)
            momentum = self.m.body_subtreemass[0] * self.data.subtree_linvel[0]
            states.append((self.data.qpos[self.at], self.data.qvel[self.rates], self.data.energy.sum(), momentum))
            mujoco.mj_step(self.m, self.data)
        self.m.opt.enableflags &= ~int(mujoco.mjtEnableBit.mjENBL_ENERGY)
        return Motion(*(np.array(x) for x in zip(*states, strict=True)))


# --- scenes


def mjcf(body: str, step: float, gravity: float = -G, default: str = "", rest: str = "") -> str:
    return f"""<mujoco><option timestep="{step}" gravity="0 0 {gravity}"/><default>{default}</default>
<worldbody><geom name="ground" type="plane" size="0 0 1"/>{body}</worldbody>{rest}</mujoco>"""


def ball(name: str, at: Array, radius: float, mass: float) -> str:
    x, y, z = at
    return f'<body name="{name}" pos="{x} {y} {z}"><freejoint/><geom name="{name}" size="{radius}" mass="{mass}"/></body>'


def change(x: Array) -> float:
    """Return the mean square of a change."""
    return float(((x - x[0]).reshape(len(x), -1) ** 2).sum(axis=-1).mean())


def rolling(step: float, turn: float, published: tuple[float, float]) -> Scene:
    push, into = 150.0, 2e-5
    box = f'<body name="box" pos="0 0 {0.5 - into}"><freejoint/><geom name="box" type="box" size="10 10 0.5" mass="10"/></body>'
    places = [np.array([2.0 * i - 4.0, 2.0 * j - 4.0, 1.5 - 3.0 * into]) for i in range(5) for j in range(5)]
    balls = "".join(ball(f"ball{k}", at, 0.5, 1.0) for k, at in enumerate(places))
    pairs = '<pair geom1="box" geom2="ground" friction="0.4 0.4 0 0 0"/>' + "".join(
        f'<pair geom1="box" geom2="ball{k}" friction="0.8 0.8 0 0 0"/>' for k in range(25)
    )
    text = mjcf(box + balls, step, default='<geom contype="0" conaffinity="0"/>', rest=f"<contact>{pairs}</contact>")
    below = push - 0.4 * 35.0 * G
    rolled = below / 10.0 / (3.5 + 2.5)  # friction at a ball, which rolls: the box is 3.5 times as fast as balls
    along = np.array([np.cos(turn), np.sin(turn), 0.0])

    def error(motion: Motion) -> float:
        times = step * np.arange(len(motion.velocity) - 1)[:, None]
        expected = times * along * (below - 25.0 * rolled) / 10.0, times * along * rolled
        return float(sum(((motion.velocity[:-1, k] - x) ** 2).sum(-1).mean() for k, x in enumerate(expected)))

    what = "rolling, along y" if turn == 0.5 * np.pi else "rolling, 60° from x"
    return Scene(what, text, step, 4.0, error, force=push * along, published=published)


def bouncing(step: float, published: tuple[float, float]) -> Scene:
    places = [np.array([2.0 * i, 2.0 * j, 5.0]) for i in range(7) for j in range(7)]
    text = mjcf("".join(ball(f"ball{k}", at, 0.1, 10.0) for k, at in enumerate(places)), step)
    options, ours = fw.ContactOptions(law="rigid", friction=0.0, restitution=1.0), {"semi-implicit": "", "rk4": ""}
    return Scene("bouncing", text, step, 20.0, lambda m: change(m.energy), ours, options, published=published)


def cube(step: float, elastic: bool, published: tuple[float, float]) -> Scene:
    rng, height, radius = np.random.default_rng(42), 1.101 if elastic else 0.101, 0.1
    lowest = np.array([0.0, 0.0, height])
    places = [lowest + 0.21 * np.array(at) + 1e-3 * rng.random(3) for at in itertools.product(range(6), repeat=3)]
    balls = "".join(ball(f"ball{k}", at, radius, 10.0) for k, at in enumerate(places))
    text = mjcf(balls, step, default='<geom condim="1" friction="0 0 0"/>')
    i, j = np.triu_indices(len(places), 1)

    def overlap(motion: Motion) -> float:
        found = []
        for x in motion.position:
            apart = np.sqrt(((x[i] - x[j]) ** 2).sum(axis=-1))
            found.append(sum((np.maximum(gap, 0.0) ** 2).sum() for gap in (2.0 * radius - apart, radius - x[:, 2])))
        return float(np.mean(found))

    options = fw.ContactOptions(law="rigid", friction=0.0, restitution=float(elastic))
    if elastic:
        ours = {"semi-implicit": "", "rk4": ""}
        return Scene("elastic balls", text, step, 10.0, lambda m: change(m.energy), ours, options, published=published)
    return Scene("balls", text, step, 10.0, overlap, options=options, published=published)


def anymal(step: float, with_ball: bool, gravity: float) -> tuple[str, dict[str, float], float]:
    """Return an MJCF file of ANYmal 2 m above the ground, its stance, and its mass."""
    text = re.sub(r"<visual>.*?</visual>", "", ANYMAL.read_text(), flags=re.S)
    compiler = "<mujoco><compiler fusestatic='true'/></mujoco>"
    spec = mujoco.MjSpec.from_string(re.sub(r"(<robot[^>]*>)", rf"\1{compiler}", text, count=1))
    base = spec.worldbody.first_body()
    base.pos = [0.0, 0.0, 2.0]
    base.fullinertia[3:] = 0.0  # inertia of a link of 1 mg, impossible for a rigid body
    base.add_freejoint(name="free")
    for geom in spec.geoms:
        geom.contype, geom.conaffinity, geom.condim = int(with_ball), 2 * int(with_ball), 1
    stance = {}
    for joint in spec.joints:
        leg, _, kind = joint.name.partition("_")
        if kind in STANCE:
            joint.limited = mujoco.mjtLimited.mjLIMITED_FALSE
            mirrored = leg[0] == "R" if kind == "HAA" else leg[1] == "H"
            stance[joint.name] = -STANCE[kind] if mirrored else STANCE[kind]
    if with_ball:
        thrown = spec.worldbody.add_body(name="ball", pos=[0.0, -5.0, 2.0])
        thrown.add_freejoint(name="thrown")
        thrown.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.2, 0, 0], mass=10.0, contype=2, conaffinity=1, condim=1)
    spec.option.timestep, spec.option.gravity = step, [0.0, 0.0, gravity]
    mass = float(spec.compile().body_subtreemass[0])
    return spec.to_xml(), stance, mass


BOTH = {"semi-implicit": "Euler", "rk4": "RK4"}


def momentum(step: float, published: tuple[float, float]) -> Scene:
    text, stance, _ = anymal(step, True, 0.0)
    return Scene(
        "momentum", text, step, 10.0, lambda m: change(m.momentum), BOTH, fw.ContactOptions(law="rigid", friction=0.0), stance,
        {"ball": np.array([0.0, 5.0, 0.0])}, published=published,
    )  # fmt: skip


def energy(step: float, published: tuple[float, float]) -> Scene:
    text, stance, mass = anymal(step, False, -G)
    force, ways = np.array([0.0, 0.0, 2.0 * mass * G]), BOTH | {"midpoint": ""}
    return Scene(
        "energy", text, step, 2.0, lambda m: change(m.energy), ways, joints=stance, force=force, lifted=1.0, published=published
    )


TESTS: dict[str, Callable[[], list[Scene]]] = {
    "rolling": lambda: [
        rolling(1e-3, 0.5 * np.pi, (4.1268e-07, 0.322526)),
        rolling(1e-3, np.pi / 3.0, (4.13711e-07, 0.308104)),
    ],
    "bouncing": lambda: [bouncing(1e-2, (185.953, 0.0252509)), bouncing(1e-3, (0.0186204, 0.235136))],
    "balls": lambda: [cube(1e-2, False, (0.0152745, 0.167983)), cube(4e-3, False, (0.00211391, 0.38779))],
    "elastic": lambda: [
        cube(1e-2, True, (5.18417e06, 0.0702891)),
        cube(4e-3, True, (264.072, 0.180666)),
        cube(1e-3, True, (8.36835, 0.655143)),
    ],
    "momentum": lambda: [momentum(1e-2, (0.00538685, 0.00609994)), momentum(1e-3, (4.67537e-05, 0.058022))],
    "energy": lambda: [energy(1e-2, (1.39767, 0.00145698)), energy(1e-3, (0.0118404, 0.0149939))],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*", default=list(TESTS), help=", ".join(TESTS))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"{machine()}, MuJoCo {mujoco.__version__}\n")
    cells = [cell for name in options.tests for scene in TESTS[name]() for cell in scene.cells(options.rounds)]
    print()
    print(pivoted("error, µs per step", cells))


if __name__ == "__main__":
    main()
