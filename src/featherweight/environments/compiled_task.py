"""Tasks whose controls, observations, rewards and ends are compiled (see `episode_loop`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..engine.function import CompiledFunction
from ..engine.loops.kernels import MachineCall, machine_call
from .episode_loop import Now
from .parallel_robots import ParallelRobots
from .snapshot import Links
from .task import Task

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class CompiledTask(Task):
    """A task by a text that is compiled.

    A subclass says what its text writes: `told` names what `info` tells, of which the first `places` are known of beginnings,
    too, and `terms` names the terms of the reward.
    """

    told: ClassVar[tuple[str, ...]] = ()
    places: ClassVar[int] = 0
    terms: ClassVar[tuple[str, ...]] = ()
    drawn_at_first: ClassVar[int] = 0  # random numbers of an episode that its beginning takes

    def __init_subclass__(cls, **how: Any) -> None:
        super().__init_subclass__(**how)
        if wrong := [name for name in ("observation", "rewards", "terminated") if name in vars(cls)]:
            raise TypeError(
                f"{cls.__name__}.{wrong[0]}: the text of this task is compiled; a task by functions of snapshots derives from "
                "SnapshotTask, or is a RobotTask"
            )

    def text(self, robots: ParallelRobots, now: Now) -> Any:
        """The named tuple that has the methods of a text (see `episode_loop`), for one thread, whose robot is `now`."""
        raise NotImplementedError

    def seen(self, links: Links) -> int:
        """Count of the numbers of an observation."""
        raise NotImplementedError

    def memory(self, links: Links) -> int:
        """Count of the numbers that the task remembers of a robot."""
        return 0


def called(links: Links, function: CompiledFunction[Any], now: Now, *results: Array) -> MachineCall:
    """A call of a function of q and v of `now`. Raises NotImplementedError for functions that are not machine code."""
    if function.address is None:
        raise NotImplementedError(f"{function.name} of {links.robot.name} is not machine code: the robot is too large")
    arguments = {"q": now.q, "v": now.v, "parameters": now.parameters, "armature": now.armature}
    arrays: Sequence[Array] = [*(arguments[x.name] for x in function.program.inputs), *results]
    links.called[function.address] = function
    return machine_call(function, *arrays)
