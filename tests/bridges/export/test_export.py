"""Tests that exported C code computes the results of the functions in Python."""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import featherweight as fw
from bridges.export.c_programs import STRICT, TRIGONOMETRY, one_by_one, program, quaternion_robot, run_in_c, states
from featherweight.engine.program import Input, KernelProgram, Output
from featherweight.exporting import c_source
from featherweight.exporting.elf import Elf
from featherweight.exporting.export_targets import TARGETS, ExportTarget
from featherweight.exporting.shared_library import link

COMPILERS = [c for c in ("gcc", "clang") if shutil.which(c)]
needs_compiler = pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")


@pytest.fixture(scope="module")
def robot() -> fw.Robot:
    return quaternion_robot()


@pytest.fixture(scope="module")
def functions(robot: fw.Robot) -> dict[str, Any]:
    """Return functions: one, one with zeros and several results, one with vectors, and one with unused inputs."""
    return {
        "forward_dynamics": robot.forward_dynamics,
        "slopes": robot.inverse_dynamics.derivative("q", "a"),
        "torques_back": robot.inverse_dynamics.pullback,
    }


@needs_compiler
@pytest.mark.parametrize("precision", ["double", "float"])
def test_objects_give_the_bits_of_the_functions_and_source_agrees(
    precision: str, robot: fw.Robot, functions: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(c_source, "PART", 50)  # so that values pass between functions
    dtype = np.float64 if precision == "double" else np.float32
    chosen = functions if precision == "double" else {"forward_dynamics": functions["forward_dynamics"]}
    fw.export(chosen, tmp_path, name="tree", robot=robot, precision=precision, files=("source", "static", "object"))
    for compiler in COMPILERS:
        subprocess.run([compiler, *STRICT, "-c", "tree.c"], cwd=tmp_path, check=True)
        for name, f in chosen.items():
            (tmp_path / "main.c").write_text(program(f, name, "tree.h", precision))
            given = states(f, robot, dtype)
            expected = one_by_one(f, given)
            for linked, exact in (([f"{name}.o"], True), (["libtree.a"], True), (["tree.o", "-lm"], False)):
                subprocess.run([compiler, *STRICT, "main.c", *linked, "-o", "main"], cwd=tmp_path, check=True)
                for a, b in zip(run_in_c([str(tmp_path / "main")], f, given, dtype), expected, strict=True):
                    if exact:
                        np.testing.assert_array_equal(a, b)
                    else:  # condition number of the mass matrix times roundoff
                        np.testing.assert_allclose(a, b, rtol=0, atol=(1e-11 if precision == "double" else 1e-2) * abs(b).max())


@needs_compiler
@pytest.mark.parametrize("precision", ["double", "float"])
def test_sines_of_the_source_are_those_of_the_c_library(precision: str, tmp_path: Path) -> None:
    dtype: Any = np.float64 if precision == "double" else np.float32
    paths = fw.export(TRIGONOMETRY, tmp_path, files=("source",), precision=precision)
    assert [p.name for p in paths] == ["featherweight.h", "featherweight.c"]
    (tmp_path / "main.c").write_text(program(TRIGONOMETRY, "trigonometry", "featherweight.h", precision))
    top = 1e300 if precision == "double" else 1e38
    angles = [0.0, 1e-30, 0.7, -2.0, 1e5, -1.1e5, 3.2e9, -6381956970095103.0, 1e22, -top, math.pi, 1e5 + 1]
    x = np.zeros((len(angles) + 2, 3), dtype)
    x[: len(angles), 0] = angles
    x[:, 1] = 0.25
    x[-2, 0], x[-1, 0] = np.inf, np.nan
    for compiler in COMPILERS:
        subprocess.run([compiler, *STRICT, "main.c", "featherweight.c", "-lm", "-o", "main"], cwd=tmp_path, check=True)
        [got] = run_in_c([str(tmp_path / "main")], TRIGONOMETRY, [x], dtype)
        assert np.isnan(got[-2:, :2]).all()
        mpmath.mp.prec = 1200
        for row, out in zip(x[:-2], got[:-2], strict=True):
            a, b = mpmath.mpf(float(row[0])), mpmath.mpf(float(row[1]))
            product = mpmath.mpf(float(dtype(row[0]) * dtype(row[1])))
            one = [
                mpmath.sin(a),
                mpmath.cos(a),
                mpmath.sin(b + 1) - mpmath.cos(b + 1),
                mpmath.sin(product),
                mpmath.cos(product),
            ]
            np.testing.assert_allclose(out[:5], np.array(one, float), rtol=0, atol=2.5 * np.finfo(dtype).eps)
            np.testing.assert_array_equal(out[5:8], [row[1], -row[0], 2.5])
        np.testing.assert_allclose(got[:8, 8], np.hypot(x[:8, 0], x[:8, 1]), rtol=4 * np.finfo(dtype).eps)


@needs_compiler
def test_the_cmake_project_is_one_that_others_add(tmp_path: Path, robot: fw.Robot) -> None:
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("needs cmake")
    for kind in ("source", "static"):
        folder = tmp_path / kind
        fw.export(robot.mass_matrix, folder / "robot", name="tree", files=(kind, "cmake"))
        (folder / "main.c").write_text(program(robot.mass_matrix, "mass_matrix", "tree.h", "double"))
        text = "cmake_minimum_required(VERSION 3.13)\nproject(p C)\nadd_subdirectory(robot)\nadd_executable(main main.c)\n"
        (folder / "CMakeLists.txt").write_text(text + "target_link_libraries(main tree)\n")
        subprocess.run([cmake, "-S", folder, "-B", folder / "build"], check=True, capture_output=True)
        subprocess.run([cmake, "--build", folder / "build"], check=True, capture_output=True)
        q = robot.random_configuration(rng=2, size=3)
        [M] = run_in_c([str(folder / "build" / "main")], robot.mass_matrix, [q], np.float64)
        np.testing.assert_allclose(M, robot.mass_matrix(q), rtol=0, atol=1e-12 * abs(M).max())


def test_shared_libraries_are_made_without_a_linker(
    tmp_path: Path, robot: fw.Robot, functions: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.uname().sysname != "Linux" or os.uname().machine not in ("x86_64", "aarch64"):
        pytest.skip("our linker writes for Linux on x86-64 and AArch64")
    monkeypatch.setenv("PATH", "")
    paths = fw.export(functions, tmp_path, name="tree", files="shared", prefix="my_")
    assert [p.name for p in paths] == ["tree.h", "libtree.so"]
    library = ctypes.CDLL(str(paths[1]))
    for name, f in functions.items():
        given = states(f, robot, np.float64)
        expected = one_by_one(f, given)
        workspace = np.empty(library[f"my_{name}_workspace_bytes"](), np.uint8)
        for k in range(2):
            outs = [np.empty(y.shape) for y in f.program.outputs]
            arrays = [*(x[k] for x in given), *outs]
            pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
            assert library[f"my_{name}"](*pointers, ctypes.c_void_p(workspace.ctypes.data)) == 0
            assert library[f"my_{name}"](*pointers, None) == (1 if len(workspace) else 0)
            for a, b in zip(outs, expected, strict=True):
                np.testing.assert_array_equal(a, b[k])
    defined = Elf(paths[1].read_bytes()).defined
    assert sorted(defined) == sorted(f"my_{n}{end}" for n in functions for end in ("", "_workspace_bytes"))


def test_our_linker_refuses_what_it_cannot_link(tmp_path: Path, robot: fw.Robot) -> None:
    fw.export(robot.gravity_force, tmp_path, target="riscv64", files="object")
    data = (tmp_path / "gravity_force.o").read_bytes()
    with pytest.raises(ValueError, match="x86-64 and AArch64; these objects are for RISC-V"):
        link([data], "lib.so")
    with pytest.raises(ValueError, match="not a little-endian ELF file"):
        link([b"\0asm"], "lib.so")


@pytest.mark.parametrize("target", ["riscv64", "cortex-a7"])
def test_other_shared_libraries_are_the_systems_linkers_business(
    target: str, tmp_path: Path, robot: fw.Robot, monkeypatch: pytest.MonkeyPatch
) -> None:
    linker = "ld.lld"
    if shutil.which(linker):
        paths = fw.export(robot.gravity_force, tmp_path, name="tree", target=target, files="shared")
        assert "gravity_force" in Elf(paths[1].read_bytes()).defined
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ValueError, match=f"none of .*{linker}.* is installed; install one, or export a static library"):
        fw.export(robot.gravity_force, tmp_path, target=target, files="shared")


def test_threads_call_a_function_at_once_each_with_its_workspace(tmp_path: Path, robot: fw.Robot) -> None:
    """Check calls on several threads; the workspace is the only memory between a call's parts, and begins at any address."""
    if os.uname().sysname != "Linux" or os.uname().machine not in ("x86_64", "aarch64"):
        pytest.skip("our linker writes for Linux on x86-64 and AArch64")
    f = robot.forward_dynamics
    library = ctypes.CDLL(str(fw.export(f, tmp_path, name="tree", files="shared")[1]))
    size = library.forward_dynamics_workspace_bytes()
    given = states(f, robot, np.float64)
    expected = f(*given)

    def worker(k: int) -> Any:
        workspace, out = np.empty(size + 8, np.uint8), np.empty((300, robot.nv))
        arrays = [x[k] for x in given]
        for row in out:
            pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*arrays, row)]
            library.forward_dynamics(*pointers, ctypes.c_void_p(workspace.ctypes.data + k))
        return out

    with ThreadPoolExecutor(6) as pool:
        for k, out in enumerate(pool.map(worker, range(6))):
            np.testing.assert_array_equal(out, np.broadcast_to(out[0], out.shape))
            np.testing.assert_allclose(out[0], expected[k], rtol=0, atol=1e-11 * abs(expected[k]).max())


