"""Derivatives of the effect of contacts, joint limits and dry friction in a step: velocities and the displacement.

The equations are those of `contact_problem` and `contact_solver` at their solution. Each contact keeps its state: sticking,
sliding, open or bouncing.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array, Booleans, Matrix, Tensor
from ..collision.collision_scene import PLANE
from ..collision.contact_motion import MOVES, SurfacesWork, surfaces_work, write_contact_motion
from ..collision.detection import body_of
from ..collision.triples import along
from ..contact.contact_problem import AssembledProblem, active_rows, write_axes
from ..contact.contact_slopes import write_unit_moves
from ..contact.contact_solver import STRUCK, find_impulses_by, impulse_work, is_struck
from ..contact.impulse_rates import ImpulseRates, ValueAndRates, restitution_rates
from ..contact.impulses import Solution, greatest_of, solve_problem
from ..contact.laws import PARTING_SPEED, RETURN_SPEED, Problem, RowMotion, room_for_law, write_law
from ..contact.rigid_answers import EDGE, EDGE_OF_GAPS
from ..contact.row_rates import BodyRates, geometry_rates, row_rates
from ..engine.loops.kernels import CompiledLoop, Table
from .found_step import FoundStep
from .rates import JointMap, Rated
from .robot_stages import first_contacts
from .stage_records import FOUND, PARTING, SOLVED, RobotStages
from .step_rates import State
from .step_slopes import name_of_row


class ContactMotions(NamedTuple):
    """The motion of contacts by unit velocities of their bodies."""

    motion: Tensor  # (contacts, MOVES, 7) of the normal, the point midway between both surfaces, and the gap
    unique: Booleans  # (contacts,)
    moves: Matrix  # (MOVES, 6)
    surfaces: SurfacesWork


def contact_motions(count: int) -> ContactMotions:
    """Return arrays for so many contacts."""
    return ContactMotions(np.zeros((count, MOVES, 7)), np.ones(count, bool), np.zeros((MOVES, 6)), surfaces_work())


def write_contact_motions(s: RobotStages, y: ContactMotions) -> int:
    """Write the motions of the first contacts of a step; return their number."""
    t = s.touching
    for c in range(len(y.motion)):
        pair, normal, point = t.pair_of[t.contacts.candidate[c]], t.contacts.normal[c], t.contacts.point[c]
        gap, shapes = t.contacts.gap[c] + t.scene.margin[pair], (t.scene.pair[pair, 0], t.scene.pair[pair, 1])
        rise = 0.5 * t.contacts.gap[c] if t.scene.kind[shapes[1]] >= PLANE else 0.0
        middle = along((point[0], point[1], point[2]), rise, normal)
        for side in range(2):
            write_unit_moves(t.kinematics.placement, body_of(t.contacts, c, side), y.moves, 6 * side)
        at = middle, normal, gap
        y.unique[c] = write_contact_motion(
            t.scene, shapes, t.collisions.placement, at, y.moves, (0, MOVES), y.surfaces, y.motion[c]
        )
    return len(y.motion)


WRITE_MOTIONS = CompiledLoop(write_contact_motions, numbers=0, what="the motion of contacts")


class Stage(NamedTuple):
    """A problem of `contact_solver.find_impulses`, and its solution."""

    problem: Problem
    impulses: Array  # (m,) in addition to those of earlier stages
    restitution: Array  # (k,) of contacts that bounce in this round
    bias_rates: Array  # (m, directions)


class ContactRates:
    """Rates of a step of one robot with contacts, joints near their limits, or dry friction.

    `found` is the step, `start` the state before it, and `dfree` the rates of its velocity without contacts. Slopes are
    derivatives by q.
    """

    def __init__(self, found: FoundStep, start: State, dfree: Array) -> None:
        t, step = found.stages.touching, found.stages.step
        self.found, self.start, self.stage = found, start, found.contacts
        self.last = t.impulses.last_force, t.impulses.last_row
        self.h, self.model = found.model.h, t.model
        self.free, self.dfree = step.free.copy(), dfree
        self.count = int(t.counts[SOLVED] if t.counts[FOUND] else 0)
        self.contacts = first_contacts(t.contacts, self.count)
        self.kinematics, self.impulses = t.kinematics, t.impulses
        self.active = active_rows(self.model, self.kinematics)
        self.joints = JointMap(found.forces, Rated(start.q.value, np.eye(found.robot.nv)))
        self.base = self._pushed(step.none, np.zeros((len(found.robot.bodies), 6)))
        self._locate()
        self._assemble()
        self._solve()

    # geometry and response of contacts

    def _locate(self) -> None:
        k, rows, nv = self.count, self.model.rows, self.found.robot.nv
        self.dof, self.sign = rows.dof[self.active], rows.sign[self.active]
        S = np.eye(nv) if self.joints.S is None else self.joints.S
        self.E = self.sign[:, None] * S[self.dof]
        self.gap = np.concatenate([self.contacts.gap, self.kinematics.gap[self.active]])
        self.axes, self.jumps, self.dgap = np.empty((k, 3, 3)), np.zeros(k, bool), self.E
        self.G = self.F = self.E
        if k:
            for n, axes in zip(self.contacts.normal, self.axes, strict=True):
                write_axes(n, axes)
            scene = self.stage.scene
            pairs = scene.pair[self.stage.touching.pairs[self.contacts.candidate]]
            self.bodies = BodyRates(self.kinematics.placement, self._velocity_slopes(self.free)[1], self.model.width)
            motion, self.jumps = self._motion()
            on_ground = scene.kind[pairs[:, 1]] >= PLANE
            margins = np.where(on_ground, scene.margin[self.stage.touching.pairs[self.contacts.candidate]], np.nan)
            geometry = geometry_rates(motion, margins, self.contacts, self.bodies)
            self.rows, self.felt = row_rates(scene, pairs, self.contacts, self.axes, geometry, self.bodies)
            self.dgap = np.vstack([geometry.gap, self.E])
            self.G, self.F = (
                np.vstack([r.of_contacts(r.rows @ self.bodies.jacobian[r.body], k), self.E]) for r in (self.rows, self.felt)
            )
        self.A = np.ascontiguousarray(self.F @ self.base.da_dtau @ self.F.T)

    def _motion(self) -> tuple[Array, Array]:
        """Return the motion of contacts by velocities of their bodies (contacts, MOVES, 7), and whether it is not unique."""
        y = contact_motions(self.count)
        table = Table(y)
        WRITE_MOTIONS.for_tables(self.found.table, table)(self.found.table.address, table.address)
        return y.motion, ~y.unique

    def _velocity_slopes(self, x: Array) -> Any:
        """Return the derivatives of body velocities (bodies, 6, nv) with respect to q and v, at velocities x."""
        return self.stage.velocity_slopes(self.start.q.value, x)

    def _pushed(self, tau: Array, external: Array) -> Any:
        """Return the derivatives of the acceleration by forces at joints and on bodies, at rest."""
        q, none = self.start.q.value, self.found.stages.step.none
        return self.found.model.impulse_slopes(q, none, tau, *self.found.armature, external_forces=external)

    def _seen_slopes(self, x: Array, felt: bool = False) -> Array:
        """Return the slopes (m, nv) of the velocities along contacts and joint rows, for velocities x (nv,)."""
        turned, k = np.zeros(self.G.shape), 3 * self.count
        if k:
            r, (by_q, J) = self.felt if felt else self.rows, self._velocity_slopes(x)
            V = (J @ x)[r.body, None, None]
            turned[:k] = r.of_contacts((V @ r.slopes)[:, :, 0] + r.rows @ by_q[r.body], self.count)
        if self.joints.S is not None:
            turned[k:] = self.sign[:, None] * self.joints.slopes(x)[self.dof]
        return turned

    def _response_slopes(self, f: Array, felt: bool = False) -> Array:
        """Return the slopes (nv, nv) of the change of velocity M⁻¹ Jᵀ f by impulses f (m,)."""
        k, external, pull = 3 * self.count, np.zeros((len(self.found.robot.bodies), 6)), np.zeros_like(self.base.da_dq)
        if k:
            W, slopes = (self.felt if felt else self.rows).pulled(f[:k], len(self.stage.bodies))
            external[self.stage.numbers] = W / self.h
            pull += np.einsum("bkv,bkd->vd", self.bodies.jacobian, slopes)
        if self.joints.S is not None:
            e = np.zeros(len(self.found.forces.names))
            np.add.at(e, self.dof, self.sign * f[k:])
            pull += self.joints.forces(Rated(e, np.zeros((len(e), len(pull))))).rates
        D = self._pushed(f[k:] @ self.E / self.h, external)
        response: Array = self.h * (D.da_dq - self.base.da_dq) + self.base.da_dtau @ pull
        return response

    def applied(self, f: Array, df: Array) -> tuple[Array, Array]:
        """Return A f, and its rates."""
        x = self.base.da_dtau @ (f @ self.F)
        slopes = self.F @ self._response_slopes(f, felt=True) + self._seen_slopes(x, felt=True)
        return self.A @ f, self.A @ df + slopes @ self.start.q.rates

    # the problem

    def _assemble(self) -> None:
        """Assemble the problem as `contact_problem.assembled` does, with its rates."""
        model, k = self.model, self.count
        start = np.zeros(len(self.G))
        start[: 3 * k] = (self.axes @ self.last[0][self.contacts.candidate][:, :, None]).ravel()
        start[3 * k :] = self.last[1][self.active]
        approach, before = self.G @ self.free, self.G @ self.start.v.value
        self.dapproach = self.G @ self.dfree + self._seen_slopes(self.free) @ self.start.q.rates
        law = room_for_law(k, len(self.active))._replace(pyramid=model.settings.pyramid)
        write_law(model, RowMotion(self.contacts.candidate, self.active, self.gap, approach, before), law)
        self.normals = np.concatenate([np.arange(0, 3 * k, 3), np.arange(3 * k, len(law.bias))])
        problem = Problem(self.A, law.bias, law.friction, law.lower, law.upper, law.pyramid)
        self.p = AssembledProblem(problem, approach, before, law, np.zeros((0, 2, 3, 6)), self.axes, start, self.active)
        self.edge = EDGE * model.settings.tolerance * max(greatest_of(law.bias), greatest_of(approach))

    @cached_property
    def dbefore(self) -> Array:
        """Rates (m, directions) of velocities at the start of the step."""
        q, v = self.start
        rates: Array = self.G @ v.rates + self._seen_slopes(v.value) @ q.rates
        return rates

    def _targets(self) -> Array:
        """Return which contacts and rows (k + n,) may close to a gap of zero: all but those that bounce, and dry friction."""
        return np.concatenate([self.p.law.restitution == 0.0, ~self.model.rows.friction[self.active]])

    def _bias_rates(self) -> Array:
        """Return rates (m, directions) of the problem's velocities at fixed impulses."""
        closing = self._targets() & (self.gap > EDGE_OF_GAPS * self.model.settings.slop)
        db: Array = self.dapproach.copy()
        db[self.normals[closing]] += self.dgap[closing] @ self.start.q.rates / self.h
        return db

    def _rates_of(self, problem: Problem, f: Array, du: Array, dbound: Array | None = None) -> Array:
        """Return the rates of impulses that solve a problem, and record which of them are doubtful."""
        rates = ImpulseRates(problem, f, self.edge)
        df = rates(du, dbound)
        self.doubtful |= rates.doubtful
        return df

    def _solve(self) -> None:
        """Compute the impulses f, and their rates."""
        k, p, settings = self.count, self.p, self.model.settings
        zero = np.zeros_like(self.dapproach)
        self.doubtful = np.zeros(k + len(self.active), bool)
        self.impact, self.dimpact = np.zeros_like(self.p.start), zero
        struck = settings.in_step and is_struck(p, STRUCK * settings.tolerance * greatest_of(p.problem.b))
        if not (p.law.restitution.any() or struck):
            force = self.impulses.force[:k]
            self.f = np.concatenate([(p.axes @ force[:, :, None]).ravel(), self.impulses.next_row[self.active]])
            self.df = self._rates_of(p.problem, self.f, self.applied(self.f, zero)[1] + self._bias_rates())
        else:
            self._solve_with_impacts(zero)
        pressed = (self.f[self.normals] != 0.0) & self._targets()
        close = np.abs(self.gap) <= EDGE_OF_GAPS * settings.slop
        close |= np.abs(self.gap + settings.slop) <= EDGE_OF_GAPS * settings.slop
        self.doubtful |= pressed & close
        self.doubtful[:k] |= pressed[:k] & self.jumps
        fast = p.before[0 : 3 * k : 3] + settings.bounce
        bouncing = self.model.restitution[self.contacts.candidate] > 0.0
        self.doubtful[:k] |= bouncing & (np.abs(fast) <= self.edge)

    def _solve_with_impacts(self, zero: Array) -> None:
        """Solve the sequence of problems of `contact_solver.find_impulses`, each with its rates."""
        p, settings = self.p, self.model.settings
        solved: list[Stage] = []

        def solve(problem: Problem, start: Array, tolerance: float, _: object) -> Solution:
            solution: Solution = solve_problem(problem, start, tolerance)
            problem = problem._replace(b=problem.b.copy(), lower=problem.lower.copy(), upper=problem.upper.copy())
            solved.append(Stage(problem, solution.impulses, p.law.restitution.copy(), self._bias_rates()))
            return solution

        tolerance = settings.tolerance * greatest_of(p.problem.b)
        found = find_impulses_by(solve, p, settings, tolerance, impulse_work(self.count, len(self.active)))
        f, df = np.zeros_like(found.impulses), zero
        *impacts, last = solved
        parts = 1 if settings.in_step else 2  # stages of a round
        for k in range(0, len(impacts), parts):
            stages = impacts[k : k + parts]
            (g, dg), restitution = self._added(stages[0], f, df, self.dbefore - self.dapproach), stages[0].restitution
            more, dmore = (g, dg) if settings.in_step else self._added(stages[1], f, df)
            f, df = restitution_rates(p, restitution, settings.in_step, (f + more, df + dmore), (g, dg), self)
        if settings.in_step:
            self.impact, self.dimpact = f, df
        more, dmore = self._added(last, f, df)
        self.f, self.df = f + more, df + dmore

    def _added(self, stage: Stage, f: Array, df: Array, dearlier: Array | float = 0.0) -> ValueAndRates:
        """Return the impulses that a stage adds to f, and their rates; `dearlier` are rates of velocities at its time."""
        g = stage.impulses
        du = self.applied(f + g, df)[1] + stage.bias_rates + dearlier
        return g, self._rates_of(stage.problem, g, du, -df[3 * self.count :])

    # results

    def struck(self) -> Array:
        """Rates of the change of velocity by impacts at the start of the step."""
        return self._changed(self.impact, self.dimpact)

    def velocity(self) -> Array:
        """Rates of the velocity with impulses, in the axes of the step's start."""
        return self.dfree + self._changed(self.f, self.df)

    def _changed(self, f: Array, df: Array) -> Array:
        """Return the rates of the change of velocity by impulses."""
        rates: Array = self.base.da_dtau @ (self.G.T @ df) + self._response_slopes(f) @ self.start.q.rates
        return rates

    def displacement(self) -> Array:
        """Return rates of the displacement that separates overlapping bodies, as in `contact_solver.write_push`."""
        slop, h = self.model.settings.slop, self.h
        kept = np.flatnonzero(np.concatenate([np.ones(self.count, bool), ~self.model.rows.friction[self.active]]))
        index = self.normals[kept]
        Af, dAf = self.applied(self.f, self.df)
        opening, dopening = (self.p.approach + Af)[index], (self.dapproach + dAf)[index]
        opens = opening > self.edge
        farthest = -(np.where(kept < self.count, PARTING_SPEED, RETURN_SPEED) * h + slop)  # farthest allowed
        distance, far = np.maximum(self.gap[kept], farthest), self.gap[kept] < farthest
        self.doubtful[kept] |= np.abs(self.gap[kept] - farthest) <= EDGE_OF_GAPS * slop
        gap = distance + h * np.where(opens, opening, 0.0) + slop
        dgap = np.where(far[:, None], 0.0, self.dgap[kept]) @ self.start.q.rates + h * np.where(opens[:, None], dopening, 0.0)
        A = self.p.problem.A[np.ix_(index, index)]
        none = np.zeros(0)
        bounds = np.zeros(len(kept)), np.full(len(kept), np.inf)
        l = solve_problem(Problem(A, gap, none, *bounds), np.zeros(len(kept)), EDGE_OF_GAPS * slop).impulses
        left = A @ l + gap
        self.doubtful[kept] |= (np.abs(left) <= EDGE_OF_GAPS * slop) & (A.diagonal() * l <= EDGE_OF_GAPS * slop)
        whole, dwhole = np.zeros(len(self.f)), np.zeros_like(self.df)
        whole[index] = l
        pushing = np.flatnonzero(A.diagonal() * l > EDGE_OF_GAPS * slop)
        fixed = (self.applied(whole, dwhole)[1][index] + dgap)[pushing]
        dwhole[index[pushing]] = -np.linalg.lstsq(A[np.ix_(pushing, pushing)], fixed, rcond=1e-10)[0]
        d, dd = self.base.da_dtau @ (self.G.T @ whole), self._changed(whole, dwhole)
        y, dy = self.joints.times(d), self.joints.times(dd) + self.joints.slopes(d) @ self.start.q.rates
        j, most = int(np.abs(y).argmax()), float(self.found.stages.touching.report[PARTING])
        if abs(y[j]) > most:
            shrink = most / abs(y[j])
            dd = shrink * (dd - np.outer(d, dy[j] / y[j]))
        return dd

    def names(self) -> tuple[str, ...]:
        """Return the names of contacts, joint limits and dry friction whose state is doubtful."""
        touching = [self.stage.names[int(c)] for c in self.contacts.candidate]
        joints = [name_of_row(self.model.rows, int(r), self.found.forces) for r in self.active]
        return tuple(name for name, doubt in zip([*touching, *joints], self.doubtful, strict=True) if doubt)
