"""Loops and closures of locked joints: those that can no longer move must be closed, and are removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...spatial.elementary import norm
from ..loop_alignments import ALIGNMENTS, FACING
from ..types import Closure, Contents, Joint, JointType, Loop, ModelError, Pose, dot, rotate, transpose
from .notes import noted
from .references import D, supports

OPEN = 1e-6  # [m, rad] tolerance of closed loops: positions often have six digits


def hold_loops(d: D) -> D:
    """Return the description without loops between bodies that cannot move relative to each other; these must be closed."""
    paths = supports(d)
    idle = []
    for loop in d.loops:
        a, b = (_moving_carrier(paths[end]) for end in (loop.predecessor, loop.successor))
        if a[0] == b[0]:
            _require_closed(d, loop, a[1] @ loop.predecessor_frame, b[1] @ loop.successor_frame)
            idle.append(loop.name)
    result = replace(d, loops=tuple(loop for loop in d.loops if loop.name not in idle))
    return noted(result, "loops that locked joints keep closed", idle)


def _moving_carrier(path: Sequence[Joint]) -> tuple[str | None, Pose]:
    """Return the moving body that carries the end of a path from the ground, and the pose of that end on it."""
    body, pose = None, Pose()
    for j in path:
        fixed = j.type is JointType.FIXED
        body, pose = (body, pose @ j.placement) if fixed else (j.child, Pose())
    return body, pose


def _require_closed(d: Contents, loop: Loop, a: Pose, b: Pose) -> None:
    along, across = ALIGNMENTS[loop.type]
    gap = rotate(transpose(a.R), (b.p[0] - a.p[0], b.p[1] - a.p[1], b.p[2] - a.p[2]))
    axes_a, axes_b = transpose(a.R), transpose(b.R)
    distance = norm(*(gap[k] for k in along))
    turned = max((abs(dot(axes_a[i], axes_b[k])) for i, k in across), default=0.0)
    away = any(dot(axes_a[k], axes_b[k]) < 0.0 for k in FACING[loop.type])
    if distance > OPEN or turned > OPEN or away:
        off = "turned the wrong way" if away else f"off by {turned:.3g} rad"
        what = f"open by {distance:.3g} m" if distance > OPEN else off
        problem = f"at these positions loop {loop.name!r} is {what}, and no joint is left to close it"
        raise ModelError(f"{d.source}: locked: {problem}; take them from a closed configuration, such as `close` returns")


@dataclass(frozen=True)
class HeldFunction:
    """A closure's function with some of its joints locked: `positions` has None for those that move."""

    function: Callable[[Any], Sequence[Any]]
    positions: tuple[float | None, ...]

    def __call__(self, q: Sequence[Any]) -> Sequence[Any]:
        moving = iter(q)
        whole = [next(moving) if x is None else x for x in self.positions]
        numbers = all(isinstance(x, (int, float, np.number)) for x in whole)
        array = np.empty(len(whole), dtype=np.float64 if numbers else object)
        array[:] = whole
        return self.function(array)


def hold_closures(d: Contents, held: Mapping[str, tuple[float, ...]]) -> tuple[Closure, ...]:
    """Return the closures of joints that still move, as functions of those."""
    left = []
    for c in d.closures:
        positions = tuple(held[name][0] if name in held else None for name in c.joints)
        moving = tuple(name for name in c.joints if name not in held)
        function = HeldFunction(c.function, positions)
        if not moving:
            residual = np.abs(np.asarray(function(()), dtype=np.float64)).max(initial=0.0)
            if not residual <= OPEN:
                problem = f"closure {c.name!r} is {residual:.3g} at these positions, and no joint is left to make it zero"
                raise ModelError(f"{d.source}: locked: {problem}; lock its joints at positions where it is zero")
        else:
            left.append(c if len(moving) == len(c.joints) else Closure(c.name, moving, function))
    return tuple(left)
