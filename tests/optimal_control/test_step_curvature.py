"""Tests of second derivatives of steps: against differences, and Newton's method with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.array_types import Array
from featherweight.model.generators import from_parents
from featherweight.optimal_control.stage_functions import StageFunctions
from optimal_control.problems import HAND, PANDA_START, hopper, hyq, layout_of, leg, panda, pendulum
from optimal_control.test_passive_forces import arm, linkage, sprung_hopper
from optimal_control.test_stage_functions import called

EPS = 2e-3
FREE = 0.005, 0.05  # [s]
FOOT = (fw.BilateralContact("foot", "point"),)


def of_effort(robot: fw.Robot, **options: Any) -> fw.OptimalControl:
    ocp = fw.OptimalControl(robot, exact=True, **({"dt": 0.01} | ({} if "phases" in options else {"knots": 2}) | options))
    ocp.add(fw.Effort())
    return ocp


def check(ocp: fw.OptimalControl, stage: StageFunctions, q: Array, rng: np.random.Generator) -> None:
    """Check the second derivative of the product of costate and next state along displacements of (q, v, step, u)."""
    robot, n, free = ocp.robot, ocp.robot.nv, int(stage.system.free)
    costate = rng.normal(size=(2, n))
    known = {"q": q, "v": 0.5 * rng.normal(size=n), "u": rng.normal(size=ocp.nu), "h": 0.0 if stage.impact else 0.01}
    known |= {"parameters": np.zeros(layout_of(ocp).size), "ahead_bar": costate[0], "velocity_bar": costate[1]}
    known |= {"longest": 0.01 / 0.7**2, "root": 0.7} if free else {}

    def moved(d: Array) -> tuple[Array, Array]:
        there = {"q": robot.integrate(q, d[:n]), "v": known["v"] + d[n : 2 * n], "u": known["u"] + d[2 * n + free :]}
        there |= {"root": known["root"] + d[2 * n]} if free else {}
        found = called(stage.step, known | there)
        return found.ahead, found.velocity

    def product(d: Array) -> float:
        ahead, velocity = moved(d)
        return float(costate[0] @ robot.difference(at[0], ahead) + costate[1] @ velocity)

    H = np.zeros((2 * n + stage.system.controls,) * 2)
    at = moved(np.zeros(len(H)))
    for (i, j), x in zip(stage.places, called(stage.curvature, known), strict=True):
        H[i, j] = H[j, i] = x
    assert abs(H).max() > 1e-4
    for d in rng.normal(size=(8, len(H))):
        d *= EPS / np.linalg.norm(d)
        values = [product(k * d) for k in (-2, -1, 0, 1, 2)]
        second = np.dot([-1.0, 16.0, -30.0, 16.0, -1.0], values) / 12.0
        np.testing.assert_allclose(d @ H @ d, second, rtol=0, atol=2e-7 * EPS**2 * max(1.0, abs(H).max()))


def wheel() -> fw.Robot:
    return fw.build(from_parents([-1, 0], rng=1, joint_types=["planar", "spherical"]))


def two_feet() -> fw.OptimalControl:
    ocp, *_ = hyq(0.7)
    feet = ocp.phases[0].contacts
    return of_effort(ocp.robot, phases=[fw.Phase(2, feet[:2]), fw.Phase(2, feet[:3], impact=True)])


PROBLEMS: dict[str, Callable[[], fw.OptimalControl]] = {
    "arm": lambda: panda(2, exact=True),
    "floating base": lambda: of_effort(hyq(0.7)[0].robot),
    "contacts and an impact": two_feet,
    "planar and ball joints": lambda: of_effort(wheel()),
    "free steps": lambda: of_effort(hopper()[0], phases=[fw.Phase(2, FOOT, FREE), fw.Phase(2, FOOT, impact=True)]),
    "free steps with springs": lambda: of_effort(sprung_hopper()[0], phases=[fw.Phase(2, dt=FREE)]),
    "leg with a loop": lambda: leg(2, 2, exact=True)[0],
    "leg with a loop and springs": lambda: of_effort(linkage()),
    "springs of a ball joint, gravity compensation": lambda: of_effort(fw.load(arm())),
    "servos": lambda: of_effort(fw.load(fw.example("panda")), actuators=fw.PD(stiffness=50.0, damping=5.0)),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_second_derivatives_of_steps_are_those_of_differences(name: str) -> None:
    rng, ocp = np.random.default_rng(0), PROBLEMS[name]()
    robot = ocp.robot
    start = leg()[1] if "leg" in name else robot.start()
    for stage in layout_of(ocp).stages[:-1]:
        check(ocp, stage, robot.integrate(start, 0.4 * rng.normal(size=robot.nv)), rng)


def reach(exact: bool, **options: Any) -> fw.OptimalControl:
    ocp = fw.OptimalControl(fw.load(fw.example("panda")), exact=exact, **({"dt": 0.02} | options))
    ocp.add(fw.FrameTask(HAND, kind="position", name="hand"), weight=100.0)
    ocp.add(fw.JointVelocities(), weight=0.1)
    ocp.add(fw.Effort(), weight=1e-3)
    return ocp


@pytest.mark.parametrize("options", [{"knots": 30}, {"phases": [fw.Phase(30, dt=(0.01, 0.03))]}], ids=["given", "free"])
def test_last_iterations_converge_quadratically(options: Any) -> None:
    """Check distances of controls from the solution: exact curvature squares them, Gauss-Newton's reduces them by a factor."""
    targets, distances = {"hand": np.array([0.4, 0.3, 0.4])}, []
    for exact in (True, False):
        ocp = reach(exact, **options)
        if ocp.free:
            ocp.add(fw.Duration(), weight=20.0)
        ends = [ocp.solve(PANDA_START, targets=targets, iterations=k, tolerance=1e-16) for k in (*range(2, 60), 300)]
        u = np.array([plan.u for plan in ends])
        error = abs(u - u[-1]).max(axis=(1, 2)) / abs(u[-1]).max()
        distances.append(error[error > 1e-7])  # smaller ones are rounding errors
    newton, gauss = distances
    assert len(newton) < 0.7 * len(gauss)
    assert newton[-1] < 0.1 * newton[-2]
    assert gauss[-1] > 0.3 * gauss[-2]


