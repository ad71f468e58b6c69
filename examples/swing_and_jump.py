"""Optimal control: a double pendulum, driven only at its shoulder, swings up, and a leg with a closed chain jumps.

    python examples/swing_and_jump.py [--output output]        needs matplotlib: pip install 'featherweight[demo]'

The picture is swing_and_jump.png.
"""

import time
from dataclasses import replace

import numpy as np
from pictures import output_folder, picture_of_jump

import featherweight as fw


def pendulum():
    """Return the problem, its start and its goal: two rods of 0.5 m and 1 kg swing up in 2.5 s."""
    rod, end = fw.Inertia(1.0, (0.0, 0.0, -0.25), (0.02, 0.0, 0.0, 0.02, 0.0, 1e-4)), fw.Pose(p=(0.0, 0.0, -0.5))
    shoulder = fw.Joint("shoulder", fw.JointType.CONTINUOUS, None, "upper", axis=(0.0, 1.0, 0.0))
    elbow = fw.Joint("elbow", fw.JointType.CONTINUOUS, "upper", "lower", end, (0.0, 1.0, 0.0))
    bodies, frames = [fw.Body("upper", rod), fw.Body("lower", rod)], [fw.Frame("tip", "lower", end)]
    robot = fw.build(fw.describe(bodies, [shoulder, elbow], frames=frames, name="double pendulum"))

    ocp = fw.OptimalControl(robot, step=0.02, knots=125, driven=["shoulder"])
    ocp.add(fw.PostureTask(), weight=1e4, at="end")
    ocp.add(fw.JointVelocities(), weight=np.append(np.full(125, 0.1), 1e3))
    ocp.add(fw.Effort(), weight=0.1)
    return ocp, np.zeros(2), np.array([np.pi, 0.0])


def leg(apex=0.35):
    """Return the problem of a leg linkage under a trunk on a vertical slider: 0.1 s of stance, 0.2 s up to the apex [m]."""
    d = fw.robots.planar_leg_linkage()
    slider = fw.Joint("slider", fw.JointType.PRISMATIC, None, "trunk", axis=(1.0, 0.0, 0.0))
    hip, *others = d.joints
    d = replace(
        d,
        bodies=(fw.Body("trunk", fw.Inertia(0.6)), *d.bodies),
        joints=(slider, replace(hip, parent="trunk"), *others),
        frames=(fw.Frame("toe", "foot", fw.Pose(p=(0.127, 0.0, 0.0))),),
        gravity=(-9.81, 0.0, 0.0),
        independent=("slider", *d.independent),
    )
    robot = fw.build(d).with_armature({"base_to_thigh": 2e-3, "thigh_to_driver": 2e-3})  # of the drives
    crouching, standing = np.array([0.1034, 3.9099, -2.3, 2.3, -2.3]), np.array([0.1765, 3.7269, -1.5, 1.5, -1.5])

    drives, toe = ["base_to_thigh", "thigh_to_driver"], fw.BilateralContact("toe", rows=np.eye(6)[:2])
    ocp = fw.OptimalControl(robot, step=0.0025, phases=[fw.Phase(40, [toe]), fw.Phase(80)], driven=drives)
    ocp.add(fw.PostureTask(["slider"], name="height"), weight=1e4, at="end")
    ocp.add(fw.PostureTask(drives, name="bend"), weight=np.append(np.full(120, 0.1), 10.0))
    ocp.add(fw.JointVelocities([0.0, 0.1, 0.1]), weight=np.append(np.full(120, 1.0), 10.0))
    ocp.add(fw.JointVelocities([1.0, 0.0, 0.0], name="speed of the trunk"), weight=1e3, at="end")
    ocp.add(fw.Effort(), weight=1.0)
    return ocp, crouching, np.array([apex, *standing[1:]])


def solve(ocp, start, goal):
    """Return the plan. The first solution compiles, so the second one is timed."""
    targets = {name: goal for name, task in ocp.terms.items() if isinstance(task, fw.PostureTask)}
    ocp.solve(start, targets=targets)
    begun = time.perf_counter()
    plan = ocp.solve(start, targets=targets)
    passed = 1e3 * (time.perf_counter() - begun)
    if not plan.converged:
        raise RuntimeError(f"{ocp}: {plan.reason}")
    print(f"{ocp.robot.name}: {plan.iterations} iterations in {passed:.1f} ms, cost {plan.cost:.4f}")
    return plan


def push(ocp, plan):
    """Return the ground force on the toe (stance, 2), upward and sideways [N]."""
    force = ocp.contact_forces(plan)[0]
    rows = ocp.robot.frame_placement("toe")(plan.q[: len(force)])[:, :2, :2]
    return np.einsum("nij,nj->ni", rows, force)


def main():
    output = output_folder(__doc__)
    swing, jump = pendulum(), leg()
    swung, jumped = solve(*swing), solve(*jump)
    force = push(jump[0], jumped)
    print(f"The pendulum is upright to {abs(swung.q[-1] - swing[2]).max():.1g} rad.")
    print(f"The leg's apex is at {jumped.q[-1, 0]:.4f} m of {jump[2][0]} m; at least {force[:, 0].min():.1f} N push its toe.")
    picture_of_jump(output / "swing_and_jump.png", (swing[0], swung), (jump[0], jumped, jump[2]), force)


if __name__ == "__main__":
    main()
