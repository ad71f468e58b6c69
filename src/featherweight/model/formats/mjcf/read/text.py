"""Checks of the text of MJCF files, before MuJoCo reads it: contents that MuJoCo accepts without meaning, or never finishes.

MuJoCo accepts numbers that are not finite and writes a log file; and it creates any number of copies and cells. Its time for
copies grows with the square of their number, to two seconds for a thousand.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from xml.etree.ElementTree import Element

from ....types import LARGEST, ModelError
from ...unsupported import tolerate
from ...xml import shortened

PLACING = {"pos", "quat", "euler", "axisangle", "xyaxes", "zaxis", "axis", "range", "ref", "fromto", "size", "gravity"}
EQUATING = {"anchor", "relpose", "polycoef", "torquescale", "coef"}
WEIGHING = {"mass", "diaginertia", "fullinertia", "density", "armature", "gear"}
PULLING = {"damping", "frictionloss", "stiffness", "springref", "springdamper", "actuatorfrcrange", "ctrlrange", "forcerange"}
PULLING |= {"kp", "kv", "gainprm", "biasprm", "friction"}
SHOWING = {"rgba", "scale", "vertex", "refpos", "refquat", "fovy", "sensorsize", "focal", "principal", "resolution"}
BOUNDS = {"range", "ctrlrange", "forcerange", "actuatorfrcrange"}  # infinite where there is no limit
READ = PLACING | EQUATING | WEIGHING | PULLING | SHOWING
"""Attributes of numbers that must not exceed LARGEST. All others must be finite."""

WORDS = {
    "actuator", "assetdir", "body", "body1", "body2", "camera", "childclass", "class", "content_type", "cranksite", "curve",
    "data", "file", "fileback", "filedown", "filefront", "filename", "fileleft", "fileright", "fileup", "flex", "frame",
    "geom", "geom1", "geom2", "hfield", "instance", "joint", "joint1", "joint2", "jointinparent", "link", "material",
    "mesh", "meshdir", "model", "name", "node", "objname", "plugin", "prefix", "refname", "refsite", "role", "sidesite",
    "site", "site1", "site2", "slidersite", "subtree1", "subtree2", "target", "tendon", "tendon1", "tendon2", "texture",
    "texturedir",
}  # fmt: skip
"""Attributes of names and other text, in which "nan" is a word."""

IDLE = {"user", "noise", "magnetic", "rgba"}  # attributes that no computation of motions reads

DRAWING = {"scale", "rgba"}  # elements of <visual> whose attributes are numbers named after what they scale or color
NAN = re.compile(r"[+-]?nan(\(\w*\))?", re.IGNORECASE | re.ASCII)

COPIES = 1_000  # most copies by <replicate>, and elements of <composite>, in the whole file
CELLS = 10_000_000  # most cells of a height field
SIZES = 10_000  # most elements of each kind in <size>
STACK = 10_000_000  # most numbers of working memory in `nstack`: 80 MB
TIMES = {"replicate", "composite"}  # elements with a `count`


class Origin(NamedTuple):
    """The file and the line of an element."""

    file: str
    line: int


class Model(NamedTuple):
    """A model that can be attached: its name, and the number of copies that it asks for."""

    name: str
    copies: float


class _Place(NamedTuple):
    """An element, its file, the named element around it, and the number of copies of everything around it."""

    file: str
    element: Element
    owner: str
    copies: float

    @property
    def where(self) -> str:
        return f"{self.file}: <{self.element.tag}>{self.owner}"


@dataclass
class _Part:
    """A named body or frame, which the file may attach again: the copies counted before it and up to its end."""

    before: float
    around: float  # copies of everything around it
    end: float | None = None

    def copies(self, now: float) -> float:
        """Return the number of copies inside the part, which may not have ended yet."""
        return ((now if self.end is None else self.end) - self.before) / self.around


def leave_out_idle_numbers(root: Element, origins: Mapping[Element, Origin]) -> None:
    """Remove what no computation reads, and MuJoCo accepts, where it is not finite; keyframes are removed whole."""
    for parent in list(root.iter()):
        for element in list(parent):
            drawn = parent.tag == "visual" or element.tag == "statistic"
            where = f"{origins[element].file}: <{element.tag}> '{element.get('name', '')}'".removesuffix(" ''")
            for key, text in list(element.attrib.items()):
                numeric = (element.tag, key) == ("numeric", "data")
                most = LARGEST if element.tag == "key" else math.inf
                if not (drawn or key in IDLE or numeric or element.tag == "key") or (key in WORDS and not numeric):
                    continue
                if all(abs(x) <= most and math.isfinite(x) for x in _numbers(text)):
                    continue
                tolerate(where, f"'{key}' is '{shortened(text)}'", "give finite numbers", "left out")
                if element.tag == "key":
                    parent.remove(element)
                    break
                if numeric:
                    element.set(key, "0")
                else:
                    del element.attrib[key]


def check_text(root: Element, origins: Mapping[Element, Origin], models: Sequence[Model]) -> float:
    """Return the number of copies that a file asks for, with all includes in place; `models` are those that it may attach.

    Raises ModelError, with file and element, for content that must not be passed to MuJoCo.
    """
    sizes = {model.name: model.copies for model in sorted(models, key=lambda model: model.copies)}  # the largest of a name
    copies = sum(1.0 + model.copies for model in models)
    parts: dict[str, _Part] = {}
    pending: list[_Place | _Part] = [_Place(origins[root].file, root, "", 1.0)]
    while pending:
        place = pending.pop()
        if isinstance(place, _Part):
            place.end = copies
            continue
        element = place.element
        owner = f" of {element.tag} '{element.get('name')}'" if element.get("name") else place.owner
        place = place._replace(owner=owner)
        _check_numbers(place)
        _check_sizes(place)
        times = max(1.0, _product(element.get("count", ""))) if element.tag in TIMES else 1.0
        if element.tag == "attach":
            copies += place.copies * (1.0 + _attached(element, sizes, parts, copies))
        elif element.tag in TIMES:
            copies += place.copies * times
        if copies > COPIES:
            problem = f"the file asks for {copies:.4g} copies, of which MuJoCo makes {COPIES} in some seconds"
            raise ModelError(f"{place.where}: {problem}; write fewer, or remove it")
        if element.tag in ("body", "frame") and element.get("name"):
            part = parts[element.get("name", "")] = _Part(copies, place.copies)
            pending.append(part)
        pending.extend(_Place(origins[e].file, e, owner, place.copies * times) for e in reversed(element))
    return copies


def _attached(element: Element, sizes: Mapping[str, float], parts: Mapping[str, _Part], now: float) -> float:
    """Return the number of copies inside what an <attach> copies; the most that is possible for an unknown name."""
    model, part = element.get("model"), parts.get(element.get("body") or element.get("frame") or "")
    if model is not None:
        return sizes.get(model, max(sizes.values(), default=0.0))
    return now if part is None else part.copies(now)


def _check_numbers(place: _Place) -> None:
    element = place.element
    if "}" in element.tag:
        raise ModelError(f"{place.file}: <{element.tag.replace('{', '').replace('}', ':')}>: MJCF has no namespaces; remove it")
    for key, text in element.attrib.items():
        if element.tag == "config" or (
            key in WORDS and element.tag not in DRAWING and (element.tag, key) != ("numeric", "data")
        ):
            continue
        if key in BOUNDS and not any(map(math.isnan, _numbers(text))):
            continue
        most = LARGEST if key in READ else math.inf
        if not all(abs(x) <= most and math.isfinite(x) for x in _numbers(text)):
            within = f" within ±{LARGEST:g}" if key in READ else ""
            raise ModelError(f"{place.where}: '{key}' is '{shortened(text)}'; give finite numbers{within}")


def _check_sizes(place: _Place) -> None:
    element = place.element
    if element.tag == "hfield" and (cells := _product(f"{element.get('nrow', '')} {element.get('ncol', '')}")) > CELLS:
        raise ModelError(f"{place.where}: {cells:.4g} cells are more than {CELLS:.4g}; make it coarser, or remove it")
    if element.tag == "size":
        for key, text in list(element.attrib.items()):
            most = STACK if key == "nstack" else SIZES
            if key != "memory" and any(x > most for x in _numbers(text)):
                tolerate(place.where, f"'{key}' is '{text}', more than {most}", "remove it", "left out")
                del element.attrib[key]


def _product(text: str) -> float:
    product = 1.0
    for x in _numbers(text):
        product *= x
    return product


def _numbers(text: str) -> Iterator[float]:
    """Yield the words that C reads as numbers. MuJoCo refuses other words itself, with a better message that gives the line."""
    for word in text.split():
        try:
            yield float(word)
        except ValueError:
            if NAN.fullmatch(word):
                yield math.nan
            elif word.lstrip("+-")[:2].lower() == "0x":
                yield _hexadecimal(word)


def _hexadecimal(word: str) -> float:
    """Return the value of a number in base 16; zero for an invalid word, which MuJoCo refuses, too."""
    try:
        return float.fromhex(word)
    except ValueError:
        return 0.0
    except OverflowError:
        return math.inf
