"""The formats of robot files. A new format is a folder with a reader, and one line in `FORMATS`.

A reader is a function of (source, options) that returns a `Description`. It raises ModelError for an invalid or unsupported
file, and OSError for a file that cannot be opened. The source is a `RobotSource`: a path, or text in memory. `options` are
those in the format's line that the caller gave. The reader's module is imported when a file of the format is read.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from ...checks import argument, one_of
from ...names import close_to
from ...providers import provided
from ..description import Description
from ..types import ModelError
from .unsupported import MIMIC, REPORT, UNSUPPORTED, reading, tolerate

if TYPE_CHECKING:  # modules that open files are imported on demand, like readers
    from .packages import PackagePath
    from .robot_source import RobotInput, RobotSource

    Reader = Callable[[RobotSource, Mapping[str, str]], Description]


class Format(NamedTuple):
    """A file format: its name, suffixes, reader, options of the reader, and the root element that identifies text.

    The root is empty for formats that are not XML.
    """

    name: str
    suffixes: tuple[str, ...]
    module: str  # relative to this package
    function: str
    options: tuple[str, ...] = ()
    root: str = ""

    def reader(self) -> Reader:
        function: Reader = getattr(import_module(self.module, __package__), self.function)
        return function


FORMATS = [
    Format("URDF", (".urdf",), ".urdf.reader", "read_urdf", options=("mimic",), root="robot"),
    Format("MJCF", (".xml", ".mjcf"), ".mjcf.read.reader", "read_mjcf", options=("mimic", "equalities"), root="mujoco"),
    Format("SDF", (".sdf", ".world"), ".sdf.reader", "read_sdf", options=("mimic",), root="sdf"),
    Format("USD", (".usd", ".usda", ".usdc", ".usdz"), ".usd.reader", "read_usd", options=("mimic",)),
]

CHOICES = {"mimic": MIMIC, "unsupported": UNSUPPORTED}  # values of options

PACKED = ".gz", ".zip", ".bz2", ".xz", ".zst", ".tgz"
XACRO = ".xacro"  # files of any of these formats that xacro expands


def load_description(
    given: RobotInput,
    *,
    folder: str | os.PathLike[str] | None = None,
    package_path: PackagePath | None = None,
    xacro_args: Mapping[str, Any] | None = None,
    **options: str,
) -> Description:
    """Read a robot from a path, in the format of its suffix, or from text, in the format of its root element.

    `folder`, `package_path` and `xacro_args` are those of `featherweight.load`. Formats ignore options that they do not take.
    Raises ModelError for an invalid or unsupported file, FileNotFoundError for a missing file, TypeError for an option that no
    format takes, and ValueError for an invalid value of an option.
    """
    for key, choice in options.items():
        if key in CHOICES:
            argument(key, choice, one_of(CHOICES[key]))
    if unknown := options.keys() - {"unsupported", *(key for format in FORMATS for key in format.options)}:
        raise TypeError(f"no format of robot files has the option {min(unknown)!r}")
    from .packages import Packages
    from .robot_source import open_source

    source = open_source(given, folder, Packages.of(package_path))
    with reading(options.pop("unsupported", REPORT)) as notes:
        if source.text is None and not os.path.lexists(source.name):
            raise _missing(source)
        if xacro_args is not None or source.suffix == XACRO:
            from .xacro_expansion import expanded

            source = expanded(source, xacro_args or {})
        by_path = source.text is None or any(source.suffix in f.suffixes for f in FORMATS if not f.root)
        format = _format_of_path(source) if by_path else _format_of_text(source)
        description = format.reader()(source, {key: options[key] for key in format.options if key in options})
    return replace(description, unused=(*description.unused, *notes.listed()))


def _format_of_path(source: RobotSource) -> Format:
    for format in FORMATS:
        if source.suffix in format.suffixes:
            return _by_root(source, format)
    raise _unknown_suffix(source)


def _missing(source: RobotSource) -> Exception:
    """Return the error for a file that does not exist, with the files and the example robots that its name resembles."""
    folder, name = os.path.split(source.name)
    suffixes = {XACRO, *(suffix for format in FORMATS for suffix in format.suffixes)}
    files = [x for x in sorted(_names_in(folder)) if os.path.splitext(x)[1].lower() in suffixes]
    stem, stems = os.path.splitext(name)[0], [os.path.splitext(x)[0] for x in files]
    close = close_to(stem, stems)
    near = [repr(os.path.join(folder, file)) for file, x in zip(files, stems, strict=True) if x in close]
    if not folder and not near:
        near = [f"featherweight.example({x!r})" for x in close_to(stem, provided("load.example")())]
    hint = f"; is it {' or '.join(near)}?" if near else ""
    if source.suffix not in suffixes:
        return ModelError(f"{_unknown_suffix(source)}{hint}")
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT) + hint, source.name)


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder or os.curdir)
    except OSError:
        return []


def _unknown_suffix(source: RobotSource) -> ModelError:
    if source.suffix in PACKED:
        return ModelError(f"{source.name}: a compressed file; unpack it, and name the file in it")
    known = [f"{' or '.join(format.suffixes)} ({format.name})" for format in FORMATS]
    name, suffix = source.name[-300:], source.suffix[:20]
    example = "" if suffix else "; featherweight.example returns the paths of example robots by name"
    read = f"{', '.join(known)}, {XACRO}, or XML text"
    return ModelError(f"{name}: unknown suffix {suffix!r}; a robot is read from {read}{example}")


def _by_root(source: RobotSource, format: Format) -> Format:
    """Return the format whose root element the file has, or else that of its suffix: MuJoCo reads URDF in .xml files."""
    tag = source.root.tag.rpartition("}")[2] if format.root else ""
    for other in FORMATS:
        if other is not format and other.root and other.root == tag:
            problem = f"the root element <{tag}> is that of {other.name}, and the suffix {source.suffix} that of {format.name}"
            tolerate(source.name, problem, f"give the file the suffix {other.suffixes[0]}", f"read as {other.name}")
            return other
    return format


def _format_of_text(source: RobotSource) -> Format:
    tag = source.root.tag.rpartition("}")[2]
    for format in FORMATS:
        if format.root == tag:
            return format
    known = ", ".join(f"<{format.root}> ({format.name})" for format in FORMATS if format.root)
    raise ModelError(f"{source.name}: the root element is <{tag[:60]}>; that of a robot is {known}")
