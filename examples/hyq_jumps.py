"""HyQ jumps: optimal control with four point contacts, friction cones, and a flight phase.

    python examples/hyq_jumps.py [--output output]        pip install 'featherweight[demo]'

The first run compiles for a few seconds; later runs load the code from the cache. The picture is hyq_jumps.png.
"""

import time

import numpy as np
from pictures import output_folder, picture_of_hyq

import featherweight as fw

HYQ = "hyq_no_sensors"
FEET = ["lf_foot", "rf_foot", "lh_foot", "rh_foot"]
FRICTION = 0.3


def hyq(rise=0.3, bend=0.9):
    """Return the problem: 0.3 s of stance from a crouch, then 0.2 s of flight to an apex `rise` [m] higher."""
    robot = fw.load(fw.example(HYQ), base="floating")

    def standing(bend):
        """Return a configuration with the feet on the ground, and the front and hind legs bent towards each other."""
        q = robot.neutral()
        q[7:] = np.array([[0.0, bend, -2.0 * bend]] * 2 + [[0.0, -bend, 2.0 * bend]] * 2).ravel()  # lf, rf, lh, rh
        q[2] = -robot.frame_placement(FEET)(q)[:, 2, 3].min()
        return q

    start, goal = standing(bend), standing(0.6)
    goal[2] = start[2] + rise
    root, *joints = [j.name for j in robot.joints]
    trunk = np.append(np.ones(6), np.zeros(12))
    feet = [fw.BilateralContact(foot, "point") for foot in FEET]

    ocp = fw.OptimalControl(robot, dt=0.01, phases=[fw.Phase(30, feet), fw.Phase(20)])
    ocp.add(fw.PostureTask([root], name="trunk"), weight=1e5, at="end")
    ocp.add(fw.PostureTask(joints, name="joints"), weight=np.append(np.full(50, 10.0), 1e2))
    ocp.add(fw.JointVelocities(trunk, name="speed of the trunk"), weight=1e4, at="end")
    ocp.add(fw.JointVelocities(1.0 - trunk), weight=np.append(np.full(50, 0.1), 10.0))
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.limit(friction=FRICTION)
    return ocp, start, goal


def push(ocp, plan):
    """Return the ground forces on the feet (stance, 4, 3), in the world frame [N]."""
    force = ocp.contact_forces(plan)[0].reshape(-1, 4, 3)
    rows = ocp.robot.frame_placement(FEET)(plan.q[: len(force)])[..., :3, :3]
    return np.einsum("nfij,nfj->nfi", rows, force)


def main():
    output = output_folder(__doc__)
    ocp, start, goal = hyq()
    targets = {"trunk": goal, "joints": goal}
    ocp.solve(start, targets=targets)
    begun = time.perf_counter()
    plan = ocp.solve(start, targets=targets)
    passed = 1e3 * (time.perf_counter() - begun)
    print(f"{plan.iterations} iterations in {passed:.1f} ms; converged: {plan.converged}")
    force = push(ocp, plan)
    slope = (np.linalg.norm(force[..., :2], axis=2) / force[..., 2]).max()
    print(f"The trunk's apex is at {plan.q[-1, 2]:.3f} m (goal {goal[2]:.3f} m), its speed there {plan.v[-1, 2]:.3f} m/s.")
    print(f"The ground force on each foot is at least {force[..., 2].min():.0f} N; friction uses {slope:.2f} of {FRICTION}.")
    picture_of_hyq(output / "hyq_jumps.png", ocp, plan, goal, force)


if __name__ == "__main__":
    main()
