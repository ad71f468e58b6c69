"""Tests of the choice between dependent constraints of a loop: the kept ones stay independent nearby."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight as fw

AXES = ("0 0 1", "0 1 0", "0 1 0", "1 0 0", "0 1 0", "1 0 0")  # waist, shoulder, elbow, forearm roll, wrist angle and roll


def arm(places: tuple[str, ...], target: str, relpose: str = "", before: str = "") -> str:
    """Return an arm whose last body is welded to one that is fixed at `target`."""
    links = "".join(
        f'<body name="link{k}" pos="{p}"><joint name="joint{k}" axis="{a}" damping="0.1"/><geom size="0.03" mass="0.3"/>'
        for k, (a, p) in enumerate(zip(AXES, places, strict=True))
    )
    return (
        f'<mujoco><compiler angle="degree"/><worldbody><body name="target" {target}/>{before}{links}{"</body>" * 6}'
        f"{'</body>' if before else ''}</worldbody>"
        f'<equality><weld body1="target" body2="link5" {relpose}/></equality></mujoco>'
    )


ELBOW = ("0 0 0.1", "0 0 0.05", "0.06 0 0.3", "0.2 0 0", "0.1 0 0", "0.07 0 0")


@pytest.mark.parametrize("euler", ["0 0 0", "0 0 180", "180 0 0", "0 0 179.9996"])
def test_an_arm_with_a_straight_wrist_moves_from_where_its_file_has_it(euler: str) -> None:
    """Check two rolls that turn against each other.

    One of three rows about angles depends on the others, not the same everywhere.
    """
    robot: Any = fw.load(arm(ELBOW, f'pos="0.43 0 0.45" euler="{euler}"'))
    q = robot.configurations["qpos0"]
    assert robot.nv == 1 and (q == 0.0).all()
    assert robot.singularity(q) < 1e3
    velocity = robot.spanning_velocity(q, np.ones(1))
    np.testing.assert_allclose(np.abs(velocity), [0, 0, 0, 1, 0, 1], atol=1e-12)
    assert velocity[3] == pytest.approx(-velocity[5])
    along = robot.integrate(q, [0.3])
    np.testing.assert_allclose(robot.residual(along), 0.0, atol=1e-12)


def test_the_energy_of_an_arm_with_a_straight_wrist_falls() -> None:
    robot: Any = fw.load(arm(ELBOW, 'pos="0.43 0 0.45" euler="0 0 180"'), equalities="exact")
    sim = fw.Simulation(robot, 1e-3, q=robot.configurations["qpos0"], v=[2.0], shapes=False)
    before = sim.energy()
    sim.run(0.05)
    assert sim.energy() < before and 1e-3 < abs(sim.q[5]) < 0.1 and sim.opened < 1e-4


@pytest.mark.parametrize(
    ("euler", "relpose"),
    [("0 0 180", "0 0 0 0 0 0 1"), ("0 180 0", "0 0 0 0 0 1 0"), ("180 0 0", "0 0 0 0 1 0 0"), ("0 0 0", "0 0 0 1 0 0 0")],
)
def test_half_turns_between_welded_bodies_are_as_any_others(euler: str, relpose: str) -> None:
    straight = ("0 0 0", *["0.2 0 0"] * 5)
    slide = '<body><joint name="lift" type="slide" axis="0 0 1"/><geom size="0.01"/>'
    robot: Any = fw.load(arm(straight, f'pos="0.7 0.1 0.1" euler="{euler}"', f'relpose="{relpose}"', slide))
    with pytest.warns(fw.ModelWarning, match="leaves 0.3 m of 'equality0' open"):
        q = robot.configurations["qpos0"]
    assert robot.nv == 1 and np.abs(robot.residual(q)).max() < 1e-12 and robot.singularity(q) < 1e3


def test_an_arm_that_reaches_no_farther_is_refused_in_words_of_a_file_that_marks_no_joints() -> None:
    straight = ("0 0 0", *["0.2 0 0"] * 5)
    slide = '<body><joint name="lift" type="slide" axis="0 0 1"/><geom size="0.01"/>'
    with pytest.raises(fw.ModelError, match=r"1 of 7 velocities stay free with 'equality0', but where .* is singular in every"):
        fw.load(arm(straight, 'pos="1 0 0"', "", slide))
