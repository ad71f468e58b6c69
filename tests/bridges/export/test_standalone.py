"""Controllers that run without Python: programs in C give the bits of Python."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import featherweight as fw
from bridges.export.standalone_programs import built, emulated, records, run
from featherweight.engine.backends.llvm.jit import host
from featherweight.exporting.elf import Elf
from whole_body.humanoids import FEET, soles, talos, targets

TICKS = 8
HAND = "panda_hand"


class Case(NamedTuple):
    """A controller, the inputs of its ticks in the order of the record, and what Python gives."""

    controller: Any
    inputs: list[dict[str, Any]]
    results: list[list[Any]]
    status: list[int]


@functools.cache
def inverse_kinematics() -> Case:
    """Return velocities towards poses, with limits that act."""
    robot, rng = fw.load(fw.example("panda")), np.random.default_rng(0)
    ik = fw.InverseKinematics(robot, [fw.FrameTask(HAND), fw.PostureTask(weight=1e-3)])
    rest, inputs, results = robot.random_configuration(rng=1), [], []
    for k in range(TICKS):
        q, T = robot.random_configuration(rng=rng), robot.frame_placement(HAND)(robot.random_configuration(rng=rng))
        speed = np.full(robot.nv, 0.5 + 0.1 * k)
        inputs.append({"q": q, "hand": T, "rest": rest, "dt": 0.01, "gain": 0.5, "damping": 1e-4, "speed": speed})
        results.append([ik.velocity(q, [T, rest], 0.01, gain=0.5, damping=1e-4, speed=speed)])
    return Case(ik, inputs, results, [0] * TICKS)


@functools.cache
def whole_body() -> Case:
    """Return ticks of a humanoid on two feet and on one."""
    (robot, start), rng = talos(), np.random.default_rng(0)
    tasks = (
        fw.CenterOfMassTask(weight=[1.0, 2.0, 3.0]),
        fw.FrameTask("torso_2_link", "orientation", weight=0.5),
        fw.FrameTask("gripper_right_base_link", "position", weight=0.1, damping=3.0),
        fw.AngularMomentumTask(weight=1e-3),
        fw.PostureTask(weight=0.01, stiffness=50.0, priority=1),
    )
    control = fw.WholeBodyControl(robot, tasks, soles())
    inputs, results, status = [], [], []
    for k in range(TICKS):
        q, v = robot.integrate(start, 0.02 * rng.standard_normal(robot.nv)), 0.1 * rng.standard_normal(robot.nv)
        given = targets(tasks, robot, start)
        given["center of mass"] = given["center of mass"] + 0.1 * rng.standard_normal(3)
        rates = {"center of mass": rng.standard_normal(3)}
        feet = FEET if k % 2 == 0 else FEET[:1]
        made = control(q, v, given, velocities=rates, contacts=feet)
        row: dict[str, Any] = {"q": q, "v": v} | {f"target {name}": x for name, x in given.items()}
        for task, n in zip(tasks, (3, 3, 3, 3, robot.nv - 6), strict=True):
            row |= {f"velocity {task.called}": rates.get(task.called, np.zeros(n)), f"rate {task.called}": np.zeros(n)}
        inputs.append(row | {"closed": np.array([f in feet for f in FEET])})
        results.append([made.tau, made.acceleration, made.forces.reshape(-1), made.wrenches.reshape(-1)])
        status.append(["solved", "infeasible", "inconsistent", "too many steps"].index(made.status))
    return Case(control, inputs, results, status)


CASES: dict[str, Callable[[], Case]] = {"inverse kinematics": inverse_kinematics, "whole body": whole_body}
needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")


def check(case: Case, command: list[str]) -> None:
    """Check that a program gives the results of Python, to the bit, while a tick is one with results."""
    status, results = run(command, records(case.inputs), [np.size(x) for x in case.results[0]])
    assert status == case.status
    for k, (got, expected) in enumerate(zip(results, case.results, strict=True)):
        if status[k] == 0:
            for a, b in zip(got, expected, strict=True):
                np.testing.assert_array_equal(a, np.reshape(b, -1))


@needs_gcc
@pytest.mark.parametrize("kind", CASES)
def test_a_program_gives_the_bits_of_python(kind: str, tmp_path: Path) -> None:
    case = CASES[kind]()
    fw.export(case.controller, tmp_path, name="leg", files=("static", "object"))
    check(case, [str(built(tmp_path, "leg"))])
    elf = Elf((tmp_path / "leg.o").read_bytes())
    assert not elf.undefined, "calls of libraries, such as malloc"
    assert all(name.startswith("leg_") for name in elf.defined)
    assert not [s.name for s in elf.sections if s.flags & 1 and s.flags & 2 and s.size], "variables outside the workspace"
    assert (tmp_path / "leg.o").stat().st_size < 1 << 20


@needs_gcc
@pytest.mark.parametrize("kind", CASES)
def test_valgrind_finds_no_error(kind: str, tmp_path: Path) -> None:
    """Check a build for processors without AVX-512, which valgrind does not know."""
    if not shutil.which("valgrind") or not host().triple.startswith("x86_64"):
        pytest.skip("needs valgrind, on x86-64")
    case = CASES[kind]()
    fw.export(case.controller, tmp_path, name="leg", target="x86-64-v3")
    command = ["valgrind", "--error-exitcode=9", "--leak-check=full", str(built(tmp_path, "leg", "gcc", "-g"))]
    done = subprocess.run(command, input=records(case.inputs), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert b"in use at exit: 0 bytes" in done.stderr


@pytest.mark.parametrize("kind", CASES)
def test_aarch64_gives_the_bits_of_this_processor(kind: str, tmp_path: Path) -> None:
    case = CASES[kind]()
    if not host().fma:
        pytest.skip("needs a processor with fma")
    fw.export(case.controller, tmp_path, name="leg", target="cortex-a76")
    check(case, emulated(tmp_path, "leg"))
