"""Plot functions for the pictures of the examples."""

import argparse
from pathlib import Path

import numpy as np

try:
    from matplotlib.figure import Figure
    from matplotlib.patches import Polygon
    from matplotlib.ticker import MaxNLocator

    from featherweight.viewer.chart_style import BLUE, FAINT, GREEN, PURPLE, RED
except ImportError as error:
    raise SystemExit(f"{error}: the pictures need pip install 'featherweight[demo]'") from None

GROUND = "#9aa3ad"
COLORS = (BLUE, RED, GREEN, PURPLE)
STANCE = {"facecolor": "#e4e9ee", "edgecolor": GROUND, "lw": 0.6, "zorder": 0, "label": "stance"}


def output_folder(doc):
    """Return the output folder from the command line, and create it."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("output"), help="folder for the picture")
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    return output


def save(figure, path):
    for ax in figure.axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(colors=FAINT, labelsize=8.5)
        title = ax.get_title()
        ax.set_title("")
        ax.set_title(title, loc="left", fontsize=10.5, fontweight="bold")
    figure.savefig(path, dpi=160)
    print(f"Picture: {path}")


def film(path, robot, states, camera, rate, size, ground="below"):
    """Save an animation of states (n, nq), `rate` per second; `camera` returns the camera's place and target for a state."""
    from featherweight.viewer import OffscreenScene, save_film

    scene, frames = OffscreenScene(robot, size, q=states[0], ground=ground), []
    for q in states:
        scene.look(*camera(q))
        frames.append(scene.frame(q))
    save_film(path, frames, rate)


def strobe(ax, lines, chosen):
    """Draw lines (n, points, 2) at the chosen knots, early ones pale, the last in red."""
    for i in chosen:
        last = i == chosen[-1]
        strength = 0.15 + 0.6 * i / chosen[-1]
        ax.plot(*lines[i].T, "-o", color=RED if last else BLUE, alpha=1.0 if last else strength, lw=2.0, ms=2.5)
    ax.set_aspect("equal")


def draw_costs(ax, costs):
    """Draw the costs by iteration for each name."""
    for (name, values), color in zip(costs.items(), COLORS, strict=False):
        ax.semilogy(values, "-o", color=color, ms=3.0, lw=1.2, label=name)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(title="Cost", xlabel="iteration", ylabel="cost (weighted squares)")
    ax.legend(frameon=False)


def picture_of_jump(path, swing, jump, push):
    """Plot `swing` (problem, plan), `jump` (problem, plan, goal), and the ground force `push` (knots of stance, 2) [N]."""
    figure = Figure(figsize=(11.0, 8.2), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(1.25, 1.0))
    pendulum, leg = upper.subplots(1, 2, width_ratios=(1.0, 2.2))
    ocp, plan, goal = jump
    draw_pendulum(pendulum, *swing)
    draw_leg(leg, ocp, plan)
    controls, heights, forces = lower.subplots(1, 3)
    draw_controls(controls, *swing, "Torque at the shoulder")
    below = ground(ocp, plan.q)
    hip, toe = (ocp.robot.frame_placement(["thigh", "toe"])(plan.q)[..., 2, 3] - below).T
    draw_heights(heights, ocp, {"hip": hip, "toe": toe}, goal[0] - below)
    draw_forces(forces, ocp, {"upward": push[:, 0], "sideways": push[:, 1]}, "Ground's force on the toe")
    save(figure, path)


def draw_controls(ax, ocp, plan, title):
    times = ocp.dt[0] * np.arange(len(plan.u))
    for column, color in zip(plan.u.T, COLORS, strict=False):
        ax.step(times, column, where="post", color=color)
    ax.set(title=title, xlabel="time [s]", ylabel="torque [N m]", xlim=(0.0, times[-1]))


def draw_pendulum(ax, ocp, plan):
    points = ocp.robot.frame_placement(["upper", "lower", "tip"])(plan.q)[..., :3, 3]
    strobe(ax, points[..., [0, 2]], range(0, len(plan.q), 4))
    ax.plot(*points[:, -1, [0, 2]].T, color=GROUND, lw=0.8)
    every = 1e3 * 4 * ocp.dt[0]
    ax.set(title=f"Swing-up, every {every:.0f} ms", xlabel="x [m]", ylabel="z [m]", xticks=[-0.8, -0.4, 0.0, 0.4])