@needs_compiler
def test_functions_of_robots_with_loops_are_exported_as_others(tmp_path: Path) -> None:
    bar = fw.build(fw.robots.four_bar())
    f = bar.forward_dynamics
    fw.export(f, tmp_path, name="bar", robot=bar, files=("static", "source"))
    (tmp_path / "main.c").write_text(program(f, f.name, "bar.h", "double"))
    given = [
        bar.random_configuration(rng=np.random.default_rng(3), size=4),
        *np.random.default_rng(4).standard_normal((2, 4, bar.nv)),
    ]
    [expected] = one_by_one(f, given)
    for linked, exact in (("libbar.a", True), ("bar.c", False)):
        subprocess.run([COMPILERS[0], *STRICT, "main.c", linked, "-lm", "-o", "main"], cwd=tmp_path, check=True)
        [got] = run_in_c([str(tmp_path / "main")], f, given, np.float64)
        np.testing.assert_allclose(got, expected, rtol=0, atol=0 if exact else 1e-11 * abs(expected).max())


def test_functions_without_numbers_are_refused(tmp_path: Path) -> None:
    nothing = KernelProgram("nothing", lambda x, y: None, (), (Input("x", (1,)),), (Output("y", (0, 3)),))
    with pytest.raises(ValueError, match="nothing has y without elements, but C has no empty arrays"):
        fw.export(fw.CompiledFunction(nothing, "traced"), tmp_path, files="source")


