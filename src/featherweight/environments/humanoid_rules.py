"""Rules of joystick locomotion for a humanoid: the rewards of MuJoCo Playground's "G1JoystickFlatTerrain" with a weight there.

    tracking      exp(-|c_xy - v_xy|² / sigma), exp(-(c_turn - w_z)² / sigma)
    torso         world's |w_xy|², distance of its z axis from one that leans forward a little
    joints        |q - pose|², |q - pose| at rest, of knees, and of hips except pitch; beyond soft limits
    feet          exp(-|z - height of the gait|² / 0.01), slip, time in the air at touchdown, force above 500 N

The gait is a clock of 1.25 to 1.5 Hz: the feet swing in turns, to a height given by Bezier curves. Commands change every
10 s; one in ten commands the robot to stand. The episode ends when the torso is upside down, or the feet touch each other.
"""

from __future__ import annotations

from math import cos, pi, sin, sqrt
from typing import NamedTuple

from ..array_types import Integers, Vector
from ..simulation.smooth_motion import copy
from .episode_loop import Now
from .joystick_text import COMMANDS, JoystickText, joint
from .task_numbers import drawn_between, drawn_number, falling_exponential, total

AIR_TIMES = 0.2, 0.5  # [s] range in which time in the air is rewarded
LEAN = 0.073  # x of the torso's z axis
RATES = 1.25, 1.5  # [Hz] of the gait
MOST_FORCE = 500.0  # [N] on a foot
MOVES = 0.1  # [m/s, rad/s]
SIDEWAYS = 0.1  # [m/s] least sideways command for which hips may roll
NARROW = 0.01  # [m²] of the gait's height
PHASE, RATE, STEPS = 0, 1, 2  # places in the memory of rules
REMEMBERED = 3
STANDING = 0.1  # share of commands


class HumanoidWeights(NamedTuple):
    """Weights of the terms of the reward; their order is that of the terms."""

    tracking_lin_vel: float
    tracking_ang_vel: float
    ang_vel_xy: float
    orientation: float
    feet_air_time: float
    feet_slip: float
    feet_phase: float
    stand_still: float
    termination: float
    contact_force: float
    joint_deviation_knee: float
    joint_deviation_hip: float
    dof_pos_limits: float
    pose: float


