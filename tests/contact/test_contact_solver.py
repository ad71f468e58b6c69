"""The solver on arrays that are there: the same source as in a compiled step, here in plain Python.

That it allocates nothing shows wherever steps are compiled (`compiled_loop`): without Numba's runtime, it could not.
"""

from __future__ import annotations

import numpy as np

from featherweight.collision.detection import ContactPoints
from featherweight.contact.contact_model import ContactModel
from featherweight.contact.contact_problem import BodyDelassus, ContactImpulses, ContactKinematics
from featherweight.contact.contact_settings import ContactSettings
from featherweight.contact.contact_solver import resolve, solver_workspace
from featherweight.contact.delassus_by_inverse import InverseFactors, inverse_work, write_delassus_by_inverse
from featherweight.contact.joint_rows import JointRows

STEP, BODIES, POINTS, ROWS = 1e-3, 1, 4, 2
CORNERS = np.array([(x, y, -0.1) for x in (-0.2, 0.2) for y in (-0.15, 0.15)])


def model(restitution: float) -> ContactModel:
    """A box, and a joint of its own with dry friction and a limit."""
    settings = ContactSettings(STEP, 0.01, 1e-4, 0.01, 1e-10, False, False)
    ints = np.array([0, 0]), np.array([6, 6]), np.array([7, 7])
    friction, upper = np.array([False, True]), np.array([np.inf, 1e-4])
    rows = JointRows(*ints, np.zeros(2), np.ones(2), friction, np.array([0.0, -1e-4]), upper)
    return ContactModel(np.array([6]), np.full(POINTS, 0.5), np.full(POINTS, restitution), rows, settings)


def test_impulses_that_stop_a_box_and_a_joint() -> None:
    """A box that falls on its corners, too deep, and bounces; a joint that is beyond its limit."""
    for restitution in (0.0, 0.5):
        points = ContactPoints(
            np.arange(POINTS), np.zeros(POINTS, np.int64), np.full(POINTS, -1), CORNERS.copy(),
            np.tile([0.0, 0.0, 1.0], (POINTS, 1)), np.full(POINTS, -1e-3),
        )  # fmt: skip
        velocity = np.array([[0.0, 0.0, -1.0, 0.0, 0.0, 0.0]])
        kinematics = ContactKinematics(
            np.eye(4)[None], velocity, np.full(ROWS, -1e-3), np.full(ROWS, -1.0), velocity, -np.ones(2)
        )
        J, Minv = np.eye(7)[:6], np.diag(1.0 / np.array([2.0, 2.0, 2.0, 0.01, 0.02, 0.02, 0.5]))
        delassus = BodyDelassus(np.zeros((7, 7)), np.zeros(BODIES + 1, np.int64))
        shapes = [(4, 3), *3 * [(1, 6), (1,)], *2 * [(4, 3), (2,)]]
        impulses = ContactImpulses(*(np.zeros(s) for s in shapes))
        given = model(restitution)
        factors = InverseFactors(J, Minv, np.eye(7)[6:])
        write_delassus_by_inverse(given.width, points, factors, delassus, inverse_work(BODIES, 7, 7))
        np.testing.assert_allclose(delassus.G, Minv, atol=1e-15)
        assert delassus.begin.tolist() == [0, 6]
        workspace = solver_workspace(6, 4, 7)  # more than are there
        report = resolve(given, points, kinematics, delassus, impulses, workspace)
        assert report.residual <= report.allowed and report.parting > 0.0
        np.testing.assert_allclose(impulses.wrench[0], [0.0, 0.0, 2.0 * (1.0 + restitution), 0.0, 0.0, 0.0], atol=1e-8)
        np.testing.assert_allclose(impulses.joint, [0.5], rtol=1e-8)  # the limit's, and friction's, which opposes it
        assert (Minv[:6, :6] @ impulses.push[0])[2] > 0.0 and impulses.joint_push[0] > 0.0
