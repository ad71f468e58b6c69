"""Wensing, Featherstone and Orin (2012): costs of single operations and of whole algorithms at the paper's prices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any

import featherstone2005_humanoid
from costs import Cost, cost
from wensing2012_mechanisms import Mechanism, function, robot

from featherweight.algorithms.contact.contact_rows import wrench
from featherweight.algorithms.contact.delassus import kjr
from featherweight.algorithms.kinematics import joint_transform
from featherweight.engine.graph import Expression
from featherweight.engine.trace import count, trace
from featherweight.model.topology import Topology
from featherweight.spatial import ArticulatedInertia, Force, Mat3, Motion, Sym3, Vec3
from featherweight.spatial.inertia import Mobility

# ---- the appendix's steps, at the joint of the base's privileged child


def appendix(mechanism: Mechanism) -> dict[str, Cost]:
    """Return the costs in our functions of the operations in the appendix, for arguments without zeros."""
    tree = robot(mechanism).model.tree
    j = tree.last[0] + 1

    def of(size: int, function: Callable[..., Iterable[Any]], row: int = j) -> Cost:
        """Return the cost of a function of the joint's transform and of `size` unknowns, without the transform itself."""

        def run(q: list[Expression], x: list[Expression]) -> list[Any]:
            return list(function(joint_transform(tree, row, q), x))

        def only(q: list[Expression], x: list[Expression]) -> list[Any]:
            return [*joint_transform(tree, row, q).turn]

        sizes = [robot(mechanism).nq, size]
        return cost(count(trace(run, sizes))) - cost(count(trace(only, sizes)))

    k = tree.axis[j]
    ends = function(mechanism, mechanism.hands[:2], "kjr").program.kernels[0].constants[1]
    here, there = ([wrench(ends, r) for r in rows] for rows in (range(6), range(6, 12)))
    return {
        "inertia to the base": of(21, lambda X, x: _scalars(X.inertia_to_parent(_inertia(x).without(k)))),
        "inertia added there": of(42, lambda X, x: _added(X, x, k)) - of(21, lambda X, x: _moved(X, x, k)),
        "6 × 6 block to the child": of(36, lambda X, x: [y for m in _motions(x) for y in _scalars(X @ m)]),
        "symmetric block to the child": of(21, lambda X, x: _scalars(X.mobility_to_child(Mobility(_inertia(x))))),
        "symmetric block to an end-effector": of(21, lambda X, x: _ends(Mobility(_inertia(x)), here)),
        "6 × 6 block to two end-effectors": of(
            36, lambda X, x: [f.power(m) for m in (kjr.acceleration_by_symmetry(_motions(x), f) for f in here) for f in there]
        ),
        "wrench to the parent": of(36, lambda X, x: _scalars(X.force_to_parent(_cut(x)[0])), j + 1),
        "motion to the child": of(36, lambda X, x: _scalars(X @ _motions(x)[0]), j + 1),
        "6 × 6 product": of(72, lambda X, x: [f.power(m) for f in _forces(x[36:]) for m in _motions(x[:36])]),
        "6 × 6 product, a row of zeros": of(72, lambda X, x: [f.power(m) for f in _cut(x[36:]) for m in _motions(x[:36])]),
    }


def _moved(X: Any, x: Sequence[Any], k: int) -> list[Any]:
    return _scalars(X.inertia_to_parent(_inertia(x[:21]).without(k)))


def _added(X: Any, x: Sequence[Any], k: int) -> list[Any]:
    return _scalars(_inertia(x[21:]) + X.inertia_to_parent(_inertia(x[:21]).without(k)))


def _ends(O: Mobility, forces: Sequence[Force]) -> list[Any]:
    """Return the lower triangle of an end-effector's diagonal block."""
    return [f.power(O.motion(forces[r])) for r in range(6) for f in forces[: r + 1]]


def _inertia(x: Sequence[Any]) -> ArticulatedInertia:
    return ArticulatedInertia(Sym3(*x[:6]), Mat3(Vec3(*x[6:9]), Vec3(*x[9:12]), Vec3(*x[12:15])), Sym3(*x[15:21]))


