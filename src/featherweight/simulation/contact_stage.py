"""The contacts and joint limits of robots in one step, and the impulses that they give."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..collision.collision_scene import collision_work
from ..collision.detection import ContactPoints, find_contacts_of_batch, points_of
from ..contact.contact_model import ContactModel
from ..contact.contact_problem import AssembledProblem, BodyDelassus, ContactImpulses, ContactKinematics, assembled
from ..contact.contact_solver import (
    ContactState,
    SolverReport,
    add_joint_forces,
    finder_of_impulses,
    forget,
    impulses_of,
    kinematics_of,
    resolve_robots,
    solver_workspace,
    write_external_forces,
    write_impulses,
)  # fmt: skip
from ..contact.delassus_by_inverse import InverseFactors, inverse_work, write_delassus_of_robots
from ..contact.impulses import ACCEPTED, Solution, greatest_of
from ..contact.joint_rows import write_active, write_gaps, write_speeds
from ..engine.threads import processors, share_out
from ..robot.constraints.contact import BilateralContact
from ..robot.robot import Robot
from .contact_inertia import ContactInertia, Method
from .failure import SimulationError
from .forces import ForcesAtJoints
from .limited_joints import joint_rows, limited_rows
from .scene import ContactSettings, TouchingParts
from .scene_building import OVERLAP, make_scene

Array = np.ndarray[Any, np.dtype[Any]]

GRAIN = 64  # robots of a thread's piece
BLOCK = 1024  # robots whose matrices are held at a time
ROOM = 32  # contacts of each of many robots, at first


class ContactStage:
    """What may touch, and what joints limit: from states to impulses.

    G, the Delassus matrix of all bodies that may touch, is one function, compiled once; contacts that come and go choose rows
    of it. Limits and dry friction of joints add their rows where any is active.
    """

    def __init__(
        self, robot: Robot, forces: ForcesAtJoints, parts: TouchingParts, settings: ContactSettings, algorithm: str | Method
    ) -> None:
        self.robot, self.forces, self.settings = robot, forces, settings
        self.armature: Array | None = None  # (batch, k) in the step, where it is not the robot's own
        self.touching = make_scene(robot, parts)
        self.scene, self.bodies, self.names = self.touching.scene, self.touching.bodies, self.touching.names
        self.numbers = np.array([[b.name for b in robot.bodies].index(name) for name in self.bodies], dtype=np.int64)
        bodies = self._contacts_of_bodies()
        friction, restitution = self.touching.friction, self.touching.restitution
        self.joint_dofs = limited_rows(forces, parts)
        self.rows = joint_rows(forces, parts, settings.step)
        width = np.array([c.size for c in bodies], dtype=np.int64)
        self.model = ContactModel(width, friction, restitution, self.rows, settings)
        self.inertia = ContactInertia(robot, bodies, self.joint_dofs, bool(self.rows.friction.any()), algorithm)
        self.body_placements: Any = robot.frame_placement(self.bodies) if self.bodies else None
        self.body_velocities: Any = robot.frame_velocity(self.bodies, "local") if self.bodies else None

    def _contacts_of_bodies(self) -> list[BilateralContact]:
        """The rows of each body: those of its one point, or all six."""
        contacts, scene, count = [], self.scene, self.touching.sphere_count
        in_pairs = set(scene.pair[scene.pair[:, 1] < count].ravel().tolist())
        for b, name in enumerate(self.bodies):
            own = np.flatnonzero(scene.body == b)
            lone = len(own) == 1 and own[0] < count and scene.radius[own[0]] == 0.0 and own[0] not in in_pairs
            T = np.eye(4)
            if lone:
                T[:3, 3] = scene.placement[own[0], 9:]
            contacts.append(BilateralContact(name, "point" if lone else "surface", placement=T))
        return contacts

    def reset(self, q: Array) -> None:
        """Room for the contacts of robots that begin at q (batch, nq), with no impulses to start from."""
        batch, all_of_them, rows, bodies, joints = (
            len(q), len(self.names), len(self.rows.joint), len(self.bodies), len(self.joint_dofs)
        )  # fmt: skip
        most = all_of_them if batch == 1 else min(ROOM, all_of_them)

        def zeros(*shape: int) -> Array:
            return np.zeros((batch, *shape))

        self.state = ContactState(
            _room_for_contacts(batch, most),
            np.zeros(batch, np.int64),
            ContactKinematics(zeros(bodies, 4, 4), zeros(bodies, 6), zeros(rows), zeros(rows), zeros(bodies, 6), zeros(rows)),
            ContactImpulses(
                zeros(most, 3),
                zeros(bodies, 6),
                zeros(joints),
                zeros(bodies, 6),
                zeros(joints),
                zeros(bodies, 6),
                zeros(joints),
                zeros(all_of_them, 3),
                zeros(rows),
                zeros(all_of_them, 3),
                zeros(rows),
            ),
            SolverReport(zeros(), zeros(), np.zeros(batch, np.int64), np.zeros(batch, np.int64), zeros()),
        )
        self._rooms = [collision_work(self.scene)]
        if self.body_placements is not None:
            self._leave_out_overlaps(q)

    def _leave_out_overlaps(self, q: Array) -> None:
        """Shapes of the file that overlap on the first robot are taken for parts of one, and do not touch."""
        enabled = self.scene.enabled
        enabled[:] = True
        if not self.touching.drawn.any():
            return
        self._find(q[:1], None, None)
        count = int(self.state.counts[0])
        self.leave_out(self.state.contacts.candidate[0, :count], self.state.contacts.gap[0, :count])

    def leave_out(self, candidates: Array, gaps: Array) -> None:
        """Of these contacts, pairs of shapes of the file that overlap."""
        pairs = self.touching.pairs[candidates[gaps < -OVERLAP]]
        self.scene.enabled[pairs[self.touching.drawn[pairs]]] = False

    @property
    def parting(self) -> Array:
        """`SolverReport.parting` (batch,)."""
        parting: Array = self.state.report.parting
        return parting

    # a step

    def detect(self, q: Array, threads: int | None, v: Array | None = None) -> None:
        """Find contacts, and how far joints are from their limits; q is (batch, nq).

        v (batch, nv) are the velocities after the step, if nothing touches: what would touch within it is found too.
        """
        self._find(q, v, threads)
        write_gaps(self.rows, np.ascontiguousarray(q), self.state.kinematics.gap)

    def _find(self, q: Array, v: Array | None, threads: int | None) -> None:
        k = self.state.kinematics
        if self.body_placements is None:
            return
        k.placement[: len(q)] = self.body_placements(q)
        k.velocity[: len(q)] = 0.0 if v is None else self.body_velocities(q, v)

        def find(i: int, j: int) -> None:
            work = self._rooms.pop() if self._rooms else collision_work(self.scene)
            find_contacts_of_batch(i, j, self.scene, k, self.settings, self.state.contacts, self.state.counts, work)
            self._rooms.append(work)

        _shared(len(q), threads, find)
        while (self.state.counts[: len(q)] < 0).any():
            batch, room = self.state.contacts.gap.shape
            self.state = self.state._replace(
                contacts=_room_for_contacts(batch, 2 * room),
                impulses=self.state.impulses._replace(force=np.zeros((batch, 2 * room, 3))),
            )
            _shared(len(q), threads, find)

    def near(self, v: Array, S: Array | None) -> Array:
        """Which robots (batch,) have a joint near its limit, or dry friction, at velocities v (batch, nv).

        S(q) is that of `ForcesAtJoints`.
        """
        k = self.state.kinematics
        near = np.empty(len(v), bool)
        self._write_speeds(v, S, k.speed)
        write_active(self.rows, k.gap, k.speed, self.settings, near)
        return near

    def _write_speeds(self, v: Array, S: Array | None, speed: Array) -> None:
        write_speeds(self.rows, np.ascontiguousarray(v if S is None else np.einsum("brv,bv->br", S, v)), speed)

    def forget(self, robots: Array) -> None:
        """No impulses for these."""
        forget(robots, self.state.impulses, self.state.report)

    def begin_anew(self, robots: Array) -> None:
        """No impulses to start from, for these."""
        self.forget(robots)
        self.state.impulses.last_force[robots], self.state.impulses.last_row[robots] = 0.0, 0.0
        self.state.counts[robots] = 0

    def arrive(self) -> None:
        """The step was taken."""
        f = self.state.impulses
        f.last_force[:], f.last_row[:] = f.next_force, f.next_row

    @property
    def looks_back(self) -> bool:
        """Whether the problem needs velocities before the step: where surfaces bounce, or impacts come before the motion."""
        return self.settings.in_step or bool(self.model.restitution.any())

    def resolve(self, q: Array, before: Array, v: Array, S: Array | None, near: Array, threads: int | None) -> None:
        """Impulses for the velocities v (batch, nv) that there would be without; `before` are those before the step.

        Robots that are `near` limits of joints take the rows of joints too; those that nothing touches have no impulses.
        """
        idle = ~near & (self.state.counts == 0)
        self.forget(np.flatnonzero(idle))
        if self.body_velocities is not None:
            self.state.kinematics.velocity[:] = self.body_velocities(q, v)
            if self.looks_back:
                self.state.kinematics.velocity_before[:] = self.body_velocities(q, before)
        if self.looks_back:
            self._write_speeds(before, S, self.state.kinematics.speed_before)
        for robots, joints in ((np.flatnonzero(~near & ~idle), False), (np.flatnonzero(near), True)):
            for k in range(0, len(robots), BLOCK):
                some = robots[k : k + BLOCK]
                delassus = self._delassus(_rows_of(q, some), None if S is None else _rows_of(S, some), some, joints, threads)
                self._resolve(some, delassus, threads)

    def _delassus(self, q: Array, S: Array | None, robots: Array, joints: bool, threads: int | None) -> BodyDelassus:
        """G of some robots, at q (robots, nq), with the rows of joints or without."""
        armature = None if self.armature is None else _rows_of(self.armature, robots)
        known = self.inertia.of_bodies_and_joints(q, armature) if joints else None
        if not joints and not self.inertia.by_inverse:
            known = self.inertia.of_bodies(q, self._bodies_touching(), armature)
        if known is not None:
            return BodyDelassus(known[0], np.tile(known[1], (len(q), 1)))
        s, E = self.state, self.inertia.of_joints(S)
        factors = InverseFactors(self.inertia.jacobian(q), self.inertia.inverse(q, armature), E if joints else E[:, :0])
        size = min(int(6 * 2 * s.counts[robots].max()), factors.J.shape[1]) + factors.E.shape[1]
        delassus = BodyDelassus(np.empty((len(q), size, size)), np.empty((len(q), len(self.bodies) + 1), np.int64))
        args, room = (robots, self.model, s, factors, delassus), (len(self.bodies), size, self.robot.nv)
        _shared(len(q), threads, lambda i, j: write_delassus_of_robots(i, j, *args, inverse_work(*room)))
        return delassus

    def _resolve(self, robots: Array, delassus: BodyDelassus, threads: int | None) -> None:
        report = self.state.report
        args = robots, self.model, delassus, self.state
        room = int(self.state.counts[robots].max(initial=0)), len(self.rows.joint), delassus.G.shape[-1]
        _shared(len(robots), threads, lambda i, j: resolve_robots(i, j, *args, solver_workspace(*room)))
        for n, i in enumerate(robots):
            if not report.residual[i] <= report.allowed[i] < np.inf:
                self._resolve_by_cones(int(i), BodyDelassus(delassus.G[n], delassus.begin[n]))

    def _resolve_by_cones(self, i: int, delassus: BodyDelassus) -> None:
        """One robot's impulses, where the solver for all has failed."""
        try:
            from ..contact.cones import solve_by_cones
        except ModuleNotFoundError:
            return  # the failure is told
        s = self.state
        contacts = points_of(s.contacts, i, int(s.counts[i]))
        kinematics, impulses = kinematics_of(s.kinematics, i), impulses_of(s.impulses, i)
        work = solver_workspace(int(s.counts[i]), len(self.rows.joint), len(delassus.G))
        p: AssembledProblem = assembled(self.model, contacts, kinematics, delassus, impulses, work.assembly)
        if not all(np.isfinite(x).all() for x in (p.problem.A, p.problem.b)):
            return
        tolerance = self.settings.tolerance * greatest_of(p.problem.b)
        find = finder_of_impulses(lambda problem, start, tolerance, _: solve_by_cones(problem, start, tolerance))
        solution: Solution = find(p, self.settings.in_step, tolerance, work.impulses)
        parting = write_impulses(self.model, contacts, kinematics, p, solution.impulses, impulses, work.impulses)
        values = solution.residual, ACCEPTED * tolerance, solution.sweeps, solution.newton_steps, parting
        for array, value in zip(s.report, values, strict=True):
            array[i] = value

    def _bodies_touching(self) -> Array:
        """The numbers of the bodies that touch anything, on any robot."""
        contacts, counts = self.state.contacts, self.state.counts
        there = np.arange(contacts.a.shape[1]) < counts[:, None]
        bodies = np.unique(np.concatenate([contacts.a[there], contacts.b[there]]))
        return bodies[bodies >= 0]

    # what would be a wrong step

    def require_converged(self, time: float) -> None:
        """Raise SimulationError where the solver has left more than it may."""
        report, counts = self.state.report, self.state.counts
        lost = np.flatnonzero(~(report.residual <= report.allowed))
        if len(lost):
            i = int(lost[0])
            raise SimulationError(
                f"the contact solver did not converge: {report.residual[i]:.3g} m/s are left of Coulomb's law for "
                f"{counts[i]} contacts, {report.allowed[i]:.3g} allowed; take a shorter step, or a greater tolerance",
                time, i, len(counts),
            )  # fmt: skip

    def require_shallow(self, most: float, time: float) -> None:
        """Raise SimulationError for overlap beyond `most` [m]."""
        contacts, counts = self.state.contacts, self.state.counts
        if not counts.any():
            return
        there = np.arange(contacts.gap.shape[1]) < counts[:, None]
        gap = np.where(there, contacts.gap, np.inf)
        i, c = np.unravel_index(int(gap.argmin()), gap.shape)
        if gap[i, c] < -most:
            name = self.names[int(contacts.candidate[i, c])]
            deep = f"{-gap[i, c]:.3g} m"
            what = f"{name} overlap by {deep}" if " and the " in name else f"{name} is {deep} deep in the ground"
            raise SimulationError(f"{what}, more than {most:g} m (max_penetration)", time, int(i), len(counts))

    # what came of it

    def external_forces(self, wrench: Array) -> Array:
        """Impulses on the bodies that may touch as forces on all bodies (batch, nbodies, 6), over a step."""
        forces = np.zeros((len(wrench), len(self.robot.bodies), 6))
        write_external_forces(self.numbers, wrench, self.settings.step, forces)
        return forces

    def joint_forces(self, load: Array, impulse: Array, S: Array | None) -> Array:
        """Forces (batch, nv) with impulses of joint rows over a step added; S(q) as in `ForcesAtJoints`."""
        if S is not None:
            carried: Array = load + np.einsum("brv,br->bv", S[:, self.joint_dofs], impulse) / self.settings.step
            return carried
        total = np.array(load, order="C")
        add_joint_forces(self.joint_dofs, impulse, self.settings.step, total)
        return total

    def displacement(self, a: Array, pushed: Array, S: Array | None) -> Array:
        """Return the displacement (batch, nv) that parts bodies: accelerations with the impulses of `push`, in place of a.

        No joint moves farther than `parting` by it; S(q) as in `ForcesAtJoints`.
        """
        displacement = np.where(self.parting[:, None] > 0.0, self.settings.step * (pushed - a), 0.0)
        of_joints = displacement if S is None else np.einsum("brv,bv->br", S, displacement)
        farthest = np.maximum(np.abs(of_joints).max(axis=1), 1e-300)
        parted: Array = displacement * np.minimum(1.0, self.parting / farthest)[:, None]
        return parted


def _room_for_contacts(batch: int, most: int) -> ContactPoints:
    numbers = [np.zeros((batch, most), np.int64) for _ in range(3)]
    vectors = [np.zeros((batch, most, 3)) for _ in range(2)]
    return ContactPoints(*numbers, *vectors, np.zeros((batch, most)))  # type: ignore[call-arg]


def _shared(batch: int, threads: int | None, run: Any) -> None:
    share_out(run, batch, 1 if batch < 2 * GRAIN else threads or processors(), GRAIN)


def _rows_of(x: Array, robots: Array) -> Array:
    """The rows of some robots; the array itself, for all."""
    return x if len(robots) == len(x) else x[robots]
