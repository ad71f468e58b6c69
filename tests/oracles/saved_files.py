"""Robots saved to files and loaded again, for tests of the writers; MJCF by default."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import featherweight as fw
from featherweight import ModelWarning, Pose
from featherweight.model.contact_rules import Softness
from featherweight.robot.collision.shape_pairs import touching_pairs

TILTED = Pose(((0.0, -1.0, 0.0), (0.6, 0.0, -0.8), (0.8, 0.0, 0.6)), (0.1, -0.2, 0.3))
ROUNDING = 1e-13  # rounding of rotations by quaternions and of inertias by principal axes, with numbers of at most 1000
SOFT = Softness((0.05, 0.7), (0.8, 0.9, 0.01, 0.4, 3.0))


def saved(description: fw.Description, folder: Path, suffix: str = ".xml") -> fw.Description:
    """Return the description read from the file that stores the given one."""
    description.save(folder / f"saved{suffix}")
    return fw.read(folder / f"saved{suffix}")


def whatever_is_lost(description: fw.Description, folder: Path, suffix: str = ".xml") -> fw.Description:
    """Save and load like `saved`, and ignore losses, which other tests check."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return saved(description, folder, suffix)


def in_mujoco(description: fw.Description, folder: Path) -> Any:
    import mujoco

    whatever_is_lost(description, folder)
    return mujoco.MjModel.from_xml_path(str(folder / "saved.xml"))


def silently(description: fw.Description, folder: Path) -> fw.Description:
    """Save and load like `saved`, if nothing is lost."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        return saved(description, folder)


def flat(x: Any) -> Iterator[Any]:
    if dataclasses.is_dataclass(x):
        for field in dataclasses.fields(x):
            yield from flat(getattr(x, field.name))
    elif isinstance(x, np.ndarray):
        yield from x.ravel().tolist()
    elif isinstance(x, (tuple, list)):
        for each in x:
            yield from flat(each)
    else:
        yield x


def assert_same(one: Any, other: Any, tolerance: float = ROUNDING) -> None:
    """Compare names and types, and numbers to rounding."""
    pairs = list(zip(flat(one), flat(other), strict=True))
    numbers = [(a, b) for a, b in pairs if isinstance(a, float) and a != b]
    assert [(a, b) for a, b in pairs if a != b and not isinstance(a, float)] == []
    assert [(a, b) for a, b in numbers if not abs(a - b) <= tolerance] == []


def assert_same_description(one: fw.Description, other: fw.Description) -> None:
    """Compare everything except unused content and the path of the file."""
    assert_same(dataclasses.replace(one, source="", unused=()), dataclasses.replace(other, source="", unused=()))


def assert_touch_alike(one: fw.Robot, other: fw.Robot) -> None:
    """Check that the same pairs of shapes touch, with the same parameters; friction is not compared if no file gives it."""

    def pairs(robot: fw.Robot) -> dict[frozenset[str], Any]:
        names = [s.name for s in robot.shapes]
        return {
            frozenset((names[p.i], names[p.j])): (p.margin, p.condim, p.from_file, p.softness) for p in touching_pairs(robot)
        }

    assert pairs(one) == pairs(other)


EVERYTHING = """<mujoco model="all"><compiler angle="degree"/>
  <option gravity="0 0.1 -1.62" timestep="0.004" integrator="implicitfast" cone="elliptic" impratio="3" density="1.2"
    viscosity="0.01"><flag filterparent="disable"/></option>
  <default><geom solimp="0.8 0.9 0.01 0.4 3" friction="0.7"/></default>
  <asset><mesh name="tetra" vertex="0 0 0 1 0 0 0 1 0 0 0 1" scale="0.1 0.2 -0.3"/>
    <hfield name="hills" nrow="2" ncol="3" size="2 1 0.5 0.1" elevation="0 1 2 3 4 6"/></asset>
  <worldbody>
    <geom type="plane" size="1 1 1" name="floor" rgba="0.5 0.5 0.5 1" condim="6"
      friction="0.7 0.01 0.002"/><site name="mark" pos="1 2 3"/>
    <geom type="hfield" hfield="hills" name="ground" pos="5 0 0"/>
    <body name="torso" pos="0 0 1" euler="10 20 30"><joint type="free" name="root" damping="0.1"/>
      <geom name="hull" size="0.1 0.2 0.3" type="ellipsoid" pos="0 0 0.1" priority="1" margin="0.01" solref="-100 -2"/>
      <body name="thigh" pos="0 0.1 -0.2" euler="10 20 30">
        <joint name="yaw" axis="0 0 1" pos="0.01 0 0.02" armature="0.1" range="-10 20" solreflimit="0.03 0.9"/>
        <joint name="roll" axis="1 0 1" ref="20" frictionloss="0.3" solimpfriction="0.8 0.9 0.01 0.4 3"/>
        <joint name="slide" type="slide" axis="0 1 0" stiffness="3" springref="0.1" ref="0.2" actuatorfrcrange="-5 5"/>
        <joint name="shoulder" type="ball" pos="0.02 0 0" stiffness="2" damping="0.3" armature="0.01"/>
        <geom type="capsule" size="0.04" fromto="0 0 0 0.1 0 -0.3" contype="2" conaffinity="6"/>
        <geom type="cylinder" size="0.04 0.1" contype="0" conaffinity="0" group="4" name="drawn"/>
        <site name="knee" pos="0.1 0 -0.3" euler="0 0 90"/>
        <body name="foot" pos="0.1 0 -0.3"><geom type="box" size="0.1 0.05 0.02" rgba="1 0 0 1" group="3" name="sole"/>
          <geom type="mesh" mesh="tetra" name="toe" density="100" pos="0.1 0 0" solmix="2"/></body></body>
      <body name="arm" pos="0 0 0.3"><joint name="lift" axis="0 1 0" ref="5"/><geom size="0.1" name="hand"/></body></body>
  </worldbody>
  <contact><pair geom1="hand" geom2="sole" condim="1" margin="0.02" friction="0.3 0.3 0.02 0.003 0.003" solref="0.05 0.7"/>
    <exclude body1="torso" body2="foot"/><exclude body1="world" body2="arm"/></contact>
  <equality><joint joint1="lift" joint2="roll" polycoef="0.1 0.5 0.2 0 0"/></equality>
  <actuator><position name="push" joint="slide" kp="30" kv="2" forcerange="-5 5" ctrlrange="-1 1"/>
    <motor name="turn" joint="yaw" gear="3"/></actuator>
  <keyframe><key name="bent" qpos="1 2 3 0.6 0 0.8 0  0.1 0.2 0.3  0.8 0 0 0.6  0.4" ctrl="0.5 2"/><key name="qpos0_2"
    qpos="0 0 0 1 0 0 0  0 0 0  1 0 0 0  0"/></keyframe>
</mujoco>"""
