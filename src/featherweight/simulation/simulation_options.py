"""Options of a simulation, their defaults from the robot's file, and warnings about what is not simulated."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from ..array_types import Matrix, Vector
from ..checks import FUNCTION, NAME, Bound, Fraction, NonNegative, checked, either, number_in, one_of
from ..contact import laws
from ..model.compliant_equalities import EXACT, OF_FILE
from ..model.contact_rules import TAKEN_AS_EXACT, NeighbourRule
from ..model.editing.notes import warn_caller
from ..model.types import PYRAMIDAL
from ..robot.build import load
from ..robot.collision.shape_pairs import touching_pairs
from ..robot.constraints.contact import BilateralContact
from ..robot.not_simulated import not_simulated
from ..robot.robot import Robot
from .arguments import check_robot
from .scene import Ground

if TYPE_CHECKING:  # a module that opens files, which `load` imports
    from ..model.formats.robot_source import RobotInput

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

    Loops and other equalities are those of the robot, exact or compliant (`load(..., equalities=)`), with each law; compliant
    ones need "file" or "compliant". The simulation of an MJCF file, `Simulation(path)`, has exact ones with "rigid", and
    compliant ones with the other laws.

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


STEP = 1e-3  # [s]
INTEGRATORS_OF_FILES = {"rk4": "rk4", "midpoint": "midpoint"}  # by names in files; all others become "semi-implicit"
IMPLICIT = "implicit"  # MJCF's name


def of_the_file(robot: Robot, step: float | None, integrator: str | None) -> tuple[float, str]:
    """Return time step and integrator: the given ones, the file's, or 1 ms and "semi-implicit".

    With MuJoCo's contact law, the steps are MuJoCo's. With other laws, the semi-implicit step evaluates damping, springs and
    drives at its end, as MuJoCo's "implicitfast" does for damping. No integrator here evaluates velocity products at the end
    too, as MuJoCo's "implicit" does: a ModelWarning says so.
    """
    if step is None:
        step = robot.model.timestep or STEP
    if integrator is None:
        if robot.model.integrator == IMPLICIT:
            warn_caller(
                f"{robot.name}: the file requests the integrator 'implicit'; 'semi-implicit' is used instead, which evaluates "
                "damping at the end of a step, and Coriolis and centrifugal forces at its start (integrator= chooses another)"
            )
        integrator = INTEGRATORS_OF_FILES.get(robot.model.integrator or "", "semi-implicit")
    return step, integrator


def robot_of(given: Robot | RobotInput, law: str) -> Robot:
    """Return the given robot, or load a file with the equalities that suit a law. Raises TypeError for other objects."""
    if isinstance(given, str | os.PathLike | bytes) or hasattr(given, "read"):
        return load(given, equalities=equalities_for(law))
    check_robot("Simulation", given)
    return given


def equalities_for(law: str) -> str:
    """Return the kind of equalities with which the simulation of a file by a contact law loads the robot."""
    return EXACT if law == RIGID else OF_FILE


def law_of(name: str, robot: Robot) -> tuple[int, int]:
    """Return the numbers of a contact law and of its kind of friction; only MJCF files specify them."""
    if name == COMPLIANT:
        return laws.COMPLIANT, laws.COULOMB
    if name == FILE and robot.model.cone is not None:
        return laws.COMPLIANT, laws.PYRAMIDS if robot.model.cone == PYRAMIDAL else laws.CONES
    return laws.RIGID, laws.COULOMB


def shapes_have_something_to_touch(robot: Robot, ground: Ground | None) -> bool:
    """Return whether the file's shapes can touch a ground, given or in the file, or each other by rules of the file."""
    shapes = [s for s in robot.shapes if s.collision]
    if not any(s.body is not None for s in shapes):
        return False
    if ground is not None or any(s.body is None for s in shapes):
        return True
    return robot.model.neighbours is not NeighbourRule.JOINED and bool(touching_pairs(robot))


def warn_of_what_is_left_out(robot: Robot, law: str, known: Collection[str] = ()) -> None:
    """Issue ModelWarnings about contents of the file that change the motion and are not simulated, except `known` kinds.

    Equality constraints that are exact by default change the motion if the others of the file yield by its law.
    """
    left = {kind: text for kind, text in not_simulated(robot).items() if kind not in known}
    if left.pop(TAKEN_AS_EXACT, None) is not None and law_of(law, robot)[1] != laws.COULOMB:
        warn_caller(
            f"{robot.name}: the equality constraints of the file are exact in this robot, and yield in MuJoCo, whose motion is "
            'another one. Simulation(path), or load(path, equalities="file"), takes the file\'s law for them; '
            'load(path, equalities="exact") keeps them exact without this warning'
        )
    if left:
        what = "; ".join(f"{kind}: {text}" for kind, text in left.items())
        warn_caller(f"{robot.name}: contents of the file that are not simulated: {what} (robot.report())")
