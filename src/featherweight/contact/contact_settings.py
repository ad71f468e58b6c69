"""How contacts are taken in a step."""

from __future__ import annotations

from typing import NamedTuple


class ContactSettings(NamedTuple):
    """Settings of contacts in a step. Lengths and times must be floats: for integers everything would be compiled anew."""

    step: float  # [s]
    margin: float  # [m] contacts with wider gaps do not count
    slop: float  # [m] overlap that is left alone
    bounce: float  # [m/s] approach below which nothing bounces
    tolerance: float  # of the residual, times the greatest velocity
    pyramid: bool
    in_step: bool  # velocities are of the time of positions, not of half a step before: a bounce comes before the motion
    law: int = 0  # the number of a law (see `laws`)
    cones: int = 0  # what friction is like, as in `Problem`
    turning: bool = False  # some contacts have friction against spinning or rolling
    rounds: int = 0  # as in `Problem`
    patches: bool = True  # rigid contacts that others of their patch make redundant are left out
