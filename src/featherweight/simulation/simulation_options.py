"""Options of a simulation: contacts, and the forces that act at joints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from ..array_types import Matrix, Vector
from ..checks import FUNCTION, NAME, Bound, Fraction, NonNegative, checked, either, number_in, one_of
from ..robot.constraints.contact import BilateralContact

ALL = "all"  # limits, including equal lower and upper ones
LAWS = RIGID, COMPLIANT, FILE = "rigid", "compliant", "file"
DELASSUS = either([NAME, FUNCTION]).worded("the name of an algorithm or a function")
PART, REFUSE = "part", "refuse"  # treatment of overlaps at the start


@checked
@dataclass(frozen=True)
class ContactOptions:
    """Options for contacts of a `Simulation`.

    `law` is the law of contacts, joint limits and dry friction of joints:

    - "file" (default) is the law of the robot's file. An MJCF file has MuJoCo's law: contacts, limits and dry friction yield by
      `solref` and `solimp`, with MuJoCo's convex friction, contact points and steps. Files of other formats (URDF, SDF, USD)
      and robots built in Python have no law of their own; for them, "file" is "rigid".
    - "rigid" holds exactly, with Coulomb friction.
    - "compliant" yields by `solref` and `solimp` of the file, or MuJoCo's defaults, with Coulomb friction.

    Loops and other equalities are exact with each law, unless the robot was loaded with `equalities="compliant"`.

    `friction` (Coulomb's coefficient) and `restitution` (0 to 1) are defaults for surfaces that have none of their own. Only
    rigid contacts bounce: with another law, a restitution above zero is an error. `pyramid` replaces friction cones by pyramids
    of four sides; with MuJoCo's law, the file chooses between the two, and True is an error.

    The simulation considers contacts with gaps below `margin` [m]. `tolerance` is the target residual of the solver, relative
    to the greatest velocity; a step fails if its residual is more than 10⁶ times larger.

    Rigid contacts may overlap by `slop` [m]; a displacement without velocity separates deeper overlaps. Rigid contacts that
    approach more slowly than `bounce` [m/s] do not bounce.

    A step with rigid contacts fails if an overlap exceeds `max_penetration` [m]. `overlaps` says how to treat bodies that
    overlap by more at the start: "part" separates them, at 1 m/s and without velocity if contacts are rigid; "refuse" makes the
    first step raise a SimulationError. With "refuse", steps with other contacts fail at such overlaps, too.

    `delassus` chooses the algorithm for the Delassus matrix: a name as in `Robot.delassus`, or a function of contacts and
    q (robots, nq).

    Raises ValueError for numbers out of range, and TypeError for values of another type.
    """

    friction: NonNegative = 0.8
    restitution: Fraction = 0.0
    pyramid: bool = False
    margin: Bound = 1e-3
    slop: Bound = 1e-6
    bounce: Bound = 1e-2
    tolerance: Annotated[float, number_in("between 0 and 1", 0.0, 1.0, ends="()")] = 1e-8
    max_penetration: Bound = 0.1
    overlaps: Annotated[str, one_of((PART, REFUSE))] = PART
    law: Annotated[str, one_of(LAWS)] = FILE
    delassus: Annotated[str | Callable[[list[BilateralContact], Vector], Matrix], DELASSUS] = "auto"


LIMITS = one_of((True, False, ALL)).worded(f"True, False or {ALL!r} (with equal lower and upper ones)")


@checked
@dataclass(frozen=True)
class JointOptions:
    """Forces of the robot's joints that act in a `Simulation`: `limits`, `dry_friction`, and `passive` (damping and springs).

    Joint limits whose lower value equals the upper one are ignored, as in MuJoCo, unless `limits` is "all".

    Raises ValueError for invalid values of `limits`, and TypeError for other arguments of the wrong type.
    """

    limits: Annotated[bool | str, LIMITS] = True
    dry_friction: bool = True
    passive: bool = True
