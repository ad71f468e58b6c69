"""Joystick locomotion of Unitree's G1, with the numbers of MuJoCo Playground's "G1JoystickFlatTerrain".

`joystick_text` and `humanoid_rules` contain the formulas.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..array_types import Array
from ..checks import Finite, checked
from ..model.description import Description
from ..model.position_drives import PD
from ..model.types import Joint, JointType, Pose, Shape, ShapeType
from ..robot.build import read
from ..robots.example_files import example
from .humanoid_rules import REMEMBERED, HumanoidRules, HumanoidWeights
from .joystick_tasks import SOFT, JoystickTask, Limbs
from .own_robots import furnished
from .parallel_robots import ParallelRobots
from .reset_noise import ResetNoise
from .snapshot import Links
from .varied_robots import Variation

TERMS = tuple(f"reward_{name}" for name in HumanoidWeights._fields)
FEET = ("left_ankle_roll_link", "right_ankle_roll_link")
SOLE, UNDER = (0.18, 0.06, 0.016), (0.04, 0.0, -0.029)  # [m] sides and middle of the box that is a foot's sole
FRICTION = 0.6
FEWER, MORE = 0.5, 1.5  # factors of joints at the beginning
DRY = 0.1  # [N m] friction of joints
STRONG, WEAK, SOFTER = (75.0, 2.0), (2.0, 0.2), (20.0, 1.0)  # stiffness [N m/rad] and damping [N m s/rad]
GAINS = {"ankle_pitch": SOFTER, "ankle_roll": WEAK, "wrist": WEAK}  # by part of the joint's name; the default is STRONG
ARMATURES = {  # [kg m²] by names
    "hip_roll": 0.025101925, "knee": 0.025101925, "hip": 0.01017752004, "waist_yaw": 0.01017752004, "ankle": 0.00721945,
    "waist": 0.00721945, "wrist_roll": 0.003609725, "wrist": 0.00425, "shoulder": 0.003609725, "elbow": 0.003609725,
}  # fmt: skip
POSE = {  # [rad] with bent knees; joints that are not named are at zero
    "hip_pitch": -0.312, "knee": 0.669, "ankle_pitch": -0.363, "shoulder_pitch": 0.2, "elbow": 0.6,
}  # fmt: skip
HEIGHT, WAIST_PITCH, SHOULDER_ROLL = 0.755, 0.073, 0.2  # [m], [rad]


@checked
@dataclass(frozen=True)
class G1Joystick(JoystickTask):
    """G1 follows commanded velocities (forward, sideways, turn about the vertical) in the rhythm of a clock.

    Actions are targets of the joints' drives, relative to a pose with bent knees, in units of `action_scale`. Observations have
    noise. They contain velocities of the pelvis's inertial unit and the downward direction, both in the unit's axes; the
    command; joint positions relative to the pose, joint velocities and the previous action; and cosine and sine of the clock
    for both feet. `reward_weights` replaces weights of the reward by name. `noise_level` scales the noise of observations. An
    episode ends when the torso is upside down or the feet touch each other.

    With `randomized`, robots differ in friction of the ground, dry friction and armature of joints, masses of all bodies, and a
    load on the torso. With `roughness`, the ground has random heights, as for `Go1Joystick`.

    The robot is `featherweight.example("g1_29dof_rev_1_0")`, with boxes as soles, and with gains, armature, damping and dry
    friction of the Playground's file. Only the soles touch. This task leaves out the Playground's kicks, its observations for
    the critic, and its cost of hands that touch thighs.
    """

    frame_skip: int = 10
    timestep: Finite = 0.002
    commands: tuple[float, float, float] = (1.0, 0.5, 1.0)
    command_time: Finite = 10.0  # [s] between changes of the command

    terms: ClassVar[tuple[str, ...]] = TERMS
    foot_height: ClassVar[float] = 0.15
    limbs: ClassVar[Limbs] = Limbs(FEET, "imu_in_pelvis", ("torso_link",))
    variation: ClassVar[Variation] = Variation("torso_link", dry_friction=(0.5, 2.0))
    of_clock: ClassVar[int] = REMEMBERED
    weights: ClassVar[HumanoidWeights] = HumanoidWeights(
        tracking_lin_vel=1.0, tracking_ang_vel=0.75, ang_vel_xy=-0.15, orientation=-2.0, feet_air_time=2.0, feet_slip=-0.25,
        feet_phase=1.0, stand_still=-1.0, termination=-100.0, contact_force=-0.01, joint_deviation_knee=-0.1,
        joint_deviation_hip=-0.25, dof_pos_limits=-1.0, pose=-0.1,
    )  # fmt: skip

    def robot(self) -> Description:
        return g1(self.timestep, self.dry_friction)

    def soft_limits(self, lower: Array, upper: Array) -> Array:
        middle, half = 0.5 * (lower + upper), 0.5 * SOFT * (upper - lower)
        return np.array([middle - half, middle + half])

    def beginning(self, qpos: Array, nv: int, noise: ResetNoise, which: Array) -> tuple[Array, Array]:
        """Begin as all joystick tasks, with joint positions between 0.5 and 1.5 times the home pose."""
        q, v = super().beginning(qpos, nv, noise, which)
        u = noise.uniform(which, 9, q.shape[1] - 7)
        q[:, 7:] *= 1.0 + self.reset_noise_scale * (FEWER + (MORE - FEWER) * u - 1.0)
        return q, v

    drawn_at_first: ClassVar[int] = 64

    def seen(self, links: Links) -> int:
        return super().seen(links) + 2 * len(FEET)

    def rules(self, robots: ParallelRobots, weights: Any, dt: float) -> Any:
        names = list(robots.links.robot.controls)

        def named(part: str) -> Array:
            return np.array([k for k, name in enumerate(names) if part in name], np.int64)

        steps = round(self.command_time / dt)
        fastest = np.array(self.commands, float)
        return HumanoidRules(weights, fastest, steps, named("knee"), named("hip_roll"), named("hip_yaw"))


def g1(timestep: float, dry_friction: bool) -> Description:
    """Return G1 with bent knees and position drives, on a floor that only its soles touch."""
    d = read(example("g1_29dof_rev_1_0"))
    soles = tuple(Shape(f"{foot}_sole", foot, ShapeType.BOX, SOLE, Pose(p=UNDER), friction=FRICTION) for foot in FEET)
    drawn = tuple(s for s in d.shapes if s.visual)
    joints = tuple(_as_driven(j, dry_friction) for j in d.joints)
    d = replace(d, shapes=(*soles, *drawn), joints=joints, timestep=timestep)
    driven = [j.name for j in joints if j.type is JointType.REVOLUTE]
    gains = {name: next((x for part, x in GAINS.items() if part in name), STRONG) for name in driven}
    home: dict[str, Any] = {name: _at_home(name) for name in driven}
    home["root_joint"] = [0.0, 0.0, HEIGHT, 0.0, 0.0, 0.0, 1.0]
    return furnished(d, True, True, home, PD({name: x for name, (x, _) in gains.items()}, 0.0))


def _at_home(name: str) -> float:
    if "waist_pitch" in name:
        return WAIST_PITCH
    if "shoulder_roll" in name:
        return SHOULDER_ROLL if name.startswith("left") else -SHOULDER_ROLL
    return next((x for part, x in POSE.items() if part in name), 0.0)


def _as_driven(j: Joint, dry_friction: bool) -> Joint:
    if j.type is not JointType.REVOLUTE:
        return j
    armature = next(x for part, x in ARMATURES.items() if part in j.name)
    damping = next((x for part, x in GAINS.items() if part in j.name), STRONG)[1]
    return replace(j, armature=armature, damping=damping, dry_friction=DRY * dry_friction)
