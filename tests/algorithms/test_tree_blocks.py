"""Tests of blocks of matrices of trees that share only the ground, against the whole matrices."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.array_types import Array
from featherweight.model.topology import Topology
from featherweight.robot.step_functions import Forest, forest_of
from featherweight.simulation.contact_inertia import ContactInertia
from featherweight.simulation.contact_stage import ContactStage
from simulation.made import made

FOREST = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="5 5 1"/>
<body name="walker" pos="0 0 1"><freejoint/><geom type="box" size=".1 .2 .3"/>
  <body name="leg" pos=".1 0 -.3">
    <joint type="hinge" axis="0 1 0"/><geom type="box" size=".05 .05 .2" pos="0 0 -.2"/></body></body>
<body name="arm" pos="2 0 1">
  <joint name="elbow" type="hinge" axis="1 0 0" range="-1 1"/><geom type="box" size=".1 .1 .3" pos="0 0 .2"/>
  <body name="hand" pos="0 0 .5"><joint type="ball"/><geom type="box" size=".1 .05 .1"/></body></body>
<body name="box" pos="1 0 .3"><freejoint/><geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>"""


def forest_robot(tmp_path: Path, execution: str = "traced", text: str = FOREST) -> Any:
    path = tmp_path / "forest.xml"
    path.write_text(text)
    return fw.load(path, execution=execution)


def of_own_tree(matrix: Array, begins: tuple[int, ...], tree: Array) -> Array:
    """Return the columns of each row's own tree, followed by zeros."""
    widest = max(np.diff(begins))
    own = [x[begins[t] : begins[t + 1]] for x, t in zip(matrix, tree, strict=True)]
    return np.array([[*x, *np.zeros(widest - len(x))] for x in own])


def test_jacobians_of_trees_are_blocks_of_the_whole(tmp_path: Path) -> None:
    robot = forest_robot(tmp_path)
    forest = robot.step_functions.forest
    assert forest.begins == (0, 7, 11, 17) and forest.widest == 7
    assert forest.of_row == (0,) * 7 + (1,) * 4 + (2,) * 6
    q = robot.random_configuration(rng=np.random.default_rng(0))
    contacts = [fw.BilateralContact("hand"), fw.BilateralContact("box", "point"), fw.BilateralContact("leg")]
    space = robot.operational_space(contacts)
    rows = np.repeat([1, 2, 0], [6, 3, 6])
    expected = of_own_tree(space.jacobian(q), forest.begins, rows)
    np.testing.assert_allclose(space.jacobians_of_trees(forest)(q), expected, rtol=0.0, atol=1e-13)


def columns_of_forest(robot: Any) -> tuple[tuple[int, ...], int]:
    """Return the columns of each velocity and its ancestors in rows of its own tree, and the width of these rows."""
    forest, columns = robot.step_functions.forest, []
    for i in range(robot.nv):
        begin = max(b for b in forest.begins if b <= i)
        j = i
        while j >= 0:
            columns.append(j - begin)
            j = forest.parent[j]
    return tuple(columns), forest.widest


@pytest.mark.parametrize("execution", ["traced", "rolled"])
def test_factors_of_the_inverse_mass_matrix(tmp_path: Path, execution: str) -> None:
    """Check C Cᵀ = M⁻¹ for each tree, with armature as an argument, too."""
    robot = forest_robot(tmp_path, execution)
    begins = robot.step_functions.forest.begins
    q = robot.random_configuration(rng=np.random.default_rng(1))

    def check(C: Array, of: Any) -> None:
        M = of.mass_matrix(q)
        for first, stop in pairwise(begins):
            own = C[first:stop, : stop - first]
            np.testing.assert_allclose(own @ own.T @ M[first:stop, first:stop], np.eye(stop - first), rtol=0.0, atol=1e-11)
            np.testing.assert_array_equal(own, np.tril(own))
            assert not C[first:stop, stop - first :].any()

    function = robot.step_functions.inverse_factor(*columns_of_forest(robot))
    check(function(q, out=np.full((robot.nv, 7), np.nan)), robot)
    if execution == "traced":
        armature = robot.armature + 0.1
        joints = [j.name for j in robot.model.joints if j.type is not fw.JointType.FLOATING]
        other = robot.with_armature(dict(zip(joints, armature, strict=True)))
        check(robot.parametric(function, bodies=False)(q, armature), other)


