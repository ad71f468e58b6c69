"""The stages of several robots at once, one in each vector lane: interleaved arrays, and arrays that robots share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, get_type_hints

import numpy as np

from ..array_types import SHARED, Array
from ..engine.loops.kernels import Counted, Interleaved, MachineCall, call_apart, interleaved_call, machine_call, then_separated
from .contact_stage import ContactStage
from .fleet_loop import IMPULSES
from .robot_tables import StagesTable, calls_of_robot, stages_table
from .stage_records import CallsOfRobot, RobotStages, VariedArrays
from .step_model import StepModel

READ = (
    "state.q", "touching.contacts", "touching.counts", "touching.kinematics", "touching.impulses.force",
    "touching.impulses.turn", "touching.impulses.last_row", "point.S", "inertias",
)  # fmt: skip
WRITTEN = (
    "touching.contacts", "touching.counts", "touching.report",
    *(f"touching.impulses.{x}" for x in ("force", "turn", "wrench", "joint", "next_row")),
    *(f"touching.impulses.{x}" for x in ("correction", "joint_correction", "impact", "joint_impact")),
)  # fmt: skip
"""Inputs and results of the computation of one robot's impulses."""

OF_CONTACTS = "touching.contacts", "touching.impulses.force", "touching.impulses.turn"
OF_VARIED = {
    "friction": "friction", "yielding": "yielding", "yielding_rows": "yielding_rows", "lower": "rows.lower",
    "upper": "rows.upper", "bound": "rows.bound",
}  # fmt: skip
"""Further inputs of robots that differ, fields of `ContactModel`, by field of `VariedArrays`."""
ALONE = "body_delassus", "delassus_with_rows", "jacobian"
"""Calls for impulses that each robot makes separately."""
INVERSE = "touching.inertia.by_inverse.factors.C"
"""The factor of M⁻¹, which all lanes compute before the impulses of each robot."""


@cache
def shared_fields(kind: type) -> tuple[bool, ...]:
    """Return for each field of a record whether robots share it."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(SHARED in getattr(hints[name], "__metadata__", ()) for name in kind._fields)  # type: ignore[attr-defined]


class _Weaver:
    """Interleaves arrays of one robot for several lanes. Arrays that share memory also share it afterwards."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.roots: dict[int, tuple[Array, Array]] = {}  # by id: arrays that own memory, and their interleaved arrays

    def record(self, content: Any) -> Any:
        """Return a record with its arrays interleaved, except shared ones."""
        if isinstance(content, np.ndarray):
            return self.array(content)
        if isinstance(content, tuple):
            kind: Any = type(content)
            own = zip(shared_fields(kind), content, strict=True)
            return kind(*(x if shared else self.record(x) for shared, x in own))
        return content

    def array(self, x: Array) -> Interleaved:
        root = x
        while isinstance(root.base, np.ndarray):
            root = root.base
        if id(root) not in self.roots:
            self.roots[id(root)] = root, Interleaved.of(root.reshape(-1), self.lanes).array
        interleaved = self.roots[id(root)][1]
        begin = (x.ctypes.data - root.ctypes.data) // max(x.itemsize, 1) if x.size else 0
        return Interleaved(interleaved[begin : begin + x.size].reshape(*x.shape, self.lanes))


def interleaved_stages(content: RobotStages, lanes: int) -> RobotStages:
    """Return the stages of `lanes` robots, each a copy of the given one."""
    return _Weaver(lanes).record(content)


def interleaved_table(
    model: StepModel, contacts: ContactStage, alone: Sequence[StagesTable], run: Callable[..., int], external: bool,
    varied: Sequence[bool],
) -> StagesTable:  # fmt: skip
    """Return the stages of robots in vectors, with the robot's functions for all lanes.

    Each lane has its own table for impulses, which `run`, the loop over robots, computes if passes do not. `varied` marks the
    fields of `VariedArrays` that have rows.
    """
    lanes, contents = len(alone), [x.content for x in alone]
    stages = interleaved_stages(contents[0], lanes)
    functions = calls_of_robot(model, contacts, stages, external)
    functions |= {name: (None, *functions[name][1:]) for name in ALONE}
    calls = {name: interleaved_call(function, lanes, *arrays) for name, (function, *arrays) in functions.items()}
    for name in ("delassus_of_touching", "solver", "impulses_alone"):
        calls[name] = MachineCall(0, np.zeros(1, np.int64)), []
    differing = {x for x, own in zip(VariedArrays._fields, varied, strict=True) if own}
    read = (*READ, *(f"touching.model.{path}" for x, path in OF_VARIED.items() if x in differing))
    reads, writes = (list(_moves(stages, contents, "", names)) for names in (read, WRITTEN))
    calls |= {name: (getattr(contents[0].calls, name), []) for name in ALONE}
    if functions["inverse_factor"][0] is not None:
        (made,) = _moves(stages, contents, "", (INVERSE,))
        calls["inverse_factor"] = then_separated(*calls["inverse_factor"], made)
    tables = [x.address for x in alone]
    counted = Counted(stages.touching.counts, [x for x, _ in _moves(stages, contents, "", OF_CONTACTS)])  # type: ignore[arg-type]
    if not contacts.in_passes:
        calls["impulses_alone"] = call_apart(run, (0, 0, 1, IMPULSES), tables, reads, writes, counted)
    interleaved = CallsOfRobot(**{name: call for name, (call, _) in calls.items()})
    return StagesTable(stages._replace(calls=interleaved), {"alone": alone, **calls}, [])


def _moves(
    interleaved: object, apart: list[Any], path: str, names: tuple[str, ...]
) -> Iterator[tuple[Interleaved, list[Array]]]:
    """Yield the interleaved arrays of some records, with those of each robot alone."""
    if isinstance(interleaved, Interleaved) and any(f"{path}.".startswith(f"{name}.") for name in names):
        yield interleaved, apart
    elif isinstance(interleaved, tuple):
        for k, name in enumerate(interleaved._fields):  # type: ignore[attr-defined]
            yield from _moves(interleaved[k], [x[k] for x in apart], f"{path}.{name}".lstrip("."), names)


def lone_stages(model: StepModel, contacts: ContactStage, stages: RobotStages, external: bool) -> StagesTable:
    """Return the stages of one lane, in which the factor of M⁻¹ is available when impulses are computed."""
    table = stages_table(model, contacts, stages, external)
    calls = table.content.calls._replace(inverse_factor=machine_call(None))
    return StagesTable(table.content._replace(calls=calls), table.kept, table.errors)


def may_be_interleaved(model: StepModel, contacts: ContactStage, stages: RobotStages, external: bool) -> bool:
    """Return whether all functions of the robot are straight-line machine code, which can process vectors of robots."""
    if contacts.inertia.by_sets and contacts.inertia.contacts:
        return False
    functions = calls_of_robot(model, contacts, stages, external)
    return all(call[0] is None or call[0].execution == "traced" for call in functions.values())
