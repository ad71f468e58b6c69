"""Tests of random robots, edited in several ways: attached, locked, saved, mirrored, renamed, cut and reassembled."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import featherweight as fw
from featherweight import Coupling, Frame, JointType, Pose
from featherweight.model.generators import random_tree
from featherweight.model.types import as_matrix, as_vector
from oracles.same_motion import assert_same_motion, interpreted
from oracles.trees import awkward


def pose(rng: np.random.Generator) -> Pose:
    R = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    R *= np.linalg.det(R)
    return Pose(as_matrix(R), as_vector(rng.uniform(-0.3, 0.3, 3)))


def robot(rng: np.random.Generator) -> fw.Description:
    """Return a tree with joints of all types, anchors, zeros, frames and a gear."""
    n = int(rng.integers(3, 6))
    tree = random_tree(n, rng=int(rng.integers(1000)), masses=(0.1, 10.0))
    fixed = [j.name != "joint0" and rng.random() < 0.2 for j in tree.joints]
    joints = [dataclasses.replace(j, type=JointType.FIXED) if f else j for j, f in zip(tree.joints, fixed, strict=True)]
    tree = awkward(dataclasses.replace(tree, joints=tuple(joints)), rng)
    joints = list(tree.joints)
    frames = (Frame("ground", None, pose(rng)), Frame("eye", f"body{rng.integers(n)}", pose(rng)))
    one = [j.name for j in joints if j.type.nv == 1]
    if len(one) > 1:  # random configurations ignore the limits of followers
        joints = [dataclasses.replace(j, lower=-np.inf, upper=np.inf) if j.name == one[1] else j for j in joints]
    gear = [Coupling("gear", one[1], ((one[0], (float(rng.uniform(0.5, 2.0)),)),), 0.1)] if len(one) > 1 else []
    return dataclasses.replace(tree, joints=tuple(joints), frames=frames, couplings=tuple(gear))


@pytest.mark.parametrize("seed", range(8))
def test_edits_agree_with_one_another(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    description = robot(rng).attached(robot(rng), str(rng.choice(["ground", "eye", "body1"])), pose(rng), prefix="b_")
    whole = interpreted(description)
    description.save(tmp_path / "whole.urdf")
    assert_same_motion(interpreted(fw.read(tmp_path / "whole.urdf")), whole)
    assert_same_motion(interpreted(description.mirrored("y").mirrored("y")), whole)
    followers = {c.joint for c in description.couplings}
    q = whole.random_configuration(rng=rng)
    held = {j.name: q[j.q_slice] for j in whole.joints[1:] if j.name not in followers and rng.random() < 0.4}
    locked = description.locked(held)
    part = interpreted(locked)
    assert_same_motion(part, whole, held)
    new = {b.name: f"new_{b.name}" for b in locked.bodies}
    assert_same_motion(interpreted(locked.renamed(new)), part, called={new: old for old, new in new.items()})
    hand = next(j for j in description.joints if j.child == "b_body0")
    if hand.type is JointType.FIXED and hand.parent is not None:
        again = description.without("b_body0").attached(description.subtree("b_body0"), hand.parent, hand.placement)
        assert_same_motion(interpreted(again), whole)
