"""Talos squats and shifts its weight: whole-body control by a quadratic program in each tick, in simulation.

    python examples/whole_body_control.py [--output output]        pip install 'featherweight[demo]'

The centre of mass follows its reference, the feet do not move, the forces stay within friction cones, and the torques within
effort limits. The picture is whole_body_control.png.
"""

import time
from types import SimpleNamespace

import numpy as np
from guide_pictures import output_folder, picture_of_balance

import featherweight as fw

FEET = ["left_sole_link", "right_sole_link"]
CORNERS = np.array([(x, y, 0.0) for x in (-0.1, 0.1) for y in (-0.06, 0.06)])  # of a sole [m]
FRICTION = 0.6  # assumed by the controller; the ground has 0.8
STEP, PERIOD = 1e-3, 2.0  # [s]
SHIFT, SQUAT = 0.03, 0.08  # [m]
CENTER = "center of mass"


def standing():
    """Return Talos and its half sitting configuration on flat feet."""
    robot = fw.load(fw.example("talos_reduced"), base="floating", srdf=fw.example("talos.srdf"))
    q = robot.configurations["half_sitting"]
    soles = robot.frame_placement(FEET)(q)
    soles[:, :3, :3], soles[:, 2, 3] = np.eye(3), 0.0
    ik = fw.InverseKinematics(robot, [*map(fw.FrameTask, FEET), fw.PostureTask(priority=1)])
    return robot, ik.solve({**dict(zip(FEET, soles, strict=True)), "posture": q}, q0=q).q


def wanted(t, start):
    """Return desired position, velocity and acceleration (3) of the centre of mass: left, right, and down once per period."""
    w, A, B = 2.0 * np.pi / PERIOD, SHIFT / 1.3, 0.5 * SQUAT  # 1.3 is the amplitude of the sum of sines
    s, c, s2, c2 = np.sin(w * t), np.cos(w * t), np.sin(2.0 * w * t), np.cos(2.0 * w * t)
    place = start + np.array([0.0, A * (s - 0.5 * s2), B * (c - 1.0)])
    return place, np.array([0.0, A * w * (c - c2), -B * w * s]), np.array([0.0, A * w * w * (2.0 * s2 - s), -B * w * w * c])


def control_of(robot, q):
    """Return the controller: momentum, then posture and an upright trunk, on both soles."""
    tasks = [
        fw.CenterOfMassTask(weight=100.0),
        fw.AngularMomentumTask(weight=0.01, damping=5.0),
        fw.FrameTask("torso_2_link", "orientation", weight=1.0),
        fw.PostureTask(weight=0.01, stiffness=50.0),
    ]
    wbc = fw.WholeBodyControl(robot, tasks, [fw.UnilateralContact(foot, CORNERS, friction=FRICTION) for foot in FEET])
    trunk = robot.frame_placement("torso_2_link", q)[:3, :3]
    wbc(q, np.zeros(robot.nv), {CENTER: robot.center_of_mass(q), "torso_2_link": trunk, "posture": q})
    return wbc


def solve(duration=PERIOD):
    """Simulate; return the robot, the controller of the simulation, planned loads, the times of ticks, and the motion."""
    robot, q = standing()
    corners = [fw.ContactPoint(foot, tuple(corner)) for foot in FEET for corner in CORNERS]
    sim = fw.Simulation(robot, STEP, q=q, spheres=corners, shapes=False, ground=fw.Plane(friction=0.8))
    start, planned, ticks = robot.center_of_mass(q), [], []

    def reference(t):
        place, speed, acceleration = wanted(t, start)
        return {"targets": {CENTER: place}, "velocities": {CENTER: speed}, "accelerations": {CENTER: acceleration}}

    follow = control_of(robot, q).controller(reference, sim)

    def controller(t, q, v):
        begun = time.process_time()
        tau = follow(t, q, v)
        ticks.append(time.process_time() - begun)
        planned.append(follow.result.wrenches[:, 2])
        return tau

    control = SimpleNamespace(start=start, planned=planned, ticks=ticks, follow=follow)
    return SimpleNamespace(robot=robot, control=control, motion=sim.run(duration, controller))


def balance(found):
    """Return actual and desired centre of mass (T, 3), and zero-moment point and foot loads (T - 1, 2) of each step."""
    motion = found.motion
    center = found.robot.center_of_mass(motion.q)
    asked = np.array([wanted(t, found.control.start)[0] for t in motion.times])
    touching = [motion.contacts(k) for k in range(1, len(motion))]
    zmp = np.array([f[:, 2] @ p[:, :2] / f[:, 2].sum() for p, f in touching])
    loads = np.array([[f[side * p[:, 1] > 0.0, 2].sum() for side in (1, -1)] for p, f in touching])
    return SimpleNamespace(times=motion.times, center=center, asked=asked, zmp=zmp, loads=loads)


def main():
    output = output_folder(__doc__)
    found = solve()
    seen, ticks = balance(found), 1e3 * np.array(found.control.ticks)
    off = abs(seen.center - seen.asked).max()
    soles = found.robot.frame_placement(FEET)(found.motion.q)[..., :3, 3]
    print(f"Largest errors: centre of mass {1e3 * off:.2f} mm, feet {1e3 * abs(soles - soles[0]).max():.2f} mm")
    print(f"A tick takes {np.median(ticks):.3f} ms (median; 99 % quantile {np.percentile(ticks, 99):.3f})")
    print(f"Contacts that opened: {found.control.follow.opened}; ticks without a solution: {found.control.follow.unsolved}")
    edge = np.min(soles[0, :, 1]) - 0.06, np.max(soles[0, :, 1]) + 0.06  # outer edges of the feet [m]
    print(
        f"Zero-moment point at least {1e3 * min(seen.zmp[:, 1].min() - edge[0], edge[1] - seen.zmp[:, 1].max()):.0f} mm inside"
    )
    picture_of_balance(output / "whole_body_control.png", found, seen, soles[0, :, None] + CORNERS)


if __name__ == "__main__":
    main()
