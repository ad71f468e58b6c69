"""The contacts and joint limits of robots in one step, and the impulses that they give."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...engine.threads import processors, share_out
from ...robot.constraints.contact import Contact
from ...robot.robot import Robot
from ..failure import SimulationError
from ..forces import JointForces
from ..scene import Ground, HeightField, Plane, Sphere, combined
from . import contact_space as kernels
from .contact_inertia import ContactInertia, Method
from .contact_space import Scratch, Settings, Space
from .detection import HEIGHTS, NO_GROUND, PLANE, Contacts, Spheres, find_range
from .impulses import ACCEPTED, Problem
from .inverse_rows import write_inertia_range
from .shape_contacts import ShapeContacts

Array = np.ndarray[Any, np.dtype[Any]]

GRAIN = 64  # robots of a thread's piece
BLOCK = 1024  # robots whose matrices are held at a time


class Touching:
    """What may touch, and what joints limit: from states to impulses.

    G, the Delassus matrix of all bodies that may touch, is one function, compiled once; contacts that come and go choose rows
    of it. Limits and dry friction of joints add their rows where any is active.
    """

    def __init__(
        self,
        robot: Robot,
        forces: JointForces,
        spheres: Sequence[Sphere],
        pairs: Sequence[tuple[int, int]],
        ground: Ground | None,
        settings: Settings,
        friction: float,
        restitution: float,
        limits: bool,
        dry_friction: bool,
        algorithm: str | Method,
        shapes: ShapeContacts | None = None,
    ) -> None:
        self.robot, self.forces, self.settings, self.shapes = robot, forces, settings, shapes
        self.spheres = tuple(spheres)
        self.bodies, owner, center = _located(robot, spheres)
        others = [] if shapes is None else [b for b in shapes.bodies if b not in self.bodies]
        self.bodies += others
        self.numbers = [[b.name for b in robot.bodies].index(name) for name in self.bodies]
        self.collision = _collision(spheres, pairs, ground, owner, center)
        self.candidates = len(spheres) + len(pairs)
        self.names = [*(f"the {_kind(s)} on {s.frame!r}" for s in spheres)]
        self.names += [f"{self.names[i]} and {self.names[j]}" for i, j in pairs]
        if shapes is not None:
            self._number = {name: k for k, name in enumerate(self.bodies)}
            self._first_of_shapes, self.names = len(self.names), self.names + shapes.names()
            self.candidates = len(self.names)
        widths = self._contacts(owner, center)
        self.joint_rows = np.flatnonzero(
            (dry_friction & (forces.friction > 0.0)) | (limits & (np.isfinite(forces.lower) | np.isfinite(forces.upper)))
        )
        self.space = self._space(widths, pairs, ground, friction, restitution, limits, dry_friction)
        self.inertia = ContactInertia(robot, self._contacts_of_bodies, self.joint_rows, bool(self.space.dry.any()), algorithm)

    @cached_property
    def space_of_bodies(self) -> Space:
        """Without joint rows."""
        s = self.space
        return s._replace(joint=s.joint[:0], sign=s.sign[:0], dry=s.dry[:0])

    # what is made once

    def _contacts(self, owner: Array, center: Array) -> list[int]:
        """The rows of each body: those of its one point, or all six."""
        self._contacts_of_bodies = []
        widths = []
        of_body = [np.flatnonzero(owner == b) for b in range(len(self.bodies))]
        in_pairs = set(np.ravel(self.collision.pair).tolist())
        for name, mine in zip(self.bodies, of_body, strict=True):
            lone = self.shapes is None and len(mine) == 1 and self.spheres[mine[0]].radius == 0.0 and mine[0] not in in_pairs
            T = np.eye(4)
            if lone:
                T[:3, 3] = center[mine[0]]
            self._contacts_of_bodies.append(Contact(name, "point" if lone else "surface", placement=T))
            widths.append(3 if lone else 6)
        return widths

    def _space(
        self, widths: list[int], pairs: Any, ground: Any, friction: float, restitution: float, limits: bool, dry: bool
    ) -> Space:
        s = self.spheres
        surfaces = [(x.friction, x.restitution) for x in s]
        under = (ground.friction, ground.restitution) if ground is not None else (None, None)
        touching = [(a, under) for a in surfaces] + [(surfaces[i], surfaces[j]) for i, j in pairs]
        if self.shapes is not None:
            touching += self.shapes.surfaces(ground)
        f, rows = self.forces, self.joint_rows
        each = range(len(rows))
        upper = [k for k in each if limits and np.isfinite(f.upper[rows[k]])]
        lower = [k for k in each if limits and np.isfinite(f.lower[rows[k]])]
        rubbing = [k for k in each if dry and f.friction[rows[k]] > 0.0]
        joint = np.array([*lower, *upper, *rubbing], dtype=np.int64)
        self._lower, self._upper = np.array(lower, dtype=int), np.array(upper, dtype=int)
        most = self.settings.step * f.friction[rows[rubbing]]
        free = len(lower) + len(upper)
        self._least = np.concatenate([np.zeros(free), -most])
        self._most = np.concatenate([np.full(free, np.inf), most])
        return Space(
            width=np.array(widths, dtype=np.int64),
            friction=np.array([combined(a[0], b[0], friction) for a, b in touching]),
            restitution=np.array([combined(a[1], b[1], restitution) for a, b in touching]),
            joint=joint,
            sign=np.concatenate([np.ones(len(lower)), -np.ones(len(upper)), np.ones(len(rubbing))]),
            dry=np.concatenate([np.zeros(free, bool), np.ones(len(rubbing), bool)]),
        )

    def reset(self, q: Array) -> None:
        """Room for the contacts of robots that begin at q (batch, nq), with no impulses to start from."""
        batch = len(q)
        c, rows, bodies = self.candidates, len(self.space.joint), len(self.bodies)
        self.count = np.zeros(batch, np.int64)
        numbers, vectors = [np.zeros((batch, c), np.int64) for _ in range(3)], [np.zeros((batch, c, 3)) for _ in range(2)]
        self.found = Contacts(*numbers, *vectors, np.zeros((batch, c)))  # type: ignore[call-arg]
        self.force = np.zeros((batch, c, 3))
        self.memory, self.joint_memory = np.zeros((batch, c, 3)), np.zeros((batch, rows))
        self.wrench, self.push = np.zeros((batch, bodies, 6)), np.zeros((batch, bodies, 6))
        self.joint_impulse, self.joint_push = (np.zeros((batch, len(self.joint_rows))) for _ in range(2))
        self.sweeps, self.residual = np.zeros(batch, np.int64), np.zeros(batch)
        self.allowed, self.pushed = np.zeros(batch), np.zeros(batch, bool)
        self.newton_steps = np.zeros(batch, np.int64)
        if bodies:
            self._placements, self._velocities = (
                self.robot.frame_placement(self.bodies), self.robot.frame_velocity(self.bodies, "local")
            )  # fmt: skip

        if self.shapes is not None:
            self.shapes.apart(self._placements(q)[0], self._number)

    # a step

    def find(self, q: Array, threads: int | None) -> None:
        """Find contacts, and how far joints are from their limits; q is (batch, nq)."""
        batch, f, rows = len(q), self.forces, self.joint_rows
        self.placement = self._placements(q) if self.bodies else np.zeros((batch, 0, 4, 4))
        reach = self.settings.margin
        _shared(batch, threads, lambda i, j: find_range(i, j, self.collision, self.placement, reach, self.found, self.count))
        if self.shapes is not None:
            for i in range(batch):
                one = Contacts(*(x[i] for x in self.found))
                at = self.placement[i], self._number, reach, self._first_of_shapes, one
                self.count[i] = self.shapes.add(*at, int(self.count[i]))
        self.gap = np.full((batch, len(self.space.joint)), np.inf)
        x = f.coordinates(q, rows)
        low, up = len(self._lower), len(self._upper)
        self.gap[:, :low] = x[:, self._lower] - f.lower[rows[self._lower]]
        self.gap[:, low : low + up] = f.upper[rows[self._upper]] - x[:, self._upper]

    def resolve(self, q: Array, v: Array, S: Array | None, time: float, threads: int | None) -> bool:
        """Impulses for the velocities v (batch, nv) that there would be without; whether there are any.

        S(q) is that of `JointForces`. Robots with a joint near its limit, or dry friction, take the rows of joints too.
        """
        rates = (v if S is None else np.einsum("brv,bv->br", S, v))[:, self.joint_rows]
        speed = rates[:, self.space.joint] * self.space.sign
        closing = np.minimum(self.gap, self.gap + self.settings.step * speed)
        near = (closing < kernels.JOINT_MARGIN * self.settings.margin).any(axis=1) | self.space.dry.any()
        idle = ~near & (self.count == 0)
        for x in (self.wrench, self.joint_impulse, self.memory, self.joint_memory, self.pushed, self.residual):
            x[idle] = 0
        if idle.all():
            return False
        velocity = self._velocities(q, v) if self.bodies else np.zeros((len(q), 0, 6))
        for robots, joints in ((np.flatnonzero(~near & ~idle), False), (np.flatnonzero(near), True)):
            for k in range(0, len(robots), BLOCK):
                some = robots[k : k + BLOCK]
                G, begin = self._inertia(_part(q, some), None if S is None else _part(S, some), some, joints, threads)
                if joints:
                    self._resolve(some, self.space, begin, velocity, G, self.gap, speed, threads)
                else:
                    self._resolve(some, self.space_of_bodies, begin, velocity, G, self.gap[:, :0], speed[:, :0], threads)
        self._require_converged(time)
        return True

    def _inertia(self, q: Array, S: Array | None, robots: Array, joints: bool, threads: int | None) -> tuple[Array, Array]:
        """G of some robots, at q (robots, nq), and where the rows of bodies begin in it (robots, bodies + 1)."""
        known = self.inertia.whole(q) if joints else None
        if not joints and not self.inertia.by_inverse:
            known = self.inertia.touching(q, self._bodies_touching())
        if known is not None:
            return known[0], np.tile(known[1], (len(q), 1))
        J, E = self.inertia.jacobian(q), self.inertia.of_joints(S)
        inverse = self.robot.inverse_mass_matrix(q)
        size = min(int(6 * 2 * self.count[robots].max()), J.shape[1]) + (E.shape[1] if joints else 0)
        G, begin = np.empty((len(q), size, size)), np.empty((len(q), len(self.bodies) + 1), np.int64)
        args = robots, self.space.width, self.found, self.count, J, inverse, E, joints, begin, G
        _shared(len(q), threads, lambda i, j: write_inertia_range(i, j, *args))
        return G, begin

    def _resolve(
        self, robots: Array, space: Space, begin: Array, velocity: Array, G: Array, gap: Array, speed: Array,
        threads: int | None,
    ) -> None:  # fmt: skip
        args = (
            robots, space, begin, self.settings, self.found, self.count, self.placement, velocity, G, gap, speed, self._least,
            self._most, self.wrench, self.force, self.joint_impulse, self.memory, self.joint_memory, self.push,
            self.joint_push, self.residual, self.allowed, self.sweeps, self.newton_steps, self.pushed,
        )  # fmt: skip
        _shared(len(robots), threads, lambda i, j: kernels.resolve_range(i, j, *args))
        for n, i in enumerate(robots):
            if not self.residual[i] <= self.allowed[i] < np.inf:
                self._resolve_by_cones(int(i), space, begin[n], velocity[i], G[n], gap[i], speed[i])

    def _resolve_by_cones(
        self, i: int, space: Space, begin: Array, velocity: Array, G: Array, gap: Array, speed: Array
    ) -> None:
        """One robot's impulses, where the solver for all has failed."""
        try:
            from .cones import solve_by_cones
        except ModuleNotFoundError:
            return  # the failure is told
        found = Contacts(*(x[i] for x in self.found))
        p: Scratch = kernels.prepare(
            space, begin, self.settings, found, self.count[i], self.placement[i], velocity, G, gap, speed, self._least,
            self._most, self.memory[i], self.joint_memory[i],
        )  # fmt: skip
        if not all(np.isfinite(x).all() for x in (p.A, p.b)):
            return
        tolerance = self.settings.tolerance * kernels.scale_of(p.b)
        self.allowed[i] = ACCEPTED * tolerance
        problem = Problem(p.A, p.b, p.mu, p.lower, p.upper, self.settings.pyramid)
        done = solve_by_cones(problem, p.start, tolerance)
        f = done.impulses.copy()
        if kernels.bounce(p, f):
            free = f[3 * len(p.mu) :]
            again = Problem(p.A, p.A @ f + p.b, p.mu, p.lower - free, p.upper - free, self.settings.pyramid)
            done = solve_by_cones(again, np.zeros_like(f), tolerance)
            f = f + done.impulses
        self.residual[i], self.sweeps[i], self.newton_steps[i] = done.residual, done.sweeps, done.newton_steps
        self.pushed[i] = kernels.finish(
            self.settings, space, found, p, f, gap, self.wrench[i], self.force[i], self.joint_impulse[i], self.memory[i],
            self.joint_memory[i], self.push[i], self.joint_push[i],
        )  # fmt: skip

    def _bodies_touching(self) -> Array:
        there = np.arange(self.found.a.shape[1]) < self.count[:, None]
        found = np.unique(np.concatenate([self.found.a[there], self.found.b[there]]))
        return found[found >= 0]

    def _require_converged(self, time: float) -> None:
        lost = np.flatnonzero(~(self.residual <= self.allowed))
        if len(lost):
            i = int(lost[0])
            raise SimulationError(
                f"the contact solver did not converge: {self.residual[i]:.3g} m/s are left of Coulomb's law for "
                f"{self.count[i]} contacts, {self.allowed[i]:.3g} allowed; take a shorter step, or a greater tolerance",
                time, i, len(self.count),
            )  # fmt: skip

    # what came of it

    def external_forces(self, wrench: Array, per: float) -> Array:
        """Impulses on the bodies that may touch as forces on all bodies (batch, nbodies, 6), over `per` seconds."""
        forces = np.zeros((len(wrench), len(self.robot.bodies), 6))
        forces[:, self.numbers] = wrench / per
        return forces

    def joint_forces(self, impulse: Array, S: Array | None, per: float) -> Array:
        """Impulses of joint rows as forces (batch, nv); S(q) as in `JointForces`."""
        rows = self.joint_rows
        if S is not None:
            carried: Array = np.einsum("brv,br->bv", S[:, rows], impulse) / per
            return carried
        forces = np.zeros((len(impulse), self.robot.nv))
        forces[:, rows] = impulse / per
        return forces

    def require_shallow(self, most: float, time: float) -> None:
        """Raise SimulationError for overlap beyond `most` [m]."""
        if not self.count.any():
            return
        there = np.arange(self.found.gap.shape[1]) < self.count[:, None]
        gap = np.where(there, self.found.gap, np.inf)
        i, c = np.unravel_index(int(gap.argmin()), gap.shape)
        if gap[i, c] < -most:
            name = self.names[int(self.found.candidate[i, c])]
            raise SimulationError(
                f"{name} is {-gap[i, c]:.3g} m deep in {'the ground' if self.found.b[i, c] < 0 else 'one another'}, "
                f"more than {most:g} m (max_penetration)",
                time, int(i), len(self.count),
            )  # fmt: skip


