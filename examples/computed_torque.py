"""Computed torque control of Panda: the effect of each term of the model, and of an unknown load.

    python examples/computed_torque.py [--output output]        pip install 'featherweight[demo]'

Three controllers with the same stiffness follow the same motion, with an empty hand and with an unknown load of 1.5 kg. A
fourth controller knows the load. The picture is computed_torque.png.
"""

import numpy as np
from guide_pictures import BLUE, COLORS, GROUND, RED, draw_bars, draw_curves, output_folder, panels, save

import featherweight as fw

PANDA = "panda"
FINGERS = {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}
LOAD = fw.Inertia(1.5, (0.0, 0.0, 0.1), (2e-3, 0.0, 0.0, 2e-3, 0.0, 2e-3))  # in the hand's frame
HOME = np.array([0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8])  # [rad]
BANDWIDTH = 20.0  # [rad/s]
STEP, DURATION = 1e-3, 6.0  # [s]


def arms():
    """Return Panda with locked fingers, without and with the load in its hand."""
    empty = fw.read(fw.example(PANDA)).locked(FINGERS)
    return fw.build(empty), fw.build(empty.with_payload("panda_hand", LOAD))


def reference(t):
    """Return q, v and a (..., 7) of a sum of sines that starts at rest at HOME."""
    t = np.asarray(t)[..., None]
    w = np.array([1.1, 1.6, 1.3, 2.0, 2.4, 1.8, 2.8])  # [rad/s]
    size = np.array([0.7, 0.35, 0.5, 0.4, 0.6, 0.5, 0.8])  # [rad]
    fade, d, dd = 1.0 - np.exp(-(t**2)), 2.0 * t * np.exp(-(t**2)), (2.0 - 4.0 * t**2) * np.exp(-(t**2))
    s, c = size * np.sin(w * t), size * w * np.cos(w * t)
    return HOME + fade * s, d * s + fade * c, dd * s + 2.0 * d * c - fade * w**2 * s


def controllers(model):
    """Return controllers (q, v, desired q, v, a) -> tau: springs alone, with gravity, and with all terms of the model."""
    kp, kd = BANDWIDTH**2, 2.0 * BANDWIDTH
    inertia = np.diag(model.mass_matrix(HOME))  # gives the springs the stiffness of computed torque near HOME

    def springs(q, v, qd, vd, ad):
        return inertia * (kp * (qd - q) + kd * (vd - v))

    def with_gravity(q, v, qd, vd, ad):
        return springs(q, v, qd, vd, ad) + model.gravity_force(q)

    def computed_torque(q, v, qd, vd, ad):
        return model.inverse_dynamics(q, v, ad + kp * (qd - q) + kd * (vd - v))

    return {"springs": springs, "springs, gravity": with_gravity, "computed torque": computed_torque}


def follow(robot, law, motion=reference, duration=DURATION):
    """Return the motion of a robot under a controller, from the start of the desired motion."""
    q, v, _ = motion(0.0)
    # rk4: the integration error is negligible
    sim = fw.Simulation(robot, STEP, "rk4", q=q, v=v, joints=fw.JointOptions(limits=False))
    return sim.run(duration, lambda time, q, v: law(q, v, *motion(time)))


def errors(robot, motion):
    """Return times, and distances (T,) of the hand from its desired position [m]."""
    hand = robot.frame_placement("panda_hand")
    off = hand(motion.q)[:, :3, 3] - hand(reference(motion.times)[0])[:, :3, 3]
    return np.linalg.norm(off, axis=1)


def solve(duration=DURATION):
    """Return the times, and the errors of the hand by (load, controller)."""
    empty, loaded = arms()
    laws = controllers(empty)
    told = controllers(loaded)["computed torque"]
    cases = {("empty", name): (empty, law) for name, law in laws.items()}
    cases |= {("1.5 kg", name): (loaded, law) for name, law in laws.items()}
    cases["1.5 kg", "the load known"] = loaded, told
    motions = {case: follow(robot, law, duration=duration) for case, (robot, law) in cases.items()}
    return motions["empty", "springs"].times, {case: errors(empty, motion) for case, motion in motions.items()}


def main():
    output = output_folder(__doc__)
    times, off = solve()
    rms = {case: 1e3 * np.sqrt(np.mean(e**2)) for case, e in off.items()}
    for (load, name), e in rms.items():
        print(f"{load:8s}{name:20s} error of the hand {e:9.4f} mm rms")
    figure, (curves, bars) = panels(2, width_ratios=(1.6, 1.0))
    mm = {f"{name}, {load}": 1e3 * np.maximum(e, 1e-9) for (load, name), e in off.items() if name.startswith("computed")}
    mm |= {
        "springs, gravity, empty": 1e3 * off["empty", "springs, gravity"],
        "load known": 1e3 * off["1.5 kg", "the load known"],
    }
    draw_curves(curves, times, mm, "Error of the hand", "distance [mm]", (BLUE, RED, GROUND, COLORS[2]))
    curves.set_yscale("log")
    curves.set_ylim(1e-3, None)
    names = ["springs", "springs, gravity", "computed torque"]
    bars.set_yscale("log")
    groups = {load: [rms[load, name] for name in names] for load in ("empty", "1.5 kg")}
    draw_bars(bars, groups, names, "With and without the model", "rms [mm]", (GROUND, COLORS[3], BLUE))
    save(figure, output / "computed_torque.png")


if __name__ == "__main__":
    main()
