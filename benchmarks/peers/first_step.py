"""Time to the first step with contacts, in a clone and with a wheel, with an empty and with a full cache.

    python benchmarks/peers/first_step.py [--times 3] [--wheel WHEEL]

The times, by processor and wall clock, are those from before `import featherweight` until the first step with a contact, in new
processes. WHEEL, or the wheel of `make wheel` in dist/, is installed in its own environment; without a wheel, its rows are left
out. The last row is MuJoCo with the ant, from before its import.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

from measure import FILES, ROBOTS, fresh_process, machine, pivoted
from simulation_models import ASSETS, HEIGHT, POSTURE, SOLES, TALOS

CLONE, SECOND, WHEEL = "clone, empty cache", "clone, second process", "wheel, empty cache"

BEGIN = """
import time
wall, processor = time.perf_counter(), time.process_time()
"""
END = """
print(time.process_time() - processor, time.perf_counter() - wall)
"""
TALOS_STANDS = f"""
import featherweight as fw
robot = fw.load({str(TALOS)!r}, base="floating")
q = robot.neutral()
q[2] = {HEIGHT!r}
for j in robot.joints:
    if j.name in {POSTURE!r}:
        q[j.q_slice] = {POSTURE!r}[j.name]
sim = fw.Simulation(robot, 1e-3, q=q, spheres=[fw.ContactPoint(f, at) for f, at in {SOLES!r}], shapes=False, ground=fw.Plane())
sim.step()
assert len(sim.contacts()[0]) == 8
"""
ANT_FALLS = f"""
import warnings
import featherweight as fw
warnings.simplefilter("ignore")
robot = fw.load({str(ASSETS / "ant.xml")!r})
sim = fw.Simulation(robot, 0.01, "rk4", q=robot.configurations["qpos0"], shapes=True)
while not len(sim.contacts()[0]):
    sim.step()
"""
DOG_OF_HULLS = f"""
import featherweight as fw
robot = fw.load({str(ROBOTS / FILES["hyq"][0])!r}, base="floating")
q = robot.neutral()
q[2] = 0.6
for leg, sign in (("lf", 1), ("rf", 1), ("lh", -1), ("rh", -1)):
    q[robot.joints[leg + "_hfe_joint"].q_slice] = sign * 0.7
    q[robot.joints[leg + "_kfe_joint"].q_slice] = -sign * 1.4
sim = fw.Simulation(robot, 1e-3, q=q, shapes=True, ground=fw.Plane())
while not len(sim.contacts()[0]):
    sim.step()
"""
DOG_ON_HILLS = """
import numpy as np
import featherweight as fw
robot = fw.build(fw.robots.mini_cheetah())
x, y = np.meshgrid(np.linspace(-2.0, 2.0, 41), np.linspace(-2.0, 2.0, 41), indexing="ij")
hills = fw.HeightField(0.1 * np.sin(3.0 * x) * np.cos(2.0 * y), (-2.0, 2.0), (-2.0, 2.0))
q = robot.neutral()
q[2] = 0.5
balls = [fw.ContactSphere(b.name, 0.05) for b in robot.bodies]
sim = fw.Simulation(robot, 1e-3, q=q, spheres=balls, shapes=False, ground=hills)
while not len(sim.contacts()[0]):
    sim.step()
"""
ANT_IN_MUJOCO = f"""
import mujoco
m = mujoco.MjModel.from_xml_path({str(ASSETS / "ant.xml")!r})
d = mujoco.MjData(m)
while not d.ncon:
    mujoco.mj_step(m, d)
"""
SCENES = {
    "Talos on its feet": TALOS_STANDS,
    "ant, which falls": ANT_FALLS,
    "HyQ, hulls of its meshes": DOG_OF_HULLS,
    "Mini Cheetah on a height field": DOG_ON_HILLS,
}


CLONES_PYTHON = (sys.executable,)


def seconds(python: Sequence[str], code: str, cache: str) -> tuple[float, float]:
    """Return the processor and wall times [s] of `code` in a new process with the given folder of the cache."""
    environment = {**fresh_process(), "FEATHERWEIGHT_CACHE": cache}
    command = [*python, "-c", BEGIN + code + END]
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=cache)
    processor, wall = map(float, made.stdout.splitlines()[-1].split())
    return processor, wall


def with_wheel(wheel: Path, folder: Path) -> tuple[str, ...]:
    """Return the Python command of a new environment with a wheel and the other packages of this environment."""
    venv.create(folder, with_pip=False)
    python = str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    outside = {name: x for name, x in fresh_process().items() if name != "PYTHONPATH"}  # not the clone
    subprocess.run(install, check=True, env=outside)
    others = next(folder.rglob("site-packages")) / "others.pth"
    others.write_text(sysconfig.get_path("purelib"))  # after the wheel, and without .pth files, which would add the clone
    code = "import featherweight; print(featherweight.__file__)"
    isolated = python, "-I"
    found = subprocess.run([*isolated, "-c", code], env=outside, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()).is_relative_to(folder), f"{found.stdout.strip()} is not from the wheel"
    return isolated


def medians(samples: list[tuple[float, float]]) -> tuple[float, float]:
    processor, wall = zip(*samples, strict=True)
    return statistics.median(processor), statistics.median(wall)


def measured(code: str, times: int, wheel: Sequence[str] | None) -> dict[str, tuple[float, float]]:
    """Return processor and wall times [s] by installation."""
    samples: dict[str, list[tuple[float, float]]] = {CLONE: [], SECOND: [], WHEEL: []}
    for _ in range(times):
        with tempfile.TemporaryDirectory(prefix="featherweight-") as cache:
            samples[CLONE].append(seconds(CLONES_PYTHON, code, cache))
            samples[SECOND].append(seconds(CLONES_PYTHON, code, cache))
        if wheel is not None:
            with tempfile.TemporaryDirectory(prefix="featherweight-") as cache:
                samples[WHEEL].append(seconds(wheel, code, cache))
    return {where: medians(x) for where, x in samples.items() if x}


def rows(times: int, wheel: Sequence[str] | None) -> list[list[str]]:
    made = []
    for what, code in SCENES.items():
        for where, (processor, wall) in measured(code, times, wheel).items():
            made.append([what, where, f"{processor:.2f}", f"{wall:.2f}"])
    with tempfile.TemporaryDirectory() as folder:
        processor, wall = medians([seconds(CLONES_PYTHON, ANT_IN_MUJOCO, folder) for _ in range(times)])
    return [*made, ["ant in MuJoCo", "installed", f"{processor:.2f}", f"{wall:.2f}"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--wheel", type=Path, default=next((Path(__file__).parents[2] / "dist").glob("*.whl"), None))
    options = parser.parse_args()
    print(f"{machine()}\n")
    with tempfile.TemporaryDirectory(prefix="featherweight-") as folder:
        wheel = with_wheel(options.wheel, Path(folder)) if options.wheel else None
        cells = (
            (scene, installation, f"{processor}, {wall}") for scene, installation, processor, wall in rows(options.times, wheel)
        )
        print(pivoted("first step with contacts: processor time, wall time [s]", cells))


if __name__ == "__main__":
    main()
