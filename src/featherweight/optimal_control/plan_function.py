"""Solutions as a function of initial states, targets and parameters, with derivatives by the implicit function theorem.

At a solution the gradient of the cost by the controls u is zero, g(u, p) = 0, whatever the initial state and the parameters p
are. So u changes by du = -H⁻¹ (dg/dp) dp, where H = dg/du, and a cotangent u_bar becomes

    p_bar = -(dg/dp)ᵀ w        H w = u_bar

Motions follow from u and the initial state, so g is exact and comes from one pass through the knots backwards. Products with H
and with dg/dp are central differences of such passes. Conjugate gradients solve for w; Riccati's recursion with Gauss-Newton
curvature preconditions them, and takes a few iterations. Constraints that hold with a force are springs around the solution
with this force, whose rates are corrected as multipliers are (Hestenes 1969); other constraints have no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..robot.inverse_kinematics.tasks import PostureTask
from .layout import Layout
from .stage_functions import StageFunctions

Array = np.ndarray[Any, np.dtype[Any]]

STIFFNESS = 1e4  # of springs, times the weights of constraints
CORRECTIONS, CORRECTED = 10, 1e-6  # of the rates of their forces, and the relative change that ends them
DIFFERENCE = 1e-6  # of controls, relative to the largest
ITERATIONS, ACCURACY = 100, 1e-9  # of conjugate gradients


class SolvedArrays(NamedTuple):
    """Solutions of n problems."""

    q: Array  # (n, knots + 1, nq)
    v: Array  # (n, knots + 1, nv)
    u: Array  # (n, knots, nu)
    cost: Array  # (n,)
    multipliers: Array  # (n, rows)


class Slopes(NamedTuple):
    """A gradient by the controls, the initial state and the parameters of n problems."""

    u: Array  # (n, knots, nu)
    q: Array  # (n, nq)
    v: Array  # (n, nv)
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
        """Knots of the horizon, without its end."""
        return self.layout.knots

    @cached_property
    def _functions(self) -> list[KnotFunctions]:
        return [KnotFunctions(stage) for stage in self.layout.stages]

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
            if more not in (0, 1, 2) or tuple(x.shape[more:]) != core or before[-1:] not in ((), (1,), (self.knots + 1,)):
                raise ValueError(
                    f"{self.name}: {name} must have shape {core}, ({self.knots + 1} or 1, ...) to change along the "
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
        return SolvedArrays(plan.q, plan.v, plan.u, plan.cost, plan.multipliers)

    def pullback(self, solution: Sequence[Array], values: Sequence[Array], bars: Sequence[Array]) -> list[Array]:
        """Return the cotangents of all arguments, for the cotangents `bars` of q, v, u and cost at a solution.

        A cotangent of q is one of its coordinates, projected on the tangent space.
        """
        layout, given, solved = self.layout, self.given(values), SolvedArrays(*solution)
        flat = layout.parameters(solved.q[:, 0], given["targets"], given["parameters"])
        flat = np.broadcast_to(flat, (len(solved.q), layout.knots + 1, layout.size))
        found = SolutionSlopes(layout, self._functions, solved, flat).pullback(*bars)
        arrays = [found.q, found.v]
        for name, x in zip(self.names[2:], values, strict=True):
            whole = np.zeros((*found.parameters.shape[:2], int(np.prod(self.shapes[name]))))
            order, columns = layout.columns(name)
            whole[..., order] = found.parameters[..., columns]
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

    def __init__(self, layout: Layout, functions: list[KnotFunctions], solved: SolvedArrays, flat: Array) -> None:
        self.layout, self.flat, self.start = layout, flat, (solved.q[:, 0], solved.v[:, 0])
        self.knots = [functions[i] for i in np.repeat(np.arange(len(functions)), np.diff(layout.begin))]
        self.h = np.append(layout.steps, 1.0)
        self.u = solved.u
        laws, force = layout.laws, solved.multipliers
        self.active = laws.constraint & (force != 0.0)
        self.constraint, self.weight = laws.constraint, laws.weight
        self.width = np.where(laws.constraint, np.inf, laws.high)
        self.force = force
        *motion, self.rows = self.motion(self.u)
        self.riccati = NewtonSteps(self, *motion)

    # one pass forwards and one backwards

    def motion(self, u: Array) -> tuple[list[Array], list[Array], Array]:
        """Return configurations and velocities of all knots, and the rows (n, rows)."""
        (q, v), rows = ([x] for x in self.start), []
        for k, own in enumerate(self.knots[:-1]):
            found = own.step(self._known(k, q[k], v[k], u))
            q.append(found["ahead"])
            v.append(found["velocity"])
            rows.append(found["rows"])
        if self.knots[-1].rows:
            rows.append(self.knots[-1].step(self._known(len(q) - 1, q[-1], v[-1], u))["rows"])
        return q, v, np.concatenate(rows, axis=-1)

    def _known(self, k: int, q: Array, v: Array, u: Array) -> dict[str, Array]:
        known = {"q": q, "v": v, "h": self.h[k], "parameters": self.flat[:, k]}
        return known | ({"u": u[:, k]} if k < u.shape[1] else {})

    def forces(self, rows: Array) -> Array:
        """Return the derivative of the cost by each row (n, rows)."""
        small = np.clip(rows, -self.width, self.width)
        springs = self.force + STIFFNESS * self.weight * (rows - self.rows)
        return np.where(self.constraint, np.where(self.active, springs, 0.0), self.weight * small)

    def stiffness(self, rows: Array) -> Array:
        """Return the curvature of the cost by each row (n, rows), positive also where the cost is linear."""
        finite = np.where(np.isinf(self.width), np.abs(rows) + 1.0, self.width)
        curved = self.weight * finite / np.maximum(np.abs(rows), finite)
        return np.where(self.constraint, np.where(self.active, STIFFNESS * self.weight, 0.0), curved)

    def backwards(self, u: Array, motion: Any, rows_bar: Array | None, bars: Any = None) -> Slopes:
        """Return cotangents of the controls, the start and the parameters for those of all rows, or of q, v and u."""
        (q, v), layout = motion[:2], self.layout
        n, knots = u.shape[:2]
        u_bar, p_bar = np.zeros(u.shape), np.zeros(self.flat.shape)
        q_bar, v_bar = np.zeros(q[0].shape), np.zeros(v[0].shape)
        for k in range(knots, -1, -1):
            own = self.knots[k]
            if not own.end or (own.rows and rows_bar is not None):
                rows = np.zeros((n, own.rows)) if rows_bar is None else rows_bar[:, layout.rows[k] : layout.rows[k + 1]]
                known = self._known(k, q[k], v[k], u) | {"rows_bar": rows, "ahead_bar": q_bar, "velocity_bar": v_bar}
                found = own.pullback(known)
                q_bar, v_bar = (found.get(f"{x}_bar", np.zeros(y.shape)) for x, y in (("q", q[k]), ("v", v[k])))
                p_bar[:, k] = found.get("parameters_bar", 0.0)
                if not own.end:
                    u_bar[:, k] = found["u_bar"]
            if bars is not None:
                q_bar, v_bar = q_bar + bars[0][:, k], v_bar + bars[1][:, k]
                if k < knots:
                    u_bar[:, k] += bars[2][:, k]
        return Slopes(u_bar, q_bar, v_bar, p_bar)

    def gradient(self, u: Array) -> tuple[Array, ...]:
        """Return the gradient of the cost with controls u (n, knots, nu), and the rows."""
        motion = self.motion(u)
        return *self.backwards(u, motion, self.forces(motion[2])), motion[2]

    def rates(self, w: Array) -> tuple[Slopes, Array]:
        """Return the rates of the gradient and of the rows along a change w (n, knots, nu) of the controls."""
        size = np.abs(w).max(axis=(1, 2), keepdims=True)
        step = DIFFERENCE * (1.0 + np.abs(self.u).max(axis=(1, 2), keepdims=True)) / np.where(size > 0.0, size, 1.0)
        ends = [self.gradient(self.u + sign * step * w) for sign in (1.0, -1.0)]
        found = [(a - b) / (2.0 * step.reshape(-1, *[1] * (a.ndim - 1))) for a, b in zip(*ends, strict=True)]
        return Slopes(*found[:4]), found[4]

    # the implicit function theorem

    def pullback(self, q_bar: Array, v_bar: Array, u_bar: Array, cost_bar: Array) -> Slopes:
        """Return cotangents of the start and of the parameters for those of q, v, u and the cost; that of u is used up."""
        motion = self.motion(self.u)
        direct = self.backwards(self.u, motion, None, (q_bar, v_bar, u_bar))
        own = self.backwards(self.u, motion, self.forces(motion[2]))
        rates = self.rates_of_solution(motion, direct.u)
        each = cost_bar[:, None]
        return Slopes(
            np.zeros(u_bar.shape), direct.q - rates.q + each * own.q, direct.v - rates.v + each * own.v,
            each[..., None] * own.parameters - rates.parameters,
        )  # fmt: skip

    def rates_of_solution(self, motion: Any, b: Array) -> Slopes:
        """Return the rates of the gradient along the change w of controls that keeps active constraints, with H w = b."""
        force, w = np.zeros(self.rows.shape), np.zeros(b.shape)
        for _ in range(CORRECTIONS if self.active.any() else 1):
            held = self.backwards(self.u, motion, force)
            before, w = w, self.solved_for(b - held.u)
            along, rows = self.rates(w)
            force += np.where(self.active, STIFFNESS * self.weight * rows, 0.0)
            if (inner(w - before, w - before) <= CORRECTED**2 * inner(w, w)).all():
                break
        return Slopes(*(x + y for x, y in zip(along, held, strict=True)))

    def solved_for(self, b: Array) -> Array:
        """Return w (n, knots, nu) with H w = b, by preconditioned conjugate gradients (Hestenes and Stiefel 1952)."""
        w, r = np.zeros(b.shape), b.copy()
        z = self.riccati.step(r)
        p, before = z, inner(r, z)
        first = np.sqrt(np.abs(before))
        for _ in range(ITERATIONS):
            if (np.sqrt(np.abs(before)) <= ACCURACY * first).all():
                break
            along = self.rates(p)[0].u
            length = inner(p, along)
            alpha = np.where(length > 0.0, before / np.where(length > 0.0, length, 1.0), 0.0)
            w, r = w + alpha * p, r - alpha * along
            z = self.riccati.step(r)
            after = inner(r, z)
            p, before = z + after / np.where(before != 0.0, before, 1.0) * p, after
        return w


def inner(a: Array, b: Array) -> Array:
    """Return inner products (n, 1, 1)."""
    total: Array = (a * b).sum(axis=(1, 2), keepdims=True)
    return total


class NamedFunction:
    """A compiled function of arguments by their names; `inputs` and `outputs` are names."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.inputs, self.outputs = ([x.name for x in part] for part in (function.program.inputs, function.program.outputs))

    def __call__(self, known: dict[str, Array]) -> dict[str, Array]:
        results = self.function(*(known[name] for name in self.inputs))
        return dict(zip(self.outputs, results if len(self.outputs) > 1 else (results,), strict=True))


