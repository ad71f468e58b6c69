"""Changes of descriptions, one file each: functions that take a description and return another of the same class.

The modules are imported on demand, because most programs change no description.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import adding, attaching, cutting, joint_types, locking, mirroring, properties, renaming

__all__ = ["adding", "attaching", "cutting", "joint_types", "locking", "mirroring", "properties", "renaming"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
