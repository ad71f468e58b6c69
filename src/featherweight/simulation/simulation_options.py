"""Options of a simulation that belong together: how contacts are computed, and which forces of joints act."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..robot.constraints.contact import BilateralContact
from .arguments import check_choice, check_switches, check_tolerances
from .scene import check_surface

Array = np.ndarray[Any, np.dtype[Any]]

ALL = "all"  # of limits, also equal ones
LAWS = RIGID, COMPLIANT, AS_IN_THE_FILE = "rigid", "compliant", "as in the file"
PART, REFUSE = "part", "refuse"  # of overlaps at the start


@dataclass(frozen=True)
class ContactOptions:
    """How a `Simulation` computes contacts.

    `friction` (Coulomb's coefficient) and `restitution` (0 to 1) are those of surfaces that have none of their own. `pyramid`
    replaces friction cones by pyramids of four sides.

    The simulation takes contacts with gaps below `margin` [m] into account, leaves overlaps below `slop` [m] alone and pushes
    wider ones apart, without velocity; approaches slower than `bounce` [m/s] do not bounce. `tolerance` is the residual that
    the solver aims at, over the greatest velocity; a step with more than 10⁵ times that left is refused, and so is one with an
    overlap above `max_penetration` [m].

    `overlaps` says what happens to bodies that overlap at the start by more than `max_penetration`: "part" parts them at 1 m/s,
    without velocity, and "refuse" makes the first step a SimulationError.

    `law` is "rigid", or "compliant": contacts, joint limits and dry friction yield as in MuJoCo, by `solref` and `solimp` of an
    MJCF file or MuJoCo's defaults, with Coulomb's friction; loops and other constraints stay exact. "as in the file" is
    "compliant" for MJCF files and "rigid" for others.

    `delassus` is the algorithm for the matrix that contacts see, by the names of `Robot.delassus`, or a function of contacts
    and q (robots, nq).

    Raises ValueError for numbers that are out of range, and TypeError for values of another type.
    """

    friction: float = 0.8
    restitution: float = 0.0
    pyramid: bool = False
    margin: float = 1e-3
    slop: float = 1e-6
    bounce: float = 1e-2
    tolerance: float = 1e-8
    max_penetration: float = 0.1
    overlaps: str = PART
    law: str = RIGID
    delassus: str | Callable[[list[BilateralContact], Array], Array] = "auto"

    def __post_init__(self) -> None:
        check_surface("ContactOptions", self.friction, self.restitution)
        check_switches(pyramid=self.pyramid)
        check_tolerances(
            self.tolerance, margin=self.margin, slop=self.slop, bounce=self.bounce, max_penetration=self.max_penetration
        )
        check_choice("law", self.law, LAWS)
        check_choice("overlaps", self.overlaps, (PART, REFUSE))
        if not (isinstance(self.delassus, str) or callable(self.delassus)):
            raise TypeError(f"delassus must be the name of an algorithm or a function; got {self.delassus!r}")


@dataclass(frozen=True)
class JointOptions:
    """Which forces of the robot's joints act in a `Simulation`: `limits`, dry `friction`, and `passive` (damping and springs).

    Lower limits that equal upper ones are ignored, as MuJoCo ignores them, unless `limits` is "all".

    Raises ValueError for other values of `limits`, and TypeError for other types of the rest.
    """

    limits: bool | str = True
    friction: bool = True
    passive: bool = True

    def __post_init__(self) -> None:
        if self.limits not in (True, False, ALL):
            raise ValueError(f"limits must be True, False or {ALL!r} (also equal lower and upper ones); got {self.limits!r}")
        check_switches(friction=self.friction, passive=self.passive)
