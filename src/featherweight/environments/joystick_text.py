"""Joystick locomotion: a robot with legs follows commanded velocities, by the observations and rewards of MuJoCo Playground.

Zakka et al., MuJoCo Playground (2025, arXiv:2502.08844). This module has the parts that all robots share; `quadruped_rules`
and `humanoid_rules` have the rewards. v and w are the velocities of the inertial unit in its own axes, c is the command
(forward, sideways, turn) and u the world's vertical in those axes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..array_types import Integers, Matrix, Tensor, Vector
from ..engine.loops.kernels import MachineCall, call_machine
from ..simulation.smooth_motion import clear, copy
from ..simulation.stage_records import FleetArrays
from .episode_loop import Now
from .task_numbers import cut, drawn_between, falling_exponential, squares

COMMANDS = 3
STANDS = 0.01  # commands smaller than this command the robot to stand
CROSSING, NOTHING = -2, -1  # special values in place of the number of a foot


class JoystickNoise(NamedTuple):
    """Half widths of the uniform noise of observations."""

    linvel: float  # [m/s]
    gyro: float  # [rad/s]
    gravity: float
    joint_pos: float  # [rad]
    joint_vel: float  # [rad/s]


class JoystickNumbers(NamedTuple):
    """Numbers of the task."""

    dt: float  # [s] of a step of the environment
    step: float  # [s] of the simulation
    action_scale: float  # [rad]
    sigma: float  # [m²/s²] of tracking
    foot_height: float  # [m] of swings


class LeggedRobot(NamedTuple):
    """The robot, and quantities computed at one instant."""

    pose: Vector  # (n,) [rad] joints at home
    soft: Matrix  # (2, n) [rad] limits
    control_range: Matrix  # (2, n) [rad]
    efforts: Matrix  # (2, n) [N m]
    unit: Vector  # (3,) [m] the place of the inertial unit in the trunk
    stiffness: Vector  # (n,) [N m/rad] of the drives
    feet: int
    foot_of: Integers  # (candidates,) foot of a contact with the ground, CROSSING between feet, NOTHING otherwise
    local: Matrix  # (3, 3) rows: velocity and angular velocity of the unit, and the vertical, in its axes
    world: Matrix  # (2, 3) rows: velocity and angular velocity in the world's
    placement: Tensor  # (feet and more, 4, 4)
    velocity: Matrix  # (feet and more, 6)
    touches: Vector  # (feet + 1,) 1 for each foot with ground contact; last, whether feet touch each other
    pressed: Vector  # (feet,) [N] force of the ground along the foot's z axis
    force: Vector  # (n,) [N m] of the drives
    find_feet: MachineCall
    find_velocities: MachineCall


class JoystickText(NamedTuple):
    """The text of joystick tasks.

    Its memory holds the last action, the command, time in the air, contact and peak height of each foot, and numbers of the
    rules.
    """

    numbers: JoystickNumbers
    noise: JoystickNoise
    robot: LeggedRobot
    rules: Any

    def begin(self, now: Now) -> None:
        """Begin an episode: the rules draw a command."""
        self.rules.begin(self, now)

    def last_action(self, now: Now) -> Vector:
        """Return the last action, a part of the memory."""
        return now.memory[: len(self.robot.pose)]

    def command(self, now: Now) -> Vector:
        """Return the command, a part of the memory."""
        n = len(self.robot.pose)
        return now.memory[n : n + COMMANDS]

    def of_feet(self, now: Now, k: int) -> Vector:
        """Return numbers of the feet, a part of the memory: time in the air (k = 0), whether they touched (1), peaks (2)."""
        first = len(self.robot.pose) + COMMANDS + k * self.robot.feet
        return now.memory[first : first + self.robot.feet]

    def of_rules(self, now: Now) -> Vector:
        """Return the part of the memory that belongs to the rules."""
        return now.memory[len(self.robot.pose) + COMMANDS + 3 * self.robot.feet :]

    def act(self, now: Now) -> None:
        """Write controls: the pose plus scaled actions."""
        for k in range(len(now.control)):
            now.control[k] = self.robot.pose[k] + self.numbers.action_scale * now.action[k]

    def measure(self, now: Now, fleet: FleetArrays, i: int) -> None:
        """Compute velocities of the unit, feet, contacts and forces of drives."""
        r = self.robot
        write_unit(now, r)
        call_machine(r.find_feet)
        call_machine(r.find_velocities)
        clear(r.touches)
        clear(r.pressed)
        for c in range(fleet.contacts.counts[i]):
            foot, force = r.foot_of[fleet.contacts.candidate[i, c]], fleet.contacts.force[i, c]
            if foot != NOTHING and squares(force) > 0.0:
                r.touches[r.feet if foot == CROSSING else foot] = 1.0
            if foot >= 0:
                T = r.placement[foot]
                along = force[0] * T[0, 2] + force[1] * T[1, 2] + force[2] * T[2, 2]
                r.pressed[foot] += along / self.numbers.step
        for k in range(len(r.force)):
            target = cut(now.control[k], r.control_range[0, k], r.control_range[1, k])
            force_of_drive = r.stiffness[k] * (target - joint(now, k))
            r.force[k] = cut(force_of_drive, r.efforts[0, k], r.efforts[1, k])

    def observe(self, now: Now, seen: Vector) -> None:
        """Write the observation of the rules."""
        self.rules.observe(self, now, seen)

    def see_unit(self, now: Now, seen: Vector) -> None:
        """Write velocities of the unit and the downward direction (9), with noise."""
        r, w = self.robot, self.noise
        for k in range(3):
            seen[k] = r.local[0, k] + drawn_between(now.drawn, -w.linvel, w.linvel)
            seen[3 + k] = r.local[1, k] + drawn_between(now.drawn, -w.gyro, w.gyro)
            seen[6 + k] = -r.local[2, k] + drawn_between(now.drawn, -w.gravity, w.gravity)

    def see_joints(self, now: Now, seen: Vector) -> None:
        """Write joint positions relative to the pose and joint velocities, with noise, and the last action (3 n)."""
        r, w, n = self.robot, self.noise, len(self.robot.pose)
        for k in range(n):
            seen[k] = joint(now, k) - r.pose[k] + drawn_between(now.drawn, -w.joint_pos, w.joint_pos)
            seen[n + k] = now.v[6 + k] + drawn_between(now.drawn, -w.joint_vel, w.joint_vel)
        copy(self.last_action(now), seen[2 * n : 3 * n])

    def reward(self, now: Now, terms: Vector) -> None:
        """Write all terms, weighted."""
        self.rules.reward(self, now, terms)

    def track(self, now: Now) -> tuple[float, float]:
        """Return how well the robot follows the command: linear velocity, and turn rate."""
        r, c, sigma = self.robot, self.command(now), self.numbers.sigma
        x, y, turn = c[0] - r.local[0, 0], c[1] - r.local[0, 1], c[2] - r.local[1, 2]
        return falling_exponential((x * x + y * y) / sigma), falling_exponential(turn * turn / sigma)

    def beyond_limits(self, now: Now) -> float:
        """Return the sum of the distances of joints beyond their soft limits."""
        r, beyond = self.robot, 0.0
        for k in range(len(r.pose)):
            x = joint(now, k)
            beyond += max(r.soft[0, k] - x, 0.0) + max(x - r.soft[1, k], 0.0)
        return beyond

    def off_pose(self, now: Now) -> float:
        """Return the sum of the distances of joints from the pose."""
        away = 0.0
        for k in range(len(self.robot.pose)):
            away += abs(joint(now, k) - self.robot.pose[k])
        return away

    def lands(self, now: Now, f: int) -> bool:
        """Return whether foot f touches the ground for the first time after a swing."""
        touches = self.robot.touches[f] > 0.0 or self.of_feet(now, 1)[f] > 0.0
        return bool(self.of_feet(now, 0)[f] > 0.0 and touches)

    def walks(self, now: Now) -> bool:
        """Return whether the command is to move."""
        return squares(self.command(now)) > STANDS * STANDS

    def total(self, terms: Vector) -> float:
        """Return the sum of the terms, times the length of a step."""
        return self.rules.total(self, terms)

    def write_info(self, now: Now, info: Vector) -> None:
        """Write the command, and how well the robot follows it."""
        c, r = self.command(now), self.robot
        copy(c, info[:COMMANDS])
        info[3], info[4], info[5] = r.local[0, 0], r.local[0, 1], r.local[1, 2]

    def ended(self, now: Now) -> bool:
        """Return whether the episode terminates."""
        return self.rules.ended(self, now)

    def remember(self, now: Now) -> None:
        """Store the action and contacts, and advance the rules."""
        copy(now.action, self.last_action(now))
        touches = self.robot.touches
        air, before, peak = self.of_feet(now, 0), self.of_feet(now, 1), self.of_feet(now, 2)
        for f in range(self.robot.feet):
            before[f] = touches[f]
            if touches[f] > 0.0:
                air[f], peak[f] = 0.0, 0.0
        self.rules.go_on(self, now)


def joint(now: Now, k: int) -> float:
    """Return the coordinate of joint k, after those of the free root joint."""
    return now.q[7 + k]


def write_unit(now: Now, r: LeggedRobot) -> None:
    """Write velocities of the inertial unit, and the vertical in its axes."""
    x, y, z, w = now.q[3], now.q[4], now.q[5], now.q[6]
    a, b, c = now.v[3], now.v[4], now.v[5]
    u = (
        now.v[0] + (b * r.unit[2] - c * r.unit[1]),
        now.v[1] + (c * r.unit[0] - a * r.unit[2]),
        now.v[2] + (a * r.unit[1] - b * r.unit[0]),
    )
    rows = (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)), (
        2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)), (
        2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y))  # fmt: skip
    for k in range(3):
        row = rows[k]
        r.local[0, k], r.local[1, k], r.local[2, k] = u[k], now.v[3 + k], rows[2][k]
        r.world[0, k] = row[0] * u[0] + row[1] * u[1] + row[2] * u[2]
        r.world[1, k] = row[0] * a + row[1] * b + row[2] * c
