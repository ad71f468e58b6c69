"""Tests of functions with several results, of optional arguments, and of several functions as one."""

from __future__ import annotations

import functools
import itertools
import os
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.engine.execution import cost
from featherweight.engine.function import CompiledFunction
from featherweight.engine.fusion import together
from featherweight.engine.graph import Graph
from featherweight.engine.operations import Operations
from featherweight.engine.program import FusedProgram, Input, KernelProgram, Output
from featherweight.engine.trace import live_nodes

EXECUTIONS = ("traced", "interpreted", "rolled")


@pytest.fixture(params=EXECUTIONS)
def execution(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def products(x: Any, s: Any, A: Any, results: Any) -> None:
    total, _, B, T = results
    t = 0.0
    for i in range(3):
        t = t + x[i] * s
    total[0] = t
    for i in range(2):
        for j in range(3):
            B[i][j] = A[i][j] * x[j]
            for k in range(2):
                T[i][j][k] = A[i][j] * A[k][j]


RANKS = KernelProgram(
    "products", products, (), (Input("x", (3,)), Input("s", ()), Input("A", (2, 3))),
    (Output("total", ()), Output("empty", (0,)), Output("B", (2, 3)), Output("T", (2, 3, 2))),
)  # fmt: skip
WITHOUT_EMPTY = (Output("total", ()), Output("B", (2, 3)), Output("T", (2, 3, 2)))


def without_empty(x: Any, s: Any, A: Any, results: Any) -> None:
    total, B, T = results
    total[0] = x[0] * s + x[1] * s + x[2] * s
    for i in range(2):
        for j in range(3):
            B[i][j] = A[i][j] * x[j]
            for k in range(2):
                T[i][j][k] = A[i][j] * A[k][j]


FULL = KernelProgram("full", without_empty, (), RANKS.arguments, WITHOUT_EMPTY)


def values(batch: tuple[int, ...], dtype: Any = np.float64) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(batch + a.shape).astype(dtype) for a in RANKS.arguments]


def expected(x: Any, s: Any, A: Any) -> list[Any]:
    return [
        x.sum(-1) * s, np.zeros((*x.shape[:-1], 0)), A * x[..., None, :], np.einsum("...ij,...kj->...ijk", A, A)
    ]  # fmt: skip


