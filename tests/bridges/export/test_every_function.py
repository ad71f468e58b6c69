"""Each public compiled function leaves Python: machine code gives its bits, and C source its numbers to rounding."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.engine.guarded import CheckedProgram
from robot.every_function import Function, as_tuple, flying, functions_of, functions_of_motions, linkage, states_of

needs_linker = pytest.mark.skipif(not Path("/proc").exists(), reason="links shared libraries itself on Linux only")
ROUNDING = 1e-11  # relative to the norm of a result


def called(library: ctypes.CDLL, name: str, f: Function, x: list[Any]) -> list[Any]:
    """Return the results of an exported function."""
    results = [np.empty(y.shape) for y in f.program.outputs]
    size = getattr(library, f"{name}_workspace_bytes")
    size.restype = ctypes.c_size_t
    room = ctypes.create_string_buffer(size() + 1)
    arrays = [np.ascontiguousarray(a, float) for a in x]
    status = getattr(library, name)(*(ctypes.c_void_p(a.ctypes.data) for a in (*arrays, *results)), room)
    assert status == 0, name
    return results


def differences(library: ctypes.CDLL, functions: dict[str, Function], robot: fw.Robot | None, tolerance: float) -> list[str]:
    """Return the names of functions whose results differ from those of Python."""
    rng = np.random.default_rng(6)
    wrong = []
    for name, f in functions.items():
        x = [states_of(robot, given, rng, ()) for given in f.program.inputs]
        for a, b in zip(called(library, name, f, x), as_tuple(f(*x)), strict=True):
            if not np.linalg.norm(a - b) <= tolerance * max(1.0, float(np.linalg.norm(b))):
                wrong.append(name)
    return wrong


MAKERS: dict[str, Callable[[], tuple[fw.Robot | None, dict[str, Function]]]] = {
    "flying": lambda: of_robot(flying()),
    "linkage": lambda: of_robot(linkage()),
    "se3": lambda: (None, {f"se3_{name}": f for name, f in functions_of_motions().items()}),  # C has an `exp`
}


def of_robot(robot: fw.Robot) -> tuple[fw.Robot, dict[str, Function]]:
    return robot, dict(functions_of(robot))


@needs_linker
@pytest.mark.parametrize("kind", MAKERS)
def test_machine_code_gives_the_bits_of_every_function(kind: str, tmp_path: Path) -> None:
    """Functions that check their arguments in Python fuse other operations there, and agree to rounding."""
    robot, functions = MAKERS[kind]()
    fw.export(functions, tmp_path, name="every", files="shared")
    library = ctypes.CDLL(str(tmp_path / "libevery.so"))
    checked = {name: f for name, f in functions.items() if isinstance(f.program, CheckedProgram)}
    exact = {name: f for name, f in functions.items() if name not in checked}
    assert differences(library, exact, robot, 0.0) == []
    assert differences(library, checked, robot, ROUNDING) == []


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
@pytest.mark.parametrize("kind", MAKERS)
def test_source_gives_the_results_of_every_function(kind: str, tmp_path: Path) -> None:
    robot, functions = MAKERS[kind]()
    fw.export(functions, tmp_path, name="every", files="source")
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O0", "-shared", "-fPIC", "every.c", "-lm"]
    subprocess.run([*command, "-o", "every.so"], cwd=tmp_path, check=True)
    assert differences(ctypes.CDLL(str(tmp_path / "every.so")), functions, robot, ROUNDING) == []
