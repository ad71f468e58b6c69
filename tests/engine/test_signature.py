"""Tests of signatures of functions for `help`, `inspect` and other libraries: names, shapes, options."""

from __future__ import annotations

import functools
import inspect
import pydoc

import numpy as np
import pytest

import featherweight as fw
from featherweight import CompiledFunction

ROBOT = fw.build(fw.generators.unbranched(3))


def test_help_says_names_and_shapes_of_arguments_and_results() -> None:
    text = pydoc.render_doc(ROBOT.forward_dynamics, renderer=pydoc.plaintext)  # type: ignore[attr-defined]  # which the stubs lack
    assert "forward_dynamics(q (3), v (3), tau (3), *, external_forces (3, 6)=None) -> a (3)\n" in text
    assert "articulated-body algorithm" in text and "more axes in front" in text
    d = ROBOT.inverse_dynamics_derivatives
    assert "-> dtau_dq (3, 3), dtau_dv (3, 3), dtau_da (3, 3)" in str(d.__doc__)
    assert str(ROBOT.kinetic_energy) == "<CompiledFunction kinetic_energy(q (3), v (3)) -> energy>"


def test_help_of_derivatives_says_what_they_are_of_and_their_own_arguments_once() -> None:
    f = ROBOT.mass_matrix.derivative("q")
    assert str(f.__doc__).splitlines()[0] == "mass_matrix_derivative(q (3)) -> dM_dq (3, 3, 3)"
    assert str(f.__doc__).count("->") == 1


@pytest.mark.parametrize("called", [False, True])
def test_inspect_knows_how_a_function_is_called(called: bool) -> None:
    f, x = ROBOT.forward_dynamics.copy() if not called else ROBOT.forward_dynamics, np.ones(3)
    if called:
        f(x, x, x)  # the call gives the function its own class
    parameters = inspect.signature(f).parameters
    assert [*parameters][:4] == ["q", "v", "tau", "external_forces"]
    assert parameters["q"].annotation == "(..., 3)" and parameters["external_forces"].annotation == "(..., 3, 6)"
    assert {"out", "threads", "device"} <= {*parameters}
    assert ("algorithm" in parameters) == called  # a copy has a fixed algorithm
    bound = inspect.signature(f).bind(x, v=x, tau=x, out=None)
    np.testing.assert_array_equal(f(*bound.args, **bound.kwargs), f(x, x, x))
    assert inspect.signature(CompiledFunction).parameters.keys() == {"program", "execution", "algorithm"}


def test_functions_pass_for_functions() -> None:
    f = ROBOT.inverse_dynamics
    assert functools.wraps(f)(lambda: None).__name__ == f.__name__ == f.__qualname__ == "inverse_dynamics"
    assert (f.nin, f.nout, f.signature) == (3, 1, "(3),(3),(3)->(3)")


def test_members_are_public_or_begin_with_an_underscore() -> None:
    internal = {"kernel", "system", "topology", "placed", "argument", "loop_ends", "mechanism", "loops"}
    for robot in (ROBOT, fw.build(fw.robots.four_bar())):
        assert internal.isdisjoint(dir(robot))
    assert {"meant", "bound", "batch"}.isdisjoint(dir(ROBOT.mass_matrix))
