"""Defaults of a simulation from the robot's file (time step, integrator, contacts), and warnings about ignored contents."""

from __future__ import annotations

from collections.abc import Collection

from ..contact import laws
from ..model.contact_rules import SOFT_HOLDS, NeighbourRule
from ..model.editing.notes import warn_caller
from ..model.types import PYRAMIDAL
from ..robot.collision.shape_pairs import touching_pairs
from ..robot.not_simulated import not_simulated
from ..robot.robot import Robot
from .scene import Ground
from .simulation_options import COMPLIANT, FILE

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


def law_of(name: str, robot: Robot) -> tuple[int, int]:
    """Return the numbers of a contact law and of its kind of friction; only MJCF files specify them."""
    if name == COMPLIANT:
        return laws.COMPLIANT, laws.COULOMB
    if name == FILE and robot.model.cone is not None:
        return laws.COMPLIANT, laws.PYRAMIDS if robot.model.cone == PYRAMIDAL else laws.CONES
    return laws.RIGID, laws.COULOMB


def warn_of_explicit_drives(robot: Robot, why: str) -> None:
    """Issue a ModelWarning that stiffness and damping of drives are evaluated at the start of a step."""
    warn_caller(
        f"{robot.name}: steps evaluate stiffness and damping of its drives at their start, because {why}: high gains may "
        "be unstable; use a short step"
    )


def shapes_have_something_to_touch(robot: Robot, ground: Ground | None) -> bool:
    """Return whether the file's shapes can touch a ground, given or in the file, or each other by rules of the file."""
    shapes = [s for s in robot.shapes if s.collision]
    if not any(s.body is not None for s in shapes):
        return False
    if ground is not None or any(s.body is None for s in shapes):
        return True
    return robot.model.neighbours is not NeighbourRule.JOINED and bool(touching_pairs(robot))


def warn_of_what_is_left_out(robot: Robot, known: Collection[str] = ()) -> None:
    """Issue a ModelWarning about contents of the file that change the motion and are not simulated, except `known` kinds.

    Equality constraints are exact by default, whatever softness a file requests; only `robot.report()` lists that.
    """
    left = {kind: text for kind, text in not_simulated(robot).items() if kind not in (SOFT_HOLDS, *known)}
    if left:
        what = "; ".join(f"{kind}: {text}" for kind, text in left.items())
        warn_caller(f"{robot.name}: contents of the file that are not simulated: {what} (robot.report())")
