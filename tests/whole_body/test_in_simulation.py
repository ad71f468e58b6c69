"""Whole-body control in closed loop with a simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight as fw
from whole_body.humanoids import CORNERS, FEET, soles, talos, targets

TASKS = (
    fw.CenterOfMassTask(weight=100.0),
    fw.FrameTask("torso_2_link", "orientation", weight=0.5),
    fw.PostureTask(weight=0.01, stiffness=50.0),
    fw.AngularMomentumTask(weight=1e-3),
)
CENTER = "center of mass"


def simulation(**options: Any) -> fw.Simulation:
    robot, q = talos()
    points = [fw.ContactPoint(foot, tuple(corner)) for foot in FEET for corner in CORNERS]
    return fw.Simulation(robot, 1e-3, q=q, spheres=points, shapes=False, ground=fw.Plane(friction=0.8), **options)


def test_a_humanoid_squats_and_shifts_its_weight_for_two_seconds() -> None:
    robot, start = talos()
    sim, wbc, given = simulation(), fw.WholeBodyControl(robot, TASKS, soles()), targets(TASKS, robot, start)
    w, away = np.pi, np.array([0.0, 0.03, -0.08])

    def reference(t: float) -> dict[str, Any]:
        s, c = np.sin(w * t), 0.5 * (1.0 - np.cos(w * t))
        place = given[CENTER] + away * c
        rates = {CENTER: away * 0.5 * w * s}, {CENTER: away * 0.5 * w * w * np.cos(w * t)}
        return {"targets": {**given, CENTER: place}, "velocities": rates[0], "accelerations": rates[1]}

    control = wbc.controller(reference, sim)
    motion = sim.run(2.0, control)
    wanted = np.array([reference(t)["targets"][CENTER] for t in motion.times])
    centers = robot.center_of_mass(motion.q)
    assert np.abs(centers - wanted).max() < 0.004  # dry friction in the joints, which the controller does not know
    assert np.ptp(centers[:, 2]) > 0.07
    feet = robot.frame_placement(FEET)(motion.q)[..., :3, 3]
    assert np.abs(feet - feet[0]).max() < 0.001
    assert control.unsolved == []
    assert control.opened == []


def test_a_planned_contact_that_is_open_is_reported() -> None:
    """The right foot is 2 cm above the ground, but the plan loads both feet."""
    robot, start = talos()
    ik = fw.InverseKinematics(robot, [*map(fw.FrameTask, FEET), fw.PostureTask(priority=1)])
    places = robot.frame_placement(FEET)(start)
    places[1, 2, 3] += 0.02
    q = ik.solve({**dict(zip(FEET, places, strict=True)), "posture": start}, q0=start).q
    sim = simulation()
    sim.reset(q=q)
    wbc = fw.WholeBodyControl(robot, TASKS, soles())
    control = wbc.controller({"targets": targets(TASKS, robot, q)}, sim)
    sim.run(0.02, control)
    first = control.opened[0]
    assert first.name == FEET[1]
    assert first.time == pytest.approx(0.001)  # the first step shows it
    assert first.planned > 100.0
    assert control.result is not None and control.result.open_contacts == (FEET[1],)
    assert len(control.opened) == 1


def test_a_tick_without_a_solution_is_recorded() -> None:
    robot, start = talos()
    sim = simulation()
    v = np.zeros(robot.nv)
    v[robot.joint("arm_left_4_joint").v_slice] = -300.0
    sim.reset(q=start, v=v)
    control = fw.WholeBodyControl(robot, TASKS, soles()).controller({"targets": targets(TASKS, robot, start)}, sim)
    sim.run(0.002, control)
    assert control.unsolved[0].time == 0.0
    assert control.unsolved[0].status == "infeasible"
    assert control.unsolved[0].blocking


def test_two_contacts_of_one_body_need_measurements() -> None:
    robot, _ = talos()
    heel_and_toe = [fw.UnilateralContact(FEET[0], CORNERS[k : k + 2], name=name) for k, name in ((0, "heel"), (2, "toe"))]
    wbc = fw.WholeBodyControl(robot, TASKS, heel_and_toe)
    with pytest.raises(ValueError, match="two of the body 'leg_left_6_link'"):
        wbc.controller({}, simulation())
