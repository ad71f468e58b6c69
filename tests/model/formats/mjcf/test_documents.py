"""Tests of the texts that MuJoCo receives: files are found where MuJoCo finds them, and all of them are checked."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import mujoco
import numpy as np
import pytest
import trimesh

import featherweight as fw
from featherweight.model.formats.mjcf.read.documents import Documents
from featherweight.model.formats.registry import load_description
from featherweight.model.formats.robot_source import open_source
from featherweight.model.types import ModelError

BODY = '<body name="{}"><joint/><geom size="0.1"/></body>'
DEVICE = os.devnull
SELF_ATTACHING = tuple(map(int, mujoco.__version__.split(".")[:1])) >= (4,)  # <attach> without a model

needs_devices = pytest.mark.skipif(os.name == "nt", reason="this system has no devices in folders")


def world(name: str, rest: str = "") -> str:
    return f"<mujoco><worldbody>{BODY.format(name)}</worldbody>{rest}</mujoco>"


def attaching(file: str, name: str = "x") -> str:
    """Return a model with a body, to which the body "x" of another file is attached."""
    inside = f'<body name="{name}"><joint/><geom size="0.1"/><attach model="m" body="x" prefix="a_"/></body>'
    return f'<mujoco><asset><model name="m" file="{file}"/></asset><worldbody>{inside}</worldbody></mujoco>'


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files; returns the path of the first."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / next(iter(files))


def bodies(path: Path) -> list[str]:
    return [b.name for b in load_description(path).bodies]


def refused(path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        load_description(path)
    return str(caught.value)


NESTED = '<mujoco><include file="sub/a.xml"/></mujoco>'


@pytest.mark.parametrize("beside_main", [True, False])
def test_included_files_are_those_that_mujoco_includes(beside_main: bool, tmp_path: Path) -> None:
    """Check that a file beside the main file comes before one beside the file that includes it."""
    files = {"main.xml": NESTED, "sub/a.xml": world("a", '<include file="b.xml"/>'), "sub/b.xml": world("below")}
    path = write(tmp_path, files | ({"b.xml": world("beside")} if beside_main else {}))
    model = mujoco.MjModel.from_xml_path(str(path))
    assert bodies(path) == [model.body(i).name for i in range(1, model.nbody)] == ["a", "beside" if beside_main else "below"]


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ('<geom size="0.1" mass="nan"/>', r"b\.xml: <geom>: 'mass' is 'nan'"),
        ('<replicate count="30000"><site/></replicate>', r"b\.xml: <replicate>: the file asks for 3e\+04 copies"),
        (f'<include file="{DEVICE}"/>', rf"b\.xml: <include>: {DEVICE}: a pipe, socket or device"),
        ('<Include file="c.xml"/>', r"b\.xml: <Include>: MuJoCo finds no file 'c\.xml' beside"),
    ],
)
@needs_devices
def test_files_included_by_included_files_are_checked(inside: str, words: str, tmp_path: Path) -> None:
    part = f"<mujoco><worldbody>{inside}</worldbody></mujoco>"
    path = write(tmp_path, {"main.xml": NESTED, "sub/a.xml": '<mujoco><include file="b.xml"/></mujoco>', "sub/b.xml": part})
    assert re.search(words.replace("<Include>", "<include>"), refused(path))


CYCLES = {
    "a file that includes itself": {"main.xml": '<mujoco><include file="main.xml"/></mujoco>'},
    "files that include each other": {"main.xml": NESTED, "sub/a.xml": '<mujoco><include file="../main.xml"/></mujoco>'},
    "a model that attaches itself": {"main.xml": attaching("main.xml")},
    "models that attach each other": {"main.xml": attaching("b.xml"), "b.xml": attaching("main.xml", "x")},
    "a model in its own part": {"main.xml": attaching("b.xml"), "b.xml": '<mujoco><include file="main.xml"/></mujoco>'},
}


@pytest.mark.parametrize("files", CYCLES.values(), ids=CYCLES)
def test_files_that_contain_themselves_are_refused_with_the_cycle(files: dict[str, str], tmp_path: Path) -> None:
    assert re.search(r"the file contains itself without end: main\.xml →.* main\.xml; remove", refused(write(tmp_path, files)))


@needs_devices
def test_cycles_through_links_end(tmp_path: Path) -> None:
    """Check that a link to the own folder, which gives the same file ever new names, makes no difference."""
    os.symlink(".", tmp_path / "sub")
    text = refused(write(tmp_path, {"main.xml": attaching("sub/a.xml"), "a.xml": attaching("sub/a.xml")}))
    assert "the file contains itself without end: a.xml → a.xml" in text


def test_a_file_is_included_once(tmp_path: Path) -> None:
    """Check that MuJoCo refuses the file, too."""
    path = write(
        tmp_path, {"main.xml": '<mujoco><include file="a.xml"/><include file="./a.xml"/></mujoco>', "a.xml": world("x")}
    )
    assert "a.xml' is included a second time" in refused(path)
    with pytest.raises(ValueError, match="already included"):
        mujoco.MjModel.from_xml_path(str(path))


def test_attached_models_are_checked_with_their_own_includes(tmp_path: Path) -> None:
    files = {
        "main.xml": attaching("sub/a.xml"),
        "sub/a.xml": '<mujoco><include file="b.xml"/></mujoco>',
        "sub/b.xml": world("x"),
    }
    path = write(tmp_path, files)
    assert bodies(path) == ["x", "a_x"]
    (tmp_path / "sub/b.xml").write_text(world("x").replace("0.1", "nan"))
    assert re.search(r"b\.xml: <geom> of body 'x': 'size' is 'nan'", refused(path))


def test_attached_urdf_files_are_checked_and_their_meshes_found(tmp_path: Path) -> None:
    urdf = (
        '<robot name="u"><link name="x"><inertial><mass value="{}"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        '</inertial><collision><geometry><mesh filename="m.stl"/></geometry></collision></link></robot>'
    )
    path = write(tmp_path, {"main.xml": attaching("sub/a.urdf"), "sub/a.urdf": urdf.format(1)})
    trimesh.creation.box().export(tmp_path / "sub/m.stl")
    assert bodies(path) == ["x", "a_x"]
    (tmp_path / "sub/a.urdf").write_text(urdf.format("nan"))
    assert re.search(r"a\.urdf: <mass> of link 'x': 'value' is 'nan'", refused(path))


WEIGHED = (
    '<mujoco>{}<asset><mesh name="h" file="m.stl"/></asset><worldbody><body name="x"><joint/>{}</body></worldbody></mujoco>'
)
HULL = '<geom type="mesh" mesh="h"/>'


@pytest.mark.parametrize("compiler", ["", '<compiler meshdir="meshes"/>', '<compiler meshdir="meshes" strippath="true"/>'])
@pytest.mark.parametrize("how", ["attached", "included"])
def test_meshes_of_other_files_are_those_of_mujoco(how: str, compiler: str, tmp_path: Path) -> None:
    """Check the mass that comes from a mesh, and the shape's file, against MuJoCo."""
    main = attaching("sub/a.xml", "m") if how == "attached" else NESTED
    path = write(tmp_path, {"main.xml": main, "sub/a.xml": WEIGHED.format(compiler, HULL)})
    folder = "sub/meshes" if how == "attached" else "meshes" if "strippath" in compiler else "sub"
    mesh = tmp_path / (folder if compiler else "sub") / "m.stl"
    mesh.parent.mkdir(exist_ok=True)
    trimesh.creation.box((1, 2, 3)).export(mesh)
    description, model = load_description(path), mujoco.MjModel.from_xml_path(str(path))
    assert [b.inertia.mass for b in description.bodies] == list(model.body_mass[1:])
    assert [s.path for s in description.shapes if s.path] == [str(mesh)]


