"""Changes of numbers of joints: limits, friction, damping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .references import D, joint_of


def with_joint(d: D, names: Sequence[str], changes: Mapping[str, Any]) -> D:
    """Return the description with other values of some fields of joints."""
    changed = {name: replace(joint_of(d, name, "with_joint"), **changes) for name in names}
    return replace(d, joints=tuple(changed.get(j.name, j) for j in d.joints))
