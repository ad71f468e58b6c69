"""Tests of pictures without a window: positions, shadows, floors, several robots, and films."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight
from engine.used import REFUSED, used_by_another_thread
from viewer.robots import arm

pytest.importorskip("trimesh")
Image = pytest.importorskip("PIL.Image")

from featherweight.viewer import OffscreenScene, picture, save_film  # noqa: E402
from featherweight.viewer.view_arguments import view_points  # noqa: E402

BOX = """<mujoco model="box"><worldbody>{floor}<geom type="box" pos="0 3 0.5" size="0.5 0.5 0.5" rgba="0 0 1 1"/>
  <body pos="0 0 0.5"><freejoint/><geom type="box" size="0.5 0.5 0.5" rgba="1 0 0 {opacity}"/></body></worldbody></mujoco>"""
EYE = [10.0, 0.0, 0.5]  # views the box's face, which is 9.5 m away


def box(folder: Path, floor: str = "", opacity: float = 1.0) -> featherweight.Robot:
    path = folder / "box.xml"
    path.write_text(BOX.format(floor=floor, opacity=opacity))
    return featherweight.load(path)


def red(image: Any) -> Any:
    r, g, b = np.moveaxis(image.astype(int), -1, 0)
    return (r > g + 60) & (r > b + 60)


def blue(image: Any) -> Any:
    r, g, b = np.moveaxis(image.astype(int), -1, 0)
    return (b > g + 60) & (b > r + 60)


def test_a_face_is_where_a_pinhole_camera_sees_it(tmp_path: Path) -> None:
    scene = OffscreenScene(box(tmp_path), (200, 160), ground=None)
    scene.look(EYE, [0.0, 0.0, 0.5])
    image = scene.frame([0, 0, 0.5, 0, 0, 0, 1])
    assert image.shape == (160, 200, 3) and image.dtype == np.uint8
    half = 160 / (2 * np.tan(0.35)) * 0.5 / 9.5  # pixels
    rows, columns = (np.flatnonzero(red(image).any(axis=k)) for k in (1, 0))
    assert [rows[0], rows[-1] + 1] == pytest.approx([80 - half, 80 + half], abs=1.0)
    assert [columns[0], columns[-1] + 1] == pytest.approx([100 - half, 100 + half], abs=1.0)
    right = np.flatnonzero(blue(image).any(axis=0))  # y points to the right, seen from x
    assert right.min() > columns[-1]


def test_a_second_thread_needs_a_scene_of_its_own(tmp_path: Path) -> None:
    scene = OffscreenScene(arm(tmp_path), (8, 6))
    calls: list[Any] = [
        lambda: scene.frame(scene.start), lambda: scene.look([1.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
        lambda: scene.look_at_all(scene.start), scene.look_by_itself, lambda: scene.look_through("none"),
        lambda: scene.add_heights([0.0, 1.0], [0.0, 1.0], np.zeros((2, 2))),
    ]  # fmt: skip
    with used_by_another_thread(scene):
        for call in calls:
            with pytest.raises(RuntimeError, match=f"^the scene of .* {REFUSED}"):
                call()
    assert scene.frame(scene.start).shape == (6, 8, 3)


def test_what_is_nearer_hides_what_is_behind(tmp_path: Path) -> None:
    scene = OffscreenScene(box(tmp_path), (120, 120), ground=None)
    scene.look([0.0, -8.0, 0.5], [0.0, 0.0, 0.5])
    assert not blue(scene.frame([0, 0, 0.5, 0, 0, 0, 1])).any()
    scene.look([0.0, 12.0, 0.5], [0.0, 0.0, 0.5])
    assert not red(scene.frame([0, 0, 0.5, 0, 0, 0, 1])).any()


def test_a_triangle_that_reaches_behind_the_camera_is_drawn_in_front_of_it(tmp_path: Path) -> None:
    """Check a camera beside a box, within its length: both ends of the box's side are out of view, one behind."""
    scene = OffscreenScene(box(tmp_path), (100, 100), ground=None)
    scene.look([0.8, 0.45, 0.5], [0.5, -0.2, 0.5])
    image = red(scene.frame([0, 0, 0.5, 0, 0, 0, 1]))
    assert image[50, 50] and image[50, 99]
    assert image.mean() > 0.4


def test_the_floor_has_a_shadow_under_what_hangs_above_it(tmp_path: Path) -> None:
    scene = OffscreenScene(box(tmp_path), (100, 100), ground=0.0)
    scene.look([0.0, 0.0, 30.0], [0.0, 0.0, 0.0])
    near = scene.frame([0, 0, 0.5, 0, 0, 0, 1])
    high = scene.frame([0, 0, 3.0, 0, 0, 0, 1])
    dark = [(image.astype(int).sum(axis=-1) < 480) & ~red(image) & ~blue(image) for image in (near, high)]
    assert dark[1].sum() > dark[0].sum() > 0
    middle = np.argwhere(dark[1]).mean(axis=0)
    assert middle[0] < 50 or middle[1] < 50  # where the sun's light falls


