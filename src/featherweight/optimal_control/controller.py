"""Model predictive control: an optimal control problem that is solved at each tick from the current state."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..array_types import Array, Vector
from ..checks import FINITE, POSITIVE, argument
from ..engine.exclusive import Use, exclusive
from ..engine.loops.standalone import StandaloneLoop
from ..names import knows_keywords
from ..robot.checked_states import one_state
from ..robot.robot import Robot
from ..simulation.arguments import check_count
from .control import FIRST, knots_passed
from .problem import OptimalControl, check_problem
from .solver import COST, VIOLATION
from .standalone import standalone_control
from .workspace import Settings, Workspace

HERTZ = POSITIVE.worded("a positive number of ticks per second")
TIME = FINITE.worded("a finite number of seconds")


class Controller:
    """A controller that solves a problem at each tick, starting from its last plan, shifted by the elapsed time.

        mpc = featherweight.Controller(ocp, frequency=100, targets={"tool": T})
        sim.run(2.0, mpc)

    A tick runs `iterations` iterations of the solver, one by default (real-time iteration; Diehl et al. 2005), and up to three
    more while no step decreases the merit. It then updates the multipliers of the constraints, with which the next tick begins;
    constraints on contact forces, such as friction, remain penalties. Between ticks, the controls follow the plan with its
    feedback, within the limits of controls and joint forces that `OptimalControl.limit` sets. You may replace `targets` and
    `parameters` at any time. If the phases of a problem repeat, the horizon moves along their cycle, which starts at the first
    tick. Each place in the cycle has memory of its own, with as many knots as the horizon there has steps and impacts; an
    impact enters with its phase, and leaves with its first step.

    With free steps, the horizon shrinks: a tick starts from the rest of the last plan in time, which as many, shorter steps
    divide (Rösmann, Hoffmann and Bertram 2015). When the steps are the shortest, the horizon moves along as with given steps;
    it should then last several ticks. One iteration a tick lengthens steps slowly: call `reset` if a target jumps. Constraints
    are then penalties, without multipliers.

    Copies and pickles go on with the plan; another process reads the compiled functions from the cache. A call while another
    thread is in one raises RuntimeError: give each thread a copy.

    Raises ValueError for other problems with several phases, and for a frequency that is not positive.
    """

    @knows_keywords
    def __init__(
        self,
        ocp: OptimalControl,
        *,
        frequency: float,
        iterations: int = 1,
        targets: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        check_problem("Controller", ocp)
        if len(ocp._spans()) > 1 and not ocp.repeats:
            raise ValueError(
                f"Controller: the {len(ocp.phases)} phases of the problem do not repeat; give it phases= and knots=, or one "
                "phase without an impact"
            )
        argument("Controller: frequency", frequency, HERTZ)
        self.ocp, self.period = ocp, 1.0 / frequency
        self.iterations = check_count("Controller: iterations", iterations, 1)
        self.targets, self.parameters = targets, parameters
        self._use = Use(f"the controller of {ocp.robot.name!r}", "make one for each thread, such as copy.copy(controller)")
        self._given: tuple[Any, Any] | None = None
        self._parameters: Array = np.zeros(0)
        self._step = float(ocp.dt.max())
        self._works = self._made()
        self.reset()

    def __repr__(self) -> str:
        return f"<Controller of {self.ocp.robot.name!r}: {self.ocp.knots} knots, a tick each {self.period:g} s>"

    def _made(self) -> list[Workspace]:
        """Return workspaces for the windows of the problem."""
        return [self.ocp._window(k).pool.make() for k in range(self.ocp.period if self.ocp.repeats else 1)]

    @exclusive
    def __getstate__(self) -> dict[str, Any]:
        """Return all attributes, and the plan in place of the workspaces."""
        return vars(self) | {"_works": [x.copy() for x in self._work.solution], "_use": copy.copy(self._use)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        plan, self._works = self._works, self._made()
        for x, own in zip(self._work.solution, plan, strict=True):
            x[:] = own

    @exclusive
    def reset(self) -> None:
        """Discard the plan."""
        self.time = -math.inf  # start of the plan [s]
        self._knot = 0  # knot of the cycle at which the plan begins
        self._ahead = 0.0  # time by which the knots are ahead of the plan's begin [s]: ticks do not come at knots

    @property
    def _work(self) -> Workspace:
        """The workspace that contains the plan."""
        return self._works[self._knot]

    @property
    def robot(self) -> Robot:
        """The robot of the problem."""
        return self.ocp.robot

    @property
    def knot(self) -> int:
        """The knot of the cycle, without impacts, at which the plan begins; 0 if phases do not repeat."""
        return self._knot

    @property
    def duration(self) -> float:
        """The duration of the plan [s]: with free steps, the time from the last tick to its end."""
        return self._step * self.ocp.knots

    @property
    def cost(self) -> float:
        """The cost of the plan."""
        return float(self._work.solver.numbers[COST])

    @property
    def violation(self) -> float:
        """The largest violation of a constraint in the plan."""
        return float(self._work.solver.numbers[VIOLATION])

    @exclusive
    def __call__(self, time: float, q: ArrayLike, v: ArrayLike) -> Any:
        """Return the joint forces tau (nv) at a time [s], for q (nq) and v (nv).

        With actuators, return (zeros, their controls). Raises ValueError for q and v of wrong shapes, and for numbers that
        are not finite.
        """
        q, v = checked_state("Controller", self.ocp.robot, time, q, v)
        if time >= self.time + self.period * (1.0 - 1e-9) or time < self.time:
            self._solve(time, q, v)
        return inputs_of(self.ocp, self._work.follow((time, self.time, self._step), q, v, self.ocp.control_limits))

    @exclusive
    def update(self, time: float, q: ArrayLike, v: ArrayLike) -> None:
        """Solve the problem from q and v at a time [s]. Raises ValueError as a call does."""
        self._solve(time, *checked_state("Controller", self.ocp.robot, time, q, v))

    def standalone(self) -> StandaloneLoop:
        """Return the kernel of a tick for `featherweight.export`; it begins as after `reset`, with the targets at present.

        Targets that change along the horizon are inputs for each knot."""
        windows = [self.ocp._window(k) for k in range(len(self._works))]
        works = [Workspace(w.layout, self.ocp._steps, without_python=True) for w in windows]
        given = works[0].layout.numbered_parameters(self.ocp.robot.neutral(), self.targets, self.parameters)
        return standalone_control(self.ocp, works, self.period, self.iterations, checked_numbers("Controller", given))

    def _solve(self, time: float, q: Vector, v: Vector) -> None:
        iterations, given = self.iterations, (self.targets, self.parameters)
        fresh = not time >= self.time or self.time == -math.inf
        passed = 0 if fresh else knots_passed(time - self.time - self._ahead, self._step)
        knot = 0 if fresh else (self._knot + passed) % len(self._works)
        before, work = self._work, self._works[knot]
        if self._given is None or any(a is not b for a, b in zip(given, self._given, strict=True)):
            self._parameters = checked_numbers("Controller", work.layout.numbered_parameters(q, *given))
            self._given = given
        try:
            work.parameters[:] = work.layout.at_knots(self._parameters)
            if fresh:
                work.begin(q, v, work.parameters, None)
                iterations = max(FIRST, iterations)
            elif self.ocp.free:
                work.move_in_time(time - self.time, q, v)
            else:
                work.move_on(before, min(passed, self.ocp.knots), q, v)
            work.run_on(Settings(iterations, 0.0, 0.0, is_tick=not self.ocp.free))
            moves = not fresh and not self.ocp.free
            self._ahead = self._ahead + (passed * self._step - (time - self.time)) if moves else 0.0
            self.time, self._knot, self._step = time, knot, work.free_step if self.ocp.free else self._step
        except BaseException:  # Ctrl-C: the tick is not complete
            self.time, self._knot = -math.inf, 0  # as `reset`
            raise


def inputs_of(ocp: OptimalControl, u: Vector) -> Any:
    """Return joint forces (nv,) for controls, or with actuators (zeros, the controls)."""
    tau = np.zeros(ocp.robot.nv)
    if ocp.actuators:
        return tau, u
    tau[list(ocp.driven)] = u
    return tau


def checked_state(owner: str, robot: Robot, time: float, q: ArrayLike, v: ArrayLike) -> tuple[Vector, Vector]:
    """Return q (nq) and v (nv) as arrays. Raises ValueError for others, and for numbers that are not finite."""
    argument(f"{owner}: time", time, TIME)
    return one_state(owner, robot, q, v)


def checked_numbers(owner: str, flat: Array) -> Array:
    """Return targets and parameters (knots + 1 or 1, numbers). Raises ValueError for those of several problems."""
    if flat.ndim > 2:
        raise ValueError(f"{owner}: targets and parameters must be those of one problem; got {flat.shape[:-2]} of them")
    return flat
