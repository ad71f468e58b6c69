"""Optimal control: a double pendulum, driven only at its shoulder, swings up, and a leg with a closed chain jumps.

    python examples/swing_and_jump.py [--output output]        pip install 'featherweight[demo]'

The picture is swing_and_jump.png, and the animation of the leg swing_and_jump.gif.
"""

import time
from dataclasses import replace

import numpy as np
from pictures import film, output_folder, picture_of_jump

import featherweight as fw

UPRIGHT = ((0.0, 0.0, -1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))  # turns x up
STEEL, BLUE, DARK, RUBBER = (0.62, 0.66, 0.71, 1.0), (0.18, 0.43, 0.71, 1.0), (0.2, 0.22, 0.26, 1.0), (0.77, 0.31, 0.18, 1.0)


def pendulum():
    """Return the problem, its start and its goal: two rods of 0.5 m and 1 kg swing up in 2.5 s."""
    rod, end = fw.Inertia(1.0, (0.0, 0.0, -0.25), (0.02, 0.0, 0.0, 0.02, 0.0, 1e-4)), fw.Pose(p=(0.0, 0.0, -0.5))
    shoulder = fw.Joint("shoulder", fw.JointType.CONTINUOUS, None, "upper", axis=(0.0, 1.0, 0.0))
    elbow = fw.Joint("elbow", fw.JointType.CONTINUOUS, "upper", "lower", end, (0.0, 1.0, 0.0))
    bodies, frames = [fw.Body("upper", rod), fw.Body("lower", rod)], [fw.Frame("tip", "lower", end)]
    robot = fw.build(fw.describe(bodies, [shoulder, elbow], frames=frames, name="double pendulum"))

    ocp = fw.OptimalControl(robot, dt=0.02, knots=125, driven=["shoulder"])
    ocp.add(fw.PostureTask(), weight=1e4, at="end")
    ocp.add(fw.JointVelocities(), weight=np.append(np.full(125, 0.1), 1e3))
    ocp.add(fw.Effort(), weight=0.1)
    return ocp, np.zeros(2), np.array([np.pi, 0.0])


def leg(apex=0.35):
    """Return the problem of a leg linkage under a trunk on a vertical slider: 0.1 s of stance, 0.2 s up to the apex [m]."""
    d = fw.robots.planar_leg_linkage()
    slider = fw.Joint("slider", fw.JointType.PRISMATIC, None, "trunk", fw.Pose(UPRIGHT), (1.0, 0.0, 0.0))
    hip, *others = d.joints
    d = replace(
        d,
        bodies=(fw.Body("trunk", fw.Inertia(0.6)), *d.bodies),
        joints=(slider, replace(hip, parent="trunk"), *others),
        frames=(fw.Frame("toe", "foot", fw.Pose(p=(0.127, 0.0, 0.0))),),
        shapes=tuple(leg_shapes()),
        independent=("slider", *d.independent),
    )
    robot = fw.build(d).with_armature({"base_to_thigh": 2e-3, "thigh_to_driver": 2e-3})  # of the drives
    crouching, standing = np.array([0.1034, 3.9099, -2.3, 2.3, -2.3]), np.array([0.1765, 3.7269, -1.5, 1.5, -1.5])

    drives, toe = ["base_to_thigh", "thigh_to_driver"], fw.BilateralContact("toe", rows=np.eye(6)[:2])
    ocp = fw.OptimalControl(robot, dt=0.0025, phases=[fw.Phase(40, [toe]), fw.Phase(80)], driven=drives)
    ocp.add(fw.PostureTask(["slider"], name="height"), weight=1e4, at="end")
    ocp.add(fw.PostureTask(drives, name="bend"), weight=np.append(np.full(120, 0.1), 10.0))
    ocp.add(fw.JointVelocities([0.0, 0.1, 0.1]), weight=np.append(np.full(120, 1.0), 10.0))
    ocp.add(fw.JointVelocities([1.0, 0.0, 0.0], name="speed of the trunk"), weight=1e3, at="end")
    ocp.add(fw.Effort(), weight=1.0)
    return ocp, crouching, np.array([apex, *standing[1:]])


def leg_shapes():
    """Yield the shapes of the leg, for pictures: bars along x, side by side along z, and the trunk on its rail."""
    bars = (
        ("thigh", 0.0, 0.042, 0.0, 0.009, STEEL),
        ("shank_driver", 0.0, 0.096, 0.013, 0.005, BLUE),
        ("shank_support", 0.0, 0.096, -0.013, 0.007, DARK),
        ("foot", 0.0, 0.127, 0.0, 0.005, STEEL),
    )
    visual = {"collision": False}
    for body, begin, end, z, radius, color in bars:
        middle = fw.Pose(UPRIGHT, (0.5 * (begin + end), 0.0, z))
        yield fw.Shape(f"{body} bar", body, fw.ShapeType.CAPSULE, (radius, end - begin), middle, color=color, **visual)
    yield fw.Shape("toe", "foot", fw.ShapeType.SPHERE, (0.009,), fw.Pose(p=(0.127, 0.0, 0.0)), color=RUBBER, **visual)
    yield fw.Shape("trunk", "trunk", fw.ShapeType.BOX, (0.05, 0.09, 0.07), fw.Pose(p=(0.02, 0.0, 0.0)), color=BLUE, **visual)
    rail = fw.Pose(p=(-0.05, 0.0, 0.2))
    yield fw.Shape("rail", None, fw.ShapeType.CYLINDER, (0.006, 0.6), rail, color=STEEL, **visual)


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
    rows = ocp.robot.frame_placement("toe")(plan.q[: len(force)])[:, 2:0:-1, :2]
    return np.einsum("nij,nj->ni", rows, force)


def film_of_jump(path, ocp, plan, slower=8.0):
    """Save an animation of every other knot; it stays at the apex for half a second."""
    toe = ocp.robot.frame_placement("toe")(plan.q[0])[2, 3]
    camera = (0.6, -0.22, 0.34 + toe), (0.0, 0.02, 0.21 + toe)
    rate = 1.0 / (2.0 * slower * ocp.dt[0])
    shown = np.concatenate([plan.q[::2], np.tile(plan.q[-1], (round(0.5 * rate), 1))])
    film(path, ocp.robot, shown, lambda q: camera, rate, (240, 272))


def main():
    output = output_folder(__doc__)
    swing, jump = pendulum(), leg()
    swung, jumped = solve(*swing), solve(*jump)
    force = push(jump[0], jumped)
    print(f"The final error of the pendulum is {abs(swung.q[-1] - swing[2]).max():.1g} rad.")
    print(f"The leg's apex is at {jumped.q[-1, 0]:.4f} m (goal {jump[2][0]} m); {force[:, 0].min():.1f} N or more on the toe.")
    picture_of_jump(output / "swing_and_jump.png", (swing[0], swung), (jump[0], jumped, jump[2]), force)
    film_of_jump(output / "swing_and_jump.gif", jump[0], jumped)


if __name__ == "__main__":
    main()
