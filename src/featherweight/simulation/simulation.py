"""Robots that move: time steps, contacts, limits, drives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..contacts import Contact
from ..model.types import Actuator
from ..robot import Robot
from .failure import SimulationError
from .forces import JointForces
from .integrators import NotConverged, midpoint, runge_kutta
from .scene import Ground, Sphere, check_surface
from .trajectory import Recorder, Trajectory

Array = np.ndarray[Any, np.dtype[Any]]
Controller = Callable[[float, Array, Array], Any]

INTEGRATORS = ("semi-implicit", "rk4", "midpoint")
STANDARD_FRICTION = 0.8


class Simulation:
    """The motion of a robot, or of many alike, with contacts.

    The state is `time` [s], `q` (..., nq) and `v` (..., nv), with a leading axis for many robots at once. A step of `step`
    seconds first moves the robot as if nothing touched, by one of the integrators "semi-implicit" (Euler; damping and
    springs of joints are met at the end of the step), "rk4" or "midpoint" (implicit; keeps energy). Then impulses at
    contacts, joint limits and joints with dry friction change the velocity, by maximum dissipation (see `impulses`).

    `spheres` of the robot (points are spheres without radius) touch the `ground`, a `Plane` or `HeightField`, and `pairs` of
    them (by their numbers) touch each other; with `shapes`, the collision shapes of the robot's file do all that (by coal, an
    extra; pairs that overlap at first are left out). `friction` and `restitution` are those of surfaces that have none of
    their own; `pyramid` takes friction pyramids for cones. `actuators` are the robot's unless given; their controls are an argument
    of `step`. Damping, springs, dry friction, limits and efforts of joints are the robot's; `joint_limits`,
    `joint_friction` and `joint_passive` (damping and springs) leave them out. Loops are closed after each step; `opened`
    is what was left of their constraints before.

    `delassus` is the algorithm of that name for the matrix that contacts see, or a function of contacts and q (robots, nq).
    `margin` [m] is the gap from which on contacts are looked at, `slop` [m] an overlap that is left alone (wider ones are
    pushed apart, without velocity), `bounce` [m/s] an approach below which nothing bounces, `tolerance` the solver's
    residual as a part of the greatest velocity.

    Raises ValueError for arguments that make no sense and SimulationError for a step that cannot be taken.
    """

    def __init__(
        self,
        robot: Robot,
        step: float = 1e-3,
        integrator: str = "semi-implicit",
        *,
        q: Any = None,
        v: Any = None,
        spheres: Iterable[Sphere] = (),
        pairs: Iterable[tuple[int, int]] = (),
        ground: Ground | None = None,
        shapes: bool = False,
        friction: float = STANDARD_FRICTION,
        restitution: float = 0.0,
        pyramid: bool = False,
        actuators: Sequence[Actuator] | None = None,
        joint_limits: bool = True,
        joint_friction: bool = True,
        joint_passive: bool = True,
        delassus: str | Callable[[list[Contact], Array], Array] = "auto",
        margin: float = 1e-3,
        slop: float = 1e-6,
        bounce: float = 1e-2,
        tolerance: float = 1e-8,
        max_penetration: float = 0.1,
        threads: int | None = None,
    ) -> None:
        if not (math.isfinite(step) and step > 0.0):
            raise ValueError(f"step must be a positive number of seconds; got {step!r}")
        if integrator not in INTEGRATORS:
            raise ValueError(f"integrator must be one of {', '.join(INTEGRATORS)}; got {integrator!r}")
        check_surface("the simulation", friction, restitution)
        self.robot, self.step_size, self.integrator = robot, float(step), integrator
        self.forces = JointForces(robot, robot.actuators if actuators is None else tuple(actuators))
        self.ground, self.max_penetration, self.threads = ground, max_penetration, threads
        self._passive = joint_passive and self.forces.smooth
        self._moving = robot
        if self._passive and integrator == "semi-implicit":
            self._moving = robot.with_armature(self.forces.implicit_armature(step))
        self._touching = None
        made, pairs = tuple(spheres), tuple((int(i), int(j)) for i, j in pairs)
        _check_pairs(pairs, made)
        limited = joint_limits and bool((np.isfinite(self.forces.lower) | np.isfinite(self.forces.upper)).any())
        rubbing = joint_friction and bool(self.forces.friction.any())
        if (made and (ground is not None or pairs)) or limited or rubbing or shapes:
            self._touching = self._made_touching(
                made, pairs, shapes, (step, margin, slop, max(bounce, 2.0 * step * _length(robot.gravity)), tolerance, pyramid),
                (friction, restitution), (limited, rubbing), delassus,
            )  # fmt: skip
        self.steps = 0
        self.opened = 0.0
        self._effort_clipped = self.forces.limited
        self.reset(q, v)

    def _made_touching(
        self, spheres: Any, pairs: Any, shapes: bool, settings: Any, surface: Any, joints: Any, algorithm: str
    ) -> Any:
        try:
            from .contact_space import Settings
            from .touching import Touching
        except ModuleNotFoundError as error:
            if error.name != "numba":
                raise
            raise ImportError(
                "contacts, limits and dry friction of joints need Numba: pip install 'featherweight[simulation]' "
                "(or leave them out: joint_limits=False, joint_friction=False)"
            ) from error
        step, margin, slop, bounce, tolerance, pyramid = settings
        made = Settings(step, margin, slop, bounce, tolerance, pyramid)
        touching_shapes = None
        if shapes:
            from .shapes import ShapeContacts

            touching_shapes = ShapeContacts(self.robot, self.ground)
            spheres = (*spheres, *touching_shapes.points(self.ground))
        arguments = (spheres, pairs, self.ground, made, *surface, *joints, algorithm, touching_shapes)
        return Touching(self._moving, self.forces, *arguments)

    # the state

    def reset(self, q: Any = None, v: Any = None, time: float = 0.0) -> None:
        """Begin at a configuration q (..., nq), the neutral one unless given, and velocity v (..., nv), zero unless given.

        Raises ValueError for wrong shapes, numbers that are not finite, or loops that are open.
        """
        nq, nv = self.robot.nq, self.robot.nv
        q = np.array(self.robot.neutral() if q is None else q, dtype=np.float64)
        v = np.zeros((*q.shape[:-1], nv)) if v is None else np.array(v, dtype=np.float64)
        for name, x, n in (("q", q, nq), ("v", v, nv)):
            if x.ndim == 0 or x.ndim > 2 or x.shape[-1] != n:
                raise ValueError(f"{name} must have shape ({n},) or (robots, {n}); got {x.shape}")
            if not np.isfinite(x).all():
                raise ValueError(f"{name} must be finite numbers")
        if q.ndim != v.ndim or q.shape[:-1] != v.shape[:-1]:
            q, v = (
                np.array(np.broadcast_to(x, (*np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), x.shape[-1]))) for x in (q, v)
            )
        if self.robot.closed:
            left = float(np.abs(self.robot.residual(q)).max(initial=0.0))  # type: ignore[attr-defined]
            if left > 1e-6:
                raise ValueError(f"q: loops are open by {left:.3g}; close it with robot.close(q)")
        self._single = q.ndim == 1
        self._q, self._v = (q[None], v[None]) if self._single else (q, v)
        self.time, self.steps, self.opened = float(time), 0, 0.0
        self._start = self.time
        if self._touching is not None:
            self._touching.reset(self._q)

    @property
    def q(self) -> Array:
        """The configuration, (nq,) or (robots, nq)."""
        return self._q[0] if self._single else self._q

    @property
    def v(self) -> Array:
        """The velocity, (nv,) or (robots, nv)."""
        return self._v[0] if self._single else self._v

    def energy(self) -> Any:
        """Kinetic, potential and spring energy [J], () or (robots,)."""
        total = self._energy(self._q, self._v)
        return float(total[0]) if self._single else total

    def _energy(self, q: Array, v: Array) -> Array:
        total = self.robot.kinetic_energy(q, v) + self.robot.potential_energy(q)
        return np.asarray(total + self.forces.spring_energy(q) if self._passive else total)

    def contacts(self, robot: int = 0) -> tuple[Array, Array, list[str]]:
        """Of the last step, for one robot: points (k, 3) [m] and forces (k, 3) [N] in the world, on the first of two bodies,
        and what touches."""
        t = self._touching
        if t is None or not t.count[robot]:
            return np.zeros((0, 3)), np.zeros((0, 3)), []
        k = int(t.count[robot])
        names = [t.names[int(c)] for c in t.found.candidate[robot, :k]]
        return t.found.point[robot, :k].copy(), t.force[robot, :k] / self.step_size, names

    @property
    def solver(self) -> dict[str, Any]:
        """The contact solver's work in the last step: sweeps and Newton steps, residual [m/s]; the worst of many robots."""
        t = self._touching
        if t is None:
            return {"sweeps": 0, "newton_steps": 0, "residual": 0.0}
        return {
            "sweeps": int(t.sweeps.max()), "newton_steps": int(t.newton_steps.max()), "residual": float(t.residual.max()),
        }  # fmt: skip

    # moving

    def step(self, tau: Any = None, control: Any = None) -> None:
        """Take one step, with joint forces tau (..., nv) and controls (..., nu) of the actuators, both zero unless given.

        tau is cut to the efforts of the joints. Raises SimulationError where the step cannot be taken; the state is then
        the one before it.
        """
        q, v, h = self._q, self._v, self.step_size
        load = self._load(q, v, tau, control)
        try:
            q1, v1 = self._smooth(q, v, load, control)
        except NotConverged as error:
            raise SimulationError(f"{error}; take a shorter step", self.time) from None
        self._require_finite(v1, "velocity", q, v)
        push = None
        if self._touching is not None:
            q1, v1, push = self._touched(q, v, q1, v1, load)
            self._require_finite(v1, "velocity after contact", q, v)
        if q1 is None:
            q1 = self._moved(q, h * v1 if push is None else h * v1 + push)
        self._q, self._v = q1, v1
        self._count(1)

    def _count(self, steps: int) -> None:
        self.steps += steps
        self.time = self._start + self.steps * self.step_size

    def _load(self, q: Array, v: Array, tau: Any, control: Any, passive: bool = True) -> Array:
        """Forces of the user, of drives and, in the semi-implicit step, of damping and springs at its end."""
        total = np.zeros_like(v)
        if tau is not None:
            tau = np.asarray(tau, dtype=np.float64)
            if tau.shape[-1:] != (self.robot.nv,) or tau.ndim > 2 or (tau.ndim == 2 and len(tau) != len(v)):
                raise ValueError(f"tau must have shape ({self.robot.nv},) or (robots, {self.robot.nv}); got {tau.shape}")
            self._require_finite(tau, "joint force tau", q, v)
            total = total + self._effort_clipped(tau)
        if control is not None and self.integrator == "semi-implicit":
            total = total + self._driven(q, v, control)
        if passive and self._passive and self.integrator == "semi-implicit":
            total = total + self.forces.of_springs(q, v, self.step_size)
        return total

    def _driven(self, q: Array, v: Array, control: Any) -> Array:
        u, nu = np.asarray(control, dtype=np.float64), self.forces.nu
        if u.shape[-1:] != (nu,) or u.ndim > 2:
            raise ValueError(f"control must have shape ({nu},) or (robots, {nu}), one for each actuator; got {u.shape}")
        self._require_finite(u, "control", q, v)
        return self.forces.limited(self.forces.of_drives(q, v, u))

    def _smooth(self, q: Array, v: Array, load: Array, control: Any) -> tuple[Array | None, Array]:
        """The step without contacts; semi-implicit Euler leaves q to be moved by the velocity that contacts leave."""
        h = self.step_size
        if self.integrator == "semi-implicit":
            return None, v + h * self._moving.forward_dynamics(q, v, load, threads=self.threads)

        def forces(x: Array, w: Array) -> Array:
            total = load
            if control is not None:
                total = total + self._driven(x, w, control)
            return total + self.forces.of_springs(x, w) if self._passive else total

        def acceleration(x: Array, w: Array) -> Array:
            made: Array = self.robot.forward_dynamics(x, w, forces(x, w), threads=self.threads)
            return made

        if self.integrator == "rk4":
            return runge_kutta(self.robot, q, v, h, acceleration)

        def power(x: Array, w: Array) -> Array:
            force = forces(x, w)
            if self._passive:  # springs are in the energy
                force = force - self.forces.of_springs(x, np.zeros_like(w))
            return np.asarray((force * w).sum(axis=-1))

        return midpoint(self.robot, q, v, h, acceleration, self._energy, power)

    def _touched(
        self, q: Array, v: Array, q1: Array | None, v1: Array, load: Array
    ) -> tuple[Array | None, Array, Array | None]:
        """The step with the impulses of contacts and joint rows, and a displacement that parts bodies that overlap."""
        t, h, robot = self._touching, self.step_size, self._moving
        assert t is not None
        t.find(q, self.threads)
        t.require_shallow(self.max_penetration, self.time)
        if not t.resolve(q, v1, self.time, self.threads):
            return q1, v1, None
        pushed = bool(t.pushed.any())
        base = robot.forward_dynamics(q, v, load) if q1 is not None or pushed else None

        def effect(wrench: Array, impulse: Array) -> Array:
            forces, tau = t.external_forces(wrench, h), load + t.joint_forces(impulse, q, h)
            made: Array = h * robot.forward_dynamics(q, v, tau, external_forces=forces, threads=self.threads)
            return made

        change = effect(t.wrench, t.joint_impulse)
        after = v + change if q1 is None else v1 + change - h * base
        push = None
        if pushed:
            here = t.pushed[:, None]
            push = np.where(here, effect(t.push, t.joint_push) - h * base, 0.0)
        if q1 is not None:
            moved = self.robot.difference(q, q1) + h * (after - v1)
            q1 = self._moved(q, moved if push is None else moved + push)
        return q1, after, push

    def _moved(self, q: Array, v: Array) -> Array:
        """q exp(v), with loops closed."""
        if not self.robot.closed:
            return self.robot.integrate(q, v)
        raw = self.robot.tangent_step(q, v)  # type: ignore[attr-defined]
        self.opened = float(np.abs(self.robot.residual(raw)).max(initial=0.0))  # type: ignore[attr-defined]
        try:
            closed: Array = self.robot.close(raw)  # type: ignore[attr-defined]
        except ValueError as error:
            raise SimulationError(str(error), self.time) from None
        return closed

    def _require_finite(self, x: Array, what: str, q: Array, v: Array) -> None:
        if math.isfinite(x.sum()):
            return
        bad = np.argwhere(~np.isfinite(np.atleast_2d(x)))
        if not len(bad):  # finite numbers whose sum is not
            return
        robot, column = (int(k) for k in bad[0])
        name = f"number {column}"
        for j in self.robot.joints:
            if what != "control" and j.v_slice.start <= column < j.v_slice.stop:
                name = f"joint {j.name!r}"
        raise SimulationError(f"the {what} at {name} is {np.atleast_2d(x)[robot, column]}", self.time, robot, len(v))

    # many steps

    def run(
        self, duration: float, controller: Controller | None = None, *, every: int = 1, tau: Any = None, control: Any = None
    ) -> Trajectory:
        """Steps for `duration` seconds, one state in `every` recorded, the first and the last included.

        `controller(time, q, v)` is called before each step and returns joint forces tau (..., nv), or a pair of tau (or None)
        and controls. Of many robots, the contacts of the first are recorded.
        """
        steps = round(duration / self.step_size)
        recorder = Recorder(self, every)
        done = 0
        while done < steps:
            if controller is not None:
                answer = controller(self.time, self.q, self.v)
                tau, control = answer if isinstance(answer, tuple) else (answer, control)
                self.step(tau, control)
                done += 1
            else:
                done += self._steps(min(every - done % every, steps - done), tau, control)
            recorder.note(done, last=done == steps)
        return recorder.trajectory()

    def _steps(self, steps: int, tau: Any, control: Any) -> int:
        """Take at least one step and at most `steps`, under constant forces; how many."""
        taken = 0
        if steps > 1 and control is None and self._single and self._functions is not None:
            from .march import marched

            load = self._load(self._q, self._v, tau, None, passive=False)
            taken = marched(self, steps, load[0])
            self._count(taken)
        if taken == 0:
            self.step(tau, control)
            taken = 1
        return taken

    @cached_property
    def _functions(self) -> Any:
        """What `march` calls, if this simulation is of the kind that it takes."""
        from .march import Functions

        t, robot = self._touching, self._moving
        if t is None or t.inertia.by_sets or robot.closed or self.integrator != "semi-implicit" or t.shapes is not None:
            return None
        dynamics, of = robot.forward_dynamics, t.inertia
        needed = [dynamics, dynamics.variant("external_forces"), *([t._placements, t._velocities] if t.bodies else [None] * 2)]
        needed += [robot._integrate, of.of_touching, of.of_all]
        addresses = [0 if f is None else f.address for f in needed]
        return None if None in addresses else Functions(*addresses)

    def rollout(
        self, q: Any, v: Any = None, steps: int | None = None, *, tau: Any = None, control: Any = None, every: int = 1
    ) -> tuple[Array, Array]:
        """Motions of many robots, from q (robots, nq) and v (robots, nv): their states (robots, states, nq) and (…, nv).

        tau (robots or 1, steps, nv) and control (robots or 1, steps, nu) are given for each step; both may be left out, and
        `steps` then says how many there are. One state in `every` is returned, the first included.
        """
        given = [np.asarray(x, dtype=np.float64) for x in (tau, control) if x is not None]
        for x in given:
            if x.ndim != 3 or (steps is not None and x.shape[1] != steps):
                raise ValueError(
                    f"tau and control of a rollout must have shape (robots or 1, {steps or 'steps'}, n); got {x.shape}"
                )
            steps = x.shape[1]
        if steps is None:
            raise ValueError("a rollout needs steps=, or tau or control for each step")
        self.reset(np.atleast_2d(np.asarray(q, dtype=np.float64)), None if v is None else np.atleast_2d(np.asarray(v)))
        kept = 1 + steps // every
        qs, vs = np.empty((len(self._q), kept, self.robot.nq)), np.empty((len(self._q), kept, self.robot.nv))
        qs[:, 0], vs[:, 0] = self._q, self._v
        forces, controls = (None if x is None else np.asarray(x, dtype=np.float64) for x in (tau, control))
        for k in range(steps):
            here = [None if x is None else x[0, k] if len(x) == 1 else x[:, k] for x in (forces, controls)]
            self.step(*here)
            if (k + 1) % every == 0:
                qs[:, (k + 1) // every], vs[:, (k + 1) // every] = self._q, self._v
        return qs, vs

    def __repr__(self) -> str:
        many = "" if self._single else f", {len(self._q)} robots"
        return f"<Simulation of {self.robot.name!r}: t={self.time:g} s, step={self.step_size:g} s, {self.integrator}{many}>"


def _check_pairs(pairs: Sequence[tuple[int, int]], spheres: Sequence[Sphere]) -> None:
    for i, j in pairs:
        if not (0 <= i < len(spheres) and 0 <= j < len(spheres)) or i == j:
            raise ValueError(f"pairs must name two of the {len(spheres)} spheres by number; got {(i, j)}")
        if spheres[i].radius + spheres[j].radius == 0.0:
            raise ValueError(f"pair {(i, j)}: two points never touch; one needs a radius")


def _length(x: Sequence[float]) -> float:
    return math.sqrt(sum(c * c for c in x))
