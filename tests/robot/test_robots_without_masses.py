"""Tests of robots whose files have no masses: kinematics work, and functions of masses raise NotDefinedError."""

from __future__ import annotations

import pickle

import numpy as np
import pinocchio as pin
import pytest

import featherweight as fw
from featherweight import viewer
from featherweight.robot.compiled_member import functions_of

PARTS = '<visual><geometry><box size="0.1 0.2 0.3"/></geometry></visual><collision><geometry>{}</geometry></collision>'
SPHERE = '<sphere radius="0.05"/>'


def chain(inertials: tuple[str, ...] = ("",) * 6, coupling: str = "") -> str:
    """Return a robot of six hinges with a sphere on each link."""
    text = '<robot name="r"><link name="base"/>'
    for k, inertial in enumerate(inertials):
        text += f"""<link name="l{k}">{inertial}{PARTS.format(SPHERE)}</link>
        <joint name="j{k}" type="revolute"><parent link="{"base" if k == 0 else f"l{k - 1}"}"/><child link="l{k}"/>
        <origin xyz="0 0.01 0.3"/><axis xyz="{k % 2} {1 - k % 2} 0"/>
        <limit lower="-2" upper="2" effort="1" velocity="1"/></joint>"""
    return f"{text}{coupling}</robot>"


def inertial(mass: float) -> str:
    return f'<inertial><mass value="{mass}"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'


COUPLED = '<coupling name="c" joint="j5"><term joint="j4" coefficients="1 0.5"/></coupling>'
WITHOUT_MASSES = {
    "integrate", "difference", "integrate_derivatives", "difference_derivatives", "mechanical_power", "joint_jacobian",
    "joint_jacobian_rate", "tangent_step", "residual",
    "inverse_dynamics_regressor", "kinetic_energy_regressor", "potential_energy_regressor", "spanning_velocity", "singularity",
}  # fmt: skip


def bare(text: str, base: str = "fixed", execution: str = "auto") -> fw.Robot:
    with pytest.warns(fw.ModelWarning, match="joints move .*l5 without moving any mass: .* NotDefinedError"):
        return fw.load(text, base, execution=execution)


