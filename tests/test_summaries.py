"""Tests that the printed text of every object that the library returns fits a screen."""

from __future__ import annotations

import dataclasses
import importlib
import pickle
import pkgutil
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.engine.execution import result_class
from featherweight.model.triangles import MeshError
from featherweight.robot.compiled_member import functions_of
from featherweight.summaries import Several, SeveralListed, summary, visible

SCREEN = 2000  # characters
ROOMS = ["engine", "model", "robot", "robot.inverse_kinematics", "robot.constraints", "simulation", "optimal_control",
         "identification", "environments"]  # fmt: skip


def classes_with_short_texts() -> list[type]:
    found: dict[str, type] = {}
    for room in ROOMS:
        package = importlib.import_module(f"featherweight.{room}")
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if not module.ispkg:
                members = vars(importlib.import_module(module.name)).values()
                found |= {x.__qualname__: x for x in members if isinstance(x, type) and vars(x).get("__repr__") is summary}
    return [found[name] for name in sorted(found)]


def filled(cls: Any) -> Any:
    """Return an object whose fields are all large arrays."""
    large = np.linspace(-1.0, 1.0, 30 * 9 * 3).reshape(30, 9, 3)
    if hasattr(cls, "_fields"):
        return cls(*[large] * len(cls._fields))
    made = object.__new__(cls)
    for f in dataclasses.fields(cls):
        object.__setattr__(made, f.name, large)
    return made


@pytest.mark.parametrize("cls", [*classes_with_short_texts(), result_class("f", ("a", "b"))], ids=lambda cls: cls.__name__)
def test_results_of_large_arrays_say_their_shapes(cls: Any) -> None:
    x = filled(cls)
    said = repr(x)
    assert said.startswith(f"<{cls.__name__}: ") and "(30, 9, 3) from -1 to 1" in said and len(said) < SCREEN


def test_classes_of_results_have_short_texts() -> None:
    names = {cls.__name__ for cls in classes_with_short_texts()}
    assert names >= {"ConstrainedMotion", "Contacts", "InertialFit", "ManyContacts", "Model", "Plan", "Reached",
                     "Regressor", "RobotState", "Shape", "StepDerivatives", "Trajectory"}  # fmt: skip


def printed(x: Any) -> dict[str, int]:
    """Return the lengths of printed objects and their public members, except NumPy arrays and compiled functions."""
    left_out = {"functions", *functions_of(type(x))}
    members = {name: getattr(x, name, None) for name in dir(x) if not name.startswith("_") and name not in left_out}
    lengths = {name: len(repr(value)) for name, value in members.items() if not isinstance(value, np.ndarray)}
    return {type(x).__name__: len(repr(x))} | lengths


def test_everything_of_a_large_robot_fits_a_screen() -> None:
    path = fw.example("talos_full_v2")
    robot = fw.build(fw.read(path), base="floating", execution="interpreted")
    q = robot.neutral()
    v = np.ones(robot.nv)
    several = robot.together(robot.center_of_mass, robot.mass_matrix)(q)
    found = [printed(x) for x in (robot, fw.read(path), several, robot.integrate_derivatives(q, v), robot.collision_pairs())]
    assert {name: n for lengths in found for name, n in lengths.items() if n > SCREEN} == {}
    assert (
        max(len(repr(x)) for x in (robot.model, fw.build(fw.generators.chain(3), execution="interpreted").functions)) < SCREEN
    )
    assert len(robot.shapes) > 50 and robot.shapes[0].name in repr(robot.shapes)


def test_small_arrays_are_shown_and_numbers_that_are_not_finite_are_counted() -> None:
    x = result_class("state", ("q", "on", "left", "many", "of"))(
        np.array([0.5, 1.0]), np.arange(20) < 5, 1.0 / 3.0, np.where(np.arange(20) < 3, np.nan, 2.0), (1,) * 50
    )
    assert repr(x) == (
        "<state: q [0.5 1. ], on (20,), 5 of 20 true, left 0.333333, many (20,) from 2 to 2, 3 not finite, of of 50>"
    )


def test_lists_and_tuples_say_how_many_and_the_first_names() -> None:
    assert repr(Several(["a", "b"])) == "<2 str: a, b>" and repr(Several()) == "<0 items>"
    assert repr(SeveralListed([1, "a"])) == "<2 items: 1, a>" and SeveralListed([1]) == [1]
    long = repr(Several(f"joint_{k}" for k in range(1000)))
    assert long.startswith("<1000 str: joint_0, joint_1, ") and long.endswith(", ...>") and len(long) < SCREEN
    assert repr(fw.generators.chain(3).joints).count(", ") == 2
    assert len(repr(fw.load(fw.example("panda")).joints[0])) < 300


def test_defaults_and_empty_fields_are_left_out() -> None:
    shape = fw.Shape("foot", "sole", fw.ShapeType.BOX, (0.1, 0.2, 0.3))
    assert repr(shape) == "<Shape: name 'foot', body 'sole', type <ShapeType.BOX: 'box'>, size (0.1, 0.2, 0.3)>"


HOSTILE = "a\x1b[31m\x9b1m\u202eb\x85\r\x7f\u2066"
ESCAPED = r"a\x1b[31m\x9b1m\u202eb\x85\r\x7f\u2066"


def test_control_characters_become_visible_and_others_stay() -> None:
    assert visible(HOSTILE) == ESCAPED
    plain = "Zwölf\tGrüße\naus 東京 – ½ 🤖 العربية e\u0301\u200d"
    assert visible(plain) == plain


def test_texts_and_errors_show_control_characters_of_names() -> None:
    """Check lists, results, and the errors and warnings that quote files."""
    d = fw.describe([fw.Body(HOSTILE, fw.Inertia(1.0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))], [], name=HOSTILE)
    robot = fw.build(d, "floating", execution="interpreted")
    texts = [repr(robot.bodies), repr(d.bodies), robot.name, repr(d)]
    texts += [str(kind(f"body '{HOSTILE}'")) for kind in (fw.ModelError, fw.ModelWarning, MeshError)]
    texts += [str(fw.SimulationError(HOSTILE, 0.0))]
    with pytest.raises(ValueError, match="has no") as caught:
        robot.joint("x")
    for text in (*texts, str(caught.value)):
        assert ESCAPED in text and text.isprintable()
    assert repr(robot).isprintable()


def test_errors_that_were_pickled_have_the_same_message() -> None:
    error = fw.ModelError(f"body '{HOSTILE}'")
    assert str(pickle.loads(pickle.dumps(error))) == str(error) == f"body '{ESCAPED}'"
