"""Tests of functions in CasADi: values, Jacobians, gradients and Hessians."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from typing import Any

import numpy as np
import pytest

pytest.importorskip("casadi")

import casadi

import featherweight as fw
from featherweight.bridges.casadi_functions import CalledBack
from featherweight.casadi import wrap
from featherweight.exporting.casadi_code import casadi_functions
from featherweight.exporting.export_targets import this_machine
from featherweight.exporting.shared_library import links_itself
from featherweight.model.generators import chain, random_tree

needs_own_linker = pytest.mark.skipif(not links_itself(this_machine()), reason="CasADi calls back into Python here")
RNG = np.random.default_rng(4)
ARM = fw.build(chain(3, rng=2))
TREE = fw.build(random_tree(3, rng=3, joint_types=("revolute", "spherical"), masses=(0.5, 3.0)))


def back(f: Any, name: str = "f") -> Any:
    return CalledBack(name, f, casadi_functions(name, f))


WAYS = [pytest.param(wrap, marks=needs_own_linker, id="machine code"), pytest.param(back, id="called back")]


def column(x: Any) -> Any:
    return np.array(x).reshape(-1, order="F")


@pytest.mark.parametrize("way", WAYS)
def test_values_and_jacobians_are_the_functions(way: Any) -> None:
    f = ARM.forward_dynamics
    wrapped = way(f)
    x = [RNG.standard_normal(3) for _ in range(3)]
    np.testing.assert_allclose(column(wrapped(*x)), f(*x), rtol=1e-12)
    assert wrapped.name_in() == ["q", "v", "tau"] and wrapped.name_out() == ["a"]
    blocks = wrapped.jacobian()(*x, 0)
    for block, expected in zip(blocks, f.derivative()(*x), strict=True):
        np.testing.assert_allclose(np.array(block), expected, rtol=0, atol=1e-11 * abs(expected).max())


@pytest.mark.parametrize("way", WAYS)
def test_zeros_of_jacobians_are_not_there(way: Any) -> None:
    """Check that structural zeros are absent: inertia does not depend on the first joint, and the last joint's is constant."""
    pattern = way(ARM.mass_matrix).jacobian().sparsity_out(0)
    expected = np.zeros((9, 3), bool)
    expected[:, 1:] = True
    expected[8] = False
    expected[[4, 5, 7], 1] = False  # of the last two joints only the last matters
    np.testing.assert_array_equal(np.array(casadi.DM(pattern, 1)) != 0, expected)


@pytest.mark.parametrize("way", WAYS)
def test_matrices_are_stored_by_columns_and_their_jacobians_follow(way: Any) -> None:
    f = ARM.frame_placement(ARM.frames[-1].name)
    wrapped = way(f)
    q = RNG.standard_normal(3)
    np.testing.assert_allclose(np.array(wrapped(q)), f(q), rtol=0, atol=1e-14)
    J = np.array(wrapped.jacobian()(q, 0))
    e = 1e-6
    numeric = [(column(f(q + d)) - column(f(q - d))) / (2 * e) for d in e * np.eye(3)]
    np.testing.assert_allclose(J, np.transpose(numeric), atol=1e-9)


@pytest.mark.parametrize("way", WAYS)
def test_derivatives_are_by_the_numbers_of_a_configuration(way: Any) -> None:
    """Check that derivatives by the components of a configuration are those of the code, also off the manifold; along a
    velocity they are those of the function.
    """
    f = TREE.gravity_force
    wrapped = way(f)
    q = TREE.random_configuration(rng=RNG)
    J = np.array(wrapped.jacobian()(q, 0))
    assert J.shape == (TREE.nv, TREE.nq)
    e = 1e-6
    numeric = np.transpose([(f(q + d) - f(q - d)) / (2 * e) for d in e * np.eye(TREE.nq)])
    np.testing.assert_allclose(J, numeric, rtol=0, atol=1e-8 * abs(J).max())
    v = RNG.standard_normal(TREE.nv)
    rate = (TREE.integrate(q, e * v) - TREE.integrate(q, -e * v)) / (2 * e)
    np.testing.assert_allclose(J @ rate, f.derivative()(q) @ v, rtol=0, atol=1e-8 * abs(J).max())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("length", [1.0, 1.05])
def test_jacobians_are_those_of_the_algorithm_that_gives_the_value(way: Any, length: float) -> None:
    """Check the algorithm: off the manifold, algorithms are different functions; here the Jacobian by another has fewer
    operations.
    """
    robot = fw.build(random_tree(3, rng=5, joint_types=("spherical", "revolute"), masses=(0.5, 2.0)))
    f = robot.forward_dynamics
    x = [robot.random_configuration(rng=0), *RNG.standard_normal((2, robot.nv))]
    x[0][next(j.q_slice for j in robot.joints if j.type.nq == 4)] *= length
    wrapped = way(f)
    J = np.array(wrapped.jacobian()(*x, 0)[0])
    e = 1e-6
    for name in f.candidates:
        numeric = [
            (f(x[0] + d, *x[1:], algorithm=name) - f(x[0] - d, *x[1:], algorithm=name)) / (2 * e) for d in e * np.eye(robot.nq)
        ]
        error = abs(J - np.transpose(numeric)).max() / abs(J).max()
        assert error < 1e-7 if name == f.algorithm else error > 1e-2


