"""The command that shows what a robot is."""

from __future__ import annotations

from ..robot.closed import ClosedRobot
from . import tables
from .console import make_console
from .options import (
    Base,
    BaseOption,
    Mimic,
    MimicOption,
    PackagePathOption,
    Reading,
    RobotPath,
    UnsupportedElements,
    UnsupportedOption,
    XacroOption,
    load_robot,
)


def inspect_robot(
    robot: RobotPath,
    base: BaseOption = Base.FIXED,
    mimic: MimicOption = Mimic.FOLLOW,
    unsupported: UnsupportedOption = UnsupportedElements.REFUSE,
    package_path: PackagePathOption = None,
    xacro_arg: XacroOption = None,
) -> None:
    """Show a robot's joints, drives, bodies and totals, and what its file holds that is not used."""
    loaded = load_robot(robot, base, Reading(package_path, xacro_arg, mimic, unsupported))
    shown = [tables.joints_table(loaded), tables.joint_forces_table(loaded), tables.actuators_table(loaded)]
    shown += [tables.bodies_table(loaded), tables.totals_table(loaded)]
    if isinstance(loaded, ClosedRobot):
        shown.append(tables.clusters_table(loaded))
    if loaded.report():
        shown.append(tables.unused_table(loaded))
    console = make_console()
    for k, table in enumerate(t for t in shown if t is not None):
        console.print(*([""] if k else []), table, sep="\n")
