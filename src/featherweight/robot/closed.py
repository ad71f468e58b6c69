"""Robots with loops and couplings: the functions of `Robot`, in the independent velocities."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..algorithms import aba, crba_ltdl, mechanisms
from ..algorithms.mechanisms import multipliers, projection, spanning
from ..algorithms.mechanisms import rnea as c_rnea
from ..algorithms.mechanisms.cluster_tree import ClusterTree, Follower, forces_pass
from ..algorithms.mechanisms.counterparts import counterpart
from ..array_types import Array, Vector
from ..checks import Count, SeedOrNone, Size, checked
from ..engine.function import CompiledFunction
from ..engine.program import Output
from ..model import configuration
from ..model.configuration import Joints
from ..model.description import Description
from ..model.inertial_parameters import Armature, with_armature, with_inertial_parameters
from ..model.model import Model, MovingJoint
from ..model.topology import Topology
from ..model.types import WORLD, Coupling
from ..names import Named, knows_keywords, listed
from ..summaries import Several, described
from .arguments import A, Q, V
from .closed_step_functions import ClosedStepFunctions
from .closing.assembly import said
from .closing.loop_closing import ATTEMPTS, LoopClosing
from .closing.loops import Loops
from .closing.soundness import loose_joint, loose_velocities
from .compiled_member import compiled
from .dynamics import cheapest_accelerations
from .robot import LOST, Robot
from .system import CONTRADICTING, NotDefinedError

if TYPE_CHECKING:
    from .result_types import IntegrateDerivatives

ACCURATE = 1e-10  # largest value of `multipliers.constraint_error`; 1e-14 without light bodies

for _module in pkgutil.iter_modules(mechanisms.__path__, f"{mechanisms.__name__}."):
    import_module(_module.name)  # registers its kernels


class SplitJointError(NotDefinedError, NotImplementedError):
    """Loops determine a part of a joint's velocities, which a function does not support."""


@described
class TiedJoints(NamedTuple):
    """Joints that loops and couplings connect."""

    joints: tuple[str, ...]  # their names
    constraints: str  # names of the loops and couplings
    redundant: int  # number of redundant constraint rows


