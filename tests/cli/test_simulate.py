"""Tests of `featherweight simulate`, run as by a user."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from featherweight.cli import main

BOX = """<robot name="crate"><link name="crate">
  <inertial><mass value="2"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial>
  <collision><geometry><box size="0.2 0.3 0.1"/></geometry></collision>
</link>{more}</robot>"""
LID = """<link name="lid">
  <inertial><mass value="0.1"/><inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial>
</link><joint name="hinge" type="revolute"><parent link="crate"/><child link="lid"/><axis xyz="0 1 0"/>
  <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>"""


def written(folder: Path, more: str = "") -> str:
    path = folder / "crate.urdf"
    path.write_text(BOX.format(more=more))
    return str(path)


def test_it_drops_a_robot_and_draws_its_energy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", written(tmp_path, LID), "--time", "0.5", "--hold", "5", "--output", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "7 degrees of freedom, 8 points and spheres" in told
    assert "steps per second" in told and "4 contacts at the end" in told
    with Image.open(tmp_path / "simulate_crate.png") as picture:
        assert picture.width > 600 and picture.convert("L").getextrema() != (255, 255)


def test_it_writes_a_recording(tmp_path: Path) -> None:
    pytest.importorskip("viser")
    page = tmp_path / "motion.html"
    assert main(["simulate", written(tmp_path), "--time", "0.1", "--save", str(page), "--output", str(tmp_path)]) == 0
    assert "<html" in page.read_text(encoding="utf-8")[:2000].lower()


def test_what_stops_it_is_told_and_the_chart_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Check steps of 0.2 s, which are too long for a crate that bounces and tumbles."""
    bounces = ["--dt", "0.2", "--height", "3", "--restitution", "1"]
    assert main(["simulate", written(tmp_path), "--time", "5", *bounces, "--output", str(tmp_path)]) == 1
    assert "gains energy" in capsys.readouterr().err
    assert (tmp_path / "simulate_crate.png").exists()
