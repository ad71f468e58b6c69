"""Fleets in MuJoCo in its fastest way: `mujoco.rollout` on all processors, with preallocated results and persistent threads."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np

from featherweight.array_types import Array
from featherweight.engine.threads import processors


class MujocoFleet:
    """Rollouts of `steps` from full states (robots, ...), with controls (robots, steps, nu), or forces as `spec` selects."""

    def __init__(
        self, m: Any, states: Array, steps: int, controls: Array | None = None, spec: Any = mujoco.mjtState.mjSTATE_CTRL
    ) -> None:
        self.model, self.states, self.steps, self.controls, self._spec = m, states, steps, controls, int(spec)
        self.datas = [mujoco.MjData(m) for _ in range(processors())]
        robots = len(states)
        self.made = np.empty((robots, steps, states.shape[1]))
        self._sensed = np.empty((robots, steps, m.nsensordata))

    def __enter__(self) -> MujocoFleet:
        self._runner = mujoco.rollout.Rollout(nthread=len(self.datas))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._runner.close()

    def run(self) -> None:
        self._runner.rollout(
            self.model, self.datas, self.states, self.controls, control_spec=self._spec, nstep=self.steps, state=self.made,
            sensordata=self._sensed,
        )  # fmt: skip

    @property
    def ends(self) -> Array:
        """The full states (robots, ...) after the last rollout."""
        return np.asarray(self.made[:, -1])

    @property
    def end_positions(self) -> Array:
        """The configurations (robots, nq of MuJoCo) after the last rollout."""
        return np.asarray(self.ends[:, 1 : 1 + self.model.nq])


def looked_at(m: Any, states: Array) -> tuple[Array, Array]:
    """Return the heights of the centre of mass [m] and the numbers of MuJoCo's contacts in full states."""
    data = mujoco.MjData(m)
    heights, contacts = np.empty(len(states)), np.empty(len(states))
    for k, state in enumerate(states):
        mujoco.mj_setState(m, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        mujoco.mj_fwdPosition(m, data)
        heights[k], contacts[k] = data.subtree_com[0, 2], data.ncon
    return heights, contacts
