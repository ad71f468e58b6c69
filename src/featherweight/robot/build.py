"""Loading of robots from files, and building of robots from descriptions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from ..checks import CHECKED_LATER, NONNEGATIVE, argument, checked, one_of
from ..model.checks import check, of_independent
from ..model.compliant_equalities import COMPLIANT, EQUALITIES, OF_FILE, with_compliant_equalities
from ..model.description import Decomposition, Description
from ..model.editing.notes import merged, warn_caller
from ..model.editing.references import joint_of, on_bodies
from ..model.expansion import build_model
from ..model.formats.registry import load_description
from ..model.formats.unsupported import LEFT_OUT, ODD, RAISE, REPORT, reading
from ..model.inertia_checks import impossible_bodies
from ..model.types import Contents, ModelError
from ..names import listed
from .closing.soundness import loose_joint, require_mass, with_massless
from .robot import Robot
from .system import CONTRADICTING, LOOP_TOLERANCE, System

WARNED = 1500  # most characters of a report's entry in a warning
Tolerance = Annotated[float, NONNEGATIVE.worded("a length [m] and angle [rad], zero or more")]

if TYPE_CHECKING:  # modules that open files are imported when a file is read
    from ..model.formats.packages import PackagePath
    from ..model.formats.robot_source import RobotInput


@checked
def read(
    path: RobotInput,
    *,
    folder: str | os.PathLike[str] | None = None,
    package_path: PackagePath | None = None,
    xacro_args: Mapping[str, Any] | None = None,
    mimic: Annotated[str, CHECKED_LATER] = "follow",
    unsupported: Annotated[str, CHECKED_LATER] = REPORT,
    srdf: RobotInput | None = None,
    equalities: Annotated[str | None, CHECKED_LATER] = None,
    decompose: bool | Decomposition = False,
) -> Description:
    """Read a URDF, MJCF, SDF, USD or xacro file, or its text, as a description that you can change and pass to `build`.

    The arguments and errors are those of `load`. Give `equalities` also to `build`.

        description = featherweight.read("arm.urdf")
        robot = featherweight.build(description.with_joint("elbow", damping=0.1))
    """
    _check_equalities(equalities)
    description = load_description(
        path, folder=folder, package_path=package_path, xacro_args=xacro_args, mimic=mimic, unsupported=unsupported,
        **{} if equalities is None else {"equalities": equalities},
    )  # fmt: skip
    if srdf is not None:
        from ..model.formats.srdf import with_srdf  # imported on demand, like readers

        with reading(unsupported) as notes:
            description = with_srdf(description, srdf)
        description = replace(description, unused=merged(description.unused, notes.listed()))
    for kind, said in description.unused:
        if kind in (LEFT_OUT, ODD):
            text = said if len(said) <= WARNED else f"{said[:WARNED]} … (the report has all)"
            warn_caller(f"{description.source}: {kind}: {text}")
    if decompose is not False:
        return description.decomposed(Decomposition() if decompose is True else decompose)
    return description


@checked
def load(
    path: RobotInput,
    base: Annotated[str, CHECKED_LATER] = "fixed",
    gravity: Annotated[Sequence[float] | None, CHECKED_LATER] = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    package_path: PackagePath | None = None,
    xacro_args: Mapping[str, Any] | None = None,
    srdf: RobotInput | None = None,
    mimic: Annotated[str, CHECKED_LATER] = "follow",
    unsupported: Annotated[str, CHECKED_LATER] = REPORT,
    independent: Iterable[str] | None = None,
    execution: Annotated[str, CHECKED_LATER] = "auto",
    loop_tolerance: Tolerance = LOOP_TOLERANCE,
    equalities: Annotated[str | None, CHECKED_LATER] = None,
    decompose: bool | Decomposition = False,
) -> Robot:
    """Load a robot from a URDF, MJCF, SDF, USD or xacro file, or from its text.

    The suffix determines the format: .urdf; .xml or .mjcf; .sdf or .world; .usd, .usda, .usdc or .usdz; .xacro.

    `path` is a path, a string that begins with "<" (such as ROS's robot_description), bytes, or an open file. `load` reads an
    open file to its end and does not close it. The root element of a text determines its format. Relative names of meshes and
    includes refer to the folder of the file; an open file with a `name` has such a folder too. For text, give the folder as
    `folder`.

    `package_path` is one folder or several. Each is a package (by its package.xml or its name) or a folder that contains
    packages. For names that begin with package://NAME/ or model://NAME/, the reader searches `package_path`, then
    ROS_PACKAGE_PATH and AMENT_PREFIX_PATH, then the folder of the file and its parents. `robot.report()` lists meshes that
    were not found, and where the reader searched.

    The package xacro (extra `xacro`) expands xacro files; `xacro_args` are their arguments, for example {"arm": "left"}. Text
    and files with other suffixes are expanded if you give `xacro_args`, which may be {}. xacro evaluates the expressions of a
    file as Python, with your permissions: expand only files that you trust.

    `base="floating"` adds a free-flyer between the world and the root. `gravity` [m/s²] overrides the gravity of the file; the
    default without one is (0, 0, -9.81). `srdf` is an SRDF file or its text; `load` does not search for one. Its group states
    become `robot.configurations`, and collision checks skip the pairs of links that it disables.

    Some joints follow others (URDF's `<mimic>`, MJCF's joint and tendon equalities). `mimic="independent"` makes them
    independent and lists them in the report; `mimic="refuse"` raises an error for them.

    A file that its format's own reader accepts (urdfdom, MuJoCo, libsdformat, usd-core) is loaded. What is unsupported, missing
    or odd is left out or taken as that reader takes it, with a warning (ModelWarning), and `robot.report()` lists it.
    `unsupported="raise"` raises ModelError instead. If joints move links without moving any mass, kinematics, collisions and
    pictures work, and functions that need masses raise NotDefinedError; `Description.with_inertias` adds inertias.

    A robot with loops or couplings is a `ClosedRobot`. `independent` names the joints in loops whose velocities are the
    independent velocities, and overrides the file; it cannot name joints that follow others. `execution` is "auto", "traced",
    "rolled" or "interpreted", for all functions of the robot. Robots with loops or couplings cannot use "rolled".

    Loops and couplings are exact by default. `equalities="compliant"` models them as springs and dampers, as MuJoCo does for
    equality constraints, with the softness of the file (solref, solimp). The robot is then the tree without loops and
    couplings, with all joints in q and v, and its functions ignore them. Simulations apply the springs by the law of MJCF files
    or with `contact="compliant"`. `equalities="file"` is "compliant" for MJCF files and "exact" for other formats;
    `Simulation(path)` loads files so. `equalities="exact"` is the default, without the warning of simulations by MuJoCo's law.

    `decompose=True`, or a `Decomposition` with options, replaces collision meshes by convex parts, as `Description.decomposed`
    does; otherwise their convex hulls stand for them. The first time takes seconds to minutes for each mesh.

    Rounded numbers can make loops contradict each other. `load` then closes them as far as possible, and raises an error if
    more than `loop_tolerance` [m, rad] remains. It leaves out the constraints that would be redundant without rounding.
    `robot.report()` lists the remaining misclosure of each loop.

    Raises ModelError, which names the file ("<string>" or "<bytes>" for text), the element and what to do. Raises OSError for
    a file that cannot be opened, TypeError if `path` is neither a path, text nor an open file, and ImportError if the format
    needs a package that is not installed. Warns (ModelWarning) about moving bodies with physically impossible inertias, beyond
    the rounding of moments to three digits, and about loops that contradict each other.

        robot = featherweight.load("arm.urdf")  # base="floating" for a robot that walks or flies
    """
    description = read(
        path,
        folder=folder,
        package_path=package_path,
        xacro_args=xacro_args,
        mimic=mimic,
        unsupported=unsupported,
        srdf=srdf,
        equalities=equalities,
        decompose=decompose,
    )
    strict = unsupported == RAISE
    robot = _built(description, base, gravity, independent, execution, loop_tolerance, equalities, strict)
    if contradicting := robot.report().get(CONTRADICTING):
        warn_caller(
            f"{robot.model.source}: loops that contradict each other, because the file's numbers are rounded, close only to "
            f"{contradicting}. Constraints that would be redundant without rounding are left out; give more digits in the file"
        )
    if bodies := impossible_bodies(robot.model):
        warn_caller(
            f"{robot.model.source}: physically impossible inertias, whose greatest principal moment exceeds the sum of the "
            f"others: {bodies}. Simulated motions will be wrong; correct the inertias in the file"
        )
    return robot


@checked
def build(
    description: Description,
    base: Annotated[str, CHECKED_LATER] = "fixed",
    gravity: Annotated[Sequence[float] | None, CHECKED_LATER] = None,
    *,
    independent: Iterable[str] | None = None,
    execution: Annotated[str, CHECKED_LATER] = "auto",
    loop_tolerance: Tolerance = LOOP_TOLERANCE,
    equalities: Annotated[str | None, CHECKED_LATER] = None,
) -> Robot:
    """Build a robot from a description. The arguments and errors are those of `load`; another type raises TypeError."""
    return _built(description, base, gravity, independent, execution, loop_tolerance, equalities)


def _built(
    description: Description,
    base: str,
    gravity: Sequence[float] | None,
    independent: Iterable[str] | None,
    execution: str,
    loop_tolerance: float,
    equalities: str | None,
    strict: bool = False,
) -> Robot:
    """Build a robot. If `strict`, raise ModelError for negative moments and for joints that move no mass."""
    if not isinstance(description, Contents):
        given = f"a {type(description).__name__}" if isinstance(description, System) else repr(description)
        raise TypeError(f"build takes a Description, which featherweight.read returns for a file (load does both); got {given}")
    description = on_bodies(description)
    if independent is not None:
        description = replace(description, independent=tuple(independent), dependent=())
        check(description, of_independent)
    _check_equalities(equalities)
    model = build_model(description, base, gravity, strict)
    if not model.joints and execution == "rolled":  # there is nothing to roll
        execution = "traced"
    if equalities == COMPLIANT or (equalities == OF_FILE and description.cone is not None):
        model = with_compliant_equalities(model, description)
        description = replace(description, loops=(), couplings=(), closures=(), independent=(), dependent=())
    if description.loops or description.couplings or description.closures:
        from .closed import ClosedRobot  # imported on demand: it imports the kernels of all mechanisms
        from .closing.loops import Loops

        loops = Loops(description, model, loop_tolerance)
        if not loops.mechanism.parent:
            problem = f"{model.source}: loops and couplings hold all joints"
            remedy = (
                "remove some of them, or, if rounded numbers make loops contradict each other, give a larger loop_tolerance"
            )
            if strict:
                raise ModelError(f"{problem}, so the robot cannot move; {remedy}")
            warn_caller(f"{problem}, which are taken as fixed; {remedy}")
            return _built(
                description.locked(loops.fixed_positions()), base, gravity, None, execution, loop_tolerance, equalities
            )
        if strict:
            loops.require_mass()
        robot: Robot = ClosedRobot(loops.with_massless(), execution)
    else:
        for name in description.independent:
            joint_of(description, name, "independent")
        if strict:
            require_mass(model)
        robot = Robot(with_massless(model, loose_joint(model)), execution)
    if links := robot.model.massless:
        warn_caller(
            f"{model.source}: joints move {listed(links)} without moving any mass: functions that need masses are not defined "
            "and raise NotDefinedError. Give inertias in the file, or by featherweight.read(path).with_inertias(...)"
        )
    return robot


def _check_equalities(equalities: str | None) -> None:
    if equalities is not None:
        argument("equalities", equalities, one_of(EQUALITIES).worded('"exact", "compliant" or "file"'))
