"""The names of the package: what there is, what is not to be seen, and what names were called before."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import featherweight as fw


def test_dir_lists_all_public_names_and_nothing_else() -> None:
    names = dir(fw)
    assert {*fw.__all__} <= {*names} and names == sorted(set(names))
    assert all(not name.startswith("_") or name == "__version__" for name in names)
    assert {"Any", "TYPE_CHECKING", "annotations", "engine", "model", "spatial", "algorithms"}.isdisjoint(names)


def test_names_of_dir_are_there_without_having_been_imported() -> None:
    code = "import featherweight as fw; print([n for n in fw.__all__ if not hasattr(fw, n)])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [("Contact", "BilateralContact"), ("Point", "ContactPoint"), ("Sphere", "ContactSphere"), ("Mechanism", "describe")],
)
def test_old_names_stay_for_a_version_and_say_the_new_ones(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"featherweight\.{old} is called featherweight\.{new} now") as warned:
        assert getattr(fw, old) is getattr(fw, new)
    assert warned[0].filename == __file__


def test_joints_bodies_and_frames_by_name() -> None:
    robot = fw.build(fw.robots.mini_cheetah())
    for k, joint in enumerate(robot.joints):
        assert robot.joint(joint.name) is robot.joints[k]
    for k, body in enumerate(robot.bodies):
        assert all(robot.body(link) is robot.bodies[k] for link in body.links)
    for frame in robot.frames:
        assert robot.frame(frame.name) == frame
    with pytest.raises(ValueError, match="has no moving joint 'nobody'; it has .*" + robot.joints[0].name):
        robot.joint("nobody")
    with pytest.raises(ValueError, match="has no moving body 'nobody'; it has .*" + robot.bodies[0].name):
        robot.body("nobody")


def test_bodies_have_whole_inertias() -> None:
    """Those of the inertial parameters, which are about the frame's origin."""
    robot = fw.build(fw.robots.jvrc1())
    changed = robot.with_inertial_parameters(1.5 * robot.inertial_parameters)
    for r in (robot, changed):
        for body, (m, *h, xx, xy, yy, xz, yz, zz) in zip(r.bodies, r.inertial_parameters, strict=True):
            a, b, c, d, e, f = body.inertia.rotational
            central, center = np.array([[a, b, c], [b, d, e], [c, e, f]]), np.array(body.center)
            about_origin = central + m * (center @ center * np.eye(3) - np.outer(center, center))
            np.testing.assert_allclose([body.mass, *body.mass * center], [m, *h], rtol=1e-12, atol=1e-12)
            wanted = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
            np.testing.assert_allclose(about_origin, wanted, rtol=1e-9, atol=1e-12)
