"""The inertia at contacts and joint rows, for changing sets of contacts.

Contacts change from step to step, and compiling code for each set of contacts would take too long. There are three methods,
chosen by size:

- If the bodies that may touch (feet and hands) have up to `MOST_ROWS` rows, one function computes the Delassus matrix of all of
  them. It is compiled once, and a contact uses the rows of its bodies (`contact_problem`). For Talos on one of two feet, the
  other foot costs 0.4 µs.
- If more bodies may touch, the touching bodies use their rows of J M⁻¹ Jᵀ, by a factor of the robot's inverse mass matrix; a
  matrix of all 33 bodies of Talos would cost 30 µs. Joints near their limits do the same. Joints with dry friction, which are
  always active, belong to a separate function if there are few of them. Trees (bodies in a pile) have separate blocks of J.
- A robot too large to unroll keeps its loops, and the set of contacts is data. Its Delassus function is made, without
  compiling, for the bodies that touch, and the most recent sets are cached.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array
from ..contact.factors.branches import BranchPaths, branch_of_velocity, branches_of, columns_of_ancestors
from ..engine.function import CompiledFunction
from ..robot.constraints.constraint import JacobianRows
from ..robot.constraints.contact import BilateralContact
from ..robot.robot import Robot

Method = Callable[[list[BilateralContact], Array], Array]  # from contacts and q (batch, nq) to G (batch, m, m)

KEPT_SETS = 64
MOST_ROWS = 48


class MappedRows(NamedTuple):
    """Rows of joints and lengths (see `ForcesAtJoints`)."""

    mapped: bool  # whether S maps independent velocities to the rows' velocities
    number: int
    moved_by: dict[int, list[int]]  # velocities that change each length with limits or dry friction


class ContactInertia:
    """G of `contacts`, one for each body that may touch, and of joint rows.

    `joint_rows` are rows of all joints' velocities; `always` says that some are active in every step. A length may change with
    velocities of several branches that are not on one path from the ground; then all velocities form one branch.
    """

    def __init__(
        self, robot: Robot, contacts: Sequence[BilateralContact], joint_rows: Array, always: bool, algorithm: str | Method,
        rows_of: MappedRows,
    ) -> None:  # fmt: skip
        self.rows_of = rows_of
        self.robot, self.contacts, self.joint_rows, self.algorithm = robot, tuple(contacts), joint_rows, algorithm
        self.begin = np.cumsum([0, *(c.size for c in contacts)]).astype(np.int64)
        self.function_of_bodies: CompiledFunction[Any] | None = None
        self.function_of_all: CompiledFunction[Any] | None = None
        self._begin_without_sets()
        self.forest = robot.step_functions.forest
        rows = int(self.begin[-1])
        self.by_sets = not isinstance(algorithm, str)
        if self.contacts and isinstance(algorithm, str):
            if rows <= MOST_ROWS or algorithm != "auto":
                self.function_of_bodies = robot.delassus(self.contacts, algorithm)
                self.by_sets = self.function_of_bodies.execution == "rolled"
            else:
                self.by_sets = robot.forward_dynamics.execution == "rolled"
        if always and not rows_of.mapped and not self.by_sets and rows + len(joint_rows) <= MOST_ROWS:
            selected = np.eye(robot.nv)[joint_rows]
            self.function_of_all = robot.delassus([*self.contacts, JacobianRows(lambda q: selected)])

    def _begin_without_sets(self) -> None:
        self._memory = threading.local()
        self._set = lru_cache(KEPT_SETS)(self._of_set)  # which threads share

    def __getstate__(self) -> dict[str, object]:
        return {name: x for name, x in vars(self).items() if name not in ("_memory", "_set")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin_without_sets()

    @property
    def by_inverse(self) -> bool:
        """Return whether touching bodies use their rows of J M⁻¹ Jᵀ."""
        return bool(self.contacts) and self.function_of_bodies is None and not self.by_sets

    @property
    def takes_inverse(self) -> bool:
        """Return whether any rows, of bodies or joints, use J M⁻¹ Jᵀ."""
        rows_alone = len(self.joint_rows) > 0 and self.function_of_all is None
        return rows_alone or (bool(self.contacts) and self.function_of_bodies is None)

    def of_set(self, q: Array, bodies: Array) -> tuple[Array, Array]:
        """Return G (m, m) of some bodies, by number, at q (nq,), and the first row of each body."""
        function, begin = self._set(tuple(bodies.tolist()))
        return function(q[None])[0], begin

    def _of_set(self, bodies: tuple[int, ...]) -> tuple[Callable[[Array], Array], Array]:
        """Return the function of G (batch, m, m) of some bodies, and the first row of each body."""
        contacts = [self.contacts[b] for b in bodies]
        sizes, begin = [c.size for c in contacts], np.zeros(len(self.contacts) + 1, np.int64)
        begin[[*bodies, -1]] = np.cumsum([0, *sizes])
        if not isinstance(self.algorithm, str):
            return partial(self.algorithm, contacts), begin
        rolled = Robot(self.robot.model, "rolled")  # a new robot, which does not cache sets that are dropped here
        function = rolled.delassus(contacts, self.algorithm)
        return lambda q: function(q, out=self._memory_for(len(q), sum(sizes))), begin

    def _memory_for(self, batch: int, m: int) -> Array:
        """Return this thread's memory for G; allocating new memory takes longer than computing G."""
        numbers: Array = getattr(self._memory, "numbers", np.empty(0))
        if numbers.size < batch * m * m:
            numbers = self._memory.numbers = np.empty(batch * m * m)
        return numbers[: batch * m * m].reshape(batch, m, m)

    @cached_property
    def in_blocks(self) -> bool:
        """Return whether J contains only the columns of each row's own tree."""
        own = len(self.forest.begins) > 2 and not self.robot.closed and self.paths is not None
        return own and self.robot.forward_dynamics.execution != "rolled"

    @property
    def columns(self) -> int:
        return self.forest.widest if self.in_blocks else self.robot.nv

    @cached_property
    def branches(self) -> BranchPaths:
        """The branches of the robot's velocities."""
        if self.paths is None:
            return branches_of(range(-1, self.robot.nv - 1), [0] * self.robot.nv)
        shift = np.repeat(self.forest.begins[:-1], np.diff(self.forest.begins)) * self.in_blocks
        return branches_of(self.forest.parent, shift.tolist())

    @property
    def branch_of_row(self) -> Array:
        """The last of the branches that move each row of all joints."""
        branch = np.zeros(self.rows_of.number, np.int64)
        if self.paths is not None:
            last = [*self.forest.velocity, *[0] * (len(branch) - len(self.forest.velocity))]
            for row, velocity in self.paths.items():
                last[row] = velocity
            branch[:] = np.array(branch_of_velocity(self.forest.parent), np.int64)[last]
        return branch

    @cached_property
    def paths(self) -> dict[int, int] | None:
        """Return the last velocity that changes each length; None if the others are not on its path from the ground."""
        last = {row: max(moved, default=0) for row, moved in self.rows_of.moved_by.items()}
        for row, moved in self.rows_of.moved_by.items():
            left, v = {*moved}, last[row]
            while v >= 0:
                left.discard(v)
                v = self.forest.parent[v]
            if left:
                return None
        return last

    @cached_property
    def jacobian_function(self) -> CompiledFunction:
        if self.in_blocks:
            return self.robot.operational_space(self.contacts).jacobians_of_trees(self.forest)
        return self.robot.contact_jacobian(self.contacts)

    def inverse_factor(self, robot: Robot) -> CompiledFunction:
        """Return the function of C(q), where M⁻¹ = C Cᵀ, for this robot with different armature."""
        branches = self.branches
        columns = columns_of_ancestors(branches, self.forest.parent)
        return robot.step_functions.inverse_factor(columns, int(branches.width.max(initial=0)))

    def of_joints(self, S: Array | None) -> Array:
        """Return the joint rows (robots or 1, rows, nv); S(q) is as in `ForcesAtJoints`."""
        return np.eye(self.robot.nv)[None, self.joint_rows] if S is None else np.ascontiguousarray(S[:, self.joint_rows])
