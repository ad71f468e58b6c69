"""Mechanisms of the papers, with general geometry and general inertias."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from featherweight import Description, Joint, JointType, Pose, build, generators

HUMANOID = [-1] + [0 if k % 6 == 0 else k for k in range(24)]  # a torso and four limbs of six bodies each
CHAIN = list(range(-1, 24))


def floating(parents: Sequence[int], seed: int = 0) -> Description:
    """Return a floating base with revolute joints, with the base frame at the joint of the first child.

    The frame of a floating base is the modeller's choice, and Featherstone (2005, section 5) makes the same one: three of
    the four parameters between the base and one of its children are zero. The base's inertia is as general in one frame as
    in another.
    """
    made = generators.from_parents(parents, rng=seed)
    first, *others = made.joints
    base = Joint(first.name, JointType.FLOATING, first.parent, first.child)
    made = replace(made, joints=(base, *others))
    tree, row = build(made).model.tree, base.type.nv
    frame = Pose(tree.rotation[row], tree.translation[row])
    moved = [replace(j, placement=frame.inverse() @ j.placement) if j.parent == base.child else j for j in others]
    return replace(made, joints=(base, *moved))


def branched(n: int, seed: int = 0) -> Description:
    """Return the branched tree of Drumwright (2012, section 6.1), with the expected depth n/2.

    Each link becomes, with probability 0.5, a sibling of an earlier link, otherwise the end of the chain. No link has more
    than two children.
    """
    rng = np.random.default_rng(seed)
    parents, end = [-1], 0
    alone: list[int] = []  # links with one child
    for i in range(1, n):
        if alone and rng.random() < 0.5:
            parents.append(alone.pop(int(rng.integers(len(alone)))))
        else:
            parents.append(end)
            alone.append(end)
            end = i
    return generators.from_parents(parents, rng=rng, name=f"branched_{n}")
