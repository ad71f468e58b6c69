"""Robots that move freely: Ant and Humanoid, as in version 5 of Gymnasium's environments."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..array_types import IntegerMatrix, Matrix, Vector
from ..checks import Finite, checked
from ..engine.loops.kernels import MachineCall, call_machine
from ..simulation.forces.laws import Drives, drive_force
from ..simulation.smooth_motion import clear, clear_rows, copy
from ..simulation.stage_records import FleetArrays
from .compiled_task import CompiledTask, called
from .contact_forces import add_wrenches_of
from .episode_loop import Now
from .parallel_robots import ParallelRobots
from .snapshot import Links
from .task_numbers import cut, squares, total


class Weights(NamedTuple):
    """Parameters of rewards and ends."""

    forward: float
    control: float
    contact: float
    healthy: float
    low: float  # [m] heights between which a robot is healthy
    high: float
    ends: bool
    dt: float  # [s] of a step of the environment
    step: float  # [s] of the simulation
    first_seen: int


class Felt(NamedTuple):
    """Contact forces of the last step on links."""

    links: IntegerMatrix  # (candidates, 2) see `Forces`
    wrench: Matrix  # (links, 6)
    center: Vector  # (3,) of mass
    find_center: MachineCall


class AntText(NamedTuple):
    """The text of Ant; its memory is the position before the steps."""

    weights: Weights
    felt: Felt
    least: float  # of contact forces
    most: float
    sees_forces: bool

    def begin(self, now: Now) -> None:
        """Store nothing."""

    def act(self, now: Now) -> None:
        """Copy actions to controls."""
        copy(now.action, now.control)
        now.memory[0], now.memory[1] = now.qpos[0], now.qpos[1]

    def measure(self, now: Now, fleet: FleetArrays, i: int) -> None:
        """Compute contact forces, clipped to their range."""
        if fleet.contacts.counts[i] > 0:
            call_machine(self.felt.find_center)
        feel(self.felt, fleet, i, self.weights.step)
        for row in self.felt.wrench:
            for k in range(6):
                row[k] = cut(row[k], self.least, self.most)

    def observe(self, now: Now, seen: Vector) -> None:
        """Write positions, velocities and contact forces."""
        k = write_state(now, self.weights.first_seen, seen)
        if self.sees_forces:
            write_rows(self.felt.wrench, seen, k)

    def healthy(self, now: Now) -> bool:
        """Return whether the height is in its range and the state is finite."""
        square = 0.0 * (squares(now.qpos) + squares(now.qvel))
        return bool(square == 0.0 and self.weights.low <= now.qpos[2] and now.qpos[2] <= self.weights.high)

    def reward(self, now: Now, terms: Vector) -> None:
        """Write the forward reward, the costs of controls and contact forces, and the reward for survival."""
        w, cost = self.weights, 0.0
        for row in self.felt.wrench:
            cost += squares(row)
        terms[0] = w.forward * ((now.qpos[0] - now.memory[0]) / w.dt)
        terms[1] = -w.control * squares(now.action)
        terms[2] = -w.contact * cost
        terms[3] = w.healthy if self.healthy(now) else 0.0

    def total(self, terms: Vector) -> float:
        """Return the sum of the terms."""
        return total(terms)

    def write_info(self, now: Now, info: Vector) -> None:
        """Write the position and the mean velocity."""
        write_place(now, now.qpos[0], now.qpos[1], self.weights.dt, info)

    def ended(self, now: Now) -> bool:
        """Return whether the robot is unhealthy and episodes end then."""
        return self.weights.ends and not self.healthy(now)

    def remember(self, now: Now) -> None:
        """Store nothing."""


class HumanoidText(NamedTuple):
    """The text of Humanoid; its memory is the centre of mass before the steps."""

    weights: Weights
    felt: Felt
    least_cost: float
    most_cost: float
    sees_inertias: bool
    sees_velocities: bool
    sees_actuators: bool
    sees_forces: bool
    drives: Drives
    driven: Vector  # (nv,) joint forces of actuators
    inertia: Matrix  # (links, 10)
    velocity: Matrix  # (links, 6)
    find_links: MachineCall

    def begin(self, now: Now) -> None:
        """Store nothing."""

    def act(self, now: Now) -> None:
        """Copy actions to controls."""
        copy(now.action, now.control)
        call_machine(self.felt.find_center)
        now.memory[0], now.memory[1] = self.felt.center[0], self.felt.center[1]

    def measure(self, now: Now, fleet: FleetArrays, i: int) -> None:
        """Compute contact forces, actuator forces, and inertias and velocities of links."""
        if self.sees_inertias or self.sees_velocities:
            call_machine(self.find_links)
        else:
            call_machine(self.felt.find_center)
        feel(self.felt, fleet, i, self.weights.step)
        if self.sees_actuators:
            clear(self.driven)
            values = self.drives.values
            for k in range(len(self.drives.row)):
                drive = (
                    values[0, k], values[1, k], values[2, k], values[3, k], values[4, k], values[5, k], values[6, k],
                    values[7, k], values[8, k],
                )  # fmt: skip
                if len(fleet.varied.drives) > 0:
                    x = fleet.varied.drives[i]
                    drive = x[0, k], x[1, k], x[2, k], x[3, k], x[4, k], x[5, k], x[6, k], x[7, k], x[8, k]
                row = self.drives.row[k]
                self.driven[row] += drive_force(drive, now.control[k], now.q[self.drives.at[k]], now.v[row])

    def observe(self, now: Now, seen: Vector) -> None:
        """Write positions and velocities, and inertias, velocities and forces of links."""
        k = write_state(now, self.weights.first_seen, seen)
        if self.sees_inertias:
            k = write_rows(self.inertia, seen, k)
        if self.sees_velocities:
            k = write_rows(self.velocity, seen, k)
        if self.sees_actuators:
            for x in self.driven[6:]:
                seen[k] = x
                k += 1
        if self.sees_forces:
            write_rows(self.felt.wrench, seen, k)

    def healthy(self, now: Now) -> bool:
        """Return whether the height is in its range."""
        return bool(self.weights.low < now.qpos[2] and now.qpos[2] < self.weights.high)

    def reward(self, now: Now, terms: Vector) -> None:
        """Write the forward reward, the costs of controls and contact forces, and the reward for survival."""
        w, cost = self.weights, 0.0
        for row in self.felt.wrench:
            cost += squares(row)
        terms[0] = w.forward * ((self.felt.center[0] - now.memory[0]) / w.dt)
        terms[1] = -w.control * squares(now.action)
        terms[2] = -cut(w.contact * cost, self.least_cost, self.most_cost)
        terms[3] = w.healthy if self.healthy(now) else 0.0

    def total(self, terms: Vector) -> float:
        """Return the sum of the terms."""
        return total(terms)

    def write_info(self, now: Now, info: Vector) -> None:
        """Write the position, and the mean velocity of the centre of mass."""
        write_place(now, self.felt.center[0], self.felt.center[1], self.weights.dt, info)

    def ended(self, now: Now) -> bool:
        """Return whether the robot is unhealthy and episodes end then."""
        return self.weights.ends and not self.healthy(now)

    def remember(self, now: Now) -> None:
        """Store nothing."""


def feel(felt: Felt, fleet: FleetArrays, i: int, step: float) -> None:
    """Write the contact forces on links about the centre of mass, torque first."""
    clear_rows(felt.wrench)
    c, contacts = felt.center, fleet.contacts
    if contacts.counts[i] > 0:
        add_wrenches_of(
            contacts.counts[i], contacts.candidate[i], contacts.point[i], contacts.force[i], felt.links, step,
            (c[0], c[1], c[2]), felt.wrench,
        )  # fmt: skip


def write_state(now: Now, first: int, seen: Vector) -> int:
    """Write qpos from `first` on, and qvel; return the count of numbers."""
    k = 0
    for x in now.qpos[first:]:
        seen[k] = x
        k += 1
    for x in now.qvel:
        seen[k] = x
        k += 1
    return k


def write_rows(rows: Matrix, seen: Vector, k: int) -> int:
    """Write all rows from index k on; return the index after them."""
    for row in rows:
        for x in row:
            seen[k] = x
            k += 1
    return k


def write_place(now: Now, x: float, y: float, dt: float, info: Vector) -> None:
    """Write the position of a robot, and the velocity of its point (x, y)."""
    info[0], info[1] = now.qpos[0], now.qpos[1]
    info[2] = sqrt(now.qpos[0] * now.qpos[0] + now.qpos[1] * now.qpos[1])
    info[3], info[4] = (x - now.memory[0]) / dt, (y - now.memory[1]) / dt


@dataclass(frozen=True)
class FloatingTask(CompiledTask):
    """A task of a robot that moves freely.

    The robot is rewarded for velocity along x and for being healthy. Controls and contact forces have costs.
    """

    exclude_current_positions_from_observation: bool = True
    forward_reward_weight: Finite = 1.0
    ctrl_cost_weight: Finite = 0.5
    healthy_reward: Finite = 1.0
    terminate_when_unhealthy: bool = True
    contact_cost_weight: Finite = 5e-4
    healthy_z_range: tuple[float, float] = (0.2, 1.0)
    include_cfrc_ext_in_observation: bool = True

    info: ClassVar[tuple[str, ...]] = ("x_position", "y_position", "distance_from_origin", "x_velocity", "y_velocity")
    places: ClassVar[int] = 3
    terms: ClassVar[tuple[str, ...]] = ("reward_forward", "reward_ctrl", "reward_contact", "reward_survive")

    def seen(self, links: Links) -> int:
        count = len(links.home) + links.robot.nv - 2 * int(self.exclude_current_positions_from_observation)
        return count + 6 * len(links.names) * int(self.include_cfrc_ext_in_observation)

    def memory(self, links: Links) -> int:
        return 2

    def _weights(self, links: Links) -> Weights:
        low, high = self.healthy_z_range
        return Weights(
            float(self.forward_reward_weight), float(self.ctrl_cost_weight), float(self.contact_cost_weight),
            float(self.healthy_reward), float(low), float(high), bool(self.terminate_when_unhealthy),
            self.frame_skip * links.timestep, links.timestep, 2 * int(self.exclude_current_positions_from_observation),
        )  # fmt: skip

    def _felt(self, robots: ParallelRobots, now: Now) -> Felt:
        links, center = robots.links, np.zeros(3)
        function = links.robot.center_of_mass
        if len(now.parameters):
            function = links.robot.parametric(function)
        wrench = np.zeros((len(links.names), 6))
        return Felt(robots.touching_links, wrench, center, called(links, function, now, center))


@checked
@dataclass(frozen=True)
class Ant(FloatingTask):
    """Gymnasium's Ant: four legs walk forward."""

    xml_file: Any = "ant.xml"
    frame_skip: int = 5
    reset_noise_scale: Finite = 0.1
    contact_force_range: tuple[float, float] = (-1.0, 1.0)

    normal_velocities: ClassVar[bool] = True

    def text(self, robots: ParallelRobots, now: Now) -> Any:
        least, most = self.contact_force_range
        felt = self._felt(robots, now)
        return AntText(self._weights(robots.links), felt, float(least), float(most), bool(self.include_cfrc_ext_in_observation))


