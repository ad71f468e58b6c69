"""Model predictive control: Panda follows a moving target around a wall, while a ball moves through its workspace.

    python examples/panda_avoids.py [--output output]        pip install 'featherweight[demo]'

Every 40 ms, one iteration of an optimal control problem of 20 knots plans 0.8 s ahead from the measured state. The paths of
target and ball are parameters. The picture is panda_avoids.png, and the animation panda_avoids.gif.
"""

import time

import numpy as np
from pictures import film, output_folder, picture_of_avoiding

import featherweight as fw

HAND = "panda_hand_tcp"
START = np.array([-0.9, 0.3, 0.0, -2.0, 0.0, 2.3, 0.8, 0.02])  # one finger follows the other
KNOTS, STEP = 20, 0.04
SECONDS, TICK = 9.0, 2e-3
GAP = 0.02  # required distance [m]
ARM = ["panda_link4", "panda_link5", "panda_link6", "panda_link7"]
WALL = fw.Shape("wall", None, "box", (0.5, 0.03, 0.45), fw.Pose(p=(0.65, 0.0, 0.225)), color=(0.55, 0.6, 0.65, 1.0))
BALL = fw.Shape("ball", None, "sphere", (0.07,), color=(0.85, 0.35, 0.2, 1.0))
MARK = fw.Shape("mark", None, "sphere", (0.02,), color=(0.2, 0.6, 0.3, 1.0))


def target(t):
    """Return target positions (..., 3): from one side of the wall to the other and back, close above its edge."""
    angle = 2.0 * np.pi * np.asarray(t) / 6.0
    return np.stack([0.5 + 0.0 * angle, -0.35 * np.cos(angle), 0.3 + 0.25 * np.sin(angle) ** 2], axis=-1)


def ball(t):
    """Return ball positions (..., 3): back and forth above the wall, across the path of the arm."""
    angle = 2.0 * np.pi * np.asarray(t) / 4.0
    return np.stack([0.6 + 0.25 * np.cos(angle), 0.2 * np.sin(angle), 0.75 + 0.0 * angle], axis=-1)


def placements(points):
    """Return the first three rows of placements (..., 12), the format of `clearance`."""
    T = np.zeros((*points.shape[:-1], 3, 4))
    T[..., :3] = np.eye(3)
    T[..., 3] = points
    return T.reshape(*points.shape[:-1], 12)


def problem(robot):
    ocp = fw.OptimalControl(robot, dt=STEP, knots=KNOTS)
    ocp.add(fw.FrameTask(HAND, kind="position", name="hand"), weight=300.0)
    ocp.add(fw.PostureTask(), weight=0.5)
    ocp.add(fw.JointVelocities(), weight=0.5)
    ocp.add(fw.Effort(), weight=1e-4)
    ocp.require(fw.clearance(robot, [WALL], bodies=ARM, balls=3, name="wall"), GAP, np.inf, weight=30.0)
    ocp.require(fw.clearance(robot, [BALL], bodies=ARM, balls=3, moving=True, name="ball"), GAP, np.inf, weight=30.0)
    return ocp


def run(robot, seconds=SECONDS):
    """Return states every 40 ms, distances from wall and ball, and the computing time of each controller call [s]."""
    ocp = problem(robot)
    mpc, sim = fw.Controller(ocp, frequency=1.0 / STEP), fw.Simulation(robot, TICK, q=START, shapes=False)
    ahead, motion, ticks = STEP * np.arange(KNOTS + 1), [], []
    for k in range(round(seconds / TICK)):
        t = k * TICK
        if k % round(STEP / TICK) == 0:
            motion.append(sim.q.copy())
            mpc.targets = {"hand": target(t + ahead), "posture": START}
            mpc.parameters = {"ball": placements(ball(t + ahead))}
        begun = time.perf_counter()
        tau = mpc(t, sim.q, sim.v)
        if k % round(STEP / TICK) == 0:
            ticks.append(time.perf_counter() - begun)
        sim.step(tau)
    q, times = np.array(motion), STEP * np.arange(len(motion))
    return q, gaps(ocp, q, times), np.array(ticks)


def gaps(ocp, q, times):
    """Return the smallest distances from the wall and from the ball (n, 2) [m]."""
    found = []
    for name, points in (("wall", None), ("ball", placements(ball(times)))):
        T = ocp.robot.frame_placement(ocp.terms[name].frames)(q)
        numbers = [[]] * len(q) if points is None else points
        rows = [
            ocp.terms[name].function(a, b) if len(b) else ocp.terms[name].function(a) for a, b in zip(T, numbers, strict=True)
        ]
        found.append(np.min(rows, axis=1))
    return np.stack(found, axis=1)


def scene():
    """Return the robot with the wall, and with the ball and the target on rails, for the animation."""
    light = fw.Inertia(1e-3)
    bodies, joints, shapes = [], [], [WALL]
    for shape in (BALL, MARK):
        for axis, along in zip("xyz", np.eye(3), strict=True):
            name, parent = f"{shape.name}_{axis}", f"{shape.name}_{'xyz'['xyz'.index(axis) - 1]}"
            bodies.append(fw.Body(name, light))
            joints.append(fw.Joint(name, fw.JointType.PRISMATIC, "world" if axis == "x" else parent, name, axis=tuple(along)))
        shapes.append(fw.Shape(shape.name, f"{shape.name}_z", shape.type, shape.size, color=shape.color))
    return fw.build(fw.read(fw.example("panda")).attached(fw.describe(bodies, joints, shapes=shapes, name="scene")))


def film_with_ball(path, q):
    """Save an animation of the arm, the ball and the target."""
    times, camera = STEP * np.arange(len(q)), ((1.7, -1.15, 1.15), (0.35, 0.0, 0.4))
    moved = np.concatenate([q, ball(times), target(times)], axis=1)
    film(path, scene(), moved[::2], lambda q: camera, 12.5, (320, 256))


def main():
    output = output_folder(__doc__)
    robot = fw.load(fw.example("panda"))
    q, kept, ticks = run(robot)
    away = np.linalg.norm(robot.frame_placement(HAND)(q)[:, :3, 3] - target(STEP * np.arange(len(q))), axis=1)
    middle, slow = 1e3 * np.quantile(ticks[1:], (0.5, 0.99))
    print(f"A tick takes {middle:.2f} ms (median), {slow:.2f} ms (99 % quantile).")
    print(f"The arm keeps {1e3 * kept[:, 0].min():.0f} mm from the wall and {1e3 * kept[:, 1].min():.0f} mm from the ball.")
    print(f"The hand is {1e3 * np.median(away):.0f} mm from its target (median), at most {1e3 * away.max():.0f} mm.")
    picture_of_avoiding(output / "panda_avoids.png", STEP * np.arange(len(q)), away, kept, GAP)
    film_with_ball(output / "panda_avoids.gif", q)


if __name__ == "__main__":
    main()
