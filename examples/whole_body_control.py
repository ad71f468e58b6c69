"""Talos squats and shifts its weight: whole-body control by a quadratic program in each tick, in simulation.

    python examples/whole_body_control.py [--output output]        pip install 'featherweight[demo,ik]'

The quadratic program solves for accelerations and for forces at the corners of the feet. The centre of mass follows its
reference, the feet do not move, the forces stay within friction cones, and the torques within effort limits. The picture is
whole_body_control.png.
"""

import time
from types import SimpleNamespace

import daqp
import numpy as np
from guide_pictures import output_folder, picture_of_balance

import featherweight as fw

FEET = ["left_sole_link", "right_sole_link"]
CORNERS = np.array([(x, y, 0.0) for x in (-0.1, 0.1) for y in (-0.06, 0.06)])  # of a sole [m]
FRICTION = 0.6  # assumed by the controller; the ground has 0.8
STEP, PERIOD = 1e-3, 2.0  # [s]
SHIFT, SQUAT = 0.03, 0.08  # [m]
INEQUALITY, EQUALITY, SOLVED = 0, 5, 1  # row types and exit flag of DAQP


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


def wrenches():
    """Return the wrenches (6, 16) on a sole, in its frame, of unit forces along the four pyramid edges at each corner."""
    edges = np.array([(FRICTION, 0.0, 1.0), (-FRICTION, 0.0, 1.0), (0.0, FRICTION, 1.0), (0.0, -FRICTION, 1.0)])
    return np.array([[*f, *np.cross(corner, f)] for corner in CORNERS for f in edges]).T


class WholeBody:
    """Whole-body controller. `ticks` has the seconds (terms, program) of each tick, and `planned` the vertical foot forces."""

    def __init__(self, robot, q):
        self.robot, self.posture, self.start = robot, q, robot.center_of_mass(q)
        self.terms = robot.together(
            robot.mass_matrix,
            robot.bias_force,
            robot.center_of_mass,
            robot.centroidal_map,
            robot.centroidal_momentum,
            robot.centroidal_bias,
            J=robot.frame_jacobian(FEET, "local"),
            sole_velocity=robot.frame_velocity(FEET, "local"),
            drift=robot.frame_bias_acceleration(FEET, "local"),
        )
        self.G = np.kron(np.eye(2), wrenches())  # wrenches of both feet: G times the edge forces
        self.effort = robot.effort_limit[6:]
        n, m = robot.nv, self.G.shape[1]
        self.n, self.lower, self.upper = n, np.append(np.full(n, -1e30), np.zeros(m)), np.full(n + m, 1e30)
        self.kinds = np.array([INEQUALITY] * (n + m) + [EQUALITY] * 18 + [INEQUALITY] * (n - 6), dtype=np.int32)
        self.ticks, self.planned = [], []

    def __call__(self, t, q, v):
        """Return the joint forces, from x = (a, edge forces)."""
        begun = time.perf_counter()
        k = self.terms(q, v)
        between = time.perf_counter()
        n, h, J = self.n, k.bias_force, k.J.reshape(12, -1)
        dynamics = np.hstack([k.mass_matrix, -J.T @ self.G])  # dynamics x + h: the joint forces
        feet = np.hstack([J, np.zeros_like(self.G)])
        still = -k.drift.ravel() - 20.0 * k.sole_velocity.ravel()
        A = np.vstack([dynamics[:6], feet, dynamics[6:]])
        lower = np.concatenate([self.lower, -h[:6], still, -self.effort - h[6:]])
        upper = np.concatenate([self.upper, -h[:6], still, self.effort - h[6:]])
        x, _, flag, _ = daqp.solve(*self.cost(t, q, v, k), A, upper, lower, self.kinds)
        if flag != SOLVED:
            raise RuntimeError(f"no motion keeps all constraints at {t:.3f} s (DAQP's exit flag {flag})")
        tau = np.append(np.zeros(6), dynamics[6:] @ x + h[6:])
        self.ticks.append((between - begun, time.perf_counter() - between))
        self.planned.append((self.G @ x[n:])[[2, 8]])
        return tau

    def cost(self, t, q, v, k):
        """Return H and g of ½ xᵀ H x + gᵀ x: momentum, then posture and an upright trunk, then small forces."""
        place, speed, acceleration = wanted(t, self.start)
        mass, n = self.robot.mass, self.n
        force = mass * (acceleration + 100.0 * (place - k.center_of_mass) + 20.0 * speed) - 20.0 * k.centroidal_momentum[:3]
        rate = np.append(force, -5.0 * k.centroidal_momentum[3:]) - k.centroidal_bias
        weighted = np.array([1.0, 1.0, 1.0, 0.1, 0.1, 0.1])[:, None] * k.centroidal_map
        H, g = 1e-4 * np.eye(len(self.upper)), np.zeros(len(self.upper))
        H[:n, :n] += k.centroidal_map.T @ weighted + np.diag([0.0] * 3 + [1.0] * (n - 3))
        g[:n] = -rate @ weighted
        g[3:n] -= 50.0 * self.robot.difference(q, self.posture)[3:] - 14.0 * v[3:]
        return H, g


def solve(duration=PERIOD):
    """Simulate; return the robot, its controller, and the motion."""
    robot, q = standing()
    control = WholeBody(robot, q)
    corners = [fw.ContactPoint(foot, tuple(corner)) for foot in FEET for corner in CORNERS]
    sim = fw.Simulation(robot, STEP, q=q, spheres=corners, shapes=False, ground=fw.Plane(friction=0.8))
    return SimpleNamespace(robot=robot, control=control, motion=sim.run(duration, control))


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
    for name, ms in zip(("terms", "program"), ticks.T, strict=True):
        print(f"{name:8s}{np.median(ms):8.3f} ms per tick (median; 99 % quantile {np.percentile(ms, 99):.3f})")
    edge = np.min(soles[0, :, 1]) - 0.06, np.max(soles[0, :, 1]) + 0.06  # outer edges of the feet [m]
    print(
        f"Zero-moment point at least {1e3 * min(seen.zmp[:, 1].min() - edge[0], edge[1] - seen.zmp[:, 1].max()):.0f} mm inside"
    )
    picture_of_balance(output / "whole_body_control.png", found, seen, soles[0, :, None] + CORNERS)


if __name__ == "__main__":
    main()
