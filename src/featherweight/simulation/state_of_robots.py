"""The state of a simulation: access, assignment and reset."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..array_types import Array, Booleans
from ..checks import FINITE, argument
from ..contact.laws import RIGID
from ..engine.exclusive import exclusive
from ..names import knows_keywords
from .arguments import chosen_robots, named_configuration, numbers, states
from .fleet import Fleet
from .joint_limits import JointLimits
from .observations import Observations
from .sensor_history import SensorHistory
from .state import State

TIME = FINITE.worded("a finite number of seconds")


class StateOfRobots(Observations):
    """Time, configurations and velocities of a `Simulation`, with its robot and its fleet."""

    integrator: str
    _fleet: Fleet
    _touching: bool
    _limits: JointLimits
    on_failure: str

    @exclusive
    @knows_keywords
    def reset(
        self, q: ArrayLike | None = None, v: ArrayLike | None = None, time: float = 0.0, *, which: ArrayLike | None = None
    ) -> None:
        """Start again at a configuration q (..., nq), or a named one ("home"), and velocity v (..., nv), zero by default.

        The default of q is the file's initial configuration (`Robot.start`). Joints slightly beyond their limits are moved back
        (see `Simulation`).

        `which`, (robots,) bool or numbers of robots, resets only some of many robots, with one state for each or one for all.
        Time, and the states of all other robots, do not change.

        Raises ValueError for wrong shapes, non-finite numbers, quaternions without unit length (errors up to 1e-3 are
        normalized), open loops, joints far beyond their limits, and unknown names.
        """
        if isinstance(q, str):
            q = named_configuration(self.robot, q)
        q, v = self._checked(q, v)
        argument("time", time, TIME)
        if which is not None:
            self._reset_some(which, q, v)
            return
        time, single = float(time), q.ndim == 1
        many = (q[None], v[None]) if single else (q, v)
        sampled = any(s.sensor.sampling is not None for s in self.robot.sensors)
        history = SensorHistory(self.robot.sensors, len(many[0]), self.step_size, time) if sampled else None
        self._fleet.reset(many[0], many[1], time)
        self._single, self._history = single, history

    def _reset_some(self, which: ArrayLike, q: Array, v: Array) -> None:
        robots = len(self._fleet.q)
        some = chosen_robots(which, robots)
        if q.ndim > 1 and len(q) == robots != len(some):
            q, v = q[some], v[some]
        if q.ndim > 1 and len(q) != len(some):
            raise ValueError(f"q and v must have 1 row, {len(some)} rows (chosen robots) or {robots} rows (all); got {len(q)}")
        self._fleet.reset_some(some, q, v)
        if self._history is not None:
            self._history.begin(some, self._fleet.times[some])

    def _checked(self, q: ArrayLike | None, v: ArrayLike | None) -> tuple[Array, Array]:
        q, v = states(self.robot, self._start_of_file() if q is None else q, v)
        if self._model.looped:
            opening = float(self.robot.opening(q).max())  # type: ignore[attr-defined]
            if opening > 1e-6:
                raise ValueError(f"q: loops are open by {opening:.3g}; close them with robot.close(q)")
        if self._holds_rigidly:
            self._limits.check(q)
        return q, v

    def _start_of_file(self) -> Array:
        """Return the default initial configuration; compliant limits may be violated."""
        return self.robot.start(within_limits=self._holds_rigidly)

    @property
    def _holds_rigidly(self) -> bool:
        return self._stage.settings.law == RIGID

    @property
    def q(self) -> Array:
        """The configuration, (nq,) or (robots, nq), read-only. You may assign a new one, as in `reset`."""
        return _snapshot(self._fleet.first_q if self._single else self._fleet.q)

    @q.setter
    @exclusive
    def q(self, q: ArrayLike | None) -> None:
        self._put(q, self.v)

    @property
    def v(self) -> Array:
        """The velocity, (nv,) or (robots, nv), read-only. You may assign a new one."""
        return _snapshot(self._fleet.first_v if self._single else self._fleet.v)

    @v.setter
    @exclusive
    def v(self, v: ArrayLike | None) -> None:
        self._put(self.q, v)

    @property
    def state(self) -> State:
        """The state as a value, which later steps do not change (see `State`). You may assign one, to continue from there.

        It may come from another simulation of the same robot and scene with the same step length, and from another number of
        robots, each of which then becomes a robot of this simulation. Raises ValueError for the state of another robot, scene
        or step length, and for another number of robots than `vary` was given; this simulation then remains as it was. Robots
        that had stopped (`on_failure="stop"`) go on from a state that is assigned. Robots restart (`on_failure="reset"`) where
        the last reset put them or, if a state changes their number, at that state's configuration and velocity.
        """
        lock = self._use.lock
        try:  # as `exclusive`, which would take twice as long
            if not lock.acquire(False):
                self._use.refuse()
            return self._fleet.state(self._single, self._history and self._history.copy())
        finally:
            try:  # noqa: SIM105
                lock.release()
            except RuntimeError:  # refused
                pass

    @state.setter
    @exclusive
    def state(self, state: State) -> None:
        self._fleet.put_state(state)
        self._single, self._history = state.single, None if state.history is None else state.history.copy()

    @property
    def activation(self) -> Array:
        """Activations of the actuators that have one, (na,) or (robots, na), in the order of `robot.actuators`.

        They start at zero. You may assign new ones: one row for each robot, or (na,) for all. Raises ValueError for wrong
        shapes and for non-finite numbers.
        """
        return _snapshot(self._fleet.activation[0] if self._single else self._fleet.activation)

    @activation.setter
    @exclusive
    def activation(self, activation: ArrayLike | None) -> None:
        given, shape = numbers("activation", activation), self._fleet.activation.shape
        if given.shape not in (shape[1:], shape) or not np.isfinite(given).all():
            raise ValueError(f"activation must be finite numbers of shape {shape[1:]} or {shape}; got shape {given.shape}")
        self._fleet.revision += 1
        self._fleet.activation[:] = given

    def _put(self, q: ArrayLike | None, v: ArrayLike | None) -> None:
        """Continue from another state of the same number of robots, without resetting the time."""
        q, v = self._checked(q, v)
        if q.shape != self.q.shape:
            raise ValueError(f"q and v must have rows for all robots: shapes {self.q.shape} and {self.v.shape}")
        self._fleet.put(*((q[None], v[None]) if self._single else (q, v)))

    @property
    def revision(self) -> int:
        """A counter of changes of the state and of `vary`; results computed at an older revision are outdated."""
        return self._fleet.revision

    @property
    def failed(self) -> Booleans:
        """Return whether each robot (robots,) failed in the last step; with `on_failure="stop"`, whether it has stopped."""
        failed: Booleans = self._fleet.failed.copy()
        return failed


def _snapshot(x: Array) -> Array:
    """Return a read-only copy of a state, which later steps do not change."""
    copied = x.copy()
    copied.setflags(write=False)
    return copied
