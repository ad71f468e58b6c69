"""Planar linkages with a loop: a four-bar, a six-bar and a leg with a parallelogram.

Numbers are those of four_bar.urdf, six_bar.urdf and planar_leg_linkage.urdf of generalized_rbda (MIT licence). All axes are z,
and each loop joint is revolute. A loop closes only at some configurations; `four_bar_configuration` and
`six_bar_configuration` return them. The leg closes at (any, a, -a, a) for thigh, driver, foot and support.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from ..checks import CHECKED_LATER, Finite, checked, numbers
from ..model.description import Description
from ..model.types import WORLD, Inertia, Loop, LoopType, ModelError, Pose
from ..spatial.elementary import acos, atan2, cos, norm, sin
from .parts import Part, robot_of_parts

BAR = Inertia(3.3, rotational=(0.011253, 0.0, 0.0, 0.036203, 0.0, 0.042673))  # of every bar, its centre at its joint
SIX_BAR = (0.1, 0.2, 0.3, 0.4, 0.5)  # [m]


@checked
def four_bar(
    lengths: Annotated[Sequence[float], numbers(4)] = (0.5, 1.0, 0.5, 1.0),
    independent: Annotated[str, CHECKED_LATER] = "joint1",
    offset_angle: Finite = 0.0,
) -> Description:
    """Return a four-bar: link1 and link2 in series, and link3, which holds the end of link2.

    `lengths` are those of link1, link2, link3 and the ground [m]; the last is the distance from joint1 to joint3, at
    `offset_angle` from x. `independent` is the joint that moves the others. The default is a parallelogram that closes at
    zero, where all bars lie in line and the mechanism is singular.
    """
    joints = ("joint1", "joint2", "joint3")
    if not isinstance(independent, str) or independent not in joints:
        raise ValueError(f"independent: expected one of {', '.join(joints)}, got {independent!r}")
    first, second, third, ground = lengths
    foot = (ground * cos(offset_angle), ground * sin(offset_angle), 0.0)
    parts = [
        Part("link1", BAR, "joint1", WORLD, "z"),
        Part("link2", BAR, "joint2", "link1", "z", (first, 0.0, 0.0)),
        Part("link3", BAR, "joint3", WORLD, "z", foot),
    ]
    return _closed("four_bar", parts, ("link2", second), ("link3", third), (independent,))


def four_bar_configuration(
    crank: float, lengths: Sequence[float] = (0.5, 1.0, 0.5, 1.0), offset_angle: float = 0.0, branch: int = 1
) -> tuple[float, float, float]:
    """Return the angles of joint1, joint2 and joint3 at which the loop closes, for a given angle of joint1 [rad].

    `branch` is 1 or -1: link2 turns left or right into link3. Raises ModelError if the crank cannot reach this angle.
    """
    first, second, third, ground = lengths
    x = ground * cos(offset_angle) - first * cos(crank)
    y = ground * sin(offset_angle) - first * sin(crank)
    along, back = _two_bars(x, y, second, third, branch)
    return crank, _turn(along - crank), _turn(back + math.pi)


def six_bar() -> Description:
    """Return a loop of six bars, in which joint1 to joint3 move the others.

    link1 to link3 are in series and meet link4 and link5. The bars are 0.1 to 0.5 m long, and joint1 and joint4 have the same
    axis.
    """
    a, b, c, d, e = SIX_BAR
    parts = [
        Part("link1", BAR, "joint1", WORLD, "z"),
        Part("link2", BAR, "joint2", "link1", "z", (a, 0.0, 0.0)),
        Part("link3", BAR, "joint3", "link2", "z", (b, 0.0, 0.0)),
        Part("link4", BAR, "joint4", WORLD, "z"),
        Part("link5", BAR, "joint5", "link4", "z", (d, 0.0, 0.0)),
    ]
    return _closed("six_bar", parts, ("link3", c), ("link5", e), ("joint1", "joint2", "joint3"))


def six_bar_configuration(q1: float, q2: float, q3: float, branch: int = 1) -> tuple[float, float, float, float, float]:
    """Return the angles of joint1 to joint5 at which the loop closes, for given angles of the first three [rad].

    The other arguments and errors are those of `four_bar_configuration`.
    """
    a, b, c, d, e = SIX_BAR
    x = a * cos(q1) + b * cos(q1 + q2) + c * cos(q1 + q2 + q3)
    y = a * sin(q1) + b * sin(q1 + q2) + c * sin(q1 + q2 + q3)
    fourth, fifth = _two_bars(x, y, d, e, branch)
    return q1, q2, q3, fourth, _turn(fifth - fourth)


def planar_leg_linkage() -> Description:
    """Return a leg whose foot is driven through a parallelogram: thigh, shank driver, foot and shank support.

    The independent joints are base_to_thigh and thigh_to_driver. The bodies have inertia about z alone.
    """

    def bar(mass: float, center: float, moment: float) -> Inertia:
        return Inertia(mass, (center, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0, moment))

    parts = [
        Part("thigh", bar(0.23, 0.0364, 0.000045389), "base_to_thigh", WORLD, "z"),
        Part("shank_driver", bar(0.004, 0.048, 0.000003257), "thigh_to_driver", "thigh", "z", (0.011, 0.0, 0.0)),
        Part("foot", bar(0.017, 0.0635, 0.000022176), "driver_to_foot", "shank_driver", "z", (0.096, 0.0, 0.0)),
        Part("shank_support", bar(0.225, 0.04, 0.000022918), "thigh_to_support", "thigh", "z", (0.042, 0.0, 0.0)),
    ]
    return _closed("planar_leg_linkage", parts, ("foot", 0.031), ("shank_support", 0.096), ("base_to_thigh", "thigh_to_driver"))


def _closed(
    name: str, parts: list[Part], end: tuple[str, float], other: tuple[str, float], independent: tuple[str, ...]
) -> Description:
    """Return the bars with a revolute joint between the ends of two of them; the ends are on their x axes."""
    description = robot_of_parts(name, parts)
    at, to = Pose(p=(end[1], 0.0, 0.0)), Pose(p=(other[1], 0.0, 0.0))
    return replace(
        description,
        loops=(Loop("loop", LoopType.REVOLUTE, end[0], other[0], at, to),),
        independent=independent,
        dependent=tuple(p.joint for p in parts if p.joint not in independent),
    )


def _two_bars(x: float, y: float, a: float, b: float, branch: int) -> tuple[float, float]:
    """Return directions [rad] of two bars of lengths a and b that reach in series from the origin to (x, y)."""
    r = norm(x, y)
    if not abs(a - b) <= r <= a + b or r == 0.0:
        raise ModelError(f"bars of {a} and {b} m do not reach over {r:.4g} m; choose another configuration")
    toward = atan2(y, x)
    inner = acos((r * r + a * a - b * b) / (2.0 * r * a))
    outer = acos((r * r + b * b - a * a) / (2.0 * r * b))
    return toward - branch * inner, toward + branch * outer


def _turn(angle: float) -> float:
    """Return the angle in [-pi, pi]."""
    return math.remainder(angle, 2.0 * math.pi)
