"""Tests of forward dynamics with the forces of large loops as multipliers: as exact as clusters, and linear in the joints."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from loop_generators import closed_mechanism

import featherweight as fw
from featherweight.algorithms.mechanisms import multipliers
from featherweight.engine.program import Output
from featherweight.robot.arguments import TAU, Q, V
from featherweight.robot.dynamics import external_forces
from featherweight.robot.system import body_placements
from featherweight.robots.linkages import four_bar_configuration
from oracles.mechanisms import body, closed
from oracles.spanning import mechanism
from oracles.states import assert_close

NAME = "aba-multipliers"

AGREEMENT = 1e-10
"""Tolerance of forward dynamics by two algorithms; the largest measured difference is 3e-12."""


def ring(kind: str, joints: int, *, digits: int = 6, lightest: float = 1.0) -> fw.Description:
    """Return a ring whose last body is lighter by a factor than it would be."""
    made = closed_mechanism(kind, joints, rng=0, digits=digits)
    last = made.bodies[-1]
    mass, center, rotational = last.inertia.mass, last.inertia.center, last.inertia.rotational
    light = fw.Inertia(lightest * mass, center, tuple(lightest * x for x in rotational))
    return dataclasses.replace(made, bodies=(*made.bodies[:-1], dataclasses.replace(last, inertia=light)))


def carried(made: fw.Description, *, mast: bool = True) -> fw.Description:
    """Return a mechanism on a root body, which may have a joint, and with a further body on its first body."""
    joints = [dataclasses.replace(j, parent="root") if j.parent == "world" else j for j in made.joints]
    loops = tuple(dataclasses.replace(x, predecessor="root") if x.predecessor == "world" else x for x in made.loops)
    hinge, at = fw.JointType.REVOLUTE, fw.Pose(p=(0.1, 0.2, 0.3))
    joints += [fw.Joint("mast", hinge, "world", "root", at, (0.0, 0.6, 0.8))] if mast else []
    joints.append(fw.Joint("load", hinge, made.bodies[0].name, "hook", at, (1.0, 0.0, 0.0)))
    bodies = (*made.bodies, body("root"), body("hook"))
    return dataclasses.replace(made, bodies=bodies, joints=tuple(joints), loops=loops)


def assert_agrees(robot: fw.ClosedRobot, seed: int = 0) -> None:
    """Check accelerations under forces on joints and bodies at three states."""
    rng = np.random.default_rng(seed)
    q = robot.random_configuration(rng=rng, size=3)
    v, tau = rng.standard_normal((2, 3, robot.nv))
    f = rng.standard_normal((3, len(robot.bodies), 6))
    expected = robot.forward_dynamics(q, v, tau, external_forces=f, algorithm="aba")
    assert_close(robot.forward_dynamics(q, v, tau, external_forces=f, algorithm=NAME), expected, AGREEMENT)


@pytest.mark.parametrize(("kind", "joints"), [("planar", 8), ("planar", 20), ("spatial", 14)])
def test_rings_move_as_clusters_do(kind: str, joints: int) -> None:
    """Check rings with redundant rows, which rounded numbers make contradict each other."""
    assert_agrees(closed(ring(kind, joints), execution="interpreted"))


@pytest.mark.parametrize(("kind", "joints"), [("planar", 8), ("spatial", 14)])
def test_rings_on_moving_bodies_carry_others(kind: str, joints: int) -> None:
    robot = closed(carried(ring(kind, joints)), execution="interpreted")
    assert [len(c.rows) for c in robot._mechanism.clusters if c.dependent] == [joints]
    assert_agrees(robot)


def test_rings_on_a_floating_base() -> None:
    robot = fw.build(carried(ring("planar", 8), mast=False), "floating", execution="interpreted")
    assert isinstance(robot, fw.ClosedRobot)
    assert_agrees(robot)


def test_near_singular_configurations_cost_no_more_accuracy_than_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a parallelogram near the line of its bars, where K loses a rank; the measured differences are below a fifth."""
    monkeypatch.setattr(multipliers, "is_large", lambda cluster: bool(cluster.dependent))
    robot = fw.ClosedRobot(mechanism("four_bar")._loops, "interpreted")
    for angle, tolerance in ((1e-2, 1e-12), (1e-3, 1e-11), (1e-4, 1e-10)):
        q = np.array(four_bar_configuration(angle))
        found, expected = (robot.forward_dynamics(q, [0.7], [2.0], algorithm=a) for a in (NAME, "crba-ltdl"))
        assert_close(found[None], expected[None], tolerance)


@pytest.mark.parametrize(("kind", "sizes"), [("planar", (8, 14, 20)), ("spatial", (14, 20, 26))])
def test_the_cost_of_a_ring_grows_in_proportion_to_its_joints(kind: str, sizes: tuple[int, ...]) -> None:
    """Check differences to 5 percent: joints at different placements differ by some operations."""

    def operations(n: int) -> float:
        robot = closed(ring(kind, n))
        inputs, output = (Q, V, TAU, external_forces(robot)), Output("a", (robot.nv,))
        return robot.bind(NAME, multipliers.aba_multipliers, inputs, (output,), (body_placements(robot),)).operations.flops

    few, some, more = map(operations, sizes)
    assert more - some == pytest.approx(some - few, rel=0.05)
    assert more < 850 * sizes[-1]


@pytest.mark.parametrize(("kind", "small", "large"), [("planar", 8, 12), ("spatial", 12, 14)])
def test_the_count_chooses_between_clusters_and_multipliers(kind: str, small: int, large: int) -> None:
    assert closed(ring(kind, small)).forward_dynamics.algorithm != NAME
    assert closed(ring(kind, large)).forward_dynamics.algorithm == NAME


@pytest.mark.parametrize("lightest", [1e-9, 0.0])
def test_light_bodies_at_the_end_of_a_loop_need_clusters(lightest: float) -> None:
    """Check bodies that the loop moves along with heavier ones: alone, they move without inertia, or nearly so."""
    robot = closed(ring("planar", 12, digits=14, lightest=lightest), execution="interpreted")
    assert NAME not in robot.forward_dynamics.alternatives
    assert NAME in closed(ring("planar", 12, digits=14, lightest=0.1), execution="interpreted").forward_dynamics.alternatives
