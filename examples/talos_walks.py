"""Talos squats, resists a push, and walks: model predictive control of the whole body, in a simulation with contact.

    python examples/talos_walks.py [--output output]        pip install 'featherweight[demo]'

Every 30 ms, one iteration of the solver plans the next second from the simulated state: joint forces of all 32 joints, with the
centres of pressure inside the soles. The robot squats on both feet, a force pushes its chest, and then the phases of a walk
repeat. The picture is talos_walks.png, and the animation talos_walks.gif.
"""

import time

import numpy as np
from pictures import film, output_folder, picture_of_walk

import featherweight as fw

TALOS = "talos_reduced"
SOLES = ("left_sole_link", "right_sole_link")
STEP, KNOTS = 0.03, 35
BOTH, ONE = 12, 16  # numbers of knots on both feet, and on one
TICK = 1e-3  # [s] step of the simulation
DEPTH, SQUAT = 0.12, 2.4  # [m] depth of the squat, [s] its duration
PUSH, PUSHED = 80.0, (3.0, 3.15)  # [N] force forwards, [s] its interval
WALK, STRIDE, LIFT = 4.5, 0.12, 0.06  # [s] start of the walk, [m] stride of the body in a step, [m] height of a foot
SOLE, FRICTION = (0.19, 0.11), 0.6  # [m] dimensions below those of the soles: a margin for the centre of pressure


def standing(robot):
    """Return a configuration with bent knees and the soles on the ground."""
    bent = {"leg_left_3": -0.41, "leg_left_4": 0.86, "leg_left_5": -0.45, "arm_left_2": 0.25, "arm_left_4": -0.5}
    bent |= {name.replace("left", "right"): -x if name == "arm_left_2" else x for name, x in bent.items()}
    q = robot.neutral()
    for name, x in bent.items():
        q[robot.joint(f"{name}_joint").q_slice] = x
    q[2] = -robot.frame_placement(SOLES)(q)[:, 2, 3].min()
    return q


def problem(robot, phases, knots=None):
    """Return the problem for `phases`, each a number of knots and the soles on the ground; with `knots` they repeat."""
    contacts = {sole: fw.BilateralContact(sole) for sole in SOLES}
    phases = [fw.Phase(n, [contacts[sole] for sole in soles]) for n, soles in phases]
    root, *joints = [j.name for j in robot.joints]
    trunk = np.append(np.ones(6), np.zeros(robot.nv - 6))
    ocp = fw.OptimalControl(robot, dt=STEP, knots=knots, phases=phases)
    ocp.add(fw.PostureTask([root], name="trunk"), weight=200.0)
    ocp.add(fw.PostureTask(joints, name="joints"), weight=1.0)
    ocp.add(fw.CenterOfMassTask(), weight=500.0)
    ocp.add(fw.JointVelocities(trunk, name="speed of the trunk"), weight=20.0)
    ocp.add(fw.JointVelocities(1.0 - trunk), weight=0.5)
    ocp.add(fw.Effort(), weight=1e-4)
    for sole in SOLES:
        ocp.add(fw.FrameTask(sole, name=sole), weight=3000.0)
    ocp.limit(friction=FRICTION, sole=SOLE)
    return ocp


