"""Robots of the comparison of simulations: ours, and the same in MuJoCo.

Models of MuJoCo come from the same files, or from the same description for mechanisms, whose files MuJoCo cannot read. Gears
and loops become MuJoCo's equality constraints, which are as stiff as its steps allow.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
from measure import FILES, ROBOTS
from robots_in_mujoco import STEP, urdf_in_mujoco

import featherweight as fw
from featherweight.array_types import Array
from featherweight.model.description import Description
from featherweight.model.formats.registry import load_description
from featherweight.model.types import WORLD

# Talos

TALOS = ROBOTS / FILES["talos_reduced"][0]
STIFFNESS, DAMPING = 2000.0, 50.0
HEIGHT = 1.0193  # height of the base [m] with the soles on the ground
POSTURE = {
    "arm_left_1_joint": 0.26, "arm_left_2_joint": 0.17, "arm_left_4_joint": -0.53, "arm_right_1_joint": -0.26,
    "arm_right_2_joint": -0.17, "arm_right_4_joint": -0.53, "leg_left_3_joint": -0.411, "leg_left_4_joint": 0.859,
    "leg_left_5_joint": -0.448, "leg_right_3_joint": -0.411, "leg_right_4_joint": 0.859, "leg_right_5_joint": -0.448,
    "gripper_left_joint": -0.3, "gripper_right_joint": -0.3,
}  # fmt: skip
SOLES = [(f"{side}_sole_link", (x, y, 0.0)) for side in ("left", "right") for x in (-0.1, 0.1) for y in (-0.06, 0.06)]
SOLE_BELOW_ANKLE = 0.107  # [m]; MuJoCo merges the sole with the last link of the leg
FRICTION = [0.8, 0.005, 1e-4]


def standing_talos(friction: bool) -> fw.Robot:
    """Return Talos with springs and dampers that hold its posture, with or without the dry friction of its file."""
    d = load_description(TALOS)
    joints = [
        replace(
            j,
            stiffness=STIFFNESS,
            damping=DAMPING,
            rest=POSTURE.get(j.name, 0.0),
            dry_friction=j.dry_friction if friction else 0.0,
        )
        for j in d.joints
    ]
    return fw.build(replace(d, joints=tuple(joints)), base="floating")


def soles() -> list[fw.ContactSphere]:
    return [fw.ContactPoint(frame, at) for frame, at in SOLES]


def talos_spec(standing: bool, friction: bool) -> Any:
    """Return Talos in MuJoCo without meshes and springs: on the corners of its soles, or without contacts and limits."""
    spec = urdf_in_mujoco(TALOS)
    spec.worldbody.first_body().add_freejoint()
    if standing:
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1], friction=FRICTION)
        for sole, (x, y, _) in SOLES:
            ankle = next(b for b in spec.bodies if b.name == f"leg_{sole.split('_')[0]}_6_link")
            at = [x, y, 0.001 - SOLE_BELOW_ANKLE]
            ankle.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.001, 0, 0], pos=at, mass=0, friction=FRICTION)
        spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    else:
        spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT) | int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    for joint in spec.joints:
        joint.frictionloss = joint.frictionloss if friction else 0.0
    return spec


def talos_in_mujoco(standing: bool, friction: bool) -> Any:
    """Return the robot of `standing_talos` in MuJoCo, or Talos without springs in free flight."""
    m = talos_spec(standing, friction).compile()
    if standing:
        m.jnt_stiffness[1:] = STIFFNESS
        m.dof_damping[6:] = DAMPING
        for k in range(1, m.njnt):
            m.qpos_spring[m.jnt_qposadr[k]] = POSTURE.get(m.joint(k).name, 0.0)
    return m


def talos_posture(robot: fw.Robot) -> Array:
    q = robot.neutral()
    q[2] = HEIGHT
    for j in robot.joints:
        if j.name in POSTURE:
            q[j.q_slice] = POSTURE[j.name]
    return q


def spread(robot: fw.Robot, robots: int) -> tuple[Array, Array]:
    """Return states of Talos near the posture, without linear velocity of the base."""
    rng = np.random.default_rng(0)
    q, v = np.tile(talos_posture(robot), (robots, 1)), 0.1 * rng.standard_normal((robots, robot.nv))
    q[:, 7:] += 0.01 * rng.standard_normal((robots, robot.nv - 6))
    v[:, :6] = 0.0
    return q, v


# Panda

PANDA = ROBOTS / FILES["panda"][0]


# robots of gymnasium

ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
FRAME_SKIP = {"hopper": 4, "half_cheetah": 5, "walker2d_v5": 4, "ant": 5, "humanoid": 5}  # steps between changes of controls


def gymnasium_in_mujoco(name: str) -> Any:
    return mujoco.MjModel.from_xml_path(str(ASSETS / f"{name}.xml"))


def gymnasium_simulation(name: str, **more: Any) -> fw.Simulation:
    """Return a simulation with the shapes, step, integrator and configuration of the file."""
    robot, m = fw.load(ASSETS / f"{name}.xml"), gymnasium_in_mujoco(name)
    integrator = {mujoco.mjtIntegrator.mjINT_EULER: "semi-implicit", mujoco.mjtIntegrator.mjINT_RK4: "rk4"}
    kind = integrator[mujoco.mjtIntegrator(m.opt.integrator)]
    options: dict[str, Any] = {"shapes": True, "q": robot.configurations["qpos0"], **more}
    return fw.Simulation(robot, float(m.opt.timestep), kind, **options)


# mechanisms

STIFF = {"solref": [2.0 * STEP, 1.0], "solimp": [0.9999, 0.9999, 1e-3, 0.5, 2.0]}
FOUR_BAR = (0.3, 0.8, 0.6, 0.9)  # [m], lengths with which the crank rotates fully


def four_bar() -> Description:
    return replace(fw.robots.four_bar(FOUR_BAR), gravity=(0.0, -9.81, 0.0))


def mechanism_in_mujoco(d: Description) -> Any:
    """Return a mechanism in MuJoCo: gears are equalities of joints, or of a tendon for several; loops are coincident sites."""
    spec = mujoco.MjSpec()
    spec.option.timestep, spec.option.gravity = STEP, d.gravity
    spec.compiler.degree = False
    bodies: dict[str | None, Any] = {None: spec.worldbody, WORLD: spec.worldbody}
    inertias = {b.name: b.inertia for b in d.bodies}
    waiting = list(d.joints)
    while waiting:
        joint = next(j for j in waiting if j.parent in bodies)
        waiting.remove(joint)
        bodies[joint.child] = _body(bodies[joint.parent], joint)
    for c in d.couplings:
        _couple(spec, c)
    for loop in d.loops:
        sites = [f"{loop.name} {end}" for end in ("predecessor", "successor")]
        for site, body, frame in zip(
            sites, (loop.predecessor, loop.successor), (loop.predecessor_frame, loop.successor_frame), strict=True
        ):
            bodies[body].add_site(name=site, pos=frame.p, quat=_quaternion(frame.R))
        _equality(spec, mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtObj.mjOBJ_SITE, *sites)
    m = spec.compile()
    for name, inertia in inertias.items():
        _set_inertia(m, m.body(name).id, inertia)
    mujoco.mj_setConst(m, mujoco.MjData(m))
    return m


def _body(parent: Any, joint: fw.Joint) -> Any:
    body = parent.add_body(name=joint.child, pos=joint.placement.p, quat=_quaternion(joint.placement.R))
    body.explicitinertial, body.mass, body.inertia = True, 1.0, [1.0, 1.0, 1.0]
    if joint.type is fw.JointType.FLOATING:
        body.add_freejoint()
    else:
        assert joint.type is fw.JointType.REVOLUTE
        body.add_joint(name=joint.name, type=mujoco.mjtJoint.mjJNT_HINGE, axis=joint.axis)
    return body


def _set_inertia(m: Any, body: int, inertia: fw.Inertia) -> None:
    """Set an inertia in the compiled model, because MuJoCo's compiler refuses the unphysical inertias of these robots."""
    xx, xy, xz, yy, yz, zz = inertia.rotational
    moments, axes = np.linalg.eigh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    axes[:, 2] *= np.linalg.det(axes)
    m.body_mass[body], m.body_ipos[body] = inertia.mass, inertia.center
    m.body_inertia[body], m.body_iquat[body] = moments, _quaternion(axes)


