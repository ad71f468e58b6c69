"""Sources of robots: files by their paths, text in strings or bytes, and open files."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol
from xml.etree.ElementTree import Element

from ..files import read_regular
from ..types import Contents, ModelError
from .geometry import find_mesh
from .packages import NONE_GIVEN, Packages
from .xml import parse_xml, shortened


class ReadableFile(Protocol):
    """An open file of text or bytes, including those of `gzip` and `urllib`."""

    def read(self) -> str | bytes:
        """Return the rest of the file."""


RobotInput = str | os.PathLike[str] | bytes | ReadableFile

BLANK = " \t\r\n\ufeff"  # ignored characters before XML, including a byte order mark
QUOTED = 60  # most characters of text that a message quotes


@dataclass(frozen=True)
class RobotSource:
    """The source that a reader reads: a file, or text in memory. `os.fspath` and `str` return its name.

    `name` begins error messages: the path, or "<string>". Relative names of meshes and includes refer to `folder`; None for
    text whose folder is unknown. `text` is None for a file that is not in memory.
    """

    name: str
    folder: Path | None
    packages: Packages = NONE_GIVEN
    text: str | bytes | None = None

    def __fspath__(self) -> str:
        return self.name

    __str__ = __fspath__

    @property
    def suffix(self) -> str:
        return Path(self.name).suffix.lower()

    @property
    def stem(self) -> str:
        """The name of robots without a name."""
        return "robot" if self.name.startswith("<") else Path(self.name).stem

    @cached_property
    def root(self) -> Element:
        """The root element. Raises ModelError for invalid XML, and OSError for a file that cannot be opened."""
        return parse_xml(self.name, self.text)

    def content(self) -> str | bytes:
        """Return the text, which is read from the file if it is not in memory."""
        if self.text is not None:
            return self.text
        return read_regular(self.name)

    def mesh(self, filename: str) -> str:
        """Return the absolute path of a mesh that the file names, or the name as a `MissingFile` if there is none."""
        return find_mesh(filename, self.folder, self.packages)


def open_source(
    given: RobotInput | RobotSource, folder: str | os.PathLike[str] | None = None, packages: Packages = NONE_GIVEN
) -> RobotSource:
    """Return the source for a path, XML as text (a string that begins with "<") or as bytes, or an open file.

    Relative names refer to `folder`, in place of the file's own folder. An open file is read to its end, from its current
    position, and not closed; its folder is that of its `name`, if that is the path of a file. A missing file is not an error.

    Raises ModelError for input that is none of these, OSError for a folder or an open file that cannot be read, and TypeError
    for other objects.
    """
    if isinstance(given, RobotSource):
        return given
    where = None if folder is None else _folder(folder)
    if isinstance(given, bytes | bytearray | memoryview):
        return RobotSource("<bytes>", where, packages, _xml(bytes(given), "<bytes>"))
    if isinstance(given, str) and given.lstrip(BLANK).startswith("<"):
        return RobotSource("<string>", where, packages, given.lstrip(BLANK))
    if isinstance(given, str | os.PathLike):
        path = _path(given)
        if where is None or not os.path.lexists(path):
            return RobotSource(path, where or Path(path).parent, packages)
        return RobotSource(path, where, packages, RobotSource(path, where).content())
    if hasattr(given, "read"):
        return _read(given, where, packages)
    made = "; featherweight.build builds a robot from a Description" if isinstance(given, Contents) else ""
    raise TypeError(f"a robot is read from a path, XML text, bytes or an open file, not from {type(given).__name__}{made}")


def _folder(folder: str | os.PathLike[str]) -> Path:
    path = os.path.abspath(os.fspath(folder))
    if not os.path.isdir(path):
        raise ModelError(f"folder: {shortened(path)}: no such folder; give the one to which relative names of the text refer")
    return Path(path)


def _path(given: str | os.PathLike[str]) -> str:
    path = os.fspath(given)
    if not path.strip(BLANK):
        raise ModelError("an empty string is neither XML nor the path of a file; give one of them")
    if "\n" in path or not _may_be_a_path(path):
        quoted = f"{path[:QUOTED]!r}{' …' if len(path) > QUOTED else ''}, {len(path)} characters,"
        raise ModelError(f"{quoted} is neither XML, which begins with '<', nor the path of a file; give one of them")
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "a folder, not a file; name the robot's file in it", path)
    return path


def _may_be_a_path(path: str) -> bool:
    try:
        os.stat(path)
    except ValueError:  # a path with a zero byte or an incomplete surrogate pair
        return False
    except OSError as error:
        return error.errno != errno.ENAMETOOLONG
    return True


def _read(stream: Any, folder: Path | None, packages: Packages) -> RobotSource:
    path = getattr(stream, "name", None)
    name = shortened(path) if isinstance(path, str) and path else "<file>"
    if folder is None and isinstance(path, str) and os.path.isfile(path):
        folder = Path(os.path.abspath(path)).parent
    try:
        text = stream.read()
    except UnicodeDecodeError as error:
        raise ModelError(f"{name}: unreadable text encoding ({error.reason}); open it in binary mode, 'rb'") from error
    if not isinstance(text, str | bytes):
        raise TypeError(f"{name}: read() of an open file must return str or bytes, not {type(text).__name__}")
    return RobotSource(name, folder, packages, _xml(text, name))


def _xml(text: str | bytes, name: str) -> str | bytes:
    """Return the text without blanks before it. Raises ModelError for text that is obviously no XML."""
    begun = text.lstrip(BLANK) if isinstance(text, str) else text.lstrip(BLANK.encode())
    if not begun:
        raise ModelError(f"{name}: nothing to read; give the text of a file, and of an open file one that is not at its end")
    if not ("<" in begun if isinstance(begun, str) else b"<" in begun):
        raise ModelError(f"{name}: no XML, which begins with '<'; give the text of a file, or its path as a str")
    return begun
