"""What may touch on a robot, as arrays for compiled functions."""

from __future__ import annotations

from typing import Any, NamedTuple


class ContactModel(NamedTuple):
    """The rows of the bodies that may touch in G (see `contact_problem`), the surfaces of candidates, and joint rows."""

    width: Any  # (bodies,) int, 6 or 3
    friction: Any  # (candidates,)
    restitution: Any  # (candidates,)
    rows: Any  # JointRows
    settings: Any  # ContactSettings