class ClosedRobot(Robot):
    """A robot with loops or couplings (Chignoli, Adrian, Kim and Wensing 2023).

    q does not include joints whose coordinates a coupling determines. q includes all joints of loops, and must satisfy the
    loops (`close`, `residual`). Velocities, accelerations and joint forces are those of the independent joints:
    `joints[k].independent`.
    """

    def __init__(self, loops: Loops, execution: str = "auto") -> None:
        if execution == "rolled":
            raise ValueError(
                f"{loops.model.name}: rolled is not offered for robots with loops or couplings; use 'auto' or 'traced'"
            )
        super().__init__(loops.model, "traced" if execution == "auto" else execution)
        self._loops = loops

    def __reduce__(self) -> tuple[object, ...]:
        return ClosedRobot, (self._loops, self.execution)

    @checked
    def with_armature(self, armature: Armature) -> ClosedRobot:
        return ClosedRobot(self._loops.with_model(with_armature(self.model, armature)).with_massless(), self.execution)

    @checked
    def with_inertial_parameters(self, parameters: npt.ArrayLike) -> ClosedRobot:
        loops = self._loops.with_model(with_inertial_parameters(self.model, parameters))
        loops.require_mass()
        return ClosedRobot(loops.with_massless(), self.execution)

    def with_weights_of(self, model: Model) -> ClosedRobot:
        return ClosedRobot(self._loops.with_model(model), self.execution)

    def _take_model(self, model: Model) -> None:
        self.model, self._loops = model, self._loops.with_model(model)

    @property
    def _system(self) -> Any:
        return self._mechanism

    @property
    def parent(self) -> tuple[int, ...]:
        return self._mechanism.parent

    @cached_property
    def _topology(self) -> Topology:
        """The rows of the spanning tree; the parent of each row is the last body that all forces on its cluster pass."""
        return Topology(forces_pass(self._mechanism))

    @property
    def closed(self) -> bool:
        return True

    def _kernel(self, kernel: Callable[..., None]) -> Callable[..., None]:
        return counterpart(kernel)

    @property
    def nq(self) -> int:
        return self._loops.nq

    @property
    def nv(self) -> int:
        return len(self._mechanism.parent)

    @cached_property
    def joints(self) -> Named[MovingJoint]:
        """Moving joints. Followers have an empty slice of q, and dependent joints an empty slice of v."""
        place = {r: c.start + k for c in self._mechanism.clusters for k, r in enumerate(c.independent)}
        joints, q = [], 0
        for j in self.model.joints:
            width = 0 if j.v_slice.start in self._loops.followers else j.type.nq
            velocities = [place[r] for r in range(j.v_slice.start, j.v_slice.stop) if r in place]
            v = slice(velocities[0], velocities[-1] + 1) if velocities else slice(0, 0)
            joints.append(replace(j, q_slice=slice(q, q + width), v_slice=v))
            q += width
        return Named(joints)

    def followers(self) -> list[Follower]:
        return [f for c in reversed(self._mechanism.clusters) for f in c.followers]

    @property
    def _loop_ends(self) -> tuple[tuple[str | None, str | None], ...]:
        bodies = {f.name: f.body for f in reversed(self.model.frames)}  # links come first and take precedence
        ends = ((loop.predecessor, loop.successor) for loop in self._loops.d.loops)
        return tuple((bodies.get(a or WORLD), bodies.get(b or WORLD)) for a, b in ends)

    @property
    def description(self) -> Description:
        """The description from which the robot was built, with its loops and couplings."""
        return self._loops.d

    @property
    def tied_joints(self) -> tuple[TiedJoints, ...]:
        """Clusters of several joints, or of joints with followers, and the loops and couplings that connect them."""
        clusters = zip(self._mechanism.clusters, self.clusters, strict=True)
        return Several(
            TiedJoints(names, self._loops.names(c), self._loops.redundant(c))
            for c, names in clusters
            if c.dependent or c.followers
        )

    @property
    def _couplings(self) -> tuple[Coupling, ...]:
        return self._loops.d.couplings

    @property
    def clusters(self) -> tuple[tuple[str, ...], ...]:
        """Groups of joints that move together, by name."""
        names = {r: j.name for j in self.model.joints for r in range(j.v_slice.start, j.v_slice.stop)}
        return Several(tuple(dict.fromkeys(names[r] for r in c.rows)) for c in self._mechanism.clusters)

    def loops_of(self, row: int) -> str:
        """Return the names of the loops and couplings that determine a velocity, given by its row in the spanning tree."""
        return self._loops.names(next(c for c in self._mechanism.clusters if row in c.rows))

    def report(self) -> dict[str, str]:
        """Return the contents of the file that the library does not use, and the redundant constraints, by kind.

        The report also lists loops that contradict each other.
        """
        unused = super().report()
        left_out = [(self._loops.redundant(c), self._loops.names(c)) for c in self._mechanism.clusters]
        if texts := [f"{count} of {names}" for count, names in left_out if count]:
            unused["redundant constraints"] = "; ".join(texts)
        if misfits := self._loops.misfits:
            unused[CONTRADICTING] = "; ".join(f"{name!r} by {said(*m)}" for name, m in misfits.items())
        return unused

    # configurations

    @property
    def _mechanism(self) -> ClusterTree:
        """The spanning tree and its clusters."""
        return self._loops.mechanism

    @cached_property
    def step_functions(self) -> ClosedStepFunctions:
        return ClosedStepFunctions(self, self._loops)

    @cached_property
    def _closing(self) -> LoopClosing:
        return LoopClosing(self, self._loops, self.step_functions, self.residual)

    @property
    def _coordinates(self) -> Joints:
        return self._closing.coordinates

    def neutral(self) -> Vector:
        """Return a closed configuration (nq,) near that with every joint at zero.

        It is the same in every call. Raises ValueError if there is none.
        """
        return self._neutral.copy()

    @cached_property
    def _neutral(self) -> Vector:
        return self._closing.neutral()

    @checked
    def random_configuration(self, *, rng: SeedOrNone = None, size: Size = None) -> Array:
        """Return random closed configurations (*size, nq) that are not singular. Raises ValueError if none is found.

        Loops are closed from random starting points, so all assemblies that can be reached from them occur. Configurations are
        within joint limits where such configurations are found.
        """
        if not self._loops.assemblies:  # followers alone
            return super().random_configuration(rng=rng, size=size)
        return self._closing.random(rng, size)

    @knows_keywords
    def close(self, q: npt.ArrayLike, keep: Iterable[str] | None = None, attempts: Count = ATTEMPTS) -> Array:
        """Return the configuration (..., nq) near q in which all loops are closed, as a new array.

        `keep` names joints of loops that keep their coordinates; the default is the independent joints. If a mechanism can be
        assembled in several ways, the guess q selects one. Newton's method closes the loops from q. If it fails, least squares
        closes them from up to `attempts` starting points (q and points around it), and the nearest result is returned. Raises
        ValueError, which gives the remaining misclosure, if no closed configuration is found, and for a wrong length of q.
        """
        closed = self._closing.close(q, keep, attempts)
        self.warn_where_irregular(closed, masses=False)
        return closed

    def _within_limits(self, q: Vector) -> Vector:
        """Return q (nq,) with joints beyond their limits at the limits and loops closed again.

        If the loops cannot be closed then, or the result violates limits as much as before, it is q itself.
        """
        within = super()._within_limits(q)
        if np.array_equal(within, q):
            return q
        try:
            closed = self.close(within)
        except ValueError:
            return q
        left, before = (np.abs(x - super(ClosedRobot, self)._within_limits(x)).max() for x in (closed, q))
        return closed if left < before else q

    def _fillings(self) -> tuple[Callable[[], Vector], ...]:
        return lambda: configuration.neutral(self._coordinates, self.nq), self.neutral

    def _closed_near(self, name: str, q: Vector) -> Vector:
        return self._closing.near(name, q)

    def irregular(self, q: Array, digits: int = LOST, masses: bool = True) -> tuple[int, str] | None:
        """Return the first of q (states, nq) where accelerations lose some digits, and the reason, or None; see `Robot`."""
        rows = set(self._closing.dependent_rows)
        states = np.flatnonzero(~(self.singularity(q) < 10.0 ** (2 * digits))) if rows else np.zeros(0, np.intp)
        if not len(states):
            return super().irregular(q, digits, masses)
        names = [j.name for j in self.model.joints if not rows.isdisjoint(range(j.v_slice.start, j.v_slice.stop))]
        return int(states[0]), (
            f"near a singular configuration, where the independent joints do not determine {listed(names)}; results there are "
            "inaccurate or invalid. Keep away from it, or choose other independent joints"
        )

    def _loose(self, q: Array, least: float) -> Array:
        return loose_velocities(self._mechanism, q, least)

    def _joint_of(self, velocity: int) -> str:
        return self._loops.joint_of(velocity)

    def opening(self, q: npt.ArrayLike) -> Array:
        """Return the misclosure of loops (...) at q in excess of their contradiction: [m], or sines of angles."""
        return np.asarray(np.abs(self.residual(q)[..., self.step_functions.solved]).max(axis=-1, initial=0.0))

    @cached_property
    def integrate(self) -> Callable[..., Array]:  # type: ignore[override]  # loops are closed by what is no one function
        """The closed configuration reached from q with independent velocities v (..., nv) in a unit of time.

        Raises ValueError if the motion leads into a singular configuration or out of the workspace of the mechanism. For a
        robot with couplings and without loops, this is a compiled function.
        """
        return self._integrate if self._closing.dependent_rows else self.tangent_step

    @knows_keywords
    def _integrate(self, q: npt.ArrayLike, v: npt.ArrayLike) -> Array:
        return self.close(self.tangent_step(q, v), attempts=0)

    @compiled
    def tangent_step(self) -> CompiledFunction:
        """The configuration reached from q with velocities v (nv) in a unit of time, along the tangent of loops.

        The velocities are those of independent joints. `close` closes the loops of the result again; `residual` gives their
        misclosure.
        """
        return self.step_functions.integrate

    @compiled
    def integrate_derivatives(self) -> CompiledFunction[IntegrateDerivatives]:
        """The Jacobians (nv, nv) of `integrate` at q, v with respect to independent velocities: dresult_dq, dresult_dv.

        Closing loops does not move independent joints, so the Jacobians are those of the joints' own groups. Robots of which
        loops determine a part of a joint's velocities do not define the function.
        """
        self.require_whole_joints()
        return Robot.integrate_derivatives.func(self)

    def require_whole_joints(self) -> None:
        if self.split_joint is not None:
            raise SplitJointError(
                f"{self.name}: derivatives of integrate do not support loops that determine a part of the velocities "
                f"of joint {self.split_joint!r}; make the whole joint independent or dependent"
            )

    @property
    def split_joint(self) -> str | None:
        return next((j.name for j in self.joints if j.v_slice.stop > j.v_slice.start and not j.independent), None)

    # functions

    @compiled
    def spanning_torque(self) -> CompiledFunction:
        """Function of q, v, a: the total forces at all joints of the spanning tree, from drives and constraints.

        At an independent joint in a loop, and at a joint without drive, the loops and couplings contribute the difference from
        the drive's force. At a follower, the force is that of the coupling.
        """
        n = len(self.model.tree.parent)
        return ClosedRobot.spanning_torque.bind(self, c_rnea.spanning_torque, (Q, V, A), Output("force", (n,)))

    @compiled
    def loop_forces(self) -> CompiledFunction:
        """Function of q, v, a: the forces of the loops' non-redundant constraint rows, in the order of `loop_rows`."""
        count = sum(len(c.kept) for c in self._mechanism.clusters)
        return ClosedRobot.loop_forces.bind(self, c_rnea.loop_forces, (Q, V, A), Output("force", (count,)))

    @property
    def loop_rows(self) -> tuple[str, ...]:
        """The kind of each entry of `loop_forces`.

        An entry is a force [N] along an axis, a couple [N m], or a force in a user-defined constraint.
        """
        return tuple(text for c in self._mechanism.clusters for text in self._loops.row_names(c))

    @compiled
    def forward_dynamics(self) -> CompiledFunction:
        """The acceleration a (nv) under forces tau of the independent joints.

        There are three algorithms: the cluster-based articulated-body algorithm ("aba"; Chignoli et al. 2023, algorithm 1), the
        mass matrix and its sparse factors ("crba-ltdl"), and the "projection" of the spanning tree's equations (section II-D).
        A robot with large loops has a fourth, "aba-multipliers": articulated bodies, and the forces of loops as multipliers.
        It needs mass on all joints also without the loops, and no far lighter bodies at the ends of loops.
        The default is the one with the fewest operations; `algorithm=` selects one.
        """
        kernels: dict[str, Callable[..., None]] = {
            "aba": aba.aba,
            "crba-ltdl": crba_ltdl.crba_ltdl,
            "projection": projection.projection,
        }
        if self._accurate_by_multipliers:
            kernels = {"aba-multipliers": multipliers.aba_multipliers} | kernels
        return cheapest_accelerations(ClosedRobot.forward_dynamics, self, kernels)

    @property
    def _accurate_by_multipliers(self) -> bool:
        """True if the robot has large loops whose constraint forces follow from the inertia of the spanning tree.

        All clusters must hang on one body.
        """
        clusters = self._mechanism.clusters
        if not any(map(multipliers.is_large, clusters)) or any(c.crossed for c in clusters):
            return False
        if loose_joint(self.model) is not None:
            return False
        q = [float(x) for x in self._loops.in_general_position()]
        return multipliers.constraint_error(self._mechanism, q) < ACCURATE

    @compiled
    def residual(self) -> CompiledFunction:
        """Function of q: the residual of the constraints of all loops; [m] for points, sines of angles for axes."""
        return ClosedRobot.residual.bind(self, spanning.residual, (Q,), Output("residual", (self.step_functions.constraints,)))

    @compiled
    def spanning_velocity(self) -> CompiledFunction:
        """Function of q, v: G v, the velocities of all joints of the spanning tree, in the order of the joints."""
        n = len(self.model.tree.parent)
        return ClosedRobot.spanning_velocity.bind(self, spanning.velocity, (Q, V), Output("velocity", (n,)))

    @compiled
    def singularity(self) -> CompiledFunction[Any]:
        """Function of q: the closeness of loops to a singular configuration.

        There, independent velocities do not determine the others. The measure is the sum over loops of |K_d|² / R_kk², where
        K_d is the part of the constraint matrix that belongs to dependent joints and R is its triangular factor. At 10²ᵏ,
        results lose about k digits.
        """
        return ClosedRobot.singularity.bind(self, spanning.singularity, (Q,), Output("singularity", ()))
