"""Tests that named configurations keep the coordinates of their joints in all changes of the robot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import featherweight as fw
from featherweight.model.description import Description
from featherweight.model.types import (
    Body,
    Configuration,
    Frame,
    Inertia,
    Joint,
    JointType,
    ModelWarning,
    Pose,
    as_matrix,
    as_vector,
)

KINDS = (JointType.FLOATING, JointType.REVOLUTE, JointType.SPHERICAL, JointType.PLANAR, JointType.PRISMATIC)


def chain(seed: int = 0) -> Description:
    """Return a joint of each kind in series, in random poses, with a configuration "home"."""
    rng = np.random.default_rng(seed)

    def axis() -> tuple[float, float, float]:
        x, y, z = rng.standard_normal(3) / 2.0
        length = float(np.sqrt(x * x + y * y + z * z))
        return (x / length, y / length, z / length)

    def pose() -> Pose:
        R = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        R *= np.sign(np.linalg.det(R))
        return Pose(as_matrix(R), as_vector(rng.standard_normal(3)))

    names = [f"body{k}" for k in range(len(KINDS))]
    joints = [
        Joint(kind.value, kind, ([None, *names])[k], names[k], pose(), axis(), point(rng) if kind.nq in (1, 4) else (0, 0, 0))
        for k, kind in enumerate(KINDS)
    ]
    body = Inertia(1.0, (0.1, 0.2, 0.3), (0.3, 0.01, 0.02, 0.3, 0.03, 0.3))
    home = tuple((j.name, tuple(unit(j.type, rng.standard_normal(j.type.nq)).tolist())) for j in joints)
    return Description(
        "chain",
        "made",
        tuple(Body(name, body) for name in names),
        tuple(joints),
        (Frame("tip", names[-1], pose()),),
        configurations=(Configuration("home", home),),
        disabled_collisions=((names[0], names[2]),),
    )


def point(rng: np.random.Generator) -> tuple[float, float, float]:
    x, y, z = rng.standard_normal(3).tolist()
    return (x, y, z)


def unit(kind: JointType, q: np.ndarray) -> np.ndarray:
    count = {JointType.FLOATING: 4, JointType.SPHERICAL: 4, JointType.PLANAR: 2}.get(kind, 0)
    if count:
        q[-count:] /= np.linalg.norm(q[-count:])
    return q


def tip(d: Description, name: str = "tip") -> np.ndarray:
    robot = fw.build(d, execution="interpreted")
    return np.asarray(robot.frame_placement(name)(robot.configurations["home"]))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_mirrored(axis: int) -> None:
    M = np.eye(4)
    M[axis, axis] = -1.0
    d = chain()
    assert np.allclose(tip(d.mirrored("xyz"[axis])), M @ tip(d) @ M, atol=1e-13)


def test_locked_joints_lose_theirs_and_others_keep_theirs() -> None:
    d = chain()
    home = dict(d.configurations[0].coordinates)
    held = d.locked({"spherical": home["spherical"], "revolute": home["revolute"]})
    assert [name for name, _ in held.configurations[0].coordinates] == ["floating", "planar", "prismatic"]
    assert np.allclose(tip(held), tip(d), atol=1e-13)
    everything = d.locked(home)
    assert not everything.configurations
    assert "home" in dict(everything.unused)["configurations of joints that are gone"]


def test_cut_off() -> None:
    d = chain()
    assert [name for name, _ in d.without("body3").configurations[0].coordinates] == ["floating", "revolute", "spherical"]
    assert [name for name, _ in d.subtree("body3").configurations[0].coordinates] == ["prismatic"]
    assert not d.without("body2").disabled_collisions
    assert d.without("body3").disabled_collisions == d.disabled_collisions


def test_attached_ones_of_one_name_are_joined() -> None:
    a, b = chain(), chain(seed=1)
    both = a.attached(b, "tip", prefix="b_")
    assert np.allclose(tip(both), tip(a), atol=1e-13)
    assert np.allclose(tip(both, "b_tip"), tip(a) @ tip(b), atol=1e-12)
    assert both.disabled_collisions == (("body0", "body2"), ("b_body0", "b_body2"))


def test_renamed_and_of_another_type() -> None:
    d = chain().renamed({"revolute": "elbow", "body0": "base"})
    assert [name for name, _ in d.configurations[0].coordinates] == ["floating", "elbow", "spherical", "planar", "prismatic"]
    assert d.disabled_collisions == (("base", "body2"),)
    ball = chain().with_joint_type("revolute", JointType.SPHERICAL)
    assert "revolute" not in dict(ball.configurations[0].coordinates)


def test_saved_beside_the_urdf(tmp_path: Path) -> None:
    d = chain()
    with pytest.warns(ModelWarning, match=r"configurations home and disabled collisions: save an \.srdf file"):
        d.save(tmp_path / "chain.urdf")
    d.save(tmp_path / "chain.srdf")
    read = fw.read(tmp_path / "chain.urdf", srdf=tmp_path / "chain.srdf")
    assert read.configurations == d.configurations
    assert read.disabled_collisions == d.disabled_collisions
    assert np.allclose(tip(read), tip(d), atol=1e-12)
