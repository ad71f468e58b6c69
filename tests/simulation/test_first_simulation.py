"""The first simulation on a machine compiles its time step once, and says so once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
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
sim = fw.Simulation(robot, step=1e-3, q=q, spheres=[fw.ContactSphere(b.name, 0.08) for b in robot.bodies], ground=fw.Plane())
sim.step()
sim.run(0.3)
sim.run(0.01, external_forces=np.zeros((len(robot.bodies), 6)))
sim.vary(friction=np.array([0.5]))
sim.step()
print(*compiled)
"""


def test_a_first_simulation_compiles_one_loop_and_shows_one_warning(tmp_path: Path) -> None:
    """This includes forces on bodies and different robots; a second process shows none."""
    environment = {**os.environ, "FEATHERWEIGHT_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM]
    first, second = (subprocess.run(command, capture_output=True, text=True, check=True, env=environment) for _ in range(2))
    assert first.stdout.split() == ["work_on_robots"]
    assert second.stdout.split() == []
    told = [line for line in first.stderr.splitlines() if "compiling" in line]
    assert len(told) == 1
    assert told[0].startswith("featherweight: compiling the simulation of 'mini_cheetah', once for this machine: about ")
    assert second.stderr == ""
