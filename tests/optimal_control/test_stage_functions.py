"""Tests of derivatives of steps and rows, against differences of the steps and rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.algorithms import knots as kernels
from featherweight.array_types import Array
from featherweight.model.generators import from_parents
from featherweight.optimal_control.runge_kutta import StepMemory, motions
from featherweight.optimal_control.stage_functions import StageFunctions
from optimal_control.problems import FEET, PANDA_START, hopper, hyq, layout_of, leg, panda, panda_arguments, standing

EPS = 1e-6


def called(function: Any, known: dict[str, Any]) -> Any:
    return function(*(known[x.name] for x in function.program.inputs))


def differences(robot: Any, f: Any, known: dict[str, Any]) -> Array:
    """Return derivatives of a vector by (dq, dv, du), or by (dq, dv, root, du) with the root of a free step."""
    n, columns = robot.nv, []
    for name in ("q", "v", *["root"] * ("root" in known), "u"):
        for j in range(n if name == "q" else np.size(known[name])):
            ends = []
            for sign in (EPS, -EPS):
                moved = dict(known)
                if name == "q":
                    moved["q"] = robot.integrate(known["q"], sign * np.eye(n)[j])
                else:
                    moved[name] = known[name] + sign * (np.eye(len(known[name]))[j] if np.ndim(known[name]) else 1.0)
                ends.append(f(moved))
            columns.append((ends[0] - ends[1]) / (2 * EPS))
    return np.array(columns).T


def check(ocp: Any, stage: StageFunctions, q: Array, parameters: Array, rng: np.random.Generator) -> None:
    robot, n, m = ocp.robot, ocp.robot.nv, ocp.nu
    known = {"q": q, "v": rng.normal(size=n), "u": 5.0 * rng.normal(size=m), "h": 0.01, "parameters": parameters}
    if stage.impact:
        known["h"] = 0.0
    if stage.system.free:
        known |= {"longest": 0.01 / 0.7**2, "root": 0.7}
    width = 2 * n + stage.system.controls
    slope, stiffness = rng.normal(size=stage.rows), rng.uniform(size=stage.rows)
    found = called(stage.slopes, known | {"slope": slope, "stiffness": stiffness})
    J = differences(robot, lambda x: called(stage.only_rows, x), known)
    H = np.zeros((width, width))
    for (a, b), x in zip(stage.places, found.hessian, strict=True):
        H[a, b] = H[b, a] = x
    scale = max(1.0, abs(J).max())
    np.testing.assert_allclose(found.gradient, J.T @ slope, rtol=0, atol=1e-6 * scale)
    np.testing.assert_allclose(H, J.T @ (stiffness[:, None] * J), rtol=0, atol=1e-6 * scale**2)
    if stage.end:
        return
    D = differences(robot, lambda x: called(stage.step, x).velocity, known)
    if stage.steps:
        by_step = {"by_step": found.by_step[None]} if stage.system.free else {}
        motion = motions(StepMemory(stage.system, [stage]), 0, stage, {**known, "q": q[None], **by_step})[0]
    else:
        motion = found.motion
        assert not motion[:, width:].any()
    if stage.system.free:
        np.testing.assert_array_equal(motion[-1, :width], np.eye(width)[2 * n])
        motion = motion[:-1]
    np.testing.assert_allclose(motion[-n:, :width], D, rtol=0, atol=1e-6 * max(1.0, abs(D).max()))
    ahead = called(stage.step, known).ahead
    moved = differences(robot, lambda x: robot.difference(ahead, called(stage.step, x).ahead), known)
    A, S, at = np.eye(n), known["h"] * np.eye(n), 0
    for first, size in stage.system.apart:
        own = slice(first, first + size)
        A[own, own], S[own, own] = found.curved[at : at + 2 * size * size].reshape(2, size, size)
        at += 2 * size * size
    displacement = motion[:n, :width] if len(motion) > n else S @ D
    np.testing.assert_allclose(
        np.hstack([A, np.zeros((n, width - n))]) + displacement, moved, rtol=0, atol=1e-6 * max(1.0, abs(moved).max())
    )


def test_an_arm_with_all_kinds_of_terms() -> None:
    rng = np.random.default_rng(0)
    ocp = panda()
    flat = layout_of(ocp).parameters(PANDA_START, **panda_arguments(ocp))[0]
    for stage in layout_of(ocp).stages:
        check(ocp, stage, ocp.robot.random_configuration(rng=rng), flat, rng)


def test_a_runge_kutta_step() -> None:
    rng = np.random.default_rng(0)
    ocp = panda(integrator="rk4")
    flat = layout_of(ocp).parameters(PANDA_START, **panda_arguments(ocp))[0]
    check(ocp, layout_of(ocp).stages[0], ocp.robot.random_configuration(rng=rng), flat, rng)


def test_runge_kutta_steps_on_manifolds_with_impacts_and_contacts() -> None:
    """Check any velocity of the contact before a step: its target changes with the state."""
    rng = np.random.default_rng(0)
    foot = [fw.BilateralContact("foot", "point")]
    wheel = fw.build(from_parents([-1, 0], rng=1, joint_types=["planar", "spherical"]))
    for robot, phases in ((hopper()[0], [fw.Phase(2, foot, impact=True)]), (wheel, [fw.Phase(2)])):
        ocp = fw.OptimalControl(robot, dt=0.02, phases=phases, integrator="rk4")
        ocp.add(fw.Effort())
        ocp.add(fw.PostureTask())
        q = robot.integrate(robot.neutral(), rng.normal(size=robot.nv))
        for stage in layout_of(ocp).stages[:-1]:
            check(ocp, stage, q, layout_of(ocp).parameters(q, None, None)[0], rng)


def test_contacts_friction_and_a_floating_base() -> None:
    rng = np.random.default_rng(0)
    ocp, start, arguments = hyq(0.7)
    flat = layout_of(ocp).parameters(start, arguments["targets"], None)[0]
    q = ocp.robot.integrate(start, 0.3 * rng.normal(size=ocp.robot.nv))
    for stage in layout_of(ocp).stages:
        check(ocp, stage, q, flat, rng)


def test_surfaces_with_frames_of_their_own() -> None:
    rng = np.random.default_rng(0)
    robot = fw.load(fw.example("hyq_no_sensors"), base="floating")
    tilted = np.eye(4)
    tilted[:3, :3] = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    feet = [fw.BilateralContact("lf_foot", placement=tilted), fw.BilateralContact("rh_foot", "point")]
    ocp = fw.OptimalControl(robot, dt=0.02, phases=[fw.Phase(2, feet)])
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.limit(friction=0.6, sole=(0.2, 0.1))
    stage = layout_of(ocp).stages[0]
    check(ocp, stage, standing(robot, 0.75), layout_of(ocp).parameters(standing(robot, 0.75), None, None)[0], rng)


def test_soles_keep_the_centre_of_pressure_inside() -> None:
    """Check that rows change sign when the force leaves the cone, the centre of pressure the sole, and the moment its bound."""
    rng = np.random.default_rng(0)
    R, mu, (length, width) = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), 0.5, (0.2, 0.1)
    found = []
    for _ in range(500):
        f, at, turning = rng.uniform([-0.8, -0.8, 0.1], [0.8, 0.8, 1.0]), rng.uniform(-0.15, 0.15, 2), rng.uniform(-0.1, 0.1)
        moment = at[1] * f[2], -at[0] * f[2], turning  # about the middle, from a normal force at a point
        rows = [0.0] * 7
        kernels.friction(mu, 1.0, (length, width), ((True, tuple(map(tuple, R))),), [np.eye(4)], [*f, *moment], rows)
        within = np.hypot(*f[:2]) < mu * f[2] - 1e-3, abs(at[1]) < 0.5 * width, abs(at[0]) < 0.5 * length
        inside = *within, abs(turning) < 0.25 * mu * (length + width) * f[2]
        held = rows[0] > 0.0, *(min(rows[i : i + 2]) > 0.0 for i in (1, 3, 5))
        found.append(held)
        assert held == inside or abs(np.hypot(*f[:2]) - mu * f[2]) < 2e-3
    assert np.all([0.1 < share < 0.9 for share in np.mean(found, axis=0)])


@pytest.mark.parametrize("integrator", ["semi-implicit", "rk4"])
def test_a_loop(integrator: str) -> None:
    rng = np.random.default_rng(0)
    ocp, start = leg(integrator=integrator)
    flat = layout_of(ocp).parameters(start, {"toe": [0.0, 0.0, 0.0]}, None)[0]
    for stage in layout_of(ocp).stages:
        check(ocp, stage, start, flat, rng)


def test_contacts_are_at_rest_after_a_step() -> None:
    """Check to the second order of the step, for any initial velocities."""
    rng = np.random.default_rng(0)
    ocp, start, arguments = hyq(0.7)
    stage = layout_of(ocp).stages[0]
    assert stage.space is not None
    flat = layout_of(ocp).parameters(start, arguments["targets"], None)[0]
    known = {"q": start, "v": 0.1 * rng.normal(size=18), "u": np.zeros(12), "h": 1e-4, "parameters": flat}
    before, after = (stage.space.jacobian(start) @ v for v in (known["v"], called(stage.step, known).velocity))
    assert abs(before).max() > 0.1
    assert abs(after).max() < 1e-3 * abs(before).max()


def test_a_function_that_returns_too_few_numbers_is_named() -> None:
    ocp = panda()
    ocp.add(fw.Residual(lambda q: [q[0]], size=2, name="short"), weight=1.0)
    with pytest.raises(ValueError, match="Residual 'short': its function returns 1 numbers, but size is 2"):
        ocp.solve(PANDA_START, **panda_arguments(ocp))


def test_an_impact_and_its_derivatives() -> None:
    """Check that contacts come to rest, positions stay, and momentum changes by the impulses."""
    rng = np.random.default_rng(0)
    robot, feet = hyq(0.7)[0].robot, [fw.BilateralContact(foot, kind="point") for foot in FEET]
    ocp = fw.OptimalControl(robot, dt=0.01, phases=[fw.Phase(2), fw.Phase(3, feet, impact=True)])
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.add(fw.PostureTask(), weight=1.0)
    flight, impact, stance, end = layout_of(ocp).stages
    assert [stage.impact for stage in (flight, impact, stance, end)] == [False, True, False, False]
    assert ocp.knots == 6
    q = robot.integrate(standing(robot, 0.7), 0.1 * rng.normal(size=robot.nv))
    flat = layout_of(ocp).parameters(q, None, None)[0]
    check(ocp, impact, q, flat, rng)
    known = {"q": q, "v": rng.normal(size=18), "u": np.zeros(12), "h": 0.0, "parameters": flat}
    found = called(impact.step, known)
    np.testing.assert_allclose(found.ahead, q, atol=1e-15)
    assert impact.space is not None and impact.forces is not None
    J, impulse = impact.space.jacobian(q), called(impact.forces, known)
    np.testing.assert_allclose(J @ found.velocity, 0.0, atol=1e-10)
    np.testing.assert_allclose(robot.mass_matrix(q) @ (found.velocity - known["v"]), J.T @ impulse, atol=1e-9)
