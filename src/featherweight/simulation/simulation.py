"""Robots that move: time steps, contacts, limits, drives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..model.types import Actuator
from ..robot.constraints.contact import Contact
from ..robot.robot import Robot
from ..robot.trajectory import Recorder, Trajectory
from .arguments import (
    check_count,
    check_duration,
    check_inputs,
    check_pairs,
    check_step,
    check_tolerances,
    given_forces,
    numbers,
    states,
)  # fmt: skip
from .derivatives import StepDerivatives, of_all_robots, step_derivatives
from .forces import ForcesAtJoints
from .scene import ContactSettings, Ground, HeightField, Plane, Sphere, TouchingParts, check_surface
from .stepper import Stepper

if TYPE_CHECKING:
    from ..viewer import Window

Array = np.ndarray[Any, np.dtype[Any]]
Controller = Callable[[float, Array, Array], Any]

STANDARD_FRICTION = 0.8
SHOWN = 3.0  # [m] on each side of an inclined plane's point


class Simulation:
    """The motion of a robot, or of many alike, with contacts.

    The state is `time` [s], `q` (..., nq) and `v` (..., nv), with a leading axis for many robots at once. Quaternions in q must
    have unit length; they are normalized where only digits were rounded. A step of `step` seconds first moves the robot as if
    nothing touched, by one of the integrators "semi-implicit" (Euler; damping and springs of joints are met at the end of the
    step), "rk4" or "midpoint" (implicit; keeps energy). Then impulses at contacts, joint limits and joints with dry friction
    change the velocity, by maximum dissipation (see `impulses`).

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

    Nor is a step taken that leads to what is not finite, or that brings energy for which no force has worked, more than a
    tenth of the kinetic energy (see `energy_guard`): it is too long for the speeds. "semi-implicit" takes velocity products as
    they are at its beginning, which adds some (h w)² of their energy in each step to bodies that tumble at w: where h w comes
    near 0.1 rad, take "rk4" or "midpoint", or a shorter step.

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
        check_step(step, integrator)
        check_surface("the simulation", friction, restitution)
        check_tolerances(tolerance, margin=margin, slop=slop, bounce=bounce, max_penetration=max_penetration)
        spheres, pairs = tuple(spheres), tuple((int(i), int(j)) for i, j in pairs)
        check_pairs(pairs, spheres, ground)
        self.robot, self.step_size, self.integrator = robot, float(step), integrator
        self.forces = ForcesAtJoints(robot, robot.actuators if actuators is None else actuators)
        self.ground = ground
        self._stepper = Stepper(
            robot, self.step_size, integrator, self.forces, joint_passive and self.forces.smooth, max_penetration, threads
        )  # fmt: skip
        limits = joint_limits and bool((np.isfinite(self.forces.lower) | np.isfinite(self.forces.upper)).any())
        dry_friction = joint_friction and bool(self.forces.friction.any())
        if spheres or limits or dry_friction or shapes:
            parts = TouchingParts(spheres, pairs, ground, shapes, friction, restitution, limits, dry_friction)
            bounce = max(bounce, 2.0 * step * math.hypot(*robot.gravity))
            lengths = float(step), float(margin), float(slop), float(bounce), float(tolerance)
            settings = ContactSettings(*lengths, bool(pyramid), in_step=integrator != "semi-implicit")
            self._stepper.contacts = _contact_stage(self._stepper.moving, self.forces, parts, settings, delassus)
        self._windows: list[Window] = []
        self.steps = 0
        self.reset(q, v)

    # the state

    def reset(self, q: Any = None, v: Any = None, time: float = 0.0) -> None:
        """Begin at a configuration q (..., nq), the neutral one unless given, and velocity v (..., nv), zero unless given.

        Raises ValueError for wrong shapes, numbers that are not finite, quaternions that are not of unit length (those of four
        digits or more are normalized), or loops that are open.
        """
        q, v = self._checked(q, v)
        if not math.isfinite(time):
            raise ValueError(f"time must be a finite number of seconds; got {time!r}")
        self._single = q.ndim == 1
        self.time, self.steps = float(time), 0
        self._start = self.time
        self._stepper.reset(*((q[None], v[None]) if self._single else (q, v)))

    def _checked(self, q: Any, v: Any) -> tuple[Array, Array]:
        q, v = states(self.robot, q, v)
        if self._stepper.looped:
            opening = float(self.robot.opening(q).max())  # type: ignore[attr-defined]
            if opening > 1e-6:
                raise ValueError(f"q: loops are open by {opening:.3g}; close it with robot.close(q)")
        return q, v

    @property
    def q(self) -> Array:
        """The configuration, (nq,) or (robots, nq), to be read only; another one may be assigned, as in `reset`."""
        return self._seen(self._stepper.q)

    @q.setter
    def q(self, q: Any) -> None:
        self._put(q, self._stepper.v[0] if self._single else self._stepper.v)

    @property
    def v(self) -> Array:
        """The velocity, (nv,) or (robots, nv), to be read only; another one may be assigned."""
        return self._seen(self._stepper.v)

    @v.setter
    def v(self, v: Any) -> None:
        self._put(self._stepper.q[0] if self._single else self._stepper.q, v)

    def _seen(self, x: Array) -> Array:
        """A state as others see it. Steps make new arrays, so what was read stays as it was."""
        view = x[0] if self._single else x[:]
        view.flags.writeable = False
        return view

    def _put(self, q: Any, v: Any) -> None:
        """Go on from another state of as many robots; time does not begin anew."""
        q, v = self._checked(q, v)
        if q.shape != self.q.shape:
            raise ValueError(f"q and v must be of as many robots as there are: shapes {self.q.shape} and {self.v.shape}")
        self._stepper.q, self._stepper.v = (q[None], v[None]) if self._single else (q, v)

    def energy(self) -> Any:
        """Kinetic, potential and spring energy [J], () or (robots,)."""
        total = self._stepper.energy(self._stepper.q, self._stepper.v)
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
        if self._stepper.contacts is None:
            return np.zeros((0, 3)), np.zeros((0, 3)), []
        state, k = self._stepper.contacts.state, int(self._stepper.contacts.state.counts[robot])
        names = [self._stepper.contacts.names[int(c)] for c in state.contacts.candidate[robot, :k]]
        return state.contacts.point[robot, :k].copy(), state.impulses.force[robot, :k] / self.step_size, names

    @property
    def solver(self) -> dict[str, Any]:
        """The contact solver's work in the last step: sweeps and Newton steps, residual [m/s]; the worst of many robots."""
        if self._stepper.contacts is None:
            return {"sweeps": 0, "newton_steps": 0, "residual": 0.0}
        r = self._stepper.contacts.state.report
        return {
            "sweeps": int(r.sweeps.max()), "newton_steps": int(r.newton_steps.max()), "residual": float(r.residual.max()),
        }  # fmt: skip

    # moving

    def step(self, tau: Any = None, control: Any = None) -> None:
        """Take one step, with joint forces tau (..., nv) and controls (..., nu) of the actuators, both zero unless given.

        tau is cut to the efforts of the joints. Raises SimulationError where the step cannot be taken; the state is then
        the one before it.
        """
        self._stepper.advance(tau, control, self.time)
        self._count(1)

    def derivatives(self, tau: Any = None, control: Any = None) -> StepDerivatives:
        """Jacobians of the step that `step` would take from here, which is not taken; of many robots, with a leading axis.

        A (2 nv, 2 nv) of the state (q, v) after it by that before, B (2 nv, nv) by tau, `B_control` (2 nv, nu) by controls, and
        `doubtful`, what is at an edge where there is none (see `StepDerivatives`). Configurations change along velocities.

        Exact for the equations of the step: what sticks, slides, is open or bounces goes on so, contacts move over the spheres
        and the ground, and nothing is held fixed, but that a step finds the displacement that parts several overlaps to a tenth
        of `slop` only. Raises ValueError and SimulationError as `step` does, and NotImplementedError for contacts that coal
        finds and for joints of which loops determine a part.
        """
        many = step_derivatives(self._stepper, tau, control, self.time)
        return many[0] if self._single else of_all_robots(many)

    def _count(self, steps: int) -> None:
        self.steps += steps
        self.time = self._start + self.steps * self.step_size

    # many steps

    def run(
        self, duration: float, controller: Controller | None = None, *, every: int = 1, tau: Any = None, control: Any = None
    ) -> Trajectory:
        """Steps for `duration` seconds, one state in `every` recorded, the first and the last included.

        `controller(time, q, v)` is called before each step and returns joint forces tau (..., nv), or a pair of tau (or None)
        and controls. q and v are to be read only. Of many robots, the contacts of the first are recorded.

        Raises ValueError for arguments and answers of the controller that make no sense, and SimulationError as `step` does;
        the state is that before the step in question, and errors of the controller leave it so too.
        """
        check_duration(duration, every)
        steps = round(duration / self.step_size)
        recorder = Recorder(self, every)
        done = 0
        while done < steps:
            if controller is not None:
                tau, *controls = given_forces(controller(self.time, self.q, self.v))
                control = controls[0] if controls else control
                self.step(tau, control)
                done += 1
            else:
                done += self._steps(min(every - done % every, steps - done), tau, control)
            recorder.note(done, last=done == steps)
            for window in self._open_windows():
                window.live(self._stepper.q[0], *self.contacts()[:2])
        trajectory = recorder.trajectory()
        for window in self._open_windows() if self._single else ():
            window.play(trajectory, start=False)
        return trajectory

    def view(self, host: str = "127.0.0.1", port: int | None = None) -> Window:
        """A page in the browser that shows the robot (the first of many), at `.url`.

        `run` moves it, and what was run last is in its time line. Only this machine can see it unless `host` says
        otherwise. `port` is as of `Window`. Raises ImportError without viser.
        """
        from ..viewer import Window

        flat = isinstance(self.ground, Plane) and self.ground.normal[2] > 1.0 - 1e-9
        height = float(self.ground.point[2]) if flat else None  # type: ignore[union-attr]
        window = Window(self.robot, host=host, port=port, q=self._stepper.q[0], ground=height)
        if self.ground is not None and not flat:
            window.add_heights(*_heights(self.ground))
        self._windows.append(window)
        return window

    def _open_windows(self) -> list[Window]:
        """The windows that nobody has closed meanwhile."""
        self._windows = [w for w in self._windows if not w.closed]
        return self._windows

    def _steps(self, steps: int, tau: Any, control: Any) -> int:
        """Take at least one step and at most `steps`, under constant forces; how many."""
        taken = 0
        if steps > 1 and control is None and self._single:
            taken = self._stepper.advance_many(steps, tau, self.time)
            self._count(taken)
        if taken == 0:
            self.step(tau, control)
            taken = 1
        return taken

    def rollout(
        self, q: Any, v: Any = None, steps: int | None = None, *, tau: Any = None, control: Any = None, every: int = 1
    ) -> tuple[Array, Array]:
        """Motions of many robots, from q (robots, nq) and v (robots, nv): their states (robots, states, nq) and (…, nv).

        tau (robots or 1, steps, nv) and control (robots or 1, steps, nu) are given for each step; both may be left out, and
        `steps` then says how many there are. One state in `every` is returned, the first included.

        Raises ValueError for arguments that make no sense, before anything moves, and SimulationError as `step` does.
        """
        check_count("every", every, 1)
        q = np.atleast_2d(numbers("q", q))
        q, v = self._checked(q, None if v is None else np.atleast_2d(numbers("v", v)))
        forces, controls = (None if x is None else numbers(n, x) for n, x in (("tau", tau), ("control", control)))
        robots = len(q)
        steps = check_inputs({"tau": (forces, self.robot.nv), "control": (controls, self.forces.nu)}, robots, steps)
        self.reset(q, v)
        kept = 1 + steps // every
        qs, vs = np.empty((robots, kept, self.robot.nq)), np.empty((robots, kept, self.robot.nv))
        qs[:, 0], vs[:, 0] = self._stepper.q, self._stepper.v
        for k in range(steps):
            here = [None if x is None else x[0, k] if len(x) == 1 else x[:, k] for x in (forces, controls)]
            self.step(*here)
            if (k + 1) % every == 0:
                qs[:, (k + 1) // every], vs[:, (k + 1) // every] = self._stepper.q, self._stepper.v
        return qs, vs

    def __repr__(self) -> str:
        many = "" if self._single else f", {len(self._stepper.q)} robots"
        return f"<Simulation of {self.robot.name!r}: t={self.time:g} s, step={self.step_size:g} s, {self.integrator}{many}>"


def _contact_stage(robot: Robot, forces: ForcesAtJoints, parts: TouchingParts, settings: ContactSettings, delassus: Any) -> Any:
    try:
        from .contact.contact_stage import ContactStage
    except ModuleNotFoundError as error:
        if error.name not in ("numba", "scipy"):
            raise
        raise ImportError(
            "contacts, limits and dry friction of joints need Numba: pip install 'featherweight[simulation]' "
            "(or leave them out: joint_limits=False, joint_friction=False)"
        ) from error
    return ContactStage(robot, forces, parts, settings, delassus)


def _heights(ground: Ground) -> tuple[Array, Array, Array]:
    """x (n,), y (m,) and z (n, m) of a ground, to be drawn."""
    if isinstance(ground, HeightField):
        n, m = ground.grid.shape
        return np.linspace(*ground.x, n), np.linspace(*ground.y, m), ground.grid
    x = y = np.linspace(-SHOWN, SHOWN, 2)
    nx, ny, nz = ground.normal
    px, py, pz = ground.point
    return x + px, y + py, pz - (nx * x[:, None] + ny * y[None]) / nz