@pytest.mark.parametrize("batch", [(), (0,), (1,), (7,), (40,), (2, 3), (0, 4)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_results_of_all_ranks_and_of_no_elements(execution: str, batch: tuple[int, ...], dtype: Any) -> None:
    tolerance = 4 * np.finfo(dtype).eps * 10  # three sums of numbers below ten
    args = values(batch, dtype)
    for program in (RANKS, FULL):
        f: CompiledFunction[Any] = CompiledFunction(program, execution)
        wanted = dict(zip(("total", "empty", "B", "T"), expected(*args), strict=True))
        for threads in (None, 1, 3):
            results = f(*args, threads=threads)
            assert results._fields == tuple(r.name for r in program.outputs)
            for name, result in zip(results._fields, results, strict=True):
                assert np.shape(result) == batch + wanted[name].shape[len(batch) :] and np.asarray(result).dtype == dtype
                np.testing.assert_allclose(result, wanted[name], rtol=0, atol=tolerance)
        given = tuple(np.full_like(np.asarray(r), -1.0) for r in results)
        assert all(a is b for a, b in zip(f(*args, out=given), given, strict=True))
        for a, b in zip(given, results, strict=True):
            np.testing.assert_array_equal(a, b)


def test_executions_agree_on_their_signature_and_counts() -> None:
    for program in (RANKS, FULL):
        f = [CompiledFunction(program, execution) for execution in ("traced", "interpreted", "rolled")]
        assert len({g.signature for g in f}) == 1
        assert len({g.operations for g in f}) == 1
        # x2 + x1 + x0 after three products by s, six of A x, and A A: six squares and three mixed products
        assert f[0].operations == Operations(mul=3 + 6 + 9, add=2, div=0, sqrt=0, trig=0)


def push(x: Any, w: Any, u: Any, out: Any) -> None:
    for i in range(3):
        out[i] = x[i] * x[i] + w[i] * 3.0 - u[i] * x[i]


def push_without(x: Any, out: Any) -> None:
    for i in range(3):
        out[i] = x[i] * x[i] + 0.0 * 3.0 - 0.0 * x[i]


LEFT_OUT = (Input("w", (3,), optional=True), Input("u", (3,), optional=True))
PUSH = KernelProgram("push", push, (), (Input("x", (3,)), *LEFT_OUT), (Output("out", (3,)),))


def test_what_is_left_out_is_zero(execution: str) -> None:
    f = CompiledFunction(PUSH, execution)
    assert f.signature == "(3)->(3)" and f.program.options == ("w", "u")
    assert (
        f.operations == CompiledFunction(KernelProgram("push", push_without, (), PUSH.arguments[:1], PUSH.results)).operations
    )
    assert f.operations == Operations(3, 0, 0, 0, 0)
    rng = np.random.default_rng(0)
    for batch in ((), (5,), (0,)):
        x, w, u = rng.standard_normal((3, *batch, 3))
        for named in ({}, {"w": w}, {"u": u}, {"u": u, "w": w}):
            wanted = x * x + named.get("w", 0.0 * x) * 3.0 - named.get("u", 0.0 * x) * x
            np.testing.assert_allclose(f(x, **named), wanted, rtol=0, atol=1e-14)
            np.testing.assert_allclose(f(x=x, **named, threads=2), wanted, rtol=0, atol=1e-14)
            out = np.empty_like(x)
            assert f(x, **named, out=out) is out
            np.testing.assert_allclose(out, wanted, rtol=0, atol=1e-14)
        np.testing.assert_array_equal(f(x), f(x, w=None, u=np.zeros(3)))
    assert f.variant("w").operations == Operations(6, 3, 0, 0, 0)
    assert f.variant("w").variant("u").operations == f.variant("u").variant("w").operations == Operations(9, 6, 0, 0, 0)
    with pytest.raises(TypeError, match="no argument 'y'"):
        f.variant("y")


@pytest.mark.parametrize("optional", [(True, False), (True, True)])
def test_what_may_be_left_out_comes_last(optional: tuple[bool, bool]) -> None:
    arguments = tuple(Input(name, (3,), o) for name, o in zip("xw", optional, strict=True))
    with pytest.raises(ValueError, match="push: at least one required argument"):
        KernelProgram("push", push, (), arguments, PUSH.results)


# several functions as one


@functools.cache
def tree(execution: str = "traced", n: int = 3) -> fw.Robot:
    return fw.build(fw.generators.random_tree(n, rng=3), execution=execution)


def state(robot: Any, batch: tuple[int, ...] = (), dtype: Any = np.float64) -> dict[str, Any]:
    rng = np.random.default_rng(4)
    q = robot.random_configuration(rng=rng, size=batch) if batch else robot.random_configuration(rng=rng)
    more = {name: rng.standard_normal((*batch, robot.nv)) for name in ("v", "a", "tau")}
    return {name: np.asarray(x, dtype) for name, x in ({"q": q} | more).items()}


def given(function: CompiledFunction[Any], values: dict[str, Any]) -> dict[str, Any]:
    return {a.name: values[a.name] for a in function.program.inputs}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("batch", [(), (1,), (11,), (2, 3), (0,)])
def test_one_function_gives_what_each_gives(execution: str, batch: tuple[int, ...], dtype: Any) -> None:
    robot = tree(execution)
    every_name = (
        n for n, f in robot.functions.items() if f.nout == 1 and {a.name for a in f.program.inputs} <= {*"qva", "tau"}
    )
    names = tuple(every_name)
    every = tuple(robot.functions[name] for name in names)
    whole = robot.together(*every)
    values = state(robot, batch, dtype)
    assert [a.name for a in whole.program.inputs] == ["q", "v", "a", "tau"]
    results = whole(**given(whole, values))
    assert results._fields == names
    scale = 1e4 * np.finfo(dtype).eps  # the same operations, with sums fused in another order
    for f, result in zip(every, results, strict=True):
        alone = f(**given(f, values))
        assert np.shape(result) == np.shape(alone) and np.asarray(result).dtype == np.asarray(alone).dtype
        if np.size(alone):
            np.testing.assert_allclose(result, alone, rtol=0, atol=scale * max(1.0, np.abs(alone).max()))
    for more in ({"threads": 2}, {"out": tuple(np.zeros_like(np.asarray(r)) for r in results)}):
        for a, b in zip(whole(*given(whole, values).values(), **more), results, strict=True):
            np.testing.assert_array_equal(a, b)


def test_fields_are_numbered_or_named() -> None:
    robot = tree()
    M, h = robot.mass_matrix, robot.bias_force
    pair = robot.together(M, h)
    for arguments, named, fields in (
        ((M, M, M), {}, ("mass_matrix", "mass_matrix_2", "mass_matrix_3")),
        ((M,), {"H": M}, ("mass_matrix", "H")),
        ((M, h), {"mass_matrix": h}, ("mass_matrix_2", "bias_force", "mass_matrix")),
        ((pair, pair), {}, ("mass_matrix", "bias_force", "mass_matrix_2", "bias_force_2")),
        ((pair,), {"old": pair}, ("mass_matrix", "bias_force", "old_mass_matrix", "old_bias_force")),
        ((M,), {"mass_matrix_2": h, "count": M}, ("mass_matrix", "mass_matrix_2", "count")),
    ):
        f = robot.together(*arguments, **named)
        values = state(robot)
        results = f(**given(f, values))
        assert results._fields == fields
        for field, result in zip(fields, results, strict=True):
            of_force = "force" in field or (field in named and named[field] is h)
            np.testing.assert_allclose(result, (h if of_force else M)(**given(h if of_force else M, values)), atol=1e-12)
    assert robot.together(M)(state(robot)["q"]).shape == (robot.nv, robot.nv)


def test_what_cannot_be_one_function_is_refused() -> None:
    robot, other = tree(), tree(n=6)
    with pytest.raises(ValueError, match=f"bias_force is a function of another robot than '{robot.name}'"):
        robot.together(robot.mass_matrix, other.bias_force)
    with pytest.raises(ValueError, match="at least"):
        robot.together()
    with pytest.raises(TypeError, match=r"together takes functions.*int"):
        together((3,), {})  # type: ignore[arg-type]
    unlike = KernelProgram("push", push, (), (Input("x", (3,)),), PUSH.results)
    longer = KernelProgram("longer", push, (), (Input("x", (4,)),), PUSH.results)
    with pytest.raises(ValueError, match=r"longer takes x of shape \(4,\).*\(3,\)"):
        FusedProgram("both", (unlike, longer), (("a",), ("b",)))
    robot = tree(n=1)
    many = robot.together(*[robot.mass_matrix] * 64)
    q = state(robot)["q"]
    assert len(many(q)) == 64
    with pytest.raises(ValueError, match="together has 65 arguments and results; NumPy supports at most 64"):
        many(q[None])
    most = robot.together(*[robot.mass_matrix] * 63)
    np.testing.assert_array_equal(most(q[None])[62], robot.mass_matrix(q[None]))


@pytest.mark.parametrize("way", ["traced", "interpreted"])
def test_options_of_parts_are_options_of_the_whole(way: str) -> None:
    robot = tree(way)
    values = state(robot)
    forces = np.random.default_rng(0).standard_normal((len(robot.bodies), 6))
    f = robot.together(robot.inverse_dynamics, robot.forward_dynamics, robot.mass_matrix)
    order = [values[name] for name in ("q", "v", "a", "tau")]
    for results in (f(*order, external_forces=forces), f(**values, external_forces=forces)):
        for result, part in zip(results, (robot.inverse_dynamics, robot.forward_dynamics), strict=False):
            alone = part(**given(part, values), external_forces=forces)
            np.testing.assert_allclose(result, alone, rtol=0, atol=1e-9 * np.abs(alone).max())  # as in the test above
    assert f.variant("external_forces").signature.count("(") == f.signature.count("(") + 1
    plain = f(*order)
    for a, b in zip(f(*order, external_forces=0.0 * forces), plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-9 * np.abs(b).max())


def union(choice: tuple[CompiledFunction[Any], ...]) -> Operations:
    """Return the number of operations of the functions together, counted in a separate graph."""
    g = Graph()
    nodes: set[int] = set()
    names = list(dict.fromkeys(a.name for f in choice for a in f.program.inputs))
    for f in choice:
        arguments = [[g.input(names.index(a.name), i) for i in range(a.size)] for a in f.program.inputs]
        nodes |= {x.node for x in f.program.flat(*arguments) if not isinstance(x, float)}
    return Operations.of([g.op[i] for i in live_nodes(g, nodes)])


@pytest.mark.parametrize("n", [2, 4, 8])
def test_the_choice_of_algorithms_is_the_least_of_all(n: int) -> None:
    robot = tree(n=n)
    for functions in (
        (robot.forward_dynamics, robot.mass_matrix, robot.bias_force),
        (robot.forward_dynamics, robot.inverse_mass_matrix),
        (robot.inverse_mass_matrix, robot.mass_matrix),
        (robot.forward_dynamics, robot.inverse_mass_matrix, robot.mass_matrix, robot.inverse_dynamics),
    ):
        whole = robot.together(*functions)
        costs = {choice: union(choice) for choice in itertools.product(*(f.alternatives.values() for f in functions))}
        assert cost(whole.operations) == min(map(cost, costs.values()))
        assert whole.operations in costs.values()
        alone = sum(map(cost, whole.parts.values()))
        assert cost(whole.operations) < alone
        assert len(whole.parts) == len(functions)
        assert cost(whole.operations) <= cost(union(functions))


def test_the_choice_for_the_whole_may_differ_from_that_of_each() -> None:
    """Check forward dynamics, which needs only a factorization if mass matrix and bias force are available."""
    robot = fw.build(fw.generators.chain(10))
    assert robot.forward_dynamics.algorithm == "aba"
    functions = (robot.forward_dynamics, robot.mass_matrix, robot.bias_force)
    whole = robot.together(*functions)
    assert "forward_dynamics" in whole.parts
    assert cost(whole.operations) < cost(union(functions))
    other = robot.forward_dynamics.alternatives["crba-ltdl"]
    assert whole.operations == union((other, *functions[1:]))
    assert whole.parts["forward_dynamics"] == robot.forward_dynamics.operations != other.operations


def test_pickles_of_functions_that_are_one() -> None:
    robot = tree()
    f = robot.together(robot.forward_dynamics, M=robot.mass_matrix)
    values = state(robot, (3,))
    wanted = f(**given(f, values))
    again = pickle.loads(pickle.dumps(f))
    assert (again.operations, again.parts, again.signature) == (f.operations, f.parts, f.signature)
    for results in (again(**given(f, values)), pickle.loads(pickle.dumps(wanted))):
        assert results._fields == ("forward_dynamics", "M")
        for a, b in zip(results, wanted, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_second_process_compiles_nothing(tmp_path: Any) -> None:
    code = (
        "import numpy as np, featherweight as fw\n"
        "from featherweight.engine.backends.llvm import backend\n"
        "compiled, emit = [], backend.compile_object\n"
        "backend.compile_object = lambda ir: compiled.append(1) or emit(ir)\n"
        "robot = fw.build(fw.generators.random_tree(4, rng=3))\n"
        "f = robot.together(robot.forward_dynamics, robot.mass_matrix)\n"
        "q, v = robot.neutral(), np.zeros(robot.nv)\n"
        "f(q, v, v), f(q[None], v, v), f(q, v, v, external_forces=np.zeros((len(robot.bodies), 6))), f.operations, f.parts\n"
        "print(len(compiled))"
    )
    environment = os.environ | {"FEATHERWEIGHT_CACHE": str(tmp_path)}
    runs = [
        subprocess.run([sys.executable, "-c", code], env=environment | {"PYTHONHASHSEED": seed}, capture_output=True, text=True)
        for seed in ("1", "2")
    ]
    assert [r.stderr for r in runs] == ["", ""]
    assert int(runs[0].stdout) >= 3 and runs[1].stdout.strip() == "0"


def test_closed_robots_do_it_too() -> None:
    robot = fw.build(fw.robots.four_bar())
    functions = tuple(robot.functions[name] for name in ("mass_matrix", "bias_force", "forward_dynamics"))
    f = robot.together(*functions)
    values = state(robot, (5,))
    results = f(**given(f, values))
    for part, result in zip(functions, results, strict=True):
        alone = part(**given(part, values))
        np.testing.assert_allclose(result, alone, rtol=0, atol=1e-9 * np.abs(alone).max())
    assert cost(f.operations) < sum(map(cost, f.parts.values()))
