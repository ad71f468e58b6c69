"""Tests of sensors of a model: their slices, and errors."""

from __future__ import annotations

import numpy as np
import pytest

from featherweight import (
    Actuator,
    Body,
    Description,
    Frame,
    Inertia,
    Joint,
    JointType,
    ModelError,
    Simulation,
    build,
    describe,
)
from featherweight.model.model_sensors import DIMENSIONS
from featherweight.model.types import Sensed, SensedKind, Sensor, SensorField, SensorKind, SensorSampling
from featherweight.simulation.sensors.measures import MEASURES
from featherweight.simulation.sensors.plan import APART, RECORDS

K, F = SensorKind, SensorField
SOLID = Inertia(1.0, (0.0, 0.0, 0.1), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1))


def two_links(*sensors: Sensor) -> Description:
    return describe(
        [Body("a", SOLID), Body("b", SOLID)],
        [Joint("ja", JointType.REVOLUTE, None, "a"), Joint("jb", JointType.SPHERICAL, "a", "b")],
        frames=[Frame("tip", "b")], actuators=[Actuator("m", "ja")], sensors=sensors,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sensor", "message"),
    [
        (Sensor("x", K.CONTACT, data=(F.DIST, F.FOUND)), "data dist, found: those of contact are found, force, torque"),
        (Sensor("x", K.CONTACT, data=(F.DEPTH,)), "data depth: those of contact are"),
        (Sensor("x", K.CLOCK, data=(F.DIST,)), "data dist: clock has no choice of data"),
        (Sensor("x", K.CONTACT, slots=0), "0 slots; give at least 1"),
        (Sensor("x", K.CONTACT, Sensed(SensedKind.SUBTREE, "c")), "there is no subtree 'c'"),
        (Sensor("x", K.FRAMEPOS, Sensed(SensedKind.CAMERA, "eye")), "there is no camera 'eye'"),
        (Sensor("x", K.CLOCK, sampling=SensorSampling(0, 0.1)), "it takes samples >= 1, delay >= 0"),
        (Sensor("x", K.CLOCK, sampling=SensorSampling(2, 0.1, 0.2, -0.2)), "a phase in .-period, 0."),
        (Sensor("x", K.CLOCK, sampling=SensorSampling(2, float("nan"))), "it takes samples"),
    ],
)
def test_choices_that_a_sensor_does_not_have_are_refused(sensor: Sensor, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        build(two_links(sensor))


def test_every_kind_has_a_dimension_and_a_function() -> None:
    assert DIMENSIONS.keys() == {*SensorKind}
    assert MEASURES.keys() == {*APART}
    assert RECORDS.keys() | {*APART} == {*SensorKind}


def test_sensors_of_descriptions_made_in_python_are_measured() -> None:
    gyro = Sensor("gyro", SensorKind.GYRO, Sensed(SensedKind.SITE, "tip"))
    angle = Sensor("angle", SensorKind.JOINTPOS, Sensed(SensedKind.JOINT, "ja"))
    robot = build(two_links(gyro, angle, Sensor("time", SensorKind.CLOCK)))
    assert [(s.name, s.index, s.dim) for s in robot.sensors] == [("gyro", 0, 3), ("angle", 1, 1), ("time", 2, 1)]
    assert robot.sensors["angle"].slice == slice(3, 4)
    sim = Simulation(robot, 0.01, q=[0.3, 0.0, 0.0, 0.0, 1.0], v=[2.0, 0.0, 1.0, 0.0])
    np.testing.assert_allclose(sim.sensors(), [0.0, 1.0, 2.0, 0.3, 0.0], atol=1e-15)


@pytest.mark.parametrize(
    ("kind", "on", "message"),
    [
        (SensorKind.GYRO, Sensed(SensedKind.SITE, "tap"), "sensor 'x': there is no site 'tap'"),
        (SensorKind.FRAMEPOS, Sensed(SensedKind.XBODY, "c"), "sensor 'x': there is no xbody 'c'"),
        (SensorKind.JOINTPOS, Sensed(SensedKind.JOINT, "jc"), "sensor 'x': there is no joint 'jc'"),
        (SensorKind.ACTUATORFRC, Sensed(SensedKind.ACTUATOR, "n"), "sensor 'x': there is no actuator 'n'"),
        (SensorKind.JOINTPOS, Sensed(SensedKind.JOINT, "jb"), "joint 'jb' is spherical, of which there is no jointpos"),
        (SensorKind.BALLQUAT, Sensed(SensedKind.JOINT, "ja"), "joint 'ja' is revolute, of which there is no ballquat"),
        (SensorKind.DISTANCE, Sensed(SensedKind.GEOM, "g"), "sensor 'x': there is no geom 'g'"),
        (SensorKind.GYRO, None, "a sensor of kind gyro needs an object; give it on="),
    ],
)
def test_a_sensor_on_what_is_not_there_is_refused(kind: SensorKind, on: Sensed | None, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        build(two_links(Sensor("x", kind, on)))