def _shared(batch: int, threads: int | None, run: Any) -> None:
    share_out(run, batch, 1 if batch < 2 * GRAIN else threads or processors(), GRAIN)


def _part(x: Array, robots: Array) -> Array:
    """The rows of some robots; the array itself, for all."""
    return x if len(robots) == len(x) else x[robots]


def _kind(s: Sphere) -> str:
    return "sphere" if s.radius else "point"


def _located(robot: Robot, spheres: Sequence[Sphere]) -> tuple[list[str], Array, Array]:
    """The bodies that carry spheres, for each sphere its body's number among them, and its centre in the body's frame."""
    frames = {f.name: f for f in robot.frames}
    bodies: list[str] = []
    owner, center = [], []
    for s in spheres:
        if s.frame not in frames:
            raise ValueError(f"{robot.name} has no frame {s.frame!r}; it has {', '.join(frames)}")
        f = frames[s.frame]
        if f.body == "world":
            raise ValueError(f"the {_kind(s)} on {s.frame!r} is fixed to the world: only moving bodies touch")
        if f.body not in bodies:
            bodies.append(f.body)
        owner.append(bodies.index(f.body))
        center.append(np.array(f.placement.R) @ np.asarray(s.center, float) + np.array(f.placement.p))
    return bodies, np.array(owner, dtype=np.int64), np.array(center, dtype=float).reshape(-1, 3)


def _collision(
    spheres: Sequence[Sphere], pairs: Sequence[tuple[int, int]], ground: Ground | None, owner: Array, center: Array
) -> Spheres:
    kind, plane = NO_GROUND, np.zeros(4)
    heights, corner, spacing = np.zeros((2, 2)), np.zeros(2), np.ones(2)
    if isinstance(ground, Plane):
        kind = PLANE
        plane = np.array([*ground.normal, float(np.dot(ground.normal, ground.point))])
    elif isinstance(ground, HeightField):
        kind, heights = HEIGHTS, np.array(ground.grid)
        corner = np.array([ground.x[0], ground.y[0]], dtype=float)
        extent = np.array([ground.x[1] - ground.x[0], ground.y[1] - ground.y[0]])
        spacing = extent / (np.array(heights.shape) - 1)
    radius = np.array([s.radius for s in spheres], dtype=float)
    pair = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Spheres(owner, center, radius, pair, kind, plane, heights, corner, spacing)
