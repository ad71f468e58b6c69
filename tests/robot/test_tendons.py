"""Tests of tendons: lengths and moment arms equal MuJoCo's, with spheres, cylinders, pulleys, and sums of coordinates."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight.robot.tendons.wrapping import angle_of, touching_angle, wrap_around

EXACT = 1e-12  # [m] error of lengths: sums of a few products
ROUNDED = 1e-9  # error of moment arms: near grazing strings, square roots lose half of the digits
NEWTON = 1e-6  # MuJoCo solves for the point of a string inside a surface to a residual of 1e-6


def wrapped(kind: str, side: str) -> str:
    """Return a tendon between two sites of an arm around a geom of its middle link."""
    sided = 'sidesite="side"' if side else ""
    return f"""<mujoco><worldbody><site name="s0" pos="-.3 .02 .9"/>
<body pos="0 0 1"><joint name="a" axis="0 1 0"/><joint name="b" axis="1 0 0"/>
  <geom name="g" type="{kind}" size=".1 .2" euler="90 20 10" pos=".1 0 0" contype="0" conaffinity="0"/>
  <site name="side" pos="{side or "0 0 0"}"/>
  <body pos=".3 0 0"><joint name="c" axis="0 1 0"/><joint name="d" type="slide" axis="0 0 1"/>
    <geom size=".05" contype="0" conaffinity="0"/><site name="s1" pos=".1 .02 .03"/></body></body></worldbody>
<tendon><spatial name="t"><site site="s0"/><geom geom="g" {sided}/><site site="s1"/></spatial></tendon></mujoco>"""


PATHS = {
    **{f"{kind} without a side": wrapped(kind, "") for kind in ("sphere", "cylinder")},
    **{f"{kind}, side above": wrapped(kind, ".1 0 .2") for kind in ("sphere", "cylinder")},
    **{f"{kind}, side behind": wrapped(kind, ".1 -.15 -.1") for kind in ("sphere", "cylinder")},
}
INSIDE = {kind: wrapped(kind, ".11 .01 0") for kind in ("sphere", "cylinder")}
MANY = """<mujoco><worldbody><site name="s0" pos="0 0 1.2"/><site name="s9" pos=".4 .1 .3"/>
<body pos="0 0 1"><joint name="a" axis="0 1 0"/><geom name="g" type="cylinder" size=".05 .1" euler="90 0 0"/>
  <site name="s1" pos=".2 0 .1"/>
  <body pos=".4 0 0"><joint name="b" type="ball"/><geom name="h" size=".06"/><site name="s2" pos=".2 0 .1"/>
  <site name="side" pos="0 0 .1"/></body></body>
<body pos="1 0 1"><freejoint name="free"/><geom size=".1"/><site name="s3" pos=".1 0 .1"/></body></worldbody>
<tendon>
  <spatial name="branches"><site site="s0"/><geom geom="g"/><site site="s1"/><geom geom="h" sidesite="side"/><site site="s2"/>
    <pulley divisor="2"/><site site="s2"/><site site="s3"/><pulley divisor="4"/>
    <site site="s2"/><site site="s9"/><site site="s3"/></spatial>
  <fixed name="joints"><joint joint="a" coef="2"/></fixed>
  <fixed name="slack" stiffness="1" springlength="0 1"><joint joint="a" coef="-3"/></fixed>
  <spatial name="straight"><site site="s0"/><site site="s3"/></spatial>
