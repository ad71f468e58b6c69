"""Tests of trajectories in files: equal bits, single robots, and errors for damaged files."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.model.generators import chain
from featherweight.robot.trajectory import joint_names

FIELDS = ("times", "q", "v", "first", "points", "forces", "internal", "tau")


@pytest.fixture(scope="module")
def robot() -> fw.Robot:
    return fw.build(chain(3, rng=1))


def motion_of(robot: fw.Robot, robots: int = 0) -> fw.Trajectory:
    rng = np.random.default_rng(0)
    shape = (4, robots) if robots else (4,)
    q, v = rng.standard_normal((*shape, robot.nq)), rng.standard_normal((*shape, robot.nv))
    q.flat[:3] = np.nan, -0.0, 5e-324
    points, forces = rng.standard_normal((2, 5, 3))
    times = np.array([0.0, 0.1, 0.30000000000000004, 1e9])
    return fw.Trajectory(
        times, q, v, np.array([0, 0, 2, 2, 5]), points, forces, robot.name, joint_names(robot), np.sin(v),
        internal=np.array([True, False, False, True, True]),
    )  # fmt: skip


def assert_same(a: fw.Trajectory, b: fw.Trajectory) -> None:
    for name in FIELDS:
        x, y = getattr(a, name), getattr(b, name)
        assert x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
    assert (a.robot, a.joints) == (b.robot, b.joints)


@pytest.mark.parametrize("robots", [0, 3])
def test_files_keep_every_bit(robot: fw.Robot, robots: int, tmp_path: Path) -> None:
    motion = motion_of(robot, robots)
    motion.save(tmp_path / "motion.npz")
    assert_same(fw.Trajectory.load(tmp_path / "motion.npz", robot), motion)
    assert_same(fw.Trajectory.load(str(tmp_path / "motion.npz")), motion)
    unknown = fw.Trajectory(motion.times, motion.q, motion.v)
    unknown.save(tmp_path / "unknown.npz")
    assert_same(fw.Trajectory.load(tmp_path / "unknown.npz", robot), unknown)


def test_one_of_many_robots_is_taken(robot: fw.Robot) -> None:
    motion = motion_of(robot, 3)
    first, second = motion.of(0), motion.of(1)
    np.testing.assert_array_equal(second.q, motion.q[:, 1])
    np.testing.assert_array_equal(second.tau, motion.tau[:, 1])
    assert len(first.contacts(1)[0]) == 2 and not len(second.contacts(1)[0])
    assert first.last().tau.shape == (1, robot.nv) and len(fw.Trajectory.joined([first, first]).tau) == 8
    assert first.last().joints == fw.Trajectory.joined([first, first]).joints == joint_names(robot)
    with pytest.raises(ValueError, match="from 0 to 2; got 3"):
        motion.of(3)
    with pytest.raises(ValueError, match="one robot"):
        first.of(0)


def test_files_of_other_robots_are_refused(robot: fw.Robot, tmp_path: Path) -> None:
    path = tmp_path / "motion.npz"
    motion_of(robot).save(path)
    other = fw.build(chain(4, rng=1))
    with pytest.raises(fw.ModelError, match=rf"motion.npz: a trajectory of '{robot.name}': its joint 3 is nothing; that of"):
        fw.Trajectory.load(path, other)
    np.savez(path, times=np.zeros(2), q=np.zeros((2, 3)), v=np.zeros((2, 3)))
    with pytest.raises(fw.ModelError, match=r"q must have shape \(2, 4\)"):
        fw.Trajectory.load(path, other)


STATES: dict[str, Any] = {"times": np.zeros(2), "q": np.zeros((2, 3)), "v": np.zeros((2, 3))}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"format": np.array(2)}, "format 2, but this version of Featherweight reads 1"),
        ({"times": np.array(["a", "b"])}, "times must hold numbers"),
        ({"joints": np.zeros(3)}, "joints must hold text"),
        ({"q": np.array([{}, {}])}, "damaged"),  # a pickle
        ({"v": np.zeros((3, 3))}, r"v must have shape \(2, n\)"),
        ({"tau": np.zeros((2, 4))}, r"tau must have the shape of v, \(2, 3\)"),
        ({"points": np.zeros((1, 3))}, "points and forces must both have shape"),
        ({"first": np.array([0, 2, 1])}, "first must ascend"),
        ({"first": np.array([0, 1])}, "first must hold 3 integers"),
        ({"first": np.array([0, 0, 1])}, "to the number of contacts, 0"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(changed: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / "motion.npz"
    np.savez(path, **(STATES | changed))
    with pytest.raises(fw.ModelError, match=f"motion.npz: .*{said}"):
        fw.Trajectory.load(path)


def with_headers(archive: bytes, changed: dict[int, int]) -> bytes:
    """Return a ZIP archive with changed bytes in the headers of all members, local and central."""
    data = bytearray(archive)
    for signature, shift in ((b"PK\x03\x04", 0), (b"PK\x01\x02", 2)):
        for found in re.finditer(signature, archive):
            for place, value in changed.items():
                data[found.start() + place + shift] = value
    return bytes(data)


def test_devices_are_not_read(tmp_path: Path) -> None:
    os.symlink(os.devnull, tmp_path / "motion.npz")
    with pytest.raises(fw.ModelError, match=r"motion\.npz: a pipe, socket or device"):
        fw.Trajectory.load(tmp_path / "motion.npz")


def test_damaged_files_are_refused(robot: fw.Robot, tmp_path: Path) -> None:
    """Check files that are truncated anywhere, or have a changed byte: an error must name the file, and no other motion
    may result.
    """
    path = tmp_path / "motion.npz"
    motion = motion_of(robot)
    motion.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for k in rng.integers(0, len(whole), 40):
        path.write_bytes(whole[:k])
        with pytest.raises(fw.ModelError, match=r"motion.npz"):
            fw.Trajectory.load(path)
        damaged = bytearray(whole)
        damaged[k] ^= 0x55
        path.write_bytes(damaged)
        with contextlib.suppress(fw.ModelError):
            assert_same(fw.Trajectory.load(path), motion)  # of meaningless bytes, such as dates
    for changed in ({6: 1}, {8: 12}, {8: 14}, {8: 99}):  # encrypted; compressed by bzip2, LZMA and an unknown method
        path.write_bytes(with_headers(whole, changed))
        with pytest.raises(fw.ModelError, match=r"motion\.npz: no \.npz file of a trajectory, or damaged: ."):
            fw.Trajectory.load(path)
    np.save(tmp_path / "array.npy", np.zeros(3))
    with pytest.raises(fw.ModelError, match="one array"):
        fw.Trajectory.load(tmp_path / "array.npy")
    with pytest.raises(FileNotFoundError):
        fw.Trajectory.load(tmp_path / "none.npz")


def test_simulations_say_whose_motion_it_is(robot: fw.Robot, tmp_path: Path) -> None:
    motion = fw.Simulation(robot, 1e-3).run(0.003)
    assert motion.robot == robot.name and motion.joints == joint_names(robot)
    motion.save(tmp_path / "motion.npz")
    assert_same(fw.Trajectory.load(tmp_path / "motion.npz", robot), motion)


def test_simulations_record_the_joint_forces_that_they_were_given(robot: fw.Robot) -> None:
    """Check that a row has the forces of the step to its state; the first row has those of the first recorded step."""
    given: list[Any] = []

    def controller(time: float, q: Any, v: Any) -> Any:
        given.append(np.sin([time, 2.0 * time, 3.0]))
        return given[-1]

    motion = fw.Simulation(robot, 1e-3).run(0.005, controller, every=2)
    np.testing.assert_array_equal(motion.tau, np.array(given)[[1, 1, 3, 4]])
    constant = fw.Simulation(robot, 1e-3, q=np.zeros((2, 3))).run(0.002, tau=[1.0, 2.0, 3.0])
    np.testing.assert_array_equal(constant.tau, np.broadcast_to([1.0, 2.0, 3.0], (3, 2, 3)))
    assert fw.Simulation(robot, 1e-3).run(0.002).tau.size == 0
    assert motion.system is robot


def test_the_ground_force_is_that_of_the_world_alone() -> None:
    """A robot whose limbs touch one another: momentum changes by the ground's force and weight, not by internal forces."""
    ball = fw.Inertia(1.0, (0.0, 0.0, 0.0), (0.01, 0.0, 0.0, 0.01, 0.0, 0.01))
    names = ["left", "right"]
    joints = [
        fw.Joint(n, fw.JointType.PRISMATIC, "base", n, axis=(0.0, 1.0, 0.0), placement=fw.Pose(p=(0.0, y, 0.0)))
        for n, y in zip(names, (0.3, -0.3), strict=True)
    ]
    shapes = [fw.Shape(f"{n}_ball", n, fw.ShapeType.SPHERE, (0.1,)) for n in ("base", *names)]
    bodies = [fw.Body(n, ball) for n in ("base", *names)]
    robot = fw.build(fw.describe(bodies, joints, shapes=shapes, name="clapper"), base="floating")
    sim = fw.Simulation(robot, 1e-3, ground=True, q=robot.on_ground(height=0.01))
    motion = sim.run(0.3, lambda t, q, v: np.concatenate([np.zeros(6), [-30.0, 10.0]]))
    assert motion.internal.any() and not motion.internal.all()
    momentum = robot.centroidal_momentum(motion.q, motion.v)[:, :3]
    weight = np.array([0.0, 0.0, -9.81 * robot.mass])
    np.testing.assert_allclose(np.diff(momentum, axis=0) / 1e-3, motion.ground_force[1:] + weight, atol=1e-6)
    again = fw.Trajectory.joined([motion.last(), motion])
    np.testing.assert_array_equal(again.ground_force[1:], motion.ground_force)
