"""Build two arms with hands from one arm and one hand: attach, lock, mirror, load, save.

    python examples/editing_models.py [--output output]        pip install 'featherweight[demo]'

The example attaches an Allegro hand to a UR5 and mirrors the result for the left arm. It prints the effect of each change on
the mass and on the torque of the shoulder. The picture is editing_models.png.
"""

import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from guide_pictures import BLUE, COLORS, GROUND, RED, draw_bars, output_folder, panels, save

import featherweight as fw

ARM, HAND = "ur5_robot", "allegro_right_hand"
LOAD = fw.Inertia(0.5, (0.0, 0.0, 0.1), (1e-3, 0.0, 0.0, 1e-3, 0.0, 1e-3))  # in the palm
ARM_JOINTS = [f"{part}_joint" for part in ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")]
POSE = [-0.5, -0.9, 1.2, -0.6, 0.3, 0.2]  # of the arm [rad]


def variants():
    """Return descriptions by name, each made from the previous one."""
    arm = fw.read(fw.example(ARM))
    armed = arm.attached(fw.read(fw.example(HAND)), frame="tool0", prefix="hand_")
    fingers = {j.name: 0.3 for j in armed.joints if j.name.startswith("hand_") and j.type != fw.JointType.FIXED}
    return {
        "arm": arm,
        "with a hand": armed,
        "fingers locked": (locked := armed.locked(fingers)),
        "with 0.5 kg": locked.with_payload("tool0", LOAD),
    }


def two_arms(one):
    """Return the arm on the right of the plane y = 0 together with its mirror image on the left."""
    nothing = fw.describe([], [], name="two_arms")
    right = nothing.attached(one, placement=fw.Pose(p=(0.0, -0.3, 0.8)))
    return nothing.attached(right, prefix="right_").attached(right.mirrored("y"), prefix="left_")


def saved(description, folder):
    """Save the description as URDF and read it again."""
    path = Path(folder, "mine.urdf")
    description.save(path)
    return fw.read(path)


def lines(robot, q, side):
    """Return the ends (n, 2, 3) of lines between the frames of the bodies of one side and of their parents."""
    names = [(j.parent, j.child) for j in robot.joints if j.parent is not None and j.name.startswith(side)]
    return np.array([robot.frame_placement(list(pair))(q)[:, :3, 3] for pair in names])


def solve():
    """Return mass [kg] and shoulder torque [N m] by variant, and both arms, read from a saved file, in one pose."""
    numbers = {}
    for name, description in variants().items():
        robot = fw.build(description)
        q = np.zeros(robot.nq)
        q[:6] = POSE
        numbers[name] = robot.mass, robot.gravity_force(q)[1]
    with tempfile.TemporaryDirectory() as folder:
        both = fw.build(saved(two_arms(variants()["with a hand"]), folder))
    q = np.full(both.nq, 0.3)
    for joint, angle in zip(ARM_JOINTS, POSE, strict=True):
        for side in ("right", "left"):
            q[both.joint(f"{side}_{joint}").q_slice] = angle
    return SimpleNamespace(numbers=numbers, both=both, q=q)


def main():
    output = output_folder(__doc__)
    found = solve()
    for name, (mass, torque) in found.numbers.items():
        print(f"{name:16s}{mass:8.3f} kg   torque at the shoulder {torque:8.3f} N m")
    print(f"both arms: {found.both.nv} joints, {found.both.mass:.3f} kg")
    figure, (front, bars) = panels(2, height=3.2, width_ratios=(1.4, 1.0))
    for side, color in (("right", BLUE), ("left", RED)):
        for ends in lines(found.both, found.q, side):
            front.plot(*ends[:, 1:].T, "-o", color=color, lw=1.8, ms=2.0)
        front.plot([], [], color=color, label=side)
    front.axvline(0.0, color=GROUND, lw=1.0, ls="--", label="mirror")
    front.set_aspect("equal")
    front.invert_xaxis()
    front.set(title="Two arms with hands", xlabel="y [m]", ylabel="z [m]")
    front.legend(frameon=False, fontsize=8.5, ncols=3, loc="lower right", bbox_to_anchor=(1.0, 1.0))
    groups = {name: [abs(torque)] for name, (_, torque) in found.numbers.items()}
    draw_bars(bars, groups, ["torque"], "Torque at shoulder_lift_joint", "torque [N m]", (BLUE, COLORS[2]))
    bars.get_legend().remove()
    save(figure, output / "editing_models.png")


if __name__ == "__main__":
    main()
