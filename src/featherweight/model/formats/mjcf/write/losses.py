"""A record of the contents of a description that an MJCF file cannot hold, collected while the file is written."""

from __future__ import annotations

from collections.abc import Sequence

from ...xml import Names

SHOWN = 10  # most names of one kind in a message


class Losses:
    """Names by kind; a kind is a phrase with {} for the names."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, None]] = {}

    def add(self, kind: str, name: str) -> None:
        """Record a loss of one element; a name is recorded once."""
        self._names.setdefault(kind, {})[name] = None

    def unique(self, names: Sequence[str], what: str) -> list[str]:
        """Return names of elements of one kind (`what`, in the plural); repeated names get a number."""
        taken, seen, result = Names(names), set[str](), []
        for name in names:
            if name in seen:
                self.add(f"the name {{}} of all {what} but the first that has it", name)
            result.append(taken.new(name) if name in seen else name)
            seen.add(name)
        return result

    def text(self) -> str:
        """Return all kinds with their names; empty if nothing is lost."""
        return "; ".join(kind.format(_listed([*names])) for kind, names in self._names.items())


def _listed(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
