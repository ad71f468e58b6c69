"""Tasks whose controls, observations, rewards and ends of episodes are compiled (see `episode_loop`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..array_types import Array
from ..engine.function import CompiledFunction
from ..engine.loops.kernels import MachineCall, machine_call
from .episode_loop import Now
from .parallel_robots import ParallelRobots
from .snapshot import Links
from .task import Task


@dataclass(frozen=True)
class CompiledTask(Task):
    """A task whose text, the methods that run at each step, is compiled.

    A subclass names the results of its text: `info` has the names of the entries of `info`, the first `places` of which are
    known at the start of an episode, too; `terms` are the terms of the reward.
    """

    info: ClassVar[tuple[str, ...]] = ()
    places: ClassVar[int] = 0
    terms: ClassVar[tuple[str, ...]] = ()
    drawn_at_first: ClassVar[int] = 0  # number of random numbers used at the start of an episode

    def __init_subclass__(cls, **how: Any) -> None:
        super().__init_subclass__(**how)
        if wrong := [name for name in ("observation", "rewards", "terminated") if name in vars(cls)]:
            raise TypeError(
                f"{cls.__name__}.{wrong[0]}: the text of a CompiledTask is compiled; to define a task by functions of "
                "snapshots, derive it from SnapshotTask or use RobotTask"
            )

    def text(self, robots: ParallelRobots, now: Now) -> Any:
        """Return the text for one thread, whose robot is `now`: a named tuple with the methods listed in `episode_loop`."""
        raise NotImplementedError

    def seen(self, links: Links) -> int:
        """Return the size of an observation."""
        raise NotImplementedError

    def memory(self, links: Links) -> int:
        """Return the count of numbers that the task stores for each robot between steps."""
        return 0


def called(links: Links, function: CompiledFunction[Any], now: Now, *results: Array) -> MachineCall:
    """Return a call of a function of q and v of `now`. Raises NotImplementedError for functions that are not machine code."""
    if function.address is None:
        raise NotImplementedError(f"{function.name} of {links.robot.name} is not machine code: the robot is too large")
    arguments = {"q": now.q, "v": now.v, "parameters": now.parameters, "armature": now.armature}
    arrays: Sequence[Array] = [*(arguments[x.name] for x in function.program.inputs), *results]
    links.called[function.address] = function
    return machine_call(function, *arrays)
