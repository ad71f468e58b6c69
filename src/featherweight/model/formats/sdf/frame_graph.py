"""Frames of an SDF file: each is placed in another frame, and moves with a link.

    X(f in g) = X(g in c)⁻¹ X(f in c),  c the nearest frame in which both are placed, directly or through others

Only poses between a frame and c are multiplied, so a pose that the file gives keeps its own digits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...types import ModelError, Pose

GROUND = ""  # the frame "world"


class PlacedFrame(NamedTuple):
    """A frame, and its element in the file. Names are absolute: "arm::hand::palm"."""

    where: str
    base: str = GROUND  # the frame in which `pose` is given
    pose: Pose = Pose()
    attached_to: str | None = None  # the frame with which it moves; None for a link
    inside: str | None = None  # in a model, the frame at `pose` in place of the model's own


class FrameGraph:
    """All frames of a file and of the files that it includes."""

    def __init__(self) -> None:
        self._frames = {GROUND: PlacedFrame("")}
        self._depths = {GROUND: 0}  # cache
        self._links: dict[str, str] = {}  # cache

    def add(self, name: str, frame: PlacedFrame) -> None:
        if name in self._frames:
            problem = f"another element of its model has the name '{name}'"
            raise ModelError(f"{frame.where}: {problem}; rename one of them")
        self._frames[name] = frame

    def __contains__(self, name: str) -> bool:
        return name in self._frames

    def check(self) -> None:
        """Raise ModelError for unknown names and for cycles."""
        for name, frame in self._frames.items():
            self._depth(name, frame.where)
            self.link(name, frame.where)

    def pose(self, name: str, base: str, where: str) -> Pose:
        """Return the pose of a frame in another, where the file places both."""
        a, b, A, B = base, name, Pose(), Pose()
        while a != b:
            if self._depth(b, where) >= self._depth(a, where):
                B = self._step(b) @ B
                b = self._frames[b].base
            else:
                A = self._step(a) @ A
                a = self._frames[a].base
        return B if a == base else A.inverse() @ B

    def link(self, name: str, where: str) -> str:
        """Return the link with which a frame moves, or the ground."""
        path: dict[str, None] = {}
        while name not in self._links:
            frame = self._frame(name, where)
            if name in path:
                circle = f"frames that are attached to each other in a circle: {_listed(path)}"
                raise ModelError(f"{frame.where}: {circle}; attach one of them to a link")
            if frame.attached_to is None:
                self._links[name] = name
                break
            path[name] = None
            name, where = frame.attached_to, frame.where
        self._links |= dict.fromkeys(path, self._links[name])
        return self._links[name]

    def _frame(self, name: str, where: str) -> PlacedFrame:
        if name not in self._frames:
            raise ModelError(f"{where}: there is no frame '{name}'; define it or correct the name")
        return self._frames[name]

    def _depth(self, name: str, where: str) -> int:
        """Return the number of frames between a frame and the ground."""
        path: dict[str, None] = {}
        while name not in self._depths:
            frame = self._frame(name, where)
            if name in path:
                circle = f"frames that are placed in each other in a circle: {_listed(path)}"
                raise ModelError(f"{frame.where}: {circle}; give one of them a pose relative to another frame")
            path[name] = None
            name, where = frame.base, frame.where
        depth = self._depths[name]
        for passed in reversed(path):
            depth += 1
            self._depths[passed] = depth
        return depth

    def _step(self, name: str) -> Pose:
        """Return the pose of a frame in the frame in which it is placed."""
        frame = self._frames[name]
        if frame.inside is None:
            return frame.pose
        above = frame.inside
        while self._depth(above, frame.where) > self._depths[name]:
            above = self._frames[above].base
        if above != name:
            problem = f"its placement frame '{frame.inside}' is not placed in it"
            raise ModelError(f"{frame.where}: {problem}; name a frame of this model")
        return frame.pose @ self.pose(frame.inside, name, frame.where).inverse()


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
