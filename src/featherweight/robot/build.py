"""Robots from files and from descriptions."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..model.checks import impossible_bodies
from ..model.description import Description
from ..model.editing.references import on_bodies
from ..model.expansion import build_model
from ..model.formats.registry import load_description
from ..model.formats.unsupported import LEFT_OUT
from ..model.types import ModelWarning, plain
from .closing.soundness import require_mass
from .robot import Robot
from .system import CONTRADICTING, LOOP_TOLERANCE


def read(
    path: str | os.PathLike[str],
    *,
    mimic: str = "follow",
    unsupported: str = "refuse",
    srdf: str | os.PathLike[str] | None = None,
) -> Description:
    """Read a URDF (.urdf) or MJCF (.xml) file as a description, to be changed and given to `build`.

    `mimic`, `unsupported`, `srdf` and errors as for `load`.
    """
    description = load_description(path, mimic=mimic, unsupported=unsupported)
    if left_out := dict(description.unused).get(LEFT_OUT):
        warnings.warn(f"{description.source}: {LEFT_OUT}: {left_out}", ModelWarning, stacklevel=2)
    if srdf is None:
        return description
    from ..model.formats.srdf import with_srdf  # imported when it is needed, as readers are

    return with_srdf(description, srdf)


def load(
    path: str | os.PathLike[str],
    base: str = "fixed",
    gravity: Sequence[float] | None = None,
    *,
    srdf: str | os.PathLike[str] | None = None,
    mimic: str = "follow",
    unsupported: str = "refuse",
    independent: Iterable[str] | None = None,
    execution: str = "auto",
    loop_tolerance: float = LOOP_TOLERANCE,
) -> Robot:
    """Load a robot from a URDF (.urdf) or MJCF (.xml) file.

    `base="floating"` puts a free-flyer between the world and the root. `gravity` [m/s²] is the file's, or (0, 0, -9.81),
    unless given. `srdf` is an SRDF file beside it, which is read only if it is named: its group states become
    `robot.configurations`, and pairs of links whose collisions it disables are left out of the robot's. URDF joints that
    follow others (`<mimic>`) do so unless `mimic="independent"` lets them move by themselves. What an MJCF file asks for and is
    not supported, but may be left out (equality constraints of some kinds, some armatures), is refused, unless
    `unsupported="report"` leaves it out, warns (ModelWarning) and lists it in `robot.report()`. A robot with loops or couplings
    is a `ClosedRobot`; `independent` names joints in loops that the velocities are to be those of, in place of what the file
    says. `execution` is "auto", "traced", "rolled" or "interpreted", for all functions of the robot; with loops or couplings
    it is never rolled.

    Loops that contradict each other because numbers are rounded are closed as far as they can be, if that leaves no more than
    `loop_tolerance` [m, rad]; constraints that follow from others but for that are left out, and `robot.report()` tells what
    is left of each loop.

    Raises ModelError, which names the file, the element and what to do. Warns (ModelWarning) of moving bodies with inertias
    that no body can have, by more than moments of three digits are rounded, and of loops that contradict each other.
    """
    description = read(path, mimic=mimic, unsupported=unsupported, srdf=srdf)
    robot = build(description, base, gravity, independent=independent, execution=execution, loop_tolerance=loop_tolerance)
    if contradicting := robot.report().get(CONTRADICTING):
        warnings.warn(
            f"{robot.model.source}: loops that close no further than to {contradicting}: rounded numbers make them contradict "
            "each other. Constraints that follow from others but for that are left out; write the file with more digits",
            ModelWarning,
            stacklevel=2,
        )
    if bodies := impossible_bodies(robot.model):
        warnings.warn(
            f"{robot.model.source}: inertias that no body can have: the greatest principal moment exceeds the sum of the "
            f"others, of {bodies}. Motions come out accordingly; correct them in the file",
            ModelWarning,
            stacklevel=2,
        )
    return robot


def build(
    description: Description,
    base: str = "fixed",
    gravity: Sequence[float] | None = None,
    *,
    independent: Iterable[str] | None = None,
    execution: str = "auto",
    loop_tolerance: float = LOOP_TOLERANCE,
) -> Robot:
    """A robot from a description made in Python; arguments and errors as for `load`."""
    description = on_bodies(plain(description))
    if independent is not None:
        description = replace(description, independent=tuple(independent), dependent=())
    model = build_model(description, base, gravity)
    if description.loops or description.couplings or description.closures:
        from .closed import ClosedRobot  # imported when it is needed: it brings the kernels of all mechanisms
        from .closing.loops import Loops

        return ClosedRobot(Loops(description, model, loop_tolerance), execution)
    require_mass(model)
    return Robot(model, execution)
