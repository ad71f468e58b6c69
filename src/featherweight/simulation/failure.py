"""Error of a simulation whose step fails."""

from __future__ import annotations

from ..checks import checked
from ..summaries import visible


class SimulationError(RuntimeError):
    """A time step that fails. The state is the one before the step.

    `what` is the message without time and robot; `time` [s] is the time of that state; `robot` is the number in a batch (0 for
    a single robot).
    """

    @checked
    def __init__(self, what: str, time: float, robot: int = 0, batch: int = 1) -> None:
        where = f" in robot {robot} of {batch}" if batch > 1 else ""
        what = visible(what)
        super().__init__(f"at t = {time:.9g} s{where}: {what}; the state before this step is kept")
        self.what = what
        self.time = time
        self.robot = robot
        self._batch = batch

    def __reduce__(self) -> tuple[type[SimulationError], tuple[str, float, int, int]]:
        """Return the arguments, because copies and pickles otherwise take the message as the first of them."""
        return type(self), (self.what, self.time, self.robot, self._batch)
