"""Robots that move: time steps, contacts, limits, drives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..model.types import Actuator
from ..robot.constraints.contact import Contact
from ..robot.robot import Robot
from ..robot.trajectory import Recorder, Trajectory
from .forces import JointForces
from .scene import Ground, HeightField, Plane, Sphere, check_surface
from .stepper import Stepper

if TYPE_CHECKING:
    from ..viewer import Window

Array = np.ndarray[Any, np.dtype[Any]]
Controller = Callable[[float, Array, Array], Any]

INTEGRATORS = ("semi-implicit", "rk4", "midpoint")
STANDARD_FRICTION = 0.8
SHOWN = 3.0  # [m] on each side of an inclined plane's point


class Simulation:
    """The motion of a robot, or of many alike, with contacts.

    The state is `time` [s], `q` (..., nq) and `v` (..., nv), with a leading axis for many robots at once. A step of `step`
    seconds first moves the robot as if nothing touched, by one of the integrators "semi-implicit" (Euler; damping and
    springs of joints are met at the end of the step), "rk4" or "midpoint" (implicit; keeps energy). Then impulses at
    contacts, joint limits and joints with dry friction change the velocity, by maximum dissipation (see `impulses`).

    `spheres` of the robot (points are spheres without radius) touch the `ground`, a `Plane` or `HeightField`, and `pairs` of
    them (by their numbers) touch each other; with `shapes`, the collision shapes of the robot's file do all that (by coal, an
    extra; pairs that overlap at first are left out). `friction` and `restitution` are those of surfaces that have none of
    their own; `pyramid` takes friction pyramids for cones. `actuators` are the robot's unless given; their controls are an
    argument of `step`. Damping, springs, dry friction, limits and efforts of joints are the robot's; `joint_limits`,
    `joint_friction` and `joint_passive` (damping and springs) leave them out. Loops are closed after each step; `opened` is
    what was left of their constraints before.

    `delassus` is the algorithm of that name for the matrix that contacts see, or a function of contacts and q (robots, nq).
    `margin` [m] is the gap from which on contacts are looked at, `slop` [m] an overlap that is left alone (wider ones are
    pushed apart, without velocity), `bounce` [m/s] an approach below which nothing bounces, `tolerance` the residual
    that the solver aims at, as a part of the greatest velocity; a step with more than 10⁵ times that left is not taken.

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
        for name, value in (("margin", margin), ("slop", slop), ("bounce", bounce), ("max_penetration", max_penetration)):
            if not value >= 0.0:
                raise ValueError(f"{name} must be zero or more; got {value!r}")
        if not 0.0 < tolerance < 1.0:
            raise ValueError(f"tolerance must be between 0 and 1; got {tolerance!r}")
        self.robot, self.step_size, self.integrator = robot, float(step), integrator
        self.forces = JointForces(robot, robot.actuators if actuators is None else tuple(actuators))
        self.ground = ground
        self._stepper = Stepper(
            robot, self.step_size, integrator, self.forces, joint_passive and self.forces.smooth, max_penetration, threads
        )  # fmt: skip
        made, pairs = tuple(spheres), tuple((int(i), int(j)) for i, j in pairs)
        _check_pairs(pairs, made)
        if made and ground is None and not pairs:
            raise ValueError("the spheres have nothing to touch: give ground=, or pairs= of them")
        limited = joint_limits and bool((np.isfinite(self.forces.lower) | np.isfinite(self.forces.upper)).any())
        rubbing = joint_friction and bool(self.forces.friction.any())
        if made or limited or rubbing or shapes:
            bounce = max(bounce, 2.0 * step * math.hypot(*robot.gravity))
            settings = (step, margin, slop, bounce, tolerance, pyramid)
            arguments = (made, pairs, ground, settings, friction, restitution, limited, rubbing, delassus)
            self._stepper.touching = _touching(self._stepper.moving, self.forces, shapes, *arguments)
        self._windows: list[Window] = []
        self.steps = 0
        self.reset(q, v)

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
        if q.ndim == v.ndim == 2 and len(q) != len(v):
            raise ValueError(f"q and v must be of as many robots; got {len(q)} and {len(v)}")
        if q.ndim != v.ndim or q.shape[:-1] != v.shape[:-1]:
            q, v = (
                np.array(np.broadcast_to(x, (*np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), x.shape[-1]))) for x in (q, v)
            )
        if self._stepper.looped:
            left = float(np.abs(self.robot.residual(q)).max())  # type: ignore[attr-defined]
            if left > 1e-6:
                raise ValueError(f"q: loops are open by {left:.3g}; close it with robot.close(q)")
        self._single = q.ndim == 1
        self._q, self._v = (q[None], v[None]) if self._single else (q, v)
        self.time, self.steps = float(time), 0
        self._start = self.time
        if self._stepper.touching is not None:
            self._stepper.touching.reset(self._q)

    @property
    def q(self) -> Array:
        """The configuration, (nq,) or (robots, nq)."""
        return np.asarray(self._q[0]) if self._single else self._q

    @property
    def v(self) -> Array:
        """The velocity, (nv,) or (robots, nv)."""
        return np.asarray(self._v[0]) if self._single else self._v

    def energy(self) -> Any:
        """Kinetic, potential and spring energy [J], () or (robots,)."""
        total = self._stepper.energy(self._q, self._v)
        return float(total[0]) if self._single else total

    @property
    def opened(self) -> float:
        """How far loops were open after the last step, before they were closed: the greatest residual of their constraints."""
        return self._stepper.opened

    @property
    def left_out(self) -> tuple[str, ...]:
        """Joints whose springs or limits are not simulated: they follow others and have no coordinate of their own."""
        return tuple(self.forces.left_out)

    def contacts(self, robot: int = 0) -> tuple[Array, Array, list[str]]:
        """Of the last step, for one robot: points (k, 3) [m] and forces (k, 3) [N] in the world, on the first of two bodies,
        and what touches."""
        t = self._stepper.touching
        if t is None or not t.count[robot]:
            return np.zeros((0, 3)), np.zeros((0, 3)), []
        k = int(t.count[robot])
        names = [t.names[int(c)] for c in t.found.candidate[robot, :k]]
        return t.found.point[robot, :k].copy(), t.force[robot, :k] / self.step_size, names

    @property
    def solver(self) -> dict[str, Any]:
        """The contact solver's work in the last step: sweeps and Newton steps, residual [m/s]; the worst of many robots."""
        t = self._stepper.touching
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
        self._q, self._v = self._stepper.advance(self._q, self._v, tau, control, self.time)
        self._count(1)

    def _count(self, steps: int) -> None:
        self.steps += steps
        self.time = self._start + self.steps * self.step_size

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
            for window in self._windows:
                window.live(self._q[0], *self.contacts()[:2])
        made = recorder.trajectory()
        for window in self._windows if self._single else ():
            window.play(made, start=False)
        return made

    def view(self, host: str = "127.0.0.1", port: int = 8080) -> Window:
        """A page in the browser that shows the robot (the first of many), at `.url`.

        `run` moves it, and what was run last is in its time line. Only this machine can see it unless `host` says
        otherwise. Raises ImportError without viser.
        """
        from ..viewer import Window

        flat = isinstance(self.ground, Plane) and self.ground.normal[2] > 1.0 - 1e-9
        height = float(self.ground.point[2]) if flat else None  # type: ignore[union-attr]
        window = Window(self.robot, host=host, port=port, q=self._q[0], ground=height)
        if self.ground is not None and not flat:
            window.add_heights(*_heights(self.ground))
        self._windows.append(window)
        return window

    def _steps(self, steps: int, tau: Any, control: Any) -> int:
        """Take at least one step and at most `steps`, under constant forces; how many."""
        taken = 0
        if steps > 1 and control is None and self._single and self._functions is not None:
            from .march import marched

            load = self._stepper.load(self._q, self._v, tau, None, self.time, passive=False)
            taken = marched(self, self._functions, steps, load[0])
            self._count(taken)
        if taken == 0:
            self.step(tau, control)
            taken = 1
        return taken

    @cached_property
    def _functions(self) -> Any:
        """What `march` calls, if this simulation is of the kind that it takes."""
        t, robot = self._stepper.touching, self._stepper.moving
        if t is None or robot.closed or self.integrator != "semi-implicit" or t.shapes is not None:
            return None
        from .march import Functions

        dynamics, of = robot.forward_dynamics, t.inertia
        needed = [dynamics, dynamics.variant("external_forces"), *([t._placements, t._velocities] if t.bodies else [None] * 2)]
        needed += [robot._integrate, robot._free_velocity, robot._carry, of.of_touching, of.of_all]
        needed += [of.of_jacobian if t.bodies else None, robot.inverse_mass_matrix]
        if of.by_sets or any(f is not None and f.execution != "traced" for f in needed):
            return None
        addresses: list[Any] = [0 if f is None else f.address for f in needed]
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
        if every < 1:
            raise ValueError(f"every must be at least 1; got {every}")
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


