"""Tests of sensors that are loaded, saved, and loaded again."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight.model.types import SensorKind
from simulation import test_contact_sensors, test_ray_sensors, test_sensor_history
from simulation.test_sensors import MODELS

OTHERS = {
    "contacts": test_contact_sensors.scene(),
    "rays": test_ray_sensors.scene("dist normal depth"),
    "history": test_sensor_history.text(),
}


@pytest.mark.parametrize("model", MODELS)
def test_saved_sensors_are_the_same(model: str, tmp_path: Path) -> None:
    d = fw.read(MODELS[model])
    d.save(tmp_path / "saved.xml")
    again = fw.read(tmp_path / "saved.xml")
    assert again.sensors == d.sensors
    compiled = mujoco.MjModel.from_xml_path(str(tmp_path / "saved.xml"))
    assert [compiled.sensor(i).name for i in range(compiled.nsensor)] == [s.name for s in d.sensors]
    first, second = (fw.Simulation(fw.build(x)) for x in (d, again))
    for sim in (first, second):
        sim.step(steps=2)
    np.testing.assert_allclose(first.sensors(), second.sensors(), atol=1e-9)


@pytest.mark.parametrize("model", OTHERS)
def test_saved_choices_of_sensors_are_the_same(model: str, tmp_path: Path) -> None:
    d = fw.read(OTHERS[model])
    d.save(tmp_path / "saved.xml")
    again = fw.read(tmp_path / "saved.xml")
    assert again.sensors == d.sensors
    first, second = (mujoco.MjModel.from_xml_string(OTHERS[model]), mujoco.MjModel.from_xml_path(str(tmp_path / "saved.xml")))
    for name in ("sensor_type", "sensor_dim", "sensor_intprm", "sensor_objtype", "sensor_reftype"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_all_kinds_are_among_the_models() -> None:
    kinds = {s.kind for text in MODELS.values() for s in fw.read(text).sensors}
    assert kinds == {*SensorKind}


def test_urdf_files_cannot_hold_sensors(tmp_path: Path) -> None:
    text = '<mujoco><worldbody><body><joint/><geom size="1"/></body></worldbody><sensor><clock name="time"/></sensor></mujoco>'
    with pytest.warns(fw.ModelWarning, match="it loses.*sensors time"):
        fw.read(text).save(tmp_path / "saved.urdf")


def test_volumes_of_one_site_that_differ_are_told(tmp_path: Path) -> None:
    import dataclasses

    d = fw.read(
        '<mujoco><worldbody><body><joint/><geom size="1"/><site name="s" type="box" size="1 2 3"/></body></worldbody>'
        '<sensor><touch name="one" site="s" noise="0.25"/><touch name="two" site="s"/></sensor></mujoco>'
    )
    zone = d.sensors[1].zone
    assert zone is not None
    other = dataclasses.replace(d.sensors[1], zone=zone._replace(size=(1.0, 1.0, 1.0)))
    with pytest.warns(fw.ModelWarning, match="the volumes of the sensors two"):
        dataclasses.replace(d, sensors=(d.sensors[0], other)).save(tmp_path / "saved.xml")


MANY = """
<mujoco>
  <worldbody>
    <camera name="eye" resolution="4 4"/>
    <body name="b"> <joint name="j"/> <geom name="g" size="0.1" condim="4"/> <site name="s"/>
      <geom name="rock" type="mesh" mesh="rock" mass="0"/>
    </body>
  </worldbody>
  <asset><mesh name="rock" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>
  <tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>
  <actuator><motor name="m" joint="j"/><muscle name="muscle" joint="j" lengthrange="0 1"/></actuator>
  <sensor>
    <user dim="2"/> <tendonpos tendon="t"/> <tendonactuatorfrc tendon="t"/> <tendonvel tendon="t"/>
    <camprojection site="s" camera="eye"/>
    <framepos objtype="camera" objname="eye"/> <framepos objtype="geom" objname="rock"/> <framepos objtype="geom" objname="g"/>
    <actuatorfrc actuator="muscle"/> <actuatorfrc actuator="m"/> <jointpos joint="j"/> <jointpos joint="j"/> <clock/>
    <gyro site="s" interval="0.1" nsample="2"/> <contact data="found torque"/>
  </sensor>
</mujoco>
"""


def test_sensors_that_are_not_computed_are_listed_by_kind() -> None:
    d = fw.read(MANY)
    assert dict(d.unused)["sensors"] == "1 user, 1 framepos, 1 tendonactuatorfrc, 1 contact"


def test_sensors_without_names_get_some_of_their_own() -> None:
    found = [s.name for s in fw.read(MANY).sensors]
    assert found == [
        "t_tendonpos",
        "t_tendonvel",
        "s_camprojection",
        "eye_framepos",
        "g_framepos",
        "muscle_actuatorfrc",
        "m_actuatorfrc",
        "j_jointpos",
        "j_jointpos_2",
        "clock",
        "s_gyro",
    ]
