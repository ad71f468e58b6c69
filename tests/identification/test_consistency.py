"""Tests of physically possible inertias, and of fits of them."""

from __future__ import annotations

import builtins
import dataclasses
import sys
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.identification import (
    base_parameters,
    fit_inertial_parameters,
    inconsistent_bodies,
    parameters_of,
    pseudo_inertia,
)
from oracles.mechanisms import MECHANISMS
from oracles.robots import example
from oracles.states import Array, States, evaluated, random_states


def points(rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Return inertial parameters and pseudo-inertia of points with mass."""
    m, r = rng.uniform(0.1, 1.0, count), rng.standard_normal((count, 3))
    I = sum(mass * (x @ x * np.eye(3) - np.outer(x, x)) for mass, x in zip(m, r, strict=True))
    P = sum(mass * np.outer(x, x) for mass, x in zip(m, np.hstack([r, np.ones((count, 1))]), strict=True))
    h = m @ r
    return np.array([m.sum(), *h, I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]]), P


def test_pseudo_inertias_are_sums_over_points() -> None:
    rng = np.random.default_rng(0)
    for count in (1, 2, 5):
        x, P = points(rng, count)
        np.testing.assert_allclose(pseudo_inertia(x), P, atol=1e-14)
        np.testing.assert_allclose(parameters_of(P), x, atol=1e-14)
    several = rng.standard_normal((2, 3, 10))
    np.testing.assert_allclose(parameters_of(pseudo_inertia(several)), several, atol=1e-15)
    with pytest.raises(ValueError, match=r"shape \(..., 10\); got \(3, 9\)"):
        pseudo_inertia(np.zeros((3, 9)))
    with pytest.raises(ValueError, match=r"shape \(..., 4, 4\); got \(10,\)"):
        parameters_of(np.zeros(10))


def test_bodies_made_of_points_can_be() -> None:
    """Check points in a line or a plane too, at any positions; negative masses are impossible."""
    robot = example("ur5")
    rng = np.random.default_rng(1)
    made = np.array([points(rng, count)[0] for count in (1, 2, 3, 4, 5, 60)])
    assert inconsistent_bodies(robot, made) == {}
    assert inconsistent_bodies(robot, np.zeros((6, 10))) == {}
    for k, (index, change, why) in enumerate(
        [
            (0, -5.0, "its mass is negative"),
            (6, 1.0, "its greatest principal moment about the centre of mass exceeds the sum of the others by"),
            (1, 30.0, "its inertia about the centre of mass has a negative principal moment"),
            (4, np.nan, "its parameters are not finite"),
        ]
    ):
        wrong = made.copy()
        wrong[k, index] += change
        (found,) = inconsistent_bodies(robot, wrong.ravel()).items()
        assert found[0] == robot.bodies[k].name
        assert why in found[1]
    wrong = np.zeros((6, 10))
    wrong[2, 9] = 1.0
    assert inconsistent_bodies(robot, wrong) == {"forearm_link": "it has no mass, but other parameters that are not zero"}
    with pytest.raises(ValueError, match=r"must have shape \(6, 10\); got \(7,\)"):
        inconsistent_bodies(robot, np.zeros(7))


def test_verdicts_are_those_of_eigenvalues() -> None:
    robot, rng = example("ur5"), np.random.default_rng(2)
    found = []
    for _ in range(40):
        P = pseudo_inertia(np.array([points(rng, 5)[0] for _ in robot.bodies]))
        P += rng.uniform(-1.5, 0.5, (6, 1, 1)) * np.eye(4) * np.array([0.3, 0.3, 0.3, 0.0])
        expected = {b.name for b, low in zip(robot.bodies, np.linalg.eigvalsh(P)[:, 0], strict=True) if low < -1e-9}
        assert set(inconsistent_bodies(robot, parameters_of(P))) == expected
        found.append(len(expected))
    assert 20 < sum(found) < 220


class FromTrace:
    """A function evaluated from its trace, which takes less time than compilation."""

    def __init__(self, function: fw.CompiledFunction) -> None:
        self.function = function

    def __call__(self, *x: Array) -> Array:
        return evaluated(self.function, *x)[0]


def not_compiled(regressor: Any) -> Any:
    return regressor._replace(function=FromTrace(regressor.function))


def noisy(robot: fw.Robot, parameters: Array, noise: float, count: int) -> tuple[States, Array]:
    x = random_states(robot, count, seed=6)
    tau = not_compiled(robot.extended_regressor(joint_friction=True)).function(*x) @ parameters
    return x, tau + noise * np.random.default_rng(7).standard_normal(tau.shape)


@pytest.mark.parametrize("name", ["ur5", "four_bar"])
def test_a_fit_finds_what_forces_tell(name: str) -> None:
    """Check inertias far from the prior, and friction: forces are fitted as well as by the truth; undetermined parameters
    keep the prior.
    """
    robot = fw.build(MECHANISMS[name]()) if name in MECHANISMS else example(name)
    rng = np.random.default_rng(5)
    bend = np.eye(4) + 0.1 * rng.standard_normal((len(robot.bodies), 4, 4))
    known = pseudo_inertia(robot.inertial_parameters)
    inertial = parameters_of(bend @ known @ np.swapaxes(bend, 1, 2))
    n = len(robot.joints)
    truth = np.append(inertial, rng.uniform(0.1, 0.3, 2 * n))
    x, tau = noisy(robot, truth, 0.05, 150)
    regressor = not_compiled(robot.extended_regressor(joint_friction=True))
    fit = fit_inertial_parameters(regressor, *x, tau)
    assert inconsistent_bodies(robot, fit.inertial) == {}
    assert np.linalg.eigvalsh(pseudo_inertia(fit.inertial))[:, 0].min() > 0.0
    assert tuple(fit.joints) == regressor.names[-2 * n :]
    np.testing.assert_allclose(fit.residual, 0.05, rtol=0.15)
    base = dataclasses.replace(base_parameters(robot, joint_friction=True), regressor=regressor)
    free = base.fit(*x, tau)
    found = base.of(np.append(fit.inertial, list(fit.joints.values())))
    assert np.abs((found - base.of(truth)) / free.deviations).max() < 5.0
    other = robot.with_inertial_parameters(fit.inertial)
    y = random_states(robot, 50, seed=8)
    predicted, true = (evaluated(r.inverse_dynamics, *y)[0] for r in (other, robot.with_inertial_parameters(inertial)))
    np.testing.assert_allclose(predicted, true, rtol=0, atol=0.2)
    still = fit_inertial_parameters(regressor, *x, tau, spread=1e-5)
    np.testing.assert_allclose(still.inertial, robot.inertial_parameters, rtol=1e-2, atol=1e-4)


def test_noise_that_asks_for_less_mass_than_none_is_not_followed() -> None:
    """Check that the fit stays physically possible if least squares give a negative mass or friction."""
    robot = example("double_pendulum")
    wrong = np.append(robot.inertial_parameters, [-0.2, 0.1, 0.1, 0.1])
    wrong[10] = -0.3
    x, tau = noisy(robot, wrong, 0.001, 100)
    fit = fit_inertial_parameters(not_compiled(robot.extended_regressor(joint_friction=True)), *x, tau)
    assert inconsistent_bodies(robot, fit.inertial) == {}
    assert fit.inertial[1, 0] > 0.0
    assert next(iter(fit.joints.values())) == pytest.approx(0.0, abs=1e-4)
    assert fit.residual.max() > 0.01


def test_what_was_known_may_be_wrong() -> None:
    """Check priors with massless bodies and impossible inertias."""
    robot = example("ur5")
    truth = np.append(robot.inertial_parameters, np.full(12, 0.1))
    x, tau = noisy(robot, truth, 0.02, 100)
    prior = robot.inertial_parameters
    prior[2] = 0.0
    prior[3, 4:] = [1.0, 0.0, 0.1, 0.0, 0.0, 0.1]
    fit = fit_inertial_parameters(not_compiled(robot.extended_regressor(joint_friction=True)), *x, tau, prior=prior)
    assert inconsistent_bodies(robot, fit.inertial) == {}
    np.testing.assert_allclose(fit.residual, 0.02, rtol=0.25)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"prior": np.ones(7)}, r"prior must have shape \(6, 10\); got \(7,\)"),
        ({"spread": 0.0}, "spread must be a positive"),
    ],
)
def test_bad_arguments_are_refused(given: dict[str, Any], message: str) -> None:
    robot = example("ur5")
    x = random_states(robot, 3)
    with pytest.raises(ValueError, match=message):
        fit_inertial_parameters(not_compiled(robot.extended_regressor()), *x, x.a, **given)


@pytest.mark.parametrize("missing", ["clarabel", "scipy.linalg"])
def test_what_is_missing_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without(name: str, *args: Any, **named: Any) -> Any:
        if name == missing:
            raise ImportError(f"No module named {missing!r}")
        return original(name, *args, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.delitem(sys.modules, missing, raising=False)
    robot = example("double_pendulum")
    x = random_states(robot, 30)
    regressor = not_compiled(robot.extended_regressor())
    call = (lambda: fit_inertial_parameters(regressor, *x, x.a)) if missing == "clarabel" else (lambda: base_parameters(robot))
    with pytest.raises(ImportError, match=r"pip install .*featherweight\[identification\]"):
        call()
