"""Robots at one instant, by the quantities that MuJoCo's environments are made of."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..model.description import Description
from ..robot.robot import Robot
from .qpos_qvel import MujocoOrder

Array = np.ndarray[Any, np.dtype[Any]]


class Forces(NamedTuple):
    """What acted in the last step: up to k contacts of each robot, without force where there are fewer, and actuators."""

    link: Array  # (robots, k) the link's place among `Links.names`
    point: Array  # (robots, k, 3) [m] in the world
    force: Array  # (robots, k, 3) [N] on the link, in the world
    actuation: Array  # (robots, nv) at joints


class Links:
    """The links of a file, also those fixed to others, in its order: what MuJoCo calls bodies, less the world."""

    def __init__(self, description: Description, robot: Robot) -> None:
        self.names = [frame.name for frame in robot.frames]
        inertia = {body.name: body.inertia for body in description.bodies}
        own = [inertia[name] for name in self.names]
        self.mass = np.array([i.mass for i in own])
        self.center = np.array([i.center for i in own])
        xx, xy, xz, yy, yz, zz = np.array([i.rotational for i in own]).T
        self.rotational = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=-1).reshape(-1, 3, 3)
        self.placement, self.velocity = robot.frame_placement(self.names), robot.frame_velocity(self.names)
        self.robot, self.order = robot, MujocoOrder(robot)
        home = robot.configurations.get("qpos0", robot.neutral())
        self.home = self.order.out(home, np.zeros(robot.nv))[0]  # qpos (nq,)


class Snapshot:
    """q (robots, nq), v (robots, nv), and forces, if tasks ask for them; what follows of these is found when asked for.

    Spatial vectors are MuJoCo's: (angular, linear) in the world's axes, about each robot's centre of mass.
    """

    def __init__(self, links: Links, q: Array, v: Array, forces: Forces | None = None) -> None:
        self.links, self.q, self.v, self._forces = links, q, v, forces

    @property
    def forces(self) -> Forces:
        """Those of the last step. Raises ValueError where they were not asked for."""
        if self._forces is None:
            raise ValueError(
                "no forces are known here; a task that sees them has asks_for_forces = True"
            )
        return self._forces

    @cached_property
    def _state(self) -> tuple[Array, Array]:
        return self.links.order.out(self.q, self.v)

    @property
    def qpos(self) -> Array:
        """(robots, nq) in MuJoCo's order."""
        return self._state[0]

    @property
    def qvel(self) -> Array:
        """(robots, nv) in MuJoCo's order and frames."""
        return self._state[1]

    @cached_property
    def center_of_mass(self) -> Array:
        """(robots, 3)."""
        return np.asarray(self.links.robot.center_of_mass(self.q))

    @cached_property
    def _placement(self) -> Array:
        return np.asarray(self.links.placement(self.q))

    @cached_property
    def cinert(self) -> Array:
        """Inertias (robots, links, 10): rotational (xx, yy, zz, xy, xz, yz), mass times the way to the link's centre, mass."""
        m, R = self.links.mass, self._placement[..., :3, :3]
        d = np.einsum("rlij,lj->rli", R, self.links.center) + self._placement[..., :3, 3] - self.center_of_mass[:, None]
        inertia = R @ self.links.rotational @ np.swapaxes(R, -1, -2)
        inertia += m[:, None, None] * ((d * d).sum(axis=-1)[..., None, None] * np.eye(3) - d[..., :, None] * d[..., None, :])
        rotational = inertia[..., [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        mass = np.broadcast_to(m[:, None], (*d.shape[:-1], 1))
        return np.concatenate([rotational, m[:, None] * d, mass], axis=-1)

    @cached_property
    def cvel(self) -> Array:
        """Velocities (robots, links, 6)."""
        velocity = np.asarray(self.links.velocity(self.q, self.v))
        linear, angular = velocity[..., :3], velocity[..., 3:]
        arm = self.center_of_mass[:, None] - self._placement[..., :3, 3]
        return np.concatenate([angular, linear + np.cross(angular, arm)], axis=-1)

    @cached_property
    def cfrc_ext(self) -> Array:
        """Contact forces (robots, links, 6)."""
        f = self.forces
        torque = np.cross(f.point - self.center_of_mass[:, None], f.force)
        total = np.zeros((len(self.q), len(self.links.names), 6))
        np.add.at(total, (np.arange(len(self.q))[:, None], f.link), np.concatenate([torque, f.force], axis=-1))
        return total

    @property
    def qfrc_actuator(self) -> Array:
        """Joint forces (robots, nv) of actuators."""
        return self.forces.actuation
