"""The inertia that contacts and joint rows feel, as contacts come and go.

Contacts change from step to step, and code must not be compiled for each set of them. So the Delassus matrix is made for all
bodies that may touch, once, and a contact takes the rows of its bodies (`contact_space`). That is cheap while the matrix is
unrolled code: Talos with twelve bodies that may touch pays some microseconds for ten that do not. A robot too large to
unroll pays by the rows squared; but there loops are kept, the set of contacts is data, and so its function is made, without
compiling, for the bodies that touch, and kept for the sets seen last.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..constraints import JacobianRows
from ..contacts import Contact
from ..engine.function import CompiledFunction
from ..robot import Robot

Array = np.ndarray[Any, np.dtype[Any]]

Method = Callable[[list[Contact], Array], Array]  # of contacts and q (batch, nq), to G (batch, m, m)

KEPT_SETS = 64


class ContactInertia:
    """G of `contacts`, one for each body that may touch, and of joint rows.

    `joint_rows` are rows of all joints' velocities; with the contacts they are one more function, for when any is active.
    """

    def __init__(self, robot: Robot, contacts: Sequence[Contact], joint_rows: Array, algorithm: str | Method) -> None:
        self.robot, self.contacts, self.joint_rows, self.algorithm = robot, tuple(contacts), joint_rows, algorithm
        self.begin = np.cumsum([0, *(c.size for c in contacts)]).astype(np.int64)
        self.of_touching: CompiledFunction | None = None
        self.of_all: CompiledFunction | None = None
        self._room: Array = np.empty(0)
        self._sets: OrderedDict[bytes, tuple[Callable[[Array], Array], Array]] = OrderedDict()
        if self.contacts and isinstance(algorithm, str) and robot.execution != "rolled":
            self.of_touching = robot.delassus(self.contacts, algorithm)
        if len(joint_rows) and not robot.closed and not self.by_sets:
            rows = np.eye(robot.nv)[joint_rows]
            made = robot.delassus([*self.contacts, JacobianRows(lambda q: rows)])
            self.of_all = made if made.execution == "traced" else None

    @property
    def by_sets(self) -> bool:
        """Whether functions are made for the bodies that touch, since one for all is too large."""
        if self.of_touching is None:
            return bool(self.contacts)
        return self.of_touching.execution == "rolled"

    def touching(self, q: Array, bodies: Array) -> tuple[Array, Array]:
        """G (batch, m, m) and where the rows of each body begin in it; `bodies` (count,) are those that touch anything."""
        if not self.contacts:
            return np.zeros((len(q), 0, 0)), self.begin
        if self.of_touching is not None and not self.by_sets:
            return self.of_touching(q), self.begin
        key = bodies.tobytes()
        if key not in self._sets:
            self._sets[key] = self._of_set([self.contacts[b] for b in bodies]), self._begin(bodies)
            if len(self._sets) > KEPT_SETS:
                self._sets.popitem(last=False)
        self._sets.move_to_end(key)
        function, begin = self._sets[key]
        return function(q), begin

    def _of_set(self, contacts: list[Contact]) -> Callable[[Array], Array]:
        if not isinstance(self.algorithm, str):
            return partial(self.algorithm, contacts)
        rolled = Robot(self.robot.model, "rolled")  # a new one, which does not keep the sets that are dropped here
        function = rolled.delassus(contacts, self.algorithm)
        return lambda q: function(q, out=self._room_for(len(q), sum(c.size for c in contacts)))

    def _room_for(self, batch: int, m: int) -> Array:
        """Where G is written: memory that is new to a process takes longer to get than G to compute."""
        if self._room.size < batch * m * m:
            self._room = np.empty(batch * m * m)
        return self._room[: batch * m * m].reshape(batch, m, m)

    def _begin(self, bodies: Array) -> Array:
        begin = np.zeros(len(self.contacts) + 1, np.int64)
        sizes = [self.contacts[b].size for b in bodies]
        begin[bodies] = np.cumsum([0, *sizes])[:-1]
        begin[-1] = sum(sizes)
        return begin

    def whole(self, q: Array, S: Array | None) -> Array:
        """G (batch, m, m) of all bodies that may touch and all joint rows; S(q) as in `JointForces`."""
        if self.of_all is not None:
            made: Array = self.of_all(q)
            return made
        batch, nv = len(q), self.robot.nv
        J = self.robot.contact_jacobian(self.contacts)(q) if self.contacts else np.zeros((batch, 0, nv))
        E = np.eye(nv)[self.joint_rows] if S is None else S[:, self.joint_rows]
        J = np.concatenate([J, np.broadcast_to(E, (batch, *E.shape[-2:]))], axis=1)
        return np.ascontiguousarray(J @ self.robot.inverse_mass_matrix(q) @ np.swapaxes(J, 1, 2))