@needs_devices
def test_a_device_in_place_of_the_mesh_of_an_attached_model_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, {"main.xml": attaching("sub/a.xml", "m"), "sub/a.xml": WEIGHED.format("", HULL)})
    os.symlink(DEVICE, tmp_path / "sub/m.stl")
    assert re.search(r"mesh 'a_h': .*/sub/m\.stl: a pipe, socket or device", refused(path))


def test_text_that_parsers_read_differently_is_read_once(tmp_path: Path) -> None:
    """Check a comment in a document type, at which MuJoCo's parser begins to read."""
    hidden = f"<!DOCTYPE mujoco [<!-- >{world('hidden')} -->]>"
    path = write(tmp_path, {"main.xml": hidden + world("seen")})
    assert bodies(path) == ["seen"]


def test_errors_of_mujoco_name_the_line_of_the_file(tmp_path: Path) -> None:
    bad = '<mujoco>\n<!-- two\nlines -->\n<worldbody>\n<body><joint/>\n<geom size="zero"/></body></worldbody></mujoco>'
    path = write(tmp_path, {"main.xml": bad})
    assert "'geom', line 6; correct" in refused(path)
    path = write(tmp_path, {"main.xml": '<mujoco>\n\n<include file="a.xml"/></mujoco>', "a.xml": bad})
    assert f"'geom', line 6 of {tmp_path / 'a.xml'}; correct" in refused(path)
    path = write(tmp_path, {"main.xml": "\n\n" + attaching("a.xml"), "a.xml": bad})
    assert f"'geom', line 6 of {tmp_path / 'a.xml'} Element 'model', line 3; correct" in refused(path)


