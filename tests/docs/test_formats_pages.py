"""Tests that the pages on robot files list exactly the elements that the loaders read; both are parsed and compared."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight.model.formats import srdf
from featherweight.model.formats.registry import FORMATS
from featherweight.model.formats.sdf.joint_elements import KINDS
from featherweight.model.formats.sdf.schema import SDF
from featherweight.model.formats.sdf.shapes import CONES
from featherweight.model.formats.urdf.couplings import COUPLING_TYPES
from featherweight.model.formats.urdf.loop_elements import LOOP_TYPES
from featherweight.model.formats.urdf.reader import JOINT_TYPES
from featherweight.model.formats.urdf.schema import ROBOT, Known
from featherweight.robot.not_simulated import CHANGING_MOTION
from oracles.mjcf_schema import schema

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "formats"
FOLDER = Path(inspect.getfile(srdf)).parent
TABLED = "MuJoCo 4.0"  # version of the tables of the page
ACCESSORS = {"attribute", "only", "required", "named", "read_scalar", "read_numbers", "read_tuple", "read_vector", "read_axis"}
ACCESSORS |= {"get", "find", "findall", "_nonnegative", "_range", "link"}


# --- pages


def page(name: str) -> str:
    """Return the words of a page, without its blocks of code."""
    return re.sub(r"^```.*?^```", "", (PAGES / f"{name}.md").read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def spans(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", text)


def rows(text: str, *heads: str) -> Iterator[list[str]]:
    """Yield the cells of rows of all tables whose header begins with these cells."""
    inside: bool | None = None  # of a table, and of one with this header
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            inside = None
        elif inside is None:
            inside = cells[: len(heads)] == list(heads)
        elif inside and not set(line) <= set("|- "):
            yield cells


def listed(text: str, *heads: str) -> set[tuple[str, str]]:
    """Return pairs of element and attribute in tables; the attribute is empty for a row without one."""
    return {(e, a) for cells in rows(text, *heads) for e in spans(cells[0]) for a in spans(cells[1]) or [""]}


# --- loaders


def sources(*patterns: str, but: Sequence[str] = ()) -> list[ast.Module]:
    files = sorted(f for pattern in patterns for f in FOLDER.glob(pattern) if f.name not in but)
    return [ast.parse(f.read_text(encoding="utf-8")) for f in files]


def strings(node: ast.AST) -> set[str]:
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def looked_up(modules: Sequence[ast.Module]) -> set[str]:
    """Return names of elements and attributes that an XML loader reads: constants in calls of the look-up functions."""
    found: set[str] = set()
    for node in (n for module in modules for n in ast.walk(module)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ACCESSORS:
                asked = node.args[:1] if name == "get" else node.args  # the second argument of `get` is the default
                paths = [text for a in asked for text in plain(a)]
                found |= {part for path in paths for part in re.split(r"[/.]+", path) if part}
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)) and "attrib" in ast.unparse(node):
            found |= strings(node.left)
    return found


def plain(node: ast.AST) -> set[str]:
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def pairs_of(known: Known, tag: str) -> set[tuple[str, str]]:
    """Return all pairs of element and attribute that a URDF file may have."""
    own = {(tag, key) for key in known.attributes}
    return own.union(*(pairs_of(inside, name) for name, inside in known.inside.items()))


def opaque(known: Known) -> set[str]:
    return {name for name, inside in known.inside.items() if inside.opaque}.union(*map(opaque, known.inside.values()))


def tags(known: Known) -> set[str]:
    return {*known.inside}.union(*map(tags, known.inside.values()))


# --- all formats


def test_every_format_has_a_page_that_the_index_names_with_its_suffixes_and_options() -> None:
    index = page("index")
    for format in FORMATS:
        assert f"({format.name.lower()}.md)" in index and (PAGES / f"{format.name.lower()}.md").is_file()
        assert {*format.suffixes, *format.options} <= {*spans(index)}
    named = {name for function in (fw.read, fw.load, fw.build) for name in inspect.signature(function).parameters}
    documented = {spans(cells[0])[0] for cells in rows(index, "argument")}
    assert documented == named - {"path", "description"}
    for cells in rows(index, "argument"):
        for function in spans(cells[1]):
            assert spans(cells[0])[0] in inspect.signature(getattr(fw, function)).parameters


def test_links_between_files_lead_somewhere() -> None:
    for file in [*PAGES.glob("*.md"), *(ROOT / "docs" / "how_it_works").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", file.read_text(encoding="utf-8")):
            assert (file.parent / target).exists(), (file.name, target)


# --- URDF


def test_the_table_of_urdf_is_what_the_loader_knows() -> None:
    table = listed(page("urdf"), "element", "attribute", "meaning")
    known = pairs_of(ROBOT, "robot")
    assert table - known == set() and known - table == set()
    prose = {*spans(page("urdf"))}
    assert opaque(ROBOT) <= prose
    assert {f"<{tag}>" for tag in tags(ROBOT) - {e for e, _ in table} - opaque(ROBOT)} <= prose


def test_the_urdf_loader_looks_up_what_it_knows_and_nothing_else() -> None:
    modules = sources("urdf/*.py", but=("writer.py", "schema.py"))
    asked = {name for name in looked_up(modules) if name.isidentifier()}
    names = tags(ROBOT) | {key for _, key in pairs_of(ROBOT, "robot")} | {"robot"}
    assert asked - names == set()
    mentioned = asked.union(*map(strings, modules))
    not_asked_for = {"version", "filename"} | opaque(ROBOT)
    assert names - mentioned - not_asked_for <= {kind.value for kind in fw.ShapeType}  # the loader finds these by their type


def test_types_of_urdf_joints_loops_and_couplings_are_on_the_page() -> None:
    text = page("urdf")
    tables = [{s for cells in rows(text, "type", second) for s in spans(cells[0])} for second in ("`q`", "leaves free")]
    assert tables == [{*JOINT_TYPES}, {*LOOP_TYPES}]
    assert {*COUPLING_TYPES} <= {*spans(text)}


@pytest.mark.parametrize("tag", sorted(tags(ROBOT) - opaque(ROBOT)))
def test_urdf_attributes_beyond_the_table_are_reported(tag: str, tmp_path: Path) -> None:
    """Check that the loader reports every attribute outside the table, at any element."""
    path = tmp_path / "robot.urdf"
    path.write_text(EVERYTHING)
    assert "unknown" not in " ".join(dict(fw.read(path).unused))
    assert f"<{tag} " in EVERYTHING
    path.write_text(EVERYTHING.replace(f"<{tag} ", f'<{tag} surely_not="1" '))
    assert f"{tag}@surely_not" in dict(fw.read(path).unused)["unknown attributes"]


INERTIAL = (
    '<inertial ><origin xyz="0 0 0" rpy="0 0 0"/><mass value="1"/>'
    '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
)
DRAWN = '<origin xyz="0 0 0" rpy="0 0 0"/><geometry >{}</geometry>'
EVERYTHING = f"""<robot name="r" version="1.0">
  <material name="m"><color rgba="1 1 1 1"/><texture filename="t.png"/></material>
  <link name="base">
    <visual name="a">{DRAWN.format('<box size="1 1 1"/>')}<material name="m"/></visual>
    <collision name="b">{DRAWN.format('<sphere radius="1"/>')}</collision>
    <collision name="c">{DRAWN.format('<cylinder radius="1" length="1"/>')}</collision>
    <collision name="d">{DRAWN.format('<capsule radius="1" length="1"/>')}</collision>
    <collision name="e">{DRAWN.format('<mesh filename="m.stl" scale="1 1 1"/>')}</collision>
  </link>
  <link name="x">{INERTIAL}</link><link name="y">{INERTIAL}</link>
  <link name="z">{INERTIAL}</link><link name="w">{INERTIAL}</link>
  <joint name="jx" type="revolute" independent="true"><parent link="base"/><child link="x"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="1" velocity="1e30"/>
    <dynamics damping="1" friction="1" armature="1" stiffness="1" rest="0"/></joint>
  <joint name="jy" type="continuous"><parent link="base"/><child link="y"/></joint>
  <joint name="jz" type="continuous"><parent link="base"/><child link="z"/>
    <mimic joint="jx" multiplier="1" offset="0"/></joint>
  <joint name="jw" type="spherical"><parent link="base"/><child link="w"/></joint>
  <loop name="l" type="universal"><predecessor link="x"><origin xyz="0 0 0"/></predecessor>
    <successor link="w"><origin xyz="0 0 0"/></successor><axis xyz="0 0 1"/><axis2 xyz="1 0 0"/></loop>
  <coupling name="f" joint="jy" offset="0"><term joint="jx" coefficients="1"/></coupling>
  <coupling name="g" type="gear"><predecessor link="x"/><successor link="y"/><ratio value="1"/></coupling>
  <actuator name="m" joint="jx" gear="1" gain="1" bias="0 0 0" control="-1 1" force="-1 1"/>
  <simulation timestep="0.1" integrator="rk4"/>
