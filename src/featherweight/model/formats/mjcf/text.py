"""Checks of the text of MJCF files, before MuJoCo reads it: contents that MuJoCo accepts without meaning, or never finishes.

MuJoCo accepts numbers that are not finite and writes a log file; it creates any number of copies and cells; and it waits at
pipes. Its time for copies grows with the square of their number, to two seconds for a thousand.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

from ...types import LARGEST, ModelError
from ..robot_source import RobotSource
from ..xml import parse_xml, require_regular, shortened

PLACING = {"pos", "quat", "euler", "axisangle", "xyaxes", "zaxis", "axis", "range", "ref", "fromto", "size", "gravity"}
EQUATING = {"anchor", "relpose", "polycoef", "torquescale", "coef"}
WEIGHING = {"mass", "diaginertia", "fullinertia", "density", "armature", "gear"}
PULLING = {"damping", "frictionloss", "stiffness", "springref", "springdamper", "actuatorfrcrange", "ctrlrange", "forcerange"}
PULLING |= {"kp", "kv", "gainprm", "biasprm", "friction"}
SHOWING = {"rgba", "scale", "vertex", "refpos", "refquat", "fovy", "sensorsize", "focal", "principal", "resolution"}
READ = PLACING | EQUATING | WEIGHING | PULLING | SHOWING

COPIES = 1_000  # most copies by <replicate>, and elements of <composite>, in the whole file
CELLS = 10_000_000  # most cells of a height field
SIZES = 10_000  # most elements of each kind in <size>
STACK = 10_000_000  # most numbers of working memory in `nstack`: 80 MB
TIMES = {"replicate", "composite"}  # elements with a `count`


class _Place(NamedTuple):
    """An element, its file, the named element around it, and the number of copies of everything around it."""

    file: str
    element: Element
    owner: str
    copies: float

    @property
    def where(self) -> str:
        return f"{self.file}: <{self.element.tag}>{self.owner}"


def check_text(source: RobotSource) -> None:
    """Raise ModelError, with file and element, for a file that must not be passed to MuJoCo."""
    root = source.root
    if root.tag != "mujoco":
        problem = f"the root element is <{root.tag}>, not <mujoco>, so that this is not an MJCF file"
        raise ModelError(f"{source.name}: {problem}; give the file the suffix of its format (.urdf), or give its text")
    copies = 0.0
    for place in _places(source, root):
        _check_numbers(place)
        _check_sizes(place)
        if place.element.tag in TIMES:
            copies += place.copies * _count(place)
            if copies > COPIES:
                problem = f"the file asks for {copies:.4g} copies, of which MuJoCo makes {COPIES} in some seconds"
                raise ModelError(f"{place.where}: {problem}; write fewer, or remove it")


def _places(source: RobotSource, root: Element) -> Iterator[_Place]:
    """Yield all elements of a file and of the files that it includes or attaches, each file once."""
    pending, seen = [_Place(source.name, root, "", 1.0)], {os.path.realpath(source.name)}
    while pending:
        place = pending.pop()
        element = place.element
        owner = f" of {element.tag} '{element.get('name')}'" if element.get("name") else place.owner
        place = place._replace(owner=owner)
        yield place
        inside = place.copies * _count(place) if element.tag in TIMES else place.copies
        pending.extend(_Place(place.file, child, owner, inside) for child in element)
        if element.tag in ("include", "model") and element.get("file"):
            other = _included(element, source, place)
            require_regular(other, place.where)
            if os.path.isfile(other) and os.path.realpath(other) not in seen and not other.endswith(".urdf"):
                seen.add(os.path.realpath(other))
                pending.append(_Place(other, parse_xml(other), owner, inside))


def _included(element: Element, source: RobotSource, place: _Place) -> str:
    file = element.get("file", "")
    if source.folder is None and not os.path.isabs(file):
        raise ModelError(f"{place.where}: '{shortened(file)}' is relative, but the text has no folder; pass folder=")
    return os.fspath((source.folder or Path()) / file)


def _check_numbers(place: _Place) -> None:
    for key in READ & place.element.attrib.keys():
        text = place.element.attrib[key]
        if not all(abs(x) <= LARGEST for x in _numbers(text)):
            raise ModelError(f"{place.where}: '{key}' is '{shortened(text)}'; give finite numbers within ±{LARGEST:g}")


def _check_sizes(place: _Place) -> None:
    element = place.element
    if element.tag in ("flexcomp", "flex"):
        name = element.get("name", "")
        raise ModelError(f"{place.file}: {element.tag} '{name}': flexible bodies are not supported; remove it")
    if element.tag == "hfield" and (cells := _product(f"{element.get('nrow', '')} {element.get('ncol', '')}")) > CELLS:
        raise ModelError(f"{place.where}: {cells:.4g} cells are more than {CELLS:.4g}; make it coarser, or remove it")
    if element.tag == "size":
        for key, text in element.attrib.items():
            most = STACK if key == "nstack" else SIZES
            if key != "memory" and any(x > most for x in _numbers(text)):
                raise ModelError(f"{place.where}: '{key}' is '{text}', more than {most}; remove it")


def _count(place: _Place) -> float:
    return max(1.0, _product(place.element.get("count", "")))


def _product(text: str) -> float:
    product = 1.0
    for x in _numbers(text):
        product *= x
    return product


def _numbers(text: str) -> Iterator[float]:
    """Yield the words that are numbers. MuJoCo refuses other words itself, with a better message that gives the line."""
    for word in text.split():
        try:
            yield float(word)
        except ValueError:
            continue
