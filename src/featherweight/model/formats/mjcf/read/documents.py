"""The texts that MuJoCo reads: those of an MJCF file and of the models that it attaches, with their includes in place.

MuJoCo opens no file: it receives the texts that are checked here, with the absolute paths of meshes and height fields. A file
that another one includes or attaches is searched as MuJoCo does: beside the main file of the model, then beside the file that
names it. Each element is written on a line of its own, so that the line in an error of MuJoCo leads back to file and line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement
from xml.sax.saxutils import quoteattr

from ....files import MissingFile, require_regular
from ....types import ModelError
from ...geometry import find_mesh
from ...packages import Packages
from ...robot_source import RobotSource
from ...unsupported import file_notes
from ...xml import drop_default_namespace, parse_xml, shortened
from .text import Model, Origin, check_text, leave_out_idle_numbers

NOWHERE = os.path.join(os.sep, "no folder")  # folder of text without a folder
DEEPEST = 50  # most models that attach one another
ASSETS = ("mesh", "hfield")  # elements whose files are read; those of textures and skins are not
FLEXIBLE = ("flexcomp", "flex", "flexvert", "flexstrain", "flexelem")
Chain = tuple[str, ...]  # real paths of the files that include or attach one another, the main file first


class Documents:
    """The texts of a robot by the paths under which MuJoCo finds them; `main` is that of the robot's own file.

    Raises ModelError, which names file and element, for content that MuJoCo must not read (`check_text`), and for files that
    are not found or include or attach themselves.
    """

    def __init__(self, source: RobotSource) -> None:
        self.texts: dict[str, bytes] = {}
        self._source = source
        self._lines: list[Origin] = []  # of all texts, one after another
        self._attached: dict[str, tuple[str, Model]] = {}  # by real path: the path of the text, and its model
        self.main, _ = self._add(source, (os.path.realpath(source.name),))

    def located(self, message: str) -> str:
        """Return a message of MuJoCo with the lines of the files in place of those of the texts."""

        def replaced(match: re.Match[str]) -> str:
            number = int(match[1])
            if not 0 < number <= len(self._lines):
                return match[0]
            file, line = self._lines[number - 1]
            return f"line {line}" if file == self._source.name else f"line {line} of {file}"

        return re.sub(r"\bline (\d{1,9})\b", replaced, message)

    def _add(self, file: RobotSource, chain: Chain) -> tuple[str, Model]:
        """Add the text of a model, after those of the models that it attaches."""
        root, origins = _expanded(file, chain)
        kind = root.tag.lower()
        if len(chain) == 1 and root.tag != "mujoco":
            if kind == "mujocoinclude":
                raise ModelError(f"{file.name}: <{root.tag}>, a part of other MJCF files; load the file that includes this one")
            problem = f"the root element is <{root.tag}>, not <mujoco>, so that this is not an MJCF file"
            raise ModelError(f"{file.name}: {problem}; give the file the suffix of its format (.urdf), or give its text")
        if kind not in ("mujoco", "robot"):
            raise ModelError(f"{file.name}: the root element is <{root.tag[:60]}>; MuJoCo attaches MJCF and URDF files")
        _leave_out_flexes(root, origins)
        models = [self._attach(e, file, origins[e], chain) for e in root.iter("model") if kind == "mujoco"]
        leave_out_idle_numbers(root, origins)
        copies = check_text(root, origins, models)
        (_place_assets if kind == "mujoco" else _place_meshes_of_urdf)(root, file, origins)
        path = os.path.join(file.folder or NOWHERE, f"text {len(self.texts) + 1} of a robot.xml")
        first = len(self._lines)
        self.texts[path] = ("\n" * first + _written(root)).encode()
        self._lines += (origins[element] for element in root.iter())
        return path, Model(root.get("model", ""), copies)

    def _attach(self, element: Element, file: RobotSource, origin: Origin, chain: Chain) -> Model:
        """Add the model that a <model> of an asset names; returns it under the name that <attach> uses."""
        where = f"{origin.file}: <model>"
        path, further = _followed(element, file, origin.file, chain, where)
        if len(chain) > DEEPEST:
            raise ModelError(f"{where}: more than {DEEPEST} models attach one another; write them into fewer files")
        if further[-1] not in self._attached:
            self._attached[further[-1]] = self._add(RobotSource(path, Path(path).parent, file.packages), further)
        text, model = self._attached[further[-1]]
        element.set("file", text)
        element.attrib.pop("content_type", None)
        return model._replace(name=element.get("name") or model.name)


def _expanded(file: RobotSource, chain: Chain) -> tuple[Element, dict[Element, Origin]]:
    """Return the root of a file with the elements of included files in place of <include>, and where all elements are."""
    root, origins = _parsed(file.name, file.content())
    included: set[str] = set()
    pending = [(root, chain)] if root.tag.lower() == "mujoco" else []
    while pending:
        parent, around = pending.pop()
        children: list[Element] = []
        left = [(child, around) for child in reversed(parent)]
        while left:
            child, inside = left.pop()
            if child.tag.lower() != "include":  # MuJoCo includes <Include>, too
                children.append(child)
                pending.append((child, inside))
                continue
            where = f"{origins[child].file}: <include>"
            path, further = _followed(child, file, origins[child].file, inside, where)
            if path in included:
                raise ModelError(f"{where}: '{shortened(path)}' is included a second time; remove one of the two")
            included.add(path)
            content, further_origins = _parsed(path, None)
            origins |= further_origins
            left += ((element, further) for element in reversed(content))
        parent[:] = children
    return root, origins


def _leave_out_flexes(root: Element, origins: dict[Element, Origin]) -> None:
    """Remove flexible bodies, and the equalities of flexes, before MuJoCo creates their parts."""
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag in FLEXIBLE]:
            if child.tag != "flex" or parent.tag != "equality":
                where = f"{origins[child].file}: {child.tag} '{child.get('name', '')}'"
                file_notes().refuse(where, "flexible bodies are not supported", "remove it")
            parent.remove(child)


def _parsed(name: str, text: str | bytes | None) -> tuple[Element, dict[Element, Origin]]:
    lines: dict[Element, int] = {}
    root = parse_xml(name, text, lines)
    drop_default_namespace(root)
    return root, {element: Origin(name, line) for element, line in lines.items()}


def _followed(element: Element, main: RobotSource, inside: str, chain: Chain, where: str) -> tuple[str, Chain]:
    """Return the path of a file that an element in the file `inside` names, and the chain of files up to it."""
    name = element.get("file", "").replace("\\", "/")
    if not name:
        raise ModelError(f"{where}: it names no file; add the attribute 'file'")
    if len(element):
        raise ModelError(f"{where}: it contains elements; move them out of it")
    path = next((p for p in _candidates(name, main, inside) if os.path.exists(p)), None)
    if path is None:
        problem = f"MuJoCo finds no file '{shortened(name)}'"
        if main.folder is None and not os.path.isabs(name):
            problem = f"'{shortened(name)}' is relative, but the text has no folder"
            raise ModelError(f"{where}: {problem}; pass folder=")
        raise ModelError(f"{where}: {problem} beside the robot's file or beside the one that names it; supply it")
    if os.path.isdir(path):
        raise ModelError(f"{where}: '{shortened(name)}' is a folder; name a file in it")
    require_regular(path, where)
    real = os.path.realpath(path)
    if real in chain:
        cycle = " → ".join(map(os.path.basename, (*chain[chain.index(real) :], real)))
        raise ModelError(f"{where}: the file contains itself without end: {shortened(cycle)}; remove this element")
    return path, (*chain, real)


def _candidates(name: str, main: RobotSource, inside: str) -> Iterator[str]:
    if main.folder is not None or os.path.isabs(name):
        yield os.path.abspath(os.path.join(main.folder or NOWHERE, name))
    if inside != main.name:
        yield os.path.abspath(os.path.join(os.path.dirname(inside), name))


# --- files of meshes and height fields


def _place_assets(root: Element, file: RobotSource, origins: dict[Element, Origin]) -> None:
    """Replace the names of meshes and height fields that exist, also pipes, by absolute paths."""
    folder, stripped = _asset_folder(root)
    beside = Path(file.folder or NOWHERE) / folder
    for element in root.iter():
        if element.tag in ASSETS and "file" in element.attrib:
            name, own = element.get("file", "").replace("\\", "/"), os.path.dirname(origins[element].file)
            folders = (beside,) if stripped or origins[element].file == file.name else (beside, Path(own))
            element.set("file", _asset(os.path.basename(name) if stripped else name, folders, file.packages))


def _asset(name: str, folders: Sequence[Path], packages: Packages) -> str:
    """Return the absolute path of a file in one of the folders, or the name itself."""
    for folder in folders:
        path = find_mesh(name, folder, packages)
        if not isinstance(path, MissingFile):
            return path
        if name and os.path.exists(folder / name):
            return os.path.abspath(folder / name)
    return name


def _asset_folder(root: Element) -> tuple[str, bool]:
    """Return the folder of the assets in a model, relative to its file, and whether names of folders are removed.

    Absolute paths must remain whole, so `strippath` is removed from the text.
    """
    folder, stripped = "", ""
    for compiler in root.iter("compiler"):
        folder = compiler.get("meshdir") or compiler.get("assetdir") or folder
        stripped = compiler.attrib.pop("strippath", stripped)
    return folder.replace("\\", "/"), stripped == "true"


def _place_meshes_of_urdf(root: Element, file: RobotSource, origins: dict[Element, Origin]) -> None:
    """Replace the names of mesh files in a URDF file that is attached by absolute paths, which MuJoCo 3.3 would shorten."""
    folder, stripped = _asset_folder(root)
    beside = Path(file.folder or NOWHERE) / folder
    for mesh in root.iter("mesh"):
        name = mesh.get("filename", "").replace("\\", "/")
        mesh.set("filename", _asset(os.path.basename(name) if stripped else name, (beside,), file.packages))
    around = root
    for tag in ("mujoco", "compiler"):
        inside = around.find(tag)
        if inside is None:
            inside = SubElement(around, tag)
            origins[inside] = origins[root]
        around = inside
    around.set("strippath", "false")


# --- text


def _written(root: Element) -> str:
    """Return XML with the start of each element on a line of its own. Attributes of other namespaces are comments in MJCF."""
    lines: list[str] = []
    inside: list[tuple[str, Iterator[Element]]] = [("", iter((root,)))]
    while inside:
        tag, children = inside[-1]
        element = next(children, None)
        if element is None:
            inside.pop()
            if tag:
                lines[-1] += f"</{tag}>"
            continue
        attributes = "".join(f" {key}={quoteattr(text)}" for key, text in element.attrib.items() if "}" not in key)
        lines.append(f"<{element.tag}{attributes}>")
        inside.append((element.tag, iter(element)))
    return "\n".join(lines)
