"""Tests of mesh files: the files that they name are regular files, and errors of readers name the file."""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh

from featherweight.model.triangles import MeshError, shape_meshes
from featherweight.model.types import Shape, ShapeType

BOX = trimesh.creation.box()
MATERIAL = "newmtl paint\nKd 0.2 0.4 0.6\nmap_Kd image.png\n"
OBJ = "mtllib paint.mtl\nusemtl paint\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def meshes(path: Path) -> list[tuple[trimesh.Trimesh, tuple[int, int, int] | None]]:
    return shape_meshes(Shape("m", "b", ShapeType.MESH, (1.0, 1.0, 1.0), path=str(path)))


def gltf(folder: Path) -> Path:
    for name, content in trimesh.exchange.gltf.export_gltf(BOX.scene()).items():
        (folder / name).write_bytes(content)
    return folder / "model.gltf"


def test_files_that_a_mesh_names_are_read(tmp_path: Path) -> None:
    (tmp_path / "box.obj").write_text(OBJ)
    (tmp_path / "paint.mtl").write_text(MATERIAL)
    ((mesh, color),) = meshes(tmp_path / "box.obj")
    assert len(mesh.faces) == 4 and color == (51, 102, 153)
    ((mesh, _),) = meshes(gltf(tmp_path))
    assert mesh.volume == pytest.approx(1.0)


def test_an_obj_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "box.obj").write_text(OBJ.removeprefix("mtllib paint.mtl\nusemtl paint\n"), encoding="utf-8-sig")
    ((mesh, _),) = meshes(tmp_path / "box.obj")
    assert mesh.vertices.shape == (4, 3) and len(mesh.faces) == 4


@pytest.mark.skipif(os.name == "nt", reason="this system has no devices in folders")
@pytest.mark.parametrize("name", ["paint.mtl", "image.png", "gltf_buffer_0.bin"])
def test_devices_that_a_mesh_names_are_not_opened(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a material and an image, which are left out, and a buffer, without which there is no mesh."""
    (tmp_path / "box.obj").write_text(OBJ)
    (tmp_path / "paint.mtl").write_text(MATERIAL)
    path = gltf(tmp_path) if name.endswith(".bin") else tmp_path / "box.obj"
    (tmp_path / name).unlink(missing_ok=True)
    os.symlink(os.devnull, tmp_path / name)
    opened: list[str] = []
    get = trimesh.resolvers.FilePathResolver.get

    def noted(self: Any, name: str) -> Any:
        opened.append(name)
        return get(self, name)

    monkeypatch.setattr(trimesh.resolvers.FilePathResolver, "get", noted)
    if name.endswith(".bin"):
        with pytest.raises(MeshError, match=r"model\.gltf: .*gltf_buffer_0\.bin: a pipe, socket or device"):
            meshes(path)
    else:
        meshes(path)
    assert name not in opened


def test_any_error_of_a_reader_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "box.obj").write_text(OBJ.replace("f 1 3 2", f"f 1 3 {'9' * 40}"))
    document = json.loads(gltf(tmp_path).read_text())
    document["buffers"] = {"byteLength": "x"}
    (tmp_path / "model.gltf").write_text(json.dumps(document))
    for name in ("box.obj", "model.gltf"):
        with pytest.raises(MeshError, match=name.replace(".", r"\.")):
            meshes(tmp_path / name)


@pytest.mark.filterwarnings("error")
def test_reading_changes_no_filters_of_warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a mesh whose numbers overflow, about which NumPy warns by default; its results are infinite."""
    BOX.export(tmp_path / "box.stl")
    shape = Shape("m", "b", ShapeType.MESH, (1e308, 1e308, 1e308), path=str(tmp_path / "box.stl"))
    with monkeypatch.context() as changed:
        changed.setattr(warnings, "catch_warnings", None)
        shape_meshes(shape)
        ((mesh, _),) = shape_meshes(replace(shape, size=(1.0, 2.0, 3.0)))
    np.testing.assert_allclose(mesh.extents, (1.0, 2.0, 3.0))
