"""The layout of rows and parameters of an optimal control problem, and the functions that compute them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.knots import Drive
from ..array_types import Array
from ..checks import real_array
from ..robot.inverse_kinematics.targets import packed
from ..robot.inverse_kinematics.tasks import IkTask, PostureTask, TargetSlot, slots_of
from ..robot.robot import Robot
from .drives import with_drives
from .laws import Laws, new_laws, slopes_of_rows
from .passive_forces import PassiveForces
from .spans import LONGEST, ROOT, SEMI_IMPLICIT, Span, System
from .stage_functions import StageFunctions, called, called_by_name
from .terms import PARAMETERS, Added, Duration, Residual, for_rows, quantities

Placed = tuple[Added, int, int]  # a term, its first row within a knot, and the row after its last


class Motion(NamedTuple):
    """A motion and its controls, or many along leading axes."""

    q: Array  # (..., knots + 1, nq)
    v: Array  # (..., knots + 1, nv)
    u: Array  # (..., knots, nu)
    steps: Any = None  # (..., knots) [s], if some are free


class Results(NamedTuple):
    """Solutions of n problems."""

    q: Array
    v: Array
    u: Array
    steps: Array
    gains: Array
    multipliers: Array
    cost: Array
    violation: Array
    iterations: Array
    status: Array


class Layout:
    """The stages of a problem: spans of knots, and the end. `known` contains the functions of stages of other layouts."""

    def __init__(
        self,
        robot: Robot,
        drives: Sequence[Drive],
        spans: Sequence[Span],
        added: Sequence[Added],
        known: dict[Any, StageFunctions],
        passive: PassiveForces,
        integrator: str = SEMI_IMPLICIT,
        exact: bool = False,
    ) -> None:
        self.known = known
        self.robot, self.added, self.knots = robot, added, sum(span.knots for span in spans)
        self.steps = np.repeat([span.step for span in spans], [span.knots for span in spans])  # (knots,) [s]
        tasks: dict[str, Any] = {x.name: x.term for x in added if isinstance(x.term, IkTask)}
        self.slots = slots_of(robot, list(tasks.values())) if tasks else []
        self.functions = [x.term for x in added if isinstance(x.term, Residual) and x.term.parameters]
        begins = np.cumsum([self.slots[-1].end if self.slots else 0, *(f.parameters for f in self.functions)])
        self.first = {f.called: int(begin) for f, begin in zip(self.functions, begins, strict=False)}
        self.size = max(1, int(begins[-1]))  # parameters of one knot
        free = any(span.free for span in spans)
        self.system = System(with_drives(robot, drives), tuple(drives), self.size, passive, integrator, free, exact)
        self.begin = [int(x) for x in np.cumsum([0, *(span.knots for span in spans), 1])]
        self.numbers = numbers_of(spans)
        self.first_knots = np.flatnonzero(np.diff(self.numbers, prepend=-1)).tolist()  # with each number
        self.h = np.append(self.steps, 1.0)  # (knots + 1,) [s]; that of the end does not matter
        self.least = np.repeat([1.0 if x.least is None else x.least for x in spans], [span.knots for span in spans])
        """Least roots of steps relative to the longest (knots,); 1 if steps are not free."""
        own = [i == 0 or not spans[i - 1].impact for i in range(len(spans))]  # an impact has the step of its phase
        self.tied = np.array([x.free and (k > 0 or not own[i]) for i, x in enumerate(spans) for k in range(x.knots)], np.int64)
        """1 for knots that have the step of the knot before (knots,)."""
        self.stage_of_knot = np.repeat(np.arange(len(spans) + 1), np.diff(self.begin))  # (knots + 1,)
        self.stages: list[StageFunctions] = []
        self.terms_of_stage: list[list[Placed]] = []
        for i, span in enumerate([*spans, None]):
            self._add_stage(i, span)
        self.widths = np.repeat([stage.rows for stage in self.stages], np.diff(self.begin))  # (knots + 1,) rows of each knot
        self.rows = np.concatenate([[0], np.cumsum(self.widths)])  # (knots + 2,) the first row of each knot

    def _add_stage(self, i: int, span: Span | None) -> None:
        knots = self.knots_of_stage(i)
        here = [x for x in self.added if x.weight[knots].any()]
        if span and all({"q", "v"}.issuperset(quantities(x.term)) or isinstance(x.term, Duration) for x in here):
            raise ValueError(
                f"OptimalControl: no term of the knots from {self.begin[i]} on depends on controls; add one, for example "
                "add(featherweight.Effort(), weight=...)"
            )
        by_name = {slot.task.called: slot for slot in self.slots}
        tasks = [x for x in here if isinstance(x.term, IkTask)]
        terms = (*tasks, *(x for x in here if not isinstance(x.term, IkTask)))
        slots: list[TargetSlot] = [by_name[x.name] for x in tasks]
        free = span is not None and span.free  # its functions depend on which terms are costs, and on their widths
        own = (((x.name, x.exact), (x.constraint or (*np.ravel(x.high),)) if free else ()) for x in terms)
        key = (span and (span.contacts, span.impact, free), *own)
        if key not in self.known:
            system = self.system._replace(robot=self.robot) if span and span.impact else self.system
            self.known[key] = StageFunctions(system, span, slots, terms, self.first)
        stage = self.known[key]
        ends = np.cumsum([0, *stage.of_terms.sizes_of_terms()])
        self.stages.append(stage)
        placed = zip(terms, ends, ends[1:], strict=False)
        self.terms_of_stage.append([(x, int(first), int(stop)) for x, first, stop in placed])

    def knots_of_stage(self, i: int) -> slice:
        """Return the knots of a stage."""
        return slice(self.begin[i], self.begin[i + 1])

    def rows_of_stage(self, i: int) -> slice:
        """Return the rows of all knots of a stage."""
        return slice(int(self.rows[self.begin[i]]), int(self.rows[self.begin[i + 1]]))

    @cached_property
    def laws(self) -> Laws:
        """The penalties of all rows, with multipliers of zero."""
        laws = new_laws(int(self.rows[-1]))
        steps = np.append(self._without_impacts(self.steps), 1.0)
        for i, placed in enumerate(self.terms_of_stage):
            for k in range(self.begin[i], self.begin[i + 1]):
                for x, first, stop in placed:
                    at = slice(int(self.rows[k]) + first, int(self.rows[k]) + stop)
                    own = 1.0 if isinstance(x.term, IkTask) else x.term.weight
                    laws.constraint[at], laws.exact[at] = x.constraint, x.exact
                    laws.in_ticks[at] = "force" not in quantities(x.term)
                    laws.weight[at] = x.weight[k] * for_rows(x.name, "weight", own, stop - first, weights=True)
                    laws.low[at] = for_rows(x.name, "low", x.low, stop - first)
                    laws.high[at] = for_rows(x.name, "high" if x.constraint else "width", x.high, stop - first)
                    if (laws.low[at] > laws.high[at]).any() and x.constraint:
                        raise ValueError(f"OptimalControl: low of {x.name!r} exceeds high; got {x.low!r}, {x.high!r}")
                    if x.constraint and ((laws.low[at] == np.inf) | (laws.high[at] == -np.inf)).any():
                        raise ValueError(f"OptimalControl: no number is within {x.low!r} and {x.high!r}, bounds of {x.name!r}")
                    if not x.constraint:
                        laws.weight[at] *= steps[k]
                        if self.stages[i].free:
                            laws.high[at] = np.inf  # the rows have the width
        return laws

    # parameters

    def parameters(self, q: Array, targets: Mapping[str, Any] | None, parameters: Mapping[str, Any] | None) -> Array:
        """Return targets and parameters of functions as one array (..., knots + 1 or 1, numbers); q is the posture by default.

        Raises ValueError as `numbered_parameters` does.
        """
        return self.at_knots(self.numbered_parameters(q, targets, parameters))

    def at_knots(self, flat: Array) -> Array:
        """Return parameters of all knots, or of one (1, ...), for parameters by the numbers of knots."""
        return flat if flat.shape[-2] in (1, self.knots + 1) else flat[..., self.numbers, :]

    def numbered_parameters(self, q: Array, targets: Mapping[str, Any] | None, parameters: Mapping[str, Any] | None) -> Array:
        """Return targets and parameters of functions by the numbers of knots.

        Raises ValueError, which gives the name, for targets or parameters that are missing, unknown or of a wrong shape.
        """
        for name, x in (("targets", targets), ("parameters", parameters)):
            if x is not None and not isinstance(x, Mapping):
                raise ValueError(f"OptimalControl: {name} must be a dict with names as keys; got {type(x).__name__}")
        parts = [*self._targets(q, dict(targets or {})), *self._numbers(dict(parameters or {}))]
        if not parts:
            return np.zeros((1, self.size))
        leading = np.broadcast_shapes(*(x.shape[:-1] for x in parts))
        if leading[-1] not in (1, count := len(self.first_knots)):
            raise ValueError(
                f"OptimalControl: targets that change along the horizon need {count} values, one for each knot and the end; "
                f"got {leading[-1]}"
            )
        return np.concatenate([np.broadcast_to(x, (*leading, x.shape[-1])) for x in parts], axis=-1)

    def _targets(self, q: Array, given: dict[str, Any]) -> Iterator[Array]:
        if not self.slots:
            if given:
                raise ValueError(f"OptimalControl: there are targets of {', '.join(given)}, but the problem has no tasks")
            return
        postures = (slot.task.called for slot in self.slots if isinstance(slot.task, PostureTask))
        if given.keys() <= {slot.task.called for slot in self.slots}:
            given = dict.fromkeys(postures, q[..., None, :] if q.ndim > 1 else q) | given
        flat = packed(self.slots, given, False, "OptimalControl")
        yield flat[None] if flat.ndim == 1 else flat

    def _numbers(self, given: dict[str, Any]) -> Iterator[Array]:
        for function in self.functions:
            name, size = function.called, function.parameters
            if name not in given:
                raise ValueError(f"OptimalControl: parameters of {name!r} are missing; give parameters={{{name!r}: ...}}")
            x = real_array(f"OptimalControl: parameters of {name!r}", given.pop(name))
            if x.shape[-1:] != (size,) or not np.isfinite(x).all():
                raise ValueError(f"OptimalControl: parameters of {name!r} must be {size} finite numbers; got shape {x.shape}")
            yield x[None] if x.ndim == 1 else x
        if given:
            raise ValueError(f"OptimalControl: there is no function {next(iter(given))!r} with parameters")

    def columns(self, name: str) -> tuple[Array, slice]:
        """Return the entries of a target or of a function's parameters that are used, and their columns of `parameters`."""
        for slot in self.slots:
            if slot.task.called == name:
                return slot.order, slice(slot.begin, slot.end)
        size = next(f.parameters for f in self.functions if f.called == name)
        return np.arange(size), slice(self.first[name], self.first[name] + size)

    # values

    def roots(self, steps: ArrayLike) -> Array:
        """Return square roots of steps (..., knots) relative to the longest; an impact has that of the step after it."""
        whole, lengths = map(self._without_impacts, (self.steps, np.asarray(steps)))
        found: Array = np.sqrt(np.where(self.least < 1.0, lengths / whole, 1.0))
        return found

    def first_roots(self, steps: ArrayLike) -> Array:
        """Return roots of steps (knots,) within bounds, with which the solver starts."""
        roots = np.clip(self.roots(steps), self.least, 1.0)
        for k in np.flatnonzero(self.tied):
            roots[k] = roots[k - 1]
        return roots

    def _without_impacts(self, steps: Array) -> Array:
        """Return steps (..., knots) in which each impact counts as the step after it."""
        return np.where(self.steps > 0.0, steps, np.roll(steps, -1, axis=-1))

    def _known(self, motion: Motion, flat: Array, i: int) -> dict[str, Array]:
        """Return the arguments of a stage's functions."""
        knots = self.knots_of_stage(i)
        moving = {name: x[..., knots, :] for name, x in zip("qvu", motion, strict=False)}
        own = flat if flat.shape[-2] == 1 else flat[..., knots, :]
        if self.stages[i].free:
            moving |= {LONGEST: self.h[knots], ROOT: self.roots(motion.steps)[..., knots]}
        return {**moving, "h": self.h[knots], PARAMETERS: own}

    def rows_of(self, motion: Motion, flat: Array) -> Iterator[Array]:
        """Yield the rows (..., knots, rows) of each stage along motions."""
        for i, stage in enumerate(self.stages):
            if stage.rows:
                known = self._known(motion, flat, i)
                yield called(stage.only_rows, known)
            else:
                yield np.zeros((*motion.q.shape[:-2], self.begin[i + 1] - self.begin[i], 0))

    def gradients_of(self, motion: Motion, flat: Array) -> Iterator[Array]:
        """Yield the derivatives (knots, 2 nv + nu) of the costs of knots by their (q, v, u), for each stage; no constraints."""
        every = [*self.rows_of(motion, flat)]
        laws = slopes_of_rows(self.laws, np.concatenate([rows.ravel() for rows in every]))
        for i, (stage, rows) in enumerate(zip(self.stages, every, strict=True)):
            if not stage.rows:
                yield np.zeros((len(rows), 2 * self.robot.nv + self.system.controls))
                continue
            slope, stiffness = (x[self.rows_of_stage(i)].reshape(rows.shape) for x in laws)
            known = self._known(motion, flat, i) | {"slope": slope, "stiffness": stiffness, "bend": np.zeros(rows.shape)}
            yield called_by_name(stage.slopes, known)["gradient"]

    def forces_of(self, motion: Motion) -> list[Array]:
        """Return contact forces (knots, rows) of each phase."""
        found = []
        for i, stage in enumerate(self.stages[:-1]):
            known, forces = self._known(motion, np.zeros((1, self.size)), i), stage.forces
            found.append(np.zeros((len(known["h"]), 0)) if forces is None else called(forces, known))
        return found

    def results(self, count: int) -> Results:
        """Return memory for the results of `count` problems."""
        n, m = self.robot.nv, len(self.system.drives)
        shapes = (
            (self.knots + 1, self.robot.nq),
            (self.knots + 1, n),
            (self.knots, m),
            (self.knots,),
            (self.knots, m, 2 * n),
            (int(self.rows[-1]),),
        )
        return Results(*(np.empty((count, *shape)) for shape in (*shapes, (), ())), *np.zeros((2, count), np.int64))


def numbers_of(spans: Sequence[Span]) -> Array:
    """Return the numbers of all knots and of the end (knots + 1,), by which weights and targets are given."""
    numbered = np.repeat([span.numbered for span in spans], [span.knots for span in spans])
    return np.concatenate([[0], np.cumsum(numbered)])
