"""A robot as HTML, for notebooks: its joints and bodies as tables, and a picture if the packages for pictures are installed."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from ..model.model import MovingJoint
from ..model.types import JointType
from ..providers import provided

FEW = 12  # joints whose table is open at first
JOINTS = ("joint", "type", "on", "q", "v", "limits", "velocity", "force")
BODIES = ("body", "mass [kg]", "fixed to it")


def html_of(robot: Any) -> str:
    """Return HTML of a robot, without scripts."""
    joints = [_joint_row(j) for j in robot.joints]
    bodies = [(b.name, f"{b.mass:.4g}", ", ".join(b.links[1:])) for b in robot.bodies]
    tables = _table("Joints", JOINTS, joints) + _table("Bodies", BODIES, bodies)
    return f"<div><p>{escape(repr(robot))}</p>{_picture(robot)}{tables}</div>"


def _joint_row(j: MovingJoint) -> tuple[str, ...]:
    unit = "m" if j.type is JointType.PRISMATIC else "rad"
    force = "N" if j.type is JointType.PRISMATIC else "N m"
    one = j.type.nv == 1
    limits = f"{_number(j.lower)} to {_number(j.upper)} {unit}" if one and math.isfinite(j.upper - j.lower) else ""
    return (
        j.name, j.type.value, j.parent or "the ground", _places(j.q_slice), _places(j.v_slice), limits,
        f"{_number(j.velocity)} {unit}/s" if one and 0.0 < j.velocity < math.inf else "",
        f"{_number(j.effort)} {force}" if one and 0.0 < j.effort < math.inf else "",
    )  # fmt: skip


def _number(x: float) -> str:
    return f"{x:.4g}"


def _places(s: slice) -> str:
    """Return a slice as Python writes it, or as one index; nothing if it is empty."""
    return "" if s.stop <= s.start else str(s.start) if s.stop == s.start + 1 else f"{s.start}:{s.stop}"


def _table(title: str, head: Sequence[str], rows: Sequence[Iterable[str]]) -> str:
    def row(cells: Iterable[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    shown = " open" if len(rows) <= FEW else ""
    return f"<details{shown}><summary>{title}: {len(rows)}</summary><table>{row(head, 'th')}{body}</table></details>"


def _picture(robot: Any) -> str:
    """Return a picture of the robot where its file starts, or nothing without the packages for pictures."""
    try:
        data = provided("Robot.picture")(robot)
    except (ImportError, LookupError):
        return ""
    return f'<img alt="{escape(robot.name, quote=True)}" src="data:image/png;base64,{base64.b64encode(data).decode()}">'
