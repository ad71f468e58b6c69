"""Safe reading of XML: elements, attributes and numbers, with errors that name file and element; and generation of names.

`where` begins an error: the file and the element, as in "arm.urdf: joint 'elbow'".
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from xml.etree.ElementTree import Element, ParseError, TreeBuilder
from xml.parsers.expat import ExpatError, ParserCreate, errors
from xml.parsers.expat.errors import messages as codes

from defusedxml import DefusedXmlException, EntitiesForbidden  # type: ignore[import-untyped, unused-ignore]
from defusedxml import ElementTree as SafeElementTree

from ..files import FETCH, POINTER, read_regular
from ..types import LARGEST, ModelError, Vector
from .unsupported import tolerate

# --- the file and its elements


def parse_xml(source: str, text: str | bytes | None = None, lines: dict[Element, int] | None = None) -> Element:
    """Return the root element of an XML file, or of `text`, which is called `source`; `lines` receives the elements' lines.

    Mistakes that the XML parser of urdfdom, libsdformat and MuJoCo accepts are tolerated: prefixes without a declaration,
    elements after the root, a bare &, and others. Raises `ModelError` for XML that is damaged or defines entities. The encoding
    that a string declares is ignored.
    """
    content = read_regular(source) if text is None else text
    if problem := _no_text(content):
        raise ModelError(f"{source}: {problem}")
    with xml_errors(source):
        try:
            return _parsed(content, lines)
        except (ParseError, ExpatError, LookupError, EntitiesForbidden) as error:
            found = _parsed_with_mistakes(source, content, lines, error)
            if found is None:
                raise
            return found


def _no_text(content: str | bytes) -> str:
    """Return what a file is in place of XML, and what to do; nothing for one that may be XML."""
    first = content[: len(POINTER)]
    first = first.encode(errors="replace") if isinstance(first, str) else first
    if first.startswith(POINTER):
        return FETCH
    kind = next((kind for begin, kind in COMPRESSED.items() if first.startswith(begin)), None)
    return f"a {kind} file, not XML; unpack it, and name the file in it" if kind else ""


COMPRESSED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


def _parsed(content: str | bytes, lines: dict[Element, int] | None) -> Element:
    builder = _Builder()
    builder.lines = lines
    builder.parser = SafeElementTree.XMLParser(target=builder)
    builder.parser.feed(content)
    root: Element = builder.parser.close()
    return root


def _parsed_without_namespaces(content: str | bytes, lines: dict[Element, int] | None) -> Element:
    """Return the root element of XML with prefixes as parts of names."""

    def start(tag: str, attributes: dict[str, str]) -> None:
        builder.start(tag, {key: text for key, text in attributes.items() if not key.startswith("xmlns")})

    def forbid(name: str, _: bool, *others: str | None) -> None:
        raise EntitiesForbidden(name, *others)

    builder = _Builder()
    builder.lines = lines
    builder.parser = SimpleNamespace(parser=(parser := ParserCreate()))
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, builder.end, builder.data
    parser.EntityDeclHandler = forbid
    parser.Parse(content, True)
    root: Element = builder.close()
    return root


def _parsed_with_mistakes(
    source: str, content: str | bytes, lines: dict[Element, int] | None, error: Exception
) -> Element | None:
    """Return the root element of XML with mistakes that other parsers accept; None if there are further ones."""
    parse, mistakes = _parsed, dict[str, str]()
    for _ in range(MISTAKES):
        code = errors.XML_ERROR_UNKNOWN_ENCODING if isinstance(error, LookupError) else codes.get(getattr(error, "code", 0))
        if code == errors.XML_ERROR_UNBOUND_PREFIX:
            parse = _parsed_without_namespaces
            mistakes[f"a prefix is not declared (xmlns; {error})"] = "taken as a part of the names"
        elif mended := _mended(content, code, error):
            content, mistake, taken = mended
            mistakes[mistake] = taken
        else:
            return None
        try:
            if lines is not None:
                lines.clear()
            root = parse(content, lines)
        except (ParseError, ExpatError, EntitiesForbidden) as further:
            error = further
            continue
        for mistake, taken in mistakes.items():
            tolerate(source, f"not an XML file, or cut short: {mistake}", "repair it or export it again", taken)
        return root
    return None


def _mended(content: str | bytes, code: str | None, error: Any) -> tuple[str | bytes, str, str] | None:
    """Return the content without the mistake of a parser's error, the mistake, and how it is read; None for other mistakes."""
    if code == errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT:
        line, column = error.position if hasattr(error, "position") else (error.lineno, error.offset)
        rows = content.splitlines(keepends=True)
        end = sum(len(row) for row in rows[: line - 1]) + column
        if content[end : end + 1] not in ("<", b"<"):
            return None
        return content[:end], f"elements follow the root element (line {line})", "left out"
    if code == errors.XML_ERROR_MISPLACED_XML_PI and content.lstrip() != content:
        return content.lstrip(), "blanks before the XML declaration", "ignored"
    if isinstance(content, bytes):
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            return content.decode("latin-1"), "bytes that are not UTF-8", "read as Latin-1"
        if code == errors.XML_ERROR_UNKNOWN_ENCODING:
            return text, "an unknown encoding", "read as UTF-8"
    else:
        text = content
    if isinstance(error, EntitiesForbidden):
        without = DEFINITIONS.sub("", text)
        unused = without != text and not AMPERSAND.search(without)
        return (without, f"XML that defines entities ({error.name})", "which nothing uses") if unused else None
    if code in DECLARATION_ERRORS and (without := DECLARATION.sub("", text)) != text:
        return without, f"invalid XML declarations ({error})", "ignored"
    mended = COMMENT.sub(lambda match: f"<!--{match[1].replace('-', ' ')}-->", CONTROL.sub("", text))
    mended = INSIDE.sub(lambda match: match[0][:1] + match[0][1:].replace("<", "&lt;"), AMPERSAND.sub("&amp;", mended))
    mended = ADJACENT.sub(r"\1 ", REFERENCE.sub(_character, mended))
    if mended != text:
        return mended, f"invalid characters ({error})", "read as they are"
    return (text, f"text in another encoding than it declares ({error})", "read as UTF-8") if text is not content else None


