"""The command that shows the contents of a robot."""

from __future__ import annotations

from ..robot.closed import ClosedRobot
from . import tables
from .console import make_console
from .options import RobotFile, of_robot_file


@of_robot_file
def inspect_robot(file: RobotFile) -> None:
    """Show a robot's joints, drives, bodies and totals, and the contents of its file that are not used."""
    loaded = file.load()
    shown = [tables.joints_table(loaded), tables.joint_forces_table(loaded), tables.actuators_table(loaded)]
    shown += [tables.bodies_table(loaded), tables.totals_table(loaded)]
    if isinstance(loaded, ClosedRobot):
        shown.append(tables.clusters_table(loaded))
    if loaded.report():
        shown.append(tables.unused_table(loaded))
    console = make_console()
    for k, table in enumerate(t for t in shown if t is not None):
        console.print(*([""] if k else []), table, sep="\n")