</robot>"""


# --- SDF


def known_in_sdf(known: Known = SDF, tag: str = "sdf", seen: frozenset[str] = frozenset()) -> set[tuple[str, str]]:
    """Return pairs of parent and child element, and of element and attribute (with @); models may contain models."""
    found = {(tag, f"@{key}") for key in known.attributes} | {(tag, inner) for inner in known.inside}
    inside = {name: inner for name, inner in known.inside.items() if name not in seen}
    return found.union(*(known_in_sdf(inner, name, seen | {"model"}) for name, inner in inside.items()))


def test_the_page_of_sdf_has_what_the_loader_knows_and_nothing_else() -> None:
    known, said = known_in_sdf(), {span.strip("<>") for span in spans(page("sdf"))}
    table = {(e, v) for cells in rows(page("sdf"), "element", "values in it") for e in spans(cells[0]) for v in spans(cells[1])}
    assert table - known == set()
    assert {name.lstrip("@") for pair in known for name in pair} - said == set()


def test_types_of_sdf_joints_are_on_the_page() -> None:
    assert {s for cells in rows(page("sdf"), "`type`") for s in spans(cells[0])} == {*KINDS}


# --- SRDF


def test_the_table_of_srdf_is_what_the_loader_looks_up() -> None:
    table = listed(page("srdf"), "element", "attribute")
    asked = looked_up(sources("srdf.py")) - {"SRDF elements", ""} | srdf.USED
    named = {name for pair in table for name in pair}
    assert named == {name for name in asked if name.isidentifier() and not name.startswith("conf")} | {"link1", "link2"}
    assert {element for element, _ in table} >= srdf.USED


# --- MJCF


def attributes(element: str, known: dict[str, set[str]]) -> set[str]:
    """Return the attributes of all elements whose path has this end."""
    return set().union(*(keys for path, keys in known.items() if f"/{path}".endswith(f"/{element}")))


def mjcf_table() -> set[tuple[str, str]]:
    return listed(page("mjcf"), "element", "attribute")


def current() -> bool:
    assert TABLED in page("mjcf")
    return mujoco.__version__.startswith(TABLED.split()[1])


def test_elements_and_attributes_of_mjcf_are_those_of_mujoco() -> None:
    if not current():
        pytest.skip(f"the page is of {TABLED}")
    known = schema()
    unknown = {(e, a) for e, a in mjcf_table() if a and a not in attributes(e, known)}
    assert unknown == set()
    assert {e for e, _ in mjcf_table() if not any(f"/{path}".endswith(f"/{e}") for path in known)} == set()


NOT_LOOKED_INTO = (
    "visual",
    "statistic",
    "light",
    "sensor",
    "texture",
    "skin",
    "material",
    "custom",
    "extension",
    "flexcomp",
    "flex",
    "deformable",
    "plugin",
    "spatial",
    "attach",
    "model",
    "config",
    "tuple",
    "default",
    "worldbody",
)
LISTED_WHOLE = {"intvelocity", "orientation", "pid", "damper", "cylinder", "muscle", "adhesion", "dcmotor"}


def test_no_attribute_of_what_mujoco_reads_is_missing() -> None:
    if not current():
        pytest.skip(f"the page is of {TABLED}")
    table = mjcf_table()
    missing = {
        (path, key)
        for path, keys in schema().items()
        for key in keys - {"name", "class"}
        if not {*NOT_LOOKED_INTO, *LISTED_WHOLE} & {*path.split("/")}
        if not any(f"/{path}".endswith(f"/{e}") and a == key for e, a in table)
    }
    assert missing == set()


def flags_read() -> set[str]:
    """Return the flags that the loader asks `disabled` for."""
    found: set[str] = set()
    for node in (n for module in sources("mjcf/**/*.py") for n in ast.walk(module)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in ("disabled", "_off"):
            found |= {s for a in node.args for s in plain(a)}
    return {f.lower() for f in found} | {"constraint"}


def test_flags_that_are_read_are_on_the_page() -> None:
    documented = {a for cells in rows(page("mjcf"), "element", "attribute", "what it is here") for a in spans(cells[1])
                  if "flag" in spans(cells[0])}  # fmt: skip
    older = {"passive"}  # before MuJoCo 3.4, one flag for springs and dampers
    assert flags_read() - older == documented - {"override"}
    assert older <= {*spans(page("mjcf"))}


# --- reports


def kinds_in(*patterns: str) -> set[str]:
    """Return the kinds of listed content: the first items of pairs that functions yield, and keys of counts."""
    found: set[str] = set()
    for module in sources(*patterns):
        for function in (n for n in ast.walk(module) if isinstance(n, ast.FunctionDef)):
            if re.search("unused|counts|missing_meshes", function.name):
                for pair in (n for n in ast.walk(function) if isinstance(n, ast.Tuple) and len(n.elts) == 2):
                    found |= plain(pair.elts[0])
    return {kind for kind in found if re.fullmatch(r"[a-z][^/]* .*|[a-z]+s", kind)}


@pytest.mark.parametrize(
    ("name", "patterns"),
    [(name, (f"{name}/*.py", "geometry.py", "robot_numbers.py")) for name in ("urdf", "sdf")]
    + [("mjcf", ("mjcf/**/*.py", "geometry.py"))],
)
def test_every_kind_that_a_loader_lists_is_on_its_page(name: str, patterns: tuple[str, ...]) -> None:
    kinds = kinds_in(*patterns)
    assert len(kinds) > 8
    assert kinds - {*spans(page(name))} == set()


def test_kinds_on_the_page_of_mjcf_are_those_of_the_package_and_those_that_change_motion_are_marked() -> None:
    words = set().union(
        *map(strings, sources("*.py", "mjcf/**/*.py", "../contact_rules.py", "../../robot/left_out_at_joints.py"))
    )
    table = [(spans(cells[0]), cells[1]) for cells in rows(page("mjcf"), "kind")]
    assert {kind for kinds, _ in table for kind in kinds} - words == set()
    marked = {kind for kinds, mark in table if mark.startswith("yes") for kind in kinds}
    assert marked | kinds_of_usd_that_change_motion() == {*CHANGING_MOTION} and marked <= {*CHANGING_MOTION}


# --- USD


def kinds_of_usd_that_change_motion() -> set[str]:
    return {kind for cells in rows(page("usd"), "kind", "changes motion") if cells[1] == "yes" for kind in spans(cells[0])}


def test_the_page_of_usd_has_the_kinds_that_the_loader_notes_and_no_other() -> None:
    modules = sources("usd/*.py")
    constants = {
        n.targets[0].id: n.value.value
        for module in modules
        for n in module.body
        if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name) and isinstance(n.value, ast.Constant)
    }
    calls = [n for module in modules for n in ast.walk(module) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    noted = {
        str(constants[name.id] if isinstance(name, ast.Name) else name.value)
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("note", "note_prims")
        for first in call.args[:1]
        for name in ([first.body, first.orelse] if isinstance(first, ast.IfExp) else [first])
        if isinstance(name, ast.Name | ast.Constant) and getattr(name, "id", "") in {"", *constants}
    }
    others = {constants["ATTRIBUTES"], CONES, "meshes not found", "inertias that no rigid body can have"}
    assert len(noted) > 15
    assert {kind for cells in rows(page("usd"), "kind", "changes motion") for kind in spans(cells[0])} == noted | others


def test_the_page_of_usd_has_the_attributes_that_the_loader_reads() -> None:
    """Check complete names only, because names for axes and ends of joints are composed."""
    said = {*spans(page("usd"))}
    asked = {text for module in sources("usd/*.py") for text in strings(module)}
    whole = {text for text in asked if re.fullmatch(r"(physics|newton|physxJoint|physxRigidBody|mjc):[\w:]+", text)}
    whole -= {"newton:xpbd:", "newton:kamino:", "newton:vbd:", "newton:mpm:", "physics:filteredPairs"}
    assert len(whole) > 30 and {name for name in whole if not any(s.startswith(name) for s in said)} == set()


# --- angles


@pytest.mark.parametrize("error", [0.0, 4.9e-12, 9e-12, 1.1e-11, 1e-6])
def test_angles_snap_as_the_page_says(error: float, tmp_path: Path) -> None:
    assert "within 1e-11 of a multiple of π/2" in page("urdf")
    path = tmp_path / "robot.urdf"
    for turns in (1, 2, 3, -1):
        angle = turns * np.pi / 2 + error
        path.write_text(
            f'<robot><link name="a"/><link name="b">{INERTIAL}</link><joint name="j" type="fixed"><parent link="a"/>'
            f'<child link="b"/><origin rpy="{angle!r} 0 0"/></joint></robot>'.replace("np.float64(", "").replace(")", "")
        )
        R: Any = fw.read(path).joints[0].placement.R
        assert ({abs(x) for row in R for x in row} == {0.0, 1.0}) == (error < 1e-11)