def _motions(x: Sequence[Any]) -> list[Motion]:
    return [Motion(Vec3(*x[i : i + 3]), Vec3(*x[i + 3 : i + 6])) for i in range(0, 36, 6)]


def _forces(x: Sequence[Any]) -> list[Force]:
    return [Force(Vec3(*x[i : i + 3]), Vec3(*x[i + 3 : i + 6])) for i in range(0, 36, 6)]


def _cut(x: Sequence[Any]) -> list[Force]:
    """Return forces without a moment about the axis of the privileged child."""
    return [f.replaced(2, 0.0) for f in _forces(x)]


def _scalars(x: Any) -> list[Any]:
    """Return the numbers of nested tuples."""
    return [y for item in x for y in _scalars(item)] if isinstance(x, tuple) else [x]


# ---- the algorithm of the paper's table I

DH, OTHER, PRIVILEGED = 32, 42, 12  # flops to move a vector over a joint: Featherstone (2005), section 5
JOINT_INWARD, JOINT_OUTWARD = 10, 11  # additional flops of a row of X L and of a column of L X + K X^T, for a revolute joint
INVERSE, PRODUCT, ROW = 231, 396, 72  # the appendix: K of the base, a 6 by 6 product, and its savings by a row of zeros


def by_table1(mechanism: Mechanism, ends: Sequence[int]) -> dict[str, int]:
    """Return flops of the steps of table I with full matrices, at the paper's prices.

    Among the children of a body, the child with the most descendants has a joint with Denavit-Hartenberg parameters; on the
    base, it is the first child.
    """
    p = mechanism.parents
    size = [sum(_carries(p, i, j) for j in range(len(p))) for i in range(len(p))]
    children = [[i for i, above in enumerate(p) if above == b] for b in range(len(p))]
    favoured = {max(c, key=size.__getitem__) for c in children[1:] if c} | {children[0][0]}
    inward = outward = 0
    for k in ends:
        for i in range(1, len(p)):
            if _carries(p, i, k):
                vector = PRIVILEGED if i == children[0][0] else DH if i in favoured else OTHER
                inward += 6 * (vector + JOINT_INWARD)
                outward += 6 * (vector + JOINT_OUTWARD)
    at_base = [PRODUCT - ROW * _carries(p, children[0][0], k) for k in ends]
    return {
        "inward": inward,
        "outward": outward,
        "base": INVERSE + sum(at_base),
        "diagonal blocks": 6 * OTHER * len(ends),
        "other blocks": PRODUCT * len(ends) * (len(ends) - 1) // 2,
    }


def _carries(parents: Sequence[int], i: int, j: int) -> bool:
    """Return whether body i supports body j (or is body j)."""
    while j > i:
        j = parents[j]
    return j == i


def sfa_by_formulae(mechanism: Mechanism, ends: Sequence[int]) -> dict[str, int]:
    """Return flops of the sparse factorization algorithm by the formulas of Featherstone (2005), without the Jacobian.

    A row of Y needs a division and a row of L for each joint on its path; an entry of Y Y^T needs a product for each joint
    that supports both end-effectors.
    """
    depth = [d + 5 for d in Topology(mechanism.parents).depth]
    every = [1, 2, 3, 4, 5, *depth]
    formed = featherstone2005_humanoid.crba_formula(featherstone2005_humanoid.crba_quantities(mechanism.parents))
    meet = [depth[_meeting(mechanism.parents, e, f)] for e, f in combinations(ends, 2)]
    return {
        "inertias": formed.m + formed.a,
        "factors": sum(1 + (d - 1) + d * (d - 1) for d in every),
        "outward": sum(6 * depth[e] + 6 * depth[e] * (depth[e] - 1) for e in ends),
        "diagonal blocks": sum(21 * (2 * depth[e] - 1) for e in ends),
        "other blocks": sum(36 * (2 * d - 1) for d in meet),
    }


def _meeting(parents: Sequence[int], e: int, f: int) -> int:
    return max(i for i in range(len(parents)) if _carries(parents, i, e) and _carries(parents, i, f))
