"""Episodes of tasks: with compiled texts, arrays of all robots and calls of the loop over them; of snapshots, NumPy."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array
from ..engine.loops.kernels import Table
from ..engine.loops.prepared_calls import Result, prepared_call, reader
from ..engine.threads import processors, share_out
from ..simulation.stage_records import FleetArrays
from .compiled_task import CompiledTask
from .episode_loop import ACT, ARRIVE, BEGIN, OBSERVE, WORK_ON_EPISODES, Episode, Episodes, Now
from .parallel_robots import EVERY, ParallelRobots
from .reset_noise import ResetNoise
from .snapshot import Snapshot
from .task import Moved, SnapshotTask, StepInfo, Terms

FEW = 16  # robots for each thread
GRAIN = 8
OF_ADDRESSES = "_bound", "_act", "_arrive", "_run", "_ones", "_seen", "_reward", "_ended"


class _Bound(NamedTuple):
    """Arrays for which the calls of the loop were prepared."""

    fleet: FleetArrays
    many: Table
    robots: Table


class CompiledEpisodes:
    """Episodes of many robots with a `CompiledTask`."""

    def __init__(self, task: CompiledTask, robots: ParallelRobots) -> None:
        self.task, self.robots = task, robots
        self._size, facts = len(robots.simulation.q), (*task.info, *task.terms)
        one = self._episode()
        n, now = self._size, one.now
        self.arrays = Episodes(
            which=np.zeros(n, np.int64), action=np.zeros((n, len(now.action))), control=robots.control,
            memory=np.zeros((n, len(now.memory))), drawn=np.zeros((n, 2), np.int64),
            seen=np.zeros((n, task.seen(robots.links))), facts=np.zeros((n, len(facts))), entries=len(task.info),
            reward=np.zeros(n), ended=np.zeros(n, bool), failed=np.zeros(n, bool),
        )  # fmt: skip
        self._info = StepInfo(facts, self.arrays.facts, {"simulation_failed": self.arrays.failed})
        self._bound: _Bound | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return all attributes except addresses."""
        return {name: x for name, x in vars(self).items() if name not in OF_ADDRESSES} | {"_bound": None}

    def begin(self, which: Array, noise: ResetNoise) -> Terms:
        """Begin the next episodes of robots (k,), and return their entries of `info`."""
        task, links, a = self.task, self.robots.links, self.arrays
        qpos, qvel = task.beginning(links.home, links.robot.nv, noise, which)
        self.robots.begin(which, qpos, qvel)
        a.drawn[which, 0], a.drawn[which, 1] = noise.keys(which), task.drawn_at_first
        self._work_on(which, BEGIN)
        facts = a.facts[which]
        return {name: facts[:, k] for k, name in enumerate(task.info[: task.places])}

    def observe(self, which: Array | slice = EVERY) -> Array:
        """Return the observations (k, numbers) of robots in their current states."""
        numbers = np.arange(self._size)[which]
        self._work_on(numbers, OBSERVE)
        return self.arrays.seen[numbers]

    def advance(self, action: Array) -> Moved | None:
        """Take a step of the environment under actions (robots, actions), or none if an action is not finite."""
        if not self.act(action):
            return None
        self.robots.advance(self.task.frame_skip)
        return self.arrive()

    def act(self, action: Array) -> bool:
        """Compute the controls (robots, nu) for actions (robots, actions); return whether all actions are finite."""
        self.arrays.action[...] = action
        self._prepare()
        return self._act() == self._size

    def arrive(self) -> Moved:
        """Evaluate the result of a step."""
        self._prepare()
        self._arrive()
        return Moved(self._seen(), self._reward(), self._ended(), self._info)

    def _work_on(self, which: Array, work: int) -> None:
        """Work on robots (k,)."""
        self._prepare()
        self.arrays.which[: len(which)] = which
        self._share(work, len(which))

    # calls of the loop

    def _prepare(self) -> None:
        """Prepare the calls for the current arrays of the simulation."""
        fleet = self.robots.simulation.fleet_arrays
        if self._bound is not None and self._bound.fleet is fleet:
            return
        bound = self._bound = _Bound(fleet, Table(self.arrays), Table(fleet))
        one = Table(self._episode())
        self._ones = deque([one])
        self._run = WORK_ON_EPISODES.for_tables(one, bound.many, bound.robots)
        self._act, self._arrive = self._whole(ACT), self._whole(ARRIVE)
        results = self.arrays.seen, self.arrays.reward, self.arrays.ended
        self._seen, self._reward, self._ended = (reader(Result(x)) for x in results)

    def _whole(self, work: int) -> Callable[[], int]:
        """Return the call that works on all robots."""
        if self._size > FEW:
            return partial(self._share, work, self._size)
        assert self._bound is not None
        tables = self._ones[0], self._bound.many, self._bound.robots
        return prepared_call(self._run, *(t.address for t in tables), 0, self._size, work, kept=tables, brief=True)

    def _share(self, work: int, count: int) -> int:
        """Work on the first `count` robots, or on the robots in `which`, with as many threads as pay off; return the sum."""
        assert self._bound is not None
        done: list[int] = []
        many, robots = self._bound.many.address, self._bound.robots.address

        def piece(first: int, stop: int) -> None:
            try:
                one = self._ones.pop()
            except IndexError:
                one = Table(self._episode())
            done.append(self._run(one.address, many, robots, first, stop, work))
            self._ones.append(one)

        share_out(piece, count, 1 if count <= FEW else self.robots.threads or processors(), GRAIN)
        return sum(done)

    def _episode(self) -> Episode:
        """Return the data of one thread."""
        robots, task = self.robots, self.task
        links, varied = robots.links, robots.simulation.fleet_arrays.varied
        robot, own = links.robot, len(varied.parameters) > 0
        actions = len(task.action_bounds(links)[0])
        now = Now(
            np.array(links.home), np.zeros(robot.nv), np.array(links.home), np.zeros(robot.nv), np.zeros(actions),
            np.zeros(len(robot.controls)), np.zeros(task.memory(links)), np.zeros(2, np.int64),
            np.zeros((len(robot.bodies) if own else 0, 10)), np.zeros(varied.own_armature.shape[1] if own else 0),
        )  # fmt: skip
        return Episode(task.text(robots, now), now, links.order.arrays())


