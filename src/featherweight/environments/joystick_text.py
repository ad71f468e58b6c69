"""Joystick locomotion: a robot with legs follows commanded velocities, by the observations and rewards of MuJoCo Playground.

Zakka et al., MuJoCo Playground (2025, arXiv:2502.08844), table of rewards of "Go1JoystickFlatTerrain". With v and w the
velocities of the inertial unit in its own axes, c the command (forward, sideways, turn), u the world's vertical in those axes:

    tracking      exp(-|c_xy - v_xy|² / sigma), exp(-(c_turn - w_z)² / sigma)
    base          world's v_z², |w_xy|² there, |u_xy|²
    joints        exp(-weighted |q - pose|²), |q - pose| at rest, beyond soft limits, |tau|, |v tau|, change of actions
    feet          slip, clearance and peak height of swings, time in the air at touchdown

Commands change at random: in a step with the probability with which a wait of 5 s on average ends in it, each component then
with probability 1/2, to a new one or to zero.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from ..engine.loops.array_types import Integers, Matrix, Tensor, Vector
from ..engine.loops.kernels import MachineCall, call_machine
from ..simulation.smooth_motion import clear, copy
from ..simulation.stage_records import FleetArrays
from .drawn_numbers import drawn_between, drawn_number, falling_exponential
from .episode_loop import Now
from .task_sums import cut, squares, total

COMMANDS = 3
STANDS = 0.01  # a command so small is one to stand
AIR_TIME = 0.1  # [s] from which on time in the air is rewarded


class JoystickWeights(NamedTuple):
    """Weights of the terms of the reward; their order is that of the terms."""

    tracking_lin_vel: float
    tracking_ang_vel: float
    lin_vel_z: float
    ang_vel_xy: float
    orientation: float
    dof_pos_limits: float
    pose: float
    termination: float
    stand_still: float
    torques: float
    action_rate: float
    energy: float
    feet_clearance: float
    feet_height: float
    feet_slip: float
    feet_air_time: float


class JoystickNoise(NamedTuple):
    """Widths of the uniform noise of observations."""

    linvel: float  # [m/s]
    gyro: float  # [rad/s]
    gravity: float
    joint_pos: float  # [rad]
    joint_vel: float  # [rad/s]


class JoystickNumbers(NamedTuple):
    """Numbers of the task."""

    dt: float  # [s] of a step of the environment
    action_scale: float  # [rad]
    sigma: float  # [m²/s²] of tracking
    foot_height: float  # [m] of swings
    stiffness: float  # [N m/rad] of the drives
    change: float  # probability that a command changes in a step


class LeggedRobot(NamedTuple):
    """The robot, and what is found of it at one instant."""

    pose: Vector  # (n,) [rad] joints at home
    pose_weight: Vector
    soft: Matrix  # (2, n) [rad] limits
    control_range: Matrix  # (2, n) [rad]
    efforts: Matrix  # (2, n) [N m]
    unit: Vector  # (3,) [m] the place of the inertial unit in the trunk
    height: Vector  # (feet,) [m] of the soles below the feet's frames
    foot_of: Integers  # (candidates,) the foot of each contact, -1 for none
    local: Matrix  # (3, 3) rows: velocity and angular velocity of the unit, and the vertical, in its axes
    world: Matrix  # (2, 3) rows: velocity and angular velocity in the world's
    placement: Tensor  # (feet, 4, 4)
    velocity: Matrix  # (feet, 6)
    touches: Vector  # (feet,) 1 where a foot bears on the ground
    force: Vector  # (n,) [N m] of the drives
    find_feet: MachineCall
    find_velocities: MachineCall


class JoystickText(NamedTuple):
    """The text of joystick tasks; it remembers the last action, the command, and of feet time in the air, contact and peak."""

    numbers: JoystickNumbers
    weights: JoystickWeights
    noise: JoystickNoise
    fastest: Vector  # (3,) amplitudes of commands [m/s, m/s, rad/s]
    moving: Vector  # (3,) probabilities that a new command is not zero
    robot: LeggedRobot

    def begin(self, now: Now) -> None:
        """Draw a command."""
        command = self.command(now)
        for k in range(COMMANDS):
            command[k] = drawn_between(now.drawn, -self.fastest[k], self.fastest[k])

    def last_action(self, now: Now) -> Vector:
        """The part of the memory."""
        return now.memory[: len(self.robot.pose)]

    def command(self, now: Now) -> Vector:
        """The part of the memory."""
        n = len(self.robot.pose)
        return now.memory[n : n + COMMANDS]

    def of_feet(self, now: Now, k: int) -> Vector:
        """The part of the memory: time in the air (k = 0), whether they touched (1), peaks (2)."""
        feet = len(self.robot.height)
        first = len(self.robot.pose) + COMMANDS + k * feet
        return now.memory[first : first + feet]

    def act(self, now: Now) -> None:
        """Actions are targets beside the pose."""
        for k in range(len(now.control)):
            now.control[k] = self.robot.pose[k] + self.numbers.action_scale * now.action[k]

    def measure(self, now: Now, fleet: FleetArrays, i: int) -> None:
        """Velocities of the unit, feet, contacts and forces of drives."""
        r = self.robot
        write_unit(now, r)
        call_machine(r.find_feet)
        call_machine(r.find_velocities)
        clear(r.touches)
        for c in range(fleet.contacts.counts[i]):
            foot = r.foot_of[fleet.contacts.candidate[i, c]]
            if foot >= 0 and squares(fleet.contacts.force[i, c]) > 0.0:
                r.touches[foot] = 1.0
        for k in range(len(r.force)):
            target = cut(now.control[k], r.control_range[0, k], r.control_range[1, k])
            force = self.numbers.stiffness * (target - joint(now, k))
            r.force[k] = cut(force, r.efforts[0, k], r.efforts[1, k])

    def observe(self, now: Now, seen: Vector) -> None:
        """Velocities of the unit, the way down, joints, the action before and the command."""
        r, w, n = self.robot, self.noise, len(self.robot.pose)
        for k in range(3):
            seen[k] = r.local[0, k] + drawn_between(now.drawn, -w.linvel, w.linvel)
            seen[3 + k] = r.local[1, k] + drawn_between(now.drawn, -w.gyro, w.gyro)
            seen[6 + k] = -r.local[2, k] + drawn_between(now.drawn, -w.gravity, w.gravity)
        for k in range(n):
            seen[9 + k] = joint(now, k) - r.pose[k] + drawn_between(now.drawn, -w.joint_pos, w.joint_pos)
            seen[9 + n + k] = now.v[6 + k] + drawn_between(now.drawn, -w.joint_vel, w.joint_vel)
        copy(self.last_action(now), seen[9 + 2 * n : 9 + 3 * n])
        copy(self.command(now), seen[9 + 3 * n : 9 + 3 * n + COMMANDS])

    def reward(self, now: Now, terms: Vector) -> None:
        """Write all terms, weighted."""
        self.reward_base(now, terms)
        self.reward_joints(now, terms)
        self.reward_feet(now, terms)

    def reward_base(self, now: Now, terms: Vector) -> None:
        """Tracking, and the motion of the trunk."""
        w, r, c, sigma = self.weights, self.robot, self.command(now), self.numbers.sigma
        x, y, turn = c[0] - r.local[0, 0], c[1] - r.local[0, 1], c[2] - r.local[1, 2]
        terms[0] = w.tracking_lin_vel * falling_exponential((x * x + y * y) / sigma)
        terms[1] = w.tracking_ang_vel * falling_exponential(turn * turn / sigma)
        terms[2] = w.lin_vel_z * (r.world[0, 2] * r.world[0, 2])
        terms[3] = w.ang_vel_xy * (r.world[1, 0] * r.world[1, 0] + r.world[1, 1] * r.world[1, 1])
        terms[4] = w.orientation * (r.local[2, 0] * r.local[2, 0] + r.local[2, 1] * r.local[2, 1])
        terms[7] = w.termination if self.ended(now) else 0.0

    def reward_joints(self, now: Now, terms: Vector) -> None:
        """Positions, forces, and the change of actions."""
        w, r, last = self.weights, self.robot, self.last_action(now)
        beyond, off, away, power, change, force = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(len(r.pose)):
            x = joint(now, k)
            beyond += max(r.soft[0, k] - x, 0.0) + max(x - r.soft[1, k], 0.0)
            off += r.pose_weight[k] * ((x - r.pose[k]) * (x - r.pose[k]))
            away += abs(x - r.pose[k])
            power += abs(now.v[6 + k]) * abs(r.force[k])
            force += abs(r.force[k])
            change += (now.action[k] - last[k]) * (now.action[k] - last[k])
        terms[5] = w.dof_pos_limits * beyond
        terms[6] = w.pose * falling_exponential(off)
        terms[8] = 0.0 if self.walks(now) else w.stand_still * away
        terms[9] = w.torques * (sqrt(squares(r.force)) + force)
        terms[10] = w.action_rate * change
        terms[11] = w.energy * power

    def reward_feet(self, now: Now, terms: Vector) -> None:
        """Swings and slip; time in the air and peaks go on."""
        w, r, n, walks = self.weights, self.robot, self.numbers, self.walks(now)
        air, before, peak = self.of_feet(now, 0), self.of_feet(now, 1), self.of_feet(now, 2)
        clearance, height, slip, time = 0.0, 0.0, 0.0, 0.0
        for f in range(len(r.height)):
            lands = air[f] > 0.0 and (r.touches[f] > 0.0 or before[f] > 0.0)
            z = r.placement[f, 2, 3] - r.height[f]
            air[f] += n.dt
            peak[f] = max(peak[f], z)
            square = r.velocity[f, 0] * r.velocity[f, 0] + r.velocity[f, 1] * r.velocity[f, 1]
            clearance += abs(z - n.foot_height) * sqrt(sqrt(square))
            slip += square * r.touches[f]
            if lands:
                off = peak[f] / n.foot_height - 1.0
                height += off * off
                time += air[f] - AIR_TIME
        terms[12] = w.feet_clearance * clearance
        terms[13] = w.feet_height * height if walks else 0.0
        terms[14] = w.feet_slip * slip if walks else 0.0
        terms[15] = w.feet_air_time * time if walks else 0.0

    def walks(self, now: Now) -> bool:
        """Whether the command is to move."""
        return squares(self.command(now)) > STANDS * STANDS

    def total(self, terms: Vector) -> float:
        """Return their sum in the time of a step, not below zero."""
        return max(self.numbers.dt * total(terms), 0.0)

    def tell(self, now: Now, told: Vector) -> None:
        """Tell the command, and how well it is followed."""
        c, r = self.command(now), self.robot
        copy(c, told[:COMMANDS])
        told[3], told[4], told[5] = r.local[0, 0], r.local[0, 1], r.local[1, 2]

    def ended(self, now: Now) -> bool:
        """Whether it lies on its back."""
        return bool(self.robot.local[2, 2] < 0.0)

    def remember(self, now: Now) -> None:
        """Keep the action and contacts, and draw a command now and then."""
        copy(now.action, self.last_action(now))
        touches = self.robot.touches
        air, before, peak = self.of_feet(now, 0), self.of_feet(now, 1), self.of_feet(now, 2)
        for f in range(len(touches)):
            before[f] = touches[f]
            if touches[f] > 0.0:
                air[f], peak[f] = 0.0, 0.0
        if drawn_number(now.drawn) < self.numbers.change:
            command = self.command(now)
            for k in range(COMMANDS):
                new = drawn_between(now.drawn, -self.fastest[k], self.fastest[k])
                moves, changes = drawn_number(now.drawn) < self.moving[k], drawn_number(now.drawn) < 0.5
                if changes:
                    command[k] = new if moves else 0.0


def joint(now: Now, k: int) -> float:
    """Return the coordinate of joint k, behind the free root's."""
    return now.q[7 + k]  # type: ignore[no-any-return]


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
