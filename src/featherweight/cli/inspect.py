"""The command that shows what a robot is."""

from __future__ import annotations

from ..robot.closed import ClosedRobot
from . import tables
from .console import make_console
from .options import Base, BaseOption, Mimic, MimicOption, RobotPath, load_robot


def inspect_robot(robot: RobotPath, base: BaseOption = Base.FIXED, mimic: MimicOption = Mimic.FOLLOW) -> None:
    """Show a robot's joints, bodies and totals, and what its file holds that dynamics does not use."""
    loaded = load_robot(robot, base, mimic)
    console = make_console()
    console.print(tables.joints_table(loaded), "", tables.bodies_table(loaded), "", tables.totals_table(loaded), sep="\n")
    if isinstance(loaded, ClosedRobot):
        console.print("", tables.clusters_table(loaded), sep="\n")
    if loaded.report():
        console.print("", tables.unused_table(loaded), sep="\n")
