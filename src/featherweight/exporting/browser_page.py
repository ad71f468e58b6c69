"""A robot as one HTML file that computes the dynamics in the browser: the robot falls, and the mouse pulls it."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.function import CompiledFunction
from ..model.types import JointType
from ..robot.robot import Robot
from .export_targets import TARGETS
from .linking import link_shared
from .object_code import compile_routine
from .plain_surfaces import plain_surfaces
from .routine import Routine, routines

STEP = 1e-3  # [s]
LEAST = 0.01  # [m]: size of a robot without extent
TEMPLATE = Path(__file__).with_name("page.html")


def web_page(robot: Robot, path: str | Path, step: float = STEP) -> Path:
    """Write a page that shows a robot in motion, with time step `step` [s], and return its path.

    The page needs no server, network or external script. The robot starts at rest, in the configuration of its MJCF file or at
    `neutral()`. Its joints have damping and springs, by the linear coefficients, without limits, friction or contact. A spring
    holds a floating base until the user releases it. The page's forward dynamics agrees with `robot.forward_dynamics` to
    rounding, with `step` times the damping added to each joint's armature. Bodies are drawn by their plain shapes; bodies that
    have only meshes are drawn as boxes of equal inertia.

    Raises TypeError for a robot with loops or couplings, and ValueError for a step that is not positive and finite, or a robot
    too large to be traced. Raises OSError if the file cannot be written.
    """
    if not (isinstance(robot, Robot) and isinstance(robot.integrate, CompiledFunction)):
        raise TypeError(f"web_page: robot must be a Robot without loops or couplings; got {type(robot).__name__}")
    if not 0.0 < step < np.inf:
        raise ValueError(f"web_page: step must be positive and finite; got {step}")
    data = json.dumps(_description(robot, step), separators=(",", ":"), allow_nan=False)
    page = TEMPLATE.read_text(encoding="utf-8").replace("@TITLE@", html.escape(robot.name))
    path = Path(path)
    path.write_text(page.replace("@ROBOT@", data.replace("<", "\\u003c")), encoding="utf-8")
    return path


def _description(robot: Robot, step: float) -> dict[str, Any]:
    """Return the data that the page reads."""
    damped = robot.with_armature({j.name: j.armature + step * j.damping for j in robot.joints if j.damping > 0.0})
    functions = routines(_functions(damped))
    start = robot.start()
    T = np.asarray(robot.frame_placement([b.name for b in robot.bodies])(start))
    surfaces = plain_surfaces(robot)
    points = np.concatenate([T[:, :3, 3], *(s.points(T) for s in surfaces if s.body >= 0)])
    low, high = points.min(axis=0), points.max(axis=0)
    damping = np.zeros(robot.nv)
    for j in robot.joints:
        damping[j.v_slice] = j.damping
    one = [j for j in robot.joints if j.stiffness > 0.0 and j.type.nv == 1]
    return {
        "module": base64.b64encode(_module(functions)).decode(),
        "functions": [{"name": r.name, "inputs": [x.size for x in r.inputs], "output": r.outputs[0].size} for r in functions],
        "nv": robot.nv,
        "step": step,
        "start": start.tolist(),
        "damping": damping.tolist(),
        "springs": [{"q": j.q_slice.start, "v": j.v_slice.start, "stiffness": j.stiffness, "rest": j.rest} for j in one],
        "floating": robot.joints[0].type == JointType.FLOATING,
        "mass": robot.mass,
        "masses": [b.mass for b in robot.bodies],
        "size": max(float(np.linalg.norm(high - low)), LEAST),
        "center": ((low + high) / 2).tolist(),
        "ground": [*((low + high) / 2)[:2].tolist(), float(low[2])],
        "surfaces": [s.described() for s in surfaces],
    }


def _functions(robot: Robot) -> dict[str, CompiledFunction[Any]]:
    """Return the functions of the page, by the names under which it calls them."""
    return {
        "forward_dynamics": robot.forward_dynamics.variant("external_forces"),
        "integrate": robot.integrate,
        "placements": robot.frame_placement([b.name for b in robot.bodies]),
        "kinetic_energy": robot.kinetic_energy,
        "potential_energy": robot.potential_energy,
    }


def _module(functions: Sequence[Routine]) -> bytes:
    target = TARGETS["wasm32"]
    objects = [compile_routine(r, target, "double") for r in functions]
    return link_shared([o.data for o in objects], "robot.wasm", target, [s for o in objects for s in o.symbols])
