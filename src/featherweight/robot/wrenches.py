"""Forces and moments at frames, as external forces on bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.frames import wrench_on_body
from ..array_types import Array
from ..checks import ARRAY, argument, one_of, shown
from ..engine.function import CompiledFunction
from ..engine.program import ComposedProgram, Input, KernelProgram, Output
from ..model.types import FRAME, AnyFrame
from ..names import knows_keywords
from .frame_functions import frame_placement
from .system import System

AXES = one_of(("world", "local"))
ZERO = (0.0, 0.0, 0.0)


class Wrench:
    """A force and a moment at a frame of a robot, a function of q: rows (..., nbodies, 6) for `external_forces`.

    `Robot.wrench` makes it. `force` [N], `moment` [N m] and `at` [m] may be assigned.
    """

    def __init__(self, robot: System, frame: AnyFrame, axes: str) -> None:
        self.robot, self.frame, self.axes = robot, frame, axes
        self._wrench, self._at = np.zeros(6), np.zeros(3)
        self._function = _function(robot, frame, axes)

    @property
    def force(self) -> Array:
        """The force (3,) [N]."""
        return self._wrench[:3].copy()

    @force.setter
    def force(self, force: ArrayLike) -> None:
        self._wrench[:3] = self._vector("force", force)

    @property
    def moment(self) -> Array:
        """The moment (3,) [N m]."""
        return self._wrench[3:].copy()

    @moment.setter
    def moment(self, moment: ArrayLike) -> None:
        self._wrench[3:] = self._vector("moment", moment)

    @property
    def at(self) -> Array:
        """The point (3,) [m] at which the force acts, in the frame."""
        return self._at.copy()

    @at.setter
    def at(self, at: ArrayLike) -> None:
        self._at[:] = self._vector("at", at)

    def _vector(self, name: str, x: ArrayLike) -> Array:
        vector: Array = np.asarray(argument(f"wrench: {name}", x, ARRAY), float)
        if vector.shape != (3,) or not np.isfinite(vector).all():
            raise ValueError(f"wrench: {name} must be three finite numbers; got {shown(x)}")
        return vector

    def __call__(self, q: ArrayLike) -> Array:
        """Return the external forces (..., nbodies, 6) at q (..., nq): those of other bodies are zero."""
        rows: Array = self._function(q, self._wrench, self._at)
        return rows

    def __repr__(self) -> str:
        return f"<Wrench at {self.frame!r}: force {self.force}, moment {self.moment}, {self.axes} axes>"


@knows_keywords
def wrench(
    robot: System,
    frame: AnyFrame,
    force: ArrayLike = ZERO,
    moment: ArrayLike = ZERO,
    *,
    at: ArrayLike = ZERO,
    axes: str = "world",
) -> Wrench:
    """Return a force [N] and a moment [N m] at a frame as a function of q: rows for `external_forces`.

        push = robot.wrench("hand", force=[0.0, 0.0, -20.0])
        sim.step(tau, external_forces=push(sim.q))
        tau = robot.inverse_dynamics(q, v, a, external_forces=push(q))

    `frame` is a name (a link, for example) or a `featherweight.Frame`. The force acts at the point `at` [m] of the frame,
    (3,) in the frame's axes, its origin by default. `axes` of force and moment are those of the "world", or "local", those of
    the frame. Forces of several frames add up: `push(q) + pull(q)`. Raises ValueError for an unknown frame, and for one on the
    ground.
    """
    argument("wrench: axes", axes, AXES)
    argument(f"{robot.name}: frame", frame, FRAME)
    made = Wrench(robot, frame, axes)
    for name, given in (("force", force), ("moment", moment), ("at", at)):
        if given is not ZERO:
            setattr(made, name, given)
    return made


def _function(robot: System, frame: AnyFrame, axes: str) -> CompiledFunction[Any]:
    """Return the function of q, the wrench and its point, compiled once for a frame."""

    def make() -> CompiledFunction[Any]:
        placed = robot.frame(frame)
        number = {body.name: k for k, body in enumerate(robot.bodies)}
        if placed.body is None:
            raise ValueError(f"{robot.name}: frame {placed.name!r} is fixed to the ground, where forces have no effect")
        placement = frame_placement(robot, frame).program
        pose, given = placed.placement, (Input("wrench", (6,)), Input("at", (3,)))
        inputs = Input(placement.outputs[0].name, (4, 4)), *given
        constants = number[placed.body], pose.R, pose.p, axes == "world"
        kernel = KernelProgram("wrench", wrench_on_body, constants, inputs, (Output("rows", (len(number), 6)),))
        return CompiledFunction(ComposedProgram("wrench", (placement, kernel), ("rows",), first=("q",)), robot.execution)

    return robot._kept(("wrench", frame, axes), make)
