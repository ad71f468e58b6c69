"""Plot functions for the pictures of the guides (docs/guides)."""

import numpy as np
from pictures import BLUE, COLORS, FAINT, GROUND, RED, Figure, output_folder, save

__all__ = ["BLUE", "COLORS", "FAINT", "GROUND", "RED", "draw_bars", "draw_curves", "output_folder", "panels", "save"]


def panels(columns, rows=1, width=11.0, height=3.8, **options):
    """Return a figure and its axes."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **options)


def draw_curves(ax, times, curves, title, label, colors=COLORS, **style):
    """Plot values over time [s], by name."""
    for (name, values), color in zip(curves.items(), colors, strict=False):
        ax.plot(times, values, color=color, lw=1.3, label=name, **style)
    ax.set(title=title, xlabel="time [s]", ylabel=label, xlim=(times[0], times[-1]))
    ax.legend(frameon=False, fontsize=8.5)


def draw_bars(ax, groups, names, title, label, colors=COLORS):
    """Plot bars of the values of each name in each group: {group: (value of each name)}."""
    width = 0.8 / len(names)
    for k, (name, color) in enumerate(zip(names, colors, strict=False)):
        x = [i + (k - 0.5 * (len(names) - 1)) * width for i in range(len(groups))]
        bars = ax.bar(x, [values[k] for values in groups.values()], width, color=color, label=name)
        ax.bar_label(bars, fmt="%.3g", fontsize=8.0, color=FAINT)
    ax.set_xticks(range(len(groups)), list(groups))
    ax.set(title=title, ylabel=label)
    ax.margins(y=0.35)  # space for names above the bars
    ax.legend(frameon=False, fontsize=8.5, loc="upper center", ncols=len(names), handlelength=1.0, columnspacing=1.0)


def picture_of_balance(path, found, seen, corners):
    """Plot Talos at some instants, its centre of mass, the corners of its feet (2, 4, 3), and the foot loads."""
    figure, ((body, center), (ground, loads)) = panels(2, 2, height=8.2, width_ratios=(1.0, 1.3))
    draw_talos(body, found, [0, *(len(seen.times) * k // 6 for k in (2, 3, 4))], seen.times)
    moved, asked = (1e3 * (x - seen.center[0]) for x in (seen.center, seen.asked))
    names = {"x": 0, "y": 1, "z": 2}
    title, label = "Displacement of the centre of mass; dotted: desired", "displacement [mm]"
    draw_curves(center, seen.times, {axis: moved[:, i] for axis, i in names.items()}, title, label)
    center.plot(seen.times, asked, color="black", lw=1.0, ls=":")
    for foot in corners[:, [0, 1, 3, 2, 0]]:
        ground.fill(*foot[:, 1::-1].T, color="#e4e9ee", ec=GROUND)
    ground.plot(*seen.zmp[:, ::-1].T, color=RED, lw=1.0, label="zero-moment point")
    ground.plot(*seen.center[:, 1::-1].T, color=BLUE, lw=2.0, label="centre of mass")
    ground.set_aspect("equal")
    ground.invert_xaxis()
    ground.set(title="Feet from above", xlabel="y [m]", ylabel="x [m]")
    ground.legend(frameon=False, fontsize=8.5, loc="lower right", bbox_to_anchor=(1.0, 1.0))
    named = dict(zip(("left", "right"), seen.loads.T, strict=True))
    draw_curves(loads, seen.times[1:], named, "Upward force on the feet; dotted: planned", "force [N]")
    loads.plot(seen.times[1:], found.control.planned, color="black", lw=1.0, ls=":")
    save(figure, path)


def draw_talos(ax, found, chosen, times):
    """Draw Talos from behind, at some instants."""
    limbs = [["base_link", *(f"leg_{s}_{k}_link" for k in (1, 3, 4, 5)), f"{s}_sole_link"] for s in ("left", "right")]
    limbs += [["torso_2_link", *(f"arm_{s}_{k}_link" for k in (2, 4, 5))] for s in ("left", "right")]
    limbs += [["base_link", "torso_2_link", "head_2_link"]]
    for k, color in zip(chosen, (GROUND, BLUE, RED, COLORS[2]), strict=True):
        for i, limb in enumerate(limbs):
            points = found.robot.frame_placement(limb)(found.motion.q[k])[:, 1:3, 3]
            ax.plot(*points.T, "-o", color=color, lw=1.6, ms=2.5, label=None if i else f"{times[k]:.2f} s")
    ax.axhline(0.0, color=GROUND, lw=1.5)
    ax.set_aspect("equal")
    ax.invert_xaxis()
    ax.set(title="Talos from behind", xlabel="y [m]", ylabel="z [m]")
    ax.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(1.0, 0.5))


def picture_of_plans_through_contact(path, q, goal, gaps, rise, jumps):
    """Plot a push q (knots + 1, 5) to `goal`, gradients by gaps, plans of a robot that rises, and costs by gaps.

    `rise` has the robot, the frames of its legs, and (cost, q) of plans by their guesses.
    """
    figure = Figure(figsize=(12.0, 6.2), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(2.2, 1.0))
    arm, gradient, jump = upper.subplots(1, 3, width_ratios=(1.0, 1.1, 1.3))
    robots = lower.subplots(1, 2)
    draw_push(arm, q, goal)
    sweep, found = gaps
    for values, name, color in zip(found[..., 1], ("exact", "with a margin of 50 mm"), COLORS, strict=False):
        gradient.plot(1e3 * sweep, values, color=color, lw=1.5, label=name)
    label = "largest derivative of the cost [1/(N m)]"
    gradient.set(title="No gradient before contact", xlabel="gap [mm]", ylabel=label)
    gradient.legend(frameon=False, fontsize=8.5)
    robot, lines, plans = rise
    for ax, (guess, (cost, states)) in zip(robots, plans.items(), strict=True):
        draw_rise(ax, robot, lines, states, f"Go2 stands up; guess: {guess} (cost {cost:.2f})")
    for (name, values), color in zip(jumps[1].items(), (RED, BLUE), strict=True):
        jump.plot(1e3 * jumps[0], values, color=color, lw=1.2, marker=".", ms=3.0, label=name)
    jump.set(title="The same push from other gaps", xlabel="gap [mm]", ylabel="cost")
    jump.legend(frameon=False, fontsize=8.5)
    save(figure, path)


def draw_push(ax, q, goal):
    """Draw the arm and the box of docs/files/pusher.xml from above, at some instants."""
    corners = 0.05 * np.array([[1, 1], [-1, 1], [-1, -1], [1, -1], [1, 1]])

    def outline(x, y, turn):
        c, s = np.cos(turn), np.sin(turn)
        return corners @ np.array([[c, s], [-s, c]]) + [0.45 + x, 0.25 + y]

    chosen = np.linspace(0, len(q) - 1, 6).astype(int)
    for i in chosen:
        last = i == chosen[-1]
        style = {"color": RED if last else BLUE, "alpha": 1.0 if last else 0.2 + 0.5 * i / chosen[-1]}
        angles = np.cumsum(q[i, :2])
        links = np.array([0.35, 0.3])[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        ax.plot(*np.vstack([np.zeros(2), np.cumsum(links, axis=0)]).T, "-o", lw=2.0, ms=3.0, **style)
        ax.plot(*outline(*q[i, 2:]).T, lw=1.5, **style)
    ax.plot(*outline(*goal[2:]).T, color="black", lw=1.0, ls=":")
    ax.set_aspect("equal")
    ax.set(title="A push; dotted: the goal", xlabel="x [m]", ylabel="y [m]")


def draw_rise(ax, robot, lines, q, title):
    """Draw a quadruped from the side at some instants, one beside the other: legs as lines of frames, and the trunk."""
    chosen = np.linspace(0, len(q) - 1, 5).astype(int)
    for n, i in enumerate(chosen):
        color, shift = RED if i == chosen[-1] else BLUE, 0.7 * n
        hips = []
        for frames in lines:
            points = robot.frame_placement(frames)(q[i])[:, :3, 3]
            hips.append(points[0])
            ax.plot(points[:, 0] + shift, points[:, 2], "-o", color=color, lw=2.0, ms=3.0)
        ax.plot(*(np.array(hips)[:, [0, 2]] + [shift, 0.0]).T, color=color, lw=5.0, solid_capstyle="round", alpha=0.5)
    ax.axhline(0.0, color=GROUND, lw=1.0)
    ax.set_aspect("equal")
    ax.set(title=title, xlabel="x, shifted by time [m]", ylabel="z [m]", ylim=(-0.05, 0.5))
