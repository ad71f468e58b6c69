"""Tello, the humanoid of the University of Illinois whose legs are moved by differentials (Sim and Ramos, RA-L 2022).

Numbers are those of Tello.hpp, TelloWithArms.hpp and tello_humanoid.urdf of generalized_rbda (MIT licence), the constraints
those of its MATLAB derivations. Where the sources differ, this file follows the C++ model: the right hip clamp's rotor points
down like the left one, and the arms' rotors have 1.6841e-4 kg m² about their axes. It does not follow two errors of the C++
main branch of commit 45fa7c4: links and rotors exchanged in the arguments of the differentials, and 3.1415 for pi.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..checks import checked
from ..model.description import Description
from ..model.types import Body, Closure, Inertia, Matrix, Vector
from ..spatial import sincos
from ..spatial.elementary import cos
from .mit import ELBOW, SHOULDER_RX, SHOULDER_RY, SHOULDER_RZ
from .parts import Part, joining, mirrored, robot_of_parts, rotors

RATIO = 6.0  # of every motor except the elbows'
TORSO = Inertia(2.3008, (0.0073, -0.0013, -0.0023), (0.0366, 0.0, -0.0006, 0.0142, -0.0002, 0.0291))
CLAMP = Inertia(1.3289, (-0.001, 0.0, -0.0069), (0.0032, 0.0, 0.0001, 0.0033, 0.0, 0.0027))
GIMBAL = Inertia(0.4433, (-0.0027, 0.0, 0.0258), (0.0018, 0.0, 0.0, 0.0017, 0.0, 0.0015))
THIGH = Inertia(1.5424, (0.003, -0.0001, -0.0323), (0.0103, 0.0, -0.0005, 0.0097, 0.0, 0.0027))
SHIN = Inertia(0.3072, (0.0047, -0.0003, -0.1043), (0.0054, 0.0, -0.0002, 0.0054, 0.0, 0.0001))
FOOT = Inertia(0.1025, (0.0042, 0.0, -0.0251), (0.094e-3, 0.0, -0.0038e-3, 0.1773e-3, 0.0, 0.0901e-3))
ROTOR = rotors(0.07, 2.5984e-5, 5.1512e-5)["z"]
ARM_ROTOR = rotors(0.0, 1.084e-4, 1.6841e-4)  # massless, unlike those of the MIT Humanoid

# directions of a rotor's z axis in the body that carries it
DOWN: Matrix = ((1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, -1.0))
ALONG_Y: Matrix = ((-1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0))
AGAINST_Y: Matrix = ((1.0, 0.0, 0.0), (0.0, 0.0, -1.0), (0.0, 1.0, 0.0))


@checked
def tello(arms: bool = True) -> Description:
    """Return Tello: 24 degrees of freedom, 16 without its arms, and 18 rotors, 10 without.

    A gear of 6 turns each hip clamp. Two differentials in each leg move gimbal and thigh, and shin and foot:
    `hip_differential` and `knee_ankle_differential`. The velocities of their rotors are the independent ones. The legs are not
    mirrored, but shifted. `arms` adds those of the MIT Humanoid, on gears of 6, and 9 at the elbows.
    """
    parts = [p for side, y in (("left", 0.126), ("right", -0.126)) for p in _leg(side, y)]
    if arms:
        parts += _arm("left") + [mirrored(p) for p in _arm("right")]
    description = robot_of_parts("tello" if arms else "tello_without_arms", parts, Body("torso", TORSO), "torso-to-ground")
    closures = [c for side in ("left", "right") for c in _differentials(side)]
    return replace(
        description,
        closures=tuple(closures),
        independent=tuple(j for c in closures for j in c.joints[:2]),
        dependent=description.dependent + tuple(j for c in closures for j in c.joints[2:]),
    )


def _leg(side: str, y: float) -> list[Part]:
    def part(name: str, inertia: Inertia, parent: str, axis: str, at: Vector, *more: Any) -> Part:
        above = parent if parent == "torso" else f"{side}-{parent}"
        return Part(f"{side}-{name}", inertia, joining(above, f"{side}-{name}"), above, axis, at, *more)

    clamp = f"torso-to-{side}-hip-clamp"
    return [
        part("hip-clamp-rotor", ROTOR, "torso", "z", (0.0, y, -0.026), DOWN, ((clamp, RATIO),)),
        part("hip-clamp", CLAMP, "torso", "z", (0.0, y, -0.087)),
        part("hip-rotor-1", ROTOR, "hip-clamp", "z", (0.0, 0.04, 0.0), ALONG_Y),
        part("hip-rotor-2", ROTOR, "hip-clamp", "z", (0.0, -0.04, 0.0), AGAINST_Y),
        part("gimbal", GIMBAL, "hip-clamp", "x", (0.0, 0.0, -0.1425)),
        part("thigh", THIGH, "gimbal", "y", (0.0, 0.0, 0.0)),
        part("knee-ankle-rotor-1", ROTOR, "thigh", "z", (0.0, 0.02655, 0.0), AGAINST_Y),
        part("knee-ankle-rotor-2", ROTOR, "thigh", "z", (0.0, -0.02655, 0.0), ALONG_Y),
        part("shin", SHIN, "thigh", "y", (0.0, 0.0, -0.2268)),
        part("foot", FOOT, "shin", "y", (0.0, 0.0, -0.26)),
    ]


def _arm(side: str) -> list[Part]:
    """Return an arm with the numbers of the left one."""
    parts: list[Part] = []
    above = "torso"
    for name, inertia, axis, at, rotor_at, ratio in (
        ("shoulder-ry", SHOULDER_RY, "y", (0.01346, 0.17608, 0.24657), (0.01346, 0.16, 0.24657), RATIO),
        ("shoulder-rx", SHOULDER_RX, "x", (0.0, 0.0575, 0.0), (0.0, 0.0575, 0.0), RATIO),
        ("shoulder-rz", SHOULDER_RZ, "z", (0.0, 0.0, -0.1025), (0.0, 0.0, -0.1025), RATIO),
        ("elbow", ELBOW, "y", (0.0, 0.0, -0.1455), (0.0, -0.0325, -0.06), 9.0),
    ):
        link = f"{side}-{name}"
        joint = joining(above, link)
        parts.append(Part(link, inertia, joint, above, axis, at))
        parts.append(Part(f"{link}-rotor", ARM_ROTOR[axis], f"{joint}-rotor", above, axis, rotor_at, follows=((joint, ratio),)))
        above = link
    return parts


# ---- the differentials


def _differentials(side: str) -> tuple[Closure, Closure]:
    clamp, thigh = f"{side}-hip-clamp", f"{side}-thigh"
    hip = (f"{clamp}-to-hip-rotor-1", f"{clamp}-to-hip-rotor-2", f"{clamp}-to-gimbal", f"{side}-gimbal-to-thigh")
    leg = (
        f"{thigh}-to-knee-ankle-rotor-1", f"{thigh}-to-knee-ankle-rotor-2", f"{thigh}-to-shin", f"{side}-shin-to-foot"
    )  # fmt: skip
    return (
        Closure(f"{side}-hip-differential", hip, hip_differential),
        Closure(f"{side}-knee-ankle-differential", leg, knee_ankle_differential),
    )


def hip_differential(q: Any) -> Sequence[Any]:
    """Return two equations, in m², that hold for q = (rotor 1, rotor 2, gimbal, thigh) [rad].

    Two pushrods connect the cranks of the rotors, at q / 6, to the thigh; each equation keeps the length of a rod constant.
    """
    y1, y2, l1, l2 = q[0] / RATIO, q[1] / RATIO, q[2], q[3]
    (s1, c1), (s2, c2) = sincos(l1), sincos(l2)

    def rod(y: Any, side: float) -> Any:
        s, c = sincos(y)
        return (
            (57 / 2500) * (s - c1 * s2)
            - (8 / 625) * (c * c2 + c1 * s * s2)
            - (49 / 5000) * c1
            - side * ((399 / 20000) * s1 + (7 / 625) * (s * s1 - s1 * s2))
            + 3021 / 160000
        )

    return [rod(y1, 1.0), rod(y2, -1.0)]


def knee_ankle_differential(q: Any) -> Sequence[Any]:
    """Return two equations, in m² and rad, that hold for q = (rotor 1, rotor 2, shin, foot) [rad].

    The shin turns by the mean of the cranks' angles, q / 6. Half their difference moves the foot by a linkage: the first
    equation keeps the length of its bar constant.
    """
    y1, y2, l1, l2 = q[0] / RATIO, q[1] / RATIO, q[2], q[3]
    h = 0.5 * (y1 - y2)
    bar = (
        (21 / 6250) * sincos(h + 1979 * math.pi / 4500)[1]
        - (13 / 625) * sincos(h + 493 * math.pi / 1500)[1]
        - (7 / 2500) * sincos(h + l2 + 231 * math.pi / 500)[0]
        + (91 / 5000) * sincos(l2 + 2 * math.pi / 15)[0]
        - (147 / 50000) * sincos(l2 + math.pi / 45)[0]
        - (273 / 12500) * cos(math.pi / 9)
        + 163349 / 6250000
    )
    return [bar, l1 - 0.5 * (y1 + y2)]
