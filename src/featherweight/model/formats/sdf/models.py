"""The models of an SDF file and of the files that it includes: their links, joints and frames, with absolute names.

Model "arm" has links such as "arm::palm", and "arm" is its own frame. The only model of a file without a world has no prefix.
A merged model's elements belong to the model that includes it.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement

from ....names import listed
from ...types import ModelError
from ..geometry import SCHEME, local_path
from ..packages import package_of
from ..robot_source import RobotSource
from ..unsupported import Unsupported, file_notes, tolerate
from ..xml import attribute, only, parse_xml, required, shortened
from .elements import FLAGS, base_of, flag, raw_pose, text_of
from .frame_graph import GROUND, FrameGraph, PlacedFrame

OLDEST = (1, 2)
AXES_IN_MODEL = (1, 4)  # newest version whose axes are in the frame of the model
MOST_INCLUDES = 1000  # a small file can include millions
DEEPEST = 50  # greatest depth of nested models
OVERRIDING = ("pose", "static")  # elements of <include> that replace those of the model
INCLUDE_KNOWN = {"uri", "name", "namespace", "placement_frame", "plugin", *OVERRIDING}
NESTED, MERGED, ALONE = "{}", "_merged__{}__model__", "__model__"  # names of a model's frame; the last has no prefix
PARTS = {"model": ("link", "joint", "frame"), "world": ("joint", "frame")}
WITHOUT_MODEL = {"light", "actor"}  # elements that an included file may have in place of a model


class Scope(NamedTuple):
    """A scope of names: a model, or the world."""

    prefix: str  # prefix of the names in it
    frame: str  # the frame of the model
    file: RobotSource
    static: bool = False
    self_collide: bool = False
    outermost: str = ""  # the frame of the outermost model

    def absolute(self, name: str) -> str:
        """Return the absolute name of a name in this scope."""
        if name == "world":
            return GROUND
        return self.frame if name == "__model__" else self.prefix + name.removesuffix("::__model__")


class NamedElement(NamedTuple):
    """A link, joint or frame of the file; `frame` is the name of its frame."""

    name: str
    element: Element
    scope: Scope
    where: str
    frame: str


class Models:
    """All links, joints and frames of a file and of the files that it includes."""

    def __init__(self, file: RobotSource, unsupported: Unsupported) -> None:
        self.frames = FrameGraph()
        self.links: list[NamedElement] = []
        self.joints: list[NamedElement] = []
        self.named_frames: list[NamedElement] = []
        self.moving_models: list[str] = []  # models of the world that can move
        self.elements: list[Element] = []  # roots of the elements that were read
        self.self_colliding: set[str] = set()  # links
        self._unsupported = unsupported
        self._including: list[str] = []
        self._included = 0
        root = _sdf_element(file)
        self.elements.append(root)
        self.world = _world(root, file)
        inside, scope = root if self.world is None else self.world, Scope("", GROUND, file)
        models = root.findall("model") if self.world is None else []
        self.name = inside.get("name") or file.stem
        if len(models) == 1:
            self.name = models[0].get("name") or file.stem
            self._model(models[0], scope, file.name, ALONE)
        else:
            self._read(inside, scope, file.name)
        if self.world is not None and len(self.moving_models) == 1:
            self.name = self.moving_models[0]
        self._place_joints()
        self.frames.check()
        if not self.links:
            without, remedy = listed(self._unsupported.left_out), "give it a <model> with at least one <link>"
            if without:
                raise ModelError(f"{file.name}: there is no link in it, as it leaves out {without}; find these, or {remedy}")
            raise ModelError(f"{file.name}: there is no link in it; {remedy}")

    def _read(self, element: Element, scope: Scope, where: str) -> list[str]:
        """Read the elements of a world or a model; returns the names of links, and of models after them."""
        links, models = [], []
        for child in element:
            if child.tag in PARTS.get(element.tag, ()):
                links += self._part(child, scope, where)
            elif child.tag == "model":
                models.append(self._model(child, scope, where))
            elif child.tag == "include":
                models += self._include(child, scope, where)
        return links + models

    def _part(self, element: Element, scope: Scope, where: str) -> list[str]:
        tag, name = element.tag, scope.prefix + _own_name(element, where)
        part = NamedElement(name, element, scope, f"{scope.file.name}: {tag} '{name}'", name)
        if tag == "joint":
            self.joints.append(part)
            return []
        if tag == "frame":
            self.named_frames.append(part)
            self._place(part, scope.absolute(element.get("attached_to") or "__model__"))
            return []
        self.links.append(part)
        if flag(element, "self_collide", scope.self_collide, part.where):
            self.self_colliding.add(name)
        self._place(part, None)
        return [name]

    def _place(self, part: NamedElement, attached_to: str | None) -> None:
        """Add the frame of a part, placed in the frame that it is attached to, or in its model.

        A <pose> may name another frame.
        """
        pose = only(part.element, "pose", part.where)
        default = part.scope.frame if attached_to is None else attached_to
        base = part.scope.absolute(base_of(pose)) if base_of(pose) else default
        self.frames.add(part.frame, PlacedFrame(part.where, base, raw_pose(pose, part.where), attached_to))

    def _place_joints(self) -> None:
        """Add the frames of joints. Until SDF 1.6 a joint may have the name of a link; the name then means the link."""
        seen: set[str] = set()
        for number, part in enumerate(self.joints):
            if part.name in seen:
                raise ModelError(f"{part.where}: another joint has this name; rename one of them")
            seen.add(part.name)
            if part.name in self.frames:
                part = self.joints[number] = part._replace(frame=f"{part.name} (joint)")
            child = text_of(required(part.element, "child", part.where))
            self._place(part, part.scope.absolute(child))

    def _model(self, element: Element, scope: Scope, where: str, kind: str = NESTED, file: RobotSource | None = None) -> str:
        """Read a model; returns the name of its frame, of a merged model that of its first link."""
        file = file or scope.file
        own = _own_name(element, where)
        frame = scope.prefix + kind.format(own)
        where = f"{file.name}: model '{scope.prefix}{own}'"
        if frame.count("::") > DEEPEST:
            raise ModelError(f"{where}: models are nested more than {DEEPEST} deep; split them")
        static = scope.static or flag(element, "static", False, where)
        collide = flag(element, "self_collide", scope.self_collide, where)
        prefix = f"{frame}::" if kind == NESTED else scope.prefix
        inner = Scope(prefix, frame, file, static, collide, scope.outermost or frame)
        if scope.frame == GROUND and not static:
            self.moving_models.append(frame)
        parts = self._read(element, inner, where)
        canonical = element.get("canonical_link")
        if not parts and not static:
            raise ModelError(f"{where}: the model has no link; give it at least one <link name=...>")
        attached = inner.absolute(canonical) if canonical else next(iter(parts), GROUND)
        pose, inside = only(element, "pose", where), element.get("placement_frame")
        base = scope.absolute(base_of(pose) or "__model__")
        placed = inner.absolute(inside) if inside else None
        self.frames.add(frame, PlacedFrame(where, base, raw_pose(pose, where), GROUND if static else attached, placed))
        return parts[0] if kind == MERGED and parts else frame

    def _include(self, element: Element, scope: Scope, where: str) -> list[str]:
        uri = text_of(required(element, "uri", where))
        where = f"{where}: <include> of '{shortened(uri)}'"
        if unknown := [child.tag for child in element if child.tag not in INCLUDE_KNOWN]:
            problem = f"<{unknown[0]}> changes what is included, and is not supported"
            self._unsupported.refuse(f"{where}: <{unknown[0]}>", problem, "write the model out")
        left_out = len(self._unsupported.left_out)
        path = find_include(uri, scope.file)
        if path is None and len(self._unsupported.left_out) > left_out:
            return []
        if path is None:
            package = package_of(uri)
            remedy = "there is no such file; correct the name"
            if package is not None:
                remedy = scope.file.packages.not_found(package[0], scope.file.folder)
            elif scope.file.folder is None:
                remedy = "the name is relative, but the text has no folder: pass folder="
            self._unsupported.refuse(f"{where}, which is not found", remedy, "remove it")
            return []
        self._included += 1
        if path in self._including or self._included > MOST_INCLUDES:
            problem = "the file includes itself" if path in self._including else f"more than {MOST_INCLUDES} files are included"
            raise ModelError(f"{where}: {problem}; remove this one")
        self._including.append(path)
        models = self._included_models(RobotSource(path, Path(path).parent, scope.file.packages), element, scope, where)
        self._including.pop()
        return models

    def _included_models(self, file: RobotSource, include: Element, scope: Scope, where: str) -> list[str]:
        if file.root.tag != "sdf":
            self._unsupported.refuse(
                where, f"{file.name} is no SDF file: the root element is <{file.root.tag[:60]}>", "convert it"
            )
            return []
        root = _sdf_element(file)
        self.elements.append(root)
        models = root.findall("model")
        if len(models) != 1:
            if models or not any(child.tag in WITHOUT_MODEL for child in root):
                problem, taken = f"{file.name} has {len(models)} models", "the first is included" if models else "left out"
                tolerate(where, problem, "an included file has one", taken)
            if not models:
                return []
        kind = MERGED if FLAGS.get(include.get("merge", "").lower(), False) else NESTED
        return [self._model(_overridden(models[0], include, where), scope, where, kind, file)]


def _overridden(model: Element, include: Element, where: str) -> Element:
    """Return the model with the name and pose that the <include> gives."""
    changed = copy.copy(model)
    for tag in OVERRIDING:
        given = only(include, tag, where)
        if given is not None:
            for child in changed.findall(tag):
                changed.remove(child)
            changed.append(given)
    if name := text_of(only(include, "name", where)):
        changed.set("name", name)
    if placement := text_of(only(include, "placement_frame", where)):
        if include.find("pose") is None:
            raise ModelError(f"{where}: it has a <placement_frame> and no <pose>; add the pose of that frame")
        changed.set("placement_frame", placement)
    return changed


def _own_name(element: Element, where: str) -> str:
    name = attribute(element, "name", where)
    if name == "world" or (name.startswith("__") and name.endswith("__")):
        problem = "this name is reserved"
        if element.tag != "joint":
            raise ModelError(f"{where}: {element.tag} '{name}': {problem}; rename it")
        tolerate(f"{where}: {element.tag} '{name}'", problem, "rename it", "read as a name")
    return name


def _sdf_element(file: RobotSource) -> Element:
    """Return the <sdf> of a file of a supported version."""
    root = file.root
    if root.tag != "sdf":
        raise ModelError(f"{file.name}: the root element is <{root.tag[:60]}>, not <sdf>; give an SDF file")
    where = f"{file.name}: <sdf>"
    written = root.get("version", "") if "version" in root.attrib else attribute(root, "version", where)
    version = version_of(written)
    if (version[:1] >= (1,) and version > NEWEST) or not written.strip():
        problem = f"version '{shortened(written)}' is not supported, 1.2 to 1.12 are"
        tolerate(where, problem, "write it as SDF 1.12", "read as 1.12")
    elif not OLDEST <= version <= NEWEST:
        raise ModelError(f"{where}: version '{shortened(written)}' is not supported, 1.2 to 1.12 are; write it as SDF 1.12")
    if version <= AXES_IN_MODEL:
        _convert_axes(root)
    return root


def _convert_axes(root: Element) -> None:
    """Convert axes of SDF until 1.4, which are in the frame of the model, to those of later versions, as libsdformat does."""
    for tag in ("axis", "axis2"):
        for axis in root.iterfind(f".//joint/{tag}"):
            if axis.find("use_parent_model_frame") is None:
                SubElement(axis, "use_parent_model_frame").text = "1"


def _world(root: Element, file: RobotSource) -> Element | None:
    """Return the world of a file, the first of several; None for a file of a model without a world."""
    worlds = root.findall("world")
    if root.find("model") is not None and not worlds:
        return None
    if len(worlds) > 1 or root.find("model") is not None:
        names = ", ".join(f"'{e.get('name', '')}'" for e in root if e.tag in ("world", "model"))
        problem = f"several worlds, or worlds and models: {names}"
        tolerate(file.name, problem, "keep one world, or models", "the first world counts")
    return worlds[0] if worlds else None


# --- files that <include> names


CONFIG = "model.config"  # in a model's folder; it lists the files of each version
NEWEST = (1, 12)
VERSION_NUMBER = re.compile("[0-9]{1,9}")


def version_of(written: str) -> tuple[int, ...]:
    """Return the version of the format as comparable numbers; empty for an invalid version."""
    parts = written.strip().split(".")
    return tuple(map(int, parts)) if all(VERSION_NUMBER.fullmatch(part) for part in parts) else ()


def find_include(uri: str, file: RobotSource) -> str | None:
    """Return the path of the file that a URI names, directly or by the model's folder; None if it does not exist.

    Raises ModelError for a URI that cannot refer to a file on this machine, and for a folder without a readable file.
    """
    if package_of(uri) is None and SCHEME.match(uri) and not uri.startswith("file://"):
        problem, remedy = f"'{shortened(uri)}' is to be downloaded", "download it, write model://NAME, and pass package_path="
        file_notes().refuse(f"{file}: <include>", f"{problem}, and nothing is downloaded here", remedy)
        return None
    for path in _places(uri, file):
        found = _file_of(Path(path), file) if os.path.isdir(path) else str(path)
        if os.path.exists(found):
            return os.path.realpath(found)
    return None


def _places(uri: str, file: RobotSource) -> Iterator[Path]:
    package, folder = package_of(uri), None if file.folder is None else Path(os.path.abspath(file.folder))
    if package is not None:
        yield from (found / package[1] for found in file.packages.folders(package[0], folder))
    elif folder is not None:
        yield folder / local_path(uri)
        name, _, rest = uri.partition("/")
        yield from (found / rest for found in file.packages.folders(name, folder))
    elif os.path.isabs(local_path(uri)):
        yield Path(local_path(uri))


def _file_of(folder: Path, file: RobotSource) -> str:
    """Return the newest file in the folder's model.config that can be read, or model.sdf without a model.config."""
    config = os.path.join(folder, CONFIG)
    if not os.path.isfile(config):
        return os.path.join(folder, "model.sdf")
    written = [(version_of(e.get("version", "1.5")), (e.text or "").strip()) for e in parse_xml(config).iter("sdf")]
    known = [entry for entry in written if entry[0] <= NEWEST]
    if not known:
        raise ModelError(f"{config}: it names no <sdf> of a version up to 1.12, which {file} includes; add one")
    return os.path.join(folder, max(known)[1])
