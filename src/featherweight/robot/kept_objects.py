"""Functions and other objects that a robot keeps by key; of those for frames that users create, the most recently used."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ..model.types import Pose

Key = tuple[Any, ...]
MOST = 64  # objects for frames, placements and rows that users create; each takes some 0.1 MB
NAMES = str, bytes, int, float, type(None)


class KeptObjects(dict[Key, Any]):
    """Objects by key.

    Keys of names and numbers remain. Keys with frames, placements or functions that users create, possibly others in each
    call, are limited in number: a new one replaces the least recently used one.
    """

    def __init__(self) -> None:
        super().__init__()
        self._recent: OrderedDict[Key, Any] = OrderedDict()

    def __missing__(self, key: Key) -> Any:
        found = self._recent[key]
        self._recent.move_to_end(key)
        return found

    def keep(self, key: Key, x: Any) -> None:
        if not _is_created(key):
            self[key] = x
            return
        self._recent[key] = x
        while len(self._recent) > MOST:
            self._recent.popitem(last=False)

    def without(self, key: Key) -> KeptObjects:
        """Return a copy without a key."""
        other = KeptObjects()
        other.update({known: x for known, x in self.items() if known != key})
        other._recent.update(self._recent)
        return other


def _is_created(x: object) -> bool:
    """Return whether a key contains anything but names, numbers and identity placements."""
    if isinstance(x, Pose):
        return x != Pose()
    return any(map(_is_created, x)) if isinstance(x, tuple) else not isinstance(x, NAMES)
