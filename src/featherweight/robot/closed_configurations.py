"""Configurations of robots with loops: closing of loops, random configurations, and steps between configurations."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
from numpy.polynomial import Polynomial

from ..algorithms.mechanisms import spanning
from ..algorithms.mechanisms.cluster_tree import ClusterTree
from ..engine.function import CompiledFunction
from ..engine.program import Output
from ..model import configuration
from ..model.configuration import DifferenceDerivatives, IntegrateDerivatives, Joints
from ..model.editing.notes import warn_caller
from .closed_step_functions import ClosedStepFunctions
from .closing.assembly import Assembly
from .closing.loops import FACING_AT_LEAST, Loops
from .closing.solver import newton_step
from .robot import Robot

Array = np.ndarray[Any, np.dtype[Any]]

SINGULAR = 1e16  # value of `singularity`: eight digits are lost
REGULAR = 1e8  # largest `singularity` of random configurations
NEWTON_STEPS = 30  # from a guess close by
ROUNDED_START = 5e-3  # [m, rad] misclosure in configurations of files, which often have three digits
ATTEMPTS = 100  # starting points around a guess for closing loops


class ClosedConfigurations(Robot):
    """Configurations of a robot with loops; q holds the coordinates of all joints except those that couplings determine."""

    _loops: Loops

    @property
    def _mechanism(self) -> ClusterTree:
        """The spanning tree and its clusters."""
        return self._loops.mechanism

    @cached_property
    def step_functions(self) -> ClosedStepFunctions:
        return ClosedStepFunctions(self, self._loops)

    @cached_property
    def _coordinates(self) -> Joints:
        return Joints(self._loops.coordinates)

    def neutral(self) -> Array:
        """Return a closed configuration (nq,) near that with every joint at zero.

        It is the same in every call. Raises ValueError if there is none.
        """
        return super().neutral()

    @cached_property
    def _neutral(self) -> Array:
        q = configuration.neutral(self._coordinates, self.nq)
        for a in self._loops.assemblies.values():
            x, left = a.search(a.around(a.neutral(), np.random.default_rng(0)), 1, first=1)
            if not len(x):
                raise ValueError(f"{self._not_found(a, left)}; give `close` a guess of your own")
            q[a.gap.places] = x[0]
        return q

    def random_configuration(
        self, rng: np.random.Generator | int | None = None, size: SupportsIndex | Sequence[SupportsIndex] | None = None
    ) -> Array:
        """Return random closed configurations (*size, nq) that are not singular. Raises ValueError if none is found.

        Loops are closed from random starting points, so all assemblies that can be reached from them occur. Configurations are
        within joint limits where such configurations are found.
        """
        rng = np.random.default_rng(rng)
        q = configuration.random_configuration(self._coordinates, self.nq, rng, size)
        flat = q.reshape(-1, self.nq)
        wanted = len(flat)
        for a in self._loops.assemblies.values():
            regular = REGULAR / len(self._loops.assemblies)
            x, left = a.search(a.anywhere(rng), wanted, first=1, accept=lambda x, a=a, most=regular: a.singularity(x) < most)
            if len(x) < wanted:
                raise ValueError(f"{self._not_found(a, left)}; {len(x)} of {wanted} were found in general position")
            flat[:, a.gap.places] = x
        return q

    def _not_found(self, a: Assembly, left: Array | None) -> str:
        text = f"{self.name}: no closed configuration was found"
        return text if left is None else f"{text}: the best of the attempts that failed leaves {a.told(left)} open"

    def close(self, q: Any, keep: Iterable[str] | None = None, attempts: int = ATTEMPTS) -> Array:
        """Return the configuration (..., nq) near q in which all loops are closed, as a new array.

        `keep` names joints of loops that keep their coordinates; the default is the independent joints. If a mechanism can be
        assembled in several ways, the guess q selects one. Newton's method closes the loops from q. If it fails, least squares
        closes them from up to `attempts` starting points (q and points around it), and the nearest result is returned. Raises
        ValueError, which gives the remaining misclosure, if no closed configuration is found, and for a wrong length of q.
        """
        q = self._checked("q", q, self.nq)
        rows = self._dependent_rows
        if keep is not None:
            held = {r for name in keep for r in self._rows_of(name)}
            rows = [r for r in self._loop_rows if r not in held]
        closed, good = self._newton(q.reshape(-1, self.nq), rows)
        for k in np.flatnonzero(~good):
            if attempts == 0:
                raise ValueError(
                    f"{self.name}: the loops cannot be closed from this guess; {self._told(closed[k])} is left open"
                )
            closed[k] = self._assembled(q.reshape(-1, self.nq)[k], set(rows), attempts)
        self.warn_where_singular(closed)
        return closed.reshape(q.shape)

    def _assembled(self, q: Array, rows: set[int], attempts: int) -> Array:
        """Close loops by least squares, after Newton's method has failed."""
        q = q.copy()
        for a in self._loops.assemblies.values():
            columns = np.array([k for k, r in enumerate(a.gap.rows) if r in rows], dtype=np.intp)
            x, left = a.nearest(q[a.gap.places], columns, attempts)
            if not len(x):
                best = "" if left is None else f": the best of {attempts} attempts leaves {a.told(left)} open"
                raise ValueError(f"{self.name}: the loops cannot be closed from this guess{best}")
            q[a.gap.places] = x[0]
        return q

    def _closed_near(self, name: str, q: Array) -> Array:
        """Close loops with the independent joints fixed if possible, otherwise with all joints free.

        Configurations of files often have three digits.
        """
        for rows in (self._dependent_rows, self._loop_rows):
            closed, good = self._newton(q[None], rows)
            if good[0]:
                self._tell_moved(name, q, closed[0])
                return np.asarray(closed[0])
        raise ValueError(
            f"{self.name}: configuration {name!r} leaves {self._told(q)} open, and it cannot be closed near there; correct it "
            "in the file, or close a guess of your own"
        )

    def _tell_moved(self, name: str, q: Array, closed: Array) -> None:
        """Warn if a configuration of the file violates loops or couplings by more than rounded numbers explain."""
        given = next((dict(c.coordinates) for c in self.model.configurations if c.name == name), {})
        place = {j.name: j.q_slice.start for j in self.joints if j.q_slice.stop > j.q_slice.start}
        for c in self._couplings:
            if c.joint in given and all(leader in place for leader, _ in c.terms):
                at = c.offset + sum(float(Polynomial([0.0, *p])(closed[place[leader]])) for leader, p in c.terms)
                if abs(at - given[c.joint][0]) > ROUNDED_START:
                    warn_caller(
                        f"{self.name}: configuration {name!r} has joint {c.joint!r} at {given[c.joint][0]:.3g}, and coupling "
                        f"{c.name!r} puts it at {at:.3g}, where it is; correct one of them in the file"
                    )
        left = [np.abs(a.gap.residual(q[None, a.gap.places])).max(initial=0.0) for a in self._loops.assemblies.values()]
        if max(left, default=0.0) > ROUNDED_START:
            moved = np.abs(closed - q)
            joint = next(j for j in self.joints if j.q_slice.start <= moved.argmax() < j.q_slice.stop)
            warn_caller(
                f"{self.name}: configuration {name!r} leaves {self._told(q)} open. It is closed before it is used, which moves "
                f"a coordinate of joint {joint.name!r} by {moved.max():.3g}, the most of all; correct the file, or close a "
                "configuration of your own, where `keep` names the joints that stay (robot.close(q, keep=[...]))"
            )

    def _told(self, q: Array) -> str:
        """Describe the largest misclosure of a loop."""
        left = [(a, a.gap.residual(q[None, a.gap.places])) for a in self._loops.assemblies.values()]
        widest, r = max(left, key=lambda item: np.abs(item[1]).max(initial=0.0))
        return widest.told(r)

    def warn_where_singular(self, q: Array) -> None:
        """Issue a RuntimeWarning for q (..., nq) near a singular configuration of loops."""
        if self._dependent_rows and not (self.singularity(q) < SINGULAR).all():
            rows = set(self._dependent_rows)
            names = [j.name for j in self.model.joints if not rows.isdisjoint(range(j.v_slice.start, j.v_slice.stop))]
            warnings.warn(
                f"{self.name}: near a singular configuration, where the independent joints do not determine "
                f"{', '.join(names)}; results there are inaccurate or invalid. Choose other independent joints",
                RuntimeWarning,
                stacklevel=3,
            )

    def _rows_of(self, name: str) -> range:
        if name not in self._loops.joints:
            raise ValueError(f"{self.name} has no joint {name!r}")
        rows = self._loops.joints[name].v_slice
        return range(rows.start, rows.stop)

    @cached_property
    def _dependent_rows(self) -> list[int]:
        return [r for c in self._mechanism.clusters for r in c.dependent]

    @cached_property
    def _loop_rows(self) -> list[int]:
        return [r for c in self._mechanism.clusters if c.dependent for r in (*c.independent, *c.dependent)]

    def _newton(self, q: Array, rows: list[int]) -> tuple[Array, Array]:
        """Return the configurations after Newton's method with some rows free, and a mask of the closed configurations."""
        q, done = q.copy(), np.zeros(len(q), dtype=bool)
        exact, solved = self.step_functions.closing_tolerance, self.step_functions.solved
        if not self._dependent_rows:
            return q, ~done
        left = np.arange(len(q))
        for _ in range(NEWTON_STEPS):
            phi = self.residual(q[left])
            good = np.abs(phi[:, solved]).max(axis=1) < exact
            done[left[good]] = np.abs(phi[good]).max(axis=1, initial=0.0) <= max(exact, self._loops.tolerance)
            left, phi = left[~good], phi[~good]
            if not len(left) or not rows:
                break
            step = newton_step(self._closing_matrix(q[left])[:, solved][:, :, rows], phi[:, solved])
            q[left] = self._loops.moved(q[left], rows, step)
        if self._facings:
            done &= (self._facing(q) > FACING_AT_LEAST).all(axis=1)
        return q, done

    def opening(self, q: Any) -> Array:
        """Return the misclosure of loops (...) at q in excess of their contradiction: [m], or sines of angles."""
        return np.asarray(np.abs(self.residual(q)[..., self.step_functions.solved]).max(axis=-1, initial=0.0))

    @cached_property
    def integrate(self) -> Callable[..., Array]:  # type: ignore[override]  # loops are closed by what is no one function
        """The closed configuration reached from q with independent velocities v (..., nv) in a unit of time.

        Raises ValueError if the motion leads into a singular configuration or out of the workspace of the mechanism. For a
        robot with couplings and without loops, this is a compiled function.
        """
        return self._closed_step if self._dependent_rows else self.tangent_step

    def _closed_step(self, q: Any, v: Any) -> Array:
        return self.close(self.tangent_step(q, v), attempts=0)

    @cached_property
    def tangent_step(self) -> CompiledFunction:
        """The configuration reached from q with velocities v (nv) in a unit of time, along the tangent of loops.

        The velocities are those of independent joints. `close` closes the loops of the result again; `residual` gives their
        misclosure.
        """
        return self.step_functions.integrate

    @cached_property
    def _independent(self) -> list[int]:
        """The indices of the independent velocities among the velocities of joints in q."""
        return [self._loops.velocity_rows.index(r) for c in self._mechanism.clusters for r in c.independent]

    def integrate_derivatives(self, q: Any, v: Any) -> IntegrateDerivatives:
        """Return the Jacobians (..., nv, nv) of `integrate` with respect to independent velocities: dresult_dq, dresult_dv.

        Closing loops does not move independent joints, so the Jacobians are those of the joints' own groups. Raises as
        `require_whole_joints` does.
        """
        self.require_whole_joints()
        moved = self.spanning_velocity(q, v)[..., self._loops.velocity_rows]
        whole = configuration.integrate_derivatives(self._coordinates, q, moved)
        own = np.ix_(self._independent, self._independent)
        return IntegrateDerivatives(*(J[..., own[0], own[1]] for J in whole))

    def require_whole_joints(self) -> None:
        """Raise NotImplementedError if loops determine a part of a joint's velocities: closing loops moves it."""
        for j in self.joints:
            if j.v_slice.stop > j.v_slice.start and not j.independent:
                raise NotImplementedError(
                    f"{self.name}: derivatives of integrate do not support loops that determine a part of the velocities "
                    f"of joint {j.name!r}; make the whole joint independent or dependent"
                )

    def difference_derivatives(self, q0: Any, q1: Any) -> DifferenceDerivatives:
        """Return the Jacobians (..., nv, nv) of `difference` at closed configurations: dresult_dq0, dresult_dq1.

        They are taken with respect to independent velocities.
        """
        whole = configuration.difference_derivatives(self._coordinates, q0, q1)
        return DifferenceDerivatives(
            *(J[..., self._independent, :] @ self._moved_by(q) for J, q in zip(whole, (q0, q1), strict=True))
        )

    def _moved_by(self, q: Any) -> Array:
        """Return the velocities of joints in q (..., n, nv) for independent unit velocities."""
        G = self.spanning_velocity(np.asarray(q)[..., None, :], np.eye(self.nv))[..., self._loops.velocity_rows]
        return np.asarray(np.swapaxes(G, -1, -2))

    # functions of configurations

    @cached_property
    def residual(self) -> CompiledFunction:
        """Function of q: the residual of the constraints of all loops; [m] for points, sines of angles for axes."""
        return self._function(
            ClosedConfigurations.residual, spanning.residual, ("q",), Output("residual", (self.step_functions.constraints,))
        )

    @cached_property
    def _facing(self) -> CompiledFunction:
        return self._function(ClosedConfigurations._facing, spanning.facing, ("q",), Output("cosines", (self._facings,)))

    @cached_property
    def _facings(self) -> int:
        return sum(len(c.facings) for c in self._mechanism.clusters)

    @cached_property
    def _closing_matrix(self) -> CompiledFunction:
        shape = (self.step_functions.constraints, len(self.model.tree.parent))
        return self._function(ClosedConfigurations._closing_matrix, spanning.closing_matrix, ("q",), Output("K", shape))

    @cached_property
    def spanning_velocity(self) -> CompiledFunction:
        """Function of q, v: G v, the velocities of all joints of the spanning tree, in the order of the joints."""
        n = len(self.model.tree.parent)
        return self._function(ClosedConfigurations.spanning_velocity, spanning.velocity, ("q", "v"), Output("velocity", (n,)))

    @cached_property
    def singularity(self) -> CompiledFunction[Any]:
        """Function of q: the closeness of loops to a singular configuration.

        There, independent velocities do not determine the others. The measure is the sum over loops of |K_d|² / R_kk², where
        K_d is the part of the constraint matrix that belongs to dependent joints and R is its triangular factor. At 10²ᵏ,
        results lose about k digits.
        """
        return self._function(ClosedConfigurations.singularity, spanning.singularity, ("q",), Output("singularity", ()))
