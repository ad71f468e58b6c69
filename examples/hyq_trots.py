"""HyQ trots: model predictive control over repeating phases, in a simulation with contact.

    python examples/hyq_trots.py [--output output]        pip install 'featherweight[demo]'

Two diagonal pairs of feet alternate. Every 20 ms, one iteration of the solver plans the next second from the simulated state.
After three seconds, a force pushes the trunk sideways. The picture is hyq_trots.png, and the animation hyq_trots.gif.
"""

import time

import numpy as np
from pictures import film, output_folder, picture_of_trot

import featherweight as fw

HYQ = "hyq_no_sensors"
FEET = ["lf_foot", "rf_foot", "lh_foot", "rh_foot"]
PAIRS = (("lf_foot", "rh_foot"), ("rf_foot", "lh_foot"))  # pairs of feet that stand alternately
STEP, STANCE, KNOTS = 0.02, 15, 50
TICK = 1e-3  # [s] step of the simulation
SPEED, LIFT, FRICTION = 0.35, 0.08, 0.6
RADIUS = 0.02  # [m] radius of a foot
PUSH, PUSHED = 200.0, (3.0, 3.2)  # [N] force to the left, [s] its interval


def standing(robot, bend=0.75):
    """Return a configuration with the feet on the ground, and the front and hind legs bent towards each other."""
    q = robot.neutral()
    q[7:] = np.array([[0.0, bend, -2.0 * bend]] * 2 + [[0.0, -bend, 2.0 * bend]] * 2).ravel()  # lf, rf, lh, rh
    q[2] = RADIUS - robot.frame_placement(FEET)(q)[:, 2, 3].min()
    return q


def problem(robot):
    contacts = {foot: fw.BilateralContact(foot, "point") for foot in FEET}
    phases = [fw.Phase(STANCE, [contacts[foot] for foot in pair]) for pair in PAIRS]
    root, *joints = [j.name for j in robot.joints]
    trunk = np.append(np.ones(6), np.zeros(12))
    ocp = fw.OptimalControl(robot, dt=STEP, knots=KNOTS, phases=phases)
    ocp.add(fw.PostureTask([root], name="trunk"), weight=500.0)
    ocp.add(fw.PostureTask(joints, name="joints"), weight=2.0)
    ocp.add(fw.JointVelocities(trunk, name="speed of the trunk"), weight=5.0)
    ocp.add(fw.JointVelocities(1.0 - trunk), weight=0.05)
    ocp.add(fw.Effort(), weight=1e-4)
    for foot in FEET:
        ocp.add(fw.FrameTask(foot, kind="position", name=foot), weight=2000.0)
    ocp.limit(friction=FRICTION)
    return ocp


class Trot:
    """Reference motion of the trunk and the feet."""

    def __init__(self, robot, start):
        self.start, self.places = start, robot.frame_placement(FEET)(start)[:, :3, 3]

    def forward(self, t):
        """Return the distance that the trunk has travelled (...); it accelerates during the first second."""
        t = np.asarray(t, dtype=float)
        return SPEED * np.where(t < 1.0, 0.5 * t * t, t - 0.5)

    def targets(self, t):
        """Return the targets of knots that start at times t (knots + 1,)."""
        trunk = np.tile(self.start, (len(t), 1))
        trunk[:, 0] += self.forward(t)
        return {"trunk": trunk, "joints": self.start, **{foot: self.foot(i, t) for i, foot in enumerate(FEET)}}

    def foot(self, i, t):
        """Return positions of a foot. It stands below the position of its hip at mid-stance, and swings between such points."""
        half = STANCE * STEP
        first = 0.0 if FEET[i] in PAIRS[0] else half  # start of its stance in the cycle
        cycles, phase = np.divmod(t - first, 2.0 * half)
        here, there = (self.forward(np.maximum(first + (cycles + k) * 2.0 * half + 0.5 * half, 0.0)) for k in (0, 1))
        part = np.clip((phase - half) / half, 0.0, 1.0)
        p = np.tile(self.places[i], (len(t), 1))
        p[:, 0] += here + (there - here) * 0.5 * (1.0 - np.cos(np.pi * part))
        p[:, 2] += LIFT * np.sin(np.pi * part) ** 2
        return p


def run(robot, seconds=6.0):
    """Return configurations every 20 ms, their references, and the computing time of each controller call [s]."""
    start = standing(robot)
    ocp, trot = problem(robot), Trot(robot, start)
    spheres = [fw.ContactSphere(foot, RADIUS) for foot in FEET]
    sim = fw.Simulation(robot, TICK, q=start, ground=fw.Plane(), spheres=spheres, shapes=False)
    mpc = fw.Controller(ocp, frequency=1.0 / STEP)
    ahead, motion, ticks, push = STEP * np.arange(KNOTS + 1), [], [], np.zeros((len(robot.bodies), 6))
    for k in range(round(seconds / TICK)):
        t, tick = k * TICK, k % round(STEP / TICK) == 0
        if tick:
            motion.append(sim.q.copy())
            mpc.targets = trot.targets(t + ahead)
        begun = time.perf_counter()
        tau = mpc(t, sim.q, sim.v)
        if tick:
            ticks.append(time.perf_counter() - begun)
        push[0, 1] = PUSH if PUSHED[0] <= t < PUSHED[1] else 0.0
        sim.step(tau, external_forces=push)
    return np.array(motion), trot, np.array(ticks)


def beside(q):
    """Return a camera that follows the robot."""
    return (q[0] + 0.3, -2.2, 0.9), (q[0], 0.0, 0.35)


def main():
    output = output_folder(__doc__)
    robot = fw.load(fw.example(HYQ), base="floating")
    q, trot, ticks = run(robot)
    times = STEP * np.arange(len(q))
    feet = robot.frame_placement(FEET)(q)[:, :, :3, 3]
    middle, slow = 1e3 * np.quantile(ticks[1:], (0.5, 0.99))
    print(f"A tick takes {middle:.2f} ms (median), {slow:.2f} ms (99 % quantile).")
    print(f"The trunk moves {q[-1, 0] - q[0, 0]:.2f} m (reference {trot.forward(times[-1]):.2f} m) in {times[-1]:.1f} s.")
    print(f"Its height stays within {1e3 * np.ptp(q[:, 2]):.0f} mm; feet rise by {1e3 * (feet[..., 2].max() - RADIUS):.0f} mm.")
    names = ["left front", "right front", "left hind", "right hind"]
    picture_of_trot(output / "hyq_trots.png", times, q, feet, trot.forward(times), names)
    film(output / "hyq_trots.gif", robot, q[::3], beside, 50.0 / 3.0, (272, 192))


if __name__ == "__main__":
    main()
