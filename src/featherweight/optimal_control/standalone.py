"""The tick of a controller as a kernel for programs without Python."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..array_types import Array
from ..engine.loops.standalone import ANY, Port, StandaloneLoop, Status
from ..robot.inverse_kinematics.tasks import FrameTask
from ..robot.standalone_facts import limits_of, names_of
from .control import BEGIN, CONTROL, FIRST, NOW, PERIOD, STEP, WINDOW, Control, Window
from .layout import Layout
from .problem import OptimalControl
from .solver import CONVERGED, NOT_FINITE, RETRIES, STALLED
from .solver import ITERATIONS as ALL_ITERATIONS
from .workspace import Workspace


def standalone_control(
    ocp: OptimalControl, works: Sequence[Workspace], period: float, iterations: int, given: Array
) -> StandaloneLoop:
    """Return the tick with workspaces of windows, which nothing else uses.

    `given` are targets and parameters by numbers of knots.
    """
    robot, layout = ocp.robot, works[0].layout
    follow = works[0].following([] if ocp.actuators else [*ocp.driven])
    follow.q[:] = robot.neutral()
    follow.lower[:], follow.upper[:] = ocp.control_limits
    follow.times[[BEGIN, STEP, PERIOD]] = 0.0, float(ocp.dt.max()), period
    last = [w.shifted.copied() if ocp.repeats else None for w in works]
    windows = [
        Window(
            w.solver,
            w.shifted,
            kept,
            w.rest,
            w.between,
            follow._replace(horizon=w.horizon, feedback=w.solver.linear.feedback, first_knots=w.shifted.first_knots),
            np.array(w.layout.numbers, np.int64),
            w.parameters,
        )
        for w, kept in zip(works, last, strict=True)
    ]
    counts = np.array([iterations, 1, 0], np.int64)
    control = Control(windows, given.copy(), counts, follow.times, np.zeros(2))
    cycle = [Port("knot", counts[WINDOW:], "knot of the cycle at which the plan begins", ())] if ocp.repeats else []
    u = Port("u", follow.u, "controls of the actuators") if ocp.actuators else Port("tau", follow.tau, "joint forces")
    frames = [slot.task.frame for slot in layout.slots if isinstance(slot.task, FrameTask)]
    return StandaloneLoop(
        f"Model predictive control: {ocp.knots} knots of {follow.times[STEP]:g} s, a tick each {period:g} s. Between ticks, "
        "the controls follow the plan with its feedback. The first tick begins anew, as does one with an earlier time.",
        CONTROL,
        (control,),
        (),
        (
            Port("now", follow.times[NOW : NOW + 1], "[s]", ()),
            Port("q", follow.q, "configuration"),
            Port("v", follow.v, "velocity"),
            *_parameters(layout, control.given),
        ),
        (
            u,
            Port("cost", control.result[:1], "cost of the plan, without constraints", (), None, ANY),
            Port("violation", control.result[1:], "largest violation of a constraint", (), None, ANY),
            *cycle,
        ),
        (
            Status(CONVERGED, "CONVERGED", "no step improves the plan, or no tick is due"),
            Status(ALL_ITERATIONS, "IMPROVED", "all iterations of the tick have been taken"),
            Status(STALLED, "STALLED", "no step decreases the merit; the plan is the last one"),
            Status(NOT_FINITE, "NOT_FINITE", "the plan is not finite; the next tick begins anew"),
        ),
        valid=(CONVERGED, ALL_ITERATIONS, STALLED),
        kept=[[*w.kept, w.parameters] for w in works],
        overlaid=[[w.written for w in works], [p.memory for p in last if p]],
        bounds={"MOST_ITERATIONS": iterations + RETRIES, "MOST_ITERATIONS_OF_THE_FIRST_TICK": max(FIRST, iterations) + RETRIES},
        names=names_of(robot, frames),
        constants=limits_of(robot),
    )


def _parameters(layout: Layout, given: Array) -> list[Port]:
    """Return targets and parameters: one for all knots, or one for each number of a knot."""
    rows, size = given.shape
    names = [(slot.task.called, slot.shape) for slot in layout.slots]
    names += [(f.called, (f.parameters,)) for f in layout.functions]
    ports = []
    for name, shape in names:
        order, columns = layout.columns(name)
        inner = int(np.prod(shape))
        picked = np.full((rows, size), -1)
        picked[:, columns] = inner * np.arange(rows)[:, None] + order
        outer = shape if rows == 1 else (rows, *shape)
        ports.append(Port(f"target_{name}", given, f"target or parameters of {name!r}", outer, tuple(picked.ravel().tolist())))
    return ports
