"""Alignments between the frames of predecessor and successor, for each type of loop joint."""

from __future__ import annotations

from .types import LoopType

POSITION = (0, 1, 2)
ALIGNMENTS = {  # axes of the predecessor's frame along which points meet; pairs of axes that stay perpendicular
    LoopType.REVOLUTE: (POSITION, ((0, 2), (1, 2))),
    LoopType.SPHERICAL: (POSITION, ()),
    LoopType.WELD: (POSITION, ((0, 1), (1, 2), (2, 0))),
    LoopType.PRISMATIC: ((0, 1), ((0, 1), (1, 2), (2, 0))),
    LoopType.CYLINDRICAL: ((0, 1), ((0, 2), (1, 2))),
    LoopType.UNIVERSAL: (POSITION, ((2, 0),)),
    LoopType.PLANAR: ((2,), ((0, 2), (1, 2))),
}
FACING = {  # axes that point the same way in both frames
    LoopType.REVOLUTE: (2,),
    LoopType.SPHERICAL: (),
    LoopType.WELD: (0, 1, 2),
    LoopType.PRISMATIC: (0, 1, 2),
    LoopType.CYLINDRICAL: (2,),
    LoopType.UNIVERSAL: (),
    LoopType.PLANAR: (2,),
}
