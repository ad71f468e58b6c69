"""Tests of first derivatives of dynamics: agreement of algorithms, external forces, executions, invariants."""

from __future__ import annotations

import ctypes
import pickle
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight import robots
from featherweight.model.generators import chain, random_tree
from oracles.robots import robot_of
from oracles.states import Array, States, assert_close, evaluated, random_states, state
from oracles.trees import awkward

STEP = 1e-6
DIFFERENCE = 1e-6  # error of central differences


def along(robot: fw.Robot, f: fw.CompiledFunction, x: States, **more: Any) -> Array:
    """Return the derivative of f by q, by central differences along unit velocities."""
    units = STEP * np.eye(robot.nv)
    ahead = np.array([f(robot.integrate(x.q, e), x.v, x.a, **more) for e in units])
    behind = np.array([f(robot.integrate(x.q, -e), x.v, x.a, **more) for e in units])
    return np.asarray(((ahead - behind) / (2 * STEP)).T)


@pytest.mark.parametrize("name", ["hyq", "double_pendulum"])
def test_external_forces_turn_with_the_bodies(name: str) -> None:
    robot = robot_of(name)
    x = state(robot, 3)
    forces = np.random.default_rng(0).standard_normal((len(robot.bodies), 6))
    for f, derivatives in (
        (robot.inverse_dynamics, robot.inverse_dynamics_derivatives),
        (robot.forward_dynamics, robot.forward_dynamics_derivatives),
    ):
        ours = derivatives(*x, external_forces=forces)[0]
        exact = along(robot, f, x, external_forces=forces)
        assert np.abs(ours - exact).max() <= DIFFERENCE * np.abs(exact).max()
        assert np.abs(ours - derivatives(*x)[0]).max() > 1e-3


def test_external_forces_with_loops() -> None:
    robot = fw.build(robots.planar_leg_linkage())
    x = state(robot, 3)
    forces = np.random.default_rng(0).standard_normal((len(robot.bodies), 6))
    ours = robot.forward_dynamics_derivatives(*x, external_forces=forces)[0]
    exact = along(robot, robot.forward_dynamics, x, external_forces=forces)
    assert np.abs(ours - exact).max() <= DIFFERENCE * np.abs(exact).max()


@pytest.mark.parametrize("name", ["ur5", "iris", "mixed_8"])
def test_inverses_of_one_another(name: str) -> None:
    """Check at tau = ID(q, v, a): da/dx = -M^-1 dtau/dx, with the inverse M^-1 of M."""
    robot = robot_of(name)
    x = state(robot, 1)
    dtau = robot.inverse_dynamics_derivatives(*x)
    da = robot.forward_dynamics_derivatives(x.q, x.v, robot.inverse_dynamics(*x))
    np.testing.assert_allclose(dtau.dtau_da, robot.mass_matrix(x.q), atol=1e-12 * np.abs(dtau.dtau_da).max())
    for left, right in ((da.da_dtau, np.eye(robot.nv)), (-da.da_dq, dtau.dtau_dq), (-da.da_dv, dtau.dtau_dv)):
        assert np.abs(dtau.dtau_da @ left - right).max() <= 1e-8 * max(np.abs(right).max(), 1.0)


def test_interpreted_and_rolled() -> None:
    """Check each execution of a tree with every kind of joint, with and without armatures; the rolled one also for many
    states.
    """
    made = random_tree(9, rng=4, joint_types=("revolute", "prismatic", "spherical", "floating", "planar"), masses=(0.3, 3.0))
    made = awkward(made, np.random.default_rng(0))
    traced, rolled, plain = (fw.build(made, execution=e) for e in ("traced", "rolled", "interpreted"))
    x = random_states(traced, 6)
    for name in ("inverse_dynamics_derivatives", "forward_dynamics_derivatives"):
        expected = evaluated(getattr(traced, name), *x)
        for robot in (rolled, plain):
            for ours, theirs in zip(getattr(robot, name)(*x), expected, strict=True):
                assert_close(ours, theirs, 1e-9)


