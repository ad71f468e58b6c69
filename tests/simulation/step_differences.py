"""Central differences of whole steps, to compare derivatives with."""

from __future__ import annotations

import copy

import numpy as np

import featherweight as fw
from featherweight.simulation.derivatives.fleet_derivatives import StepDerivatives
from oracles.states import Array

SMALL = 1e-6


def differences(sim: fw.Simulation, tau: Array, control: Array) -> list[Array]:
    """Return central differences of the step from the current state over 1e-6 and 1e-7."""
    robot, state, given = sim.robot, sim.state, len(control) > 0
    nv, na = robot.nv, state.arrays["act"].shape[1]

    def after(x: Array) -> fw.simulation.State:
        dq, dv, da, dtau, du = np.split(x, np.cumsum([nv, nv, na, nv]))
        start = copy.copy(state)
        rows = start.arrays
        rows["q"][0], rows["v"][0] = robot.integrate(state.q, dq), state.v + dv
        rows["act"][0] += da
        return sim.advance(start, tau=tau + dtau, control=control + du if given else None)

    columns = []
    for step in (SMALL, 0.1 * SMALL):
        each = []
        for e in step * np.eye(3 * nv + na + len(control)):
            a, b = after(e), after(-e)
            acts = a.arrays["act"][0] - b.arrays["act"][0]
            each.append(np.concatenate([robot.difference(b.q, a.q), a.v - b.v, acts]) / (2.0 * step))
        columns.append(np.stack(each, axis=1))
    return columns


def agreed(sim: fw.Simulation, tau: Array, control: Array, most: float = 1e-6) -> StepDerivatives:
    """Return the derivatives of the next step, compared with differences, where these do not cross a boundary themselves."""
    found = sim.derivatives(tau, control if len(control) else None)
    expected, finer = differences(sim, tau, control)
    whole = np.hstack([found.A, found.B, found.B_control])[:, : expected.shape[1]]
    scale = np.maximum(1.0, np.abs(expected).max(axis=0))
    error = np.minimum(*(np.abs(whole - x).max(axis=0) / scale for x in (expected, finer)))  # stiff contacts, and rounding
    smooth = np.abs(expected - finer).max(axis=0) / scale < 1e-3
    assert smooth.mean() > 0.9
    assert error[smooth].max() < most
    multiplied(sim, found, tau, control)
    return found


def multiplied(sim: fw.Simulation, found: StepDerivatives, tau: Array, control: Array) -> None:
    """Compare products with the derivatives, which solve transposed equations.

    Both agree to rounding. The proximal term of rigid contacts magnifies it by 1e6.
    """
    cotangent = np.random.default_rng(1).standard_normal(len(found.A))
    products = sim.derivative_products(cotangent, tau, control if len(control) else None)
    expected = cotangent @ np.hstack([found.A, found.B, found.B_control])
    rounding = 1e-12 if sim._plant.contacts.convex else 1e-9
    np.testing.assert_allclose(products, expected, rtol=0.0, atol=rounding * max(1.0, np.abs(expected).max()))


def watched(
    sim: fw.Simulation, steps: int = 60, every: int = 12, seed: int = 0, most: float = 1e-6, push: float = 0.1
) -> list[StepDerivatives]:
    """Compare the derivatives of some steps of a simulation under random controls and forces."""
    rng, found = np.random.default_rng(seed), []
    for t in range(steps):
        tau, control = push * rng.standard_normal(sim.robot.nv), rng.uniform(-0.5, 0.5, sim.forces.nu)
        if t % every == every - 1:
            found.append(agreed(sim, tau, control, most))
        sim.step(tau, control=control if len(control) else None)
    return found
