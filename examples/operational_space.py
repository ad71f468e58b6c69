"""Operational-space control of Panda: the hand is a spring, and the elbow moves in the null space.

    python examples/operational_space.py [--output output]        pip install 'featherweight[demo]'

A push of 20 N displaces the hand according to its stiffness, and the hand returns without oscillation. Then the elbow moves,
and the hand keeps its position. The picture is operational_space.png.
"""

from types import SimpleNamespace

import numpy as np
from guide_pictures import draw_curves, output_folder, panels, save
from scipy.linalg import eigh

import featherweight as fw
from featherweight import se3

PANDA = "panda"
FINGERS = {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}
HAND = "panda_hand"
HOME = np.array([0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8])  # [rad]
STIFFNESS = np.diag([400.0, 400.0, 400.0, 20.0, 20.0, 20.0])  # [N/m, N m/rad]
STEP, PUSH, BACK, SWING, END = 1e-3, 0.3, 1.5, 3.0, 5.0  # [s]
FORCE = np.array([0.0, 20.0, 0.0])  # of the push, in the world frame [N]
ELBOW = 0.7  # displacement of the rest position of the first joint [rad]


class Impedance:
    """Impedance controller: critically damped springs at the hand, with the arm's own inertia, and in the null space."""

    def __init__(self, robot, target):
        space = robot.operational_space(fw.BilateralContact(HAND))  # six rows: the velocity of the hand in its own frame
        self.target, self.rest = target, HOME.copy()
        hand = dict(placement=robot.frame_placement(HAND), J=space.jacobian, inertia=space.inertia, beta=space.bias)
        self.terms = robot.together(**hand, N=space.null_space_projector, M=robot.mass_matrix, h=robot.bias_force)

    def __call__(self, time, q, v):
        k = self.terms(q, v)
        R, p = k.placement[:3, :3], k.placement[:3, 3]
        off = np.append(R.T @ (self.target[:3, 3] - p), se3.log3(R.T @ self.target[:3, :3]))
        force = STIFFNESS @ off - critical_damping(k.inertia, STIFFNESS) @ (k.J @ v) - k.inertia @ k.beta
        rest = k.M @ (25.0 * (self.rest - q) - 10.0 * v) + k.h
        return k.J.T @ force + k.N.T @ rest


def critical_damping(inertia, stiffness):
    """Return the D for which each mode of inertia x'' + D x' + stiffness x = 0 is critically damped."""
    squares, V = eigh(stiffness, inertia)  # Vᵀ inertia V = 1, Vᵀ stiffness V = diag(w²)
    W = inertia @ V
    return W * (2.0 * np.sqrt(squares)) @ W.T


def solve():
    """Return times, configurations, displacements (T, 3) of hand and elbow in the world frame, and the robot."""
    robot = fw.build(fw.read(fw.example(PANDA)).locked(FINGERS))
    control = Impedance(robot, robot.frame_placement(HAND)(HOME))
    sim, push = fw.Simulation(robot, STEP, q=HOME), robot.wrench(HAND, force=FORCE)
    parts = [sim.run(PUSH, control)]
    while sim.time < BACK - 0.5 * STEP:  # the push is constant in the world frame, so it changes in the frame of the link
        parts.append(sim.run(STEP, control, external_forces=push(sim.q)))
    parts.append(sim.run(SWING - sim.time, control))
    control.rest[0] += ELBOW
    parts.append(sim.run(END - sim.time, control))
    times = np.concatenate([part.times[1:] for part in parts])
    q = np.concatenate([part.q[1:] for part in parts])
    hand, elbow = robot.frame_placement([HAND, "panda_link4"])(q)[..., :3, 3].swapaxes(0, 1)
    return SimpleNamespace(times=times, q=q, hand=hand - control.target[:3, 3], elbow=elbow - elbow[0], robot=robot)


def main():
    output = output_folder(__doc__)
    found = solve()
    at = {name: np.searchsorted(found.times, t) - 1 for name, t in (("push", BACK), ("back", SWING), ("end", END + STEP))}
    asked = FORCE[1] / STIFFNESS[1, 1]
    print(f"pushed by {FORCE[1]:.0f} N: {1e3 * found.hand[at['push'], 1]:.3f} mm (by the stiffness: {1e3 * asked:.3f} mm)")
    print(f"released: {1e3 * np.linalg.norm(found.hand[at['back']]):.3f} mm from the start")
    moved, still = (np.linalg.norm(x[at["back"] :], axis=1).max() for x in (found.elbow, found.hand))
    print(f"elbow moves by {1e3 * moved:.1f} mm, hand by {1e3 * still:.3f} mm")
    figure, axes = panels(2)
    for ax, x, name in zip(axes, (found.hand, found.elbow), ("Hand", "Elbow"), strict=True):
        ax.axvspan(PUSH, BACK, facecolor="#e4e9ee", lw=0.0, zorder=0, label=f"a push of {FORCE[1]:.0f} N along y")
        ax.axvline(SWING, color="black", lw=0.8, ls=":", label="the elbow moves")
        draw_curves(ax, found.times, dict(zip("xyz", 1e3 * x.T, strict=True)), name, "displacement [mm]")
    axes[0].axhline(1e3 * asked, color="black", lw=0.8, ls="--", label="force over stiffness")
    axes[0].legend(frameon=False, fontsize=8.5)
    axes[1].get_legend().remove()
    save(figure, output / "operational_space.png")


if __name__ == "__main__":
    main()
