"""Fleets for comparisons with MuJoCo: scenes in both libraries, and the initial states of robots.

Robots of gymnasium move under random controls, each from a state within such a motion. Talos, Go1 and G1 stand on a floor with
slightly different poses, which drives hold: Talos with the file of example-robot-data, Go1 and G1 with the files, motors and
standing poses of mjlab's `asset_zoo` (`pip install --no-deps mjlab`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import mujoco
import numpy as np
from falling_scenes import FallingScene, folder_of, spec_of_file
from robots_in_mujoco import STEP
from simulation_gymnasium import random_controls, states_of_many
from simulation_models import (
    ASSETS,
    DAMPING,
    FRAME_SKIP,
    STIFFNESS,
    TALOS,
    gymnasium_in_mujoco,
    gymnasium_simulation,
    soles,
    spread,
    talos_posture,
    talos_spec,
)

import featherweight as fw
from featherweight.array_types import Array
from featherweight.model.formats.registry import load_description

T = TypeVar("T")
SHORT, LONG = 20, 50  # steps of a rollout
HOME = "home"  # keyframe
SETTLE = 0.5  # [s] until robots on the floor stand still
JOINTS, RATES = 0.01, 0.1  # spread of standing robots [rad, rad/s]


class Start(NamedTuple):
    """Initial states of robots, and controls (robots, steps, nu), which change every `held` steps."""

    q: Array
    v: Array
    control: Array
    held: int


class FleetScene(Protocol):
    """A robot model in both libraries."""

    @property
    def steps(self) -> int:
        """The number of steps of a rollout."""

    @property
    def text(self) -> str:
        """Return the scene as MJCF, for other versions of MuJoCo."""

    @property
    def model(self) -> Any:
        """Return the scene in MuJoCo."""

    def simulation(self, **options: Any) -> fw.Simulation:
        """Return our simulation of the scene, with additional options of `Simulation`."""

    def start(self, sim: fw.Simulation, robots: int) -> Start:
        """Return the initial states of robots, by our simulation."""


@dataclass(frozen=True)
class Gymnasium:
    """A robot of gymnasium by its file's name, with the step, the integrator and the solver of the file."""

    name: str
    steps: int = LONG

    @property
    def text(self) -> str:
        return (ASSETS / f"{self.name}.xml").read_text()

    @cached_property
    def model(self) -> Any:
        return gymnasium_in_mujoco(self.name)

    def simulation(self, **options: Any) -> fw.Simulation:
        return gymnasium_simulation(self.name, **options)

    def start(self, sim: fw.Simulation, robots: int) -> Start:
        q, v = states_of_many(sim, self.model, robots, round(1.0 / sim.dt))
        held = FRAME_SKIP[self.name]
        drawn = random_controls(self.model, robots, -(-self.steps // held))
        return Start(q, v, np.repeat(drawn, held, axis=1)[:, : self.steps], held)


class Talos:
    """Talos on the corners of its soles, with a drive at each joint, and without the dry friction of its file."""

    steps = SHORT

    @cached_property
    def robot(self) -> fw.Robot:
        d = load_description(TALOS)
        return fw.build(replace(d, joints=tuple(replace(j, dry_friction=0.0) for j in d.joints)), base="floating")

    @property
    def _driven(self) -> list[str]:
        return [drive.name for drive in fw.PD(STIFFNESS, DAMPING).actuators(self.robot.joints)]

    @cached_property
    def _spec(self) -> Any:
        spec = talos_spec(standing=True, friction=False)
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        for joint in self._driven:
            add_drive(spec, joint, STIFFNESS, DAMPING)
        return spec

    @property
    def text(self) -> str:
        return str(self._spec.to_xml())

    @cached_property
    def model(self) -> Any:
        return self._spec.compile()

    def simulation(self, **options: Any) -> fw.Simulation:
        drives = fw.PD(STIFFNESS, DAMPING)
        q = talos_posture(self.robot)
        return fw.Simulation(
            self.robot, STEP, q=q, spheres=soles(), shapes=False, ground=fw.Plane(), actuators=drives, **options
        )

    def start(self, sim: fw.Simulation, robots: int) -> Start:
        q, v = spread(self.robot, robots)
        at = {j.name: j.q_slice.start for j in self.robot.joints}
        targets = talos_posture(self.robot)[[at[joint] for joint in self._driven]]
        return Start(q, v, np.tile(targets, (robots, self.steps, 1)), self.steps)


class Motor(NamedTuple):
    """A joint's motor; mjlab's drives have a natural frequency of 10 Hz and twice the critical damping."""

    armature: float  # [kg m²]
    effort: float  # [N m]

    @property
    def stiffness(self) -> float:
        return self.armature * (20.0 * np.pi) ** 2

    @property
    def damping(self) -> float:
        return 4.0 * self.armature * 20.0 * np.pi


def geared(rotors: tuple[float, float, float], first: float, second: float, effort: float) -> Motor:
    """Return a motor with two planetary gears, whose rotors have these inertias [kg m²]."""
    return Motor(rotors[0] * (first * second) ** 2 + rotors[1] * second**2 + rotors[2], effort)


def doubled(motor: Motor) -> Motor:
    """Return two motors that move a joint by a parallel linkage."""
    return Motor(2.0 * motor.armature, 2.0 * motor.effort)


_ROTOR = 0.000111842  # [kg m²]
_5020 = geared((0.139e-4, 0.017e-4, 0.169e-4), 1 + 46 / 18, 1 + 56 / 16, 25.0)
_7520_14 = geared((0.489e-4, 0.098e-4, 0.533e-4), 4.5, 1 + 48 / 22, 88.0)
_7520_22 = geared((0.489e-4, 0.109e-4, 0.738e-4), 4.5, 5.0, 139.0)
_4010 = geared((0.068e-4, 0.0, 0.0), 5.0, 5.0, 5.0)
GO1_MOTORS = {r"\w+_(hip|thigh)_joint": Motor(36.0 * _ROTOR, 23.7), r"\w+_calf_joint": Motor(81.0 * _ROTOR, 35.55)}
GO1_POSE = {r"\w+thigh_joint": 0.9, r"\w+calf_joint": -1.8, r"\w+R_hip_joint": 0.1, r"\w+L_hip_joint": -0.1}
G1_MOTORS = {
    r"\w+_(elbow|shoulder_pitch|shoulder_roll|shoulder_yaw|wrist_roll)_joint": _5020,
    r"\w+_hip_(pitch|yaw)_joint|waist_yaw_joint": _7520_14,
    r"\w+_(hip_roll|knee)_joint": _7520_22,
    r"\w+_wrist_(pitch|yaw)_joint": _4010,
    r"waist_(pitch|roll)_joint|\w+_ankle_(pitch|roll)_joint": doubled(_5020),
}
G1_POSE = {
    r"\w+_hip_pitch_joint": -0.312, r"\w+_knee_joint": 0.669, r"\w+_ankle_pitch_joint": -0.363, r"\w+_elbow_joint": 0.6,
    "left_shoulder_roll_joint": 0.2, "right_shoulder_roll_joint": -0.2, r"\w+_shoulder_pitch_joint": 0.2,
}  # fmt: skip


@dataclass(frozen=True)
class Mjlab:
    """A robot of mjlab on a floor, with steps of 5 ms and the contacts of the file, including self-contacts."""

    path: Path
    height: float  # height of the base [m]
    pose: Mapping[str, float]  # joint angles by patterns of names
    motors: Mapping[str, Motor]
    steps: int = SHORT

    @cached_property
    def _scene(self) -> FallingScene:
        spec = spec_of_file(self.path)
        joints = [j for j in spec.joints if j.type == mujoco.mjtJoint.mjJNT_HINGE]
        for joint in joints:
            motor = matched(self.motors, joint.name)
            assert motor is not None, f"{self.path}: no motor for {joint.name}"
            joint.armature = motor.armature
            add_drive(spec, joint.name, motor.stiffness, motor.damping, motor.effort)
        angles = [matched(self.pose, joint.name) or 0.0 for joint in joints]
        spec.add_key(name=HOME, qpos=[0.0, 0.0, self.height, 1.0, 0.0, 0.0, 0.0, *angles], ctrl=angles)
        return FallingScene.of_spec(self.path.stem, spec, mujoco.mjtIntegrator.mjINT_IMPLICITFAST)

    @property
    def text(self) -> str:
        return self._scene.text

    @property
    def model(self) -> Any:
        return self._scene.mujoco_model

    def simulation(self, **options: Any) -> fw.Simulation:
        return fw.Simulation(fw.load(self.text, folder="/"), q=HOME, **options)

    def start(self, sim: fw.Simulation, robots: int) -> Start:
        """Return states of robots that have settled from poses near the standing pose."""
        rng, targets = np.random.default_rng(0), self.model.key_ctrl[0]
        q, v = np.tile(sim.q, (robots, 1)), np.zeros((robots, sim.robot.nv))
        q[:, 7:] += JOINTS * rng.standard_normal(q[:, 7:].shape)
        v[:, 6:] += RATES * rng.standard_normal(v[:, 6:].shape)
        q = sim.robot.on_ground(q)
        settle = round(SETTLE / sim.dt)
        qs, vs = sim.rollout(q, v, control=np.tile(targets, (1, settle, 1)), every=settle)
        return Start(qs[:, -1], vs[:, -1], np.tile(targets, (robots, self.steps, 1)), self.steps)


def matched(patterns: Mapping[str, T], name: str) -> T | None:
    """Return the value of the pattern that matches a name."""
    return next((value for pattern, value in patterns.items() if re.fullmatch(pattern, name)), None)


def add_drive(spec: Any, joint: str, stiffness: float, damping: float, effort: float | None = None) -> None:
    """Add an actuator that pulls a joint to its control."""
    drive = spec.add_actuator(name=joint, target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    drive.gaintype, drive.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
    drive.gainprm[0], drive.biasprm[1:3] = stiffness, [-stiffness, -damping]
    drive.ctrllimited = False
    if effort is not None:
        drive.forcelimited, drive.forcerange = True, [-effort, effort]


def mjlab_robot(path: str, height: float, pose: Mapping[str, float], motors: Mapping[str, Motor]) -> FleetScene | None:
    """Return a robot of the installed package, or None without the package."""
    folder = folder_of("mjlab")
    return Mjlab(folder / "asset_zoo/robots" / path, height, pose, motors) if folder else None


class Fleet(NamedTuple):
    """A row of the table: the number of robots for each 1024 of the option, and a function that makes the scene."""

    what: str
    share: float
    scene: Callable[[], FleetScene | None]


def _gymnasium(name: str) -> Fleet:
    return Fleet(f"{name}, random controls", 1.0, lambda: Gymnasium(name))


FLEETS = {
    "humanoid": _gymnasium("humanoid"),
    "ant": _gymnasium("ant"),
    "half_cheetah": _gymnasium("half_cheetah"),
    "hopper": _gymnasium("hopper"),
    "walker2d": _gymnasium("walker2d_v5"),
    "talos": Fleet("Talos, standing", 0.5, Talos),
    "go1": Fleet("Go1, standing", 1.0, lambda: mjlab_robot("unitree_go1/xmls/go1.xml", 0.278, GO1_POSE, GO1_MOTORS)),
    "g1": Fleet("G1, standing", 1.0, lambda: mjlab_robot("unitree_g1/xmls/g1.xml", 0.76, G1_POSE, G1_MOTORS)),
}
