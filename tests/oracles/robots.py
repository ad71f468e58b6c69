"""Robots of `example-robot-data` that tests share, loaded once."""

from __future__ import annotations

import functools
import sysconfig
import warnings
from pathlib import Path

import featherweight as fw
from oracles.trees import tree

ROOT = Path(sysconfig.get_paths()["purelib"]) / "cmeel.prefix/share/example-robot-data/robots"

FLOATING = {
    "talos": "talos_data/robots/talos_reduced.urdf",
    "g1": "g1_description/urdf/g1_29dof_rev_1_0.urdf",
    "icub": "icub_description/robots/icub.urdf",
    "romeo": "romeo_description/urdf/romeo_small.urdf",
    "simple_humanoid": "simple_humanoid_description/urdf/simple_humanoid.urdf",
    "hyq": "hyq_description/robots/hyq_no_sensors.urdf",
    "anymal": "anymal_c_simple_description/urdf/anymal.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
    "go2": "go2_description/urdf/go2.urdf",
    "iris": "iris_description/robots/iris.urdf",
}
FIXED = {
    "panda": "panda_description/urdf/panda.urdf",
    "ur5": "ur_description/urdf/ur5_robot.urdf",
    "kinova": "kinova_description/robots/kinova.urdf",
    "z1": "z1_description/urdf/z1.urdf",
    "allegro": "allegro_hand_description/urdf/allegro_right_hand.urdf",
    "tiago": "tiago_description/robots/tiago.urdf",
    "double_pendulum": "double_pendulum_description/urdf/double_pendulum_continuous.urdf",
    "baxter": "baxter_description/urdf/baxter.urdf",
    "pr2": "pr2_description/urdf/pr2.urdf",
}
NAMES = (*FLOATING, *FIXED)
COMPILED = ("icub", "hyq", "iris", "panda", "ur5", "kinova", "allegro", "double_pendulum")
"""One robot of each kind, for which tests compile machine code; the others run in plain Python, which needs no compilation."""

DYNAMICS = (
    *("integrate", "inverse_dynamics", "forward_dynamics", "mass_matrix", "inverse_mass_matrix", "bias_force", "gravity_force"),
    *("kinetic_energy", "potential_energy", "center_of_mass", "center_of_mass_jacobian", "joint_jacobian"),
)
"""Functions that run on many robots; `tests/oracles/test_executions.py` runs all functions on small robots."""


def path(name: str) -> Path:
    return ROOT / (FLOATING | FIXED)[name]


@functools.cache
def example(name: str, execution: str = "auto") -> fw.Robot:
    """Return a robot: legged and flying robots have a floating base, others a fixed one; mimic joints are independent."""
    base = "floating" if name in FLOATING else "fixed"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fw.ModelWarning)  # romeo's impossible inertias, which are used unchanged
        return fw.load(path(name), base=base, mimic="independent", execution=execution)


def one_of_all(name: str) -> fw.Robot:
    """Return one of all robots, for tests that run on all of them."""
    return example(name, "auto" if name in COMPILED else "interpreted")


def robot_of(name: str) -> fw.Robot:
    """Return a robot of `example-robot-data`, or a tree of `oracles.trees`, for tests that run on all of them."""
    return one_of_all(name) if name in NAMES else tree(name)[1]


def watched_frames(robot: fw.Robot) -> list[str]:
    """Return the first and last frames, and a frame that the most joints move."""
    parents = {joint.child: joint.parent for joint in robot.joints}

    def depth(body: str | None) -> int:
        return 1 + depth(parents[body]) if body in parents else 0

    deepest = max(robot.frames, key=lambda frame: depth(frame.body))
    return list(dict.fromkeys((robot.frames[0].name, deepest.name, robot.frames[-1].name)))