MACHINES = {"x86_64": "x86-64", "aarch64": "AArch64", "arm": "Arm", "thumb": "Arm", "riscv64": "RISC-V"}


@pytest.mark.parametrize("target", TARGETS)
def test_code_for_each_target_needs_nothing_from_elsewhere(target: str, tmp_path: Path, robot: fw.Robot) -> None:
    precision = TARGETS[target].precisions[-1]
    fw.export({"f": TRIGONOMETRY, "g": robot.bias_force}, tmp_path, files=("object",), target=target, precision=precision)
    for name in ("f", "g"):
        data = (tmp_path / f"{name}.o").read_bytes()
        elf = Elf(data)
        assert elf.machine == next(m for start, m in MACHINES.items() if TARGETS[target].triple.startswith(start))
        assert elf.undefined == []
        assert elf.defined == [name, f"{name}_workspace_bytes"]
        assert not any(s.flags & 1 and s.flags & 2 and s.size for s in elf.sections)  # no writable data
    if target == "riscv64":
        assert elf.flags & 6 == 4  # doubles are passed in floating-point registers


def test_code_that_would_call_a_library_is_refused(tmp_path: Path, robot: fw.Robot) -> None:
    soft = ExportTarget("soft", "thumbv7m-none-eabi", "cortex-m3")
    with pytest.raises(RuntimeError, match=r"gravity_force: code for soft .* would call __aeabi_dadd, .* fma"):
        fw.export(robot.gravity_force, tmp_path, target=soft, files=("object",))


