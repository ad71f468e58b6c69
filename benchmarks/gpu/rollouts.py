"""Whole steps with rigid contact: rollouts of Gymnasium's robots on a device, and on all processors of the same machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from figures import OURS, Figure
from gpu_arrays import median_of

import featherweight as fw

NAMES = ("hopper", "ant", "humanoid")
ROBOTS, STEPS, HELD = 2**14, 50, 5  # steps between changes of the random controls
COMPARED = 64  # robots whose states must be bitwise equal on both
SPREAD = 0.1  # scale of the initial velocities


def rollouts(robots: int = ROBOTS, device: str | None = "cuda", names: Sequence[str] = NAMES) -> Iterator[Figure]:
    """Measure rollouts from the pose of each file under random controls; yield nothing without Gymnasium."""
    for name in names if find_spec("gymnasium") else ():
        yield from rolled_out(name, robots, device)


def rolled_out(name: str, robots: int, device: str | None) -> Iterator[Figure]:
    sim = fw.Simulation(fw.load(asset(name)), contact="rigid")
    rng = np.random.default_rng(0)
    q, v = np.tile(sim.q, (robots, 1)), SPREAD * rng.standard_normal((robots, sim.robot.nv))
    controls = rng.uniform(-1.0, 1.0, (robots, STEPS // HELD, len(sim.robot.controls)))
    arguments: dict[str, Any] = dict(q=q, v=v, control=np.repeat(controls, HELD, axis=1), every=STEPS)
    few: dict[str, Any] = arguments | {key: arguments[key][:COMPARED] for key in ("q", "v", "control")}
    here, there = sim.rollout(**few), sim.rollout(**few, device=device)
    difference = max(float(np.abs(a - b).max()) for a, b in zip(here, there, strict=True))

    def figure(library: str, where: str | None) -> Figure:
        spent = median_of(lambda: sim.rollout(**arguments, device=where), lambda: None)
        names = ("rollouts", library, name, "step with contact", "float64")
        return Figure(*names, robots * STEPS, spent, difference=difference)

    yield figure(OURS, device)
    yield figure(f"{OURS}, {os.cpu_count()} processors", None)


def asset(name: str) -> Path:
    """Return the file of one of Gymnasium's robots."""
    spec: Any = find_spec("gymnasium")
    return Path(spec.origin).parent / f"envs/mujoco/assets/{name}.xml"
