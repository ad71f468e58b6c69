"""Tests of the tables of names for users of other libraries: both columns are evaluated and compared."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np
import pinocchio as pin
import pytest

import featherweight as fw
from featherweight.names import CALLED_HERE

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "coming_from.md").read_text()
SECTIONS = dict(re.findall(r"^## ([\w ]+)\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE))
ROW = re.compile(r"^\| (`[^|]*) \| ([^|]*) \|$", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")


def computed(section: str) -> list[tuple[str, str]]:
    """Return rows whose cells are single expressions: the other library's and ours."""
    rows = [(CODE.fullmatch(a), CODE.fullmatch(b)) for a, b in ROW.findall(SECTIONS[section])]
    return [(a[1], b[1]) for a, b in rows if a and b and b[1].startswith("robot.")]


def value(code: str, names: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
    """Return the value of the last of several statements as flat, comparable arrays."""
    *before, last = code.split("; ")
    for statement in before:
        exec(statement, names)
    result = eval(last, names)
    return [np.array(x) for x in (result if isinstance(result, tuple) else (result,))]


@pytest.fixture(scope="module")
def with_pinocchio() -> dict[str, Any]:
    path = str(DOCS / "files" / "arm.urdf")
    robot, model = fw.load(path, base="floating"), pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer())
    rng = np.random.default_rng(1)
    q, q1 = robot.random_configuration(rng=rng, size=2)
    v, a, tau = rng.normal(size=(3, robot.nv))
    data, frame = model.createData(), model.getFrameId("hand")
    return {"pin": pin, "np": np, **locals()}


@pytest.fixture(scope="module")
def with_mujoco() -> dict[str, Any]:
    path = str(DOCS / "files" / "arm.xml")
    robot, model = fw.load(path), mujoco.MjModel.from_xml_path(path)
    rng = np.random.default_rng(1)
    q = robot.random_configuration(rng=rng)
    v, a, tau = rng.normal(size=(3, robot.nv))
    data, site = mujoco.MjData(model), model.site("hand").id
    data.qpos, data.qvel, data.qfrc_applied = q, v, tau
    mujoco.mj_forward(model, data)
    full, six, jacp, jacr = np.zeros((4, 4)), np.zeros(6), np.zeros((3, 4)), np.zeros((3, 4))
    x, y = np.zeros((2, 4)), rng.normal(size=(2, 4))
    return {"mujoco": mujoco, "np": np, **locals()}


def compare(theirs: str, ours: str, names: dict[str, Any]) -> None:
    """Compare two values with a tolerance for rounding in a robot of a few joints."""
    for x, y in zip(value(theirs, names), value(ours, names), strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("theirs", "ours"), computed("Pinocchio"))
def test_pinocchio_computes_the_same(theirs: str, ours: str, with_pinocchio: dict[str, Any]) -> None:
    compare(theirs, ours, dict(with_pinocchio))


@pytest.mark.parametrize(("theirs", "ours"), computed("MuJoCo"))
def test_mujoco_computes_the_same(theirs: str, ours: str, with_mujoco: dict[str, Any]) -> None:
    compare(theirs, ours, dict(with_mujoco))


def test_all_tables_are_read() -> None:
    """Check that no row has a format that the parser misses."""
    assert len(computed("Pinocchio")) >= 30 and len(computed("MuJoCo")) >= 14
    rows = [row for section in SECTIONS.values() for row in ROW.findall(section)]
    assert len(rows) == len(re.findall(r"^\| `[^|]*\|[^|]*\|$", TEXT, re.MULTILINE))


@pytest.mark.parametrize("name", sorted({*re.findall(r"`-?((?:featherweight|pin|mujoco|robot)\.[\w.]+)", TEXT)}))
def test_a_name_is_one(name: str, with_pinocchio: dict[str, Any]) -> None:
    """Check that every name in the tables exists."""
    found: Any = {"featherweight": fw, "pin": pin, "mujoco": mujoco, "robot": with_pinocchio["robot"]}[name.partition(".")[0]]
    for part in name.split(".")[1:]:
        if isinstance(found, pin.Data | pin.Model):
            break
        if any(part in vars(c).get("__annotations__", ()) for c in getattr(found, "__mro__", ())):
            break  # an attribute of their objects
        found = getattr(found, part)


ALL_ROWS = [(theirs, ours.replace("`", "").strip()) for text in SECTIONS.values() for theirs, ours in ROW.findall(text)]


def words(cell: str) -> set[str]:
    return set(re.findall(r"\w+", " ".join(CODE.findall(cell))))


@pytest.mark.parametrize("name", CALLED_HERE)
def test_messages_say_what_the_tables_say(name: str) -> None:
    """Compare messages with the tables, without the indices that omit a free-flyer."""
    cells = [re.sub(r"\[\d:\d?\]$", "", ours) for theirs, ours in ALL_ROWS if name in words(theirs)]
    assert CALLED_HERE[name] in cells, cells


@pytest.mark.parametrize(("theirs", "ours"), ALL_ROWS)
def test_messages_know_every_row_of_the_tables(theirs: str, ours: str) -> None:
    """Check that messages know the name, unless ours differs only in capitals or underscores."""
    same = {word.replace("_", "").lower() for word in re.findall(r"\w+", ours)}
    assert any(word in CALLED_HERE or word.lower() in same for word in words(theirs))
