"""The workspace of Panda's hand: inverse kinematics for tens of thousands of poses at once.

    python examples/reach_many.py [--output output]        pip install 'featherweight[demo]'

At points of the vertical plane through the base, the example solves for hand poses in many directions. The picture
reach_many.png shows the share of reachable directions at each point.
"""

import time

import numpy as np
from pictures import output_folder, picture_of_workspace

import featherweight as fw

PANDA = "panda"
HAND = "panda_hand"
X, Z = np.linspace(-1.0, 1.0, 61), np.linspace(-0.6, 1.3, 58)  # [m]
DIRECTIONS = 24


def poses():
    """Return poses (points of Z, points of X, directions, 4, 4), with the z axes of the hand uniform on a sphere."""
    k = np.arange(DIRECTIONS) + 0.5
    height, turn = 1.0 - 2.0 * k / DIRECTIONS, np.pi * (1.0 + 5.0**0.5) * k  # Fibonacci's spiral
    z = np.stack([np.sqrt(1.0 - height**2) * np.cos(turn), np.sqrt(1.0 - height**2) * np.sin(turn), height], axis=-1)
    x = np.cross([0.3, 1.0, 0.2], z)
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    T = np.zeros((len(Z), len(X), DIRECTIONS, 4, 4))
    T[..., :3, :3] = np.stack([x, np.cross(z, x), z], axis=-1)
    T[..., 0, 3], T[..., 2, 3], T[..., 3, 3] = X[:, None], Z[:, None, None], 1.0
    return T


def solve(restarts=8):
    """Solve for all targets, with free rotation about the axis of the hand; return the robot, the targets and the result."""
    robot = fw.load(fw.example(PANDA))
    ik = fw.InverseKinematics(robot, fw.FrameTask(HAND, weight=[1, 1, 1, 1, 1, 0], tolerance=1e-4))
    targets = poses()
    ik.solve(targets[0, 0])  # compiles the solver, or loads it from the cache
    begun = time.perf_counter()
    found = ik.solve(targets, restarts=restarts)
    passed, count = time.perf_counter() - begun, found.converged.size
    print(f"{count} poses in {passed:.2f} s; the hand reaches {np.count_nonzero(found.converged)}, the others fail")
    print(f"after {restarts + 1} attempts each; {found.iterations.sum() / passed / 1e6:.1f} million iterations per second.")
    return robot, targets, found


def main():
    output = output_folder(__doc__)
    robot, _, found = solve()
    picture_of_workspace(output / "reach_many.png", robot, X, Z, found.converged.mean(axis=-1), arms(robot, found))


def arms(robot, found):
    """Return lines (5, points, 3) of the arm at some of the solutions."""
    links = [f"panda_link{k}" for k in (1, 2, 3, 4, 5, 6, 7, 8)] + [HAND]
    rows = np.flatnonzero(found.converged.mean(axis=-1).ravel() > 0.9)
    chosen = rows[np.linspace(0, len(rows) - 1, 5).astype(int)]
    q = found.q.reshape(-1, DIRECTIONS, robot.nq)[chosen, 0]
    return robot.frame_placement(links)(q)[..., :3, 3]


if __name__ == "__main__":
    main()
