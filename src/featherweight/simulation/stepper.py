"""The stages of a step for many robots alike, by any integrator, with loops: arrays with a leading axis, run by Python."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..contact.contact_solver import MOST_PUSHED
from ..contact.joint_rows import BEYOND, comes_back
from ..robot.robot import Robot
from .arguments import numbers
from .contact_arrays import ContactArrays
from .energy_guard import FARTHEST, SLOW, excess_energy, mean_work
from .failure import SimulationError
from .forces import ForcesAtJoints, ordered_sum
from .implicit_drives import (
    MOST_ROUNDS,
    ROUNDS_OF_ALL,
    DriveWork,
    WithArmature,
    begin_drives,
    drive_work,
    has_implicit_drives,
    judge_drives,
    write_driven,
)  # fmt: skip
from .integrators import AtMiddle, NotConverged, middle_armature, midpoint, put_straight, runge_kutta
from .step import take_step

Array = np.ndarray[Any, np.dtype[Any]]


def farthest(x: Array, displacement: Array | None) -> Array:
    """How far any joint of each robot moves."""
    most: Array = np.abs(x).max(axis=-1)
    return most if displacement is None else np.maximum(most, np.abs(displacement).max(axis=-1))


class Stepper:
    """Takes robots from one state to the next: q (robots, nq) and v (robots, nv). Its stages are those of `step`.

    `passive` says whether joints have damping and springs; `contacts` is the stage of contacts, and joints with limits or dry
    friction, if there are any; `opened` is how far loops were open before they were closed in the last step.
    """

    q: Array
    v: Array
    free: Array  # the velocity after the step, where nothing touches
    after: Array  # and with the impulses
    smooth: Array | None  # q after the step, where nothing touches, from integrators that give it
    struck: Array  # the change of velocity by impacts at the beginning of the step, from those integrators
    corrected: Array  # (robots,) bool, whose energy the midpoint rule corrects
    ahead: Array  # q after the step
    end: Array  # and the velocity
    displacement: Array | None
    touched: Array  # (robots,) bool, where contacts, limits or dry friction act
    acceleration: Array  # from which changes by impulses are counted
    external: Array | None = None  # forces of the user on bodies (robots, bodies, 6)
    armature: Array | None = None  # (robots, k) with what meets drives, where the step takes them at its end

    def __init__(
        self, robot: Robot, h: float, integrator: str, forces: ForcesAtJoints, passive: bool, max_penetration: float,
        threads: int | None,
    ) -> None:  # fmt: skip
        self.robot, self.h, self.integrator, self.forces, self.passive = robot, h, integrator, forces, passive
        self.max_penetration, self.threads = max_penetration, threads
        self.moving = robot  # with the stiffness and damping that a step meets implicitly in its armature
        self.middle_armature = np.zeros(0)
        if passive and integrator == "semi-implicit":
            self.moving = robot.with_armature(forces.implicit_armature(h))
        elif integrator != "semi-implicit" and (more := middle_armature(forces, h, passive)).any():
            self.middle_armature = more
            first = {j.name: more[j.v_slice.start] for j in robot.model.joints if more[j.v_slice.start] > 0.0}
            own = {j.name: j.armature for j in robot.model.joints}
            self.moving = robot.with_armature({name: own[name] + float(x) for name, x in first.items()})
        self.has_drives = integrator == "semi-implicit" and has_implicit_drives(forces, h)
        self.driven = self.has_drives and robot.forward_dynamics.execution == "traced"  # whether a step takes them at its end
        self.driving: list[DriveWork] | None = None  # what they did in the last step, where they are taken so
        self._evaluate = WithArmature(self.moving)
        self.contacts: Any = None
        self.opened = self._opening = 0.0
        self.least_energy = robot.mass * float(np.dot(robot.gravity, robot.gravity)) * h * h

    @cached_property
    def looped(self) -> bool:
        """Whether there are loops that can open; couplings cannot."""
        return self.robot.closed and bool(self.robot.loop_rows)  # type: ignore[attr-defined]

    def reset(self, q: Array, v: Array) -> None:
        """Begin at these states."""
        self.q, self.v = q, v
        if self.contacts is not None:
            self.contacts.reset(q)

    def put(self, q: Array, v: Array) -> None:
        """Go on from other states."""
        self.q, self.v = q, v

    def reset_some(self, which: Array, q: Array, v: Array) -> None:
        """Robots numbered `which` begin anew, at states (some, ..)."""
        self.q, self.v = self.q.copy(), self.v.copy()
        self.q[which], self.v[which] = q, v
        if self.contacts is not None:
            self.contacts.begin_anew(which)

    @property
    def failed(self) -> Array:
        """No robots: what fails is raised."""
        return np.zeros(len(self.q), bool)

    # what came of the last step

    def contact_arrays(self) -> ContactArrays:
        """Of all robots."""
        if self.contacts is None:
            robots = len(self.q)
            none = np.zeros((robots, 0, 3))
            return ContactArrays(np.zeros(robots, np.int64), np.zeros((robots, 0), np.int64), none, none)
        state = self.contacts.state
        return ContactArrays(state.counts, state.contacts.candidate, state.contacts.point, state.impulses.force)

    def contact_wrenches(self) -> Array:
        """Impulses (robots, nbodies, 6) of contacts on bodies."""
        if self.contacts is None:
            return np.zeros((len(self.q), len(self.robot.bodies), 6))
        forces: Array = self.h * self.contacts.external_forces(self.contacts.state.impulses.wrench)
        return forces

    def row_impulses(self) -> Array:
        """Impulses (robots, n) of limits and dry friction."""
        impulses = np.zeros((len(self.q), len(self.robot.model.tree.parent)))
        if self.contacts is not None:
            impulses[:, self.contacts.joint_dofs] = self.contacts.state.impulses.joint
        return impulses

    def solver_work(self) -> tuple[float, float, float]:
        """Residual [m/s], sweeps and Newton steps, the most of all robots."""
        if self.contacts is None:
            return 0.0, 0.0, 0.0
        r = self.contacts.state.report
        return r.residual.max(), r.sweeps.max(), r.newton_steps.max()

    # steps

    def advance(self, tau: Any, control: Any, external: Any, time: float) -> None:
        """Take a step. Raises SimulationError where it cannot be taken; the state is then the one before.

        `external` (robots, bodies, 6) are forces on bodies, or None.
        """
        self.time, self.tau, self.control, self.external = time, tau, control, external
        self.given = self.forces_on_joints(tau, control)
        self.load = self._with_springs(self.given)
        taken = take_step(self)
        assert taken, "a stage that fails raises"

    def energies(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Kinetic energy, and that of gravity and springs, both (robots,) [J]."""
        potential = self.robot.potential_energy(q)
        return self.robot.kinetic_energy(q, v), potential + self.forces.spring_energy(q) if self.passive else potential

    def energy(self, q: Array, v: Array) -> Array:
        """Both (robots,) [J]."""
        kinetic, potential = self.energies(q, v)
        return np.asarray(kinetic + potential)

    def forces_on_joints(self, tau: Any, control: Any) -> Array:
        """Forces of the user and, in the semi-implicit step, of drives without stiffness and damping."""
        q, v = self.q, self.v
        total = np.zeros_like(v)
        if tau is not None:
            tau = numbers("tau", tau)
            if tau.shape[-1:] != (self.robot.nv,) or tau.ndim > 2 or (tau.ndim == 2 and len(tau) != len(v)):
                raise ValueError(f"tau must have shape ({self.robot.nv},) or (robots, {self.robot.nv}); got {tau.shape}")
            self._require_finite(tau, "joint force tau")
            total = total + self.forces.limited(tau)
        if control is not None and self.integrator == "semi-implicit" and not self.driven:
            total = total + self._driven(q, v, control)
        return total

    def _with_springs(self, given: Array) -> Array:
        """The load of the semi-implicit step: with damping and springs, the latter at its end."""
        if not self.passive or self.integrator != "semi-implicit":
            return given
        return given + self.forces.of_springs(self.q, self.v, self.h)

    def check_inputs(self, tau: Any, control: Any, time: float) -> None:
        """Raise ValueError or SimulationError for what `advance` would."""
        self.time = time
        self.forces_on_joints(tau, None)
        if control is not None:
            self._driven(self.q, self.v, control)

    def _driven(self, q: Array, v: Array, control: Any) -> Array:
        """Forces of drives at a state (robots, nv)."""
        return self.forces.limited(self.forces.of_drives(q, v, self._controls(control)))

    def _controls(self, control: Any) -> Array:
        u, nu, v = numbers("control", control), self.forces.nu, self.v
        if u.shape[-1:] != (nu,) or u.ndim > 2 or (u.ndim == 2 and len(u) != len(v)):
            raise ValueError(f"control must have shape ({nu},) or (robots, {nu}), one for each actuator; got {u.shape}")
        self._require_finite(u, "control")
        return np.asarray(u)

    # the stages of `step`

    def move_freely(self) -> None:
        """Semi-implicit Euler leaves q to be moved by the velocity that contacts leave; others give `smooth`, the q after."""
        self.smooth = None
        self.displacement = None
        try:
            with np.errstate(all="ignore"):  # what is not finite is told by the next stage, with its place
                self._integrate()
        except NotConverged as error:
            raise SimulationError(f"{error}; take a shorter step", self.time, error.robot, len(self.v)) from None
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
            self.contacts.detect(self.q, self.threads, self.free)
            self.contacts.require_shallow(self.max_penetration, self.time)
        return True

    def is_touched(self) -> bool:
        if self.contacts is None:
            return False
        self.map = self.forces.map(self.q)
        self._find_near()
        return bool(self.touched.any())

    def _find_near(self) -> None:
        """Which robots joints with limits or dry friction act on at `free`, and which anything acts on."""
        self.near = self.contacts.near(self.free, self.map)
        self.touched = self.near | (self.contacts.state.counts > 0)

    def resolve(self) -> bool:
        for k in range(1 + ROUNDS_OF_ALL):
            self.contacts.armature = self.armature
            self.contacts.resolve(self.q, self.v, self.free, self.map, self.near, self.threads)
            self.contacts.require_converged(self.time)
            if k == ROUNDS_OF_ALL or not self._drives_pass():
                break
        if self.smooth is not None:  # what impulses change is counted from the start of the step
            self.acceleration = self._moved(self.moving, self.q, self.v, self.load, self.external)
        return True

    def overlaps(self) -> bool:
        return bool((self.contacts.parting > 0.0).any())

    def part(self) -> None:
        impulses = self.contacts.state.impulses
        pushed = self._pushed_acceleration(impulses.push, impulses.joint_push)
        self.displacement = self.contacts.displacement(self.acceleration, pushed, self.map)

    def apply_impulses(self) -> None:
        impulses = self.contacts.state.impulses
        changed = self._pushed_acceleration(impulses.wrench, impulses.joint)
        if self.smooth is None:
            after = self.robot.step_functions.free_velocity(self.v, changed, self.h)
        else:
            after = self.free + self.h * (changed - self.acceleration)
            self.struck = np.zeros_like(after)
            if impulses.impact.any() or impulses.joint_impact.any():
                struck = self._pushed_acceleration(impulses.impact, impulses.joint_impact)
                hit = impulses.impact.any(axis=(1, 2)) | impulses.joint_impact.any(axis=1)
                self.struck = np.where(hit[:, None], self.h * (struck - self.acceleration), 0.0)
        self.after = np.where(self.touched[:, None], after, self.free)  # the others as if alone, to the bit

    def forget_impulses(self) -> None:
        if self.contacts is not None:
            self.contacts.forget(np.arange(len(self.q)))

    def move(self) -> None:
        with np.errstate(all="ignore"):
            self.ahead, self.end = self._led_to(self.displacement)

    def limits_are_attainable(self) -> bool:
        if not self.looped or self.displacement is None:
            return True
        rows, gap, parting = self.contacts.rows, self.contacts.state.kinematics.gap, self.contacts.parting
        beyond = np.flatnonzero((gap.min(axis=1, initial=0.0) < -BEYOND) & (parting > 0.0) & (parting != MOST_PUSHED))
        if not len(beyond):
            return True
        assert self.map is not None, "loops have one"
        straight, _ = self._led_to(None)
        for i in beyond:
            r = int(gap[i].argmin())
            at, dof = int(rows.at[r]), int(rows.dof[r])
            expected = rows.sign[r] * float(self.map[i, dof] @ self.displacement[i])
            if not comes_back(rows.sign[r] * (self.ahead[i, at] - straight[i, at]), expected, parting[i]):
                self._refuse_limit(int(i), r, bool(self.contacts.state.counts[i]))
        return True

    def is_sound(self) -> bool:
        """Bodies stay as they are where to part them would speed them up (see `energy_guard`)."""
        self._require_finite(self.end, "velocity after the step")
        self._require_finite(self.ahead, "configuration after the step")
        far = farthest(self.h * self.after, self.displacement)
        fast = far > SLOW
        if not fast.any():
            return True
        before, after = self.energies(self.q, self.v), self.energies(self.ahead, self.end)
        if self.displacement is not None:
            straight, end = self._led_to(None)
            without = self.energies(straight, end)
            lost = fast & ~(self._excess(before, (after[0], without[1]), self.end) <= 0.0)
            self.ahead, self.end = np.where(lost[:, None], straight, self.ahead), np.where(lost[:, None], end, self.end)
            self.displacement = np.where(lost[:, None], 0.0, self.displacement)
            after = np.where(lost, without[0], after[0]), without[1]
        lost = fast & ~(self._excess(before, after, self.end) <= 0.0)
        if lost.any():
            self._refuse_gain(int(lost.argmax()), before, after)
        if (far > FARTHEST).any():
            self._refuse_speed(int(far.argmax()))
        return True

    def _excess(self, before: Any, after: Any, end: Array) -> Array:
        """`excess_energy` (robots,), of kinetic and potential energies before and after, for velocities at the end."""
        external, at_end = self._external_at(self.q, self.v), self._given_at(self.ahead, end)
        at_start = at_end if self.driven else self._given_at(self.q, self.v)
        forces = at_start + external, at_end + external
        at_ends = self.h * np.maximum(forces[0] * self.v, forces[1] * end)
        work = np.maximum(np.maximum(at_ends, mean_work(forces, self.v, end, self.h)), 0.0).sum(axis=-1)
        excess: Array = excess_energy((before[0], after[0]), (before[1], after[1]), work, self.least_energy)
        return excess

    def arrive(self) -> None:
        self.q, self.v, self.opened = self.ahead, self.end, self._opening
        if self.contacts is not None:
            self.contacts.arrive()

    # what they are made of

    def _integrate(self) -> None:
        """`free`, the velocity after a step in which nothing touches, and `smooth`."""
        q, v, h = self.q, self.v, self.h
        if self.integrator == "semi-implicit":
            self._accelerate()
            self.free = self.robot.step_functions.free_velocity(v, self.acceleration, h)
        elif self.integrator == "rk4":
            self.smooth, self.free = runge_kutta(self.robot, q, v, h, self._acceleration_at)
        else:
            a = self._moved(self.moving, q, v, self._forces_at(q, v), self.external)
            self.smooth, self.free, self.corrected = midpoint(self.robot, q, v, h, a, self)

    def _accelerate(self) -> None:
        """`given`, `load`, `armature` and `acceleration` of the semi-implicit step."""
        if not self.driven:
            self.acceleration = self._moved(self.moving, self.q, self.v, self.load, self.external)
            return
        robots, self.user = range(len(self.q)), self.given
        self.armature, self.driving = np.tile(self.moving.armature, (len(self.q), 1)), None
        if self.control is None:
            self.acceleration = self._moved(self.moving, self.q, self.v, self.load, self.external)
            return
        control = np.broadcast_to(self._controls(self.control), (len(self.q), self.forces.nu))
        drives, S = self.forces.drives, self.forces.map(self.q)
        self._maps = np.zeros((len(self.q), 0, self.robot.nv)) if S is None else S
        self.driving = [drive_work(self.robot, drives) for _ in robots]
        rates = self._of_all_joints(self.v)
        for i in robots:
            begin_drives(drives, self.h, control[i], self.q[i], rates[i], self._maps[i], self.driving[i])
        for k in range(MOST_ROUNDS):
            self._accelerate_held()
            if not self._judge_drives(self.acceleration, k >= ROUNDS_OF_ALL):
                break

    def _accelerate_held(self) -> None:
        """The acceleration with the drives as they are held now."""
        assert self.driving is not None and self.armature is not None
        drives, most, base = self.forces.drives, self.robot.effort_limit, np.asarray(self.moving.armature)
        for S, work, armature in zip(self._maps, self.driving, self.armature, strict=True):
            write_driven(drives, most, S, work, base, armature)
        self.given = self.user + np.stack([w.total for w in self.driving])
        self.load = self._with_springs(self.given)
        self.acceleration = self._moved(self.moving, self.q, self.v, self.load, self.external)

    def _judge_drives(self, acceleration: Array, one: bool, which: Array | None = None) -> bool:
        """Hold and free drives of all robots, or `which` (robots,) bool; whether that changes anything."""
        assert self.driving is not None
        drives, most, rates = self.forces.drives, self.robot.effort_limit, self._of_all_joints(acceleration)
        robots = range(len(self.q)) if which is None else np.flatnonzero(which)
        changes = [judge_drives(drives, most, self._maps[i], rates[i], self.driving[i], one) for i in robots]
        return any(changes)

    def _drives_pass(self) -> bool:
        """Whether the impulses take drives past their limits or back; `free` is then the velocity with drives as held now."""
        if self.driving is None:
            return False
        impulses = self.contacts.state.impulses
        pushed = self._pushed_acceleration(impulses.wrench, impulses.joint)
        if not self._judge_drives(pushed, False, self.touched):
            return False
        self._accelerate_held()
        self.free = self.after = self.robot.step_functions.free_velocity(self.v, self.acceleration, self.h)
        self._find_near()
        return True

    def _of_all_joints(self, v: Array) -> Array:
        """Velocities (robots, n) of all joints."""
        return ordered_sum(self._maps * v[:, None, :]) if self.robot.closed else v

    def _forces_at(self, q: Array, v: Array) -> Array:
        """Within a step, where drives, damping and springs follow the state."""
        total = self._given_at(q, v)
        return total + self.forces.of_springs(q, v) if self.passive else total

    def _given_at(self, q: Array, v: Array) -> Array:
        """Those of the user and of drives."""
        if self.control is None or (self.integrator == "semi-implicit" and not self.driven):
            return self.given
        user = self.forces_on_joints(self.tau, None) if self.driven else self.given
        return user + self._driven(q, v, self.control)

    def _acceleration_at(self, q: Array, v: Array) -> Array:
        return self._moved(self.robot, q, v, self._forces_at(q, v), self.external)

    def _moved(self, robot: Robot, q: Array, v: Array, tau: Array, forces: Array | None) -> Array:
        """The acceleration under joint forces, and forces on bodies if there are any."""
        more: dict[str, Any] = {} if forces is None else {"external_forces": forces}
        armature = self.armature if robot is self.moving else None
        acceleration: Array = self._evaluate(robot.forward_dynamics, armature, q, v, tau, threads=self.threads, **more)
        return acceleration

    def at_armature(self, function: Any, *arguments: Array, **more: Array) -> Any:
        """A function of `moving` for the first robot, with the armature of the last step."""
        return self._evaluate(function, None if self.armature is None else self.armature[0], *arguments, **more)

    def _external_at(self, q: Array, v: Array) -> Array:
        """What forces on bodies come to at joints (robots, nv)."""
        if self.external is None:
            return np.zeros_like(v)
        nothing = np.zeros_like(v)
        come_to: Array = self.robot.inverse_dynamics(q, v, nothing)
        return np.asarray(come_to - self.robot.inverse_dynamics(q, v, nothing, external_forces=self.external))

    def at_middle(self, q: Array, v: Array, lag: Array) -> AtMiddle:
        """What acts in the middle of a step of the midpoint rule (see `integrators.MovingRobots`)."""
        load, held = self._forces_at(q, v), np.zeros_like(v)
        if len(self.middle_armature):
            S = self.forces.map(q)
            rates = lag if S is None else ordered_sum(S * lag[:, None, :])
            held = self.middle_armature * rates
            held = held if S is None else ordered_sum(np.swapaxes(S, -1, -2) * held[:, None, :])
        return AtMiddle(self._moved(self.moving, q, v, load + held, self.external), load, held)

    def power_at_middle(self, q: Array, v: Array, found: AtMiddle) -> Array:
        """The power of forces other than gravity and springs (see `integrators.MovingRobots`)."""
        force, s, S = found.load, self.forces.springs, self.forces.map(q)
        if self.external is not None:
            force = self.moving.inverse_dynamics(q, v, found.acceleration) - found.lag
        terms = [force * v]
        if self.passive:
            rates = v if S is None else ordered_sum(S * v[:, None, :])
            terms.append(s.stiffness * (q[:, s.at] - s.rest) * rates)
        return ordered_sum(np.concatenate(terms, axis=-1))

    def _pushed_acceleration(self, wrench: Array, impulse: Array) -> Array:
        """The acceleration with impulses on bodies and at joints spread over the step."""
        forces = self.contacts.external_forces(wrench)
        if self.external is not None:
            forces += self.external
        tau = self.contacts.joint_forces(self.load, impulse, self.map)
        return self._moved(self.moving, self.q, self.v, tau, forces)

    def _led_to(self, displacement: Array | None) -> tuple[Array, Array]:
        """Configuration and velocity at the end of the step, with a displacement or without."""
        d = np.zeros_like(self.after) if displacement is None else displacement
        if self.smooth is None:
            if not self.robot.closed:
                ahead, end = self.robot.step_functions.advance(self.q, self.after, d, self.h)
                return ahead, end
            x = self.h * self.after + d
            raw = put_straight(self.robot, self.q, x, self.robot.tangent_step(self.q, x))  # type: ignore[attr-defined]
            return self._closed(raw), self.robot.step_functions.carry(self.after, d, self.h)
        pushed = self.is_pushed(d)
        if not pushed.any():
            ahead = self.smooth
            if self.looped:
                self._note_opening(self.robot.tangent_step(self.q, self.robot.difference(self.q, ahead)))  # type: ignore[attr-defined]
            return ahead, self.after
        # at the mean of the velocities after impacts and at the end, which is zero for what is at rest
        x = 0.5 * self.h * (self.v + self.struck + self.after) + d
        ahead = self._closed(self.robot.tangent_step(self.q, x)) if self.robot.closed else self.robot.integrate(self.q, x)  # type: ignore[attr-defined]
        return np.where(pushed[:, None], ahead, self.smooth), self.after

    def is_pushed(self, displacement: Array) -> Array:
        """Which robots (robots,) impulses or a displacement (robots, nv) move."""
        return np.asarray((self.after != self.free).any(axis=-1) | (displacement != 0.0).any(axis=-1))

    def _note_opening(self, raw: Array) -> None:
        self._opening = float(self.robot.opening(raw).max())  # type: ignore[attr-defined]

    def _closed(self, raw: Array) -> Array:
        """With loops closed."""
        if not self.looped:
            return raw
        self._note_opening(raw)
        try:
            closed: Array = self.robot.close(raw, attempts=0)  # type: ignore[attr-defined]
        except ValueError as error:
            raise SimulationError(str(error), self.time) from None
        return closed

    def _refuse_gain(self, robot: int, *energies: Any) -> None:
        """`energies` are kinetic and potential ones (robots,) before and after."""
        before, after = (float(kinetic[robot] + potential[robot]) for kinetic, potential in energies)
        turn = self.h * np.abs(self.after[robot])
        name = self._joint_of(int(turn.argmax()))
        raise SimulationError(
            f"the step gains energy that no force has worked for: {before:.6g} J before it, {after:.6g} J after; "
            f"joint {name!r} moves by {turn.max():.3g} rad or m in it, take a shorter step",
            self.time, robot, len(self.v),
        )  # fmt: skip

    def _refuse_speed(self, robot: int) -> None:
        turn = self.h * np.abs(self.after[robot])
        name = self._joint_of(int(turn.argmax()))
        raise SimulationError(
            f"joint {name!r} moves by {turn.max():.3g} rad or m in the step, at {turn.max() / self.h:.3g} rad/s or m/s: the "
            "motion diverges. Forces of a controller that follow the state (a PD law, say) are constant during a step; give "
            "them as drives, which the step takes at its end (actuators=featherweight.PD(...)), or take a shorter step",
            self.time, robot, len(self.v),
        )  # fmt: skip

    def _refuse_limit(self, robot: int, row: int, touching: bool) -> None:
        """The limit of a row of joints, beyond which a joint of a loop has to stay."""
        rows, x = self.contacts.rows, float(self.q[robot, self.contacts.rows.at[row]])
        dof, which = int(rows.dof[row]), "lower" if rows.sign[row] > 0.0 else "upper"
        raise SimulationError(
            f"joint {self.forces.names[dof]!r} is at {x:.4g}, beyond its {which} limit {rows.bound[row]:.4g}, and "
            f"loops ({self.robot.loops_of(dof)}){' and contacts' if touching else ''} do not let it come back; "  # type: ignore[attr-defined]
            "start from a closed configuration within limits, as robot.random_configuration() finds where there is one, or "
            "leave limits out (joints=featherweight.JointOptions(limits=False))",
            self.time, robot, len(self.v),
        )  # fmt: skip

    def _joint_of(self, row: int) -> str:
        """The joint of a velocity (nv,)."""
        return next(j.name for j in self.robot.joints if j.v_slice.start <= row < j.v_slice.stop)

    def _require_finite(self, x: Array, what: str) -> None:
        if np.isfinite(x).all():
            return
        bad = np.argwhere(~np.isfinite(np.atleast_2d(x)))
        robot, place = (int(k) for k in bad[0])
        name = f"number {place}"
        for j in self.robot.joints if what != "control" else ():
            rows = j.q_slice if what.startswith("configuration") else j.v_slice
            if rows.start <= place < rows.stop:
                name = f"joint {j.name!r}"
        raise SimulationError(f"the {what} at {name} is {np.atleast_2d(x)[robot, place]}", self.time, robot, len(self.v))
