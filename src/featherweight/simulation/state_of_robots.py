"""The state of a simulation: read, assigned, and begun anew."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..contact.laws import RIGID
from ..robot.start import drawn
from .arguments import chosen_robots, named_configuration, numbers, states
from .fleet import Fleet
from .joint_limits import JointLimits
from .observations import Observations
from .sensor_history import SensorHistory

Array = np.ndarray[Any, np.dtype[Any]]


class StateOfRobots(Observations):
    """Time, configurations and velocities of a `Simulation`, and what holds these."""

    integrator: str
    time: float  # [s]
    steps: int  # since it began
    _start: float  # [s]
    _fleet: Fleet
    _touching: bool
    _limits: JointLimits
    on_failure: str

    def reset(self, q: Any = None, v: Any = None, time: float = 0.0, *, which: Any = None) -> None:
        """Begin at a configuration q (..., nq), or the one of that name ("home"), and velocity v (..., nv), zero unless given.

        Unless q is given, it is the configuration of the file (`Robot.start`). A q slightly beyond limits is pushed back (see
        `Simulation`).

        `which` (robots,) bool, or numbers of robots, are those of many that begin anew, at a state for each or one for all;
        the others, and time, go on.

        Raises ValueError for wrong shapes, numbers that are not finite, quaternions that are not of unit length (those of four
        digits or more are normalized), loops that are open, joints far beyond their limits, or a name that is none.
        """
        if isinstance(q, str):
            q = named_configuration(self.robot, q)
        q, v = self._checked(q, v)
        if not math.isfinite(time):
            raise ValueError(f"time must be a finite number of seconds; got {time!r}")
        if which is not None:
            self._reset_some(which, q, v)
            return
        self._single = q.ndim == 1
        self.time, self.steps = float(time), 0
        self._start = self.time
        many = (q[None], v[None]) if self._single else (q, v)
        self._fleet.reset(*many)
        sampled = any(s.sensor.sampling is not None for s in self.robot.sensors)
        self._history = SensorHistory(self.robot.sensors, len(many[0]), self.step_size, self.time) if sampled else None

    def _reset_some(self, which: Any, q: Array, v: Array) -> None:
        robots = len(self._fleet.q)
        some = chosen_robots(which, robots)
        if q.ndim > 1 and len(q) == robots != len(some):
            q, v = q[some], v[some]
        if q.ndim > 1 and len(q) != len(some):
            raise ValueError(f"q and v must be of one robot, of the {len(some)} chosen, or of all {robots}; got {len(q)}")
        self._fleet.reset_some(some, q, v)
        if self._history is not None:
            self._history.begin(some, self.time)

    def _checked(self, q: Any, v: Any) -> tuple[Array, Array]:
        q, v = states(self.robot, self._start_of_file() if q is None else q, v)
        if self._model.looped:
            opening = float(self.robot.opening(q).max())  # type: ignore[attr-defined]
            if opening > 1e-6:
                raise ValueError(f"q: loops are open by {opening:.3g}; close it with robot.close(q)")
        if self._holds_rigidly:
            self._limits.check(q)
        return q, v

    def _start_of_file(self) -> Array:
        """Return where the robot starts unless told otherwise; limits that yield may be passed."""
        return self.robot.start() if self._holds_rigidly else drawn(self.robot)

    @property
    def _holds_rigidly(self) -> bool:
        return self._stage.settings.law == RIGID

    @property
    def q(self) -> Array:
        """The configuration, (nq,) or (robots, nq), to be read only; another one may be assigned, as in `reset`."""
        return self._seen(self._fleet.q)

    @q.setter
    def q(self, q: Any) -> None:
        self._put(q, self._seen(self._fleet.v))

    @property
    def v(self) -> Array:
        """The velocity, (nv,) or (robots, nv), to be read only; another one may be assigned."""
        return self._seen(self._fleet.v)

    @v.setter
    def v(self, v: Any) -> None:
        self._put(self._seen(self._fleet.q), v)

    @property
    def activation(self) -> Array:
        """Activations of the actuators that have one, (na,) or (robots, na), in the order of `robot.actuators`.

        They are zero at first; others may be assigned: one for each robot, or (na,) for all. Raises ValueError for other
        shapes and for numbers that are not finite.
        """
        return self._seen(self._fleet.activation)

    @activation.setter
    def activation(self, activation: Any) -> None:
        given, shape = numbers("activation", activation), self._fleet.activation.shape
        if given.shape not in (shape[1:], shape) or not np.isfinite(given).all():
            raise ValueError(f"activation must be finite numbers of shape {shape[1:]} or {shape}; got shape {given.shape}")
        self._fleet.activation[:] = given

    def _seen(self, x: Array) -> Array:
        """A state as others see it: what was read stays as it was."""
        copied = (x[0] if self._single else x).copy()
        copied.flags.writeable = False
        return copied

    def _put(self, q: Any, v: Any) -> None:
        """Go on from another state of as many robots; time does not begin anew."""
        q, v = self._checked(q, v)
        if q.shape != self.q.shape:
            raise ValueError(f"q and v must be of as many robots as there are: shapes {self.q.shape} and {self.v.shape}")
        self._fleet.put(*((q[None], v[None]) if self._single else (q, v)))

    @property
    def revision(self) -> int:
        """A number that grows with each change of the state and with `vary`; what was computed before is then outdated."""
        return self._fleet.revision

    @property
    def failed(self) -> Array:
        """Which robots (robots,) could not take the last step; with `on_failure` "stop", which have stopped."""
        failed: Array = self._fleet.failed.copy()
        return failed
