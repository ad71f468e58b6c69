"""Settings of contacts in a step."""

from __future__ import annotations

from typing import NamedTuple


class ContactSettings(NamedTuple):
    """Settings of contacts in a step. Lengths and times must be floats; integers would cause recompilation."""

    step: float  # [s]
    margin: float  # [m] contacts with wider gaps are ignored
    slop: float  # [m] overlap that is tolerated
    bounce: float  # [m/s] approach speed below which contacts do not bounce
    tolerance: float  # of the residual, relative to the greatest velocity
    pyramid: bool
    in_step: bool  # velocities and positions are at the same time, not half a step apart: a bounce comes before the motion
    law: int = 0  # the number of a law (see `laws`)
    cones: int = 0  # kind of friction, as in `Problem`
    turning: bool = False  # some contacts have friction against spinning or rolling
    rounds: int = 0  # as in `Problem`
    patches: bool = True  # leave out rigid contacts that are redundant in their patch
    depth_bounded: bool = True  # a deeper overlap than is allowed fails a step