def test_the_floor_of_the_file_is_drawn_where_it_is(tmp_path: Path) -> None:
    q = [0, 0, 2.5, 0, 0, 0, 1]
    floor = '<geom type="plane" size="0 0 1" pos="0 0 {}"/>'
    pictures = []
    for height in (0.0, -4.0):
        scene = OffscreenScene(box(tmp_path, floor.format(height)), (80, 80))
        scene.look([9.0, 0.0, 3.0], [0.0, 0.0, 2.0])
        pictures.append(scene.frame(q))
        same = OffscreenScene(box(tmp_path), (80, 80), ground=height)
        same.look([9.0, 0.0, 3.0], [0.0, 0.0, 2.0])
        np.testing.assert_array_equal(pictures[-1], same.frame(q))
    assert (pictures[0] != pictures[1]).any()


def test_heights_are_drawn(tmp_path: Path) -> None:
    scene = OffscreenScene(box(tmp_path), (60, 60), ground=None)
    scene.look([0.0, 0.0, 20.0], [0.0, 0.0, 0.0])
    before = scene.frame([0, 0, 0.5, 0, 0, 0, 1])
    scene.add_heights([-9, 9], [-9, 9], np.full((2, 2), 5.0))
    after = scene.frame([0, 0, 0.5, 0, 0, 0, 1])
    assert red(before).any() and not red(after).any()
    with pytest.raises(ValueError, match=r"\(2, 3\)"):
        scene.add_heights([0, 1], [0, 1, 2], np.zeros((2, 2)))


def test_a_thin_surface_lets_through_what_is_behind(tmp_path: Path) -> None:
    scene = OffscreenScene(box(tmp_path, opacity=0.5), (120, 120), ground=None)
    scene.look([0.0, -8.0, 0.5], [0.0, 0.0, 0.5])
    image = scene.frame([0, 0, 0.5, 0, 0, 0, 1])
    r, _, b = image[60, 60].astype(int)
    assert r > 60 and b > 60


def test_several_robots_stand_beside_each_other_or_where_they_are_put(tmp_path: Path) -> None:
    scene = OffscreenScene(box(tmp_path), (160, 80), ground=None)
    scene.look([0.0, 0.0, 30.0], [0.0, 0.0, 0.0])
    q = np.tile([0, 0, 0.5, 0, 0, 0, 1.0], (4, 1))
    one, four = red(scene.frame(q[0])).sum(), red(scene.frame(q)).sum()
    assert four == pytest.approx(4 * one, rel=0.15)
    assert red(scene.frame(q, np.zeros((4, 3)))).sum() == one
    with pytest.raises(ValueError, match="offsets"):
        scene.frame(q, np.zeros((3, 3)))


def test_without_being_told_the_camera_sees_the_whole_robot(tmp_path: Path) -> None:
    robot = arm(tmp_path)
    image = red(picture(robot, [0.3, 0.2], (90, 120)))
    assert image.sum() > 40
    assert not (image[0].any() or image[-1].any() or image[:, 0].any() or image[:, -1].any())


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    scene = OffscreenScene(arm(tmp_path), (8, 8))
    with pytest.raises(ValueError, match=r"\(2,\)"):
        scene.frame([0.0])
    with pytest.raises(ValueError, match="q must be finite numbers"):
        scene.frame([0.0, np.nan])
    with pytest.raises(ValueError, match="different points"):
        scene.look([0, 0, 1], [0, 0, 1])
    with pytest.raises(ValueError, match="positive"):
        OffscreenScene(arm(tmp_path), (0, 8))


def test_a_film_has_its_frames_and_its_rate(tmp_path: Path) -> None:
    frames = [np.full((8, 10, 3), 40 * k, np.uint8) for k in range(5)]
    save_film(tmp_path / "film.gif", frames, fps=20.0)
    with Image.open(tmp_path / "film.gif") as film:
        assert (film.n_frames, film.size, film.info["duration"]) == (5, (10, 8), 50)
    for path, given in (("film.txt", frames), ("film.gif", [])):
        with pytest.raises(ValueError, match="save_film"):
            save_film(tmp_path / path, given)


def test_pictures_need_neither_viser_nor_scipy_nor_a_display(tmp_path: Path) -> None:
    arm(tmp_path)
    code = (
        "import sys; sys.modules['viser'] = sys.modules['scipy'] = None\n"
        "import featherweight as fw; from featherweight.viewer import picture\n"
        f"print(picture(fw.load({str(tmp_path / 'arm.urdf')!r}), size=(20, 10)).std() > 5)"
    )
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, env=environment)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_without_their_packages_pictures_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(ImportError, match=r"trimesh: pip install .*featherweight\[render\]"):
        from featherweight.viewer import picture as _  # noqa: F401


@pytest.mark.parametrize("position", [[0.0, 0.0], [0.0, 0.0, np.nan], [0.0, 0.0, np.inf], [1.0, 2.0, 3.0]])
def test_views_are_from_one_point_to_another(position: list[float]) -> None:
    with pytest.raises(ValueError, match=r"^look: position (must be finite numbers|and at must be two different points)"):
        view_points(position, [1.0, 2.0, 3.0])
