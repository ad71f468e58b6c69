"""Solutions as a function of initial states, targets and parameters, with derivatives by the implicit function theorem.

At a solution the gradient of the cost by the controls u is zero, g(u, p) = 0, whatever the initial state and the parameters p
are. So u changes by du = -H⁻¹ (dg/dp) dp, where H = dg/du, and a cotangent u_bar becomes

    p_bar = -(dg/dp)ᵀ w        H w = u_bar

Motions follow from u and the initial state, so g is exact and comes from one pass through the knots backwards. Products with H
and with dg/dp are central differences of such passes. Conjugate gradients solve for w; Riccati's recursion with Gauss-Newton
curvature preconditions them, and takes a few iterations. Constraints that hold with a force are springs around the solution
with this force, whose rates are corrected as multipliers are (Hestenes 1969); other constraints have no effect.

If steps are free, the first control of a knot is the root of its step, as in `riccati`. It is a variable at the first knot of a
phase, unless it is at a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array, Matrix, Tensor, Vector
from ..robot.inverse_kinematics.tasks import PostureTask
from .laws import slopes_of_rows
from .layout import Layout
from .runge_kutta import StepMemory, motions
from .spans import LONGEST, ROOT
from .stage_functions import called_by_name
from .terms import PARAMETERS

STIFFNESS = 1e4  # of springs, times the weights of constraints
CORRECTIONS, CORRECTED = 10, 1e-6  # of the rates of their forces, and the relative change that ends them
DIFFERENCE, FREE_DIFFERENCE = 1e-6, 3e-5  # of controls, relative to the largest; gradients by free steps round more
ROUNDED = 1e-12  # differences of roots of steps from their bounds that count as none
ITERATIONS, ACCURACY = 100, 1e-9  # of conjugate gradients


class SolvedArrays(NamedTuple):
    """Solutions of n problems."""

    q: Tensor  # (n, knots + 1, nq)
    v: Tensor  # (n, knots + 1, nv)
    u: Tensor  # (n, knots, nu)
    cost: Vector  # (n,)
    steps: Matrix  # (n, knots) [s]
    multipliers: Matrix  # (n, rows)


class FollowedMotion(NamedTuple):
    """Motions of n problems, by knots."""

    u: Tensor  # (n, knots, controls), first the roots of steps if some are free
    q: list[Matrix]  # (n, nq) each
    v: list[Matrix]  # (n, nv) each
    rows: Matrix  # (n, rows)


class Slopes(NamedTuple):
    """A gradient by the controls, the initial state and the parameters of n problems."""

    u: Tensor  # (n, knots, controls)
    q: Matrix  # (n, nq)
    v: Matrix  # (n, nv)
    parameters: Array  # (n, knots + 1, numbers)


class PlanFunction:
    """Solutions of n problems, as a function of arrays; `OptimalControl.plan_function` makes it.

    `names` are those of its arguments: q (n, nq), v (n, nv), then targets and parameters (n, knots + 1 or 1, ...) as those of
    `OptimalControl.solve`, whose keywords `options` are.
    """

    def __init__(self, layout: Layout, solve: Callable[..., Any], options: dict[str, Any]) -> None:
        robot = layout.robot
        self.layout, self.solve, self.options, self.name = layout, solve, options, f"solution for {robot.name}"
        self.sizes = {"q": robot.nq, "v": robot.nv, "u": len(layout.system.drives)}
        self.targets = tuple(slot.task.called for slot in layout.slots)
        self.postures = {slot.task.called for slot in layout.slots if isinstance(slot.task, PostureTask)}
        self.parameters = tuple(f.called for f in layout.functions)
        self.names = ("q", "v", *self.targets, *self.parameters)
        self.shapes: dict[str, tuple[int, ...]] = {slot.task.called: slot.shape for slot in layout.slots}
        """Shapes of targets and parameters without the axes of problems and knots."""
        self.shapes |= {f.called: (f.parameters,) for f in layout.functions}

    @property
    def knots(self) -> int:
        """Knots of plans, without the end."""
        return self.layout.knots

    @property
    def count(self) -> int:
        """Values of targets and parameters that change along the horizon."""
        return len(self.layout.first_knots)

    def arranged(self, q: Any, v: Any, targets: Mapping[str, Any], parameters: Mapping[str, Any], repeated: Any) -> list[Any]:
        """Return the arguments of the function for those of `OptimalControl.solve`, which are arrays of any library.

        `repeated` broadcasts such an array to a shape. A posture without a target is q, as in `solve`. Raises ValueError for
        names that are missing or unknown, and for wrong shapes.
        """
        n = q.shape[0] if q.ndim == 2 else 1
        given = {**dict.fromkeys(self.postures, q[..., None, :] if q.ndim == 2 else q), **targets, **parameters}
        if {*given} != {*self.names[2:]}:
            wanted, found = (", ".join(sorted(names)) or "none" for names in (self.names[2:], given))
            raise ValueError(f"{self.name}: targets and parameters must be {wanted}; got {found}")
        arrays = []
        for name, x in (("q", q), ("v", v)):
            if tuple(x.shape) not in ((self.sizes[name],), (n, self.sizes[name])):
                shape = f"({self.sizes[name]},), or an axis of problems more"
                raise ValueError(f"{self.name}: {name} must have shape {shape}; got {tuple(x.shape)}")
            arrays.append(repeated(x, (n, self.sizes[name])))
        for name in self.names[2:]:
            x, core = given[name], self.shapes[name]
            more = x.ndim - len(core)
            before = tuple(x.shape[:more])
            if more not in (0, 1, 2) or tuple(x.shape[more:]) != core or before[-1:] not in ((), (1,), (self.count,)):
                raise ValueError(
                    f"{self.name}: {name} must have shape {core}, ({self.count} or 1, ...) to change along the "
                    f"horizon, or an axis of problems more; got {tuple(x.shape)}"
                )
            arrays.append(repeated(x[(None,) * (2 - more)], (n, *(before[-1:] or (1,)), *core)))
        return arrays

    def given(self, values: Sequence[Array]) -> dict[str, Any]:
        """Return targets and parameters by names."""
        named = dict(zip(self.names[2:], values, strict=True))
        return {"targets": {x: named[x] for x in self.targets}, "parameters": {x: named[x] for x in self.parameters}}

    def __call__(self, q: Array, v: Array, *values: Array) -> SolvedArrays:
        """Return the solutions. Raises ValueError if the solver does not converge for some of them."""
        plan = self.solve(q, v, **self.given(values), **self.options)
        if not plan.converged.all():
            failed = np.flatnonzero(~plan.converged)
            raise ValueError(
                f"{self.name}: {len(failed)} of {len(plan.converged)} problems have no solution that could be differentiated, "
                f"problem {failed[0]} first: {plan.reason[failed[0]]}; allow more iterations, or change the problem"
            )
        return SolvedArrays(plan.q, plan.v, plan.u, plan.cost, plan.dt, plan.multipliers)

    def pullback(self, solution: Sequence[Array], values: Sequence[Array], bars: Sequence[Array]) -> list[Array]:
        """Return the cotangents of all arguments, for the cotangents `bars` of q, v, u, cost and steps at a solution.

        Those of steps may be left out. A cotangent of q is one of its coordinates, projected on the tangent space.
        """
        layout, given, solved = self.layout, self.given(values), SolvedArrays(*solution)
        flat = layout.parameters(solved.q[:, 0], given["targets"], given["parameters"])
        flat = np.broadcast_to(flat, (len(solved.q), layout.knots + 1, layout.size))
        start_q, start_v, p_bar = SolutionSlopes(layout, solved, flat).pullback(*bars)
        p_bar = np.add.reduceat(p_bar, layout.first_knots, axis=1)
        arrays = [start_q, start_v]
        for name, x in zip(self.names[2:], values, strict=True):
            whole = np.zeros((*p_bar.shape[:2], int(np.prod(self.shapes[name]))))
            order, columns = layout.columns(name)
            whole[..., order] = p_bar[..., columns]
            arrays.append(summed(whole.reshape(*whole.shape[:2], *self.shapes[name]), x.shape))
        return arrays

    def __repr__(self) -> str:
        return f"<{self.name}: function of {', '.join(self.names)}>"


def summed(x: Array, shape: tuple[int, ...]) -> Array:
    """Return an array summed over the axes along which `shape` was repeated."""
    axes = tuple(i for i, (a, b) in enumerate(zip(x.shape, shape, strict=True)) if a != b)
    total: Array = x.sum(axis=axes, keepdims=True)
    return total


class SolutionSlopes:
    """Derivatives at the solutions of n problems, whose parameters are `flat` (n, knots + 1, numbers)."""

    def __init__(self, layout: Layout, solved: SolvedArrays, flat: Array) -> None:
        self.layout, self.flat, self.start, self.u = layout, flat, (solved.q[:, 0], solved.v[:, 0]), solved.u
        self.free, self.first_knots = int(layout.system.free), np.flatnonzero(layout.tied == 0)
        """The first knots of phases, which have steps of their own."""
        if self.free:
            roots = layout.roots(solved.steps)
            self.u = np.concatenate([roots[:, :, None], solved.u], axis=2)
            self.chosen = (layout.tied == 0) & (layout.least < roots - ROUNDED) & (roots < 1.0 - ROUNDED)
        self.stages = [layout.stages[i] for i in layout.stage_of_knot]
        self.multipliers = solved.multipliers
        self.active = layout.laws.constraint & (solved.multipliers != 0.0)
        self.at = self.motion(self.u)
        self.newton = NewtonSteps(self)

    # one pass forwards and one backwards

    def motion(self, u: Array) -> FollowedMotion:
        """Return the motion with controls u (n, knots, controls)."""
        (q, v), rows = ([x] for x in self.start), []
        for k, stage in enumerate(self.stages):
            if stage.end and not stage.rows:
                continue
            found = called_by_name(stage.step, self.arguments(k, q[k], v[k], u))
            rows.append(found["rows"])
            if not stage.end:
                q.append(found["ahead"])
                v.append(found["velocity"])
        return FollowedMotion(u, q, v, np.concatenate(rows, axis=-1))

    def arguments(self, k: int, q: Array, v: Array, u: Array) -> dict[str, Array]:
        """Return the arguments of the functions of a knot."""
        longest = self.layout.h[k]
        known = {"q": q, "v": v, "h": longest, PARAMETERS: self.flat[:, k]}
        if k < u.shape[1]:
            known["u"] = u[:, k, self.free :]
            if self.stages[k].free:
                root = u[:, self.first_knots[self.first_knots <= k][-1], 0]
                known |= {LONGEST: longest, ROOT: root, "h": longest * root * root}
        return known

    def slopes(self, rows: Array) -> tuple[Array, Array]:
        """Return the derivative of the cost by each row (n, rows), and its curvature, which is not negative."""
        force, curvature = slopes_of_rows(self.layout.laws, rows)
        spring = STIFFNESS * self.layout.laws.weight
        constrained = self.multipliers + spring * (rows - self.at.rows)
        return np.where(self.active, constrained, force), np.where(self.active, spring, curvature)

    def backwards(self, motion: FollowedMotion, rows_bar: Array, bars: Sequence[Array] = ()) -> Slopes:
        """Return cotangents of the controls, the start and the parameters for those of all rows.

        With `bars`, those of q, v and the controls are added.
        """
        (u, q, v, _), rows = motion, self.layout.rows
        u_bar, p_bar = np.zeros(u.shape), np.zeros(self.flat.shape)
        q_bar, v_bar = np.zeros(q[0].shape), np.zeros(v[0].shape)
        for k in range(u.shape[1], -1, -1):
            stage = self.stages[k]
            if stage.rows or not stage.end:
                own = {"rows_bar": rows_bar[:, rows[k] : rows[k + 1]], "ahead_bar": q_bar, "velocity_bar": v_bar}
                found = called_by_name(stage.step.ambient.pullback, self.arguments(k, q[k], v[k], u) | own)
                q_bar, v_bar = (found.get(f"{x}_bar", np.zeros(y.shape)) for x, y in (("q", q[k]), ("v", v[k])))
                p_bar[:, k] = found.get(f"{PARAMETERS}_bar", 0.0)
                if not stage.end:
                    u_bar[:, k, self.free :] = found["u_bar"]
                    if stage.free:
                        u_bar[:, k, 0] = found[f"{ROOT}_bar"]
            if bars:
                q_bar, v_bar = q_bar + bars[0][:, k], v_bar + bars[1][:, k]
                if not stage.end:
                    u_bar[:, k] += bars[2][:, k]
        if self.free:
            by_phases = np.add.reduceat(u_bar[:, :, 0], self.first_knots, axis=1)
            u_bar[:, :, 0] = 0.0
            u_bar[:, self.first_knots, 0] = by_phases * self.chosen[:, self.first_knots]
        return Slopes(u_bar, q_bar, v_bar, p_bar)

    def gradient(self, u: Array) -> tuple[Array, ...]:
        """Return the gradient of the cost with controls u (n, knots, controls), and the rows."""
        motion = self.motion(u)
        return *self.backwards(motion, self.slopes(motion.rows)[0]), motion.rows

    def rates(self, w: Array) -> tuple[Slopes, Array]:
        """Return the rates of the gradient and of the rows along a change w (n, knots, controls)."""
        size = np.abs(w).max(axis=(1, 2), keepdims=True)
        step = FREE_DIFFERENCE if self.free else DIFFERENCE
        step = step * (1.0 + np.abs(self.u).max(axis=(1, 2), keepdims=True)) / np.where(size > 0.0, size, 1.0)
        ends = [self.gradient(self.u + sign * step * w) for sign in (1.0, -1.0)]
        found = [(a - b) / (2.0 * step.reshape(-1, *[1] * (a.ndim - 1))) for a, b in zip(*ends, strict=True)]
        return Slopes(*found[:4]), found[4]

    # the implicit function theorem

    def pullback(
        self, q_bar: Array, v_bar: Array, u_bar: Array, cost_bar: Array, steps_bar: Any = 0.0
    ) -> tuple[Array, Array, Array]:
        """Return cotangents of q and v at the start and of the parameters for those of q, v, u, the cost and the steps."""
        if self.free:
            roots_bar = 2.0 * self.layout.steps * self.u[:, :, 0] * steps_bar
            u_bar = np.concatenate([roots_bar[:, :, None], u_bar], axis=2)
        direct = self.backwards(self.at, np.zeros(self.at.rows.shape), (q_bar, v_bar, u_bar))
        own = self.backwards(self.at, self.slopes(self.at.rows)[0])
        rates, each = self.rates_of_solution(direct.u), cost_bar[:, None]
        return (
            direct.q - rates.q + each * own.q, direct.v - rates.v + each * own.v,
            each[..., None] * own.parameters - rates.parameters,
        )  # fmt: skip

    def rates_of_solution(self, b: Array) -> Slopes:
        """Return the rates of the gradient along the change w of controls that keeps active constraints, with H w = b."""
        force, w = np.zeros(self.at.rows.shape), np.zeros(b.shape)
        for _ in range(CORRECTIONS if self.active.any() else 1):
            of_multipliers = self.backwards(self.at, force)
            before, w = w, self.solved_for(b - of_multipliers.u)
            along, rows = self.rates(w)
            force += np.where(self.active, STIFFNESS * self.layout.laws.weight * rows, 0.0)
            if (inner(w - before, w - before) <= CORRECTED**2 * inner(w, w)).all():
                break
        return Slopes(*(x + y for x, y in zip(along, of_multipliers, strict=True)))

    def solved_for(self, b: Array) -> Array:
        """Return w (n, knots, controls) with H w = b, by preconditioned conjugate gradients (Hestenes and Stiefel 1952)."""
        w, r = np.zeros(b.shape), b.copy()
        z = self.newton.step(r)
        p, before = z, inner(r, z)
        first = np.sqrt(np.abs(before))
        for _ in range(ITERATIONS):
            if (np.sqrt(np.abs(before)) <= ACCURACY * first).all():
                break
            along = self.rates(p)[0].u
            length = inner(p, along)
            alpha = np.where(length > 0.0, before / np.where(length > 0.0, length, 1.0), 0.0)
            w, r = w + alpha * p, r - alpha * along
            z = self.newton.step(r)
            after = inner(r, z)
            p, before = z + after / np.where(before != 0.0, before, 1.0) * p, after
        return w


def inner(a: Array, b: Array) -> Array:
    """Return inner products (n, 1, 1)."""
    total: Array = (a * b).sum(axis=(1, 2), keepdims=True)
    return total


class Feedback(NamedTuple):
    """A knot of a linear-quadratic problem: changes x' = A x + B u ahead, and u = -K x - inverse slope, the least cost.

    A free step is the first control at the first knot of its phase, and the last state at the other knots.
    """

    A: Tensor  # (n, states of the next knot, states)
    B: Tensor  # (n, states of the next knot, controls)
    K: Tensor  # (n, controls, states)
    inverse: Tensor  # (n, controls, controls)


class NewtonSteps:
    """Solutions of linear-quadratic problems along motions, with Gauss-Newton curvature: H⁻¹ approximately."""

    def __init__(self, at: SolutionSlopes) -> None:
        layout, n, motion = at.layout, at.layout.robot.nv, at.at
        force, stiffness = at.slopes(motion.rows)
        memory, V = StepMemory(layout.system, layout.stages), np.zeros((len(motion.u), 2 * n, 2 * n))
        self.knots: list[Feedback] = []
        for k in range(motion.u.shape[1], -1, -1):
            stage, rows = at.stages[k], slice(layout.rows[k], layout.rows[k + 1])
            if stage.end and not stage.rows:
                continue
            own = {"slope": force[:, rows], "stiffness": stiffness[:, rows], "bend": np.zeros_like(force[:, rows])}
            arguments = at.arguments(k, motion.q[k], motion.v[k], motion.u)
            found = called_by_name(stage.slopes, arguments | own)
            if stage.steps:
                found["motion"] = motions(memory, layout.stage_of_knot[k], stage, arguments | found)
            Q = symmetric(found["hessian"], stage.places, 2 * n + motion.u.shape[2])
            if stage.end:
                V = Q[:, : 2 * n, : 2 * n]
                continue
            states = 2 * n + layout.tied[k]
            F = self._ahead(found, layout.system.apart, layout.h[k], n, Q.shape[1])[:, : V.shape[1]]
            Q += F.swapaxes(1, 2) @ V @ F
            if at.free and not layout.tied[k]:
                given = ~at.chosen[:, k]
                F[given, :, 2 * n] = Q[given, 2 * n] = Q[given, :, 2 * n] = 0.0
                Q[given, 2 * n, 2 * n] = 1.0
            inverse, across = np.linalg.inv(Q[:, states:, states:]), Q[:, states:, :states]
            K = inverse @ across
            V = Q[:, :states, :states] - across.swapaxes(1, 2) @ K
            V = 0.5 * (V + V.swapaxes(1, 2))
            self.knots.append(Feedback(F[:, :, :states], F[:, :, states:], K, inverse))
        self.knots.reverse()

    @staticmethod
    def _ahead(found: dict[str, Array], curved: Any, h: float, n: int, width: int) -> Array:
        """Return the derivative of the next state by (dq, dv, du), or of the next state and the step by (dq, dv, step, du)."""
        D = found["motion"][:, :, :width]
        F, at = D if D.shape[1] > n else np.concatenate([h * D, D], axis=1), 0
        F[:, range(n), range(n)] += 1.0
        for first, size in curved:
            block = slice(first, first + size)
            A, S = found["curved"][:, at : at + 2 * size * size].reshape(-1, 2, size, size).swapaxes(0, 1)
            F[:, block] = S @ D[:, block]
            F[:, block, block] += A
            at += 2 * size * size
        return F

    def step(self, b: Array) -> Array:
        """Return the change of controls of a problem with the linear cost -b (n, knots, controls)."""
        p, own = np.zeros((len(b), self.knots[-1].A.shape[1], 1)), list[Array]()
        for i, f in reversed([*enumerate(self.knots)]):
            slope = f.B.swapaxes(1, 2) @ p - b[:, i, -f.B.shape[2] :, None]
            own.append(-f.inverse @ slope)
            p = f.A.swapaxes(1, 2) @ p - f.K.swapaxes(1, 2) @ slope
        w, x = np.zeros(b.shape), np.zeros(p.shape)
        for i, f in enumerate(self.knots):
            u = own.pop() - f.K @ x
            w[:, i, -u.shape[1] :] = u[..., 0]
            x = f.A @ x + f.B @ u
        return w


def symmetric(entries: Array, places: Sequence[tuple[int, int]], size: int) -> Array:
    """Return symmetric matrices (n, size, size) with entries (n, k) at places of the lower triangle."""
    found = np.zeros((len(entries), size, size))
    rows, columns = np.array(places, int).reshape(-1, 2).T
    found[:, rows, columns] = entries
    found[:, columns, rows] = entries
    return found