def _couple(spec: Any, coupling: fw.Coupling) -> None:
    assert coupling.offset == 0.0 and all(len(c) == 1 for _, c in coupling.terms)
    if len(coupling.terms) == 1:
        ((joint, (ratio,)),) = coupling.terms
        equality = _equality(spec, mujoco.mjtEq.mjEQ_JOINT, mujoco.mjtObj.mjOBJ_JOINT, coupling.joint, joint)
        equality.data[:5] = [0.0, ratio, 0.0, 0.0, 0.0]
        return
    tendon = spec.add_tendon(name=coupling.name)
    tendon.wrap_joint(coupling.joint, 1.0)
    for joint, (ratio,) in coupling.terms:
        tendon.wrap_joint(joint, -ratio)
    _equality(spec, mujoco.mjtEq.mjEQ_TENDON, mujoco.mjtObj.mjOBJ_TENDON, coupling.name, "")


def _equality(spec: Any, kind: Any, of: Any, first: str, second: str) -> Any:
    return spec.add_equality(type=kind, objtype=of, name1=first, name2=second, **STIFF)


def _quaternion(R: Any) -> Array:
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, np.array(R, dtype=float).ravel())
    return quaternion


def set_state(m: Any, data: Any, state: Array) -> None:
    mujoco.mj_setState(m, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
