"""Which kernel a robot with loops runs, and that those of mechanisms are those of trees where nothing closes."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pytest

import featherweight as fw
from featherweight.algorithms import aba, inverse
from featherweight.algorithms.contact.delassus import kjr
from featherweight.algorithms.mechanisms import aba as cluster_aba
from featherweight.algorithms.mechanisms.registry import for_mechanism
from oracles.mechanisms import MECHANISMS


def built(name: str) -> fw.ClosedRobot:
    robot = fw.build(MECHANISMS[name](), execution="interpreted")
    assert isinstance(robot, fw.ClosedRobot)
    return robot


def test_a_kernel_without_counterpart_is_refused_by_name() -> None:
    robot = built("four_bar")
    assert robot.kernel(aba.aba) is cluster_aba.aba
    for kernel in (inverse.inverse_global, kjr.kjr):
        with pytest.raises(NotImplementedError, match=f"{kernel.__module__}.{kernel.__name__} has no kernel for mechanisms"):
            robot.kernel(kernel)


def test_two_kernels_for_one_are_refused() -> None:
    with pytest.raises(ValueError, match=r"algorithms\.aba\.aba has two kernels for mechanisms"):
        for_mechanism(aba.aba)(cluster_aba.aba_external)


@pytest.mark.parametrize("name", ["four_bar", "geared", "platform"])
def test_every_function_of_a_closed_robot_has_its_kernel(name: str) -> None:
    robot = built(name)
    members = {n for c in (fw.Robot, fw.ClosedRobot) for n, x in vars(c).items() if isinstance(x, cached_property)}
    of_trees = {"_integrate", "_free_velocity", "_carry"}  # not on the manifold of closed configurations
    made = [x for n in members - of_trees if isinstance(x := getattr(robot, n), fw.CompiledFunction)]
    frame = robot.frames[-1].name
    made += [robot.frame_placement(frame), robot.frame_jacobian(frame), robot.frame_velocity(frame)]
    made += [robot.frame_bias_acceleration(frame)]
    for constraint in (fw.Contact(frame, "point"), fw.CenterOfMass()):
        space = robot.operational_space([constraint])
        made += [space.delassus(a) for a in space.delassus().candidates]
        for n, x in vars(fw.OperationalSpace).items():
            contacts_only = n in ("placements", "stabilization") and not space.contacts
            independent_only = n in ("inertia", "consistent_inverse", "null_space_projector") and space.dependence
            if isinstance(x, cached_property) and not contacts_only and not independent_only:
                made += [f] if isinstance(f := getattr(space, n), fw.CompiledFunction) else []
    assert len(made) > 20
    for function in made:
        assert function.program.constants[0] is robot.mechanism
    q = robot.random_configuration(0)
    assert np.isfinite(robot.solve_mass_matrix(q, np.eye(robot.nv))).all() and (robot.factorize(q).D > 0.0).all()
