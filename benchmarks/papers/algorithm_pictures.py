"""The pictures of docs/algorithms that none of the five papers has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np
from algorithm_robots import CHAIN, robot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from featherweight import Robot, build, generators
from featherweight.engine.operations import Operations
from featherweight.viewer.chart_style import BLUE, DPI, FAINT, GREEN, ORANGE, RED, style

LENGTHS = (2, 3, 4, 6, 8, 10, 14, 20, 30, 40)
SHORTER = (2, 3, 4, 6, 8, 10, 14, 20)
STEPS = (2, 5, 10, 20, 50, 100, 200, 500, 1000)
Count = Callable[[Robot], Operations]


@contextmanager
def picture(path: Path, columns: int = 1, size: tuple[float, float] = (6.4, 3.6)) -> Iterator[list[Axes]]:
    with style():
        figure = Figure(figsize=size, dpi=DPI)
        figure.set_layout_engine("constrained", h_pad=0.08, w_pad=0.08)
        yield list(figure.subplots(1, columns, squeeze=False).flat)
        figure.savefig(path)


def draw(folder: Path) -> None:
    """Save all pictures to a folder."""
    with picture(folder / "chain_dynamics.png") as [ax]:
        draw_dynamics(ax)
    with picture(folder / "chain_derivatives.png") as [ax]:
        draw_derivatives(ax)
    with picture(folder / "patterns.png", 3, (9.0, 3.5)) as axes:
        draw_patterns(axes)
    with picture(folder / "regressor_pattern.png", 1, (9.0, 1.9)) as [ax]:
        draw_regressor(ax)
    with picture(folder / "constant_twist.png") as [ax]:
        draw_constant_twist(ax)


def draw_against_length(ax: Axes, lengths: tuple[int, ...], lines: dict[str, tuple[Count, str, str]]) -> None:
    """Plot operations of chains with general geometry."""
    for label, (count, color, line) in lines.items():
        ax.plot(lengths, [count(robot(f"{CHAIN}{n}")).flops for n in lengths], line, color=color, markersize=3.5, label=label)
    ax.set(xscale="log", yscale="log", xlabel="joints of a chain with general geometry and inertias")
    ax.set_xticks(lengths, [str(n) for n in lengths])
    ax.minorticks_off()
    ax.grid()
    ax.legend(fontsize=8.0, handlelength=2.0)


def draw_dynamics(ax: Axes) -> None:
    lines: dict[str, tuple[Count, str, str]] = {
        "forward dynamics, crba-ltdl": (lambda r: r.forward_dynamics.alternatives["crba-ltdl"].operations, ORANGE, "s-"),
        "forward dynamics, aba": (lambda r: r.forward_dynamics.alternatives["aba"].operations, BLUE, "o-"),
        "mass matrix, crba": (lambda r: r.mass_matrix.operations, FAINT, "^-"),
        "inverse dynamics, rnea": (lambda r: r.inverse_dynamics.operations, GREEN, "D-"),
    }
    draw_against_length(ax, LENGTHS, lines)
    ax.set_title("Multiplications, additions and divisions")


def draw_derivatives(ax: Axes) -> None:
    lines: dict[str, tuple[Count, str, str]] = {
        f"by {label}": (lambda r, way=way: r.inverse_dynamics_derivatives.alternatives[way].operations, color, line)  # type: ignore[misc]
        for label, way, color, line in (
            ("forward differentiation", "forward, rnea", FAINT, "^-"),
            ('the recursion, "local"', "local", BLUE, "o-"),
            ('the recursion, "root"', "root", ORANGE, "s-"),
        )
    }
    lines["inverse dynamics itself"] = (lambda r: r.inverse_dynamics.operations, GREEN, "D-")
    draw_against_length(ax, SHORTER, lines)
    ax.set_title("Operations of ∂τ/∂q, ∂τ/∂v and M")


def draw_patterns(axes: list[Axes]) -> None:
    """Draw the nonzero entries of a humanoid's inertia matrix, of its factor, and of the inverse of the factor."""
    r = robot("talos")
    factors = r.factorize(r.random_configuration(rng=0))
    L = factors.L
    matrices = {"M": L.T @ np.diag(factors.D) @ L, "L": L, "M⁻¹": np.linalg.inv(L.T @ np.diag(factors.D) @ L)}
    for ax, (name, matrix) in zip(axes, matrices.items(), strict=True):
        filled = np.abs(matrix) > 1e-12
        show(ax, filled)
        ax.set_title(f"{name}: {100 * filled.mean():.0f} % filled")


def show(ax: Axes, filled: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], aspect: Literal["equal", "auto"] = "equal") -> None:
    ax.imshow(filled, cmap="Blues", aspect=aspect, vmin=0.0, vmax=1.6, interpolation="nearest")
    ax.set_xticks([])
    ax.set_yticks([])


def draw_regressor(ax: Axes) -> None:
    r = robot("hyq")
    rng = np.random.default_rng(0)
    Y = r.inverse_dynamics_regressor(r.random_configuration(rng=rng), rng.standard_normal(r.nv), rng.standard_normal(r.nv))
    filled = np.abs(np.asarray(Y)) > 1e-12
    show(ax, filled, "auto")
    ax.set_xticks(range(0, filled.shape[1], 10), [b.name for b in r.bodies], rotation=35.0, ha="left", fontsize=6.0)
    ax.xaxis.tick_top()
    ax.set_ylabel("joints")
    ax.set_xlabel(f"ten parameters a body; {100 * filled.mean():.0f} % of the entries are not zero")


def draw_constant_twist(ax: Axes) -> None:
    """Plot the error of a body with a constant twist for a unit of time, in steps on the manifold and in coordinates."""
    r = build(generators.chain(1, joint="floating"))
    q0 = np.asarray(r.neutral())
    v = np.array([1.0, 0.5, -0.3, 0.7, -1.1, 0.4])
    end = np.asarray(r.integrate(q0, v))
    errors: dict[str, list[float]] = {"q exp(h v)": [], "q + h q', normalized": []}
    for steps in STEPS:
        on_manifold, in_coordinates = q0, q0
        for _ in range(steps):
            on_manifold = np.asarray(r.integrate(on_manifold, v / steps))
            in_coordinates = in_coordinates + np.asarray(rate(in_coordinates, v)) / steps
            in_coordinates[3:] /= np.linalg.norm(in_coordinates[3:])
        errors["q exp(h v)"].append(float(np.abs(on_manifold - end).max()))
        errors["q + h q', normalized"].append(float(np.abs(in_coordinates - end).max()))
    for (label, values), color in zip(errors.items(), (BLUE, RED), strict=True):
        ax.plot(STEPS, values, "o-", color=color, markersize=3.5, label=label)
    ax.set(xscale="log", yscale="log", xlabel="steps in a unit of time", ylabel="error of q [m, –]")
    ax.minorticks_off()
    ax.grid()
    ax.legend(fontsize=8.0)
    ax.set_title("A floating body with a constant twist")


def rate(
    q: np.ndarray[tuple[int, ...], np.dtype[np.float64]], v: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return q' of a free-flyer: the linear velocity in the world frame, and half the quaternion times (w, 0)."""
    u, s, w = q[3:6], q[6], v[3:]
    across = np.cross(u, v[:3])
    linear = v[:3] + 2.0 * (s * across + np.cross(u, across))
    return np.concatenate([linear, 0.5 * (s * w + np.cross(u, w)), [-0.5 * u @ w]])
