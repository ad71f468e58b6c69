"""Objects that simulations make, for tests of the choice between algorithms with the same results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from unittest.mock import patch

Made = TypeVar("Made")


@contextmanager
def made(kind: type[Made]) -> Iterator[list[Made]]:
    """Collect the objects of a class that are made inside the context."""
    objects, begin = list[Made](), kind.__init__

    def begun(self: Made, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        objects.append(self)

    with patch.object(kind, "__init__", begun):
        yield objects
