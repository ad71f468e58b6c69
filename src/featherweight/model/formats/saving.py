"""The formats in which descriptions are saved. A new format is a writer, and one line in `WRITERS`.

A writer is a function of (description, path). It warns about contents that its format cannot hold, by name, or raises
ModelError. Its module is imported when a file of the format is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from ..types import Contents, ModelError

Writer = Callable[[Contents, str | os.PathLike[str]], None]

WRITERS = {
    ".urdf": (".urdf.writer", "write_urdf"),
    ".xml": (".mjcf.write.writer", "write_mjcf"),
    ".mjcf": (".mjcf.write.writer", "write_mjcf"),
    ".srdf": (".srdf", "write_srdf"),
}
"""The module of the writer, relative to this package, and its function, by suffix."""


def save_description(d: Contents, path: str | os.PathLike[str]) -> None:
    """Write a robot file in the format of its suffix."""
    suffix = Path(path).suffix.lower()
    if suffix not in WRITERS:
        raise ModelError(f"{os.fspath(path)}: unknown suffix {suffix!r}; a robot is saved as {', '.join(WRITERS)}")
    module, function = WRITERS[suffix]
    writer: Writer = getattr(import_module(module, __package__), function)
    writer(d, path)
