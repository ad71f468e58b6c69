"""Tests of the window in a browser: pictures, motion by hand, recordings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from featherweight import ModelWarning
from featherweight.robot.trajectory import Trajectory
from patience import PATIENCE
from viewer.robots import HOSTILE, arm, hostile_linkage

pytest.importorskip("viser")
pytest.importorskip("selenium")

from chromium import CHROMIUM, DRIVER, Page, chromium

from featherweight.viewer import Window
from featherweight.viewer.marks import Mark

pytestmark = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="no chromium and chromedriver on this machine")

SIZE = (1000, 600)


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with chromium(SIZE) as opened:
        yield opened


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Window]:
    with Window(arm(tmp_path), port=0) as made:
        yield made


def until(what: Callable[..., Any], reason: str) -> Any:
    """Return the result of a function as soon as it is true."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.2)
    raise AssertionError(f"after {PATIENCE:.0f} s {reason}")


def red(page: Page) -> np.ndarray:
    """Return which pixels (height, width) have the colour of the arm's upper link."""
    r, g, b = np.moveaxis(page.picture().astype(int), -1, 0)
    return (r > 90) & (r > 2 * g + 30) & (r > 2 * b + 30)


def green(page: Page) -> np.ndarray:
    """Return which pixels (height, width) have the colour of force arrows."""
    r, g, b = np.moveaxis(page.picture().astype(int), -1, 0)
    return (g > r + 40) & (g > b + 30)


def middle(mask: np.ndarray) -> np.ndarray:
    """Return the mean row and column of the true pixels."""
    return np.argwhere(mask).mean(axis=0)


def settled(page: Page) -> np.ndarray:
    """Return the red pixels of a page that has stopped changing."""
    before = np.zeros(0)

    def same() -> bool:
        nonlocal before
        previous, before = before, red(page)
        return before.sum() > 200 and np.array_equal(previous, before)

    until(same, "the page does not show a robot at rest")
    return before


def test_the_page_shows_the_robot_in_its_middle(page: Page, window: Window) -> None:
    page.open(window.url)
    row, column = middle(settled(page))
    assert 0.25 * SIZE[1] < row < 0.75 * SIZE[1]
    assert 0.15 * SIZE[0] < column < 0.6 * SIZE[0]  # the panel covers the right
    assert page.picture().std() > 5.0


def test_a_hand_on_a_slider_moves_the_robot(page: Page, window: Window) -> None:
    page.open(window.url)
    before = settled(page)
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    fields = until(lambda: page.driver.find_elements(By.CSS_SELECTOR, '[role="slider"]'), "the page has no sliders")
    shoulder = next(f for f in fields if f.get_attribute("aria-valuemax") == "1.25")
    shoulder.send_keys(Keys.END)
    until(lambda: window.q[0] == 1.25, "the server has not heard of the slider")
    until(lambda: np.linalg.norm(middle(settled(page)) - middle(before)) > 20.0, "the robot has not moved in the page")
    assert window.q[1] == 0.0


def test_a_state_that_is_sent_is_drawn(page: Page, window: Window) -> None:
    page.open(window.url)
    before = settled(page)
    window.live([-1.5, 0.0], [[0.0, 0.6, 0.0]], [[0.0, 0.0, 30.0]])
    until(lambda: np.linalg.norm(middle(red(page)) - middle(before)) > 20.0, "the robot has not moved in the page")
    until(lambda: green(page).sum() > 50, "the page shows no contact force")


def test_a_picture_is_drawn_without_the_panels(page: Page, window: Window) -> None:
    page.open(window.url)
    settled(page)
    picture = window.picture((240, 200), timeout=PATIENCE).astype(int)
    assert picture.shape == (200, 240, 3)
    assert (picture[..., 0] > 2 * picture[..., 1] + 30).sum() > 50


def test_a_recording_plays_from_its_file_without_a_network(page: Page, window: Window, tmp_path: Path) -> None:
    times = np.arange(0.0, 4.0, 0.02)
    q = np.stack([1.2 * np.sin(2.0 * np.pi * times / 4.0), np.zeros(len(times))], axis=1)
    points, forces = np.tile([[0.0, 0.5, 0.0]], (len(times), 1)), np.tile([[0.0, 0.0, 60.0]], (len(times), 1))
    window.play(Trajectory(times, q, np.zeros_like(q), np.arange(len(times) + 1), points, forces), start=False)
    path = tmp_path / "swing.html"
    window.save(path)
    window.close()
    places: list[np.ndarray] = []

    def moves() -> bool:
        places.append(middle(red(page)))
        return bool(np.ptp(places, axis=0).max() > 30.0)

    with page.offline():
        page.open(path.as_uri())
        until(lambda: red(page).sum() > 200, "the recording shows no robot")
        page.driver.get_log("browser")
        until(moves, "the recording does not move")
        assert green(page).sum() > 50, "the recording shows no contact force"
        assert [e["message"] for e in page.driver.get_log("browser") if e["level"] == "SEVERE"] == []


def test_names_of_files_are_shown_and_not_run(page: Page, tmp_path: Path) -> None:
    """Check names in panels, beside frames, in notifications, and in the recording."""
    from selenium.webdriver.common.by import By

    path = tmp_path / "page.html"
    with pytest.warns(ModelWarning, match="meshes cannot be read"):
        window = Window(hostile_linkage(HOSTILE), port=0)
    with window:
        window._scene.marks.show(Mark.NAMES, True)
        page.open(window.url)
        until(lambda: window._server.get_clients(), "no page is open")
        [client] = window._server.get_clients().values()
        client.add_notification("The loops cannot be closed", HOSTILE)
        for folder in ("Loops and couplings", "Show"):
            fold = f"//*[text()='{folder}']"
            heading = until(lambda at=fold: page.driver.find_elements(By.XPATH, at), f"there is no folder {folder}")
            page.driver.execute_script("arguments[0].click()", heading[0])
        until(lambda: page.driver.page_source.count("[x](/etc/passwd)") >= 4, "the names are not shown")
        assert page.driver.execute_script("return window.ran") is None
        window.save(path)
    page.open(path.as_uri())
    until(lambda: page.picture().std() > 5.0, "the recording shows nothing")
    assert page.driver.execute_script("return window.ran") is None