def test_frames_and_jacobians_are_those_of_pinocchio() -> None:
    text = chain()
    robot, model = bare(text), pin.buildModelFromXML(text)
    q, v = np.linspace(-0.5, 0.5, 6), np.linspace(1.0, -1.0, 6)
    data = model.createData()
    pin.forwardKinematics(model, data, q, v)
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    at = model.getFrameId("l5")
    np.testing.assert_allclose(robot.frame_placement("l5")(q), data.oMf[at].homogeneous, atol=1e-15)
    J = pin.getFrameJacobian(model, data, at, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
    np.testing.assert_allclose(robot.frame_jacobian("l5")(q), J, atol=1e-15)


@pytest.mark.parametrize("execution", ["auto", "rolled"])
@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("coupling", ["", COUPLED])
def test_functions_that_read_masses_raise_and_name_the_links(coupling: str, base: str, execution: str) -> None:
    if coupling and execution == "rolled":
        pytest.skip("not offered for robots with couplings")
    robot = bare(chain(coupling=coupling), base, execution)
    assert {*robot.functions} <= WITHOUT_MASSES
    for name in functions_of(type(robot)):
        if name not in WITHOUT_MASSES:
            with pytest.raises(
                fw.NotDefinedError, match=f"r: {name} needs the masses of all moving links; .* none: .*l0, l1, l2, l3, l4, l5"
            ):
                getattr(robot, name)
    q = robot.random_configuration(rng=0)
    contact = fw.BilateralContact("l5")
    assert robot.contact_jacobian(contact)(q).shape == (6, robot.nv)
    with pytest.raises(fw.NotDefinedError, match="r: forward_dynamics_derivatives needs the masses of all moving links"):
        robot.operational_space(contact).forward_dynamics_derivatives  # noqa: B018
    with pytest.raises(fw.NotDefinedError, match="r: forward_dynamics_second_derivatives needs the masses of all moving links"):
        robot.forward_dynamics_second_derivatives(q, *np.zeros((2, robot.nv)))
    for call in (
        lambda: robot.delassus(contact),
        lambda: robot.factorize(q),
        lambda: robot.solve_mass_matrix(q, np.eye(robot.nv)),
        lambda: fw.Simulation(robot),
        lambda: fw.OptimalControl(robot, knots=2),
        lambda: pickle.loads(pickle.dumps(robot)).mass_matrix,
    ):
        with pytest.raises(fw.NotDefinedError, match="needs the masses of all moving links"):
            call()
    assert issubclass(fw.NotDefinedError, ValueError)
    assert "l5" in robot.report()["moving links without mass, so that functions of masses are not defined"]
    with pytest.raises(fw.ModelError, match="mass"):
        fw.load(chain(coupling=coupling), base, unsupported="raise")


def test_inverse_kinematics_collisions_and_pictures_need_no_masses() -> None:
    robot = bare(chain())
    q = np.linspace(-0.5, 0.7, 6)
    goal = robot.frame_placement("l5")(q)
    found = fw.InverseKinematics(robot, fw.FrameTask("l5")).solve(goal, q + 0.05)
    np.testing.assert_allclose(robot.frame_placement("l5")(found.q), goal, atol=1e-6)
    assert not robot.in_collision(q) and len(robot.collision_pairs()) == 10
    folded = np.array([0.0, 2.0, 2.0, 2.0, 0.0, 0.0])
    assert robot.in_collision(folded) == bool(np.min(robot.distances(folded).distance) < 0.0)
    assert viewer.picture(robot, q).std() > 0.0


def test_one_branch_without_mass_is_enough_and_named() -> None:
    text = chain((*(inertial(2.0) for _ in range(5)), ""))
    with pytest.warns(fw.ModelWarning, match="joints move l5 without"):
        robot = fw.load(text, execution="interpreted")
    assert robot.mass == 10.0
    with pytest.raises(fw.NotDefinedError, match=r"mass_matrix needs .* none: l5\. Give"):
        robot.mass_matrix  # noqa: B018
    assert robot.with_armature({"j5": 0.1}).mass_matrix(np.zeros(6)).shape == (6, 6)
    parameters = robot.inertial_parameters.copy()
    parameters[5] = parameters[4]
    assert robot.with_inertial_parameters(parameters).mass_matrix(np.zeros(6)).shape == (6, 6)


# --- inertias from shapes


def test_inertias_of_shapes_by_density_and_given_ones() -> None:
    d = fw.read(chain())
    dense = d.with_inertias({"l0": fw.Inertia(3.0)}, density=1200.0)
    mass = 1200.0 * 4.0 / 3.0 * np.pi * 0.05**3
    assert [b.inertia.mass for b in dense.bodies] == [0.0, 3.0, *[pytest.approx(mass, rel=1e-15)] * 5]
    np.testing.assert_allclose(dense.bodies[3].inertia.rotational, np.array([1, 0, 0, 1, 0, 1]) * 0.4 * mass * 0.05**2)
    robot = fw.build(dense, execution="interpreted")
    assert np.linalg.eigvalsh(robot.mass_matrix(np.zeros(6)))[0] > 0.0
    boxes = chain(("",)).replace(f"<collision><geometry>{SPHERE}</geometry></collision>", "")
    inertia = fw.read(boxes).with_inertias(density=1000.0).bodies[1].inertia  # of the visual box
    assert inertia.mass == pytest.approx(6.0, rel=1e-15)
    np.testing.assert_allclose(inertia.rotational, np.array([0.13, 0, 0, 0.1, 0, 0.05]) / 2.0, rtol=1e-14)
    whole = fw.read(chain((inertial(2.0),)))
    assert whole.with_inertias(density=1.0).bodies == whole.bodies  # bodies with mass keep theirs


def test_a_mesh_that_is_not_closed_is_its_hull() -> None:
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 2) for z in (0, 3)], dtype=float)
    faces = np.array([[0, 1, 3], [0, 3, 2], [4, 7, 5], [4, 6, 7], [0, 4, 5], [0, 5, 1], [2, 3, 7]])
    shape = fw.Shape("m", "b", "mesh", (1.0, 1.0, 1.0), vertices=corners, faces=faces)
    d = fw.describe([fw.Body("b")], [fw.Joint("j", "revolute", None, "b")], shapes=[shape])
    inertia = d.with_inertias(density=10.0).bodies[0].inertia
    assert inertia.mass == pytest.approx(60.0) and inertia.center == pytest.approx((0.5, 1.0, 1.5))
    np.testing.assert_allclose(inertia.rotational, np.array([13, 0, 0, 10, 0, 5]) * 5.0, atol=1e-9)


def test_bodies_without_a_volume_stay_without_mass_and_are_named() -> None:
    d = fw.read(chain().replace(PARTS.format(SPHERE), "", 1))
    with pytest.warns(fw.ModelWarning, match="no shape with a volume is on l0, which stays without mass"):
        assert d.with_inertias(density=1000.0).bodies[1].inertia == fw.Inertia()
    with pytest.raises(fw.ModelError, match="there is no body 'l9'"):
        d.with_inertias({"l9": fw.Inertia(1.0)})
