"""Tests of bodies of saved MJCF files: MuJoCo reads their inertias; reports name the ones that it does not accept."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight import (
    Body,
    Inertia,
    Joint,
    JointType,
    ModelError,
    ModelWarning,
    Shape,
    ShapeType,
)
from featherweight.model.generators import chain
from featherweight.model.types import Fluid, as_matrix
from oracles.same_motion import assert_same_motion, interpreted
from oracles.saved_files import (
    TILTED,
    assert_same,
    in_mujoco,
    saved,
    silently,
)


def test_impossible_inertias_are_raised_and_named(tmp_path: Path) -> None:
    description = chain(3)
    R = np.array(TILTED.R)
    moments = np.diag([1.0, 1.5, 3.0])
    J = R @ moments @ R.T
    bad = Inertia(1.0, (0.1, 0.2, 0.3), (J[0, 0], J[0, 1], J[0, 2], J[1, 1], J[1, 2], J[2, 2]))
    description = dataclasses.replace(description, bodies=(*description.bodies[:2], Body("body2", bad)))
    with pytest.warns(ModelWarning, match="inertias of body2, which no rigid body has, and MuJoCo refuses"):
        description.save(tmp_path / "saved.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "saved.xml"))
    np.testing.assert_allclose(sorted(model.body("body2").inertia), [1.25, 1.75, 3.0], rtol=1e-11)


def test_negative_moments_become_zero(tmp_path: Path) -> None:
    for moments in ((-5.0, 1.0, 1.0), (0.0, 0.5, 1.0), (1.0, 3.0, -4.0), (1e-9, 1.0, 1.0 + 1e-6), (-1.0, -2.0, -3.0)):
        x, y, z = moments
        bodies = (chain(2).bodies[0], Body("body1", Inertia(1.0, rotational=(x, 0.0, 0.0, y, 0.0, z))))
        model = in_mujoco(dataclasses.replace(chain(2), bodies=bodies), tmp_path)
        np.testing.assert_allclose(max(model.body("body1").inertia), max(*moments, 1e-14), rtol=1e-11)


def test_inertias_of_flat_bodies_come_back(tmp_path: Path) -> None:
    """Check inertias that rounding makes impossible for MuJoCo; the writer corrects them silently."""
    rng = np.random.default_rng(0)
    bodies = []
    for k, b in enumerate(chain(40).bodies):
        R = np.linalg.qr(rng.standard_normal((3, 3)))[0] if k % 2 else np.eye(3)
        x, y = rng.uniform(1e-6, 1e-5, 2)
        J = R @ np.diag([x, y, x + y]) @ R.T
        bodies.append(Body(b.name, Inertia(0.1, (0.0, 0.0, 0.0), (J[0, 0], J[0, 1], J[0, 2], J[1, 1], J[1, 2], J[2, 2]))))
    description = dataclasses.replace(chain(40), bodies=tuple(bodies))
    again = silently(description, tmp_path)
    assert_same(again.bodies, description.bodies, 1e-16)
    mujoco.MjModel.from_xml_path(str(tmp_path / "saved.xml"))


def test_bodies_without_mass_get_the_least_that_mujoco_takes(tmp_path: Path) -> None:
    """Check bodies without mass, except if a body that is fixed to them has mass."""
    made = chain(4)
    joints = (*made.joints[:3], dataclasses.replace(made.joints[3], type=JointType.FIXED, name="body3_fixed"))
    bodies = tuple(Body(b.name) if k in (0, 2) else b for k, b in enumerate(made.bodies))
    description = dataclasses.replace(made, bodies=bodies, joints=joints)
    with pytest.warns(
        ModelWarning, match=r"changes the masses of the bodies body0, which have none or no inertia \(1e-14 kg and kg m²"
    ):
        again = saved(description, tmp_path)
    assert [b.inertia.mass for b in again.bodies[::2]] == [1e-14, 0.0]
    assert_same_motion(interpreted(again), interpreted(description))
    mujoco.MjModel.from_xml_path(str(tmp_path / "saved.xml"))


def test_a_root_of_the_grounds_name_is_the_ground(tmp_path: Path) -> None:
    base, turn = (
        Joint("base_fixed", JointType.FIXED, "world", "base", TILTED),
        Joint("turn", JointType.REVOLUTE, "base", "link"),
    )
    box = Shape("floor", "world", ShapeType.BOX, (1.0, 1.0, 1.0), friction=1.0)
    link = Body("link", Inertia(1.0, (0.1, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))
    description = fw.describe([Body("world"), Body("base"), link], [base, turn], shapes=[box])
    again = silently(description, tmp_path)
    assert [b.name for b in again.bodies] == ["base", "link"] and again.shapes[0].body == "world"
    assert_same_motion(interpreted(again), interpreted(description))
    assert "world" in {f.name for f in interpreted(again).frames}
    heavy = dataclasses.replace(description, bodies=(Body("world", Inertia(1.0)), *description.bodies[1:]))
    with pytest.warns(ModelWarning, match="the mass of the root world, which is the ground in the file"):
        saved(heavy, tmp_path)
    moving = dataclasses.replace(description, joints=(*description.joints, Joint("lift", JointType.PRISMATIC, None, "world")))
    with pytest.warns(ModelWarning, match=r"the name of the body world \(world_body in the file\)"):
        assert saved(moving, tmp_path).bodies[0].name == "world_body"


def test_principal_axes_of_bodies_in_a_fluid_come_back(tmp_path: Path) -> None:
    """Check bodies with drag on their boxes: if two moments are equal, only the file determines the axes."""
    turned = as_matrix(np.array(TILTED.R).T)
    bodies = tuple(Body(b.name, Inertia(1.0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)), turned) for b in chain(2).bodies)
    again = silently(dataclasses.replace(chain(2), bodies=bodies, fluid=Fluid(1000.0, 0.001)), tmp_path)
    assert again.fluid == Fluid(1000.0, 0.001)
    assert_same(again.bodies, bodies)


def test_bodies_in_too_many_bodies_are_refused(tmp_path: Path) -> None:
    chain(480).save(tmp_path / "long.xml")
    mujoco.MjModel.from_xml_path(str(tmp_path / "long.xml"))
    with pytest.raises(ModelError, match="body 'body480' lies in 480 others, more than MuJoCo reads; "):
        chain(481).save(tmp_path / "longer.xml")
    assert not (tmp_path / "longer.xml").exists()