@needs_own_linker
def test_gradients_and_hessians_are_exact() -> None:
    f = wrap(ARM.forward_dynamics, "fd", hessian=True)
    weights = RNG.standard_normal(3)
    total = casadi.MX.sym("z", 9)
    value = casadi.dot(weights, f(total[:3], total[3:6], total[6:]))
    H, g = casadi.hessian(value, total)
    F = casadi.Function("F", [total], [H, g])
    at = RNG.standard_normal(9)
    hessian, gradient = (np.array(y) for y in F(at))
    D = np.hstack(ARM.forward_dynamics.derivative()(*np.split(at, 3)))
    np.testing.assert_allclose(gradient[:, 0], weights @ D, rtol=0, atol=1e-11 * abs(D).max())
    e = 1e-6
    numeric = [(np.array(F(at + d)[1]) - np.array(F(at - d)[1]))[:, 0] / (2 * e) for d in e * np.eye(9)]
    np.testing.assert_allclose(hessian, np.array(numeric), rtol=0, atol=1e-7 * abs(hessian).max())


def test_second_derivatives_that_are_called_back_say_what_to_do() -> None:
    f, tau = back(ARM.forward_dynamics, "fd_back"), casadi.MX.sym("tau", 3)
    with pytest.raises(RuntimeError, match=r"Set Ipopt's option .*limited-memory"):
        casadi.hessian(casadi.sumsqr(f(np.zeros(3), np.zeros(3), tau)), tau)


@needs_own_linker
def test_a_jacobian_that_takes_fewer_operations_is_used() -> None:
    f = wrap(ARM.forward_dynamics, "fd_own", jacobian=ARM.forward_dynamics_derivatives)
    x = [RNG.standard_normal(3) for _ in range(3)]
    for block, expected in zip(f.jacobian()(*x, 0), ARM.forward_dynamics.derivative()(*x), strict=True):
        np.testing.assert_allclose(np.array(block), expected, rtol=0, atol=1e-10 * abs(expected).max())
    with pytest.raises(ValueError, match="cannot be the Jacobian of forward_dynamics"):
        wrap(ARM.forward_dynamics, jacobian=ARM.mass_matrix.derivative())
    with pytest.raises(ValueError, match="cannot be the Jacobian of forward_dynamics"):
        wrap(TREE.forward_dynamics, jacobian=TREE.forward_dynamics_derivatives)


@needs_own_linker
def test_files_with_casadis_interface_are_read_by_casadi(tmp_path: Any) -> None:
    [path] = fw.export(ARM.inverse_dynamics, tmp_path, name="arm", interface="casadi", files="shared")
    f = casadi.external("inverse_dynamics", str(path))
    x = [RNG.standard_normal(3) for _ in range(3)]
    np.testing.assert_array_equal(column(f(*x)), ARM.inverse_dynamics(*x))
    mapped = f.map(4, "thread", 2)
    many = [RNG.standard_normal((3, 4)) for _ in range(3)]
    np.testing.assert_allclose(np.array(mapped(*many)), ARM.inverse_dynamics(*(m.T for m in many)).T, rtol=1e-12)
    assert f(x[0], x[1], 0).shape == (3, 1)  # scalars are broadcast


@needs_own_linker
def test_ipopt_finds_the_torques_that_hold_an_arm() -> None:
    f = wrap(ARM.forward_dynamics, "fd_hold", hessian=True)
    tau, q = casadi.MX.sym("tau", 3), RNG.standard_normal(3)
    problem = {"x": tau, "f": casadi.sumsqr(f(q, np.zeros(3), tau))}
    solver = casadi.nlpsol("s", "ipopt", problem, {"ipopt.print_level": 0, "print_time": False})
    np.testing.assert_allclose(column(solver(x0=0)["x"]), ARM.gravity_force(q), rtol=0, atol=1e-6)


