"""Rows of the table of simulations, and medians of alternating calls."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import mujoco
import numpy as np

HEADER = ["simulation", "call", "ours [µs per step]", "MuJoCo [µs per step]", "ratio", "remark"]


class Row(NamedTuple):
    """A row of the table; times are microseconds per step of one robot."""

    what: str
    call: str
    ours: float
    theirs: float
    remark: str = ""

    def cells(self) -> list[str]:
        ratio = self.theirs / self.ours
        return [self.what, self.call, f"{self.ours:.2f}", f"{self.theirs:.2f}", f"{ratio:.2f}", self.remark]


def clock() -> float:
    """Return the wall time [s], or the processor time if SIMULATION_CLOCK=cpu, for machines with other users."""
    return time.process_time() if os.environ.get("SIMULATION_CLOCK") == "cpu" else time.perf_counter()


def alternating(calls: Sequence[Callable[[], Any]], rounds: int) -> list[float]:
    """Return the median time of each of alternating calls [s]. A call that returns a float has measured its own time."""
    samples: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    for _ in range(rounds):
        for call, sample in zip(calls, samples, strict=True):
            begun = clock()
            own = call()
            spent = clock() - begun
            sample.append(own if isinstance(own, float) else spent)
    return [float(np.median(s)) for s in samples]


def warned(*datas: Any) -> str:
    """Return MuJoCo's warnings in simulations as a remark."""
    kinds = [mujoco.mjtWarning(k) for k in range(int(mujoco.mjtWarning.mjNWARNING))]
    numbers = {kind.name: sum(d.warning[int(kind)].number for d in datas) for kind in kinds}
    return ", ".join(f"MuJoCo warned {n} times: {name}" for name, n in numbers.items() if n)
