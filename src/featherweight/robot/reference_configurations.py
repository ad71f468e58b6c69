"""Named configurations of a robot's files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np

from ..array_types import Vector
from ..model.model import Model, MovingJoint
from ..model.types import controls_of
from ..names import UnknownNameError, choose_from


class ReferenceConfigurations(Mapping[str, Vector]):
    """Named configurations (nq,), read-only. Joints without coordinates in the file are at zero, where loops can be closed.

    If loops cannot be closed near there, these joints start from their values of `neutral()`.

    `control(name)` returns the controls (nu,) of a configuration, in the order of `robot.controls`: zeros if the file has
    none.
    """

    def __init__(
        self,
        model: Model,
        joints: Sequence[MovingJoint],
        fillings: Sequence[Callable[[], Vector]],
        closed: Callable[[str, Vector], Vector],
    ) -> None:
        self._robot = model.name
        self._coordinates = {c.name: dict(c.coordinates) for c in model.configurations}
        self._joints = [j for j in joints if j.q_slice.stop > j.q_slice.start]
        self._controls = {c.name: dict(c.controls) for c in model.configurations}
        self._names = list(controls_of(model.actuators))
        self._fillings, self._closed = fillings, closed
        self._found: dict[str, Vector] = {}

    def __getitem__(self, name: str) -> Vector:
        self._require(name)
        if name not in self._found:
            q = self._closed_from_first_filling(name)
            q.flags.writeable = False
            self._found[name] = q
        return self._found[name]

    def control(self, name: str) -> Vector:
        """Return the controls (nu,) that the file gives for a configuration. Raises KeyError for an unknown name."""
        self._require(name)
        return np.array([self._controls[name].get(control, 0.0) for control in self._names])

    def _require(self, name: str) -> None:
        if name not in self._coordinates:
            raise UnknownNameError(f"{self._robot} has no configuration {choose_from(name, list(self))}")

    def _closed_from_first_filling(self, name: str) -> Vector:
        """Return the configuration, with loops closed from the first filling of joints without coordinates that allows it."""
        coordinates = self._coordinates[name]
        given = [j for j in self._joints if j.name in coordinates]
        *others, last = self._fillings
        for filling in others:
            with suppress(ValueError):
                return self._closed(name, self._filled(given, coordinates, filling()))
            if len(given) == len(self._joints):
                break
        return self._closed(name, self._filled(given, coordinates, last()))

    def _filled(self, given: Sequence[MovingJoint], coordinates: Mapping[str, Sequence[float]], q: Vector) -> Vector:
        q = np.array(q)
        for j in given:
            q[j.q_slice] = coordinates[j.name]
            if rotation := j.type.rotation:  # files have few digits of quaternions
                turn = q[j.q_slice.stop - rotation : j.q_slice.stop]
                turn /= np.linalg.norm(turn)
        return q

    def __iter__(self) -> Iterator[str]:
        return iter(self._coordinates)

    def __len__(self) -> int:
        return len(self._coordinates)

    def __repr__(self) -> str:
        return f"<configurations of {self._robot!r}: {', '.join(map(repr, self)) or 'none'}>"