def _character(match: re.Match[str]) -> str:
    """Return a reference to a character; nothing for one to a character that XML does not have."""
    written = match[1]
    number = int(written[1:], 16) if written[0] == "x" else int(written)
    allowed = number in (9, 10, 13) or 32 <= number < 0xD800 or 0xE000 <= number < 0xFFFE or 0x10000 <= number < 0x110000
    return match[0] if allowed else ""


MISTAKES = 5  # most kinds of mistakes in a file
COMMENT = re.compile("<!--(.*?)-->", re.DOTALL)
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
AMPERSAND = re.compile(r"&(?!#[0-9]+;|#x[0-9a-fA-F]+;|(?:amp|lt|gt|quot|apos);)")  # also of unknown entities
REFERENCE = re.compile("&#([0-9]{1,9}|x[0-9a-fA-F]{1,8});")
ADJACENT = re.compile(
    """(=[ \\t\\r\\n]*(?:"[^"<>]*"|'[^'<>]*'))(?=[A-Za-z_])"""
)  # an attribute, without a blank before the next
DECLARATION = re.compile(r"<\?xml\s.*?\?>", re.DOTALL)
DECLARATION_ERRORS = errors.XML_ERROR_XML_DECL, errors.XML_ERROR_MISPLACED_XML_PI
DEFINITIONS = re.compile(r"<!DOCTYPE[^\[>]*(\[.*?\]\s*)?>", re.DOTALL)
INSIDE = re.compile("=\\s*(\"[^\"<]*<[^\"]*\"|'[^'<]*<[^']*')")  # a value of an attribute that contains <


class _Builder(TreeBuilder):
    """Builder of a tree that records the line of each element."""

    parser: Any
    lines: dict[Element, int] | None

    def start(self, tag: str, attrs: dict[str, str], /) -> Element:
        element = super().start(tag, attrs)
        if self.lines is not None:
            self.lines[element] = self.parser.parser.CurrentLineNumber
        return element


@contextmanager
def xml_errors(source: str) -> Iterator[None]:
    """Convert errors of XML parsers to ModelErrors that name the file and say what to do."""
    try:
        yield
    except (ParseError, ExpatError) as error:
        remedy = "repair it or export it again"
        raise ModelError(f"{source}: not an XML file, or cut short ({error}); {remedy}") from error
    except DefusedXmlException as error:
        remedy = "remove the entity declarations"
        raise ModelError(f"{source}: XML that defines entities is not read ({error}); {remedy}") from error
    except (ValueError, LookupError) as error:
        raise ModelError(f"{source}: unreadable text encoding ({error}); save the file as UTF-8") from error


def drop_default_namespace(root: Element) -> None:
    """Remove the namespace of the root from the tags of all elements."""
    if root.tag.startswith("{"):
        prefix = root.tag[: root.tag.index("}") + 1]
        for element in root.iter():
            element.tag = element.tag.removeprefix(prefix)


