"""One step: smooth motion, then the impulses of contacts, limits and dry friction."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..robot.robot import Robot
from .failure import SimulationError
from .forces import JointForces
from .integrators import NotConverged, midpoint, runge_kutta

Array = np.ndarray[Any, np.dtype[Any]]

MOST_PUSHED = 0.1  # [m, rad] of any coordinate, in a step that parts bodies that overlap: levers may be tiny


class Stepper:
    """Takes robots from one state to the next, all of them alike: q (robots, nq) and v (robots, nv).

    `passive` says whether joints have damping and springs; `touching` is what may touch, and joints with limits or dry
    friction; `opened` is how far loops were open before they were closed in the last step.
    """

    def __init__(
        self, robot: Robot, h: float, integrator: str, forces: JointForces, passive: bool, max_penetration: float,
        threads: int | None,
    ) -> None:  # fmt: skip
        self.robot, self.h, self.integrator, self.forces, self.passive = robot, h, integrator, forces, passive
        self.max_penetration, self.threads = max_penetration, threads
        self.moving = robot  # with the damping and springs that the semi-implicit step meets at its end in its armature
        if passive and integrator == "semi-implicit":
            self.moving = robot.with_armature(forces.implicit_armature(h))
        self.touching: Any = None
        self.opened = 0.0

    @cached_property
    def looped(self) -> bool:
        """Whether there are loops that can open; couplings cannot."""
        return self.robot.closed and bool(self.robot.loop_rows)  # type: ignore[attr-defined]

    def advance(self, q: Array, v: Array, tau: Any, control: Any, time: float) -> tuple[Array, Array]:
        """The state after a step. Raises SimulationError where it cannot be taken."""
        load = self.load(q, v, tau, control, time)
        try:
            with np.errstate(all="ignore"):  # what is not finite is told below, with its place
                q1, v1 = self._smooth(q, v, load, control, time)
        except NotConverged as error:
            raise SimulationError(f"{error}; take a shorter step", time) from None
        except ValueError as error:
            if not self.looped:
                raise
            raise SimulationError(str(error), time) from None  # a loop that cannot be closed
        self._require_finite(v1, "velocity", v, time)
        push = None
        if self.touching is not None:
            q1, v1, push = self._touched(q, v, q1, v1, load, time)
            self._require_finite(v1, "velocity after contact", v, time)
        if q1 is None:
            nv = self.robot.nv
            carried = self.robot._carry(v1, np.zeros(nv) if push is None else push, self.h)
            q1, v1 = self._moved(q, carried[:, :nv], time), np.ascontiguousarray(carried[:, nv:])
        elif self.looped:
            raw = self.robot.tangent_step(q, self.robot.difference(q, q1))  # type: ignore[attr-defined]
            self.opened = float(np.abs(self.robot.residual(raw)).max())  # type: ignore[attr-defined]
        return q1, v1

    def energy(self, q: Array, v: Array) -> Array:
        """Kinetic, potential and spring energy (robots,) [J]."""
        total = self.robot.kinetic_energy(q, v) + self.robot.potential_energy(q)
        return np.asarray(total + self.forces.spring_energy(q) if self.passive else total)

    def load(self, q: Array, v: Array, tau: Any, control: Any, time: float, passive: bool = True) -> Array:
        """Forces of the user, of drives and, in the semi-implicit step, of damping and springs at its end."""
        total = np.zeros_like(v)
        if tau is not None:
            tau = np.asarray(tau, dtype=np.float64)
            if tau.shape[-1:] != (self.robot.nv,) or tau.ndim > 2 or (tau.ndim == 2 and len(tau) != len(v)):
                raise ValueError(f"tau must have shape ({self.robot.nv},) or (robots, {self.robot.nv}); got {tau.shape}")
            self._require_finite(tau, "joint force tau", v, time)
            total = total + self.forces.limited(tau)
        if control is not None and self.integrator == "semi-implicit":
            total = total + self._driven(q, v, control, time)
        if passive and self.passive and self.integrator == "semi-implicit":
            total = total + self.forces.of_springs(q, v, self.h)
        return total

    def _driven(self, q: Array, v: Array, control: Any, time: float) -> Array:
        u, nu = np.asarray(control, dtype=np.float64), self.forces.nu
        if u.shape[-1:] != (nu,) or u.ndim > 2 or (u.ndim == 2 and len(u) != len(v)):
            raise ValueError(f"control must have shape ({nu},) or (robots, {nu}), one for each actuator; got {u.shape}")
        self._require_finite(u, "control", v, time)
        return self.forces.limited(self.forces.of_drives(q, v, u))

    def _smooth(self, q: Array, v: Array, load: Array, control: Any, time: float) -> tuple[Array | None, Array]:
        """The step without contacts; semi-implicit Euler leaves q to be moved by the velocity that contacts leave."""
        h = self.h
        if self.integrator == "semi-implicit":
            return None, self.robot._free_velocity(v, self.moving.forward_dynamics(q, v, load, threads=self.threads), h)

        def forces(x: Array, w: Array) -> Array:
            total = load
            if control is not None:
                total = total + self._driven(x, w, control, time)
            return total + self.forces.of_springs(x, w) if self.passive else total

        def acceleration(x: Array, w: Array) -> Array:
            made: Array = self.robot.forward_dynamics(x, w, forces(x, w), threads=self.threads)
            return made

        if self.integrator == "rk4":
            return runge_kutta(self.robot, q, v, h, acceleration)

        def power(x: Array, w: Array) -> Array:
            force = forces(x, w)
            if self.passive:  # springs are in the energy
                force = force - self.forces.of_springs(x, np.zeros_like(w))
            return np.asarray((force * w).sum(axis=-1))

        return midpoint(self.robot, q, v, h, acceleration, self.energy, power)

    def _touched(
        self, q: Array, v: Array, q1: Array | None, v1: Array, load: Array, time: float
    ) -> tuple[Array | None, Array, Array | None]:
        """The step with the impulses of contacts and joint rows, and a displacement that parts bodies that overlap."""
        t, h, robot = self.touching, self.h, self.moving
        t.find(q, self.threads)
        t.require_shallow(self.max_penetration, time)
        S = self.forces.map(q)
        if not t.resolve(q, v1, S, time, self.threads):
            return q1, v1, None
        pushed = bool(t.pushed.any())
        base = robot.forward_dynamics(q, v, load) if q1 is not None or pushed else np.zeros_like(v)

        def accelerations(wrench: Array, impulse: Array) -> Array:
            forces, tau = t.external_forces(wrench, h), load + t.joint_forces(impulse, S, h)
            made: Array = robot.forward_dynamics(q, v, tau, external_forces=forces, threads=self.threads)
            return made

        changed = accelerations(t.wrench, t.joint_impulse)
        after = self.robot._free_velocity(v, changed, h) if q1 is None else v1 + h * (changed - base)
        push = None
        if pushed:
            push = np.where(t.pushed[:, None], h * (accelerations(t.push, t.joint_push) - base), 0.0)
            push *= np.minimum(1.0, MOST_PUSHED / np.maximum(np.abs(push).max(axis=1, keepdims=True), 1e-300))
        if q1 is not None:
            moved = self.robot.difference(q, q1) + h * (after - v1)
            q1 = self._moved(q, moved if push is None else moved + push, time)
        return q1, after, push

    def _moved(self, q: Array, v: Array, time: float) -> Array:
        """q exp(v), with loops closed."""
        if not self.robot.closed:
            return self.robot.integrate(q, v)
        raw: Array = self.robot.tangent_step(q, v)  # type: ignore[attr-defined]
        if not self.looped:
            return raw
        self.opened = float(np.abs(self.robot.residual(raw)).max())  # type: ignore[attr-defined]
        try:
            closed: Array = self.robot.close(raw)  # type: ignore[attr-defined]
        except ValueError as error:
            raise SimulationError(str(error), time) from None
        return closed

    def _require_finite(self, x: Array, what: str, v: Array, time: float) -> None:
        if np.isfinite(x).all():
            return
        bad = np.argwhere(~np.isfinite(np.atleast_2d(x)))
        robot, column = (int(k) for k in bad[0])
        name = f"number {column}"
        for j in self.robot.joints:
            if what != "control" and j.v_slice.start <= column < j.v_slice.stop:
                name = f"joint {j.name!r}"
        raise SimulationError(f"the {what} at {name} is {np.atleast_2d(x)[robot, column]}", time, robot, len(v))
