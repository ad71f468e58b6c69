"""One time step as a sequence of stages, the same for all executions.

A robot first moves as if nothing touched. Impulses at contacts, limits and dry friction then change its velocity, by maximum
dissipation (`impulses`), and what overlaps is parted by a displacement without velocity; the velocity that is left moves it.

The stages are those of `Stepper`, for many robots at once, any integrator and loops, or those of `RobotStages`, for one robot
without Python in between: `take_step` runs as it stands over the former, and compiled over the latter.
"""

from __future__ import annotations

from typing import Protocol


class Stages(Protocol):
    """What a step is made of. Those that return False end it; `Stepper` raises SimulationError instead, and says why."""

    def move_freely(self) -> None:
        """Forces of users, drives, damping and springs, and the velocity that they lead to where nothing touches."""

    def is_finite(self) -> bool:
        """Whether the velocity is."""

    def detect(self) -> bool:
        """Find contacts and gaps of joint limits; whether no overlap is too deep."""

    def is_touched(self) -> bool:
        """Whether there are contacts, joints near their limits, or dry friction."""

    def resolve(self) -> bool:
        """Find the impulses; whether they obey Coulomb's law."""

    def overlaps(self) -> bool:
        """Whether any bodies do, or joints are beyond their limits."""

    def part(self) -> None:
        """Find the displacement that parts what overlaps."""

    def apply_impulses(self) -> None:
        """Change the velocity."""

    def forget_impulses(self) -> None:
        """There are none, and none to start from in the next step."""

    def move(self) -> None:
        """Where the velocity and the displacement lead."""

    def limits_are_attainable(self) -> bool:
        """Whether loops let a joint that is beyond its limit come back."""

    def is_sound(self) -> bool:
        """Whether that is finite, and no energy came from nowhere (see `energy_guard`)."""

    def arrive(self) -> None:
        """Be there."""


def take_step(stages: Stages) -> bool:
    """Whether the step was taken; if not, the state is as it was."""
    stages.move_freely()
    if not stages.is_finite() or not stages.detect():
        return False
    if stages.is_touched():
        if not stages.resolve():
            return False
        if stages.overlaps():
            stages.part()
        stages.apply_impulses()
        if not stages.is_finite():
            return False
    else:
        stages.forget_impulses()
    stages.move()
    if not stages.limits_are_attainable() or not stages.is_sound():
        return False
    stages.arrive()
    return True