def test_bad_arguments_are_named(tmp_path: Path, robot: fw.Robot) -> None:
    f = robot.gravity_force
    functions: Any
    options: dict[str, Any]
    for error, text, functions, options in (
        (ValueError, "at least one function", [], {}),
        (TypeError, "functions must be compiled functions, such as robot.forward_dynamics; got int", [3], {}),
        (ValueError, "two functions are called 'gravity_force'", [f, f], {}),
        (ValueError, "'a b' cannot be a name in C", {"a b": f}, {}),
        (ValueError, "'int' is taken in C or C", {"int": f}, {}),
        (ValueError, "'1x' cannot be a name in C: give the library another name", f, {"name": "1x"}),
        (ValueError, "the library and a function are both called", f, {"name": "gravity_force"}),
        (ValueError, "files are source, object, .* got 'dll'", f, {"files": ("dll",)}),
        (ValueError, "files must name at least one kind", f, {"files": ()}),
        (ValueError, "target must be host, x86-64-v2, .* got 'pi'", f, {"target": "pi"}),
        (ValueError, "precision must be double or float", f, {"precision": "half"}),
        (ValueError, "cortex-m4 has no instructions for double", f, {"target": "cortex-m4"}),
        (ValueError, "LLVM has no code for 'z81-linux'", f, {"target": ExportTarget("mine", "z81-linux")}),
        (ValueError, "cortex-m7 has no shared libraries", f, {"target": "cortex-m7", "files": "shared"}),
        (ValueError, "interface must be c or casadi", f, {"interface": "julia"}),
        (ValueError, "CasADi needs objects or libraries", f, {"interface": "casadi", "precision": "float", "files": "shared"}),
    ):
        with pytest.raises(error, match=text):
            fw.export(functions, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_the_header_tells_of_joints_and_units(tmp_path: Path, robot: fw.Robot) -> None:
    [header, source] = fw.export(robot.gravity_force, tmp_path, robot=robot, files="source")
    assert header.name == f"{robot.name}.h" and source.name == f"{robot.name}.c"
    text = header.read_text()
    assert f"Robot: {robot.name}, {robot.mass:.6g} kg" in text
    for joint in robot.joints:
        [line] = [x for x in text.splitlines() if x.startswith(f" *     {joint.name} ")]
        assert joint.type.value in line and f"[{joint.q_slice.start}" in line
    assert "#define GRAVITY_FORCE_Q_SIZE" in text and "quaternion x y z w" in text
    assert text.isascii()


def test_the_same_functions_give_the_same_files(tmp_path: Path, robot: fw.Robot) -> None:
    kinds = ("source", "static", "shared")
    one, two = (
        [p.read_bytes() for p in fw.export(robot.gravity_force, tmp_path / k, files=kinds, target="cortex-a76")] for k in "ab"
    )
    assert one == two
