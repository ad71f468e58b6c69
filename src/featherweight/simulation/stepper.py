"""The stages of a step for many robots alike, by any integrator, with loops: arrays with a leading axis, run by Python."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..robot.robot import Robot
from .failure import SimulationError
from .forces import ForcesAtJoints
from .integrators import NotConverged, midpoint, runge_kutta
from .step import take_step

Array = np.ndarray[Any, np.dtype[Any]]


class Stepper:
    """Takes robots from one state to the next: q (robots, nq) and v (robots, nv). Its stages are those of `step`.

    `passive` says whether joints have damping and springs; `contacts` is the stage of contacts, and joints with limits or dry
    friction, if there are any; `opened` is how far loops were open before they were closed in the last step.
    """

    q: Array
    v: Array
    free: Array  # the velocity after the step, where nothing touches
    after: Array  # and with the impulses
    ahead: Array | None  # q after the step, from integrators that give it
    displacement: Array | None
    acceleration: Array  # from which changes by impulses are counted

    def __init__(
        self, robot: Robot, h: float, integrator: str, forces: ForcesAtJoints, passive: bool, max_penetration: float,
        threads: int | None,
    ) -> None:  # fmt: skip
        self.robot, self.h, self.integrator, self.forces, self.passive = robot, h, integrator, forces, passive
        self.max_penetration, self.threads = max_penetration, threads
        self.moving = robot  # with the damping and springs that the semi-implicit step meets at its end in its armature
        if passive and integrator == "semi-implicit":
            self.moving = robot.with_armature(forces.implicit_armature(h))
        self.contacts: Any = None
        self.opened = 0.0

    @cached_property
    def looped(self) -> bool:
        """Whether there are loops that can open; couplings cannot."""
        return self.robot.closed and bool(self.robot.loop_rows)  # type: ignore[attr-defined]

    def reset(self, q: Array, v: Array) -> None:
        """Begin at these states."""
        self.q, self.v = q, v
        if self.contacts is not None:
            self.contacts.reset(q)
        self.__dict__.pop("one_robot", None)

    def advance(self, tau: Any, control: Any, time: float) -> None:
        """Take a step. Raises SimulationError where it cannot be taken; the state is then the one before."""
        self.time, self.control = time, control
        self.load = self.forces_on_joints(tau, control)
        taken = take_step(self)
        assert taken, "a stage that fails raises"

    @cached_property
    def one_robot(self) -> Any:
        """The stages as `RobotStages`; None where the simulation is not of the kind that has them."""
        if self.contacts is None or self.robot.closed or self.integrator != "semi-implicit" or len(self.q) > 1:
            return None
        from .robot_stages import robot_stages

        springs = self.forces.springs if self.passive else None
        return robot_stages(self.moving, self.contacts, springs, self.h, self.max_penetration)

    def advance_many(self, steps: int, tau: Any, time: float) -> int:
        """Take steps under constant forces, without Python in between, as far as that can be done; how many."""
        if self.one_robot is None:
            return 0
        from .robot_stages import take_steps

        self.time = time
        one = self.one_robot
        one.q[:], one.v[:], one.tau[:] = self.q, self.v, self.forces_on_joints(tau, None, passive=False)
        taken = int(take_steps(one, steps))
        self.q, self.v = one.q.copy(), one.v.copy()
        return taken

    def energy(self, q: Array, v: Array) -> Array:
        """Kinetic, potential and spring energy (robots,) [J]."""
        total = self.robot.kinetic_energy(q, v) + self.robot.potential_energy(q)
        return np.asarray(total + self.forces.spring_energy(q) if self.passive else total)

    def forces_on_joints(self, tau: Any, control: Any, passive: bool = True) -> Array:
        """Forces of the user, of drives and, in the semi-implicit step, of damping and springs at its end."""
        q, v = self.q, self.v
        total = np.zeros_like(v)
        if tau is not None:
            tau = np.asarray(tau, dtype=np.float64)
            if tau.shape[-1:] != (self.robot.nv,) or tau.ndim > 2 or (tau.ndim == 2 and len(tau) != len(v)):
                raise ValueError(f"tau must have shape ({self.robot.nv},) or (robots, {self.robot.nv}); got {tau.shape}")
            self._require_finite(tau, "joint force tau")
            total = total + self.forces.limited(tau)
        if control is not None and self.integrator == "semi-implicit":
            total = total + self._driven(q, v, control)
        if passive and self.passive and self.integrator == "semi-implicit":
            total = total + self.forces.of_springs(q, v, self.h)
        return total

    def _driven(self, q: Array, v: Array, control: Any) -> Array:
        u, nu = np.asarray(control, dtype=np.float64), self.forces.nu
        if u.shape[-1:] != (nu,) or u.ndim > 2 or (u.ndim == 2 and len(u) != len(v)):
            raise ValueError(f"control must have shape ({nu},) or (robots, {nu}), one for each actuator; got {u.shape}")
        self._require_finite(u, "control")
        return self.forces.limited(self.forces.of_drives(q, v, u))

    # the stages of `step`

    def move_freely(self) -> None:
        """Semi-implicit Euler leaves q to be moved by the velocity that contacts leave; others give `ahead`, the q after."""
        self.ahead = None
        self.displacement = None
        try:
            with np.errstate(all="ignore"):  # what is not finite is told by the next stage, with its place
                self._integrate()
        except NotConverged as error:
            raise SimulationError(f"{error}; take a shorter step", self.time) from None
        except ValueError as error:
            if not self.looped:
                raise
            raise SimulationError(str(error), self.time) from None  # a loop that cannot be closed
        self.after = self.free

    def is_finite(self) -> bool:
        self._require_finite(self.after, "velocity" if self.after is self.free else "velocity after contact")
        return True

    def detect(self) -> bool:
        if self.contacts is not None:
            self.contacts.detect(self.q, self.threads)
            self.contacts.require_shallow(self.max_penetration, self.time)
        return True

    def is_touched(self) -> bool:
        if self.contacts is None:
            return False
        self.map = self.forces.map(self.q)
        self.near = self.contacts.near(self.free, self.map)
        return bool((self.near | (self.contacts.state.counts > 0)).any())

    def resolve(self) -> bool:
        self.contacts.resolve(self.q, self.free, self.map, self.near, self.threads)
        self.contacts.require_converged(self.time)
        if self.ahead is not None:  # what impulses change is counted from the start of the step
            self.acceleration = self.moving.forward_dynamics(self.q, self.v, self.load)
        return True

    def overlaps(self) -> bool:
        return bool(self.contacts.overlap.any())

    def part(self) -> None:
        impulses = self.contacts.state.impulses
        pushed = self._pushed_acceleration(impulses.push, impulses.joint_push)
        self.displacement = self.contacts.displacement(self.acceleration, pushed)

    def apply_impulses(self) -> None:
        impulses = self.contacts.state.impulses
        changed = self._pushed_acceleration(impulses.wrench, impulses.joint)
        if self.ahead is None:
            self.after = self.robot._free_velocity(self.v, changed, self.h)
        else:
            self.after = self.free + self.h * (changed - self.acceleration)

    def forget_impulses(self) -> None:
        if self.contacts is not None:
            self.contacts.forget(np.arange(len(self.q)))

    def move(self) -> None:
        if self.ahead is None:
            tangent, velocity = self._carried(self.after, self.displacement)
            self.q, self.v = self._moved(tangent), velocity
            return
        if self.after is not self.free or self.displacement is not None:
            moved = self.robot.difference(self.q, self.ahead) + self.h * (self.after - self.free)
            self.ahead = self._moved(moved if self.displacement is None else moved + self.displacement)
        if self.looped:
            raw = self.robot.tangent_step(self.q, self.robot.difference(self.q, self.ahead))  # type: ignore[attr-defined]
            self.opened = float(np.abs(self.robot.residual(raw)).max())  # type: ignore[attr-defined]
        self.q, self.v = self.ahead, self.after

    # what they are made of

    def _integrate(self) -> None:
        """`free`, the velocity after a step in which nothing touches, and `ahead`."""
        q, v, h = self.q, self.v, self.h
        if self.integrator == "semi-implicit":
            self.acceleration = self.moving.forward_dynamics(q, v, self.load, threads=self.threads)
            self.free = self.robot._free_velocity(v, self.acceleration, h)
        elif self.integrator == "rk4":
            self.ahead, self.free = runge_kutta(self.robot, q, v, h, self._acceleration_at)
        else:
            self.ahead, self.free = midpoint(self.robot, q, v, h, self._acceleration_at, self.energy, self._power_at)

    def _forces_at(self, q: Array, v: Array) -> Array:
        """Within a step, where drives, damping and springs follow the state."""
        total = self.load
        if self.control is not None:
            total = total + self._driven(q, v, self.control)
        return total + self.forces.of_springs(q, v) if self.passive else total

    def _acceleration_at(self, q: Array, v: Array) -> Array:
        acceleration: Array = self.robot.forward_dynamics(q, v, self._forces_at(q, v), threads=self.threads)
        return acceleration

    def _power_at(self, q: Array, v: Array) -> Array:
        """Of forces other than gravity and springs."""
        force = self._forces_at(q, v)
        if self.passive:
            force = force - self.forces.of_springs(q, np.zeros_like(v))
        return np.asarray((force * v).sum(axis=-1))

    def _pushed_acceleration(self, wrench: Array, impulse: Array) -> Array:
        """The acceleration with impulses on bodies and at joints spread over the step."""
        forces = self.contacts.external_forces(wrench)
        tau = self.contacts.joint_forces(self.load, impulse, self.map)
        acceleration: Array = self.moving.forward_dynamics(self.q, self.v, tau, external_forces=forces, threads=self.threads)
        return acceleration

    def _carried(self, u: Array, displacement: Array | None) -> tuple[Array, Array]:
        """The tangent that a velocity u in the axes of the start and a displacement move along, and u in those of the end."""
        result: tuple[Array, Array] = self.robot._carry(
            u, np.zeros(self.robot.nv) if displacement is None else displacement, self.h
        )
        return result

    def _moved(self, tangent: Array) -> Array:
        """q exp(tangent), with loops closed."""
        if not self.robot.closed:
            return self.robot.integrate(self.q, tangent)
        raw: Array = self.robot.tangent_step(self.q, tangent)  # type: ignore[attr-defined]
        if not self.looped:
            return raw
        self.opened = float(np.abs(self.robot.residual(raw)).max())  # type: ignore[attr-defined]
        try:
            closed: Array = self.robot.close(raw)  # type: ignore[attr-defined]
        except ValueError as error:
            raise SimulationError(str(error), self.time) from None
        return closed

    def _require_finite(self, x: Array, what: str) -> None:
        if np.isfinite(x).all():
            return
        bad = np.argwhere(~np.isfinite(np.atleast_2d(x)))
        robot, place = (int(k) for k in bad[0])
        name = f"number {place}"
        for j in self.robot.joints:
            if what != "control" and j.v_slice.start <= place < j.v_slice.stop:
                name = f"joint {j.name!r}"
        raise SimulationError(f"the {what} at {name} is {np.atleast_2d(x)[robot, place]}", self.time, robot, len(self.v))
