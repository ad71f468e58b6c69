"""Rules of joystick locomotion for a quadruped: the table of rewards of MuJoCo Playground's "Go1JoystickFlatTerrain".

    tracking      exp(-|c_xy - v_xy|² / sigma), exp(-(c_turn - w_z)² / sigma)
    base          world's v_z², |w_xy|² there, |u_xy|²
    joints        exp(-weighted |q - pose|²), |q - pose| at rest, beyond soft limits, |tau|, |v tau|, change of actions
    feet          slip, clearance and peak height of swings, time in the air at touchdown

Commands change at random times, on average every 5 s. Each component then changes with probability 1/2, to a new value or to
zero.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from ..array_types import Vector
from ..simulation.smooth_motion import copy
from .episode_loop import Now
from .joystick_text import COMMANDS, JoystickText, joint
from .task_numbers import drawn_between, drawn_number, falling_exponential, squares, total

AIR_TIME = 0.1  # [s] least time in the air that is rewarded


class QuadrupedWeights(NamedTuple):
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


class QuadrupedRules(NamedTuple):
    """Commands, observations, rewards and ends."""

    weights: QuadrupedWeights
    fastest: Vector  # (3,) amplitudes of commands [m/s, m/s, rad/s]
    moving: Vector  # (3,) probabilities that a new command is not zero
    change: float  # probability that a command changes in a step
    pose_weight: Vector  # (n,)

    def begin(self, text: JoystickText, now: Now) -> None:
        """Draw a command."""
        command = text.command(now)
        for k in range(COMMANDS):
            command[k] = drawn_between(now.drawn, -self.fastest[k], self.fastest[k])

    def observe(self, text: JoystickText, now: Now, seen: Vector) -> None:
        """Write velocities of the unit, the downward direction, joints, the last action and the command."""
        n = len(text.robot.pose)
        text.see_unit(now, seen)
        text.see_joints(now, seen[9 : 9 + 3 * n])
        copy(text.command(now), seen[9 + 3 * n : 9 + 3 * n + COMMANDS])

    def reward(self, text: JoystickText, now: Now, terms: Vector) -> None:
        """Write all terms, weighted."""
        self.reward_base(text, now, terms)
        self.reward_joints(text, now, terms)
        self.reward_feet(text, now, terms)

    def reward_base(self, text: JoystickText, now: Now, terms: Vector) -> None:
        """Write the terms of tracking and of the motion of the trunk."""
        w, r = self.weights, text.robot
        by_velocity, by_turning = text.track(now)
        terms[0] = w.tracking_lin_vel * by_velocity
        terms[1] = w.tracking_ang_vel * by_turning
        terms[2] = w.lin_vel_z * (r.world[0, 2] * r.world[0, 2])
        terms[3] = w.ang_vel_xy * (r.world[1, 0] * r.world[1, 0] + r.world[1, 1] * r.world[1, 1])
        terms[4] = w.orientation * (r.local[2, 0] * r.local[2, 0] + r.local[2, 1] * r.local[2, 1])
        terms[7] = w.termination if self.ended(text, now) else 0.0

    def reward_joints(self, text: JoystickText, now: Now, terms: Vector) -> None:
        """Write the terms of joint positions, forces and the change of actions."""
        w, r, last = self.weights, text.robot, text.last_action(now)
        off, power, change, force = 0.0, 0.0, 0.0, 0.0
        for k in range(len(r.pose)):
            x = joint(now, k)
            off += self.pose_weight[k] * ((x - r.pose[k]) * (x - r.pose[k]))
            power += abs(now.v[6 + k]) * abs(r.force[k])
            force += abs(r.force[k])
            change += (now.action[k] - last[k]) * (now.action[k] - last[k])
        terms[5] = w.dof_pos_limits * text.beyond_limits(now)
        terms[6] = w.pose * falling_exponential(off)
        terms[8] = 0.0 if text.walks(now) else w.stand_still * text.off_pose(now)
        terms[9] = w.torques * (sqrt(squares(r.force)) + force)
        terms[10] = w.action_rate * change
        terms[11] = w.energy * power

    def reward_feet(self, text: JoystickText, now: Now, terms: Vector) -> None:
        """Write the terms of swings and slip, and advance time in the air and peak heights."""
        w, r, n, walks = self.weights, text.robot, text.numbers, text.walks(now)
        air, peak = text.of_feet(now, 0), text.of_feet(now, 2)
        clearance, height, slip, time = 0.0, 0.0, 0.0, 0.0
        for f in range(r.feet):
            lands = text.lands(now, f)
            z = r.placement[f, 2, 3]
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

    def total(self, text: JoystickText, terms: Vector) -> float:
        """Return the sum of the terms, times the length of a step, but at least zero."""
        return max(text.numbers.dt * total(terms), 0.0)

    def ended(self, text: JoystickText, now: Now) -> bool:
        """Return whether the robot lies on its back."""
        return bool(text.robot.local[2, 2] < 0.0)

    def go_on(self, text: JoystickText, now: Now) -> None:
        """Draw a new command at random times."""
        if drawn_number(now.drawn) < self.change:
            command = text.command(now)
            for k in range(COMMANDS):
                new = drawn_between(now.drawn, -self.fastest[k], self.fastest[k])
                moves, changes = drawn_number(now.drawn) < self.moving[k], drawn_number(now.drawn) < 0.5
                if changes:
                    command[k] = new if moves else 0.0