def _touching(
    robot: Robot, forces: JointForces, shapes: bool, spheres: Any, pairs: Any, ground: Ground | None, settings: Any, *more: Any
) -> Any:
    try:
        from .contact.contact_space import Settings
        from .contact.touching import Touching
    except ModuleNotFoundError as error:
        if error.name not in ("numba", "scipy"):
            raise
        raise ImportError(
            "contacts, limits and dry friction of joints need Numba: pip install 'featherweight[simulation]' "
            "(or leave them out: joint_limits=False, joint_friction=False)"
        ) from error
    touching_shapes = None
    if shapes:
        from .contact.shape_contacts import ShapeContacts

        touching_shapes = ShapeContacts(robot, ground)
        spheres = (*spheres, *touching_shapes.points(ground))
    return Touching(robot, forces, spheres, pairs, ground, Settings(*settings), *more, touching_shapes)  # type: ignore[call-arg]


def _heights(ground: Ground) -> tuple[Array, Array, Array]:
    """x (n,), y (m,) and z (n, m) of a ground, to be drawn."""
    if isinstance(ground, HeightField):
        n, m = ground.grid.shape
        return np.linspace(*ground.x, n), np.linspace(*ground.y, m), ground.grid
    x = y = np.linspace(-SHOWN, SHOWN, 2)
    nx, ny, nz = ground.normal
    px, py, pz = ground.point
    return x + px, y + py, pz - (nx * x[:, None] + ny * y[None]) / nz
