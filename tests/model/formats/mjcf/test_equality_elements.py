"""Tests of loops, couplings and closures of saved MJCF files: MuJoCo has the same constraints, and reports name the others."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from loop_generators import closed_mechanism

import featherweight as fw
from featherweight import (
    Closure,
    Coupling,
    Loop,
    LoopType,
    ModelWarning,
    Pose,
    robots,
)
from featherweight.model.editing.references import grounded
from featherweight.model.generators import chain, from_parents
from oracles.same_motion import assert_same_motion, interpreted
from oracles.saved_files import (
    TILTED,
    assert_same,
    in_mujoco,
    saved,
    silently,
)


@pytest.mark.parametrize("kind", [LoopType.WELD, LoopType.SPHERICAL])
def test_loops_that_mjcf_has_come_back_though_they_are_open_at_the_start(kind: LoopType, tmp_path: Path) -> None:
    loop = Loop("ring", kind, "body2", "body3", TILTED, Pose(p=(1.0, 2.0, 3.0)))
    if kind is LoopType.SPHERICAL:
        loop = dataclasses.replace(loop, predecessor_frame=Pose(p=TILTED.p))
    tree = from_parents([-1, 0, 1, 0], rng=2)
    assert_same(silently(tree.with_loop(loop), tmp_path).loops, (loop,))
    on_ground = dataclasses.replace(loop, predecessor=None)
    assert_same(grounded(silently(tree.with_loop(on_ground), tmp_path)).loops, (on_ground,))


def test_a_weld_of_two_turned_frames_is_one_of_an_anchor(tmp_path: Path) -> None:
    other = Pose(((0.8, 0.0, 0.6), (0.0, 1.0, 0.0), (-0.6, 0.0, 0.8)), (1.0, 2.0, 3.0))
    loop = Loop("ring", LoopType.WELD, "body2", "body3", TILTED, other)
    (again,) = silently(from_parents([-1, 0, 1, 0], rng=2).with_loop(loop), tmp_path).loops
    assert_same(again.predecessor_frame @ again.successor_frame.inverse(), TILTED @ other.inverse())
    assert again.successor_frame == Pose(p=other.p)


@pytest.mark.parametrize("make", [robots.four_bar, robots.six_bar])
def test_revolute_loops_are_two_points(make: Any, tmp_path: Path) -> None:
    description = make()
    with pytest.warns(ModelWarning, match="the type of the revolute loops loop .*marks of independence of the joints"):
        again = saved(description, tmp_path)
    assert [(x.name, x.type) for x in again.loops] == [("loop", LoopType.SPHERICAL), ("loop_2", LoopType.SPHERICAL)]
    marked = dataclasses.replace(again, independent=description.independent, dependent=description.dependent)
    before, after = interpreted(description), interpreted(marked)
    q = before.random_configuration(rng=np.random.default_rng(0))
    v = np.ones(before.nv)
    np.testing.assert_allclose(after.mass_matrix(q), before.mass_matrix(q), rtol=1e-10)
    np.testing.assert_allclose(after.inverse_dynamics(q, v, v), before.inverse_dynamics(q, v, v), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", [LoopType.PRISMATIC, LoopType.CYLINDRICAL, LoopType.UNIVERSAL, LoopType.PLANAR])
def test_loops_that_mjcf_has_not_are_named(kind: LoopType, tmp_path: Path) -> None:
    description = from_parents([-1, 0, 1, 0], rng=2).with_loop(Loop("ring", kind, "body2", "body3"))
    with pytest.warns(ModelWarning, match=f"it loses or changes the {kind} loops ring, which do not hold in the file"):
        assert saved(description, tmp_path).loops == ()


def test_mujoco_finds_closed_robots_closed(tmp_path: Path) -> None:
    """Check that MuJoCo's constraints hold where ours do: loops, gears, and sums of coordinates."""
    four_bar, ring = robots.four_bar(), closed_mechanism("spatial", 8, rng=3)
    differential = Coupling("differential", "joint2", (("joint0", (0.5,)), ("joint3", (-0.7,))), -0.1)
    for description in (
        four_bar,
        ring,
        with_couplings(differential, Coupling("cam", "joint4", (("joint0", (0.5, 0.3)),), 0.2)),
    ):
        model = in_mujoco(description, tmp_path)
        robot, data = interpreted(description), mujoco.MjData(model)
        q = robot.random_configuration(rng=np.random.default_rng(0))
        data.qpos[:] = fw.MujocoOrder(robot, model).state(q, np.zeros(robot.nv)).qpos
        mujoco.mj_forward(model, data)
        violation = data.efc_pos[data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY]
        assert len(violation) >= 2
        np.testing.assert_allclose(violation, 0.0, atol=1e-9)


