"""Robots from files and from descriptions."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..model.checks import impossible_bodies, require_independent
from ..model.description import Description
from ..model.editing.references import joint_of, on_bodies
from ..model.expansion import build_model
from ..model.formats.registry import load_description
from ..model.formats.unsupported import LEFT_OUT
from ..model.held_equalities import COMPLIANT, EQUALITIES, EXACT, with_held_equalities
from ..model.types import Contents, ModelWarning, plain
from ..names import hint, knows_keywords
from .closing.soundness import require_mass
from .model_view import ModelView
from .robot import Robot
from .system import CONTRADICTING, LOOP_TOLERANCE

if TYPE_CHECKING:  # what opens files is imported when one is read
    from ..model.formats.packages import PackagePath
    from ..model.formats.robot_source import RobotInput


@knows_keywords
def read(
    path: RobotInput,
    *,
    folder: str | os.PathLike[str] | None = None,
    package_path: PackagePath | None = None,
    xacro_args: Mapping[str, Any] | None = None,
    mimic: str = "follow",
    unsupported: str = "refuse",
    srdf: RobotInput | None = None,
) -> Description:
    """Read a URDF, MJCF or xacro file, or its text, as a description, to be changed and given to `build`.

    Arguments and errors as for `load`.
    """
    description = load_description(
        path, folder=folder, package_path=package_path, xacro_args=xacro_args, mimic=mimic, unsupported=unsupported
    )
    if left_out := dict(description.unused).get(LEFT_OUT):
        warnings.warn(f"{description.source}: {LEFT_OUT}: {left_out}", ModelWarning, stacklevel=3)
    if srdf is None:
        return description
    from ..model.formats.srdf import with_srdf  # imported when it is needed, as readers are

    return with_srdf(description, srdf)


@knows_keywords
def load(
    path: RobotInput,
    base: str = "fixed",
    gravity: Sequence[float] | None = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    package_path: PackagePath | None = None,
    xacro_args: Mapping[str, Any] | None = None,
    srdf: RobotInput | None = None,
    mimic: str = "follow",
    unsupported: str = "refuse",
    independent: Iterable[str] | None = None,
    execution: str = "auto",
    loop_tolerance: float = LOOP_TOLERANCE,
    equalities: str = EXACT,
) -> Robot:
    """Load a robot from a URDF (.urdf), MJCF (.xml) or xacro (.xacro) file, or from its text.

    `path` is a path; or the text, as a string that begins with "<" (ROS's robot_description is one), or as bytes; or an open
    file, which is read to its end and not closed. Text is URDF or MJCF by its root element. Relative names of meshes and
    includes lie in the folder of the file, also of an open one that has a `name`, or in `folder`, which text needs for them.

    `package_path` is a folder or several, each a package (by its package.xml or its name) or what packages lie in. Where
    names begin with package://NAME/ or model://NAME/, the package is sought there, then where ROS_PACKAGE_PATH and
    AMENT_PREFIX_PATH say, then in the folder of the file and in those around it. Meshes that are not found are listed in
    `robot.report()`, with where they were sought.

    xacro files are expanded by the package xacro (the extra of that name); `xacro_args` are their arguments, as in
    {"arm": "left"}. Text, and files by other names, are expanded if `xacro_args` are given, {} if need be. xacro runs the
    expressions of a file as Python, which can do whatever you can: expand only files that you trust.

    `base="floating"` puts a free-flyer between the world and the root. `gravity` [m/s²] is the file's, or (0, 0, -9.81),
    unless given. `srdf` is an SRDF file beside it, or its text, which is read only if it is named: its group states become
    `robot.configurations`, and pairs of links whose collisions it disables are left out of the robot's. Joints that follow
    others (URDF's `<mimic>`, MJCF's joint and tendon equalities) do so unless `mimic="independent"` lets them move by
    themselves, which the report tells, or `mimic="refuse"` refuses them. What an MJCF file asks for and is not supported, but
    may be left out (equality constraints of some kinds, some armatures), is refused, unless `unsupported="report"` leaves it
    out, warns (ModelWarning) and lists it in `robot.report()`. A robot with loops or couplings is a `ClosedRobot`;
    `independent` names joints in loops that the velocities are to be those of, in place of what the file says; joints that
    follow others cannot be among them. `execution` is "auto", "traced", "rolled" or "interpreted", for all functions of the
    robot; with loops or couplings it is never rolled.

    `equalities="compliant"` holds loops and couplings by springs and dampers, as MuJoCo holds equality constraints, with the
    softness of the file (solref, solimp): the robot is then the tree without them, with all joints in q and v, and its
    functions know nothing of them. Simulations hold them with `contact="compliant"` or "as in the file".

    Loops that contradict each other because numbers are rounded are closed as far as they can be, if that leaves no more than
    `loop_tolerance` [m, rad]; constraints that follow from others but for that are left out, and `robot.report()` tells what
    is left of each loop.

    Raises ModelError, which names the file (text is "<string>" or "<bytes>"), the element and what to do; OSError for a file
    that cannot be opened; TypeError for what is neither a path, nor text, nor an open file; and ImportError where a format
    needs a package. Warns (ModelWarning) of moving bodies with inertias
    that no body can have, by more than moments of three digits are rounded, and of loops that contradict each other.
    """
    description = read(
        path,
        folder=folder,
        package_path=package_path,
        xacro_args=xacro_args,
        mimic=mimic,
        unsupported=unsupported,
        srdf=srdf,
    )
    options = {"independent": independent, "execution": execution, "loop_tolerance": loop_tolerance, "equalities": equalities}
    robot = build(description, base, gravity, **options)  # type: ignore[arg-type]
    if contradicting := robot.report().get(CONTRADICTING):
        warnings.warn(
            f"{robot.model.source}: loops that close no further than to {contradicting}: rounded numbers make them contradict "
            "each other. Constraints that follow from others but for that are left out; write the file with more digits",
            ModelWarning,
            stacklevel=3,
        )
    if bodies := impossible_bodies(robot.model):
        warnings.warn(
            f"{robot.model.source}: inertias that no body can have: the greatest principal moment exceeds the sum of the "
            f"others, of {bodies}. Motions come out accordingly; correct them in the file",
            ModelWarning,
            stacklevel=3,
        )
    return robot


@knows_keywords
def build(
    description: Description,
    base: str = "fixed",
    gravity: Sequence[float] | None = None,
    *,
    independent: Iterable[str] | None = None,
    execution: str = "auto",
    loop_tolerance: float = LOOP_TOLERANCE,
    equalities: str = EXACT,
) -> Robot:
    """A robot from a description; arguments and errors as for `load`. Raises TypeError for what is no description."""
    if not isinstance(description, Contents):
        given = f"a {type(description).__name__}" if isinstance(description, ModelView) else repr(description)
        raise TypeError(f"build takes a Description, which featherweight.read gives for a file (load does both); got {given}")
    description = on_bodies(plain(description))
    if independent is not None:
        if isinstance(independent, str):
            raise TypeError(f"independent takes names of joints, as in independent=[{independent!r}]; got a string")
        description = replace(description, independent=tuple(independent), dependent=())
        require_independent(description)
    if equalities not in EQUALITIES:
        raise ValueError(f'equalities must be "exact" or "compliant"; got {equalities!r}{hint(equalities, EQUALITIES)}')
    model = build_model(description, base, gravity)
    if equalities == COMPLIANT:
        model = with_held_equalities(model, description)
        description = replace(description, loops=(), couplings=(), closures=(), independent=(), dependent=())
    if description.loops or description.couplings or description.closures:
        from .closed import ClosedRobot  # imported when it is needed: it brings the kernels of all mechanisms
        from .closing.loops import Loops

        return ClosedRobot(Loops(description, model, loop_tolerance), execution)
    for name in description.independent:
        joint_of(description, name, "independent")
    require_mass(model)
    return Robot(model, execution)
