"""Drop a quadruped, push it, and let it slide on ground of varied friction: a complete simulation with a saved file.

    python examples/drop_and_push.py [--output output]        pip install 'featherweight[demo]'

Go2 falls 0.1 m onto its feet, with springs at its joints, and receives a sideways push. Then 64 robots slide at 1 m/s, each on
ground with a different friction. The picture is drop_and_push.png.
"""

import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from guide_pictures import GROUND, RED, draw_curves, output_folder, panels, save

import featherweight as fw

FEET = [f"{leg}_foot" for leg in ("FL", "FR", "RL", "RR")]
RADIUS = 0.022  # [m] radius of a foot
DROP, PUSH, AT, FOR = 0.1, 60.0, 1.0, 0.2  # [m] height, [N] force along y, [s] its beginning and duration
STEP, END, SLIDE, SPEED = 1e-3, 2.0, 1.5, 1.0  # [s], [m/s]
STIFFNESS, DAMPING = 150.0, 4.0  # joint springs and dampers [N m/rad, N m s/rad]


def standing():
    """Return Go2 and its configuration with the feet on the ground."""
    robot = fw.load(fw.example("go2"), base="floating", srdf=fw.example("go2.srdf"))
    q = robot.configurations["standing"].copy()
    q[2] += RADIUS - robot.frame_placement(FEET)(q)[:, 2, 3].min()
    return robot, q


def springs(rest, pushed=False):
    """Return a controller, for one robot or many: springs pull the joints to `rest`, and a force pushes the trunk."""

    def control(time, q, v):
        tau = np.zeros_like(v)
        tau[..., 6:] = STIFFNESS * (rest[7:] - q[..., 7:]) - DAMPING * v[..., 6:]
        if pushed and AT <= time < AT + FOR:
            tau[..., 1] = PUSH  # force of the free-flyer along the y axis of the trunk
        return tau

    return control


def simulation(robot, q, v=None):
    feet = [fw.ContactSphere(foot, RADIUS) for foot in FEET]
    return fw.Simulation(robot, STEP, q=q, v=v, spheres=feet, shapes=False, ground=fw.Plane(friction=1.0), root_forces=True)


def drop(robot, rest):
    """Simulate the fall and the push; return the motion and the energies before [J]."""
    start = rest.copy()
    start[2] += DROP
    sim = simulation(robot, start)
    return sim.energy(), sim.run(END, springs(rest, pushed=True)), sim.q


def slide(robot, rest, settled, count):
    """Return friction factors (count,), and the distances that the feet slide from the initial speed SPEED [m]."""
    friction = np.linspace(0.1, 0.6, count)
    v = np.zeros((count, robot.nv))
    v[:, 0] = SPEED
    sim = simulation(robot, np.tile(settled, (count, 1)), v)
    sim.vary(friction=friction)
    sim.run(SLIDE, springs(rest))
    feet = [robot.frame_placement(FEET)(q)[..., 0, 3].mean(axis=-1) for q in (settled, sim.q)]
    return friction, feet[1] - feet[0]


def solve(robots=64):
    robot, rest = standing()
    begun, motion, settled = drop(robot, rest)
    with tempfile.TemporaryDirectory() as folder:
        motion.save(Path(folder, "drop.npz"))
        again = fw.Trajectory.load(Path(folder, "drop.npz"), robot)
    forces = np.array([motion.contacts(k)[1].sum(axis=0) for k in range(len(motion))])
    energy = robot.kinetic_energy(motion.q, motion.v) + robot.potential_energy(motion.q)
    slid = slide(robot, rest, settled, robots)
    return SimpleNamespace(robot=robot, motion=motion, forces=forces, begun=begun, energy=energy, slid=slid, again=again)


def main():
    output = output_folder(__doc__)
    found = solve()
    motion, forces, (friction, slid) = found.motion, found.forces, found.slid
    weight, coulomb = 9.81 * found.robot.mass, SPEED**2 / (2.0 * 9.81 * friction)
    landed = motion.times[np.argmax(forces[:, 2] > 0.0)]
    print(f"touches the ground after {landed:.3f} s; greatest force {forces[:, 2].max() / weight:.1f} times the weight")
    print(f"at the end the ground bears {forces[-1, 2]:.3f} N; the robot weighs {weight:.3f} N")
    print(f"the push moves it aside by {1e3 * np.ptp(motion.q[:, 1]):.0f} mm")
    print(f"slides {slid[0]:.3f} m to {slid[-1]:.3f} m; by Coulomb's law {coulomb[0]:.3f} m to {coulomb[-1]:.3f} m")
    figure, ((place, force), (energy, sliding)) = panels(2, 2, height=7.0)
    draw_curves(place, motion.times, {"height": motion.q[:, 2], "sideways": motion.q[:, 1]}, "Trunk", "position [m]")
    draw_curves(force, motion.times, {"upward": forces[:, 2], "sideways": forces[:, 1]}, "Ground's force", "force [N]")
    force.axhline(weight, color=GROUND, ls="--", lw=1.0)
    above = {"kinetic and potential": found.energy - found.energy[-1]}
    draw_curves(energy, motion.times, above, "Energy above the final value", "energy [J]")
    for ax in (place, force, energy):
        ax.axvspan(AT, AT + FOR, facecolor="#e4e9ee", lw=0.0, zorder=0)
        ax.annotate("push", (AT, ax.get_ylim()[1]), (2, -10), textcoords="offset points", fontsize=8.5)
    sliding.plot(friction, coulomb, color=GROUND, lw=4.0, alpha=0.6, label="v² / (2 μ g)")
    sliding.plot(friction, slid, ".", color=RED, label=f"{len(slid)} robots")
    sliding.set(title=f"Sliding distance from {SPEED:g} m/s", xlabel="friction μ", ylabel="distance [m]")
    sliding.legend(frameon=False, fontsize=8.5)
    save(figure, output / "drop_and_push.png")


if __name__ == "__main__":
    main()
