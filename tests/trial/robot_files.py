"""Robot files to damage: files of example-robot-data and gymnasium, if installed, and small files of our own."""

# ruff: noqa: E501 (lines of files, and lists of words)

from __future__ import annotations

import functools
import importlib.util
import sysconfig
from pathlib import Path
from typing import NamedTuple

import numpy as np

EXAMPLES = Path(sysconfig.get_path("purelib")) / "cmeel.prefix/share/example-robot-data/robots"
SMALL = 3_000  # bytes; larger files are drawn in inverse proportion to their size, so that most rounds are quick


class RobotFile(NamedTuple):
    """A file to damage."""

    name: str
    text: bytes


SOLID = '<inertial><origin xyz="0.1 0 0.2" rpy="0 0.1 0"/><mass value="2"/>\n<inertia ixx="0.05" ixy="0.001" ixz="0" iyy="0.06" iyz="0" izz="0.04"/></inertial>'
ARM = f"""<?xml version="1.0"?>
<robot name="arm">
  <material name="red"><color rgba="0.9 0.1 0.1 1"/></material>
  <link name="base"/>
  <link name="upper">{SOLID}<visual><origin xyz="0 0 0.25"/><geometry><box size="0.16 0.16 0.5"/></geometry><material name="red"/>
    </visual><collision><geometry><cylinder radius="0.12" length="0.5"/></geometry></collision></link>
  <link name="lower">{SOLID}<visual><geometry><mesh filename="package://arm/lower.stl" scale="1 1 1"/></geometry></visual></link>
  <link name="tip">{SOLID}<collision><geometry><sphere radius="0.1"/></geometry></collision></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 1" rpy="0 0 1.5707963"/>
    <axis xyz="0 1 0"/><limit lower="-1.5" upper="1.25" effort="10" velocity="1"/><dynamics damping="0.1" friction="0.2"/></joint>
  <joint name="elbow" type="prismatic"><parent link="upper"/><child link="lower"/><origin xyz="0 0 0.5" rpy="0.3 0 0"/>
    <axis xyz="1 0 0"/><limit lower="0" upper="0.5"/><mimic joint="shoulder" multiplier="0.3" offset="0.1"/></joint>
  <joint name="wrist" type="continuous"><parent link="lower"/><child link="tip"/><origin xyz="0 0 0.3"/><axis xyz="0 0.6 0.8"/></joint>
</robot>"""
LINKAGE = f"""<robot name="linkage">
  <link name="world"/><link name="crank">{SOLID}</link><link name="rod">{SOLID}</link><link name="rocker">{SOLID}</link>
  <joint name="a" type="revolute" independent="true"><parent link="world"/><child link="crank"/><axis xyz="0 0 1"/></joint>
  <joint name="b" type="revolute"><parent link="crank"/><child link="rod"/><origin xyz="0.4 0 0"/><axis xyz="0 0 1"/></joint>
  <joint name="c" type="revolute"><parent link="world"/><child link="rocker"/><origin xyz="1 0 0"/><axis xyz="0 0 1"/></joint>
  <loop name="pin" type="revolute"><predecessor link="rod"><origin xyz="0.8 0 0"/></predecessor>
    <successor link="rocker"><origin xyz="0 0.7 0"/></successor><axis xyz="0 0 1"/></loop>
</robot>"""
GEARS = f"""<robot name="gears">
  <link name="base"/><link name="a">{SOLID}</link><link name="b">{SOLID}</link><link name="ball">{SOLID}</link>
  <joint name="ja" type="revolute"><parent link="base"/><child link="a"/><origin xyz="0 0 1"/><axis xyz="0 0 1"/></joint>
  <joint name="jb" type="revolute"><parent link="base"/><child link="b"/><origin xyz="0 1 0"/><axis xyz="0 0 1"/></joint>
  <joint name="jc" type="spherical"><parent link="b"/><child link="ball"/><origin xyz="1 0 0"/></joint>
  <coupling name="gear" type="gear"><predecessor link="a"/><successor link="b"/><ratio value="-2"/></coupling>
</robot>"""
WALKER = """<mujoco model="walker">
  <compiler angle="radian" meshdir="."/><option gravity="0 0 -9.8"/>
  <default><joint damping="0.1" armature="0.01"/><geom density="500"/></default>
  <asset><mesh name="hull" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/><material name="red" rgba="1 0 0 1"/>
    <hfield name="hill" nrow="2" ncol="2" size="1 1 1 1"/></asset>
  <worldbody><geom name="floor" type="plane" size="5 5 1"/>
    <body name="trunk" pos="0 0 1"><freejoint name="root"/><geom type="box" size="0.2 0.1 0.05"/><site name="imu" pos="0 0 0.1"/>
      <body name="thigh" pos="0.2 0 0" euler="0 0.1 0"><joint name="hip" axis="0 1 0" range="-1 1" stiffness="2" springref="0.1"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.04" material="red"/>
        <body name="shin" pos="0 0 -0.3"><joint name="knee" axis="0 1 0" ref="0.1"/><joint name="slide" type="slide" axis="0 0 1"/>
          <geom type="mesh" mesh="hull" mass="0.5"/></body></body>
      <body name="tail" pos="-0.2 0 0"><joint name="ball" type="ball"/><inertial pos="0 0 0.1" mass="1" diaginertia="0.1 0.1 0.1"/>
      </body></body></worldbody>
  <equality><joint joint1="knee" joint2="hip" polycoef="0 -1 0.1 0 0"/></equality>
  <actuator><motor name="m" joint="hip" gear="20" ctrlrange="-1 1"/><position joint="slide" kp="10"/></actuator>
</mujoco>"""
BARS = """<mujoco model="bars"><worldbody>
  <body name="a"><joint name="ja" axis="0 0 1"/><geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.02"/>
    <body name="b" pos="0.4 0 0"><joint name="jb" axis="0 0 1"/><geom type="capsule" fromto="0 0 0 0.8 0 0" size="0.02"/></body></body>
  <replicate count="2" offset="0 0 1"><body name="c" pos="1 0 0"><joint name="jc" axis="0 0 1"/>
    <geom type="capsule" fromto="0 0 0 0 0.7 0" size="0.02"/></body></replicate></worldbody>
  <equality><connect body1="b" body2="c0" anchor="0.8 0 0"/></equality></mujoco>"""


@functools.cache
def robot_files(format: str) -> tuple[tuple[RobotFile, ...], tuple[float, ...]]:
    """Return all files of a format, "urdf" or "mjcf", with their probabilities."""
    if format == "urdf":
        own = {"arm": ARM, "linkage": LINKAGE, "gears": GEARS}
        paths = sorted(EXAMPLES.rglob("*.urdf"))
    else:
        own = {"walker": WALKER, "bars": BARS}
        gymnasium = importlib.util.find_spec("gymnasium")
        folder = Path(gymnasium.origin or "").parent / "envs/mujoco/assets" if gymnasium else Path("nowhere")
        paths = sorted(folder.glob("*.xml"))
    files = [RobotFile(name, text.encode()) for name, text in own.items()]
    files += [RobotFile(path.stem, path.read_bytes()) for path in paths]
    slow = {"linkage": 0.2}  # an error about loops that cannot be closed takes seconds
    weights = np.array([slow.get(f.name, 1.0) * min(1.0, SMALL / len(f.text)) for f in files])
    return tuple(files), tuple(weights / weights.sum())
