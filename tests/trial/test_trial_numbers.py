"""Tests of numbers: every function of random robots at ordinary and extreme states, against the same computation in 50 digits.

The tests check these claims:

1. Each result lies within the rounding error bound of its computation (`oracles.running_error`). The bound is proved operation
by operation, without fitted factors. It is the condition of the computation, and covers denormal numbers, angles of 1e15 and
overflow. If the bound is infinite, because something overflows or all digits cancel, the only claim is that the function
returns.
2. Functions that solve with the mass matrix M are backward stable in practice: with D the roots of M's diagonal, n the degrees
of freedom, κ the condition number of D⁻¹ M D⁻¹, and h the bias force,

    |D (a - a_exact)| <= CONSTANT n eps κ (|D a_exact| + |D⁻¹ (|tau| + |h|)|),

for ratios of masses to 1e12. This is measured, not proved; the test prints the largest constant.
3. A chain of 500 bodies, which is not traced, leaves a residual of at most LONG_CONSTANT n eps (|M| |a| + |h| + |tau|).
4. Derivatives of the dynamics equal differences of values, for each algorithm and joints of all types with armatures.
5. A state in a batch has the same bits as alone, whatever the other states hold: infinities, NaN, numbers that overflow.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import mpmath
import numpy as np
import pytest

import featherweight as fw
from featherweight.array_types import Array
from featherweight.engine.function import CompiledFunction
from featherweight.model.types import JointType
from oracles.fifty_digits import check_in_fifty_digits
from oracles.mechanisms import MECHANISMS
from oracles.running_error import DIGITS, beyond, computed, exact_results, flat
from oracles.states import state
from oracles.trees import awkward
from trial.conftest import Rounds

EPS = float(np.finfo(np.float64).eps)
LONGEST = 2_500  # operations of a trace; longer traces take seconds in 50 digits
CONSTANT, LONG_CONSTANT = 10.0, 0.1  # the largest measured values are 0.8 and 0.003
TURNS = (JointType.SPHERICAL, JointType.FLOATING, JointType.PLANAR)
SCALES = {np.float64: (1e-312, 1e-160, 1e15, 1e100, 1e150), np.float32: (1e-42, 1e-25, 1e7, 1e12, 1e18)}
SMALL = ("four_bar", "crank_and_rocker", "coupled", "geared", "own", "repeated", "geared_chain", "chain_spherical")


def random_robot(rng: np.random.Generator, most: int = 4) -> fw.Robot:
    """Return a small tree or chain of random joints with mass ratios up to 1e12; sometimes a mechanism with loops."""
    if rng.random() < 0.2:
        return mechanism(str(rng.choice(SMALL)))
    spread = 10.0 ** rng.uniform(0.0, 6.0)
    n = int(rng.integers(1, most + 1))
    description = fw.generators.random_tree(
        n, rng=int(rng.integers(2**31)), branching=float(rng.random()), masses=(1.0 / spread, spread)
    )
    return fw.build(awkward(description, rng), execution="interpreted")


@functools.cache
def mechanism(name: str) -> fw.Robot:
    return fw.build(MECHANISMS[name](), execution="interpreted")


def dynamics_of(robot: fw.Robot, rng: np.random.Generator) -> CompiledFunction:
    """Return a function of the state that every robot has, by a random algorithm, with or without an optional argument."""
    f: CompiledFunction[Any] = getattr(robot, str(rng.choice([*robot.functions, "_factors"])))
    f = f.alternatives[str(rng.choice(list(f.alternatives)))]
    return f.variant(f.program.options[0]) if f.program.options and rng.random() < 0.3 else f


def function_of_frames(robot: fw.Robot, rng: np.random.Generator) -> CompiledFunction:
    frames = [str(f) for f in rng.choice([f.name for f in robot.frames], size=2)]
    reference = str(rng.choice(["local", "local_world_aligned", "world"]))
    which = int(rng.integers(5))
    if which == 0:
        return robot.frame_placement(frames)
    if which == 1:
        return robot.together(robot.bias_force, robot.mass_matrix, robot.frame_placement(frames[0]))
    return (robot.frame_jacobian, robot.frame_velocity, robot.frame_bias_acceleration)[which - 2](frames, reference)


def function_of_contacts(robot: fw.Robot, rng: np.random.Generator) -> CompiledFunction:
    bodies = [b.name for b in robot.bodies]
    kinds = [str(k) for k in rng.choice(["point", "weld"], size=int(rng.integers(1, 3)))]
    space = robot.operational_space([fw.BilateralContact(str(rng.choice(bodies)), kind=kind) for kind in kinds])
    names = ["jacobian", "bias", "apply_delassus", "placements", "constrained_dynamics", "delassus", "delassus"]
    if not space.dependence:
        names += ["inertia", "consistent_inverse", "null_space_projector"]
    name = str(rng.choice(names))
    if name == "delassus":
        return space.delassus(str(rng.choice(list(space._delassus_kernels))))
    f: CompiledFunction[Any] = getattr(space, name)
    return f.alternatives[str(rng.choice(list(f.alternatives)))]


def random_function(robot: fw.Robot, rng: np.random.Generator) -> CompiledFunction:
    """Return a random function of a robot."""
    made = (dynamics_of, function_of_frames, function_of_contacts)[int(rng.choice(3, p=[0.5, 0.2, 0.3]))]
    return made(robot, rng)


def random_state(robot: fw.Robot, f: CompiledFunction[Any], rng: np.random.Generator, dtype: Any) -> list[Array]:
    """Return arguments of a function: ordinary ones, or some or all numbers denormal or huge.

    Quaternions, and angles that loops determine, keep their values.
    """
    free = np.ones(robot.nq, dtype=bool)
    for j in robot.joints:
        if j.type in TURNS:
            free[j.q_slice.stop - 4 if j.type is not JointType.PLANAR else j.q_slice.stop - 2 : j.q_slice.stop] = False
    free &= not robot.closed
    arguments = []
    for a in f.program.inputs:
        x = robot.random_configuration(rng=rng) if a.rate else rng.standard_normal(a.shape)
        scale = 1.0 if rng.random() < 0.4 else float(rng.choice(SCALES[dtype]))
        chosen = (free if a.rate else True) & (rng.random(a.shape) < rng.choice([0.3, 1.0]))
        x = np.where(chosen, x * min(scale, 1e15) if a.rate else x * scale, x)
        x = np.where((rng.random(a.shape) < 0.1) & (free if a.rate else True), rng.choice([0.0, -0.0]), x)
        arguments.append(x.astype(dtype))
    return arguments


def test_results_lie_within_the_rounding_of_what_computes_them(rounds: Rounds) -> None:
    checked, unbounded = 0, 0
    for rng in rounds(0.08):
        robot = random_robot(rng)
        for _ in range(4):
            f = random_function(robot, rng)
            if len(f.trace.live) > LONGEST:
                continue
            dtype = np.float64 if rng.random() < 0.6 else np.float32
            arguments = random_state(robot, f, rng, dtype)
            for g in [f, CompiledFunction(f.program, "traced")] if rng.random() < 0.4 else [f]:
                exact = exact_results(g, arguments)
                wrong = beyond(computed(g, arguments), exact)
                assert not wrong, (robot.name, f.name, f.algorithm, g.execution, dtype, wrong, arguments)
                bounds = [e.double if dtype is np.float64 else e.single for e in exact]
                checked, unbounded = checked + len(exact), unbounded + sum(not b < np.inf for b in bounds)
    print(f"{checked} results, {unbounded} of them without a bound")
    assert unbounded < checked


class Scaled:
    """Mass matrix M, bias force and condition number in 50 digits at one state."""

    def __init__(self, robot: fw.Robot, q: Array, v: Array) -> None:
        n = robot.nv
        entries = [e.value for e in exact_results(robot.mass_matrix, [q])]
        self.M = mpmath.matrix([entries[i * n : (i + 1) * n] for i in range(n)])
        self.h = mpmath.matrix([e.value for e in exact_results(robot.bias_force, [q, v])])
        self.D = [mpmath.sqrt(self.M[i, i]) for i in range(n)]
        S = mpmath.matrix(n, n)
        for i in range(n):
            for j in range(n):
                S[i, j] = self.M[i, j] / (self.D[i] * self.D[j])
        self.condition = float(mpmath.mnorm(S, "f") * mpmath.mnorm(S**-1, "f"))

    def constant(self, a: Array, tau: Array) -> float:
        """Return the constant of claim 2: the error of a, divided by the rest of its bound."""
        n = len(self.D)
        exact = mpmath.lu_solve(self.M, mpmath.matrix([mpmath.mpf(float(t)) for t in tau]) - self.h)
        error = mpmath.norm([self.D[i] * (mpmath.mpf(float(a[i])) - exact[i]) for i in range(n)])
        size = mpmath.norm([self.D[i] * exact[i] for i in range(n)])
        size += mpmath.norm([(abs(float(tau[i])) + abs(self.h[i])) / self.D[i] for i in range(n)])
        return float(error / (n * EPS * self.condition * size))


def solutions(robot: fw.Robot, q: Array, v: Array, tau: Array) -> dict[str, Array]:
    """Return the accelerations from all functions that solve with the mass matrix."""
    found = {f"forward_dynamics {a}": f(q, v, tau) for a, f in robot.forward_dynamics.alternatives.items()}
    rest = tau - robot.bias_force(q, v)
    found |= {f"inverse {a}": f(q) @ rest for a, f in robot.inverse_mass_matrix.alternatives.items()}
    found["factorize"] = robot.factorize(q).solve(rest)
    found["solve_mass_matrix"] = robot.solve_mass_matrix(q, rest[:, None])[:, 0]
    return found


def test_what_solves_with_the_mass_matrix_is_as_good_as_its_condition(rounds: Rounds) -> None:
    worst: dict[str, float] = {}
    hardest = 0.0
    for rng in rounds(0.04):
        spread = 10.0 ** rng.uniform(0.0, 6.0)
        n, seed = int(rng.integers(1, 9)), int(rng.integers(2**31))
        robot = fw.build(fw.generators.random_tree(n, rng=seed, masses=(1.0 / spread, spread)), execution="interpreted")
        q, v, tau = robot.random_configuration(rng=rng), rng.standard_normal(robot.nv), rng.standard_normal(robot.nv)
        with mpmath.workdps(DIGITS):
            exact = Scaled(robot, q, v)
            if exact.condition > 1e14:
                continue  # no correct digits remain
            hardest = max(hardest, exact.condition)
            for name, a in solutions(robot, q, v, tau).items():
                worst[name] = max(worst.get(name, 0.0), exact.constant(a, tau))
                assert worst[name] <= CONSTANT, (name, n, seed, spread)
    print(f"conditions to {hardest:.1e}; constants", {name: float(f"{c:.2g}") for name, c in worst.items()})


LONG = 500


@functools.cache
def long_chain(joint: str, seed: int) -> fw.Robot:
    return fw.build(fw.generators.chain(LONG, joint=joint, rng=seed), execution="rolled")


@pytest.mark.parametrize("execution", ["interpreted", "rolled"])
def test_chains_of_five_hundred_bodies_are_solved(rounds: Rounds, execution: str) -> None:
    worst = 0.0
    for rng in rounds(0.015):
        robot = long_chain(str(rng.choice(["revolute", "prismatic"])), int(rng.integers(3)))
        solve, inverse = (CompiledFunction(f.program, execution) for f in (robot.forward_dynamics, robot.inverse_dynamics))
        turns = robot.joints[0].type is JointType.REVOLUTE and rng.random() < 0.3
        q = robot.random_configuration(rng=rng) * (1e12 if turns else 1.0)
        v, tau = rng.standard_normal((2, LONG))
        a = solve(q, v, tau)
        h, x = inverse(q, v, np.zeros(LONG)), rng.standard_normal(LONG)
        mass = np.linalg.norm(inverse(q, v, x) - h) / np.linalg.norm(x)  # a lower bound of |M|
        terms = mass * np.linalg.norm(a) + np.linalg.norm(h) + np.linalg.norm(tau)
        worst = max(worst, float(np.linalg.norm(inverse(q, v, a) - tau) / (LONG * EPS * terms)))
        assert worst <= LONG_CONSTANT, (robot.name, robot.joints[0].type)
    print(f"constant {worst:.2g}")


HOSTILE = (np.inf, -np.inf, np.nan, 1e308, 1e-308, 5e-324, -0.0, 1e200)


def test_states_of_a_batch_do_not_see_each_other(rounds: Rounds) -> None:
    for rng in rounds(0.02):
        robot = random_robot(rng, most=3)
        f = CompiledFunction(random_function(robot, rng).program, "traced")
        if f.too_large:
            continue
        states, dtype = int(rng.integers(2, 40)), (np.float64, np.float32)[rng.integers(2)]
        arguments = [
            (robot.random_configuration(rng=rng, size=states) if a.rate else rng.standard_normal((states, *a.shape))).astype(
                dtype
            )
            for a in f.program.inputs
        ]
        alone = [flat(f(*(x[k] for x in arguments))) for k in range(states)]
        bad = rng.random(states) < 0.3
        for x in arguments:
            hit = bad.reshape(-1, *[1] * (x.ndim - 1)) & (rng.random(x.shape) < 0.5)
            with np.errstate(over="ignore"):
                x[hit] = rng.choice(HOSTILE, size=int(hit.sum())).astype(dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            results = f(*arguments, threads=int(rng.integers(1, 3)))
        many = results if isinstance(results, tuple) else (results,)
        for k in np.flatnonzero(~bad):
            here = flat(tuple(r[k] for r in many))
            np.testing.assert_array_equal(here, alone[k], err_msg=f"{robot.name} {f.name} state {k} of {states}")


def test_derivatives_of_dynamics_are_differences_in_fifty_digits(rounds: Rounds) -> None:
    """Check each algorithm, with robots and mechanisms whose joints have armatures, with all types of joints."""
    for rng in rounds(0.02):
        if rng.random() < 0.3:
            closed = mechanism(str(rng.choice(SMALL)))
            robot: fw.Robot = closed.with_armature({j.name: float(rng.uniform(0.05, 0.5)) for j in closed.joints})
        else:
            n, seed = int(rng.integers(1, 4)), int(rng.integers(2**31))
            made = fw.generators.random_tree(n, rng=seed, branching=float(rng.random()), masses=(0.1, 10.0))
            robot = fw.build(awkward(made, rng), execution="interpreted")
        x = state(robot, int(rng.integers(2**31)))
        if isinstance(robot, fw.ClosedRobot) and robot.singularity(x.q) > 1e3:
            continue
        check_in_fifty_digits(robot, x)


def test_differences_lead_where_they_came_from(rounds: Rounds) -> None:
    """Check that difference(q, integrate(q, v)) is v, to rounding of |q| + |v|, for turns of less than half a circle."""
    for rng in rounds(0.005):
        n = int(rng.integers(1, 12))
        robot = fw.build(fw.generators.random_tree(n, rng=int(rng.integers(2**31))), execution="interpreted")
        scale = 10.0 ** rng.uniform(-300.0, 0.0)
        q, v = robot.random_configuration(rng=rng), rng.uniform(-1.0, 1.0, robot.nv) * scale
        back = robot.difference(q, robot.integrate(q, v))
        assert np.abs(back - v).max() <= 50 * EPS * (1.0 + np.abs(q).max() + np.abs(v).max())
