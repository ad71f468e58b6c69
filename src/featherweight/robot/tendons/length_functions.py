"""Lengths and moment arms of all length-like coordinates of a robot, for one configuration or many."""

from __future__ import annotations

import numpy as np

from ...array_types import Array, Matrix, Tensor, Tensor4
from ...engine.loops.kernels import CompiledKernel
from ...model.model import CompliantLoop
from ..frame_functions import frame_classical_acceleration, frame_jacobian, frame_placement
from ..spanning_motion import velocity_matrix
from ..system import System, rows_of
from .lengths import Lengths, write_lengths
from .tendon_table import LengthTable, body_frames


@CompiledKernel
def write_lengths_of_many(x: Lengths, placement: Tensor4, jacobian: Tensor4, coordinates: Matrix, S: Tensor) -> None:
    """Write lengths and moment arms, given placements (many, bodies, 4, 4) and Jacobians (many, bodies, 6, nv) of bodies."""
    for i in range(len(coordinates)):
        for b in range(len(x.placement)):
            for j in range(4):
                for k in range(4):
                    x.placement[b, j, k] = placement[i, b, j, k]
            for j in range(6):
                for k in range(x.jacobian.shape[2]):
                    x.jacobian[b, j, k] = jacobian[i, b, j, k]
        write_lengths(x, coordinates[i], S[i])


class LengthFunctions:
    """Functions that evaluate the coordinates and moment arms of all joints and lengths of a robot."""

    def __init__(self, robot: System, table: LengthTable) -> None:
        self.robot, self.table = robot, table
        frames = body_frames(table.bodies)
        self.placements = frame_placement(robot, frames) if frames else None
        self.jacobians = frame_jacobian(robot, frames) if frames else None
        drifts = frames and any(isinstance(x.by, CompliantLoop) for x in table.compliant)
        self.biases = frame_classical_acceleration(robot, frames) if drifts else None

    @property
    def count(self) -> int:
        """The number of lengths."""
        return len(self.table.lengths.at)

    def evaluate(self, q: Array) -> tuple[Array, Array]:
        """Return coordinates (..., nq + lengths) and rows S (..., n + extra, nv) at q (..., nq)."""
        robot, x = self.robot, self.table.lengths
        flat = rows_of(q)
        n = len(robot.model.tree.parent)
        coordinates, S = np.zeros((len(flat), robot.nq + self.count)), np.zeros((len(flat), n + self.table.extra, robot.nv))
        coordinates[:, : robot.nq] = flat
        if robot.closed:
            S[:, :n] = velocity_matrix(robot)(flat)
        else:
            S[:, :n] = np.eye(n)
        placement, jacobian = np.zeros((len(flat), 0, 4, 4)), np.zeros((len(flat), 0, 6, robot.nv))
        if self.placements is not None and self.jacobians is not None:
            placement, jacobian = np.ascontiguousarray(self.placements(flat)), np.ascontiguousarray(self.jacobians(flat))
        own = x._replace(placement=np.zeros_like(x.placement), jacobian=np.zeros_like(x.jacobian))
        write_lengths_of_many(own, placement, jacobian, coordinates, S)
        return coordinates.reshape(*q.shape[:-1], -1), S.reshape(*q.shape[:-1], *S.shape[1:])
