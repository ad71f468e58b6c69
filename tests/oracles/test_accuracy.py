"""Tests that compiled functions compute their traces within the rounding that the trace allows.

The reference is the trace, evaluated with 50 digits, and the bound is the running error of the same trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest

import featherweight as fw
from featherweight.engine.operations import OPERATIONS
from featherweight.engine.trace import trace
from featherweight.model.types import JointType
from oracles.robots import DYNAMICS, example
from oracles.running_error import beyond, computed, exact_results, flat


@cache
def robot(name: str) -> Any:
    if name == "tree":
        return fw.build(fw.generators.random_tree(10, rng=5))
    if name == "chain":
        return fw.build(fw.generators.chain(30))
    if name == "four-bar":
        return fw.build(fw.robots.four_bar())
    return example(name)


def functions(name: str) -> dict[str, fw.CompiledFunction]:
    r = robot(name)
    found = dict(r.functions)
    if name != "four-bar":  # all of its functions are short
        found = {n: f for n, f in found.items() if n in DYNAMICS}
    if name in ("panda", "tree"):
        frame = r.frames[-1].name
        found |= {
            "frame_placement": r.frame_placement(frame), "frame_jacobian": r.frame_jacobian(frame),
            "frame_velocity": r.frame_velocity(frame), "frame_bias_acceleration": r.frame_bias_acceleration(frame),
        }  # fmt: skip
    return found


ROBOTS = ("talos", "panda", "tree", "chain", "four-bar")
LONGEST = 4_000  # number of operations; longer functions would take minutes


def arguments(f: fw.CompiledFunction, r: Any) -> list[Any]:
    """Return a state that single precision represents."""
    rng = np.random.default_rng(2)
    own = [r.random_configuration(rng=rng) if a.rate else rng.standard_normal(a.shape) for a in f.program.inputs]
    return [x.astype(np.float32).astype(np.float64) for x in own]


@pytest.mark.parametrize("name", ROBOTS)
def test_results_lie_within_the_rounding_of_their_trace(name: str) -> None:
    for function, f in functions(name).items():
        if len(f.trace.live) > LONGEST:
            continue
        args = arguments(f, robot(name))
        exact = exact_results(f, args)
        for dtype in (np.float64, np.float32):
            assert not beyond(computed(f, [a.astype(dtype) for a in args]), exact), (function, dtype)


@pytest.mark.parametrize("name", ["panda", "tree", "four-bar"])
def test_floats_give_what_the_kernel_gives(name: str) -> None:
    for f in functions(name).values():
        args = arguments(f, robot(name))
        evaluated = np.array(fw.evaluate(f.trace, [[float(x) for x in a] for a in args]))
        compiled = flat(f(*args))
        scale = max(1.0, np.abs(compiled).max())
        np.testing.assert_allclose(evaluated, compiled, rtol=0, atol=1e-11 * scale)  # two roundings of one trace
        plain = f.program.flat(*[[float(x) for x in a] for a in args])
        np.testing.assert_allclose(evaluated, plain, rtol=0, atol=1e-11 * scale)


@pytest.mark.parametrize("scale", [1e3, 1e9, 1e15])
@pytest.mark.parametrize("name", ["tree", "panda"])
def test_large_angles_give_what_their_remainders_give(name: str, scale: float) -> None:
    """Joints whose zero position is turned about their own axis included. Remainders in 50 digits are rounded to 2e-16."""
    r = robot(name)
    rng = np.random.default_rng(3)
    q, v = np.array(r.random_configuration(rng=rng)), rng.standard_normal(r.nv)
    near = q.copy()
    turning = [j.q_slice.start for j in r.joints if j.type in (JointType.REVOLUTE, JointType.CONTINUOUS)]
    assert any(0.0 not in twist for _, _, twist in r.model.tree.turns)
    q[turning] *= scale
    with mpmath.workdps(50):
        for k in turning:
            near[k] = float(mpmath.fmod(mpmath.mpf(float(q[k])) + mpmath.pi, 2 * mpmath.pi) - mpmath.pi)
    wanted = r.inverse_dynamics(near, v, v)
    np.testing.assert_allclose(r.inverse_dynamics(q, v, v), wanted, rtol=0, atol=1e-13 * np.abs(wanted).max())


def test_arrays_are_batches() -> None:
    f = robot("panda").forward_dynamics
    rng = np.random.default_rng(0)
    q, v, tau = rng.standard_normal((3, 25, robot("panda").nv))
    columns = fw.Arithmetic(np.float64, np.sqrt, np.sin, np.cos)
    results = fw.evaluate(f.trace, [q.T, v.T, tau.T], columns)
    wanted = f(q, v, tau)
    np.testing.assert_allclose(np.transpose(results), wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())


def test_fractions_are_exact_where_a_function_is_rational() -> None:
    def rational(x: Any) -> list[Any]:
        y = (x[0] * x[1] - 0.25) / (x[2] + 3.0)
        return [y, -y * y, x[0] - 0.5, 0.75]

    x = [Fraction(1, 3), Fraction(2, 7), Fraction(-5, 11)]
    arithmetic = fw.Arithmetic(Fraction, *[lambda y: pytest.fail("not rational")] * 3)
    y = (x[0] * x[1] - Fraction(1, 4)) / (x[2] + 3)
    assert fw.evaluate(trace(rational, [3]), [x], arithmetic) == [y, -y * y, x[0] - Fraction(1, 2), Fraction(3, 4)]
    f = fw.build(fw.generators.random_tree(4, rng=1)).mass_matrix
    trigonometric = {k for k, operation in enumerate(OPERATIONS) if operation.counted in ("trig", "sqrt")}
    q = [Fraction(k, 10) for k in range(f.program.inputs[0].size)]
    if not trigonometric & {f.trace.graph.op[i] for i in f.trace.live}:
        assert all(isinstance(m, Fraction) for m in fw.evaluate(f.trace, [q], arithmetic))


@pytest.mark.parametrize("function", ["forward_dynamics", "mass_matrix", "inverse_dynamics"])
def test_intervals_enclose_the_result(function: str) -> None:
    f = robot("panda").functions[function]
    args = arguments(f, robot("panda"))
    iv = mpmath.iv
    arithmetic = fw.Arithmetic(iv.mpf, iv.sqrt, iv.sin, iv.cos)
    before, iv.dps = iv.dps, 30
    try:
        enclosures = fw.evaluate(f.trace, [[iv.mpf([x - 1e-13, x + 1e-13]) for x in a] for a in args], arithmetic)
    finally:
        iv.dps = before
    with mpmath.workdps(30):
        precise = fw.Arithmetic(mpmath.mpf, mpmath.sqrt, mpmath.sin, mpmath.cos)
        exact = fw.evaluate(f.trace, [[mpmath.mpf(float(x)) for x in a] for a in args], precise)
        for enclosure, y in zip(enclosures, exact, strict=True):
            assert enclosure.a <= y <= enclosure.b
    for enclosure, y in zip(enclosures, flat(f(*args)), strict=True):
        width = float(enclosure.b) - float(enclosure.a)
        assert float(enclosure.a) - width - 1e-10 <= y <= float(enclosure.b) + width + 1e-10


@pytest.mark.parametrize(
    "inputs", [[], [[0.0] * 7], [[0.0] * 7, [0.0] * 6, [0.0] * 7], [[0.0] * 7] * 4, [[0.0] * 7, [0.0] * 8, [0.0] * 7]]
)
def test_inputs_of_other_lengths_are_refused(inputs: Sequence[Sequence[float]]) -> None:
    f = fw.build(fw.generators.random_tree(4, rng=1)).forward_dynamics
    with pytest.raises(ValueError, match=r"evaluate: the trace has inputs of lengths \(\d+, \d+, \d+\); got \(") as caught:
        fw.evaluate(f.trace, inputs)
    assert str(tuple(map(len, inputs))) in str(caught.value)


def test_what_depends_on_no_input_is_of_the_same_kind() -> None:
    made: list[Any] = []

    def own(x: float) -> Any:
        made.append(x)
        return mpmath.mpf(x)

    t = trace(lambda x: [2.5, x[0] * 3.0, 0.0 * x[0]], [1])
    results = fw.evaluate(t, [[mpmath.mpf(2)]], fw.Arithmetic(own, mpmath.sqrt, mpmath.sin, mpmath.cos))
    assert results == [2.5, 6, 0] and all(isinstance(y, mpmath.mpf) for y in results)
    assert sorted(made) == [0.0, 2.5, 3.0]
    assert {OPERATIONS[t.graph.op[i]].name for i in t.live} == {"input", "constant", "mul"}
