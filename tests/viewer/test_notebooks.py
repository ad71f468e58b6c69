"""Tests of the HTML that robots and windows show in notebooks."""

from __future__ import annotations

import base64
from html.parser import HTMLParser
from typing import Any

import pytest

import featherweight as fw
from featherweight import providers

VOID = {"img", "br"}


class Page(HTMLParser):
    """Parser of the cells of all rows, and of attributes of elements; every element that begins must end."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.elements: dict[str, list[dict[str, str | None]]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.setdefault(tag, []).append(dict(attrs))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def robot() -> fw.Robot:
    """Return a flying trunk, with a slide and a hinge whose names would be HTML."""
    inertia = fw.Inertia(2.0, (0.0, 0.0, 0.0), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1))
    bodies = [fw.Body(name, inertia) for name in ("trunk", "<b>", "tip")]
    joints = [
        fw.Joint("lift & go", fw.JointType.PRISMATIC, "trunk", "<b>", lower=-0.5, upper=0.25, effort=80.0),
        fw.Joint("elbow", fw.JointType.REVOLUTE, "<b>", "tip", velocity=3.0),
    ]
    shapes = [fw.Shape(f"{body.name}_ball", body.name, fw.ShapeType.SPHERE, (0.1,)) for body in bodies]
    return fw.build(fw.describe(bodies, joints, shapes=shapes, name="hop"), base="floating", execution="interpreted")


def test_a_robot_is_a_table_of_joints_and_of_bodies() -> None:
    page = Page(robot()._repr_html_())
    assert page.rows == [
        ["joint", "type", "on", "q", "v", "limits", "velocity", "force"],
        ["root_joint", "floating", "the ground", "0:7", "0:6", "", "", ""],
        ["lift & go", "prismatic", "trunk", "7", "6", "-0.5 to 0.25 m", "", "80 N"],
        ["elbow", "revolute", "<b>", "8", "7", "", "3 rad/s", ""],
        ["body", "mass [kg]", "fixed to it"],
        ["trunk", "2", ""],
        ["<b>", "2", ""],
        ["tip", "2", ""],
    ]


def test_a_robot_has_a_picture_where_pictures_can_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("trimesh")
    hop = robot()
    (image,) = Page(hop._repr_html_()).elements["img"]
    assert image["alt"] == "hop" and image["src"] is not None
    data = base64.b64decode(image["src"].removeprefix("data:image/png;base64,"))
    assert data.startswith(b"\x89PNG") and len(data) < 100_000

    def without(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("featherweight.robot.html_view.provided", without)
    assert "img" not in Page(robot()._repr_html_()).elements
    assert providers.provided("Robot.picture") is not None


def test_a_large_robot_keeps_its_tables_closed_at_first() -> None:
    chain = fw.build(fw.generators.chain(30), execution="interpreted")
    assert Page(chain._repr_html_()).elements["details"] == [{}, {}]
    assert Page(robot()._repr_html_()).elements["details"] == [{"open": None}] * 2


def test_a_window_is_a_frame_with_its_page() -> None:
    pytest.importorskip("viser")
    with fw.Window(robot(), port=0, quiet=True) as window:
        page = Page(window._repr_html_())
        assert page.elements["iframe"][0]["src"] == page.elements["a"][0]["href"] == window.url
    assert "closed" in window._repr_html_() and "iframe" not in window._repr_html_()
