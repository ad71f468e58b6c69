"""Wrong arguments of each public function of a robot raise an error that names the argument and says what to write.

The functions are found by inspection. Those without arguments are left out.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import featherweight as fw
from featherweight.robot.system import NotDefinedError
from robot.every_function import flying, linkage

FORMS: dict[str, Any] = {
    "None": None,
    "text": "hnad",
    "texts": ["hnad", "hand"],
    "ragged": [[1.0, 2.0], [3.0]],
    "an object": object(),
    "complex": np.zeros(3, complex),
    "another length": np.zeros((3, 17)),
}
"""Values that no argument without a default takes."""

CONSTRAINTS = "takes featherweight.BilateralContact"  # named in place of the argument, the only one of its kind
NAMES = "it has "  # in errors for unknown names, which say the kind of the name


class Known(NamedTuple):
    """A public function of a robot, its parameters, and values for those without a default."""

    name: str
    function: Callable[..., Any]
    parameters: list[inspect.Parameter]
    values: dict[str, Any]


def known(robot: fw.Robot) -> Iterator[Known]:
    q, v, frame = robot.neutral(), np.zeros(robot.nv), robot.bodies[-1].name
    given = {
        **dict.fromkeys(("q", "q0", "q1"), q), **dict.fromkeys(("v", "a", "tau", "tau_bar", "a_bar"), v),
        "frame": frame, "body": frame, "contacts": fw.BilateralContact(frame), "B": np.eye(robot.nv), "camera": "side",
        "name": frame, "armature": 0.1, "parameters": robot.inertial_parameters, "function": robot.mass_matrix,
        "obstacles": fw.Shape("wall", None, "sphere", (0.1,)), "distances": robot.distances(q),
    }  # fmt: skip
    for name in (x for x in dir(robot) if not x.startswith("_")):
        try:
            function = getattr(robot, name)
        except NotDefinedError:
            continue
        if not callable(function) or isinstance(function, type):
            continue
        parameters = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
        needed = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
        if parameters and parameters[0].kind is not inspect.Parameter.VAR_POSITIONAL:
            yield Known(name, function, parameters, {x: given[x] for x in needed})


def error_of(function: Callable[..., Any], *args: Any, **named: Any) -> str:
    """Return the error of a call, with its type, and "" for none."""
    try:
        function(*args, **named)
    except Exception as error:  # the type is part of the result
        return f"{type(error).__name__}: {error}"
    return ""


def problems_of(x: Known) -> Iterator[str]:
    """Yield the wrong calls whose error does not say what is wrong."""
    values = list(x.values.values())
    if "has no argument 'banana'" not in (said := error_of(x.function, *values, banana=1)):
        yield f"unknown keyword: {said}"
    if x.values and f"missing: {', '.join(x.values)}" not in (said := error_of(x.function)):
        yield f"missing argument: {said}"
    many = [*values, *[values[0] if values else None] * 9]
    if not re.search(r"got \d+ arguments|must be", said := error_of(x.function, *many)):
        yield f"too many arguments: {said}"
    for k, name in enumerate(x.values):
        for form, wrong in FORMS.items():
            said = error_of(x.function, *values[:k], wrong, *values[k + 1 :])
            named = re.search(rf"\b{name}\b", said.partition(": ")[2]) or CONSTRAINTS in said or NAMES in said
            if not named or not said.startswith(("TypeError", "ValueError", "UnknownNameError")) or "object at 0x" in said:
                yield f"{name} = {form}: {said}"


@pytest.mark.parametrize("make", [flying, linkage])
def test_errors_about_wrong_arguments_name_the_argument(make: Callable[[str], fw.Robot]) -> None:
    robot = make("interpreted")
    found = list(known(robot))
    assert {"mass_matrix", "frame_velocity", "factorize", "wrench", "operational_space"} <= {x.name for x in found}
    assert "\n".join(f"{x.name}: {problem}" for x in found for problem in problems_of(x)) == ""


def test_an_unknown_frame_names_the_nearest_one() -> None:
    robot = flying("interpreted")
    frame = robot.bodies[-1].name
    wrong = f"{frame}_"
    of_frames = [x for x in known(robot) if next(iter(x.values), "") in ("frame", "body")]
    assert len(of_frames) > 8
    for x in of_frames:
        assert f"(is it {frame!r}?)" in error_of(x.function, wrong), x.name


def test_a_velocity_or_acceleration_of_a_frame_needs_a_configuration() -> None:
    robot = flying("interpreted")
    frame = robot.bodies[-1].name
    with pytest.raises(TypeError, match=r'write frame_velocity\("hand", q, v\)'):
        robot.frame_velocity(frame, v=np.zeros(robot.nv))  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"write frame_acceleration\(frame, q, v, a\)"):
        robot.frame_acceleration(frame, a=np.zeros(robot.nv))  # type: ignore[call-overload]
