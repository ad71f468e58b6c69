"""Changes to descriptions, one file each: functions that take one and return another of the same class.

They are imported when they are asked for: most programs change none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import adding, attaching, cutting, joint_types, locking, mirroring, renaming

__all__ = ["adding", "attaching", "cutting", "joint_types", "locking", "mirroring", "renaming"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
