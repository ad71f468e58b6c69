"""Tables and numbers that the commands print."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.table import Table

from ..engine.function import CompiledFunction
from ..engine.operations import Operations
from ..engine.program_trace import NODE_BUDGET
from ..model.editing.acting import acted_on
from ..model.model import MovingBody, MovingJoint
from ..model.types import WORLD, Actuator, JointType, Shape
from ..robot.closed import ClosedRobot
from ..robot.robot import Robot
from ..summaries import visible
from .measure import Timing

NAMES = ("joint", "actuator")
COUNTS = ("mul", "add", "div", "sqrt", "trig", "total")
_UNITS = {JointType.REVOLUTE: "rad", JointType.PRISMATIC: "m"}
_PREFIXES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def joints_table(robot: Robot) -> Table:
    """Return a table of joints in order, with their slices of q and v."""
    table = with_columns(plain_table("Joints"), ("#", "joint", "type", "parent → child", "q", "v", "limits"), ("#", "q", "v"))
    for j in robot.joints:
        ends = f"{j.parent or WORLD} → {j.child}"
        table.add_row(str(j.index), j.name, j.type.value, ends, _slice(j.q_slice), _slice(j.v_slice), _limits(j))
    return table


def joint_forces_table(robot: Robot) -> Table | None:
    """Return a table of further forces at joints, without empty columns; None if there are none."""
    columns: dict[str, Callable[[MovingJoint], str]] = {
        "armature": lambda j: _nonzero(j.armature),
        "damping": lambda j: _coefficients(j.damping, j.damping_poly),
        "dry friction": lambda j: _nonzero(j.dry_friction),
        "stiffness": lambda j: _coefficients(j.stiffness, j.stiffness_poly),
        "at rest": lambda j: f"{j.rest:.4g}" if j.has_spring else "",
        "greatest force": lambda j: f"{j.effort:.4g}" if math.isfinite(j.effort) else "",
    }
    table = plain_table("Joint forces", "In SI units, for rotation or translation.")
    rows = [[j.name, *(text(j) for text in columns.values())] for j in robot.joints]
    return _filled(table, ["joint", *columns], [row for row in rows if any(row[1:])])


def actuators_table(robot: Robot) -> Table | None:
    """Return a table of the file's actuators; None if there are none."""
    table = plain_table("Actuators", "Force = gear × clip(gain × clip(u) + b0 + b1 gear q + b2 gear q').")
    headings = ["actuator", "acts on", "gear", "gain", "b0, b1, b2", "u", "force"]
    rows = [
        [
            a.name,
            acted_on(a),
            f"{a.gear:.4g}",
            _law(a),
            ", ".join(f"{b:.4g}" for b in a.bias) if any(a.bias) else "",
            "; ".join(filter(None, (_interval(*within) for within in a.controls.values()))),
            _interval(*a.force),
        ]
        for a in robot.actuators
    ]
    return _filled(table, headings, rows)


def _law(a: Actuator) -> str:
    """Return the gain of an actuator, or the name of its special law."""
    others = {"motor": a.motor, "servo": a.servo, "orientation servo": a.orientation, "muscle": a.muscle}
    return next((name for name, x in others.items() if x is not None), f"{a.gain:.4g}")


def bodies_table(robot: Robot) -> Table:
    """Return a table of moving bodies, with the links of the file that each contains."""
    table = plain_table("Bodies", "Centres of mass are in the bodies' frames in the file.")
    with_columns(table, ("#", "body", "mass [kg]", "centre of mass [m]", "links merged in"), ("#", "mass [kg]"))
    for b in robot.bodies:
        table.add_row(str(b.index), b.name, f"{b.mass:.4g}", _vector(b), ", ".join(b.links[1:]) or "–")
    return table


def totals_table(robot: Robot) -> Table:
    """Return a table of the robot's main numbers."""
    table = _pairs("Robot")
    gravity = ", ".join(f"{x:g}" for x in robot.gravity)
    for what, value in (
        ("name", robot.name),
        ("configuration, nq", str(robot.nq)),
        ("degrees of freedom, nv", str(robot.nv)),
        ("mass", f"{robot.mass:.6g} kg"),
        ("gravity", f"({gravity}) m/s²"),
        ("depth of the tree", _joints(depth(robot))),
        ("named configurations", ", ".join(robot.configurations) or "none"),
        ("collision shapes", _kinds([s for s in robot.shapes if s.collision])),
        ("visual shapes", _kinds([s for s in robot.shapes if s.visual])),
    ):
        table.add_row(what, value)
    return table


def clusters_table(robot: ClosedRobot) -> Table:
    """Return a table of joints that loops and couplings connect."""
    table = plain_table("Clusters", "The smallest sets of joints with all their loops and couplings.")
    with_columns(table, ("loops and couplings", "independent joints", "dependent joints", "left out"))
    joints = {j.name: j for j in robot.joints}
    for tied in robot.tied_joints:
        independent = [n for n in tied.joints if joints[n].v_slice.stop > joints[n].v_slice.start]
        dependent = [n for n in tied.joints if not joints[n].independent]
        left_out = f"{tied.redundant} redundant constraint rows" if tied.redundant else "–"
        table.add_row(tied.constraints, ", ".join(independent), ", ".join(dependent), left_out)
    return table


def unused_table(robot: Robot) -> Table:
    """Return a table of the parts of the file that dynamics does not use."""
    table = _pairs("Contents of the file that are not used")
    for kind, what in robot.report().items():
        table.add_row(kind, what)
    return table


def is_too_long(function: CompiledFunction[Any]) -> bool:
    """Return whether a traced function exceeds the node budget, so that it takes long to count and compile."""
    return function.execution == "traced" and function.too_large