def with_couplings(*couplings: Coupling) -> fw.Description:
    """Return a chain whose coordinates do not begin at zero."""
    made = chain(6)
    joints = tuple(dataclasses.replace(j, zero=0.1 * k) for k, j in enumerate(made.joints))
    return dataclasses.replace(made, joints=joints, couplings=couplings)


def test_couplings_of_all_kinds_come_back(tmp_path: Path) -> None:
    description = with_couplings(
        Coupling("gear", "joint1", (("joint0", (20.0,)),), 0.3),
        Coupling("cam", "joint4", (("joint0", (0.5, 0.0, -1 / 3, 0.25)),), -0.1),
        Coupling("held", "joint5", (), 0.7),
        Coupling("differential", "joint2", (("joint0", (0.5,)), ("joint3", (-1.0,))), -0.1),
    )
    again = silently(description, tmp_path)
    assert {c.name: c.joint for c in again.couplings} == {c.name: c.joint for c in description.couplings}
    found = {c.name: c for c in again.couplings}
    for c in description.couplings:
        assert abs(found[c.name].offset - c.offset) < 1e-12
        assert dict(found[c.name].terms).keys() == dict(c.terms).keys()
        for name, row in c.terms:
            np.testing.assert_allclose(dict(found[c.name].terms)[name], row, atol=1e-12)
    assert_same_motion(interpreted(again), interpreted(description))
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "saved.xml"))
    assert (model.neq, model.ntendon) == (4, 1)


def test_couplings_of_which_another_joint_follows_are_named(tmp_path: Path) -> None:
    description = with_couplings(Coupling("differential", "joint2", (("joint0", (0.5,)), ("joint3", (-4.0,))), 0.2))
    with pytest.warns(ModelWarning, match="the followers of the couplings differential"):
        (again,) = saved(description, tmp_path).couplings
    assert again.joint == "joint3"


@pytest.mark.parametrize(
    ("terms", "told"),
    [
        ((("joint0", (0.1,) * 5),), "the couplings c, of a degree above 4"),
        ((("joint0", (0.5, 0.1)), ("joint3", (1.0,))), "the couplings c, by polynomials in several joints"),
    ],
)
def test_couplings_that_mjcf_has_not_are_named(terms: Any, told: str, tmp_path: Path) -> None:
    with pytest.warns(ModelWarning, match=told):
        assert saved(with_couplings(Coupling("c", "joint2", terms)), tmp_path).couplings == ()


def test_closures_are_named_but_for_those_of_tendons(tmp_path: Path) -> None:
    description = chain(3).with_closure(Closure("mine", ("joint0", "joint1"), lambda q: [q[0] - q[1]]))
    with pytest.warns(ModelWarning, match="the closures mine, functions in Python, which do not hold in the file"):
        assert saved(description, tmp_path).closures == ()
    inertial = '<inertial pos="1 0 0" mass="1" diaginertia="1 1 1"/>'
    joints = "".join(f'<body><joint name="{n}" ref="0.{k}"/>{inertial}' for k, n in enumerate("abcd")) + "</body>" * 4
    (tmp_path / "robot.xml").write_text(f"""<mujoco><compiler angle="radian"/><worldbody>{joints}</worldbody>
      <tendon><fixed name="s"><joint joint="a" coef="1"/><joint joint="b" coef="2"/></fixed>
        <fixed name="t"><joint joint="c" coef="1"/><joint joint="d" coef="-1"/></fixed></tendon>
      <equality><tendon name="power" tendon1="s" tendon2="t" polycoef="0 1 0.5 0.25 0"/></equality></mujoco>""")
    description = fw.read(tmp_path / "robot.xml")
    shifted = dataclasses.replace(description, joints=tuple(dataclasses.replace(j, zero=0.3) for j in description.joints))
    q = np.array([0.1, -0.4, 0.7, 0.2])
    for each in (description, dataclasses.replace(shifted, configurations=())):
        (before,), (after,) = each.closures, silently(each, tmp_path).closures
        np.testing.assert_allclose(after.function(q), before.function(q), atol=1e-14)