def test_machine_code_that_keeps_its_loops_has_an_address() -> None:
    """Check several kernels that pass arrays to each other: compiled callers get the results of a call."""
    robot = fw.build(chain(12, rng=1), execution="rolled")
    f = robot.forward_dynamics_derivatives
    x = random_states(robot, 1)
    arguments = [np.ascontiguousarray(a[0]) for a in x]
    results = [np.empty(r.shape) for r in f.program.outputs]
    assert f.address is not None
    run = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(f.address)
    places = (ctypes.c_void_p * 6)(*(a.ctypes.data for a in (*arguments, *results)))
    assert run(ctypes.addressof(places)) == 0
    for ours, theirs in zip(results, f(*arguments), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_large_trees_keep_their_loops() -> None:
    robot = fw.build(chain(300, rng=1))
    f = robot.inverse_dynamics_derivatives
    assert f.execution == "rolled"
    x = state(robot, 0, 0.1)
    d = np.random.default_rng(1).standard_normal(robot.nv)
    exact = (robot.inverse_dynamics(x.q + STEP * d, x.v, x.a) - robot.inverse_dynamics(x.q - STEP * d, x.v, x.a)) / (2 * STEP)
    assert np.abs(f(*x).dtau_dq @ d - exact).max() <= 1e-5 * np.abs(exact).max()


@pytest.mark.parametrize("name", ["hyq", "panda"])
def test_the_recursion_takes_fewest_operations(name: str) -> None:
    """Check that the ratio to the operations of forward differentiation is at most the goal."""
    robot = robot_of(name)
    share = {"hyq": (0.8, 0.75), "panda": (0.9, 0.85)}[name]
    counted = {"hyq": (12_088, 28_467), "panda": (7_266, 17_142)}[name]
    for f, part, forward in zip(
        (robot.inverse_dynamics_derivatives, robot.forward_dynamics_derivatives), share, counted, strict=True
    ):
        assert f.operations.flops <= part * forward
        assert next(iter(f.candidates)) == f.algorithm


@pytest.mark.parametrize("name", ["hyq", "panda"])
def test_functions_of_the_configuration(name: str) -> None:
    robot = robot_of(name)
    x = state(robot, 5)
    frame = robot.frames[-1].name
    of_q = (robot.gravity_force, robot.center_of_mass, robot.mass_matrix, robot.frame_jacobian(frame))
    of_both = (robot.kinetic_energy, robot.frame_velocity(frame), robot.frame_bias_acceleration([frame]))
    units = STEP * np.eye(robot.nv)
    for f in (*of_q, *of_both):
        more = (x.v,) if f in of_both else ()
        pairs = [(f(robot.integrate(x.q, e), *more), f(robot.integrate(x.q, -e), *more)) for e in units]
        exact = np.stack([(a - b) / (2 * STEP) for a, b in pairs], axis=-1)
        assert np.abs(f.derivative("q")(x.q, *more) - exact).max() <= DIFFERENCE * np.abs(exact).max()


def test_power_along_a_motion() -> None:
    """Check that d/dt of the kinetic energy by its derivatives is the power of the forces without gravity."""
    robot = robot_of("hyq")
    x = state(robot, 7)
    by_q, by_v = robot.kinetic_energy.derivative()(x.q, x.v)
    forces = robot.inverse_dynamics(*x) - robot.gravity_force(x.q)
    np.testing.assert_allclose(by_q @ x.v + by_v @ x.a, forces @ x.v, rtol=1e-11)


def test_loops_too_large_to_trace_say_so() -> None:
    robot = fw.build(chain(300, rng=1))
    with pytest.raises(ValueError, match="too large to be differentiated"):
        robot.mass_matrix.derivative("q")


def test_on_manifolds_derivatives_are_those_of_the_algorithm_of_the_value() -> None:
    """Check a quaternion of length 1.05, along its tangents: off the manifold, algorithms differ.

    Others take fewer operations here.
    """
    robot = fw.build(random_tree(3, rng=5, joint_types=("spherical", "revolute"), masses=(0.5, 2.0)), execution="interpreted")
    f, x = robot.forward_dynamics, state(robot, 0)
    x.q[next(j.q_slice for j in robot.joints if j.type.nq == 4)] *= 1.05
    for made in (f.derivative(), f.pullback, f.pushforward, f.ambient.pullback, f.ambient.pullback.pullback):
        assert made.algorithm == f.algorithm and set(made.candidates) == set(f.candidates)
        assert pickle.loads(pickle.dumps(made)).algorithm == f.algorithm
    rate = f.program.inputs[0].rate
    assert rate is not None
    change = np.array(rate.flat(list(x.q), list(x.v)))
    ends = [f(x.q + side * STEP * change, x.v, x.a) for side in (1.0, -1.0)]
    by_q = f.pushforward(*x, x.v, *np.zeros((2, robot.nv)))
    assert np.abs(by_q - (ends[0] - ends[1]) / (2 * STEP)).max() <= DIFFERENCE * np.abs(by_q).max()
