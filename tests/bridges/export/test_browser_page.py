"""The page that computes a robot's motion: opened from its file by a browser, without a network."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.cli.app import run_command
from featherweight.exporting import web_page
from patience import PATIENCE
from viewer.robots import ARM, HOSTILE, arm, hostile_linkage


def test_the_page_needs_nothing_from_elsewhere_and_runs_no_name(tmp_path: Path) -> None:
    robot = arm(tmp_path)
    text = web_page(robot, tmp_path / "arm.html").read_text()
    assert "@TITLE@" not in text and "@ROBOT@" not in text
    assert not re.search(r"(src|href)=|https?:", text)
    [data] = re.findall(r'<script type="application/json" id="robot">(.*?)</script>', text, re.DOTALL)
    described = json.loads(data)
    assert described["nv"] == 2 and described["floating"] is False
    assert {s["body"] for s in described["surfaces"]} == {-1, 0, 1}  # the base is the ground's


def test_commands_write_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arm(tmp_path)
    [file] = tmp_path.glob("*.urdf")
    assert run_command(["export", str(file), str(tmp_path / "out"), "--web"]) == 0
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["arm.html"]
    assert "arm.html" in capsys.readouterr().out


def test_bad_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="without loops or couplings; got ClosedRobot"):
        web_page(hostile_linkage(HOSTILE), tmp_path / "page.html")
    with pytest.raises(ValueError, match="step must be positive and finite; got 0"):
        web_page(arm(tmp_path), tmp_path / "page.html", step=0.0)


# in a browser


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    pytest.importorskip("selenium")
    pytest.importorskip("PIL")
    from chromium import CHROMIUM, DRIVER, chromium

    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no chromium and chromedriver on this machine")
    with chromium((800, 600)) as opened:
        yield opened


def opened(page: Any, robot: fw.Robot, folder: Path) -> Any:
    """What runs scripts in the page of a robot, once it has started."""
    with page.offline():
        page.open(web_page(robot, folder / "page.html").as_uri())
    run = page.driver.execute_script
    end = time.monotonic() + PATIENCE
    while not run("return typeof state === 'object' && state && state.time > 0"):
        assert time.monotonic() < end, run("return document.getElementById('state').textContent")
        time.sleep(0.1)
    return run


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_the_page_computes_what_is_computed_here(page: Any, tmp_path: Path, base: str) -> None:
    robot = arm(tmp_path, base)
    run = opened(page, robot, tmp_path)
    rng = np.random.default_rng(1)
    q, v, tau = robot.random_configuration(rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    forces = rng.normal(size=(len(robot.bodies), 6))
    given = [q.tolist(), v.tolist(), tau.tolist(), forces.ravel().tolist()]
    a = run("return [...call('forward_dynamics', ...arguments)]", *given)
    expected = robot.forward_dynamics(q, v, tau, external_forces=forces)
    np.testing.assert_allclose(a, expected, rtol=0, atol=1e-12 * abs(expected).max())
    np.testing.assert_allclose(
        run("return [...call('integrate', ...arguments)]", *given[:2]), robot.integrate(q, v), atol=1e-13
    )


SWING = """
    const [step_size] = arguments;
    robot.step = step_size;
    restart();
    state.q[0] = 1;
    const start = energy();
    let error = 0, kinetic = 0;
    while (state.time < 2) {
      step();
      error = Math.max(error, Math.abs(energy() - start));
      kinetic = Math.max(kinetic, call("kinetic_energy", state.q, state.v)[0]);
    }
    return [error, kinetic];
"""


def test_energy_is_kept_to_first_order_in_the_step_while_the_robot_swings(page: Any, tmp_path: Path) -> None:
    run = opened(page, arm(tmp_path), tmp_path)
    [coarse, kinetic], [fine, _] = run(SWING, 1e-3), run(SWING, 2.5e-4)
    assert kinetic > 5.0
    assert coarse < 0.05 * kinetic
    assert fine < 0.3 * coarse


def test_a_body_follows_the_mouse(page: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    run = opened(page, arm(tmp_path), tmp_path)
    run("restart()")
    canvas = page.driver.find_element(By.ID, "canvas")
    where = "const p = onScreen(camera(), toWorld(state.T, 0, [0, 0, 0.15])); return [p[0], p[1]]"
    x, y = run(where)
    mouse = ActionChains(page.driver).move_to_element_with_offset(canvas, round(x) - 400, round(y) - 300)
    mouse.click_and_hold().perform()
    assert run("return hand.body") == 0
    ActionChains(page.driver).move_by_offset(-120, 0).perform()
    start, end = run("return state.time"), time.monotonic() + PATIENCE
    while run("return state.time") < start + 1.5:
        assert time.monotonic() < end, "the page's time stands still"
        time.sleep(0.1)
    assert run(where)[0] < x - 15.0  # the point is 0.15 m from its joint, some 50 pixels
    ActionChains(page.driver).release().perform()
    assert run("return hand") is None


def test_a_floating_base_is_held_until_it_is_let_go(page: Any, tmp_path: Path) -> None:
    robot = arm(tmp_path, "floating")
    run = opened(page, robot, tmp_path)
    advance = "const z = state.q[2], t = state.time; while (state.time < t + 1) step(); return state.q[2] - z"
    assert abs(run(f"restart(); {advance}")) < 0.2  # the spring gives
    fallen, t = run(
        "button.click(); restart(); const before = call('potential_energy', state.q)[0];"
        "while (state.time < 1) step(); return [before - call('potential_energy', state.q)[0], state.time]"
    )
    assert np.isclose(fallen, robot.mass * 9.81**2 * t * (t + 1e-3) / 2.0, rtol=1e-3)


def test_damping_is_that_of_the_end_of_a_step(page: Any, tmp_path: Path) -> None:
    """So that a joint whose damping a step is long for comes to rest all the same."""
    (tmp_path / "arm.urdf").write_text(ARM.replace('<axis xyz="0 1 0"/>', '<axis xyz="0 1 0"/><dynamics damping="1e5"/>'))
    robot = fw.load(tmp_path / "arm.urdf")
    run = opened(page, robot, tmp_path)
    velocity = run("restart(); state.v[0] = 1; step(); return state.v[0]")
    assert abs(velocity) < 0.02  # 1 / (1 + h d / I), of some 1 kg m^2; of the start it were -99
