"""The formats of robot files. A new one is a folder with a reader, and one line in `FORMATS`.

A reader is a function of (path, options) that returns a `Description`; it raises ModelError for a file that cannot be used
as it is, and OSError for one that cannot be opened. `options` are those that the format's line names, as far as the caller
gave any. Its module is imported when a file of the format is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from ..description import Description
from ..types import ModelError

Reader = Callable[[str | os.PathLike[str], Mapping[str, str]], Description]


class Format(NamedTuple):
    """A file format: its name, the suffixes of its files, its reader, and the options that the reader takes."""

    name: str
    suffixes: tuple[str, ...]
    module: str  # relative to this package
    function: str
    options: tuple[str, ...] = ()

    def reader(self) -> Reader:
        function: Reader = getattr(import_module(self.module, __package__), self.function)
        return function


FORMATS = [
    Format("URDF", (".urdf",), ".urdf.reader", "read_urdf", options=("mimic",)),
    Format("MJCF", (".xml", ".mjcf"), ".mjcf.reader", "read_mjcf", options=("unsupported",)),
]


def load_description(path: str | os.PathLike[str], **options: str) -> Description:
    """Read a robot file in the format that its suffix stands for. An option has no effect on formats that do not take it.

    Raises ModelError for a file that cannot be used as it is, FileNotFoundError where there is none, and TypeError for an
    option that no format takes.
    """
    if unknown := options.keys() - {key for format in FORMATS for key in format.options}:
        raise TypeError(f"no format of robot files has the option {min(unknown)!r}")
    format = _format_of(path)
    return format.reader()(path, {key: options[key] for key in format.options if key in options})


def _format_of(path: str | os.PathLike[str]) -> Format:
    suffix = Path(path).suffix.lower()
    for format in FORMATS:
        if suffix in format.suffixes:
            return format
    known = ", ".join(f"{' or '.join(format.suffixes)} ({format.name})" for format in FORMATS)
    raise ModelError(f"{os.fspath(path)}: unknown suffix {suffix!r}; a robot is read from {known}")