class KnotFunctions:
    """The functions of the knots of a stage."""

    def __init__(self, stage: StageFunctions) -> None:
        step = stage.only_rows if stage.end else stage.step
        self.rows, self.end, self.places = stage.rows, stage.end, stage.places
        if self.rows or not self.end:
            self.step, self.pullback = NamedFunction(step), NamedFunction(step.ambient.pullback)
            self.slopes = NamedFunction(stage.slopes)


class NewtonSteps:
    """Solutions of linear-quadratic problems along motions, with Gauss-Newton curvature: H⁻¹ approximately."""

    def __init__(self, at: SolutionSlopes, q: list[Array], v: list[Array]) -> None:
        layout, n = at.layout, at.layout.robot.nv
        force, stiffness = at.forces(at.rows), at.stiffness(at.rows)
        V = np.zeros((len(at.u), 2 * n, 2 * n))
        self.A: list[Array] = []
        self.B: list[Array] = []
        self.K: list[Array] = []
        self.inverse: list[Array] = []
        for k in range(at.u.shape[1], -1, -1):
            own, rows = at.knots[k], slice(layout.rows[k], layout.rows[k + 1])
            if own.end and not own.rows:
                continue
            known = at._known(k, q[k], v[k], at.u) | {"slope": force[:, rows], "stiffness": stiffness[:, rows]}
            found = own.slopes(known)
            Q = symmetric(found["hessian"], own.places, 2 * n + at.u.shape[2])
            if own.end:
                V = Q[:, : 2 * n, : 2 * n]
                continue
            F = self._ahead(found, layout.system.curved, at.h[k], n, Q.shape[1])
            Q += F.swapaxes(1, 2) @ V @ F
            inverse, across = np.linalg.inv(Q[:, 2 * n :, 2 * n :]), Q[:, 2 * n :, : 2 * n]
            K = inverse @ across
            V = Q[:, : 2 * n, : 2 * n] - across.swapaxes(1, 2) @ K
            V = 0.5 * (V + V.swapaxes(1, 2))
            for known_list, x in ((self.A, F[:, :, : 2 * n]), (self.B, F[:, :, 2 * n :]), (self.K, K), (self.inverse, inverse)):
                known_list.insert(0, x)

    @staticmethod
    def _ahead(found: dict[str, Array], curved: Any, h: float, n: int, width: int) -> Array:
        """Return the derivative of the next state by (dq, dv, du)."""
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
        """Return the change of controls of a problem with the linear cost -b (n, knots, nu)."""
        knots, p = b.shape[1], np.zeros((len(b), self.A[0].shape[2], 1))
        k = [p] * knots
        for i in range(knots - 1, -1, -1):
            slope = self.B[i].swapaxes(1, 2) @ p - b[:, i, :, None]
            k[i] = -self.inverse[i] @ slope
            p = self.A[i].swapaxes(1, 2) @ p - self.K[i].swapaxes(1, 2) @ slope
        w, x = np.empty(b.shape), np.zeros(p.shape)
        for i in range(knots):
            u = k[i] - self.K[i] @ x
            w[:, i] = u[..., 0]
            x = self.A[i] @ x + self.B[i] @ u
        return w


def symmetric(entries: Array, places: Sequence[tuple[int, int]], size: int) -> Array:
    """Return symmetric matrices (n, size, size) with entries (n, k) at places of the lower triangle."""
    found = np.zeros((len(entries), size, size))
    rows, columns = np.array(places, int).reshape(-1, 2).T
    found[:, rows, columns] = entries
    found[:, columns, rows] = entries
    return found
