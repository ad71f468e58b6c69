"""Tests of parameters of compliant contacts."""

from __future__ import annotations

import numpy as np
import pytest

from featherweight.contact.compliant.compliance import impedance, numbers_of, power, weights_of_cones, yielding_of
from featherweight.engine.loops.kernels import compiled
from featherweight.model.contact_rules import Softness
from featherweight.simulation.inverse_weights import arrays_of

mujoco = pytest.importorskip("mujoco")

SPHERES = """<mujoco><option timestep="0.01"/><worldbody><geom type="plane" size="0 0 1" {0}/>
<body pos="0 0 {2}"><freejoint/><geom size="0.1" mass="1" {1}/></body></worldbody></mujoco>"""
SURFACES = (
    ("", ""),
    ('solref="0.05 0.7"', 'solref="0.1 1.2" solimp="0.5 0.9 0.01 0.3 3.5"'),
    ('solref="0.05 0.7" solmix="3"', 'solref="0.1 1.2" solmix="1" solimp="0.2 0.99 0.1 0.7 1"'),
    ('solref="-500 -10"', 'solref="-900 -3"'),
    ('solref="-500 -10"', 'solref="0.03 1"'),
    ('solref="0.001 1" priority="1"', 'solref="0.1 1.2"'),
    ('solmix="0" solref="0.1 1"', 'solmix="0"'),
    ('solimp="0 1 0.05 0 5"', 'solimp="0 1 0.05 0 5"'),
    ('solimp="0.9 0.95 0 0.5 2"', 'solimp="0.9 0.95 0 0.5 2"'),
)


@pytest.mark.parametrize(("floor", "ball"), SURFACES)
@pytest.mark.parametrize("depth", [1e-4, 5e-3, 2e-2, 0.2])
def test_numbers_are_mujocos(floor: str, ball: str, depth: float) -> None:
    """Check parameters mixed from two surfaces, by their priority and shares, at depths on both sides of the curve's
    midpoint.
    """
    import featherweight as fw
    from featherweight.robot.collision.shape_pairs import touching_pairs

    text = SPHERES.format(floor, ball, 0.1 - depth)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    (contact,) = data.contact
    softness = touching_pairs(fw.load(text))[0].softness
    np.testing.assert_allclose(softness.solref, contact.solref, rtol=1e-12)
    np.testing.assert_allclose(softness.solimp, contact.solimp, rtol=1e-12)
    k, b, d, _ = data.efc_KBIP[0]
    numbers = yielding_of(numbers_of(*arrays_of([softness]), np.ones(1), np.ones(1), 0.01), 0)
    assert (numbers.stiffness, numbers.damping) == pytest.approx((k, b), rel=1e-12)
    assert impedance(numbers, -depth) == pytest.approx(d, rel=1e-8)


@pytest.mark.parametrize("function", [power, compiled(power)])
def test_powers(function: object) -> None:
    for x, p in ((0.0, 2.0), (0.3, 1.0), (0.7, 2.5), (0.999, 17.25), (1.0, 3.3), (0.2, 1.0 / 3.0)):
        assert function(x, p) == pytest.approx(x**p, rel=1e-8)  # type: ignore[operator]


def test_elliptic_cones_weigh_friction_by_impratio() -> None:
    normal, friction = weights_of_cones(np.array([2.0]), np.array([0.5]), 4.0, False)
    assert (normal[0], friction[0]) == (2.0, 0.25)


def test_frictionless_contacts_of_pyramids_are_those_of_cones() -> None:
    normal, _ = weights_of_cones(np.array([2.0]), np.array([0.0]), 4.0, True)
    assert normal[0] == 2.0


def test_defaults_are_mujocos() -> None:
    model = mujoco.MjModel.from_xml_string(SPHERES.format("", "", 1.0))
    np.testing.assert_array_equal(model.geom_solref[0], Softness().solref)
    np.testing.assert_array_equal(model.geom_solimp[0], Softness().solimp)
