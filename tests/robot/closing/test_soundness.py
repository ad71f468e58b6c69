"""Tests of the check that every independent velocity moves mass."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.robot.closing import soundness
from featherweight.robots import belt_chain, geared_chain
from oracles.mechanisms import closed

HINGE = fw.JointType.CONTINUOUS


def calls(n: int) -> int:
    """Count the calls in the check of a chain of geared links."""
    robot = closed(geared_chain(n, 0), execution="interpreted")
    q, count = np.full((1, n), 0.1), 0

    def tell(frame: Any, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(tell)
    try:
        assert soundness.loose_velocities(robot._system, q)[0] == -1
    finally:
        sys.setprofile(None)
    return count


def test_the_check_takes_equally_long_for_each_cluster() -> None:
    assert calls(15) - calls(10) == pytest.approx(calls(10) - calls(5), rel=0.05)


def gimbal() -> fw.Description:
    """Return a body in two rings without mass, which lock where the second joint is at a right angle."""
    inertia = fw.Inertia(1.0, (0.0, 0.0, 0.1), (0.1, 0.0, 0.0, 0.2, 0.0, 0.3))
    places = (("x", None, "outer"), ("y", "outer", "inner"), ("z", "inner", "body"))
    joints = [fw.Joint(axis, HINGE, a, b, axis=tuple(float(axis == x) for x in "xyz")) for axis, a, b in places]
    return fw.describe([fw.Body("outer"), fw.Body("inner"), fw.Body("body", inertia)], joints, name="gimbal")


def geared_gimbal() -> fw.Description:
    """Return a gimbal whose body carries a wheel, which follows the second joint."""
    inertia = fw.Inertia(0.1, rotational=(0.1, 0.0, 0.0, 0.1, 0.0, 0.1))
    made, wheel = gimbal(), fw.Joint("wheel", HINGE, "body", "wheel", axis=(0.0, 0.0, 1.0))
    gear = fw.Coupling("gear", "wheel", (("y", (2.0,)),))
    return fw.describe([*made.bodies, fw.Body("wheel", inertia)], [*made.joints, wheel], couplings=[gear], name="gimbal")


@pytest.mark.parametrize("made", [gimbal(), geared_gimbal()])
def test_the_lock_of_a_gimbal_without_mass_is_reported(made: fw.Description) -> None:
    robot = fw.build(made, execution="interpreted")
    regular, locked = np.array([0.1, 0.3, 0.2]), np.array([0.1, np.pi / 2, 0.2])
    robot.require_regular(regular)
    robot.require_regular(locked - np.array([0.0, 1e-3, 0.0]))
    for near in (locked, locked - np.array([0.0, 1e-6, 0.0])):
        with pytest.raises(ValueError, match="gimbal: near a singular configuration, where joint 'x' moves no mass"):
            robot.require_regular(near)
    with pytest.raises(ValueError, match=r"state \(1,\) of q is near"):
        robot.require_regular([regular, locked])


def test_robots_whose_bodies_all_have_mass_are_regular_everywhere() -> None:
    made = gimbal()
    bodies = [
        b if b.name == "body" else fw.Body(b.name, fw.Inertia(1e-3, rotational=(1e-9, 0, 0, 1e-9, 0, 1e-9)))
        for b in made.bodies
    ]
    fw.build(dataclasses.replace(made, bodies=tuple(bodies))).require_regular([0.1, np.pi / 2, 0.2])


@pytest.mark.parametrize(
    ("light", "loose"),
    [
        ((), None),
        (("link-3",), None),
        (("link-3", "rotor-3"), "joint4"),
        (("link-2", "link-3", "rotor-2", "rotor-3"), "joint[34]"),
        (("link-0", "link-1", "rotor-0", "rotor-1"), None),
    ],
)
def test_velocities_that_move_no_mass_are_found_in_clusters_of_two(light: tuple[str, ...], loose: str | None) -> None:
    """Check links that are driven in pairs by belts, without the mass of some links and rotors."""
    made = belt_chain(4, 1)
    made = dataclasses.replace(made, bodies=tuple(fw.Body(b.name) if b.name in light else b for b in made.bodies))
    if loose is None:
        robot = closed(made, execution="interpreted")
        M = robot.mass_matrix(robot.random_configuration(rng=0))
        size = np.sqrt(np.diag(M))
        assert np.linalg.eigvalsh(M / size / size[:, None])[0] > 1e-12
    else:
        with pytest.warns(fw.ModelWarning, match="without moving any mass"):
            robot = closed(made)
        with pytest.raises(fw.ModelError, match=f"joint '{loose}', with .*, moves no mass"):
            robot._loops.require_mass()
