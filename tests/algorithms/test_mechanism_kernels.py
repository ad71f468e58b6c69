"""Tests of the choice of a kernel for robots with loops; without loops, kernels of mechanisms equal those of trees."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
import pytest
from compared import candidate

import featherweight as fw
import featherweight.robot.closed  # registers kernels for mechanisms
from featherweight.algorithms import aba
from featherweight.algorithms.contact import contact_rows
from featherweight.algorithms.contact.delassus import kjr
from featherweight.algorithms.contact.operational_space.recursive import pv_osim_rows
from featherweight.algorithms.mechanisms import aba as cluster_aba
from featherweight.algorithms.mechanisms.cluster_tree import Cluster, ClusterTree
from featherweight.algorithms.mechanisms.counterparts import counterpart, for_mechanism
from featherweight.engine.operations import Operations
from featherweight.engine.program import KernelProgram, Program
from featherweight.engine.trace import count, trace
from featherweight.model.generators import balanced_tree_parents, from_parents, short_side_branches_parents, unbranched_parents
from featherweight.model.tree import Tree
from oracles.spanning import mechanism as built


def test_a_kernel_without_counterpart_is_refused_by_name() -> None:
    robot = built("four_bar")
    assert robot._kernel(aba.aba) is cluster_aba.aba
    for kernel in (contact_rows.contact_jacobian, kjr.kjr):
        with pytest.raises(NotImplementedError, match=f"{kernel.__module__}.{kernel.__name__} has no kernel for mechanisms"):
            robot._kernel(kernel)


def test_two_kernels_for_one_are_refused() -> None:
    with pytest.raises(ValueError, match=r"algorithms\.aba\.aba has two kernels for mechanisms"):
        for_mechanism(aba.aba)(cluster_aba.inward_row)


@pytest.mark.parametrize("name", ["four_bar", "geared", "platform"])
def test_every_function_of_a_closed_robot_has_its_kernel(name: str) -> None:
    robot = built(name)
    made = list(robot.functions.values())
    steps = robot.step_functions  # free_velocity and carry do not depend on q
    made += [f for f in (steps.integrate, steps.advance, steps.spanning_map, steps.closing_step) if f is not None]
    frame = robot.frames[-1].name
    made += [robot.frame_placement(frame), robot.frame_jacobian(frame), robot.frame_velocity(frame)]
    made += [robot.frame_bias_acceleration(frame)]
    for constraint in (fw.BilateralContact(frame, "point"), fw.CenterOfMass()):
        space = robot.operational_space([constraint])
        made += [space.delassus(a) for a in space.delassus().candidates]
        for n, x in vars(fw.OperationalSpace).items():
            contacts_only = n in ("placements", "stabilization", "stabilized_derivatives") and not space.contacts
            independent_only = n in ("inertia", "consistent_inverse", "null_space_projector") and space.dependence
            if isinstance(x, cached_property) and not contacts_only and not independent_only:
                made += [f] if isinstance(f := getattr(space, n), fw.CompiledFunction) else []
    assert len(made) > 60
    for function in made:
        systems = [kernel.constants[0] for kernel in function.program.kernels if kernel.constants]
        assert any(system is robot._mechanism for system in systems), function.name
        assert len(systems) == 1 or not isinstance(function.program, KernelProgram)
    q = robot.random_configuration(rng=0)
    assert np.isfinite(robot.solve_mass_matrix(q, np.eye(robot.nv))).all() and (robot.factorize(q).D > 0.0).all()


def without_loops(tree: Tree) -> ClusterTree:
    """Return a tree as a mechanism whose clusters are its joints."""
    n = len(tree.parent)
    starts = [j for j in range(n) if tree.first[j] == j]
    rows = [tuple(range(j, tree.last[j] + 1)) for j in starts]
    clusters = tuple(Cluster(r, (p,) if (p := tree.parent[r[0]]) >= 0 else (), r[0], r, (), (), (), (), (), ()) for r in rows)
    owner = tuple(starts.index(tree.first[j]) for j in range(n))
    return ClusterTree(tree, clusters, (), owner, tuple(tree.parent))


def rooted(kind: fw.JointType, description: fw.Description) -> fw.Description:
    """Return the mechanism with another type of joint at the root."""
    first, *others = description.joints
    return replace(description, joints=(fw.Joint(first.name, kind, first.parent, first.child), *others))


ELSEWHERE = ("forward_dynamics", "inverse_mass_matrix", "coriolis_matrix", "centroidal_map_rate")
"""Functions that mechanisms compute by other algorithms, or by one of a tree's."""

MIXED = ("revolute", "prismatic")
TREES = {
    "chain with slides": from_parents(unbranched_parents(6), rng=1, joint_types=MIXED),
    "branches": from_parents(short_side_branches_parents(3), rng=2),
    "flying branches": rooted(fw.JointType.FLOATING, from_parents(balanced_tree_parents(3), rng=3, joint_types=MIXED)),
    "branches on a ball": rooted(fw.JointType.SPHERICAL, from_parents(short_side_branches_parents(2), rng=4)),
    "chain in a plane": rooted(fw.JointType.PLANAR, from_parents(unbranched_parents(4), rng=5)),
}


@pytest.mark.parametrize("name", TREES)
def test_kernels_of_mechanisms_take_the_operations_of_the_trees_where_nothing_closes(name: str) -> None:
    robot = fw.build(TREES[name], execution="interpreted")
    mechanism = without_loops(robot.model.tree)._replace(position=tuple(range(robot.nq)))
    frames = [robot.frames[-1].name, robot.frames[len(robot.frames) // 2].name]
    space = robot.operational_space([fw.BilateralContact(f) for f in frames])
    rows = robot.operational_space([fw.CenterOfMass(), fw.Difference(*frames)])
    few = robot.operational_space([fw.BilateralContact(f, rows=np.eye(6)[k:2]) for k, f in enumerate(frames)])
    of_contacts = (few.inertia, few.bias, few.apply_delassus, few.consistent_inverse, few.null_space_projector)
    functions = [
        *(f for n, f in robot.functions.items() if n not in ELSEWHERE and isinstance(f.program, KernelProgram)),
        candidate(robot.forward_dynamics, "aba"),
        robot.frame_placement(frames),
        *(f(frames, r) for r in ("local", "world") for f in (robot.frame_jacobian, robot.frame_velocity)),
        *(robot.frame_bias_acceleration(frames, r) for r in ("local", "local_world_aligned", "world")),
        *(space.delassus(a) for a in ("efpa", "pv-osimr")),
        rows.jacobian,
        *(rows.delassus(a) for a in ("pv-osim", "ltl")),
        *(candidate(f, "ltl") if f.candidates else f for f in (rows.bias, rows.apply_delassus, rows.constrained_dynamics)),
        space.stabilization,
        *(candidate(f, a) for f in (*of_contacts, few.constrained_dynamics, space.constrained_dynamics) for a in f.candidates),
        candidate(robot.inverse_mass_matrix, "local"),
    ]
    for function in functions:
        [program] = function.program.kernels
        assert program.constants[0] is robot.model.tree
        kernel = counterpart(program.kernel)
        of_clusters = replace(program, kernel=kernel, constants=(mechanism, *program.constants[1:]))
        found, expected = operations(of_clusters), operations(program)
        if program.kernel is pv_osim_rows:  # sums over joints begin at the other end; equal partial sums differ
            found, expected = found._replace(add=0), expected._replace(add=0)
        assert found == expected, (function.name, program.kernel)


def operations(program: Program) -> Operations:
    return count(trace(program.flat, [a.size for a in program.inputs]))
