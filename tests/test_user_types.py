"""Tests of types for users: what a type checker infers from the installed package, and annotations of results."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.robot import result_types
from oracles.mechanisms import closed

CACHE = Path(__file__).parents[1] / ".mypy_cache" / "users"  # without the cache, each run takes about ten seconds
ARRAY = "numpy.ndarray[Any, numpy.dtype[Any]]"
VECTOR = "numpy.ndarray[tuple[int], numpy.dtype[numpy.float64]]"
MATRIX = "numpy.ndarray[tuple[int, int], numpy.dtype[numpy.float64]]"
BEGINNING = """
import numpy as np
import featherweight as fw

robot = fw.load("arm.urdf")
held = [fw.BilateralContact("hand"), fw.CenterOfMass()]
space = robot.operational_space(held)
tasks = [fw.FrameTask("hand"), fw.PostureTask(priority=1)]
sim = fw.Simulation(robot)
q, v = robot.random_configuration(rng=0), np.zeros(robot.nv)
"""
TYPES = {
    'fw.load("arm.urdf")': "featherweight.robot.robot.Robot",
    "robot.forward_dynamics(q, v, v)": ARRAY,
    "robot.mass_matrix(q)": ARRAY,
    "robot.integrate(q, v)": ARRAY,
    'robot.frame_jacobian("hand")(q)': ARRAY,
    "robot.forward_dynamics.copy()(q, v, v)": ARRAY,
    "robot.forward_dynamics_derivatives(q, v, v).da_dq": ARRAY,
    "robot.forward_dynamics_hessian(q, v, v, v).dqdtau": ARRAY,
    "robot.parametric(robot.forward_dynamics_derivatives)(q, v, v).da_dv": ARRAY,
    "space.forward_dynamics_derivatives(q, v, v).dforce_dq": ARRAY,
    "space.forward_dynamics(q, v, v).force": ARRAY,
    "fw.InverseKinematics(robot, tasks).solve(np.eye(4)).q": ARRAY,
    "sim.run(1.0).q": ARRAY,
    "sim.run(1.0).points": MATRIX,
    "sim.contacts().forces": MATRIX,
    "robot.neutral()": VECTOR,
    'robot.configurations["home"].copy()': VECTOR,
    "robot.inertial_parameters.T": MATRIX,
    "robot.effort_bounds[0]": VECTOR,
    "fw.identification.base_parameters(robot).values": VECTOR,
    "robot.kinetic_energy(q, v)": "Any",  # a float for one state
    "robot.together(robot.mass_matrix, robot.bias_force)(q, v)": "Any",
    'robot.mass_matrix.derivative("q")(q)': "Any",
}
WRONG = {
    "robot.forward_dynamics(q, v, v).da_dq": "attr-defined",
    "robot.forward_dynamics_derivatives(q, v, v).dtau_dq": "attr-defined",
    "robot.neutral().shape[1]": "misc",
}


def test_a_type_checker_knows_what_comes_back(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    script = tmp_path / "script.py"
    script.write_text(BEGINNING + "".join(f"reveal_type({x})\n" for x in (*TYPES, *WRONG)))
    arguments = ["--strict", "--config-file=", f"--cache-dir={CACHE}", "--no-color-output", "script.py"]
    done = subprocess.run([sys.executable, "-m", "mypy", *arguments], cwd=tmp_path, capture_output=True, text=True)
    printed = done.stdout.replace("numpy.floating[numpy._typing._64Bit]", "numpy.float64")  # before NumPy 2.2
    told = re.findall(r'^script\.py:(\d+): (?:note: Revealed type is "(.*)"|error: .*\[(.*)\])$', printed, re.M)
    first = BEGINNING.count("\n") + 1
    found = {
        expression: [t or error for n, t, error in told if int(n) == k] for k, expression in enumerate([*TYPES, *WRONG], first)
    }
    assert found == {x: [t] for x, t in TYPES.items()} | {x: [error, "Any"] for x, error in WRONG.items()}, (
        done.stdout + done.stderr
    )
    assert len(told) == len(TYPES) + 2 * len(WRONG)


def chain() -> fw.Robot:
    return fw.build(fw.generators.chain(6), execution="interpreted")


OWNERS: dict[str, Callable[[], Any]] = {
    "Robot": chain,
    "ClosedRobot": lambda: closed(fw.robots.four_bar(), execution="interpreted"),
    "OperationalSpace": lambda: chain().operational_space(fw.BilateralContact("body5", "point")),
}


@pytest.mark.parametrize("name", OWNERS)
def test_annotations_say_what_functions_return(name: str) -> None:
    """Check annotations: an array for one result, fields for several results, Any for a number, which is not an array."""
    owner = OWNERS[name]()
    found = 0
    members = {name: x for cls in reversed(type(owner).__mro__) for name, x in vars(cls).items()}
    for name, member in members.items():
        annotation = member.func.__annotations__.get("return", "") if isinstance(member, cached_property) else ""
        if name.startswith("_") or not annotation.startswith("CompiledFunction"):
            continue
        found += 1
        outputs = getattr(owner, name).program.outputs
        said = annotation.removeprefix("CompiledFunction").strip("[]")
        if said and said != "Any":
            assert getattr(result_types, said)._fields == tuple(r.name for r in outputs), name
        else:
            assert (len(outputs) == 1 and outputs[0].shape != ()) == (said == ""), name
    assert found > 5


def test_second_derivatives_of_forward_dynamics_have_the_fields_that_are_said() -> None:
    """Check the fields of the results of the function, which is not a compiled function."""
    second = chain().forward_dynamics_second_derivatives(*np.zeros((3, 6)))
    assert second._fields == result_types.ForwardDynamicsSecondDerivatives._fields
