"""Tests of sensors of edited descriptions: they keep their readings, or reports name them."""

from __future__ import annotations

import numpy as np
import pytest

import featherweight as fw
from featherweight.model.types import SensorKind
from oracles.states import Array

ARM = """
<mujoco model="arm">
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/> <site name="post"/>
    <body name="a" pos="0 0 1">
      <joint name="ja" axis="0 1 0"/> <geom name="ga" size="0.1" contype="0" conaffinity="0"/>
      <site name="sa" euler="10 20 30"/>
      <body name="b" pos="0.1 0 0.3">
        <joint name="jb" axis="1 0 0"/> <geom name="gb" type="box" size="0.1 0.2 0.1"/>
        <site name="sb" pos="0 0.1 0" euler="150 10 0"/>
      </body>
    </body>
  </worldbody>
  <actuator> <motor name="ma" joint="ja"/> <motor name="mb" joint="jb"/> </actuator>
  <sensor>
    <gyro name="gyro_a" site="sa"/> <accelerometer name="acc_b" site="sb"/> <jointpos name="pos_b" joint="jb"/>
    <actuatorfrc name="frc_a" actuator="ma"/> <actuatorfrc name="frc_b" actuator="mb"/>
    <framepos name="between" objtype="site" objname="sb" reftype="site" refname="sa"/>
    <framepos name="shape" objtype="geom" objname="ga"/> <rangefinder name="ray" site="sb"/>
    <framequat name="inertial" objtype="body" objname="b"/>
    <subtreecom name="com" body="a"/> <force name="load" site="sa"/> <clock name="time"/>
  </sensor>
</mujoco>
"""


def names(d: fw.Description) -> list[str]:
    return [s.name for s in d.sensors]


def readings(d: fw.Description, q: list[float], v: list[float]) -> dict[str, Array]:
    sim = fw.Simulation(fw.build(d), 1e-3, q=q, v=v)
    sim.step()
    s = sim.sensors()
    return {name: s[name] for name in s.keys()}  # noqa: SIM118  # of an array


def test_renamed_sensors_read_the_same() -> None:
    d = fw.read(ARM)
    new = d.renamed({"sa": "imu", "gyro_a": "imu_gyro", "jb": "elbow", "b": "fore", "ga": "ball", "mb": "drive"})
    assert names(new)[0] == "imu_gyro"
    old, now = (readings(x, [0.1, 0.2], [0.3, -0.4]) for x in (d, new))
    for name, x in old.items():
        np.testing.assert_array_equal(now[{"gyro_a": "imu_gyro"}.get(name, name)], x)
    with pytest.raises(fw.ModelError, match="two sensors would have the name 'time'"):
        d.renamed({"pos_b": "time"})


def test_attached_sensors_have_the_prefix_and_read_the_same() -> None:
    stand = fw.read('<mujoco><worldbody><body name="stand"><joint name="turn"/><geom size="1"/></body></worldbody></mujoco>')
    both = stand.attached(fw.read(ARM), "stand", prefix="l_")
    assert names(both) == ["l_" + name for name in names(fw.read(ARM))]
    old, now = readings(fw.read(ARM), [0.1, 0.2], [0.3, -0.4]), readings(both, [0.0, 0.1, 0.2], [0.0, 0.3, -0.4])
    for name in ("pos_b", "between", "com", "shape", "inertial"):
        np.testing.assert_allclose(now["l_" + name], old[name], atol=2e-5)  # the stand yields within the step
    with pytest.raises(fw.ModelError, match="sensors with the names"):
        fw.read('<mujoco><worldbody/><sensor><clock name="time"/></sensor></mujoco>').attached(
            fw.read('<mujoco><worldbody/><sensor><clock name="time"/></sensor></mujoco>')
        )


def test_sensors_go_with_what_they_measure_and_are_noted() -> None:
    d = fw.read(ARM).without("b")
    assert names(d) == ["gyro_a", "frc_a", "shape", "com", "load", "time"]
    assert dict(d.unused)["sensors of what is gone"] == "acc_b, pos_b, frc_b, between, ray, inertial"
    assert names(fw.read(ARM).subtree("b")) == ["acc_b", "ray", "inertial", "time"]
    readings(d, [0.1], [0.2])


def test_sensors_of_locked_joints_go_and_the_others_stay() -> None:
    d = fw.read(ARM).locked({"jb": 0.2})
    assert dict(d.unused)["sensors of what is gone"] == "pos_b, frc_b"
    free = readings(fw.read(ARM), [0.1, 0.2], [0.3, 0.0])
    held = readings(d, [0.1], [0.3])
    for name in ("between", "shape", "com", "inertial"):
        np.testing.assert_allclose(held[name], free[name], atol=1e-5)  # if jb is free, it does not stay at 0.2


def test_sensors_of_joints_that_get_another_type_go() -> None:
    with pytest.warns(fw.ModelWarning, match="actuators of joints that have another type"):
        d = fw.read(ARM).with_joint_type("jb", "spherical")
    assert "pos_b" not in names(d)
    assert "acc_b" in names(d)
    assert "pos_b" in dict(d.unused)["sensors of what is gone"]