def test_swing_ups_that_end_far_from_rest_take_fewer_iterations() -> None:
    """Check solutions whose costs stay large, with one drive and limits."""
    plans = []
    for exact in (False, True):
        ocp = fw.OptimalControl(pendulum(), dt=0.02, knots=60, driven=["shoulder"], exact=exact)
        ocp.add(fw.PostureTask(), weight=10.0)
        ocp.add(fw.JointVelocities(), weight=0.1)
        ocp.add(fw.Effort(), weight=1e-2)
        ocp.limit(efforts=True)
        q = np.random.default_rng(0).uniform(-0.3, 0.3, (8, 2))
        plans.append(ocp.solve(q, targets={"posture": np.array([2.5, 0.0])}, iterations=400, tolerance=1e-10))
        assert plans[-1].converged.all() and plans[-1].violation.max() < 1e-4
    np.testing.assert_allclose(plans[1].cost, plans[0].cost, rtol=1e-4)
    assert plans[1].iterations.sum() < 0.8 * plans[0].iterations.sum()


def test_terms_of_an_exact_problem_are_exact_where_they_can_be() -> None:
    ocp, *_ = hyq(0.7)
    exact = fw.OptimalControl(ocp.robot, phases=ocp.phases, exact=True)
    exact.add(fw.Effort())
    exact.add(fw.ContactForces(), weight=1e-3)
    exact.add(fw.JointVelocities(), exact=False)
    stage, laws = layout_of(exact).stages[0], layout_of(exact).laws
    sizes = dict(zip(("effort", "forces", "velocities"), stage.of_terms.sizes_of_terms(), strict=True))
    assert laws.exact[: stage.rows].sum() == sizes["effort"] == exact.nu
    with pytest.raises(ValueError, match="exact=True does not support force"):
        exact.add(fw.ContactForces(name="more"), exact=True)
    with pytest.raises(NotImplementedError, match="not 'rk4'"):
        fw.OptimalControl(ocp.robot, knots=3, integrator="rk4", exact=True)
    with pytest.raises(TypeError, match="exact"):
        fw.OptimalControl(ocp.robot, knots=3, exact=1)  # type: ignore[arg-type]
