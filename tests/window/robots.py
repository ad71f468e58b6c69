"""Small robots to look at."""

from __future__ import annotations

from pathlib import Path

import featherweight
from featherweight.robot import Robot

ARM = """<robot name="arm">
  <material name="red"><color rgba="0.9 0.1 0.1 1"/></material>
  <link name="base"><visual><geometry><box size="0.3 0.3 0.1"/></geometry></visual></link>
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

FOUR_BAR = """<robot name="four_bar">
  <link name="base"/>
  {links}
  <joint name="crank" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/>
    <limit lower="-6" upper="6" effort="1" velocity="1"/></joint>
  <joint name="coupler" type="revolute"><parent link="a"/><child link="b"/><origin xyz="0 0 {crank}"/><axis xyz="0 1 0"/>
    <limit lower="-6" upper="6" effort="1" velocity="1"/></joint>
  <joint name="rocker" type="revolute"><parent link="base"/><child link="c"/><origin xyz="0.5 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-6" upper="6" effort="1" velocity="1"/></joint>
</robot>"""


def arm(folder: Path, base: str = "fixed") -> Robot:
    """Two links: a red box, and one without shapes."""
    path = folder / "arm.urdf"
    path.write_text(ARM)
    return featherweight.load(path, base)


def linkage(crank: float = 0.6) -> Robot:
    """A four-bar linkage of rods in the plane y = 0, on pivots half a metre apart, that turns by its crank.

    The coupler is 0.6 m long and the rocker 0.5 m. A crank of 0.6 m cannot turn round; one of 0.2 m can.
    """
    from featherweight import Body, Inertia, Joint, JointType, Loop, LoopType, Mechanism, Pose

    rod = Inertia(1.0, (0.0, 0.0, 0.25), (0.02, 0.0, 0.0, 0.02, 0.0, 0.001))
    along_y = Pose(((1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, -1.0, 0.0)))

    def hinge(name: str, parent: str, child: str, at: tuple[float, float, float]) -> Joint:
        return Joint(name, JointType.REVOLUTE, parent, child, Pose(p=at), (0.0, 1.0, 0.0))

    return featherweight.build(
        Mechanism(
            bodies=[Body("base"), *(Body(name, rod) for name in ("crank", "coupler", "rocker"))],
            joints=[
                hinge("crank_hinge", "base", "crank", (0.0, 0.0, 0.0)),
                hinge("coupler_hinge", "crank", "coupler", (0.0, 0.0, crank)),
                hinge("rocker_hinge", "base", "rocker", (0.5, 0.0, 0.0)),
            ],
            loops=[
                Loop(
                    "pin",
                    LoopType.REVOLUTE,
                    "coupler",
                    "rocker",
                    Pose(along_y.R, (0.0, 0.0, 0.6)),
                    Pose(along_y.R, (0.0, 0.0, 0.5)),
                )
            ],
        ),
        independent=["crank_hinge"],
    )
