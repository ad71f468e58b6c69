"""Load gears, a differential, a four-bar and a parallel ankle from URDF, MJCF and Python, and compare the results.

    python examples/closed_chains.py [--output output]        pip install 'featherweight[demo,mjcf]'

closed_chain_files.py contains the files and the Python descriptions. The picture closed_chains.png shows how the bodies follow
the motors, and the inertia at a motor.
"""

import tempfile
from pathlib import Path
from typing import NamedTuple

import closed_chain_files as files
import numpy as np
from guide_pictures import BLUE, GROUND, RED, output_folder, panels, save

import featherweight as fw

FORMATS = {  # formats, and their line styles, drawn on top of each other
    "URDF": dict(color=GROUND, lw=5.0, alpha=0.6),
    "MJCF": dict(color=BLUE, lw=2.2, ls="--"),
    "Python": dict(color=RED, lw=1.4, ls=":"),
}


class Kind(NamedTuple):
    """Three descriptions of a mechanism, its driven joints, the output body, the range of the first motor, and a guess."""

    descriptions: tuple
    driven: tuple[str, ...]
    output: str
    turn: tuple[float, float]  # [rad]
    guess: dict[str, float] = {}  # noqa: RUF012  # needed where the zero configuration is far from closed


KINDS = {
    "gears": Kind(files.GEARS, ("motor",), "forearm", (0.0, 2.0 * np.pi)),
    "differential": Kind(files.DIFFERENTIAL, ("motor1", "motor2"), "wrist", (-1.0, 1.0)),
    "four-bar": Kind(files.FOUR_BAR, ("motor",), "rocker", (0.0, 2.0 * np.pi), {"pin": -0.9, "swing": -1.8}),
    "parallel ankle": Kind(files.ANKLE, ("left_motor", "right_motor"), "foot", (-0.7, 0.7)),
}


def robots(name, folder):
    """Build the mechanism from each format."""
    urdf, mjcf, description = KINDS[name].descriptions
    paths = Path(folder, f"{name}.urdf"), Path(folder, f"{name}.xml")
    for path, text in zip(paths, (urdf, mjcf), strict=True):
        path.write_text(text)
    loaded = [fw.load(path, independent=KINDS[name].driven) for path in paths]
    return dict(zip(FORMATS, (*loaded, fw.build(description, independent=KINDS[name].driven)), strict=True))


def assembled(robot, name, angles):
    """Return the configurations (n, nq) at angles (n, driven) of the driven joints, each solved from the previous one."""
    q = np.zeros(robot.nq)
    for joint, guess in KINDS[name].guess.items():
        q[robot.joint(joint).q_slice] = guess
    found = []
    for row in angles:
        for joint, angle in zip(KINDS[name].driven, row, strict=True):
            q[robot.joint(joint).q_slice] = angle
        q = robot.close(q)  # the other joints follow
        found.append(q.copy())
    return np.array(found)


def compare(name, folder):
    """Return the largest relative difference between formats of accelerations, forces and inertias."""
    every, rng = robots(name, folder), np.random.default_rng(0)
    first = every["URDF"]
    q = assembled(first, name, np.linspace(0.0, 0.4, 20)[:, None] * rng.uniform(0.5, 1.0, first.nv))
    v, tau = rng.standard_normal((2, 20, first.nv))
    results = [(r.forward_dynamics(q, v, tau), r.inverse_dynamics(q, v, tau), r.mass_matrix(q)) for r in every.values()]
    pairs = [pair for other in results[1:] for pair in zip(results[0], other, strict=True)]
    return max(float(abs(x - y).max() / abs(x).max()) for x, y in pairs)


def followed(robot, name, count=181):
    """Return angles (n) of the first motor, pitch and roll (n) of the output body, and the inertia (n) at the motor."""
    turned = np.linspace(*KINDS[name].turn, count)
    q = assembled(robot, name, np.stack([turned] + [0.0 * turned] * (robot.nv - 1), axis=1))
    R = robot.frame_placement(KINDS[name].output)(q)[:, :3, :3]
    pitch, roll = np.arctan2(-R[:, 2, 0], R[:, 0, 0]), np.arctan2(-R[:, 1, 2], R[:, 1, 1])
    return turned, np.unwrap(pitch), roll, robot.mass_matrix(q)[:, 0, 0]


def solve(count=181):
    """Return for each mechanism the difference between formats, and the result of `followed` for each format."""
    with tempfile.TemporaryDirectory() as folder:
        return {
            name: (compare(name, folder), {f: followed(robot, name, count) for f, robot in robots(name, folder).items()})
            for name in KINDS
        }


def main():
    output = output_folder(__doc__)
    found = solve()
    for name, (difference, _) in found.items():
        print(f"{name:16s}URDF, MJCF and Python differ by {difference:.1e}")
    figure, axes = panels(len(KINDS), rows=2, width=12.5, height=5.6, sharex="col")
    for (angles, inertias), (name, (_, curves)) in zip(axes.T, found.items(), strict=True):
        for f, (motor, pitch, roll, inertia) in curves.items():
            for word, angle in (("pitch", pitch), ("roll", roll)):
                if abs(angle).max() > 1e-6:
                    angles.plot(np.degrees(motor), np.degrees(angle), **FORMATS[f])
                    angles.annotate(
                        word,
                        np.degrees([motor[-1], angle[-1]]),
                        (4, 6 if word == "roll" else -6),
                        textcoords="offset points",
                        fontsize=8.5,
                    )
            inertias.plot(np.degrees(motor), 1e3 * inertia, **FORMATS[f], label=f)
        angles.set_title(f"{name.capitalize()}: {KINDS[name].output}")
        angles.margins(x=0.16)
        inertias.set(xlabel=f"{KINDS[name].driven[0]} [°]")
        inertias.margins(y=0.2)
        inertias.set_ylim(0.0, None)
    axes[0, 0].set_ylabel("angle of the body [°]")
    axes[1, 0].set_ylabel("inertia at the motor [10⁻³ kg m²]")
    axes[1, 0].legend(frameon=False, fontsize=8.5, loc="lower left")
    save(figure, output / "closed_chains.png")


if __name__ == "__main__":
    main()
