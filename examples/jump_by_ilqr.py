"""A double pendulum swings up, driven at its shoulder alone, and a closed-chain leg jumps: iLQR with exact derivatives.

    python examples/jump_by_ilqr.py [--output output]        needs matplotlib: pip install 'featherweight[demo]'

Each iteration has a line: cost, step of the line search, time, and what it is made of. The picture is jump_by_ilqr.png.
"""

from dataclasses import replace

import numpy as np
from ilqr import Task, solve
from pictures import output_folder, picture_of_jump

import featherweight as fw


def pendulum():
    """Two rods of 0.5 m and 1 kg, and 2.5 s to stand up in; with joint forces to begin with."""
    rod, end = fw.Inertia(1.0, (0.0, 0.0, -0.25), (0.02, 0.0, 0.0, 0.02, 0.0, 1e-4)), fw.Pose(p=(0.0, 0.0, -0.5))
    shoulder = fw.Joint("shoulder", fw.JointType.CONTINUOUS, None, "upper", axis=(0.0, 1.0, 0.0))
    elbow = fw.Joint("elbow", fw.JointType.CONTINUOUS, "upper", "lower", end, (0.0, 1.0, 0.0))
    bodies, frames = [fw.Body("upper", rod), fw.Body("lower", rod)], [fw.Frame("tip", "lower", end)]
    robot = fw.build(fw.describe(bodies, [shoulder, elbow], frames=frames, name="double pendulum"))
    task = Task(
        robot,
        phases=[(robot.forward_dynamics, robot.forward_dynamics_derivatives, 125)],
        drives=[0],
        h=0.02,
        start=np.zeros(2),
        goal=np.array([np.pi, 0.0]),
        final=np.array([1e4, 1e4, 1e3, 1e3]),
        running=np.array([0.0, 0.0, 0.1, 0.1]),
        effort=0.1,
    )
    return task, np.full((125, 1), 0.1)


def leg(apex=0.35):
    """The library's linkage under a trunk on a slider, with x upward: 0.1 s of stance, then 0.2 s up to the apex [m]."""
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
    stance = robot.operational_space([fw.BilateralContact("toe", rows=np.eye(6)[:2])])
    crouching, standing = np.array([0.1034, 3.9099, -2.3, 2.3, -2.3]), np.array([0.1765, 3.7269, -1.5, 1.5, -1.5])
    task = Task(
        robot,
        phases=[
            (stance.constrained_dynamics, stance.forward_dynamics_derivatives, 40),
            (robot.forward_dynamics, robot.forward_dynamics_derivatives, 80),
        ],
        drives=[1, 2],
        h=0.0025,
        start=crouching,
        goal=np.array([apex, *standing[1:]]),
        final=np.array([1e4, 10.0, 10.0, 1e3, 1.0, 1.0]),
        running=np.array([0.0, 0.1, 0.1, 0.0, 0.0, 0.0]),
        effort=1.0,
    )
    balance = np.vstack([np.eye(3)[1:], stance.jacobian(crouching)]).T  # of drives and of forces at the toe
    still = np.linalg.lstsq(balance, robot.gravity_force(crouching))[0][:2]
    return task, np.repeat([still, 0.0 * still], [40, 80], axis=0)


def push(task, q, v, u):
    """The ground's force on the toe (stance, 2), upward and sideways [N]."""
    dynamics, _, n = task.phases[0]
    tau = np.zeros((n, task.robot.nv))
    tau[:, task.drives] = u[:n]
    rows = task.robot.frame_placement("toe")(q[:n])[:, :2, :2]
    return np.einsum("nij,nj->ni", rows, dynamics(q[:n], v[:n], tau).force)


def main():
    output = output_folder(__doc__)
    swing, jump = pendulum(), leg()
    print("A double pendulum swings up:")
    swung = solve(*swing)
    print(f"It is upright to {abs(swung[0][-1] - swing[0].goal).max():.1g} rad.\n\nA leg jumps:")
    jumped = solve(*jump)
    force = push(jump[0], *jumped[:3])
    print(f"Its apex is at {jumped[0][-1, 0]:.4f} m of {jump[0].goal[0]} m; at least {force[:, 0].min():.1f} N push its toe.")
    picture_of_jump(output / "jump_by_ilqr.png", (swing[0], *swung), (jump[0], *jumped), force)


if __name__ == "__main__":
    main()