class Reference:
    """Reference motion of the trunk, the centre of mass and the soles."""

    def __init__(self, robot, start):
        self.start, self.center = start, robot.center_of_mass(start)
        self.places = robot.frame_placement(SOLES)(start)

    def sole(self, i, t):
        """Return placements of a sole (..., 4, 4); the right one swings first, and each lands a stride ahead of the other."""
        half = (BOTH + ONE) * STEP
        cycles, phase = np.divmod(t - WALK - (0.0 if i == 1 else half), 2.0 * half)
        walks = cycles >= 0.0
        part = np.where(walks, np.clip((phase - BOTH * STEP) / (ONE * STEP), 0.0, 1.0), 0.0)
        landed = 2.0 * np.where(walks, cycles, 0.0) - i * (cycles > 0.0)  # strides ahead of the start
        following = landed + np.where(cycles > 0.0, 2.0, 2.0 - i)
        T = np.tile(self.places[i], (len(t), 1, 1))
        T[:, 0, 3] += STRIDE * (landed + (following - landed) * (part - np.sin(2.0 * np.pi * part) / (2.0 * np.pi)))
        T[:, 2, 3] += LIFT * np.sin(np.pi * part) ** 2
        return T

    def targets(self, t):
        """Return the targets of knots that start at times t (knots + 1,)."""
        soles = [self.sole(i, t) for i in range(2)]
        shift = np.zeros((len(t), 3))
        shift[:, :2] = np.mean([T[:, :2, 3] - place[:2, 3] for T, place in zip(soles, self.places, strict=True)], axis=0)
        shift[:, 2] = -DEPTH * np.sin(np.pi * np.clip(t / SQUAT, 0.0, 1.0)) ** 2
        trunk = np.tile(self.start, (len(t), 1))
        trunk[:, :3] += shift
        targets = {"trunk": trunk, "joints": self.start, "center of mass": self.center + shift}
        return targets | dict(zip(SOLES, soles, strict=True))


def run(robot, seconds=12.0):
    """Return configurations every 30 ms, their references, and the computing time of each controller call [s]."""
    start = standing(robot)
    reference = Reference(robot, start)
    stand = fw.Controller(problem(robot, [(KNOTS, SOLES)]), frequency=1.0 / STEP)
    steps = [(BOTH, SOLES), (ONE, SOLES[:1]), (BOTH, SOLES), (ONE, SOLES[1:])]
    walk = fw.Controller(problem(robot, steps, KNOTS), frequency=1.0 / STEP) if seconds > WALK else stand
    corners = [fw.ContactSphere(sole, 0.005, (x, y, 0.005)) for sole in SOLES for x in (-0.1, 0.1) for y in (-0.06, 0.06)]
    sim = fw.Simulation(robot, TICK, q=start, ground=fw.Plane(), spheres=corners, shapes=False)
    chest = [body.name for body in robot.bodies].index("torso_2_link")
    ahead, motion, ticks, push = STEP * np.arange(KNOTS + 1), [], [], np.zeros((len(robot.bodies), 6))
    for k in range(round(seconds / TICK)):
        t, tick = k * TICK, k % round(STEP / TICK) == 0
        mpc, begin = (walk, WALK) if t >= WALK else (stand, 0.0)
        if tick:
            motion.append(sim.q.copy())
            mpc.targets = reference.targets(t + ahead)
        begun = time.perf_counter()
        tau = mpc(t - begin, sim.q, sim.v)
        if tick:
            ticks.append(time.perf_counter() - begun)
        push[chest, 0] = PUSH if PUSHED[0] <= t < PUSHED[1] else 0.0
        sim.step(tau, external_forces=push)
    return np.array(motion), reference, np.array(ticks)


def beside(q):
    """Return a camera that stands beside the way and sees all of it."""
    return (1.5, -3.1, 1.0), (0.55, 0.0, 0.85)


def main():
    output = output_folder(__doc__)
    robot = fw.load(fw.example(TALOS), base="floating", mimic="independent")
    q, reference, ticks = run(robot)
    times = STEP * np.arange(len(q))
    targets = reference.targets(times)
    center, soles = robot.center_of_mass(q), robot.frame_placement(SOLES)(q)[:, :, :3, 3]
    middle, slow = 1e3 * np.quantile(ticks[1:], (0.5, 0.99))
    print(f"A tick takes {middle:.1f} ms (median), {slow:.1f} ms (99 % quantile).")
    print(f"The robot squats by {1e3 * np.ptp(center[times < SQUAT, 2]):.0f} mm.")
    print(f"It walks {center[-1, 0] - center[0, 0]:.2f} m; the soles rise by {1e3 * soles[..., 2].max():.0f} mm.")
    picture_of_walk(output / "talos_walks.png", times, center, targets["center of mass"], soles)
    film(output / "talos_walks.gif", robot, q[::5], beside, 1.0 / (5 * STEP), (400, 320))


if __name__ == "__main__":
    main()
