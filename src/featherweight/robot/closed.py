"""Robots with loops and couplings: the same functions, in the independent velocities."""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import Any, SupportsIndex

import numpy as np

from ..algorithms import aba, crba_ltdl, mechanisms
from ..algorithms.mechanisms import baselines, spanning
from ..algorithms.mechanisms import rnea as c_rnea
from ..algorithms.mechanisms.cluster_tree import ClusterTree, constraint_count, unconstrained
from ..algorithms.mechanisms.counterparts import counterpart
from ..engine.function import CompiledFunction, cheapest
from ..engine.program import Output
from ..model import configuration
from ..model.armature import with_armature
from ..model.configuration import Coordinates, DifferenceDerivatives, IntegrateDerivatives
from ..model.inertial_parameters import with_inertial_parameters
from ..model.model import MovingJoint
from ..model.topology import Topology
from ..model.types import WORLD
from .closing.loops import CLOSED, FACING_AT_LEAST, STEPS, Loops, newton_step
from .closing.soundness import loose_joint
from .robot import Robot

Array = np.ndarray[Any, np.dtype[Any]]

SINGULAR = 1e16  # of `singularity`: eight digits are lost
REGULAR = 1e8  # of random configurations

for _module in pkgutil.iter_modules(mechanisms.__path__, f"{mechanisms.__name__}."):
    import_module(_module.name)  # so that its kernels are registered


