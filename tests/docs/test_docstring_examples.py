"""Tests of the examples in docstrings: they run, with a small arm, and the functions that users call most have one."""

from __future__ import annotations

import ast
import copy
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight

CLASSES = (featherweight.Robot, featherweight.Description, featherweight.Simulation, featherweight.InverseKinematics)
NOT_RUN = {
    *("Controller", "SamplingController", "OptimalControl", "OperationalSpace", "ClearanceTask", "clearance", "State"),
    "WholeBodyControl",
    *("Simulation.rollout", "Simulation.parameter_derivatives", "Robot.parametric"),
}  # with names from more code before, as in guides, which run
MOST_USED = {
    *("load", "read", "describe", "Robot.check", "Robot.neutral", "Robot.random_configuration", "Robot.integrate"),
    *("Robot.difference", "Robot.forward_dynamics", "Robot.inverse_dynamics", "Robot.mass_matrix", "Robot.bias_force"),
    *("Robot.inverse_mass_matrix", "Robot.factorize", "Robot.gravity_force", "Robot.kinetic_energy", "Robot.frame_placement"),
    *("Robot.frame_jacobian", "Robot.frame_velocity", "Robot.center_of_mass", "Robot.center_of_mass_jacobian"),
    *("Robot.centroidal_momentum", "Robot.wrench", "Robot.in_collision", "Robot.collisions", "Robot.distances"),
    *("Robot.operational_space", "Robot.contact_jacobian", "Robot.together", "Robot.with_obstacles", "Robot.with_armature"),
    *("Robot.body", "Robot.joint", "Robot.start", "Robot.solve_mass_matrix", "Robot.potential_energy", "Robot.static_torque"),
    *("Robot.inverse_dynamics_derivatives", "Robot.forward_dynamics_derivatives", "Robot.coriolis_matrix"),
    *("Robot.frame_acceleration", "Robot.frame_classical_acceleration", "Robot.frame_jacobian_rate", "Robot.joint_jacobian"),
    *("Robot.center_of_mass_velocity", "Robot.centroidal_map", "Robot.inverse_dynamics_regressor"),
    *("Robot.integrate_derivatives", "Robot.effort_limit", "Robot.lower", "Robot.with_inertial_parameters"),
    *("Description", "Description.locked", "Description.with_joint", "Description.with_payload", "Description.with_shape"),
    *("Description.with_friction", "Description.save", "Simulation.reset", "Simulation.step", "Simulation.run"),
    *(
        "Simulation.advance",
        "Simulation.vary",
        "Simulation.contacts",
        "Simulation.energy",
        "InverseKinematics",
        "PD",
        "Inertia",
    ),
}


def documented() -> Iterator[tuple[str, str]]:
    """Yield the names and docstrings of public functions, classes and members."""
    for name in featherweight.__all__:
        thing = getattr(featherweight, name)
        if callable(thing) and thing.__doc__:
            yield name, thing.__doc__
    for owner in CLASSES:
        for name in dir(owner):
            if not name.startswith("_") and (doc := getattr(getattr(owner, name), "__doc__", None)):
                yield f"{owner.__name__}.{name}", doc


def example(doc: str) -> str | None:
    """Return the indented code of a docstring; None without any."""
    blocks = re.findall(r"(?:^    .*\n?)+", inspect.cleandoc(doc) + "\n", re.MULTILINE)
    code = "\n".join(inspect.cleandoc(block) for block in blocks)
    try:
        ast.parse(code)
    except SyntaxError:  # a table
        return None
    return code or None


EXAMPLES = {name: code for name, doc in documented() if (code := example(doc)) and name not in NOT_RUN}


def arm() -> featherweight.Description:
    """Return two links and a hand that turns, with shapes."""
    names = ["upper", "lower", "hand"]
    solid = featherweight.Inertia(1.0, (0.0, 0.0, 0.15), np.diag([0.01, 0.01, 0.002]))
    joints = [
        featherweight.Joint(joint, "revolute", parent, child, featherweight.Pose(p=(0.0, 0.0, z)), axis, lower=-2.0, upper=2.0)
        for joint, parent, child, z, axis in (
            ("shoulder", "world", "upper", 0.2, (0.0, 1.0, 0.0)),
            ("elbow", "upper", "lower", 0.3, (0.0, 1.0, 0.0)),
            ("wrist", "lower", "hand", 0.3, (0.0, 0.0, 1.0)),
        )
    ]
    shapes = [featherweight.Shape(name, name, "sphere", (0.05,)) for name in names]
    bodies = [featherweight.Body(name, solid) for name in names]
    return featherweight.describe(bodies, joints, frames=[featherweight.Frame("flange", "hand")], shapes=shapes, name="arm")


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the names that examples use."""
    monkeypatch.chdir(tmp_path)
    arm().save("arm.urdf")
    gripper = featherweight.Body("finger", featherweight.Inertia(0.1, (0.0, 0.0, 0.0), 1e-4 * np.eye(3)))
    slide = featherweight.Joint("grip", "prismatic", "world", "finger", lower=0.0, upper=0.1)
    featherweight.describe([gripper], [slide], name="gripper").save("gripper.urdf")
    robot = featherweight.load("arm.urdf")
    q, v = np.array([0.1, 0.2, 0.3]), np.array([0.3, 0.2, 0.1])
    targets = robot.frame_placement("hand", q)
    sim = featherweight.Simulation(robot, q=q)
    known = {"a": v, "tau": v, "targets": targets, "sim": sim}
    return {
        "featherweight": featherweight,
        "fw": featherweight,
        "np": np,
        "copy": copy,
        "robot": robot,
        "q": q,
        "v": v,
        **known,
    }


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name: str, names: dict[str, Any]) -> None:
    exec(compile(EXAMPLES[name], name, "exec"), names)


def test_the_most_used_functions_have_an_example() -> None:
    assert MOST_USED - EXAMPLES.keys() == set()