@pytest.mark.parametrize("axis", "xyz")
def test_sensors_in_a_mirror_read_the_image(axis: str) -> None:
    """Check that positions and accelerations are reflected, and that angular velocities are reflected with the opposite
    sign.
    """
    d, k = fw.read(ARM), "xyz".index(axis)
    if k == 2:
        d = fw.describe(d.bodies, d.joints, frames=d.frames, shapes=d.shapes, actuators=d.actuators, sensors=d.sensors,
                        gravity=(0.0, 0.0, 0.0))  # fmt: skip  # which the mirror does not turn
    M = np.where(np.arange(3) == k, -1.0, 1.0)
    old, now = readings(d, [0.1, 0.2], [0.3, -0.4]), readings(d.mirrored(axis), [0.1, 0.2], [0.3, -0.4])
    assert ("ray" in now) is (axis != "z")
    for name in ("acc_b", "between", "shape", "com", "load"):
        np.testing.assert_allclose(now[name], M * old[name], atol=1e-10)
    np.testing.assert_allclose(now["gyro_a"], -M * old["gyro_a"], atol=1e-12)
    w, *xyz = old["inertial"]
    image = np.array([w, *(-M * xyz)])
    assert abs(now["inertial"] @ image) == pytest.approx(1.0, abs=1e-12)
    if axis != "z":
        np.testing.assert_allclose(now["ray"], old["ray"], atol=1e-12)
        assert old["ray"] > 0.0


def test_forces_on_bodies_that_a_loop_holds_are_not_measured() -> None:
    d = fw.read(ARM).with_loop(fw.Loop("pin", fw.LoopType.SPHERICAL, "b", None, fw.Pose(p=(0.0, 0.1, 0.0))))
    assert "load" not in names(d)
    assert dict(d.unused)["sensors of forces on bodies that loops or tendons hold"] == "load"
    text = ARM.replace("</worldbody>", '</worldbody><equality><connect body1="b" anchor="0 0.1 0"/></equality>')
    assert names(fw.read(text)) == names(d)
    within = ARM.replace("</worldbody>", '</worldbody><equality><connect body1="b" body2="a" anchor="0 0.1 0"/></equality>')
    assert "load" in names(fw.read(within))


def test_kinds_that_mirrors_change_are_those_of_rays() -> None:
    d = fw.read(ARM)
    assert {s.kind for s in d.sensors} - {s.kind for s in d.mirrored("z").sensors} == {SensorKind.RANGEFINDER}


SEEN = """
<mujoco model="seen">
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="a" pos="0 0 0.5">
      <joint name="ja" axis="0 1 0"/> <geom name="ga" size="0.1"/> <site name="sa" pos="0.3 0.1 0.05"/>
      <camera name="eye" pos="-0.5 0.2 0" euler="90 -70 0" resolution="9 7" fovy="80"/>
      <body name="b" pos="0.3 0 -0.4">
        <joint name="jb" axis="0 1 0"/> <geom name="gb" size="0.0725" mass="1"/>
        <camera name="back" mode="track" pos="0.2 0 0.6" resolution="3 2"/>
      </body>
    </body>
  </worldbody>
  <sensor>
    <camprojection name="pixel" site="sa" camera="eye"/>
    <framepos name="from_eye" objtype="site" objname="sa" reftype="camera" refname="eye"/>
    <rangefinder name="view" camera="back" data="dist point"/>
    <contact name="foot" subtree1="b" geom2="floor" data="found force dist normal"/>
    <contact name="any" body1="b" reduce="netforce" data="found force"/>
    <framepos name="late" objtype="camera" objname="back" nsample="2" delay="0.002"/>
  </sensor>
</mujoco>
"""
BENT = [0.1, -0.05]


def test_sensors_on_cameras_and_contacts_are_renamed_attached_and_kept() -> None:
    d = fw.read(SEEN)
    old = readings(d, BENT, [0.0, 0.0])
    assert old["foot"][0] == 1.0
    new = d.renamed({"eye": "camera", "b": "lower", "floor": "ground", "sa": "point"})
    for name, x in readings(new, BENT, [0.0, 0.0]).items():
        np.testing.assert_array_equal(x, old[name])
    stand = fw.read('<mujoco><worldbody><body name="stand"><joint name="turn"/><geom size="1"/></body></worldbody></mujoco>')
    assert names(stand.attached(fw.read(SEEN), "stand", prefix="l_")) == ["l_" + name for name in names(d) if name != "foot"]
    cut = d.without("b")
    assert names(cut) == ["pixel", "from_eye"]
    assert dict(cut.unused)["sensors of what is gone"] == "view, foot, any, late"
    locked = readings(d.locked({"ja": BENT[0]}), BENT[1:], [0.0])
    for name in ("pixel", "from_eye"):  # `back` tracks from another start
        np.testing.assert_allclose(locked[name], old[name], atol=1e-4)  # the arm falls within the step


@pytest.mark.parametrize("axis", "xy")
def test_pictures_in_a_mirror_have_left_and_right_exchanged(axis: str) -> None:
    M = np.where(np.arange(3) == "xyz".index(axis), -1.0, 1.0)
    old, now = (readings(x, BENT, [0.0, 0.0]) for x in (fw.read(SEEN), fw.read(SEEN).mirrored(axis)))
    np.testing.assert_allclose(now["pixel"], [9 - old["pixel"][0], old["pixel"][1]], atol=1e-9)
    view, image = (x["view"].reshape(2, 3, 4) for x in (old, now))
    assert (view[..., 0] > 0.0).any()
    np.testing.assert_allclose(image, view[:, ::-1] * [1.0, *M], atol=1e-9)
    np.testing.assert_allclose(now["foot"][[0, 1, 4]], old["foot"][[0, 1, 4]], atol=1e-9)
    np.testing.assert_allclose(now["foot"][5:], M * old["foot"][5:], atol=1e-12)
    np.testing.assert_allclose(now["any"], [1, *(M * old["any"][1:])], atol=1e-7)