def test_texts_keep_all_numbers_and_escapes(tmp_path: Path) -> None:
    name = "&lt;a &amp; &quot;b&quot;&#10;ü"
    path = write(tmp_path, {"main.xml": world(name).replace("0.1", "0.1000000000000000055511151231257827")})
    documents = Documents(open_source(str(path)))
    assert '0.1000000000000000055511151231257827"' in documents.texts[documents.main].decode()
    assert bodies(path) == [mujoco.MjModel.from_xml_path(str(path)).body(1).name]


def test_names_of_other_namespaces_are_comments_and_their_elements_are_refused(tmp_path: Path) -> None:
    schema = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="mjcf.xsd"'
    assert bodies(write(tmp_path, {"main.xml": world("x").replace("<mujoco>", f"<mujoco {schema}>")})) == ["x"]
    assert "<xsi:b>: MJCF has no namespaces" in refused(
        write(tmp_path, {"main.xml": '<mujoco xmlns:a="xsi"><a:b/></mujoco>'}).rename(tmp_path / "c.xml")
    )


# --- copies


def test_models_that_attach_copies_of_copies_are_refused(tmp_path: Path) -> None:
    """Check 2²⁵ copies, which MuJoCo would make."""
    files = {f"{k}.xml": attaching(f"{k + 1}.xml").replace("</asset>", f'<model name="n" file="{k + 1}.xml"/></asset>').replace(
        "</body>", '<attach model="n" body="x" prefix="b_"/></body>') for k in range(25)}  # fmt: skip
    path = write(tmp_path, files | {"25.xml": world("x")})
    assert re.search(r"<attach> of body 'x': the file asks for \d+ copies", refused(path))


@pytest.mark.parametrize("name", ["m", "MuJoCo Model"])
def test_attached_copies_count_with_the_copies_in_them(name: str, tmp_path: Path) -> None:
    """Check also a model that nothing names, which has MuJoCo's default name."""
    path = write(tmp_path, {
        "main.xml": attaching("a.xml").replace('model="m"', f'model="{name}"').replace('name="m" file', 'name="n" file'),
        "a.xml": '<mujoco><worldbody><body name="x"><replicate count="600"><site/></replicate></body></worldbody></mujoco>',
    })  # fmt: skip
    assert "main.xml: <attach> of body 'x': the file asks for 1202 copies" in refused(path)


def test_a_chain_of_models_has_a_bound(tmp_path: Path) -> None:
    path = write(tmp_path, {f"{k}.xml": attaching(f"{k + 1}.xml") for k in range(60)} | {"60.xml": world("x")})
    assert "more than 50 models attach one another" in refused(path)


@pytest.mark.parametrize(
    ("bodies", "copies"),
    [
        ("".join(f'<body name="b{k}"><attach body="b{k - 1}" prefix="p{k}"/><attach body="b{k - 1}" prefix="q{k}"/></body>'
                 for k in range(1, 30)), 1004),
        ('<frame name="f"><replicate count="600"><site/></replicate></frame><attach frame="f" prefix="q"/>', 1201),
        ("".join(f'<attach body="world" prefix="p{k}"/>' for k in range(30)), 1023),
    ],
)  # fmt: skip
def test_copies_within_a_file_count_with_what_they_copy(bodies: str, copies: int, tmp_path: Path) -> None:
    text = f"<mujoco><worldbody>{BODY.format('b0')}{bodies}</worldbody></mujoco>"
    assert f"the file asks for {copies} copies" in refused(write(tmp_path, {"main.xml": text}))


@pytest.mark.skipif(not SELF_ATTACHING, reason="this MuJoCo attaches no parts of the same file")
def test_some_copies_within_a_file_are_made(tmp_path: Path) -> None:
    text = world("a").replace("</worldbody>", '<body name="b"><attach body="a" prefix="p_"/></body></worldbody>')
    assert np.size(bodies(write(tmp_path, {"main.xml": text}))) == 3


def test_text_without_a_folder_includes_nothing_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.xml": world("x")})
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"<include>: 'a\.xml' is relative, but the text has no folder; pass folder="):
        fw.read('<mujoco><include file="a.xml"/></mujoco>')
    assert fw.read('<mujoco><include file="a.xml"/></mujoco>', folder=tmp_path).bodies[0].name == "x"
