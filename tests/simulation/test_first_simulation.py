"""Tests that the first simulation on a machine compiles the time step for all robots and scenes, and reports this once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from featherweight.engine.loops import kernel_code

FIRST = """
import numpy as np
import featherweight as fw
from featherweight.engine import compilation_messages
from featherweight.engine.loops.kernel_code import compilation_observers

compilation_messages.PATIENCE = 0.0  # also where compiling is quick

compiled = []
compilation_observers.append(lambda kernel, facts, ir: compiled.append(kernel.function.__name__))
robot = fw.build(fw.robots.mini_cheetah())
q = robot.neutral()
q[2] = 0.35
sim = fw.Simulation(robot, dt=1e-3, q=q, spheres=[fw.ContactSphere(b.name, 0.08) for b in robot.bodies], ground=fw.Plane())
sim.step()
sim.run(0.3)
sim.run(0.01, external_forces=np.zeros((len(robot.bodies), 6)))
sim.vary(friction=np.array([0.5]))
sim.step()
print(*compiled)
"""

OTHERS = """
import featherweight as fw
from featherweight.engine import compilation_messages
from featherweight.engine.loops.kernel_code import compilation_observers
from simulation.test_plain_python import different, scene

compilation_messages.PATIENCE = -1.0
compiled = []
compilation_observers.append(lambda kernel, facts, ir: compiled.append(kernel.function.__name__))
for name, integrator in (
    ("points", "semi-implicit"), ("points", "rk4"), ("points", "midpoint"), ("drives", "semi-implicit"), ("loops", "rk4"),
    ("legs", "midpoint"), ("box on box", "semi-implicit"), ("hull on heights", "semi-implicit"), ("many bodies", "rk4"),
):
    make, given = scene(name)
    for robots in (1, 2):
        sim = make(integrator, robots)
        sim.step(**{key: x[0] if robots == 1 else x for key, x in ((k, y[:, 0]) for k, y in given(sim, 1).items())})
different(3).step()
print(*compiled)
"""

Process = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> list[Process]:
    """Return the results of processes on a new machine, one after another: the first simulation, its repetition, and all
    kinds of scenes twice.
    """
    environment = {
        **os.environ,
        "FEATHERWEIGHT_CACHE": str(tmp_path_factory.mktemp("cache")),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path]),
    }
    environment.pop("FEATHERWEIGHT_CHECKED", None)
    return [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
        for program in (FIRST, FIRST, OTHERS, OTHERS)
    ]


def test_a_first_simulation_compiles_step_and_solver_and_shows_one_warning(processes: list[Process]) -> None:
    """Check forces on bodies and different robots too; a second process shows no warning."""
    first, second, *_ = processes
    assert first.stdout.split() == ([] if kernel_code.FOLDER.is_dir() else ["work_on_robots", "solve_by_delassus"])
    assert second.stdout.split() == []
    told = [line for line in first.stderr.splitlines() if "compiling" in line]
    assert len(told) == 1
    assert told[0].startswith("featherweight: compiling the simulation of 'mini_cheetah', once for this machine: about ")
    assert second.stderr == ""


def test_all_robots_and_scenes_share_the_code_of_a_step(processes: list[Process]) -> None:
    """Check that scenes with all features find the code of the first simulation; a second process finds all kernels on
    the disk.
    """
    *_, first, second = processes
    assert "work_on_robots" not in first.stdout.split()
    assert "featherweight: compiling the simulation of " in first.stderr  # functions of its robots
    assert "compiling the time step" not in first.stderr
    assert second.stdout.split() == []
    assert "compiling" not in second.stderr