class HumanoidRules(NamedTuple):
    """Commands, observations, rewards and ends."""

    weights: HumanoidWeights
    fastest: Vector  # (3,) amplitudes of commands [m/s, m/s, rad/s]
    command_steps: int  # steps between changes of the command
    knees: Integers
    rolls: Integers  # of hips
    yaws: Integers

    def begin(self, text: JoystickText, now: Now) -> None:
        """Draw a command and the frequency of the gait."""
        self.draw_command(text, now)
        clock = text.of_rules(now)
        clock[PHASE], clock[STEPS] = 0.0, 0.0
        clock[RATE] = 2.0 * pi * text.numbers.dt * drawn_between(now.drawn, RATES[0], RATES[1])

    def draw_command(self, text: JoystickText, now: Now) -> None:
        """Draw a command; some commands are to stand."""
        command = text.command(now)
        for k in range(COMMANDS):
            command[k] = drawn_between(now.drawn, -self.fastest[k], self.fastest[k])
        if drawn_number(now.drawn) < STANDING:
            for k in range(COMMANDS):
                command[k] = 0.0

    def phase(self, text: JoystickText, now: Now, f: int) -> float:
        """Return the phase of a foot, between -π and π."""
        x = text.of_rules(now)[PHASE] + pi * f
        return x - 2.0 * pi if x > pi else x

    def observe(self, text: JoystickText, now: Now, seen: Vector) -> None:
        """Write velocities of the unit, downward direction, command, joints, last action, and cosine and sine of the gait."""
        n = len(text.robot.pose)
        text.see_unit(now, seen)
        copy(text.command(now), seen[9 : 9 + COMMANDS])
        text.see_joints(now, seen[12 : 12 + 3 * n])
        for f in range(text.robot.feet):
            x = self.phase(text, now, f)
            seen[12 + 3 * n + f], seen[14 + 3 * n + f] = cos(x), sin(x)

    def reward(self, text: JoystickText, now: Now, terms: Vector) -> None:
        """Write all terms, weighted."""
        self.reward_torso(text, now, terms)
        self.reward_joints(text, now, terms)
        self.reward_feet(text, now, terms)

    def reward_torso(self, text: JoystickText, now: Now, terms: Vector) -> None:
        """Write the terms of tracking and of the motion of the torso."""
        w, r, torso = self.weights, text.robot, text.robot.feet
        by_velocity, by_turning = text.track(now)
        turning = r.velocity[torso, 3] * r.velocity[torso, 3] + r.velocity[torso, 4] * r.velocity[torso, 4]
        x, y, z = r.placement[torso, 0, 2] - LEAN, r.placement[torso, 1, 2], r.placement[torso, 2, 2] - 1.0
        terms[0] = w.tracking_lin_vel * by_velocity
        terms[1] = w.tracking_ang_vel * by_turning
        terms[2] = w.ang_vel_xy * turning
        terms[3] = w.orientation * (x * x + y * y + z * z)
        terms[8] = w.termination if self.ended(text, now) else 0.0

    def reward_joints(self, text: JoystickText, now: Now, terms: Vector) -> None:
        """Write the terms of joint positions."""
        w, r, off = self.weights, text.robot, 0.0
        for k in range(len(r.pose)):
            off += (joint(now, k) - r.pose[k]) * (joint(now, k) - r.pose[k])
        knees = hips = 0.0
        for i in range(len(self.knees)):
            knees += self.away(text, now, self.knees[i])
            hips += self.away(text, now, self.yaws[i])
            if not text.command(now)[1] > SIDEWAYS:
                hips += self.away(text, now, self.rolls[i])
        terms[7] = 0.0 if text.walks(now) else w.stand_still * text.off_pose(now)
        terms[10] = w.joint_deviation_knee * knees
        terms[11] = w.joint_deviation_hip * hips
        terms[12] = w.dof_pos_limits * text.beyond_limits(now)
        terms[13] = w.pose * off

    def away(self, text: JoystickText, now: Now, k: int) -> float:
        """Return the distance of a joint from the pose."""
        return abs(joint(now, k) - text.robot.pose[k])

    def reward_feet(self, text: JoystickText, now: Now, terms: Vector) -> None:
        """Write the terms of swings, slip and forces, and advance the time in the air."""
        w, r, n, air = self.weights, text.robot, text.numbers, text.of_feet(now, 0)
        speed = sqrt(r.world[0, 0] * r.world[0, 0] + r.world[0, 1] * r.world[0, 1])
        time = slip = off = over = 0.0
        for f in range(r.feet):
            lands = text.lands(now, f)
            air[f] += n.dt
            if lands:
                time += min(air[f] - AIR_TIMES[0], AIR_TIMES[1] - AIR_TIMES[0])
            slip += speed * r.touches[f]
            lift = r.placement[f, 2, 3] - height_of_gait(self.phase(text, now, f), n.foot_height)
            off += lift * lift
            over += max(abs(r.pressed[f]) - MOST_FORCE, 0.0)
        moves = speed > MOVES or abs(r.world[1, 2]) > MOVES or text.walks(now)
        terms[4] = w.feet_air_time * time
        terms[5] = w.feet_slip * slip
        terms[6] = w.feet_phase * falling_exponential(off / NARROW) if moves else 0.0
        terms[9] = w.contact_force * over

    def total(self, text: JoystickText, terms: Vector) -> float:
        """Return the sum of the terms, times the length of a step."""
        return text.numbers.dt * total(terms)

    def ended(self, text: JoystickText, now: Now) -> bool:
        """Return whether the torso is upside down, or the feet touch each other."""
        r = text.robot
        return bool(r.placement[r.feet, 2, 2] < 0.0 or r.touches[r.feet] > 0.0)

    def go_on(self, text: JoystickText, now: Now) -> None:
        """Advance the clock, and draw a new command when it is due."""
        clock = text.of_rules(now)
        x = clock[PHASE] + clock[RATE]
        clock[PHASE] = x - 2.0 * pi if x > pi else x
        clock[STEPS] += 1.0
        if clock[STEPS] > self.command_steps:
            self.draw_command(text, now)
            clock[STEPS] = 0.0


def height_of_gait(phase: float, height: float) -> float:
    """Return the height [m] of a foot at a phase: it rises in the first half of a cycle (from -π) and falls in the second."""
    x = (phase + pi) / pi
    return height * bezier(x) if x <= 1.0 else height * (1.0 - bezier(x - 1.0))


def bezier(x: float) -> float:
    """Return the cubic Bezier curve from 0 to 1 with zero slope at both ends."""
    return x * x * x + 3.0 * (x * x) * (1.0 - x)
