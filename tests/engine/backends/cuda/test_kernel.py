"""Tests that kernels of robots' functions have the bits of this machine's own code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from engine.backends.cuda.host_device import HostDevice, assert_same, needs_fma
from featherweight import robots
from featherweight.engine.backends.cuda import emit_thread
from featherweight.engine.backends.cuda.code import Kernels, Loaded
from featherweight.engine.function import CompiledFunction
from featherweight.model.generators import chain, random_tree
from oracles.robots import example

pytestmark = [needs_fma, pytest.mark.usefixtures("device")]

PRECISIONS = [np.float64, np.float32]


def states_of(robot: fw.Robot, f: CompiledFunction[Any], states: int = 3) -> list[Any]:
    """Return arguments by their names and shapes."""
    made = []
    for k, x in enumerate(f.program.inputs):
        configuration = x.rate is not None
        rng = np.random.default_rng(k)
        made.append(
            robot.random_configuration(rng=rng, size=states) if configuration else rng.standard_normal((states, *x.shape))
        )
    return made


# functions of robots


def of_a_tree() -> fw.Robot:
    """Return functions of a tree with a free-flyer, a spherical, a planar, a helical joint, and more."""
    return fw.build(random_tree(4, rng=1))


def feet(robot: fw.Robot, kind: str) -> list[Any]:
    return [fw.BilateralContact(robot.frames[k].name, kind=kind) for k in (-1, -3)]


Functions = Callable[[fw.Robot], list[CompiledFunction[Any]]]
CASES: dict[str, tuple[Callable[[], fw.Robot], Functions]] = {
    "tree": (of_a_tree, lambda r: [
        r.forward_dynamics, r.inverse_mass_matrix, r.step_functions.integrate, r.difference, r.mass_matrix]),
    "derivatives": (lambda: fw.build(random_tree(2, rng=1)), lambda r: [
        r.inverse_dynamics.derivative(), r.forward_dynamics.pushforward, r.forward_dynamics.pullback]),
    "panda": (lambda: example("panda"), lambda r: [
        r.together(r.forward_dynamics, r.bias_force, r.frame_jacobian("panda_hand")),
        r.frame_placement(["panda_hand", "panda_link4"]), r.inverse_dynamics.variant("external_forces")]),
    "contacts": (lambda: example("panda"), lambda r: [
        r.delassus(feet(r, "weld")), r.delassus(feet(r, "point")), r.operational_space(feet(r, "point")).inertia]),
    "four bars": (lambda: fw.build(robots.four_bar()), lambda r: [
        r.forward_dynamics, r.inverse_dynamics, r.step_functions.integrate, r.forward_dynamics.derivative()]),
    "gears": (lambda: fw.build(robots.geared_chain(3)), lambda r: [r.forward_dynamics, r.inverse_dynamics]),
    "one joint": (lambda: fw.build(chain(1, joint="prismatic")), lambda r: [r.forward_dynamics, r.mass_matrix]),
    "a ball": (lambda: fw.build(chain(1, joint="spherical")), lambda r: [r.forward_dynamics, r.inverse_dynamics]),
}  # fmt: skip


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("case", CASES)
def test_functions_of_robots_are_those_of_this_machine(case: str, dtype: type) -> None:
    make, functions = CASES[case]
    robot = make()
    for f in functions(robot):
        assert_same(f, *(x.astype(dtype) for x in states_of(robot, f)))


def test_a_robot_with_legs() -> None:
    hyq = example("hyq")
    assert_same(hyq.forward_dynamics, *(x.astype(np.float32) for x in states_of(hyq, hyq.forward_dynamics, 33)))


@pytest.mark.parametrize(("number", "shared_bytes"), [(0, 20_000), (1, 20_000), (1, 0), (2, 232_448), (3, 232_448), (5, 0)])
def test_all_ways_to_write_a_kernel_give_the_same(
    number: int, shared_bytes: int, device: HostDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check traces that are too large for the registers, for one function, and for a block's memory."""

    def chosen(self: Kernels) -> Loaded:
        return self._loaded(self.assembled([min(number, len(self.candidates) - 1)])[0])

    monkeypatch.setattr(emit_thread, "REGISTERS", {"float": 7, "double": 9})
    monkeypatch.setattr(emit_thread, "PART", 150)
    monkeypatch.setattr(Kernels, "chosen", chosen)
    device.shared_bytes = shared_bytes
    robot = of_a_tree()
    for f, dtype in (
        (robot.forward_dynamics, np.float64),
        (robot.inverse_dynamics, np.float32),
        (robot.difference, np.float64),
    ):
        assert_same(f.copy(), *(x.astype(dtype) for x in states_of(robot, f, 140)))


def test_optional_arguments() -> None:
    robot = fw.build(chain(2))
    forces = np.random.default_rng(0).standard_normal((len(robot.bodies), 6))
    assert_same(robot.inverse_dynamics, *states_of(robot, robot.inverse_dynamics), external_forces=forces)
