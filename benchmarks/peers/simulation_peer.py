"""Talos simulated beside MuJoCo in one run: many in free flight, one on its feet, many on their feet; and what contacts that
come and go cost.

    python benchmarks/peers/simulation_peer.py [--robots 4096] [--rounds 9]

Both simulate the same URDF file at the same step, by semi-implicit Euler steps (MuJoCo's "Euler") in double precision. In
free flight contacts and limits are off, and dry friction of joints is taken out; damping stays. On its feet the robot has four
points on each sole, springs and dampers at all joints that hold its posture, and joint limits; with the file's dry friction of
20 joints and without. MuJoCo is called at its best: `mujoco.rollout` with its own threads and preallocated results, and
`mj_step` with many steps in one call, Newton's method, elliptic cones. Ratios are of medians; runs take turns.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np
from measure import FILES, ROBOTS, machine, markdown, median_times

import featherweight as fw
from featherweight.engine.threads import processors
from featherweight.model.formats.registry import load_description

PATH = ROBOTS / FILES["talos_reduced"][0]
STEP = 1e-3
STIFFNESS, DAMPING = 2000.0, 50.0
HEIGHT = 1.0193  # of the base [m] with the soles on the ground
POSTURE = {
    "arm_left_1_joint": 0.26, "arm_left_2_joint": 0.17, "arm_left_4_joint": -0.53, "arm_right_1_joint": -0.26,
    "arm_right_2_joint": -0.17, "arm_right_4_joint": -0.53, "leg_left_3_joint": -0.411, "leg_left_4_joint": 0.859,
    "leg_left_5_joint": -0.448, "leg_right_3_joint": -0.411, "leg_right_4_joint": 0.859, "leg_right_5_joint": -0.448,
    "gripper_left_joint": -0.3, "gripper_right_joint": -0.3,
}  # fmt: skip
SOLES = [(f"{side}_sole_link", (x, y, 0.0)) for side in ("left", "right") for x in (-0.1, 0.1) for y in (-0.06, 0.06)]
SOLE_BELOW_ANKLE = 0.107  # [m]; MuJoCo merges the sole with the last link of the leg

Array = np.ndarray[Any, np.dtype[Any]]


def standing_robot(friction: bool) -> fw.Robot:
    """Talos with springs and dampers that hold its posture."""
    d = load_description(PATH)
    joints = [
        replace(
            j, stiffness=STIFFNESS, damping=DAMPING, rest=POSTURE.get(j.name, 0.0), friction=j.friction if friction else 0.0
        )
        for j in d.joints
    ]
    return fw.build(replace(d, joints=tuple(joints)), base="floating")


def mujoco_model(standing: bool, friction: bool) -> Any:
    """The same robot in MuJoCo, without its meshes."""
    text = re.sub(r"<(visual|collision)>.*?</\1>", "", PATH.read_text(), flags=re.S)
    compiler = "<mujoco><compiler fusestatic='true' discardvisual='true' strippath='false'/></mujoco>"
    spec = mujoco.MjSpec.from_string(re.sub(r"(<robot[^>]*>)", rf"\1{compiler}", text, count=1))
    spec.worldbody.first_body().add_freejoint()
    spec.option.timestep = STEP
    if standing:
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1], friction=[0.8, 0.005, 1e-4])
        for sole, (x, y, _) in SOLES:
            ankle = next(b for b in spec.bodies if b.name == f"leg_{sole.split('_')[0]}_6_link")
            at = [x, y, 0.001 - SOLE_BELOW_ANKLE]
            ankle.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.001, 0, 0], pos=at, mass=0, friction=[0.8, 0.005, 1e-4])
    m = spec.compile()
    if not friction:
        m.dof_frictionloss[:] = 0.0
    if standing:
        m.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        m.jnt_stiffness[1:] = STIFFNESS
        m.dof_damping[6:] = DAMPING
        for k in range(1, m.njnt):
            m.qpos_spring[m.jnt_qposadr[k]] = POSTURE.get(m.joint(k).name, 0.0)
    else:
        m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT) | int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    return m


def posture(robot: fw.Robot) -> Array:
    q = robot.neutral()
    q[2] = HEIGHT
    for j in robot.joints:
        if j.name in POSTURE:
            q[j.q_slice] = POSTURE[j.name]
    return q


def mujoco_states(m: Any, robot: fw.Robot, q: Array, v: Array) -> Array:
    """MuJoCo's full states for ours: quaternions with w first, linear velocity in the world, joints in its order."""
    states = np.zeros((len(q), mujoco.mj_stateSize(m, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    at = {j.name: (j.q_slice.start, j.v_slice.start) for j in robot.joints[1:]}
    qm, vm = states[:, 1 : 1 + m.nq], states[:, 1 + m.nq : 1 + m.nq + m.nv]
    qm[:, :3], qm[:, 3], qm[:, 4:7] = q[:, :3], q[:, 6], q[:, 3:6]
    base = next(b.name for b in robot.bodies)
    R = robot.frame_placement(base)(q)[:, :3, :3]
    vm[:, :3], vm[:, 3:6] = np.einsum("bij,bj->bi", R, v[:, :3]), v[:, 3:6]
    for k in range(1, m.njnt):
        i, n = at[m.joint(k).name]
        qm[:, m.jnt_qposadr[k]], vm[:, m.jnt_dofadr[k]] = q[:, i], v[:, n]
    return states


def spread(robot: fw.Robot, robots: int) -> tuple[Array, Array]:
    """States around the posture, without linear velocity of the base."""
    rng = np.random.default_rng(0)
    q, v = np.tile(posture(robot), (robots, 1)), 0.1 * rng.standard_normal((robots, robot.nv))
    q[:, 7:] += 0.01 * rng.standard_normal((robots, robot.nv - 6))
    v[:, :6] = 0.0
    return q, v


def alternating(calls: Sequence[Callable[[], Any]], rounds: int) -> list[float]:
    """Median time of each call [s]; the calls take turns."""
    samples: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    for _ in range(rounds):
        for call, sample in zip(calls, samples, strict=True):
            begun = time.perf_counter()
            call()
            sample.append(time.perf_counter() - begun)
    return [float(np.median(s)) for s in samples]


def rollouts(standing: bool, robots: int, steps: int, rounds: int) -> tuple[float, float, float]:
    """Microseconds a step of ours and of MuJoCo, and by how much joint angles differ after the last step [rad]."""
    m = mujoco_model(standing, friction=False)
    robot = standing_robot(friction=False) if standing else fw.load(PATH, base="floating")
    options: dict[str, Any] = dict(spheres=points(), ground=fw.Plane()) if standing else dict(joint_limits=False)
    sim = fw.Simulation(robot, STEP, joint_friction=False, **options)
    q, v = spread(robot, robots)
    threads = processors()
    states = mujoco_states(m, robot, q, v)
    made, nothing = np.empty((robots, steps, states.shape[1])), np.empty((robots, steps, 0))
    datas = [mujoco.MjData(m) for _ in range(threads)]
    ends: dict[str, Array] = {}
    with mujoco.rollout.Rollout(nthread=threads) as runner:

        def ours() -> None:
            ends["ours"] = sim.rollout(q, v, steps)[0][:, -1]

        def theirs() -> None:
            runner.rollout(m, datas, states, nstep=steps, state=made, sensordata=nothing)
            ends["theirs"] = made[:, -1, 1 : 1 + m.nq]

        seconds = alternating((ours, theirs), rounds)
    mine, other = ends["ours"], ends["theirs"]
    at = {j.name: j.q_slice.start for j in robot.joints[1:]}
    difference = max(float(np.abs(other[:, m.jnt_qposadr[k]] - mine[:, at[m.joint(k).name]]).max()) for k in range(1, m.njnt))
    each = 1e6 / (robots * steps)
    return seconds[0] * each, seconds[1] * each, difference


def points() -> list[fw.Sphere]:
    return [fw.Point(frame, at) for frame, at in SOLES]


def standing(friction: bool, rounds: int, steps: int = 500) -> tuple[float, float, dict[str, Any]]:
    """Microseconds a step of ours and of MuJoCo, both going on from where they are, and the solver's work in our last."""
    robot, m = standing_robot(friction), mujoco_model(True, friction)
    q = posture(robot)
    sim = fw.Simulation(robot, STEP, q=q, spheres=points(), ground=fw.Plane())
    data = mujoco.MjData(m)
    mujoco.mj_setState(
        m, data, mujoco_states(m, robot, q[None], np.zeros((1, robot.nv)))[0], mujoco.mjtState.mjSTATE_FULLPHYSICS
    )
    ours, theirs = alternating(
        (lambda: sim.run(steps * STEP, every=steps), lambda: mujoco.mj_step(m, data, steps)), rounds
    )  # fmt: skip
    assert len(sim.contacts()[0]) and data.ncon, "both must be standing"
    return 1e6 * ours / steps, 1e6 * theirs / steps, sim.solver


def sets_of_contacts(seconds: float) -> list[list[str]]:
    """The Delassus matrix of all bodies that may touch, beside that of those that do, and what compiling a set would take."""
    robot = fw.load(PATH, base="floating")
    q = posture(robot)
    feet = ("leg_left_6_link", "leg_right_6_link")
    arms = ("arm_left_7_link", "arm_right_7_link")
    everything = tuple(b.name for b in robot.bodies)
    rows = []
    for what, may, do in (
        ("one foot of two", feet, feet[:1]),
        ("two feet of feet and arms", feet + arms, feet),
        ("two feet of all 33 bodies", everything, feet),
    ):
        whole, exact = (robot.delassus([fw.Contact(b) for b in names]) for names in (may, do))
        begun = time.perf_counter()
        exact.copy().trace  # noqa: B018  # what a new set would cost before any machine code is made
        traced = time.perf_counter() - begun
        a, b = median_times((lambda f=whole: f(q), lambda f=exact: f(q)), seconds)  # type: ignore[misc]
        rows.append([what, f"{1e6 * a:.2f}", f"{1e6 * b:.2f}", f"{1e6 * (a - b):.2f}", f"{1e3 * traced:.0f}"])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=20, help="of each rollout")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    print(f"{machine()}; MuJoCo {mujoco.__version__}; {processors()} threads for rollouts\n")
    rows = []
    for what, on_feet, robots, goal in (
        (f"{options.robots} in free flight", False, options.robots, "5"),
        (f"{options.robots // 8} on their feet", True, options.robots // 8, ""),
    ):
        ours, theirs, difference = rollouts(on_feet, robots, options.steps, options.rounds)
        rows.append([what, f"{ours:.3f}", f"{theirs:.3f}", f"{theirs / ours:.1f}", goal, f"{difference:.1g} rad"])
    for friction in (False, True):
        ours, theirs, work = standing(friction, options.rounds)
        what = "one on its feet, with the file's dry friction of joints" if friction else "one on its feet"
        told = f"{work['sweeps']} sweeps, {work['newton_steps']} Newton steps, {work['residual']:.1g} m/s left"
        rows.append([what, f"{ours:.2f}", f"{theirs:.2f}", f"{theirs / ours:.2f}", "1", told])
    print(markdown(["talos_reduced", "ours, µs a step", "MuJoCo", "ratio", "goal", "difference, or our last step"], rows))
    print()
    header = ["bodies that touch, of those that may", "all, µs", "those that do", "what it costs", "tracing another set, ms"]
    print(markdown(header, sets_of_contacts(1.0)))


if __name__ == "__main__":
    main()