@needs_own_linker
@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
@pytest.mark.parametrize("library", ["shared", "static"])
def test_code_that_casadi_generates_as_acados_has_it_links_with_the_files(library: str, tmp_path: Any) -> None:
    """Check 32-bit integers, another `casadi_int` than in the files, so that no such values may pass between the two.

    The functions are those of an explicit model, with its forward and reverse derivatives.
    """
    f = casadi.external("forward_dynamics", str(*fw.export(ARM.forward_dynamics, tmp_path, interface="casadi", files="shared")))
    x, u, seeds, weights = (
        casadi.MX.sym(name, *shape) for name, shape in (("x", (6,)), ("u", (3,)), ("S", (6, 2)), ("w", (6,)))
    )
    rate = casadi.vertcat(x[3:], f(x[:3], x[3:], u))
    backward = casadi.jtimes(rate, casadi.vertcat(x, u), weights, True)
    model = casadi.Function("model", [x, u, seeds, weights], [rate, casadi.jtimes(rate, x, seeds), casadi.densify(backward)])
    code = casadi.CodeGenerator("model.c", {"casadi_int": "int", "casadi_real": "double"})
    code.add(model)
    code.generate(f"{tmp_path}/")
    [file] = fw.export(ARM.forward_dynamics, tmp_path, name="arm", interface="casadi", files=library)
    command = [
        "gcc",
        "-O1",
        "-Wall",
        "-Werror",
        "-Wno-unused-function",
        "-shared",
        "-fPIC",
        "model.c",
        file.name,
        "-o",
        "model.so",
    ]
    subprocess.run([*command, f"-Wl,-rpath,{tmp_path}"], cwd=tmp_path, check=True)
    made = ctypes.CDLL(str(tmp_path / "model.so"))
    sizes = [ctypes.c_int() for _ in range(4)]
    assert made.model_work(*map(ctypes.byref, sizes)) == 0
    given = [RNG.standard_normal(n) for n in (6, 3, 12, 6)]
    results = [np.zeros(n) for n in (6, 12, 9)]
    arg, res = ((ctypes.c_void_p * sizes[k].value)(*(y.ctypes.data for y in own)) for k, own in enumerate((given, results)))
    iw, w = (ctypes.c_int * (sizes[2].value + 1))(), np.zeros(sizes[3].value + 1)
    guard = w[-1:].copy()
    assert made.model(arg, res, iw, ctypes.c_void_p(w.ctypes.data), 0) == 0
    np.testing.assert_array_equal(w[-1:], guard)
    for value, expected in zip(results, model(given[0], given[1], given[2].reshape(2, 6).T, given[3]), strict=True):
        np.testing.assert_allclose(value, column(expected), rtol=0, atol=1e-12 * abs(column(expected)).max())


@needs_own_linker
def test_files_have_what_casadi_asks_of_an_external_function(tmp_path: Any) -> None:
    """Check 64-bit integers, CasADi's `casadi_int`: numbers of arguments and results, names, patterns, and sizes of work
    arrays.
    """
    [path] = fw.export(ARM.mass_matrix, tmp_path, name="arm", interface="casadi", files="shared")
    library, known = ctypes.CDLL(str(path)), casadi.external("mass_matrix", str(path))
    for name, f in (("mass_matrix", known), ("jac_mass_matrix", known.jacobian())):
        counts = (f.n_in(), f.n_out())
        for way, count in zip(("in", "out"), counts, strict=True):
            number, text, pattern = (getattr(library, f"{name}_{what}_{way}") for what in ("n", "name", "sparsity"))
            number.restype, text.restype, pattern.restype = ctypes.c_int64, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int64)
            assert number() == count
            for k in range(count):
                assert text(ctypes.c_int64(k)).decode() == getattr(f, f"name_{way}")(k)
                s = getattr(f, f"sparsity_{way}")(k)
                expected = [*s.shape, *s.colind(), *s.row()]
                assert pattern(ctypes.c_int64(k))[: len(expected)] == expected
            assert text(ctypes.c_int64(count)) is None and not pattern(ctypes.c_int64(-1))
        sizes = [ctypes.c_int64() for _ in range(4)]
        assert getattr(library, f"{name}_work")(*map(ctypes.byref, sizes)) == 0
        assert sizes[0].value >= counts[0] and sizes[1].value >= counts[1] and sizes[3].value > 0
        assert getattr(library, f"{name}_work")(None, None, None, None) == 0


def test_what_is_no_function_is_named() -> None:
    with pytest.raises(TypeError, match=r"function must be a compiled function of a robot, such as .*; got <bound method"):
        wrap(ARM.frame_placement)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"jacobian must be a compiled function of a robot, such as .*; got 1"):
        wrap(ARM.forward_dynamics, jacobian=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'a__b' is not a valid name in CasADi"):
        wrap(ARM.forward_dynamics, "a__b")


@needs_own_linker
def test_jacobians_of_processors_without_vectors_are_those_in_lanes(tmp_path: Any) -> None:
    """Check that derivatives of all directions in vectors and number by number have the same patterns, in the same order."""
    f = TREE.forward_dynamics
    assert casadi_functions("f", f)[1].routine.in_lanes(2) is not None
    x = [TREE.random_configuration(rng=RNG), *RNG.standard_normal((2, TREE.nv))]
    blocks = []
    for name, target in (
        ("wide", this_machine()._replace(vector_bytes=16)),
        ("single", this_machine()._replace(vector_bytes=0)),
    ):
        [path] = fw.export({name: f}, tmp_path, name=f"lib_{name}", interface="casadi", files="shared", target=target)
        jacobian = casadi.external(name, str(path)).jacobian()
        given = jacobian.mx_in()
        some = casadi.Function("some", given, [jacobian(*given)[2]])  # the others are not requested
        blocks.append([*jacobian(*x, 0), some(*x, 0)])
    for a, b in zip(*blocks, strict=True):
        assert a.sparsity() == b.sparsity()
        np.testing.assert_allclose(np.array(a), np.array(b), rtol=0, atol=1e-12 * abs(np.array(b)).max())
