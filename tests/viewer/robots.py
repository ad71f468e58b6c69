"""Small robots for tests of the viewer."""

from __future__ import annotations

from pathlib import Path

import featherweight
from featherweight import Body, ClosedRobot, Inertia, Joint, JointType, Loop, LoopType, Pose, describe
from featherweight.model.types import Shape, ShapeType
from featherweight.robot.robot import Robot
from oracles.mechanisms import closed

ARM = """<robot name="arm">
  <material name="red"><color rgba="0.9 0.1 0.1 1"/></material>
  <link name="base"><inertial><mass value="3"/>
    <inertia ixx="0.03" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"/></inertial>
    <visual><geometry><box size="0.3 0.3 0.1"/></geometry></visual></link>
  <link name="upper"><inertial><origin xyz="0 0 0.25"/><mass value="2"/>
    <inertia ixx="0.05" ixy="0" ixz="0" iyy="0.05" iyz="0" izz="0.01"/></inertial>
    <visual><origin xyz="0 0 0.25"/><geometry><box size="0.16 0.16 0.5"/></geometry><material name="red"/></visual>
    <collision><origin xyz="0 0 0.25"/><geometry><cylinder radius="0.12" length="0.5"/></geometry></collision></link>
  <link name="lower"><inertial><origin xyz="0.01 0.02 0.15"/><mass value="1"/>
    <inertia ixx="0.02" ixy="0.001" ixz="0" iyy="0.03" iyz="0.002" izz="0.015"/></inertial></link>
  <link name="tip"/>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-1.5" upper="1.25" effort="10" velocity="1"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/><origin xyz="0 0 0.5" rpy="0.3 0 0"/>
    <axis xyz="1 0 0"/></joint>
  <joint name="wrist" type="fixed"><parent link="lower"/><child link="tip"/><origin xyz="0 0 0.3"/></joint>
</robot>"""


HOSTILE = (
    "a</script><script>window.ran=1</script><img src=x onerror=window.ran=1>"
    "![x](/etc/passwd) `b` &amp;\n\n# *c* [d](javascript:window.ran=1)"
)
"""A name that would run a script, or read a file, if it were taken for markup."""


def arm(folder: Path, base: str = "fixed") -> Robot:
    """Return two links: a red box, and one without shapes."""
    path = folder / "arm.urdf"
    path.write_text(ARM)
    return featherweight.load(path, base)


def linkage() -> ClosedRobot:
    """Return a four-bar linkage whose names describe its parts."""
    return four_bar("")


def hostile_linkage(name: str) -> ClosedRobot:
    """Return the linkage with hostile text in front of every name, and with a mesh that does not exist."""
    return four_bar(name)


def four_bar(before: str) -> ClosedRobot:
    """Return a four-bar linkage in the plane y = 0 that moves with its crank, which cannot turn over.

    The pivots of crank (0.9 m) and rocker (0.5 m) are 0.5 m apart, and the coupler is 0.6 m long. To turn over, the crank's end
    would have to be 1.4 m from the rocker's pivot, beyond coupler and rocker.
    """
    rod = Inertia(1.0, (0.0, 0.0, 0.25), (0.02, 0.0, 0.0, 0.02, 0.0, 0.001))
    along_y = ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, -1.0, 0.0))

    def hinge(name: str, parent: str, at: tuple[float, float, float]) -> Joint:
        return Joint(f"{before}{name}_hinge", JointType.REVOLUTE, before + parent, before + name, Pose(p=at), (0.0, 1.0, 0.0))

    pin = Loop(
        before + "pin",
        LoopType.REVOLUTE,
        before + "coupler",
        before + "rocker",
        Pose(along_y, (0.0, 0.0, 0.6)),
        Pose(along_y, (0.0, 0.0, 0.5)),
    )
    joints = [
        hinge("crank", "base", (0.0, 0.0, 0.0)),
        hinge("coupler", "crank", (0.0, 0.0, 0.9)),
        hinge("rocker", "base", (0.5, 0.0, 0.0)),
    ]
    bodies = [Body(before + "base"), *(Body(before + name, rod) for name in ("crank", "coupler", "rocker"))]
    shapes = [Shape(before, before + "crank", ShapeType.MESH, (1.0, 1.0, 1.0), path=f"/{before}.stl")] if before else []
    return closed(
        describe(bodies, joints, loops=[pin], shapes=shapes, independent=[before + "crank_hinge"], name=before or "linkage")
    )