def linkage(robot, q):
    """Return y and height of toe, foot, driver, thigh ends and support of the leg (n, 6, 2)."""
    names = ["toe", "foot", "shank_driver", "thigh", "shank_support"]
    toe, foot, driver, hip, support = np.moveaxis(robot.frame_placement(names)(q)[..., 1:3, 3], -2, 0)
    joined = foot + 0.031 / 0.127 * (toe - foot)
    return np.stack([toe, foot, driver, hip, support, joined], axis=-2)


def draw_leg(ax, ocp, plan):
    q, h = plan.q, ocp.dt[0]
    chosen = [*range(0, len(q), 10)]
    lines = linkage(ocp.robot, q) - [0.0, ground(ocp, q)]
    lines[..., 0] += 1.6 * h * np.arange(len(q))[:, None]
    strobe(ax, lines, chosen)
    for i in chosen:
        ax.plot(*lines[i, 3], "s", color=RED if i == chosen[-1] else FAINT, ms=9)
    ax.axhline(0.0, color=GROUND, lw=1.5)
    lift_off = lines[ocp.phases[0].knots, 3, 0]
    ax.axvline(lift_off, color=GROUND, lw=0.8, ls=":")
    ax.text(lift_off + 0.005, 0.32, "lift-off", color=FAINT)
    ax.set(
        title=f"Jump on a vertical slider, every {1e3 * 10 * h:.0f} ms",
        xlabel="side by side in time",
        ylabel="height [m]",
    )
    ax.set_xticks([])


def ground(ocp, q):
    return ocp.robot.frame_placement("toe")(q[0])[2, 3]


def draw_heights(ax, ocp, heights, asked):
    """Draw heights by name [m], and the final target of the first."""
    ax.axvspan(0.0, ocp.dt[0] * ocp.phases[0].knots, **STANCE)
    ax.axhline(asked, color=GROUND, ls=":")
    ax.annotate("goal", (0.0, asked), (4, -11), textcoords="offset points", color=FAINT)
    for (name, values), color in zip(heights.items(), COLORS, strict=False):
        times, i = ocp.dt[0] * np.arange(len(values)), 7 * len(values) // 10
        ax.plot(times, values, color=color)
        ax.annotate(name, (times[i], values[i]), (4, -14), textcoords="offset points", color=color)
    ax.set(title="Height", xlabel="time [s]", ylabel="above the ground [m]", xlim=(0.0, times[-1]))


def draw_forces(ax, ocp, forces, title):
    """Draw contact forces of the stance phase by name (knots,); they are zero in flight."""
    knots, h = [phase.knots for phase in ocp.phases], ocp.dt[0]
    times = h * np.arange(sum(knots))
    ax.axvspan(0.0, h * knots[0], **STANCE)
    for (name, values), color in zip(forces.items(), COLORS, strict=False):
        ax.step(times, [*values, *np.zeros(sum(knots[1:]))], where="post", color=color, label=name)
    ax.set(title=title, xlabel="time [s]", ylabel="force [N]", xlim=(0.0, h * sum(knots)))
    ax.legend(frameon=False)


def picture_of_hyq(path, ocp, plan, goal, force):
    """Plot HyQ along a plan, with the ground forces (stance, 4, 3) [N]."""
    figure = Figure(figsize=(11.0, 6.0), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(1.0, 1.35))
    q = plan.q
    draw_hyq(upper.subplots(), ocp, q)
    knees, heights, forces = lower.subplots(1, 3)
    draw_controls(knees, ocp, plan._replace(u=plan.u[:, 2::3]), "Torques at the knees")
    feet = ocp.robot.frame_placement(["lf_foot", "rf_foot", "lh_foot", "rh_foot"])(q)[..., 2, 3].mean(1)
    draw_heights(heights, ocp, {"trunk": q[:, 2], "feet (mean)": feet}, goal[2])
    names = ["left front", "right front", "left hind", "right hind"]
    draw_forces(forces, ocp, dict(zip(names, force[..., 2].T, strict=True)), "Ground's upward forces on the feet")
    save(figure, path)


