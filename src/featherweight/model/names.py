"""Names for what a file leaves without one."""

from __future__ import annotations

from collections.abc import Iterable


class Names:
    """Names already given, for those that have to be made up."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def new(self, wish: str) -> str:
        """The wish, with a number behind it where it is taken."""
        name, number = wish, 1
        while name in self._taken:
            number += 1
            name = f"{wish}_{number}"
        self._taken.add(name)
        return name