def operations_table(functions: Mapping[str, CompiledFunction[Any]]) -> Table:
    """Return a table of the exact operation counts of each function."""
    caption = "add includes subtractions; trig counts sines and cosines."
    if any(map(is_too_long, functions.values())):
        caption += f"\n–: the trace exceeds {NODE_BUDGET:,} nodes; `robot.NAME.operations` counts in Python."
    table = plain_table("Operations for one state", caption)
    with_columns(table, ("function", "signature", *COUNTS, "execution"), COUNTS)
    for name, function in functions.items():
        numbers = _counted(None if is_too_long(function) else function.operations)
        table.add_row(name, function.signature, *numbers, function.execution)
    return table


def delassus_table(function: CompiledFunction[Any]) -> Table:
    """Return a table of the exact operation counts of the algorithms for the Delassus matrix."""
    m = function.program.outputs[0].shape[0]
    counts, names = function.candidates, [*function.alternatives]
    caption = "For each algorithm; the arrow marks the algorithm that is used."
    if len(counts) < len(names):
        caption += f"\n–: the trace exceeds {NODE_BUDGET:,} nodes."
    table = with_columns(plain_table(f"Delassus matrix ({m}, {m})", caption), ("algorithm", *COUNTS), COUNTS)
    for name in sorted(names, key=lambda name: sum(counts[name]) if name in counts else math.inf):
        table.add_row(f"{name} ←" if name == function.algorithm else name, *_counted(counts.get(name)))
    return table


def _counted(operations: Operations | None) -> list[str]:
    """Return the cells of `COUNTS`."""
    return ["–"] * len(COUNTS) if operations is None else [f"{n:,}" for n in (*operations, sum(operations))]


def timings_table(timings: Sequence[Timing], batch: int, threads: int) -> Table:
    """Return a table of the time per state of each function."""
    table = plain_table("Time for one state", f"Medians. Batches have {batch:,} states and a preallocated result.")
    several = [f"batch, {threads} threads"] * (threads > 1)
    headings = ["function", "call from Python", "batch, 1 thread", *several, "best rate, per second"]
    with_columns(table, headings, headings[1:])
    for t in timings:
        batches = (t.batch,) if threads == 1 else (t.batch, t.threaded)
        table.add_row(t.name, *(format_duration(x) for x in (t.single, *batches)), format_rate(1.0 / min(batches)))
    return table


def depth(robot: Robot) -> int:
    """Return the number of joints between the ground and the farthest body."""
    depths: dict[str | None, int] = {}
    for j in robot.joints:
        depths[j.child] = depths.get(j.parent, 0) + 1
    return max(depths.values(), default=0)


def format_duration(seconds: float) -> str:
    """Return a time with three digits and a unit from nanoseconds to seconds."""
    for size, unit in _PREFIXES:
        if seconds >= size:
            return f"{_three_digits(seconds / size)} {unit}"
    return f"{_three_digits(seconds * 1e9)} ns"


def format_rate(states_per_second: float) -> str:
    """Return a rate with three digits, in millions from a million on."""
    if states_per_second >= 1e6:
        return f"{_three_digits(states_per_second * 1e-6)} million"
    return f"{states_per_second:,.0f}"


def _three_digits(x: float) -> str:
    decimals = max(0, 2 - math.floor(math.log10(x))) if x > 0.0 else 2
    return f"{x:.{min(decimals, 3)}f}"


class VisibleTable(Table):
    """A table that escapes control characters in names, before it measures them."""

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Add a row of cells."""
        super().add_row(*(visible(cell) if isinstance(cell, str) else cell for cell in cells), **options)


def plain_table(title: str, caption: str | None = None) -> Table:
    """Return a table with a title and a single line."""
    return VisibleTable(
        title=title,
        caption=caption,
        title_justify="left",
        caption_justify="left",
        title_style="bold",
        caption_style="dim",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
        show_edge=False,
    )


def with_columns(table: Table, headings: Sequence[str], right: Sequence[str] = ()) -> Table:
    """Return the table with columns added, some of them aligned on the right."""
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left", overflow="fold")
    return table


def _filled(table: Table, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table | None:
    """Return the table with these rows, without empty columns; None without rows."""
    kept = [k for k in range(len(headings)) if any(row[k] for row in rows)]
    shown = [headings[k] for k in kept]
    with_columns(table, shown, [heading for heading in shown if heading not in NAMES])
    for row in rows:
        table.add_row(*(row[k] or "–" for k in kept))
    return table if rows else None


def _pairs(title: str) -> Table:
    table = plain_table(title)
    table.show_header = False
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    return table


def _slice(s: slice) -> str:
    return str(s.start) if s.stop == s.start + 1 else f"{s.start}:{s.stop}"


def _limits(joint: MovingJoint) -> str:
    interval = _interval(joint.lower, joint.upper)
    return f"{interval} {_UNITS.get(joint.type, '')}".rstrip() if interval else "–"


def _interval(lower: float, upper: float) -> str:
    return "" if math.isinf(lower) and math.isinf(upper) else f"{lower:.4g} … {upper:.4g}"


def _coefficients(first: float, others: tuple[float, ...]) -> str:
    return ", ".join(f"{x:.4g}" for x in (first, *others)) if any(others) else _nonzero(first)


def _nonzero(x: float) -> str:
    return f"{x:.4g}" if x else ""


def _kinds(shapes: Sequence[Shape]) -> str:
    """Return the count of shapes of each kind as text."""
    counts = Counter(s.type.value for s in shapes)
    return ", ".join(f"{n} {kind}" for kind, n in counts.most_common()) or "none"


def _joints(n: int) -> str:
    return "1 joint" if n == 1 else f"{n} joints"


def _vector(body: MovingBody) -> str:
    return ", ".join(f"{round(x, 4) + 0.0:.4f}" for x in body.center)