def draw_hyq(ax, ocp, q):
    """Draw HyQ from the left at several times, side by side."""
    chosen, apart = [0, *range(15, len(q), 7)], 1.0
    chains = [[f"{leg}_{link}" for link in ("hipassembly", "upperleg", "lowerleg", "foot")] for leg in ("lf", "lh")]
    front, hind = (ocp.robot.frame_placement(chain)(q)[..., [0, 2], 3] for chain in chains)
    for column, i in enumerate(chosen):
        color, shift = RED if i == chosen[-1] else BLUE, np.array([apart * column, 0.0])
        ax.plot(*(np.stack([front[i, 0], hind[i, 0]]) + shift).T, color=color, lw=9.0, solid_capstyle="round", alpha=0.5)
        for leg in (front, hind):
            ax.plot(*(leg[i] + shift).T, "-o", color=color, lw=2.0, ms=3.0)
        ax.text(shift[0], -0.06, f"{ocp.dt[0] * i:.2f} s", ha="center", va="top", color=FAINT)
    ax.axhline(0.0, color=GROUND, lw=1.5)
    ax.set_aspect("equal")
    ax.set(title="HyQ jumps, from its left, side by side in time", ylabel="height [m]", xticks=[], ylim=(-0.22, 0.92))


def picture_of_reach(path, robot, q, u, costs, step, target):
    """Plot Panda at the knots q (n+1, nq), with joint forces u (n, nv) and the `target` of the hand [m]."""
    figure = Figure(figsize=(11.0, 8.2), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(1.35, 1.0))
    draw_arm(figure.add_subplot(grid[:, 0], projection="3d"), robot, q, step, target)
    forces, drawn = figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1, 1])
    for j, joint in enumerate(robot.joints[:7]):
        forces.step(step * np.arange(len(u)), u[:, j], where="post", lw=1.2, label=joint.name.removeprefix("panda_"))
    forces.set(title="Joint forces", xlabel="time [s]", ylabel="torque [N m]")
    forces.legend(frameon=False, ncols=4, fontsize=7.5)
    draw_costs(drawn, {"Panda reaches": costs})
    save(figure, path)


