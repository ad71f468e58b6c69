"""HyQ jumps: iLQR with exact derivatives, on four point contacts and in flight.

    python examples/hyq_jumps.py [--output output]        pip install 'featherweight[demo]'

The first run compiles for half a minute, others read that from the cache. Each iteration has a line: cost, step of the line
search, time, and what it is made of. The picture is hyq_jumps.png.
"""

import numpy as np
from ilqr import Task, solve
from pictures import output_folder, picture_of_hyq

import featherweight as fw

HYQ = "hyq_no_sensors"
FEET = ["lf_foot", "rf_foot", "lh_foot", "rh_foot"]


def hyq(rise=0.3, bend=0.9):
    """From a crouch, 0.3 s of stance, then 0.2 s up to the apex, where the trunk is `rise` [m] higher; with joint forces."""
    robot = fw.load(fw.example(HYQ), base="floating")
    stance = robot.operational_space([fw.BilateralContact(foot, "point") for foot in FEET])

    def standing(bend):
        """The trunk where the feet are on the ground, front and hind legs bent to each other."""
        q = robot.neutral()
        q[7:] = np.array([[0.0, bend, -2.0 * bend]] * 2 + [[0.0, -bend, 2.0 * bend]] * 2).ravel()  # lf, rf, lh, rh
        q[2] = -robot.frame_placement(FEET)(q)[:, 2, 3].min()
        return q

    start, goal = standing(bend), standing(0.6)
    goal[2] = start[2] + rise
    trunk, joints = np.ones(6), np.ones(12)
    task = Task(
        robot,
        phases=[
            (stance.constrained_dynamics, stance.forward_dynamics_derivatives, 30),
            (robot.forward_dynamics, robot.forward_dynamics_derivatives, 20),
        ],
        drives=list(range(6, 18)),
        h=0.01,
        start=start,
        goal=goal,
        final=np.concatenate([1e5 * trunk, 1e2 * joints, 1e4 * trunk, 1e1 * joints]),
        running=np.concatenate([0.0 * trunk, 10.0 * joints, 0.0 * trunk, 0.1 * joints]),
        effort=1e-3,
    )
    balance = np.vstack([np.eye(18)[6:], stance.jacobian(start)]).T  # of drives, and of forces at the feet
    still = np.linalg.lstsq(balance, robot.gravity_force(start))[0][:12]
    return task, np.repeat([still, 0.0 * still], [30, 20], axis=0)


def push(task, q, v, u):
    """The ground's forces on the feet (stance, 4, 3), in the world [N]."""
    dynamics, _, n = task.phases[0]
    tau = np.zeros((n, task.robot.nv))
    tau[:, task.drives] = u[:n]
    rows = task.robot.frame_placement(FEET)(q[:n])[..., :3, :3]
    return np.einsum("nfij,nfj->nfi", rows, dynamics(q[:n], v[:n], tau).force.reshape(n, 4, 3))


def main():
    output = output_folder(__doc__)
    task, guess = hyq()
    q, v, u, costs = solve(task, guess)
    force = push(task, q, v, u)
    slope = (np.linalg.norm(force[..., :2], axis=2) / force[..., 2]).max()
    print(f"The trunk's apex is at {q[-1, 2]:.3f} m of {task.goal[2]:.3f} m, and it rises by {v[-1, 2]:.3f} m/s there.")
    print(f"The ground pushes on each foot with {force[..., 2].min():.0f} N or more, and needs friction of {slope:.2f}.")
    picture_of_hyq(output / "hyq_jumps.png", task, q, v, costs, force)


if __name__ == "__main__":
    main()
