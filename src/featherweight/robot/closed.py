"""Robots with loops and couplings: the functions of `Robot`, in the independent velocities."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ..algorithms import aba, crba_ltdl, mechanisms
from ..algorithms.mechanisms import projection
from ..algorithms.mechanisms import rnea as c_rnea
from ..algorithms.mechanisms.cluster_tree import Follower, unconstrained
from ..algorithms.mechanisms.counterparts import counterpart
from ..engine.function import CompiledFunction, cheapest
from ..engine.program import Output
from ..model.armature import with_armature
from ..model.description import Description
from ..model.inertial_parameters import with_inertial_parameters
from ..model.model import Model, MovingJoint
from ..model.topology import Topology
from ..model.types import WORLD, Coupling
from ..names import Named
from ..summaries import Several
from .closed_configurations import ClosedConfigurations
from .closing.assembly import said
from .closing.loops import Loops
from .system import CONTRADICTING

Array = np.ndarray[Any, np.dtype[Any]]

for _module in pkgutil.iter_modules(mechanisms.__path__, f"{mechanisms.__name__}."):
    import_module(_module.name)  # registers its kernels


class TiedJoints(NamedTuple):
    """Joints that loops and couplings connect."""

    joints: tuple[str, ...]  # their names
    constraints: str  # names of the loops and couplings
    redundant: int  # number of redundant constraint rows


class ClosedRobot(ClosedConfigurations):
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

    def __reduce__(self) -> tuple[Any, ...]:
        return ClosedRobot, (self._loops, self.execution)

    def with_armature(self, armature: Mapping[str, float]) -> ClosedRobot:
        return ClosedRobot(self._loops.with_model(with_armature(self.model, armature)), self.execution)

    def with_inertial_parameters(self, parameters: Any) -> ClosedRobot:
        loops = self._loops.with_model(with_inertial_parameters(self.model, parameters))
        loops.require_mass()
        return ClosedRobot(loops, self.execution)

    def with_weights_of(self, model: Model) -> ClosedRobot:
        return ClosedRobot(self._loops.with_model(model), self.execution)

    @property
    def _system(self) -> Any:
        return self._mechanism

    @property
    def parent(self) -> tuple[int, ...]:
        return self._mechanism.parent

    @cached_property
    def _topology(self) -> Topology:
        """The rows of the spanning tree; the parent of each row is the output body of its cluster."""
        tree, clusters = self._mechanism.tree, self._mechanism.clusters
        owner = self._mechanism.owner
        return Topology(
            [tree.parent[r] if unconstrained(clusters[owner[r]]) else clusters[owner[r]].output for r in range(len(owner))]
        )

    @property
    def closed(self) -> bool:
        return True

    def _kernel(self, kernel: Any) -> Any:
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

    # functions

    @cached_property
    def spanning_torque(self) -> CompiledFunction:
        """Function of q, v, a: the total forces at all joints of the spanning tree, from drives and constraints.

        At an independent joint in a loop, and at a joint without drive, the loops and couplings contribute the difference from
        the drive's force. At a follower, the force is that of the coupling.
        """
        n = len(self.model.tree.parent)
        return self._function(ClosedRobot.spanning_torque, c_rnea.spanning_torque, ("q", "v", "a"), Output("force", (n,)))

    @cached_property
    def loop_forces(self) -> CompiledFunction:
        """Function of q, v, a: the forces of the loops' non-redundant constraint rows, in the order of `loop_rows`."""
        count = sum(len(c.kept) for c in self._mechanism.clusters)
        return self._function(ClosedRobot.loop_forces, c_rnea.loop_forces, ("q", "v", "a"), Output("force", (count,)))

    @property
    def loop_rows(self) -> tuple[str, ...]:
        """The kind of each entry of `loop_forces`.

        An entry is a force [N] along an axis, a couple [N m], or a force in a user-defined constraint.
        """
        return tuple(text for c in self._mechanism.clusters for text in self._loops.row_names(c))

    @cached_property
    def forward_dynamics(self) -> CompiledFunction:
        """The acceleration a (nv) under forces tau of the independent joints.

        There are three algorithms: the cluster-based articulated-body algorithm ("aba"; Chignoli et al. 2023, algorithm 1), the
        mass matrix and its sparse factors ("crba-ltdl"), and the "projection" of the spanning tree's equations (section II-D).
        The default is the one with the fewest operations; `algorithm=` selects one.
        """
        inputs = ("q", "v", "tau")
        member = ClosedRobot.forward_dynamics
        kernels = {"aba": aba.aba, "crba-ltdl": crba_ltdl.crba_ltdl, "projection": projection.projection}
        return cheapest({name: self._with_forces(member, k, inputs, "a", name) for name, k in kernels.items()})

    @cached_property
    def inverse_mass_matrix(self) -> CompiledFunction:
        """The inverse mass matrix M(q)⁻¹ (nv, nv), by the sparse factors of the mass matrix."""
        output = Output("Minv", (self.nv, self.nv))
        return self._function(ClosedRobot.inverse_mass_matrix, crba_ltdl.inverse_by_factors, ("q",), output)