def named(root: Element, tag: str, source: str, own: bool = False) -> dict[str, Element]:
    """Return the root's children with this tag by name, in the file's order.

    Children without a name are left out if the tag is one of this package's `own`, which other readers ignore.
    """
    elements: dict[str, Element] = {}
    for number, element in enumerate(root.findall(tag), start=1):
        name = element.get("name", "")
        if not name.strip() and own:
            tolerate(source, f"{tag} number {number} has no name", "give it one", "left out")
            continue
        if not name.strip():
            raise ModelError(f"{source}: {tag} number {number} has no name; give it one")
        if name in elements:
            raise ModelError(f"{source}: two {tag}s have the name '{name}'; rename one of them")
        elements[name] = element
    return elements


def only(element: Element, tag: str, where: str) -> Element | None:
    """Return the child element with this tag, or None; the first counts, and there should be no further ones."""
    children = element.findall(tag)
    if len(children) > 1:
        tolerate(where, f"{len(children)} <{tag}> elements inside <{element.tag}>", "keep one", "the first counts")
    return children[0] if children else None


def required(element: Element, tag: str, where: str) -> Element:
    """Return the only child element with this tag."""
    child = only(element, tag, where)
    if child is None:
        raise ModelError(f"{where}: <{element.tag}> has no <{tag}>; add it")
    return child


def attribute(element: Element, key: str, where: str) -> str:
    """Return an attribute that must not be empty."""
    text = element.get(key, "")
    if not text.strip():
        raise ModelError(f"{where}: <{element.tag}> has no attribute '{key}'; add it")
    return text


def shortened(text: str, most: int = 500) -> str:
    """Return the text, cut to a length that a message can quote: names may themselves be data, as in data: URIs."""
    return text if len(text) <= most else f"{text[: most - 100]} … {text[-80:]}"


# --- numbers


def parse_numbers(text: str, count: int, key: str, where: str) -> list[float]:
    """Return a given number of finite numbers; errors call them `key`."""
    words = text.split()
    if len(words) != count:
        found = f"not {len(words)} ('{shortened(text)}')"
        raise ModelError(f"{where}: '{key}' needs {count} number{'s' * (count > 1)}, {found}; correct it")
    return [_number(word, key, where) for word in words]


def _number(text: str, key: str, where: str) -> float:
    try:
        value = float(text.replace("_", "?"))  # only Python reads 1_000 as a number
    except ValueError:
        raise ModelError(f"{where}: '{key}' is not a number: '{shortened(text)}'; correct it") from None
    if not abs(value) <= LARGEST:
        remedy = f"give a finite number within ±{LARGEST:g}, or leave it out where it is optional"
        raise ModelError(f"{where}: '{key}' is {value}; {remedy}")
    return value


def read_limit(element: Element, key: str, where: str, default: float | None = None) -> float:
    """Return a number as `read_scalar` does; it is infinite beyond ±LARGEST, which files write for no limit."""
    if default is not None and key not in element.attrib:
        return default
    word = attribute(element, key, where).strip()
    try:
        value = float(word.replace("_", "?"))
    except ValueError:
        return _number(word, key, where)
    return math.copysign(math.inf, value) if abs(value) >= LARGEST else _number(word, key, where)


def read_scalar(element: Element, key: str, where: str, default: float | None = None) -> float:
    """Return an attribute of one finite number, which is required unless there is a default."""
    if default is not None and key not in element.attrib:
        return default
    return parse_numbers(attribute(element, key, where), 1, key, where)[0]


def read_numbers(element: Element, key: str, where: str) -> list[float]:
    """Return a required attribute of any number of finite numbers."""
    text = attribute(element, key, where)
    return parse_numbers(text, len(text.split()), key, where)


def read_tuple(element: Element, key: str, count: int, where: str) -> list[float]:
    """Return a required attribute of several finite numbers."""
    return parse_numbers(attribute(element, key, where), count, key, where)


def read_vector(element: Element, key: str, default: str, where: str) -> Vector:
    """Return an attribute of three finite numbers."""
    x, y, z = parse_numbers(element.get(key, default), 3, key, where)
    return (x, y, z)


# --- names


def counted(names: Iterable[str]) -> str:
    """Return names, and how often each occurs, for a report."""
    return ", ".join(f"{name} ({count})" for name, count in Counter(names).items())


class Names:
    """Names already in use, for generating new ones."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def new(self, wish: str) -> str:
        """Return the given name, with a number appended if it is taken."""
        name, number = wish, 1
        while name in self._taken:
            number += 1
            name = f"{wish}_{number}"
        self._taken.add(name)
        return name


# --- writing


def written(*numbers: float) -> str:
    """Return the shortest texts that read as these numbers; LARGEST for infinity, which readers treat as no limit."""
    return " ".join(_short(math.copysign(LARGEST, x) if math.isinf(x) else x) for x in numbers)


def _short(x: float) -> str:
    return repr(float(x)).removesuffix(".0")
