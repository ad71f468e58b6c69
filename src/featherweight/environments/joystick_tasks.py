"""Joystick locomotion of Unitree's Go1, with the numbers of MuJoCo Playground's "Go1JoystickFlatTerrain".

`joystick_text` and `quadruped_rules` contain the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from ..array_types import Array, Integers, Matrix, Vector
from ..checks import Finite, checked, number_in
from ..model.description import Description
from ..model.position_drives import PD
from ..model.types import Joint, JointType, ShapeType
from ..robot.build import read
from ..robots.example_files import example
from ..simulation import Simulation
from .compiled_task import CompiledTask, called
from .episode_loop import Now
from .joystick_text import (
    COMMANDS,
    CROSSING,
    NOTHING,
    JoystickNoise,
    JoystickNumbers,
    JoystickText,
    LeggedRobot,
)
from .own_robots import FLOOR, furnished
from .parallel_robots import ParallelRobots
from .quadruped_rules import QuadrupedRules, QuadrupedWeights
from .reset_noise import ResetNoise
from .snapshot import Links
from .varied_robots import Variation, randomize, rough_heights

LEGS = ("FR", "FL", "RR", "RL")
SOLE = 0.02  # [m] radius of feet
SOFT = 0.95  # of limits
STIFFNESS = 35.0  # [N m/rad]
DRAWN_AT_FIRST = 16
GROUND, PLACES = 10.0, 8.0  # [m] half the side of the rough ground, and of the area where robots begin
REACH = 0.5  # [m] radius of ground that must be below the feet at the start
WAIT = number_in("a positive number of seconds, infinite for constant commands", 0.0, ends="(]")

TERMS = tuple(f"reward_{name}" for name in QuadrupedWeights._fields)


class Limbs(NamedTuple):
    """Names and numbers of a robot with legs."""

    feet: tuple[str, ...]  # frames
    unit: str  # frame of the inertial unit, on the first body
    more: tuple[str, ...]  # other frames whose placements and velocities rules need


@checked
@dataclass(frozen=True)
class JoystickTask(CompiledTask):
    """A robot with legs follows commanded velocities: forward, sideways and turn about the vertical.

    Actions are targets of the joints' drives, relative to the home pose, in units of `action_scale`. `reward_weights` replaces
    weights of the reward by name. `noise_level` scales the noise of observations. With `randomized`, robots differ from one
    another; a `reset` of all environments draws new robots. With `roughness` [m], the ground within 10 m of the origin has
    random heights between 0 and this value, and robots begin anywhere within 8 m.
    """

    xml_file: Any = None
    frame_skip: int = 5
    reset_noise_scale: Finite = 1.0  # scale of initial positions, headings and velocities
    timestep: Finite = 0.004
    action_scale: Finite = 0.5
    noise_level: Finite = 1.0
    reward_weights: Mapping[str, float] = field(default_factory=dict)
    dry_friction: bool = True
    randomized: bool = False
    roughness: Finite = 0.0  # [m]

    info: ClassVar[tuple[str, ...]] = (
        "command_x", "command_y", "command_turn", "forward_velocity", "sideways_velocity", "turn_velocity",
    )  # fmt: skip
    places: ClassVar[int] = 6
    drawn_at_first: ClassVar[int] = DRAWN_AT_FIRST

    noise: ClassVar[JoystickNoise] = JoystickNoise(linvel=0.1, gyro=0.2, gravity=0.05, joint_pos=0.03, joint_vel=1.5)
    sigma: ClassVar[float] = 0.25  # [m²/s²]
    foot_height: ClassVar[float]
    limbs: ClassVar[Limbs]
    variation: ClassVar[Variation]
    weights: ClassVar[Any]
    of_clock: ClassVar[int] = 0  # count of numbers that the rules store

    def robot(self) -> Description:
        """Return the robot on its floor."""
        raise NotImplementedError

    def rules(self, robots: ParallelRobots, weights: Any, dt: float) -> Any:
        """Return the rules, with weights, for environment steps of length dt [s]."""
        raise NotImplementedError

    def soft_limits(self, lower: Vector, upper: Vector) -> Matrix:
        """Return the limits (2, n) beyond which the reward falls."""
        raise NotImplementedError

    def read(self) -> Description:
        """Return the robot on its floor. Raises ImportError without the package of example robots."""
        d = self.robot()
        return d if self.roughness == 0.0 else on_rough_ground(d, self._heights)

    @cached_property
    def _heights(self) -> Array:
        return rough_heights(self.roughness, 2.0 * GROUND)

    def vary(self, simulation: Simulation, noise: ResetNoise) -> None:
        if self.randomized:
            randomize(simulation, noise, self.variation)

    def beginning(self, qpos: Vector, nv: int, noise: ResetNoise, which: Integers) -> tuple[Matrix, Matrix]:
        """Return initial states: standing near home, with random heading and velocity.

        The position is within half a metre, and the velocity up to 0.5 m/s and rad/s in each direction.
        """
        noise.begin(which)
        u = self.reset_noise_scale * (2.0 * noise.uniform(which, 0, 9) - 1.0)
        q, v = np.tile(qpos, (len(which), 1)), np.zeros((len(which), nv))
        q[:, :2] += (0.5 if self.roughness == 0.0 else PLACES) * u[:, :2]
        if self.roughness > 0.0:
            q[:, 2] += highest(self._heights, q[:, :2])
        half = 0.5 * math.pi * u[:, 2]
        q[:, 3], q[:, 6] = np.cos(half), np.sin(half)
        v[:, :6] = 0.5 * u[:, 3:]
        return q, v

    def action_bounds(self, links: Links) -> tuple[Array, Array]:
        count = len(links.robot.controls)
        return np.full(count, -1.0, np.float32), np.full(count, 1.0, np.float32)

    def seen(self, links: Links) -> int:
        return 9 + 3 * len(links.robot.controls) + COMMANDS

    def memory(self, links: Links) -> int:
        return len(links.robot.controls) + COMMANDS + 3 * len(self.limbs.feet) + self.of_clock

    def text(self, robots: ParallelRobots, now: Now) -> Any:
        """Return the text of this task. Raises ValueError for unknown names in `reward_weights`."""
        known = self.weights._fields
        if unknown := [name for name in self.reward_weights if name not in known]:
            raise ValueError(f"reward_weights: there is no term {unknown[0]!r}; terms are {', '.join(known)}")
        step = robots.links.timestep
        dt = self.frame_skip * step
        numbers = JoystickNumbers(dt, step, float(self.action_scale), self.sigma, self.foot_height)
        weights = self.weights._replace(**{name: float(x) for name, x in self.reward_weights.items()})
        noise = JoystickNoise(*(self.noise_level * x for x in self.noise))
        return JoystickText(numbers, noise, self._legged(robots, now), self.rules(robots, weights, dt))

    def _legged(self, robots: ParallelRobots, now: Now) -> LeggedRobot:
        links, robot = robots.links, robots.links.robot
        feet, frames = self.limbs.feet, (*self.limbs.feet, *self.limbs.more)
        number = {links.names.index(foot): k for k, foot in enumerate(feet)}
        n = len(robot.controls)
        placement, velocity = np.zeros((len(frames), 4, 4)), np.zeros((len(frames), 6))
        unit = next(frame.placement for frame in robot.frames if frame.name == self.limbs.unit)
        low, high = np.array([*robot.controls.values()], float).T
        return LeggedRobot(
            pose=links.home[-n:].copy(), soft=self.soft_limits(robot.lower[-n:], robot.upper[-n:]),
            control_range=np.array([low, high]), efforts=np.ascontiguousarray(np.array(robot.effort_bounds)[:, -n:]),
            unit=np.array(unit.p, float), stiffness=np.array([a.gain for a in robot.actuators], float), feet=len(feet),
            foot_of=np.array([foot_of(number, int(a), int(b)) for a, b in robots.touching_links], np.int64),
            local=np.zeros((3, 3)), world=np.zeros((2, 3)), placement=placement, velocity=velocity,
            touches=np.zeros(len(feet) + 1), pressed=np.zeros(len(feet)), force=np.zeros(n),
            find_feet=called(links, robot.frame_placement(frames), now, placement),
            find_velocities=called(links, robot.frame_velocity(frames), now, velocity),
        )  # fmt: skip


GO1 = Limbs(tuple(f"{leg}_foot" for leg in LEGS), "imu_link", ())


def foot_of(feet: Mapping[int, int], a: int, b: int) -> int:
    """Return the foot in a contact of two links; -1 is the world."""
    if a in feet and b in feet:
        return CROSSING
    return feet.get(a, feet.get(b, NOTHING))


@checked
@dataclass(frozen=True)
class Go1Joystick(JoystickTask):
    """Go1 follows commanded velocities: forward, sideways and turn about the vertical.

    Actions are targets of the joints' drives, relative to the home pose, in units of `action_scale`. Observations contain, with
    noise: velocities of the inertial unit and the downward direction, both in the unit's axes, joint positions relative to the
    pose, and joint velocities; then the previous action and the command. `reward_weights` replaces weights of the reward by
    name. `noise_level` scales the noise of observations. Only feet touch the floor. Without `dry_friction` in the joints, steps
    take half the time.

    With `randomized`, robots differ in friction of the ground, dry friction and armature of joints, masses of all bodies, and
    mass and centre of mass of the trunk; a `reset` of all environments draws new robots. With `roughness` [m], the ground
    within 10 m of the origin has random heights between 0 and this value, and robots begin anywhere within 8 m.

    The robot is `featherweight.example("go1")`, with armature, damping and dry friction of joints as in the Playground's file.
    Its masses are those of its own file.
    """

    commands: tuple[float, float, float] = (1.5, 0.8, 1.2)
    command_probabilities: tuple[float, float, float] = (0.9, 0.25, 0.5)
    command_wait: Annotated[float, WAIT] = 5.0  # [s] mean time between changes of the command

    terms: ClassVar[tuple[str, ...]] = TERMS
    foot_height: ClassVar[float] = 0.1
    limbs: ClassVar[Limbs] = GO1
    variation: ClassVar[Variation] = Variation("base", center=0.05)
    weights: ClassVar[QuadrupedWeights] = QuadrupedWeights(
        tracking_lin_vel=1.0, tracking_ang_vel=0.5, lin_vel_z=-0.5, ang_vel_xy=-0.05, orientation=-5.0, dof_pos_limits=-1.0,
        pose=0.5, termination=-1.0, stand_still=-1.0, torques=-2e-4, action_rate=-0.01, energy=-1e-3, feet_clearance=-2.0,
        feet_height=-0.2, feet_slip=-0.1, feet_air_time=0.1,
    )  # fmt: skip

    def robot(self) -> Description:
        return go1(self.timestep, STIFFNESS, self.dry_friction)

    def soft_limits(self, lower: Vector, upper: Vector) -> Matrix:
        return SOFT * np.array([lower, upper])

    def rules(self, robots: ParallelRobots, weights: Any, dt: float) -> Any:
        fastest, moving = np.array(self.commands, float), np.array(self.command_probabilities, float)
        change = 1.0 - math.exp(-dt / self.command_wait)
        return QuadrupedRules(weights, fastest, moving, change, np.tile([1.0, 1.0, 0.1], len(LEGS)))


def go1(timestep: float, stiffness: float, dry_friction: bool) -> Description:
    """Return Go1 at home, with position drives, on a floor that only its feet touch."""
    d = read(example("go1"))
    feet = tuple(
        replace(s, friction=0.6, contype=0, conaffinity=1)
        for s in d.shapes
        if s.type is ShapeType.SPHERE and s.size[0] == SOLE and not s.visual
    )
    drawn = tuple(s for s in d.shapes if s.visual)
    d = replace(d, shapes=(*feet, *drawn), joints=tuple(_as_driven(j, dry_friction) for j in d.joints), timestep=timestep)
    home: dict[str, Any] = {"root_joint": [0.0, 0.0, 0.29, 0.0, 0.0, 0.0, 1.0]}
    for leg in LEGS:
        home |= {f"{leg}_hip_joint": 0.1 if leg[1] == "R" else -0.1, f"{leg}_thigh_joint": 0.9, f"{leg}_calf_joint": -1.8}
    return furnished(d, True, True, home, PD(stiffness, 0.0))


def on_rough_ground(d: Description, heights: Array) -> Description:
    """Return the robot with a height field in place of its floor."""
    floor = next(s for s in d.shapes if s.name == FLOOR)
    ground = replace(floor, type=ShapeType.HEIGHTFIELD, size=(2.0 * GROUND, 2.0 * GROUND, 0.1), heights=heights)
    return replace(d, shapes=(*(s for s in d.shapes if s.name != FLOOR), ground))


def highest(heights: Array, places: Array) -> Array:
    """Return the greatest heights (k,) around places (k, 2)."""
    x = np.linspace(-GROUND, GROUND, len(heights))
    found = []
    for place in places:
        rows, columns = (np.abs(x - c) <= REACH for c in place)
        found.append(heights[rows][:, columns].max())
    return np.array(found)


def _as_driven(j: Joint, dry_friction: bool) -> Joint:
    if j.type is not JointType.REVOLUTE:
        return j
    friction = 1.0 if "calf" in j.name else 0.3
    return replace(j, armature=0.005, damping=0.5, dry_friction=friction * dry_friction)
