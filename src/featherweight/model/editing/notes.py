"""Notes about contents that a change of a description removes: entries of its report, and warnings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ... import checks
from ...names import listed
from ..types import Contents, ModelWarning
from .references import D


def noted(d: D, kind: str, names: Sequence[str]) -> D:
    """Return the description with these names added under a kind of `unused`; unchanged without names."""
    return replace(d, unused=merged(d.unused, ((kind, listed(names)),))) if names else d


def merged(unused: Sequence[tuple[str, str]], more: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Merge entries of the same kind."""
    kinds = dict(unused)
    for kind, text in more:
        kinds[kind] = f"{kinds[kind]}, {text}" if kind in kinds else text
    return tuple(kinds.items())


def missed(d: D, kind: str, names: Sequence[str], remedy: str) -> D:
    """Note these names as `noted` does, and issue a ModelWarning that says what to do."""
    if names:
        warn(d, f"{kind}: {listed(names)}; {remedy}")
    return noted(d, kind, names)


def warn(d: Contents, message: str) -> None:
    """Issue a ModelWarning about this robot, as `warn_caller` does."""
    warn_caller(f"{d.source}: {message}")


def warn_caller(message: str) -> None:
    """Issue a ModelWarning that points at the calling line outside of this package."""
    checks.warn_caller(message, ModelWarning)
