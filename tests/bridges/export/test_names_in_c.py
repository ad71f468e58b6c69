"""Tests of names of functions and robots in C, C++ and CMake: reserved, colliding, and invalid names."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import featherweight as fw
from bridges.export.c_programs import STRICT
from featherweight.engine.program import Input, KernelProgram, Output
from featherweight.exporting.c_names import plain_name
from featherweight.exporting.routine import routines
from featherweight.model.generators import chain

ROBOT = fw.build(chain(2, rng=2))
F, G = ROBOT.gravity_force, ROBOT.kinetic_energy
ARM = """<robot name="{robot}"><link name="base"/>
<link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
<joint name="{joint}" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>"""


@pytest.mark.parametrize(
    "name", ["asm", "constexpr", "nullptr", "wchar_t", "sqrt", "malloc", "errno", "linux", "int32_t", "FW_MULADD"]
)
def test_names_with_a_meaning_of_their_own_are_refused(name: str, tmp_path: Path) -> None:
    given: list[dict[str, Any]] = [{"name": "arm"}, {"name": "arm", "prefix": name[:2]}]
    for options in given:
        own = name.removeprefix(options.get("prefix", ""))
        with pytest.raises(ValueError, match=f"'{name}' is taken in C or C"):
            fw.export({own: F}, tmp_path, files="source", **options)


@pytest.mark.parametrize("name", ["math", "stdint", "float", "m", "test", "all"])
def test_libraries_that_would_hide_others_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"'{name}' is taken"):
        fw.export(F, tmp_path, name=name, files="source")


@pytest.mark.parametrize(
    ("names", "symbol"),
    [
        (("a", "a_workspace_bytes"), "a_workspace_bytes"),
        (("f", "F"), "F_Q_SIZE"),
        (("f", "F_Q_SIZE"), "F_Q_SIZE"),
        (("f", "f_part0"), "f_part0"),
    ],
)
def test_functions_that_define_the_same_are_named(names: tuple[str, str], symbol: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"functions '{names[0]}' and '{names[1]}' both define {symbol}"):
        fw.export(dict(zip(names, (F, F), strict=True)), tmp_path, name="arm", files="source")
    assert not list(tmp_path.iterdir())


def test_functions_for_casadi_may_not_be_called_as_their_jacobians(tmp_path: Path) -> None:
    for other in ("jac_f", "f_work", "adj1_f_n_in"):
        with pytest.raises(ValueError, match=f"functions 'f' and '{other}' both define {other}"):
            fw.export({"f": F, other: G}, tmp_path, name="arm", files="shared", interface="casadi")
    for name in ("left__hand", "jac", "null"):
        with pytest.raises(ValueError, match=f"'{name}' is not a valid name in CasADi"):
            fw.export({name: F}, tmp_path, name="arm", files="shared", interface="casadi")


def test_what_is_no_function_is_named(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="got method for 'place'"):
        fw.export({"place": ROBOT.frame_placement}, tmp_path)  # type: ignore[arg-type]


def test_arguments_have_names_of_their_own_in_capitals_too() -> None:
    inputs = (Input("q", (2,)), Input("Q", (1,)), Input("2nd", (1,)), Input("w", (1,)), Input("double", (1,)))
    outputs = (Output("q", (1,)), Output("t1", (1,)))
    f = fw.CompiledFunction(KernelProgram("f", _copy, (), inputs, outputs), "traced")
    [r] = routines(f)
    assert r.c_names == ["q", "Q_out", "_2nd", "w_", "double_", "q_out_out", "t1_"]


def _copy(q: Any, Q: Any, x: Any, w: Any, d: Any, results: Any) -> None:
    y, z = results
    y[0], z[0] = q[0] + Q[0], x[0] + w[0] + d[0]


@pytest.mark.parametrize(
    ("robot", "library"),
    [
        ("int", "robot_int"),
        ("test", "robot_test"),
        ("7 dof", "robot_7_dof"),
        ("a/../b", "a____b"),
        ("gravity_force", "robot_gravity_force"),
        ("关节", ""),
    ],
)
def test_a_robots_name_is_made_one_for_files(robot: str, library: str) -> None:
    assert plain_name(robot, ["gravity_force"]) == library


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
@pytest.mark.parametrize("joint", ["*/ int x; /*", "????/", "größe_关节", "one&#10;two */ #error", "a\\", "//*"])
def test_no_joints_name_ends_a_comment(joint: str, tmp_path: Path) -> None:
    (tmp_path / "r.urdf").write_text(ARM.format(robot="*/ int", joint=joint), encoding="utf-8")
    robot = fw.load(tmp_path / "r.urdf")
    header, source = fw.export(robot.gravity_force, tmp_path, robot=robot, files="source")
    assert header.name == "robot_int.h" and header.read_bytes().isascii()
    subprocess.run(["gcc", *STRICT, "-Wtrigraphs", "-Wcomment", "-c", source.name], cwd=tmp_path, check=True)


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_two_exports_go_into_one_program_of_cpp(tmp_path: Path) -> None:
    fw.export({"one": F}, tmp_path, name="first", files="static")
    fw.export({"two": fw.build(chain(3, rng=1)).gravity_force}, tmp_path, name="second", files="source")
    (tmp_path / "main.cpp").write_text(
        '#include <cmath>\n#include "first.h"\n#include "second.h"\n#include "first.h"\n'
        "int main() {\n  double q[3] = {0, 0, 0}, one_tau[2], two_tau[3];\n"
        "  static char w[ONE_WORKSPACE_BYTES + TWO_WORKSPACE_BYTES + 1];\n"
        "  return one(q, one_tau, w) + two(q, two_tau, w);\n}\n"
    )
    subprocess.run(["gcc", *STRICT, "-c", "second.c"], cwd=tmp_path, check=True)
    command = ["g++", "-std=c++98", "-Wall", "-Wextra", "-pedantic", "-Werror", "main.cpp", "libfirst.a", "second.o", "-lm"]
    subprocess.run([*command, "-o", "main"], cwd=tmp_path, check=True)
    subprocess.run([tmp_path / "main"], check=True)