@checked
@dataclass(frozen=True)
class Humanoid(FloatingTask):
    """Gymnasium's Humanoid: two legs and two arms, walks forward without falling."""

    xml_file: Any = "humanoid.xml"
    frame_skip: int = 5
    reset_noise_scale: Finite = 1e-2
    forward_reward_weight: Finite = 1.25
    ctrl_cost_weight: Finite = 0.1
    contact_cost_weight: Finite = 5e-7
    contact_cost_range: tuple[float, float] = (-float("inf"), 10.0)
    healthy_reward: Finite = 5.0
    healthy_z_range: tuple[float, float] = (1.0, 2.0)
    include_cinert_in_observation: bool = True
    include_cvel_in_observation: bool = True
    include_qfrc_actuator_in_observation: bool = True

    def seen(self, links: Links) -> int:
        of_links = 10 * int(self.include_cinert_in_observation) + 6 * int(self.include_cvel_in_observation)
        of_joints = (links.robot.nv - 6) * int(self.include_qfrc_actuator_in_observation)
        return super().seen(links) + of_links * len(links.names) + of_joints

    def text(self, robots: ParallelRobots, now: Now) -> Any:
        """Return the text of this task.

        Raises NotImplementedError if observations contain inertias or velocities of links and robots have inertial parameters
        of their own.
        """
        links, (least, most) = robots.links, self.contact_cost_range
        count, sees = len(links.names), self.include_cinert_in_observation or self.include_cvel_in_observation
        if sees:
            links.require_own_inertias(len(now.parameters) > 0)
        felt, inertia, velocity = self._felt(robots, now), np.zeros((count, 10)), np.zeros((count, 6))
        find = called(links, links.about_center_of_mass, now, felt.center, inertia, velocity) if sees else NO_CALL
        return HumanoidText(
            self._weights(links), felt, float(least), float(most), bool(self.include_cinert_in_observation),
            bool(self.include_cvel_in_observation), bool(self.include_qfrc_actuator_in_observation),
            bool(self.include_cfrc_ext_in_observation), links.actuators.drives, np.zeros(links.robot.nv), inertia, velocity,
            find,
        )  # fmt: skip


NO_CALL = MachineCall(0, np.zeros(1, np.int64))