class ClosedRobot(Robot):
    """A robot with loops or couplings (Chignoli, Adrian, Kim and Wensing 2023).

    Joints that a coupling determines do not appear in q. Joints of loops do, and q must satisfy the loops (`close`,
    `residual`). Velocities, accelerations and joint forces are those of the independent joints: `joints[k].independent`.
    """

    def __init__(self, loops: Loops, execution: str = "auto") -> None:
        if execution == "rolled":
            raise ValueError(
                f"{loops.model.name}: functions of a robot with loops or couplings are traced; rolled is not offered"
            )
        super().__init__(loops.model, "traced" if execution == "auto" else execution)
        self.loops = loops

    def __reduce__(self) -> tuple[Any, ...]:
        return ClosedRobot, (self.loops, self.execution)

    def with_armature(self, armature: Mapping[str, float]) -> ClosedRobot:
        return ClosedRobot(self.loops.with_model(with_armature(self.model, armature)), self.execution)

    def with_inertial_parameters(self, parameters: Any) -> ClosedRobot:
        loops = self.loops.with_model(with_inertial_parameters(self.model, parameters))
        loops.require_mass()
        return ClosedRobot(loops, self.execution)

    @property
    def mechanism(self) -> ClusterTree:
        """The spanning tree and its clusters."""
        return self.loops.mechanism

    @property
    def system(self) -> Any:
        return self.mechanism

    @property
    def parent(self) -> tuple[int, ...]:
        return self.mechanism.parent

    @cached_property
    def topology(self) -> Topology:
        """The rows of the spanning tree, each with the output body of its cluster as its parent."""
        tree, clusters = self.mechanism.tree, self.mechanism.clusters
        owner = self.mechanism.owner
        return Topology(
            [tree.parent[r] if unconstrained(clusters[owner[r]]) else clusters[owner[r]].output for r in range(len(owner))]
        )

    @property
    def closed(self) -> bool:
        return True

    def kernel(self, kernel: Any) -> Any:
        return counterpart(kernel)

    @property
    def nq(self) -> int:
        return self.loops.nq

    @property
    def nv(self) -> int:
        return len(self.mechanism.parent)

    @cached_property
    def joints(self) -> tuple[MovingJoint, ...]:
        """Moving joints; followers have no part of q, and joints that depend on others none of v."""
        place = {r: c.start + k for c in self.mechanism.clusters for k, r in enumerate(c.independent)}
        joints, q = [], 0
        for j in self.model.joints:
            width = 0 if j.v_slice.start in self.loops.followers else j.type.nq
            velocities = [place[r] for r in range(j.v_slice.start, j.v_slice.stop) if r in place]
            v = slice(velocities[0], velocities[-1] + 1) if velocities else slice(0, 0)
            joints.append(replace(j, q_slice=slice(q, q + width), v_slice=v))
            q += width
        return tuple(joints)

    @property
    def loop_ends(self) -> tuple[tuple[str | None, str | None], ...]:
        bodies = {f.name: f.body for f in reversed(self.model.frames)}  # of links, which come first
        ends = ((loop.predecessor, loop.successor) for loop in self.loops.d.loops)
        return tuple((bodies.get(a or WORLD), bodies.get(b or WORLD)) for a, b in ends)

    @property
    def clusters(self) -> tuple[tuple[str, ...], ...]:
        """The names of joints that move together."""
        names = {r: j.name for j in self.model.joints for r in range(j.v_slice.start, j.v_slice.stop)}
        return tuple(tuple(dict.fromkeys(names[r] for r in c.rows)) for c in self.mechanism.clusters)

    def report(self) -> dict[str, str]:
        """What the file holds that dynamics does not use, and constraints that follow from others."""
        unused = super().report()
        left_out = [(self.loops.redundant(c), self.loops.names(c)) for c in self.mechanism.clusters]
        if texts := [f"{count} of {names}" for count, names in left_out if count]:
            unused["redundant constraints"] = "; ".join(texts)
        return unused

    # the configuration space

    @cached_property
    def _coordinates(self) -> list[Coordinates]:
        return self.loops.coordinates

    def neutral(self) -> Array:
        """A closed configuration (nq,) near that with every joint at zero, always the same; raises ValueError for none."""
        zero, rng = super().neutral(), np.random.default_rng(0)
        for attempt in range(30):  # Newton's method may not start where bars are in line: from somewhere near, then
            move = 0.05 * attempt * rng.uniform(-1.0, 1.0, len(self.loops.velocity_rows))
            q, good = self._newton(configuration.integrate(self._coordinates, zero, move)[None], self._loop_rows)
            if good[0]:
                return np.asarray(q[0])
        raise ValueError(f"{self.name}: no closed configuration was found near zero; give `close` a guess of your own")

    def random_configuration(
        self, rng: np.random.Generator | int | None = None, size: SupportsIndex | Sequence[SupportsIndex] | None = None
    ) -> Array:
        """Closed configurations (*size, nq) in general position; raises ValueError where none is found."""
        rng = np.random.default_rng(rng)
        shape = configuration.shape_of(size)
        wanted = int(np.prod(shape, dtype=int))
        q = np.asarray(configuration.random_configuration(self._coordinates, self.nq, rng, wanted))
        open_ = np.arange(wanted)
        for attempt in range(60):
            closed, good = self._newton(q[open_], self._dependent_rows if attempt % 2 else self._loop_rows)
            if self._dependent_rows:
                good &= self.singularity(closed) < REGULAR
            q[open_[good]] = closed[good]
            open_ = open_[~good]
            if not len(open_):
                return q.reshape(*shape, self.nq)
            q[open_] = configuration.random_configuration(self._coordinates, self.nq, rng, len(open_))
        raise ValueError(f"{self.name}: no closed configuration was found for {len(open_)} of {wanted} random guesses")

    def close(self, q: Any, keep: Iterable[str] | None = None) -> Array:
        """The configuration (..., nq) near q in which all loops are closed.

        `keep` names joints of loops that stay where they are; the independent ones unless given. Raises ValueError if
        Newton's method does not find one.
        """
        q = np.asarray(q, dtype=np.float64)
        rows = self._dependent_rows
        if keep is not None:
            held = {r for name in keep for r in self._rows_of(name)}
            rows = [r for r in self._loop_rows if r not in held]
        closed, good = self._newton(q.reshape(-1, self.nq), rows)
        if not good.all():
            worst = np.abs(self.residual(closed)).max()
            raise ValueError(
                f"{self.name}: the loops cannot be closed from this guess; {worst:.3g} is left of their constraints"
                + (", and axes point the wrong way" if worst < 1e-9 else "")
            )
        self._require_regular(closed)
        return closed.reshape(q.shape)

    def _closed_near(self, name: str, q: Array) -> Array:
        """With the independent joints where they are, if that can be; files have three digits, and constraints give way."""
        for rows in (self._dependent_rows, self._loop_rows):
            closed, good = self._newton(q[None], rows)
            if good[0]:
                return np.asarray(closed[0])
        left = np.abs(self.residual(q)).max()
        raise ValueError(
            f"{self.name}: configuration {name!r} leaves loops open ({left:.3g} is left of their constraints), and they cannot "
            "be closed near it; correct it in the file, or close a guess of your own"
        )

    def _require_regular(self, q: Array) -> None:
        """Warn of configurations near singular ones."""
        if self._dependent_rows and not (self.singularity(q) < SINGULAR).all():
            rows = set(self._dependent_rows)
            names = [j.name for j in self.model.joints if not rows.isdisjoint(range(j.v_slice.start, j.v_slice.stop))]
            warnings.warn(
                f"{self.name}: near a singular configuration, where the independent joints do not determine "
                f"{', '.join(names)}; results lose digits there, or have no meaning. Other independent joints may be regular",
                RuntimeWarning,
                stacklevel=3,
            )

    def _rows_of(self, name: str) -> range:
        if name not in self.loops.joints:
            raise ValueError(f"{self.name} has no joint {name!r}")
        rows = self.loops.joints[name].v_slice
        return range(rows.start, rows.stop)

    @cached_property
    def _dependent_rows(self) -> list[int]:
        return [r for c in self.mechanism.clusters for r in c.dependent]

    @cached_property
    def _loop_rows(self) -> list[int]:
        return [r for c in self.mechanism.clusters if c.dependent for r in (*c.independent, *c.dependent)]

    def _newton(self, q: Array, rows: list[int]) -> tuple[Array, Array]:
        """Configurations after Newton's method with some rows moved, and which of them are closed."""
        done = np.zeros(len(q), dtype=bool)
        if not self._dependent_rows:
            return q, ~done
        q = q.copy()
        left = np.arange(len(q))
        for _ in range(STEPS):
            phi = self.residual(q[left])
            good = np.abs(phi).max(axis=1) < CLOSED * max(1.0, self.loops.size)
            done[left[good]] = True
            left, phi = left[~good], phi[~good]
            if not len(left) or not rows:
                break
            step = newton_step(self._closing_matrix(q[left])[:, :, rows], phi)
            q[left] = self.loops.moved(q[left], rows, step)
        if self._facings:
            done &= (self._facing(q) > FACING_AT_LEAST).all(axis=1)
        return q, done

    def integrate(self, q: Any, v: Any) -> Array:
        """The closed configuration that independent velocities v (..., nv), held for a unit of time, lead to from q."""
        return self.close(self.tangent_step(q, v))

    def tangent_step(self, q: Any, v: Any) -> Array:
        """Where independent velocities v (..., nv), held for a unit of time, lead to from q as long as loops do not bend them:
        `close` brings it back, `residual` says how far loops are open."""
        moved = self.spanning_velocity(q, v)[..., self.loops.velocity_rows]
        return configuration.integrate(self._coordinates, q, moved)

    def difference(self, q0: Any, q1: Any) -> Array:
        """The independent velocities (..., nv) that lead from q0 to q1 in a unit of time."""
        whole = configuration.difference(self._coordinates, q0, q1)
        return np.asarray(whole[..., self._independent])

    @cached_property
    def _independent(self) -> list[int]:
        """The places of the independent velocities among those of joints in q."""
        return [self.loops.velocity_rows.index(r) for c in self.mechanism.clusters for r in c.independent]

    def integrate_derivatives(self, q: Any, v: Any) -> IntegrateDerivatives:
        """Jacobians (..., nv, nv) of `integrate` along independent velocities: dresult_dq, dresult_dv.

        Closing loops leaves independent joints where they are, so these are those of their own groups. Raises
        NotImplementedError where loops leave a joint a part of its velocities: closing them moves it.
        """
        for j in self.joints:
            if j.v_slice.stop > j.v_slice.start and not j.independent:
                raise NotImplementedError(
                    f"{self.name}: derivatives of integrate where loops determine a part of the velocities of joint {j.name!r} "
                    "are not there; make the whole joint independent or dependent"
                )
        moved = self.spanning_velocity(q, v)[..., self.loops.velocity_rows]
        whole = configuration.integrate_derivatives(self._coordinates, q, moved)
        own = np.ix_(self._independent, self._independent)
        return IntegrateDerivatives(*(J[..., own[0], own[1]] for J in whole))

    def difference_derivatives(self, q0: Any, q1: Any) -> DifferenceDerivatives:
        """Jacobians (..., nv, nv) of `difference` along independent velocities, on closed configurations."""
        whole = configuration.difference_derivatives(self._coordinates, q0, q1)
        return DifferenceDerivatives(
            *(J[..., self._independent, :] @ self._moved_by(q) for J, q in zip(whole, (q0, q1), strict=True))
        )

    def _moved_by(self, q: Any) -> Array:
        """The velocities of joints in q (..., n, nv) for unit independent ones."""
        G = self.spanning_velocity(np.asarray(q)[..., None, :], np.eye(self.nv))[..., self.loops.velocity_rows]
        return np.asarray(np.swapaxes(G, -1, -2))

    # functions

    @cached_property
    def residual(self) -> CompiledFunction:
        """Function of q: what is left of the constraints of all loops; [m] for points, sines of angles for axes."""
        return self._function(ClosedRobot.residual, spanning.residual, ("q",), Output("residual", (self._constraints,)))

    @cached_property
    def _facing(self) -> CompiledFunction:
        return self._function(ClosedRobot._facing, spanning.facing, ("q",), Output("cosines", (self._facings,)))

    @cached_property
    def _facings(self) -> int:
        return sum(len(c.facings) for c in self.mechanism.clusters)

    @cached_property
    def _closing_matrix(self) -> CompiledFunction:
        shape = (self._constraints, len(self.model.tree.parent))
        return self._function(ClosedRobot._closing_matrix, spanning.closing_matrix, ("q",), Output("K", shape))

    @cached_property
    def _constraints(self) -> int:
        return sum(map(constraint_count, self.mechanism.clusters))

    @cached_property
    def spanning_velocity(self) -> CompiledFunction:
        """Function of q, v: G v, the velocities of all joints of the spanning tree, in the order of the joints."""
        n = len(self.model.tree.parent)
        return self._function(ClosedRobot.spanning_velocity, spanning.velocity, ("q", "v"), Output("velocity", (n,)))

    @cached_property
    def singularity(self) -> CompiledFunction:
        """Function of q: how close loops are to a singular configuration, where the independent velocities determine nothing.

        The sum over loops of |K_d|² / R_kk², with R the triangular factor of the part K_d of the constraint matrix that
        belongs to dependent joints: 10²ᵏ where results lose about k digits.
        """
        return self._function(ClosedRobot.singularity, spanning.singularity, ("q",), Output("singularity", ()))

    @cached_property
    def spanning_torque(self) -> CompiledFunction:
        """Function of q, v, a: the forces at all joints of the spanning tree, of drives and constraints together.

        At an independent joint in a loop, and at a joint without drive, the difference from the drive's force is what loops
        and couplings give; at a joint that follows another, it is the force of the coupling.
        """
        n = len(self.model.tree.parent)
        return self._function(ClosedRobot.spanning_torque, c_rnea.spanning_torque, ("q", "v", "a"), Output("force", (n,)))

    @cached_property
    def loop_forces(self) -> CompiledFunction:
        """Function of q, v, a: the forces of the constraint rows of loops that are kept, in the order of `loop_rows`."""
        count = sum(len(c.kept) for c in self.mechanism.clusters)
        return self._function(ClosedRobot.loop_forces, c_rnea.loop_forces, ("q", "v", "a"), Output("force", (count,)))

    @property
    def loop_rows(self) -> tuple[str, ...]:
        """What each of `loop_forces` is: a force [N] along an axis, a couple [N m], or a force in a constraint of one's own."""
        return tuple(text for c in self.mechanism.clusters for text in self.loops.row_names(c))

    @cached_property
    def forward_dynamics(self) -> CompiledFunction:
        """a (nv) for the forces tau of the independent joints.

        By the cluster-based articulated-body algorithm ("aba"; Chignoli et al. 2023, algorithm 1), by the mass matrix and
        its sparse factors ("crba-ltdl"), or, for comparison, by the "projection" of the spanning tree's equations or by
        "multipliers" (section II-D), whichever takes fewer operations; `algorithm=` insists on one. There are no multipliers
        where a joint moves no mass but by what follows it: the spanning tree alone then has no dynamics.
        """
        inputs = ("q", "v", "tau")
        member = ClosedRobot.forward_dynamics
        kernels = {
            "aba": aba.aba,
            "crba-ltdl": crba_ltdl.crba_ltdl,
            "projection": baselines.projection,
        }
        if loose_joint(self.model) is None:
            kernels["multipliers"] = baselines.multipliers
        return cheapest({name: self._with_forces(member, k, inputs, "a", name) for name, k in kernels.items()})

    @cached_property
    def inverse_mass_matrix(self) -> CompiledFunction:
        """M(q)⁻¹ (nv, nv), by the sparse factors of the mass matrix."""
        output = Output("Minv", (self.nv, self.nv))
        return self._function(ClosedRobot.inverse_mass_matrix, crba_ltdl.inverse_by_factors, ("q",), output)