@pytest.mark.parametrize(
    ("parent", "trees"),
    [((), (0,)), ((-1,), (0, 1)), ((-1, 0, -1, 2, 2), (0, 2, 5)), ((-1, -1, -1), (0, 1, 2, 3)), ((-1, -1, 0, -1), (0, 3, 4))],
)
def test_trees_are_consecutive(parent: tuple[int, ...], trees: tuple[int, ...]) -> None:
    """Check that interleaved trees count as one."""
    assert Topology(parent).trees == trees


def test_rows_that_do_not_come_tree_after_tree_are_one_tree() -> None:
    parent = (-1, 0, -1)
    assert forest_of(parent, (0, 2, 1)) == Forest((0, 3), (0, 0, 0), parent, (0, 2, 1))
    assert forest_of(parent, (0, 1, 2)) == Forest((0, 2, 3), (0, 0, 1), parent, (0, 1, 2))


@pytest.mark.parametrize(
    ("pair", "of_row"), [(None, (0, 1, 2, 3, *[4] * 6)), ((0, 1), (0, 0, 1, 2, *[3] * 6)), ((0, 2), (0,) * 10)]
)
def test_trees_that_a_coupling_joins_are_one(tmp_path: Path, pair: tuple[int, int] | None, of_row: tuple[int, ...]) -> None:
    """Check four hinges and a free ball; bodies between two coupled hinges belong to their tree."""
    hinges = "".join(
        f'<body pos="{k} 0 0"><joint name="j{k}" type="hinge" axis="0 1 0"/><geom type="box" size=".1 .1 .1"/></body>'
        for k in range(4)
    )
    ties = "" if pair is None else f'<joint joint1="j{pair[0]}" joint2="j{pair[1]}"/>'
    bodies = f'{hinges}<body><freejoint/><geom size=".1"/></body>'
    text = f"<mujoco><worldbody>{bodies}</worldbody><equality>{ties}</equality></mujoco>"
    robot = forest_robot(tmp_path, "auto", text)
    assert robot.closed == (pair is not None)
    assert robot.step_functions.forest.of_row == of_row


@pytest.mark.parametrize("drive", ["", '<actuator><position joint="elbow" kp="10" kv="1"/></actuator>'], ids=["free", "driven"])
def test_steps_by_blocks_are_those_by_whole_matrices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drive: str) -> None:
    """Check a pile of ten boxes beside a robot with limits, which all fall on the ground and on each other."""
    boxes = "".join(
        f'<body pos="3.{k % 2} 0 {0.12 + 0.23 * k}" euler="{k} 3 5"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
        for k in range(10)
    )
    text = FOREST.replace("</worldbody>", f"{boxes}</worldbody>{drive}")
    robot = forest_robot(tmp_path, text=text)
    states = []
    for in_blocks in (True, False):
        if not in_blocks:
            monkeypatch.setattr(ContactInertia, "in_blocks", False)
        with made(ContactStage) as stages:
            simulation = fw.Simulation(robot, q="qpos0")
        [stage] = stages
        inertia = stage.inertia
        assert inertia.by_inverse and inertia.in_blocks == in_blocks and inertia.columns == (7 if in_blocks else robot.nv)
        assert (np.diff(stage.model.branch) >= 0).all() and stage.model.joint_branch.tolist() == [1]
        control = np.ones(1) if drive else None
        simulation.step(control=control, steps=60)
        assert len(simulation.contacts()[0]) > 4
        states.append(np.concatenate([simulation.q, simulation.v]))
    np.testing.assert_allclose(states[0], states[1], rtol=1e-7, atol=1e-7)
