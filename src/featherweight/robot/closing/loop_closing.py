"""Closed configurations of robots with loops: near guesses, near configurations of files, and at random."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Polynomial

from ...algorithms.mechanisms import spanning
from ...array_types import Array
from ...checks import NAME, SeedOrNone, Size, argument, list_of, whole
from ...engine.function import CompiledFunction
from ...engine.program import Output
from ...model import configuration
from ...model.configuration import Joints
from ...model.editing.notes import warn_caller
from ...names import UnknownNameError, choose_from
from ..arguments import Q
from ..closed_step_functions import ClosedStepFunctions
from ..system import System
from .assembly import Assembly
from .loops import FACING_AT_LEAST, Loops
from .solver import newton_step

REGULAR = 1e8  # largest `singularity` of random configurations
NEWTON_STEPS = 30  # from a guess close by
ROUNDED_START = 5e-3  # [m, rad] misclosure in configurations of files, which often have three digits
ATTEMPTS = 100  # starting points around a guess for closing loops


class LoopClosing:
    """Closes the loops of a robot: Newton's method from a guess, and least squares if that fails.

    `residual` is the function of q for the constraints of all loops.
    """

    def __init__(self, robot: System, loops: Loops, steps: ClosedStepFunctions, residual: CompiledFunction) -> None:
        self.robot, self.steps, self.residual = robot, steps, residual
        self._loops = loops

    @cached_property
    def coordinates(self) -> Joints:
        """Coordinates of the joints in q, whose limits include those of joints that follow them in proportion."""
        lower, upper = self.robot.lower.tolist(), self.robot.upper.tolist()
        each = ((c, c.q.start) for c in self._loops.coordinates)
        return Joints(c._replace(lower=lower[k], upper=upper[k]) if c.type.nv == 1 else c for c, k in each)

    def neutral(self) -> Array:
        """Return a closed configuration (nq,) near that with every joint at zero. Raises ValueError if there is none."""
        q = configuration.neutral(self.coordinates, self.robot.nq)
        for a in self._loops.assemblies.values():
            x, left = a.search(a.around(a.neutral(), np.random.default_rng(0)), 1, first=1)
            if not len(x):
                raise ValueError(f"{self._not_found(a, left)}; give `close` a guess of your own")
            q[a.gap.places] = x[0]
        return q

    def random(self, rng: SeedOrNone, size: Size) -> Array:
        """Return random closed configurations (*size, nq) that are not singular. Raises ValueError if none is found."""
        rng = np.random.default_rng(rng)
        q = configuration.random_configuration(self.coordinates, self.robot.nq, rng, size)
        flat = q.reshape(-1, self.robot.nq)
        wanted = len(flat)
        for a in self._loops.assemblies.values():
            regular = REGULAR / len(self._loops.assemblies)
            x, left = a.search(a.anywhere(rng), wanted, first=1, accept=lambda x, a=a, most=regular: a.singularity(x) < most)
            if len(x) < wanted:
                raise ValueError(f"{self._not_found(a, left)}; {len(x)} of {wanted} were found in general position")
            flat[:, a.gap.places] = x
        return q

    def _not_found(self, a: Assembly, left: Array | None) -> str:
        text = f"{self.robot.name}: no closed configuration was found"
        return text if left is None else f"{text}: the best of the attempts that failed leaves {a.text_of(left)} open"

    def close(self, q: npt.ArrayLike, keep: Iterable[str] | None, attempts: int) -> Array:
        """Return the configuration (..., nq) near q in which all loops are closed; see `ClosedRobot.close`."""
        q = self.robot._checked("q", q, self.robot.nq)
        rows = self.dependent_rows
        argument(f"{self.robot.name}: attempts", attempts, whole(0))
        if keep is not None:
            kept = {r for name in argument(f"{self.robot.name}: keep", keep, list_of(NAME)) for r in self._rows_of(name)}
            rows = [r for r in self._loop_rows if r not in kept]
        closed, good = self._newton(q.reshape(-1, self.robot.nq), rows)
        for k in np.flatnonzero(~good):
            if attempts == 0:
                raise ValueError(
                    f"{self.robot.name}: the loops cannot be closed from this guess; {self._text_of(closed[k])} is left open"
                )
            closed[k] = self._assembled(q.reshape(-1, self.robot.nq)[k], set(rows), attempts)
        return closed.reshape(q.shape)

    def _assembled(self, q: Array, rows: set[int], attempts: int) -> Array:
        """Close loops by least squares, after Newton's method has failed."""
        q = q.copy()
        for a in self._loops.assemblies.values():
            columns = np.array([k for k, r in enumerate(a.gap.rows) if r in rows], dtype=np.intp)
            x, left = a.nearest(q[a.gap.places], columns, attempts)
            if not len(x):
                best = "" if left is None else f": the best of {attempts} attempts leaves {a.text_of(left)} open"
                raise ValueError(f"{self.robot.name}: the loops cannot be closed from this guess{best}")
            q[a.gap.places] = x[0]
        return q

    def near(self, name: str, q: Array) -> Array:
        """Return the closed configuration near a named configuration of the file, which often has three digits.

        The joints that the configuration names keep their coordinates if it names only some, otherwise the independent joints
        keep theirs; if neither is possible, all joints move.
        """
        named = self._named(name)
        own = {r for j in self.robot.model.joints if j.name in named for r in range(j.v_slice.start, j.v_slice.stop)}
        unnamed = [r for r in self._loop_rows if r not in own]
        for rows in (unnamed, self.dependent_rows, self._loop_rows):
            closed, good = self._newton(q[None], rows)
            if good[0]:
                self._warn_of_motion(name, q, closed[0])
                return np.asarray(closed[0])
        raise ValueError(
            f"{self.robot.name}: configuration {name!r} leaves {self._text_of(q)} open, and it cannot be closed near there; "
            "correct it in the file, or close a guess of your own"
        )

    def _warn_of_motion(self, name: str, q: Array, closed: Array) -> None:
        """Warn if a configuration of the file violates loops or couplings by more than rounded numbers explain."""
        what = f"{self.robot.name}: configuration {name!r}"
        given = self._named(name)
        place = {j.name: j.q_slice.start for j in self.robot.joints if j.q_slice.stop > j.q_slice.start}
        for c in self.robot._couplings:
            if c.joint in given and all(leader in place for leader, _ in c.terms):
                at = c.offset + sum(float(Polynomial([0.0, *p])(closed[place[leader]])) for leader, p in c.terms)
                if abs(at - given[c.joint][0]) > ROUNDED_START:
                    warn_caller(
                        f"{what} has joint {c.joint!r} at {given[c.joint][0]:.3g}, and "
                        f"coupling {c.name!r} puts it at {at:.3g}, where it is; correct one of them in the file"
                    )
        left = [np.abs(a.gap.residual(q[None, a.gap.places])).max(initial=0.0) for a in self._loops.assemblies.values()]
        if max(left, default=0.0) > ROUNDED_START:
            moved = np.zeros(len(q))
            for j in self.robot.joints:
                if j.name in given:
                    moved[j.q_slice] = np.abs(closed - q)[j.q_slice]
            if moved.max() <= ROUNDED_START:
                return
            joint = next(j for j in self.robot.joints if j.q_slice.start <= moved.argmax() < j.q_slice.stop)
            warn_caller(
                f"{what} leaves {self._text_of(q)} open. It is closed before it is used, which moves a coordinate of joint "
                f"{joint.name!r} by {moved.max():.3g}, the most of all; correct the file, or close a configuration of your "
                "own, where `keep` names the joints that stay (robot.close(q, keep=[...]))"
            )

    def _named(self, name: str) -> Mapping[str, Sequence[float]]:
        """Return the coordinates of the joints that a configuration of the file names."""
        return next((dict(c.coordinates) for c in self.robot.model.configurations if c.name == name), {})

    def _text_of(self, q: Array) -> str:
        """Describe the largest misclosure of a loop."""
        left = [(a, a.gap.residual(q[None, a.gap.places])) for a in self._loops.assemblies.values()]
        widest, r = max(left, key=lambda item: np.abs(item[1]).max(initial=0.0))
        return widest.text_of(r)

    def _rows_of(self, name: str) -> range:
        if name not in self._loops.joints:
            raise UnknownNameError(f"{self.robot.name} has no joint {choose_from(name, list(self._loops.joints))}")
        rows = self._loops.joints[name].v_slice
        return range(rows.start, rows.stop)

    @cached_property
    def dependent_rows(self) -> list[int]:
        return [r for c in self._loops.mechanism.clusters for r in c.dependent]

    @cached_property
    def _loop_rows(self) -> list[int]:
        return [r for c in self._loops.mechanism.clusters if c.dependent for r in (*c.independent, *c.dependent)]

    def _newton(self, q: Array, rows: list[int]) -> tuple[Array, Array]:
        """Return the configurations after Newton's method with some rows free, and a mask of the closed configurations."""
        q, done = q.copy(), np.zeros(len(q), dtype=bool)
        exact, solved = self.steps.closing_tolerance, self.steps.solved
        if not self.dependent_rows:
            return q, ~done
        left = np.arange(len(q))
        for _ in range(NEWTON_STEPS):
            phi = self.residual(q[left])
            good = np.abs(phi[:, solved]).max(axis=1) < exact
            done[left[good]] = np.abs(phi[good]).max(axis=1, initial=0.0) <= max(exact, self._loops.tolerance)
            left, phi = left[~good], phi[~good]
            if not len(left) or not rows:
                break
            step = newton_step(self.closing_matrix(q[left])[:, solved][:, :, rows], phi[:, solved])
            q[left] = self._loops.moved(q[left], rows, step)
        if self._facings:
            done &= (self.facing(q) > FACING_AT_LEAST).all(axis=1)
        return q, done

    @cached_property
    def facing(self) -> CompiledFunction:
        """Function of q: the cosines between axes that must point the same way."""
        return self.robot.bind("facing", spanning.facing, (Q,), (Output("cosines", (self._facings,)),))

    @cached_property
    def _facings(self) -> int:
        return sum(len(c.facings) for c in self._loops.mechanism.clusters)

    @cached_property
    def closing_matrix(self) -> CompiledFunction:
        """Function of q: the derivative of `residual` by the velocities of all joints of the spanning tree."""
        shape = (self.steps.constraints, len(self.robot.model.tree.parent))
        return self.robot.bind("closing_matrix", spanning.closing_matrix, (Q,), (Output("K", shape),))
