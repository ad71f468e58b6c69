"""SRDF files of descriptions, for contents that URDF cannot express: named configurations and disabled collisions."""

from __future__ import annotations

import os
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from ...names import listed
from ..editing.notes import warn
from ..types import WORLD, Contents

WHOLE = "whole_body"  # the group of all configurations


def write_srdf(d: Contents, path: str | os.PathLike[str]) -> None:
    """Write an SRDF file, which `load(..., srdf=path)` reads beside the robot's file.

    Warns about controls, which SRDF cannot hold.
    """
    if lost := [c.name for c in d.configurations if c.controls]:
        warn(d, f"saved as {os.fspath(path)}, it loses the controls of the configurations {listed(lost)}")
    robot = Element("robot", name=d.name)
    for c in d.configurations:
        state = SubElement(robot, "group_state", name=c.name, group=WHOLE)
        for joint, values in c.coordinates:
            SubElement(state, "joint", name=joint, value=" ".join(map(repr, values)))
    for a, b in d.disabled_collisions:
        SubElement(robot, "disable_collisions", link1=a or WORLD, link2=b or WORLD)
    indent(robot)
    ElementTree(robot).write(path, encoding="unicode", xml_declaration=True)