</tendon></mujoco>"""


def compare(text: str, states: int, length: float, arms: float) -> tuple[int, int]:
    """Compare with MuJoCo at random states; return how often tendons touched a surface, and how often not."""
    robot, model = fw.load(text, execution="interpreted"), mujoco.MjModel.from_xml_string(text)
    data, order, rng = mujoco.MjData(model), fw.MujocoOrder(robot, model), np.random.default_rng(0)
    touching = free = 0
    for _ in range(states):
        q, v = robot.random_configuration(rng=rng), rng.normal(size=robot.nv)
        data.qpos[:], data.qvel[:] = order.state(q, v)
        mujoco.mj_forward(model, data)
        lengths, moments = robot.tendon_lengths(q), robot.tendon_moment_arms(q)
        numbers = [model.tendon(t.name).id for t in robot.tendons]
        np.testing.assert_allclose(lengths, data.ten_length[numbers], rtol=length, atol=length)
        np.testing.assert_allclose(moments @ v, data.ten_velocity[numbers], rtol=arms, atol=arms)
        wraps = bool(data.ten_wrapnum[0] > 2)
        touching, free = touching + wraps, free + (not wraps)
    return touching, free


@pytest.mark.parametrize("text", PATHS.values(), ids=PATHS)
def test_strings_around_surfaces_are_mujocos(text: str) -> None:
    touching, free = compare(text, 300, EXACT, ROUNDED)
    assert touching > 20 and free > 20


@pytest.mark.parametrize("text", INSIDE.values(), ids=INSIDE)
def test_strings_that_pass_inside_are_mujocos(text: str) -> None:
    """Check lengths, which are minimal there, so that errors of the point count by their square."""
    touching, free = compare(text, 300, NEWTON**2 * 1e2, 10.0 * NEWTON)
    assert touching > 20 and free > 20


def test_branches_pulleys_and_sums_of_coordinates_are_mujocos() -> None:
    compare(MANY, 200, EXACT, ROUNDED)


def test_moment_arms_are_the_slopes_of_lengths() -> None:
    """Check against central differences, on a robot with joints that follow others through a loop."""
    loop = MANY.replace("</mujoco>", '<equality><joint joint1="c" joint2="a" polycoef=".1 1 .3 .2 0"/></equality></mujoco>')
    crank = (
        '<body pos="-1 0 1"><joint name="c" axis="0 1 0"/><geom size=".1" pos=".1 0 0"/><site name="s4" pos=".1 0 .2"/></body>'
    )
    loop = loop.replace("</worldbody>", crank + "</worldbody>").replace(
        "</tendon>",
        '<spatial name="follower"><site site="s4"/><site site="s1"/></spatial><fixed name="sum"><joint joint="c" coef="1.5"/>'
        '<joint joint="a" coef="1"/></fixed></tendon>',
    )
    for text in (MANY, loop):
        robot = fw.load(text, execution="interpreted")
        q, step = robot.random_configuration(rng=3), 1e-6
        arms = robot.tendon_moment_arms(q)
        for k, e in enumerate(np.eye(robot.nv)):
            ahead, behind = (robot.tendon_lengths(robot.integrate(q, s * e)) for s in (step, -step))
            np.testing.assert_allclose(arms[:, k], (ahead - behind) / (2.0 * step), atol=1e-8)


def test_many_configurations_at_once_and_named_tendons() -> None:
    robot = fw.load(MANY, execution="interpreted")
    # the fixed tendon "joints" acts like a joint and is not listed
    assert [t.name for t in robot.tendons] == ["branches", "slack", "straight"]
    assert robot.tendons["straight"].path[0] == fw.TendonPoint(None, (0.0, 0.0, 1.2))
    q = robot.random_configuration(rng=0, size=(2, 3))
    lengths, arms = robot.tendon_lengths(q), robot.tendon_moment_arms(q)
    assert lengths.shape == (2, 3, 3) and arms.shape == (2, 3, 3, robot.nv)
    np.testing.assert_array_equal(lengths[1, 2], robot.tendon_lengths(q[1, 2]))
    np.testing.assert_array_equal(arms[1, 2], robot.tendon_moment_arms(q[1, 2]))
    with pytest.raises(ValueError, match="q must have"):
        robot.tendon_lengths(q[..., :-1])
    none = fw.build(fw.robots.four_bar())
    assert none.tendon_lengths(none.neutral()).shape == (0,)


@pytest.mark.parametrize(
    ("tendon", "words"),
    [
        (fw.Tendon("t", terms=(("nobody", 1.0),)), "'nobody' is not a joint"),
        (fw.Tendon("t", path=(fw.TendonPoint(None, (0, 0, 0)),)), "at least two points"),
        (fw.Tendon("t", path=(fw.TendonPoint("arm", (0, 0, 0)), fw.TendonPoint(None, (0, 0, 0)))), "'arm' is not a body"),
        (fw.Tendon("t", path=(fw.Pulley(0.0), fw.TendonPoint(None, (0, 0, 0)), fw.TendonPoint("b", (0, 0, 0)))), "divisor 0"),
        (fw.Tendon("t"), "neither terms nor a path"),
        (fw.Tendon("t", terms=(("j", 1.0),), stiffness=-1.0), "stiffness is negative"),
        (fw.Tendon("t", terms=(("j", 1.0),), lower=1.0, upper=0.0), "lower limit 1 is above"),
        (fw.Tendon("t", terms=(("j", float("nan")),)), "give numbers within"),
    ],
)
def test_tendons_that_are_none_are_refused(tendon: fw.Tendon, words: str) -> None:
    body = fw.Body("b", fw.Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))
    joint = fw.Joint("j", fw.JointType.REVOLUTE, None, "b")
    with pytest.raises(fw.ModelError, match=words):
        fw.build(fw.describe([body], [joint], tendons=[tendon]))


def test_angles_have_all_their_digits() -> None:
    for angle in (0.0, 1e-300, 1e-12, 0.1, np.pi / 4, 1.2, np.pi / 2, 2.0, 3.0, np.pi - 1e-9, np.pi):
        assert angle_of(np.sin(angle), np.cos(angle)) == pytest.approx(angle, rel=4e-16, abs=4e-16)


def test_a_string_inside_takes_the_shortest_way() -> None:
    angles = np.linspace(0.0, 1.3, 20001)
    far, angle = np.array([[1.5], [2.5]]), np.stack([angles, 1.3 - angles])
    lengths = np.sqrt(far * far + 1.0 - 2.0 * far * np.cos(angle)).sum(axis=0)
    assert touching_angle(1.5, 2.5, 1.0, 1.3) == pytest.approx(angles[lengths.argmin()], abs=1e-4)


def test_a_string_along_a_cylinder_rises_evenly() -> None:
    path = wrap_around((1.0, 0.0, 0.0), (-1.0, 0.1, 3.0), 0.5, True, False, (0.0, 0.0, 0.0))
    parts = [np.hypot(1.0 - path.first[0], path.first[1]), np.hypot(-1.0 - path.last[0], 0.1 - path.last[1])]
    rises = [path.first[2], path.last[2] - path.first[2], 3.0 - path.last[2]]
    arc = np.sqrt(path.length**2 - rises[1] ** 2)
    np.testing.assert_allclose(np.array(rises) / [parts[0], arc, parts[1]], 3.0 / (sum(parts) + arc), rtol=1e-13)