def draw_arm(ax, robot, q, step, target):
    frames = [f"panda_link{k}" for k in range(8)] + ["panda_hand", "panda_hand_tcp"]
    points = robot.frame_placement(frames)(q)[..., :3, 3]
    chosen = [*range(0, len(q), 15)]
    for i in chosen:
        last = i == chosen[-1]
        color, alpha = (RED, 1.0) if last else (BLUE, 0.2 + 0.6 * i / chosen[-1])
        ax.plot(*points[i].T, "-o", color=color, alpha=alpha, lw=2.5, ms=3.0)
    ax.plot(*points[:, -1].T, color=GROUND, lw=1.0, label="path of the hand")
    ax.plot(*target, "*", color="black", ms=11, label="target")
    ax.set(title=f"Panda reaches, every {1e3 * 15 * step:.0f} ms", xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")
    ax.set_aspect("equal")
    ax.legend(frameon=False)


def picture_of_identification(path, base, fit, truth, seen, noise):
    """Plot base parameters and their fit, and the measured and predicted forces (n, nv) of a motion."""
    times, asked, predicted = seen
    figure = Figure(figsize=(11.0, 8.2), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(1.0, 1.0))
    draw_base_parameters(upper.subplots(), base, fit, truth)
    one, other, errors = lower.subplots(1, 3, width_ratios=(1.2, 1.2, 1.0))
    for ax, j in ((one, 3), (other, 5)):
        draw_prediction(ax, times, asked[:, j], {name: tau[:, j] for name, tau in predicted.items()}, j + 1)
    other.legend(frameon=False, fontsize=8.5)
    draw_errors(errors, asked, predicted, noise)
    save(figure, path)


def draw_base_parameters(ax, base, fit, truth):
    """Draw errors in standard deviations of the fit, on a scale that is linear up to three."""
    k = np.arange(len(truth))
    ax.axhspan(-3.0, 3.0, **STANCE | {"label": "three standard deviations"})
    ax.plot(k, (base.values - truth) / fit.deviations, "o", color=GROUND, ms=4, label="file")
    ax.plot(k, (fit.values - truth) / fit.deviations, "o", color=BLUE, ms=4, label="found")
    ax.set_yscale("symlog", linthresh=3.0)
    ax.set_xticks(k, [name.removeprefix("panda_") for name in base.names], rotation=90, fontsize=6.5)
    ax.set(title="Errors of base parameters (first of each group)", ylabel="standard deviations", xlim=(-1, len(truth)))
    ax.legend(frameon=False, ncols=3, loc="upper right", fontsize=8.5)


def draw_prediction(ax, times, asked, predicted, joint):
    ax.plot(times, asked, color=GROUND, lw=3.0, alpha=0.5, label="measured")
    for (name, tau), color in zip(predicted.items(), (FAINT, BLUE, RED), strict=True):
        ax.plot(times, tau, color=color, lw=1.1, ls="--" if name == "file" else "-", label=name)
    ax.set(title=f"Joint {joint}, a motion not seen before", xlabel="time [s]", ylabel="torque [N m]")
    ax.margins(y=0.3 if joint > 4 else 0.05)


def draw_errors(ax, asked, predicted, noise):
    """Draw root mean square errors by joint, with the measurement noise."""
    j, width = np.arange(len(noise)), 0.27
    for k, (color, (name, tau)) in enumerate(zip((GROUND, BLUE, RED), predicted.items(), strict=True)):
        ax.bar(j + (k - 1) * width, np.sqrt(np.mean((tau - asked) ** 2, axis=0)), width, color=color, label=name)
    ax.step(np.append(j, len(j)) - 0.5, np.append(noise, noise[-1]), where="post", color="black", lw=1.0, label="noise")
    ax.set_yscale("log")
    ax.set_xticks(j, [*(f"{k + 1}" for k in j[:-1]), "finger"])
    ax.set(title="Prediction errors", xlabel="joint", ylabel="rms [N m, N]")
    ax.legend(frameon=False, fontsize=8.0)


def picture_of_workspace(path, robot, x, z, share, arms):
    """Plot the share (z, x) of reachable directions of a hand at points of a plane, and some arms (n, points, 3)."""
    figure = Figure(figsize=(7.2, 6.2), layout="constrained")
    ax = figure.subplots()
    shown = ax.pcolormesh(x, z, np.where(share > 0.0, share, np.nan), cmap="YlGnBu", vmin=0.0, vmax=1.0, shading="nearest")
    bar = figure.colorbar(shown, ax=ax, shrink=0.85, label="share of reachable directions")
    bar.outline.set_visible(False)
    for arm in arms:
        base = np.array([[0.0, 0.0, 0.0]])
        ax.plot(*np.concatenate([base, arm])[:, [0, 2]].T, "-o", color=RED, lw=1.6, ms=2.5, alpha=0.75)
    ax.axhline(0.0, color=GROUND, lw=0.8)
    ax.set_aspect("equal")
    ax.set(title=f"Workspace of {robot.name}'s hand in the plane y = 0", xlabel="x [m]", ylabel="z [m]")
    save(figure, path)


def picture_of_hopping(path, progress, ends, radii, dt):
    """Plot the trained motion: capsules with ends (n, capsules, 2, 2) at intervals of `dt`, and the training progress."""
    figure = Figure(figsize=(11.0, 5.6), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(1.0, 1.1))
    draw_hops(upper.subplots(), ends[min(round(1.0 / dt), len(ends) // 2) :], radii, dt)  # after the first transient
    returns, lengths = lower.subplots(1, 2)
    for ax, values, title in ((returns, progress.returns, "Return of episodes"), (lengths, progress.lengths, "Their steps")):
        ax.plot(np.array(progress.steps) / 1e6, values, color=BLUE, lw=1.6)
        minutes = progress.seconds[-1] / 60.0
        ax.set(title=title, xlabel=f"million steps of all robots, in {minutes:.1f} minutes", ylim=(0.0, None))
    save(figure, path)


def picture_of_walking(path, progress, commands, velocities, dt):
    """Plot the training progress, and velocities (times, robots, 3) of quadrupeds that follow commands (times, 3)."""
    figure = Figure(figsize=(11.0, 5.2), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.0, 1.5))
    returns = left.subplots()
    returns.plot(np.array(progress.steps) / 1e6, progress.returns, color=BLUE, lw=1.6)
    minutes = progress.seconds[-1] / 60.0
    returns.set(title="Return of episodes", xlabel=f"million steps of all robots, in {minutes:.1f} minutes", ylim=(0.0, None))
    times, names = dt * np.arange(1, len(commands) + 1), ("forward [m/s]", "sideways [m/s]", "turn [rad/s]")
    for k, (ax, name) in enumerate(zip(right.subplots(3, 1, sharex=True), names, strict=True)):
        low, high = np.percentile(velocities[:, :, k], (10, 90), axis=1)
        ax.fill_between(times, low, high, color=BLUE, alpha=0.25, lw=0.0)
        ax.plot(times, velocities[:, :, k].mean(axis=1), color=BLUE, lw=1.2)
        ax.plot(times, commands[:, k], color=RED, lw=1.4)
        ax.set(ylabel=name)
    ax.set(xlabel="time [s]; commands red, the mean of all robots and their inner 80 % blue")
    save(figure, path)


def draw_hops(ax, ends, radii, dt, every=0.08, columns=22):
    """Draw hops from the side, along the distance."""
    stride = max(1, round(every / dt))
    poses = ends[: stride * columns : stride] - [ends[0, 0, 0, 0], 0.0]
    for i, pose in enumerate(poses):
        for capsule, radius, color in zip(pose, radii, (BLUE, BLUE, BLUE, RED), strict=False):
            ax.add_patch(stadium(*capsule, radius, color, 0.25 + 0.65 * i / len(poses)))
    ax.plot(*(ends[: stride * (len(poses) - 1) + 1, 0, 1] - [ends[0, 0, 0, 0], 0.0]).T, color=FAINT, lw=0.8)
    ax.axhline(0.0, color=GROUND, lw=1.5)
    ax.set_aspect("equal")
    ax.autoscale_view()
    ax.set(title=f"What it learned, every {1e3 * stride * dt:.0f} ms", xlabel="forward [m]", ylabel="height [m]")


def stadium(a, b, radius, color, alpha):
    """Return a capsule seen from the side."""
    along = (b - a) / np.linalg.norm(b - a)
    turn = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 12)
    half = radius * np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    across = np.array([-along[1], along[0]])
    outline = np.concatenate([b + half @ [along, across], a + half @ [-along, -across]])
    return Polygon(outline, facecolor=color, alpha=alpha, lw=0.0)


def picture_of_cells(path, counts, volumes, low, cell, arm):
    """Plot two sections of the workspace, from above and from the side: counts of states, and the best manipulability."""
    figure = Figure(figsize=(11.0, 8.6), layout="constrained")
    cuts = ((2, int((0.2 - low[2]) / cell)), (1, int((0.3 - low[1]) / cell)))
    for (normal, k), row in zip(cuts, figure.subplots(2, 2), strict=True):
        across, up = (i for i in range(3) if i != normal)
        edges = [low[i] + cell * np.arange(counts.shape[i] + 1) for i in (across, up)]
        n, w = (np.take(x, k, axis=normal).T for x in (counts, volumes))
        where = f"{'xyz'[normal]} = {low[normal] + (k + 0.5) * cell:.2f} m"
        shown = (
            ("States by hand position", np.log10(np.maximum(n, 1)), "log10 of states in a cell", "YlGnBu"),
            ("Greatest manipulability", w, "√det J Jᵀ [m³/rad³]", "magma_r"),
        )
        for ax, (title, values, label, colors) in zip(row, shown, strict=True):
            drawn = ax.pcolormesh(*edges, np.where(n > 0, values, np.nan), cmap=colors)
            figure.colorbar(drawn, ax=ax, shrink=0.8, label=label).outline.set_visible(False)
            ax.plot(*arm[:, (across, up)].T, "-o", color=RED, lw=1.6, ms=2.5)
            ax.set(title=f"{title}, {where}", xlabel=f"{'xyz'[across]} [m]", ylabel=f"{'xyz'[up]} [m]")
            ax.set_aspect("equal")
    save(figure, path)


def picture_of_reaching(path, costs, times, off, tip, target, shown=8):
    """Plot costs of updates, distances `off` (times, episodes) [m] over times [s], and paths of tips (times, episodes, 2)."""
    figure = Figure(figsize=(11.0, 3.6), layout="constrained")
    learning, distances, plane = figure.subplots(1, 3)
    learning.plot(range(1, len(costs) + 1), costs, color=BLUE, lw=1.2)
    learning.set(title="Mean cost of an episode", xlabel="updates", ylim=(0.0, None))
    distances.plot(times, off, color=BLUE, lw=0.8, alpha=0.5)
    distances.set(title="Distance to new targets [m]", xlabel="time [s]", ylim=(0.0, None))
    for k in range(shown):
        plane.plot(*tip[:, k].T, color=BLUE, lw=1.0)
    plane.plot(*target[:shown].T, "o", color=RED, ms=4.0)
    plane.set_aspect("equal")
    plane.set(title="Paths of the tip", xlabel="x [m]", ylabel="z [m]")
    save(figure, path)


def picture_of_avoiding(path, times, away, kept, gap):
    """Plot distances of the hand from its target, and of the arm from the wall and the ball [m], over time [s]."""
    figure = Figure(figsize=(8.5, 4.6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    upper.plot(times, 1e3 * away, color=BLUE)
    upper.set(title="Hand to target", ylabel="distance [mm]", ylim=(0.0, None))
    for distance, name, color in zip(kept.T, ("wall", "ball"), COLORS, strict=False):
        lower.plot(times, 1e3 * distance, color=color, label=name)
    lower.axhline(1e3 * gap, color=GROUND, lw=0.8, ls="--", label="required")
    lower.set(title="Arm to obstacles", ylabel="distance [mm]", xlabel="time [s]", xlim=(times[0], times[-1]))
    lower.legend(frameon=False)
    save(figure, path)


def picture_of_trot(path, times, q, feet, forward, names):
    """Plot the distance, height and sideways motion of the trunk, and the heights of the feet [m], over time [s]."""
    figure = Figure(figsize=(9.5, 6.2), layout="constrained")
    way, sideways, heights = figure.subplots(3, 1, sharex=True, height_ratios=(1.0, 1.0, 1.4))
    way.plot(times, q[:, 0] - q[0, 0], color=BLUE, label="trunk")
    way.plot(times, forward, color=GROUND, ls="--", lw=0.9, label="target")
    way.set(title="Forward", ylabel="[m]")
    way.legend(frameon=False)
    sideways.plot(times, 1e3 * (q[:, 1] - q[0, 1]), color=BLUE, label="sideways")
    sideways.plot(times, 1e3 * (q[:, 2] - q[0, 2]), color=RED, label="upward")
    sideways.set(title="Displacement of the trunk", ylabel="[mm]")
    sideways.legend(frameon=False, ncols=2)
    for z, name, color in zip(feet[..., 2].T, names, COLORS, strict=True):
        heights.plot(times, 1e3 * z, color=color, lw=1.0, label=name)
    heights.set(title="Feet", ylabel="height [mm]", xlabel="time [s]", xlim=(times[0], times[-1]))
    heights.legend(frameon=False, ncols=4, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0)
    save(figure, path)


def picture_of_walk(path, times, center, targets, soles):
    """Plot the centre of mass with its targets, and the soles [m], over time [s]."""
    figure = Figure(figsize=(9.5, 7.6), layout="constrained")
    axes = figure.subplots(4, 1, sharex=True)
    for axis, name, i in zip(axes, ("Forward", "Sideways", "Height"), range(3), strict=False):
        axis.plot(times, center[:, i], color=BLUE, label="centre of mass")
        axis.plot(times, targets[:, i], color=GROUND, ls="--", lw=0.9, label="target")
        axis.set(title=name, ylabel="[m]")
    for i, (name, color) in enumerate((("left", BLUE), ("right", RED))):
        axes[0].plot(times, soles[:, i, 0], color=color, lw=0.8, ls=":", label=f"{name} sole")
        axes[3].plot(times, 1e3 * soles[:, i, 2], color=color, label=name)
    axes[0].legend(frameon=False, ncols=2)
    axes[3].set(title="Heights of the soles", ylabel="[mm]", xlabel="time [s]", xlim=(times[0], times[-1]))
    axes[3].legend(frameon=False, ncols=2, loc="upper left")
    save(figure, path)
