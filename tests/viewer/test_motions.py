"""Tests of charts and films of trajectories."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import featherweight as fw
from featherweight.array_types import Array
from featherweight.model.generators import chain
from featherweight.robot.trajectory import joint_names

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("trimesh")
PIL = pytest.importorskip("PIL.Image")
matplotlib.use("agg")

import matplotlib.pyplot as plt  # noqa: E402


def flyer() -> fw.Robot:
    """Return a flying body that carries a ball joint, a slide and a hinge."""
    inertia = fw.Inertia(1.0, (0.0, 0.0, 0.1), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1))
    kinds = {"ball": fw.JointType.SPHERICAL, "slide": fw.JointType.PRISMATIC, "hinge": fw.JointType.REVOLUTE}
    names = ["base", *kinds]
    joints = [fw.Joint(k, t, a, k, axis=(1.0, 0.0, 0.0)) for (k, t), a in zip(kinds.items(), names, strict=False)]
    shapes = [fw.Shape(f"{n}_ball", n, fw.ShapeType.SPHERE, (0.1,)) for n in names]
    description = fw.describe([fw.Body(n, inertia) for n in names], joints, shapes=shapes, name="flyer")
    return fw.build(description, base="floating", execution="interpreted")


def motion_of(robot: fw.Robot, tau: bool = True, contacts: bool = False, T: int = 11) -> fw.Trajectory:
    rng = np.random.default_rng(0)
    q, v = robot.random_configuration(rng=rng, size=T), rng.standard_normal((T, robot.nv))
    motion = fw.Trajectory(np.linspace(0.0, 1.0, T), q, v, robot=robot.name, joints=joint_names(robot), system=robot)
    if tau:
        motion = replace(motion, tau=rng.standard_normal((T, robot.nv)))
    if contacts:
        motion = replace(motion, first=np.arange(T + 1), points=np.zeros((T, 3)), forces=rng.standard_normal((T, 3)))
    return motion


def drawn(axes: Array) -> dict[str, dict[str, Array]]:
    """Return the lines of each chart by name, by the label of the chart's axis."""
    lines = {ax.get_ylabel(): {line.get_label(): line.get_ydata() for line in ax.lines} for ax in axes.flat}
    plt.close("all")
    return {label: found for label, found in lines.items() if label}


def test_charts_have_all_degrees_of_freedom_with_their_units() -> None:
    robot = flyer()
    motion = motion_of(robot, contacts=True)
    found = drawn(motion.plot())
    along, about = [f"root_joint {x}" for x in "xyz"], [f"{j} about {x}" for j in ("root_joint", "ball") for x in "xyz"]
    for name, units, values in (
        ("velocity", ("m/s", "rad/s"), motion.v),
        ("joint force", ("N", "N m"), motion.tau),
    ):
        columns = dict(zip([*along, *about, "slide", "hinge"], values.T, strict=True))
        for unit, names in zip(units, ([*along, "slide"], [*about, "hinge"]), strict=True):
            assert set(found[f"{name} [{unit}]"]) == set(names)
            for line in names:
                np.testing.assert_array_equal(found[f"{name} [{unit}]"][line], columns[line])
    np.testing.assert_array_equal(found["position [m]"]["slide"], motion.q[:, robot.joints["slide"].q_slice][:, 0])
    turned = np.column_stack([found["position [rad]"][f"ball about {x}"] for x in "xyz"])
    np.testing.assert_allclose(
        fw.se3.exp3(turned), fw.se3.matrix_from_quaternion(motion.q[:, robot.joints["ball"].q_slice]), atol=1e-12
    )
    for k, x in enumerate("xyz"):
        np.testing.assert_allclose(found["contact force [N]"][x], motion.forces[:, k], atol=1e-12)


def test_charts_of_some_joints_and_without_forces() -> None:
    robot = flyer()
    found = drawn(motion_of(robot, tau=False).plot(joints=["hinge"]))
    assert {label: list(lines) for label, lines in found.items()} == {
        "position [rad]": ["hinge"],
        "velocity [rad/s]": ["hinge"],
    }
    with pytest.raises(ValueError, match=r"no joint 'hing' \(is it 'hinge'\?\)"):
        motion_of(robot).plot(joints=["hing"])


def test_charts_are_written_to_files(tmp_path: Path) -> None:
    assert motion_of(fw.build(chain(2), execution="interpreted")).plot(tmp_path / "chart.png") is None
    with PIL.open(tmp_path / "chart.png") as picture:
        width, height = picture.size
    assert 500 < width < 1500 and 300 < height < 1500 and not plt.get_fignums()


def test_films_last_as_long_as_the_motion_and_show_it(tmp_path: Path) -> None:
    motion_of(flyer(), T=5).save(tmp_path / "film.gif", fps=8.0, size=(48, 32))
    frames: list[Array] = []
    with PIL.open(tmp_path / "film.gif") as film:
        assert film.size == (48, 32)
        for k in range(film.n_frames):
            film.seek(k)
            frames += [np.asarray(film.convert("RGB"), float)] * round(
                film.info["duration"] / 120
            )  # equal frames are written once
    assert len(frames) == 9  # for 5 states
    assert sum(abs(b - a).max() > 30.0 for a, b in pairwise(frames)) == 4


def test_what_cannot_be_drawn_is_refused_by_name(tmp_path: Path) -> None:
    robot = fw.build(chain(2), execution="interpreted")
    motion = motion_of(robot)
    motion.save(tmp_path / "motion.npz")
    unknown = fw.Trajectory.load(tmp_path / "motion.npz")
    for draw in (unknown.plot, lambda: unknown.save(tmp_path / "film.gif")):
        with pytest.raises(ValueError, match=r"Trajectory.load\(path, robot\)"):
            draw()
    assert fw.Trajectory.load(tmp_path / "motion.npz", robot).system is robot
    with pytest.raises(ValueError, match="fps must be a positive number"):
        motion.save(tmp_path / "film.gif", fps=0.0)
    with pytest.raises(ValueError, match=r"2 robots; select one with of\(0\)"):
        fw.Trajectory(motion.times, np.stack([motion.q] * 2, 1), np.stack([motion.v] * 2, 1), system=robot).plot()
    assert not (tmp_path / "film.gif").exists()