class SnapshotEpisodes:
    """Episodes of many robots with a `SnapshotTask`."""

    def __init__(self, task: SnapshotTask, robots: ParallelRobots) -> None:
        self.task, self.robots = task, robots
        self._last: tuple[Snapshot, int] | None = None  # after the last step, with the simulation's revision

    def begin(self, which: Array, noise: ResetNoise) -> Terms:
        """Begin the next episodes of robots (k,), and return their entries of `info`."""
        links = self.robots.links
        self.robots.begin(which, *self.task.beginning(links.home, links.robot.nv, noise, which))
        return self.task.position_info(self.robots.snapshot(which))

    def observe(self, which: Array | slice = EVERY) -> Array:
        """Return the observations (k, ...) of robots in their current states."""
        return self._observation(self.robots.snapshot(which, self.task.asks_for_forces))

    def advance(self, action: Array) -> Moved | None:
        """Take a step of the environment under actions (robots, actions), or none if an action is not finite."""
        if not np.isfinite(action).all():
            return None
        task, before, action = self.task, self._before(), np.asarray(action, np.float64)
        self.robots.control[...] = action
        self.robots.advance(task.frame_skip)
        failed = self.robots.simulation.failed
        after = self.robots.snapshot(forces=task.asks_for_forces)
        self._last = after, self.robots.simulation.revision
        terms = task.rewards(before, after, action)
        info = {**task.position_info(after), **task.motion(before, after), **terms, "simulation_failed": failed}
        rewards, numbers = _sum(terms, len(failed)), np.zeros((len(failed), 0))
        return Moved(self._observation(after), rewards, task.terminated(after) | failed, StepInfo((), numbers, info))

    def _before(self) -> Snapshot:
        """Return the snapshot before a step: the one after the last step, unless the state has changed since."""
        if self._last is not None and self._last[1] == self.robots.simulation.revision:
            return self._last[0].as_before()
        return self.robots.snapshot()

    def _observation(self, now: Snapshot) -> Array:
        """Return the task's observation, in memory that no snapshot shares."""
        seen = self.task.observation(now)
        shared = seen.base is not None
        for x in now.__dict__.values():
            shared = shared or x is seen
        return seen.copy() if shared else seen


def _sum(terms: Terms, robots: int) -> Array:
    """Return the rewards (robots,), sums of their terms."""
    parts = iter(terms.values())
    total = np.array(next(parts, 0.0), np.float64)
    for x in parts:
        total = total + x
    return total if total.shape == (robots,) else np.broadcast_to(total, robots).copy()
