"""The time step compiles once per machine, for all robots and scenes, with a message to waiting users."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from featherweight.engine.loops import precompiled_code

STEPS = """
import featherweight as fw
from featherweight.engine import compilation_messages
from featherweight.engine.loops import kernel_code
compilation_messages.PATIENCE = -1.0
compiled = []
kernel_code.compilation_observers.append(lambda kernel, facts, ir: compiled.append(kernel.function.__name__))
from simulation.test_plain_python import different, scene
for name, integrator in (
    ("points", "semi-implicit"), ("points", "rk4"), ("points", "midpoint"), ("drives", "semi-implicit"), ("loops", "rk4"),
    ("legs", "midpoint"), ("box on box", "semi-implicit"), ("hull on heights", "semi-implicit"), ("many bodies", "rk4"),
):
    make, given = scene(name)
    for robots in (1, 2):
        sim = make(integrator, robots)
        sim.step(**{key: x[0] if robots == 1 else x for key, x in ((k, y[:, 0]) for k, y in given(sim, 1).items())})
different(3).step()
print(compiled.count("work_on_robots"), len(compiled))
"""


def test_all_robots_and_scenes_share_the_code_of_a_step(tmp_path: Path) -> None:
    """One process compiles the code of all features; a second one finds it on the disk and compiles no kernel."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    env = {**os.environ, "PYTHONPATH": path, "FEATHERWEIGHT_CACHE": str(tmp_path)}
    env.pop("FEATHERWEIGHT_CHECKED", None)
    first, second = (
        subprocess.run([sys.executable, "-c", STEPS], env=env, capture_output=True, text=True, check=True) for _ in range(2)
    )
    compiled = 0 if precompiled_code.FOLDER.is_dir() else 1
    assert first.stdout.split()[0] == str(compiled)
    assert "featherweight: compiling the simulation of " in first.stderr  # of which the time step is a part
    assert "compiling the time step" not in first.stderr
    assert second.stdout.split() == ["0", "0"]
    assert "compiling" not in second.stderr
