"""Error of a simulation for a step that cannot be taken."""

from __future__ import annotations


class SimulationError(RuntimeError):
    """A step that cannot be taken: what happened, when, and where. The state is the last good one, before the step.

    `what` happened, without the rest; `time` [s] is that of the last good state, `robot` which of a batch it was (0 if there
    is one).
    """

    def __init__(self, what: str, time: float, robot: int = 0, batch: int = 1) -> None:
        where = f" in robot {robot} of {batch}" if batch > 1 else ""
        super().__init__(f"at t = {time:.9g} s{where}: {what}; the state before this step is kept")
        self.what = what
        self.time = time
        self.robot = robot
