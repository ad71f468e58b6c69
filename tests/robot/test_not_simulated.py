"""Tests of the report of properties of a file that simulations ignore."""

from __future__ import annotations

from pathlib import Path

import featherweight as fw
from featherweight.robot.not_simulated import CHANGING_MOTION, not_simulated

INERTIAL = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
LIMITED = 'limited="true" range="0 1" margin="0.1" solreflimit="1 1"'
EVERYTHING = f"""<mujoco><option density="1"/><asset><texture name="t" type="2d" builtin="flat" width="1" height="1"/>
<hfield name="h" file="nowhere.png" size="1 1 1 1"/></asset>
<worldbody><light/><geom name="f" size="1"/>
  <body name="a" gravcomp="1"><joint name="j" actuatorgravcomp="true" actuatorfrcrange="-1 2" {LIMITED}/>{INERTIAL}
    <geom size=".1" condim="4"/>
    <geom size=".1" contype="0" conaffinity="0" condim="6"/></body>
  <body><joint type="ball" limited="true" range="0 30" stiffness="1"/>{INERTIAL}<geom size=".1" condim="6" solref=".1 1"/>
    <geom type="hfield" hfield="h"/></body>
  <body><joint type="free" stiffness="1" frictionloss="1"/>{INERTIAL}<geom name="g" size=".1" gap=".1"/></body>
</worldbody>
<tendon><spatial stiffness="1"><site site="s"/><site site="r"/></spatial>
  <fixed actuatorfrcrange="-1 1"><joint joint="j" coef="1"/></fixed></tendon>
<actuator><general joint="j" dyntype="user"/></actuator><sensor><jointpos joint="j"/><user dim="1"/></sensor></mujoco>"""
SITES = '<site name="s"/><site name="r" pos="1 0 0"/>'


def test_kinds_of_forces_are_told_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    path.write_text(EVERYTHING.replace("<light/>", f"<light/>{SITES}"))
    robot = fw.load(path)
    found = not_simulated(robot)
    unseen = {
        "not supported, and left out",
        "springs that yield",
        "springs of tendons that yield",
    }  # of later versions of MuJoCo
    of_followers = {
        kind for kind in CHANGING_MOTION if "follow" in kind or "beside" in kind
    }  # tests/simulation/test_forces_of_followers.py
    elsewhere = {
        "contacts with two sliding or rolling frictions, read as the first"
    }  # tests/model/formats/mjcf/test_contact_numbers.py
    elsewhere |= {"primitives fitted to meshes, touching as those meshes"}  # tests/model/formats/mjcf/test_shapes.py
    elsewhere |= {"meshes with drag of their own (fluidshape), taken as their links' boxes"}  # tests/simulation/test_drag.py
    elsewhere |= {
        kind for kind in CHANGING_MOTION if "actuatorgravcomp" in kind
    }  # tests/simulation/test_gravity_compensation.py
    elsewhere |= {"springs of joints with several degrees of freedom"}  # tests/simulation/test_forces_of_followers.py
    elsewhere |= {"equality constraints that yield in MuJoCo, taken as exact"}  # tests/model/formats/mjcf/test_reader.py
    elsewhere |= {"bodies with forces of plugins", "limits of joints with several degrees of freedom"}
    elsewhere |= {  # tests/model/formats/usd
        "limits, forces and drives of joints that close loops",
        "physics that is not used",
        "restitution",
        "static frictions that differ from dynamic ones, which count",
        "swing limits of ball joints",
    }
    assert found.keys() == {*CHANGING_MOTION} - unseen - of_followers - elsewhere
    assert found.items() <= robot.report().items()
    assert robot.report().keys() - found.keys() == {
        "textures",
        "lights",
        "sensors",
        "height fields whose files cannot be read",
    }


def test_a_robot_that_is_simulated_whole_has_none() -> None:
    assert not_simulated(fw.build(fw.robots.four_bar(), execution="interpreted")) == {}
