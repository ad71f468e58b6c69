"""A controller as it is exported, in this process: ticks without Python between."""

from __future__ import annotations

import ctypes
from collections import namedtuple
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..array_types import Array
from ..checks import real_array
from ..engine.backends.llvm.jit import joined, load_object
from ..engine.loops.standalone import Port
from ..names import choose_from
from .export_targets import this_machine
from .standalone_code import Controller, compile_standalone
from .standalone_header import named

NAME = "standalone"


class Standalone:
    """The machine code that `featherweight.export` writes for a controller, with a workspace of its own.

        ik = featherweight.InverseKinematics(robot, featherweight.FrameTask("hand"))
        alone = featherweight.Standalone(ik)
        velocity = alone(q=q, target_hand=robot.frame_placement("hand", q), dt=0.01).velocity

    A call takes inputs by the names of the exported header, all others stay, and returns a named tuple of results and of the
    `status`. Without these copies, write to the arrays of `inputs`, call `tick`, and read the arrays of `outputs`. A controller
    starts as after a reset; the one that is given does not change.

    Raises TypeError for an object that cannot be exported, and NotImplementedError as `featherweight.export` does.
    """

    def __init__(self, controller: Controller) -> None:
        if not hasattr(controller, "standalone"):
            raise TypeError(f"Standalone: takes a controller, such as InverseKinematics; got {type(controller).__name__}")
        exported = controller.standalone()
        made = compile_standalone(NAME, exported, this_machine())
        functions = [f"{NAME}_reset", f"{NAME}_tick"]
        self._code = load_object(joined([made.data]), *functions)
        pointers = [ctypes.c_void_p] * 3
        reset, tick = (self._code.address(f) for f in functions)
        self._reset = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(reset)
        self._tick = ctypes.CFUNCTYPE(ctypes.c_int, *pointers)(tick)
        self._workspace = np.zeros(made.workspace, np.uint8)
        self.inputs, given = _record("Inputs", exported.inputs)
        self.outputs, results = _record("Outputs", exported.outputs)
        self._memory = given, results
        self._addresses = self._workspace.ctypes.data, given.ctypes.data, results.ctypes.data
        self._result: Any = namedtuple("Result", [*self.outputs._fields, "status"])  # type: ignore[misc]
        self.words = {s.number: s.words for s in exported.status}
        self._defaults = given.copy()
        for view, port in zip(_views(exported.inputs, self._defaults), named(exported.inputs), strict=True):
            view[...] = port.defaults
        self.reset()

    def reset(self) -> None:
        """Return to the state at the start, and to the inputs at the export."""
        self._reset(self._addresses[0])
        self._memory[0][:] = self._defaults

    def tick(self) -> int:
        """Run once, from `inputs` to `outputs`; return the status."""
        status: int = self._tick(*self._addresses)
        return status

    def __call__(self, **given: Any) -> Any:
        """Return the results of a tick with some inputs. Raises ValueError for unknown names and wrong shapes."""
        for name, x in given.items():
            into = getattr(self.inputs, name, None)
            if into is None:
                raise ValueError(f"Standalone: there is no input {choose_from(name, [*self.inputs._fields])}")
            array = real_array(f"Standalone: {name}", x)
            if array.shape != into.shape:
                raise ValueError(f"Standalone: {name} must have shape {into.shape}; got {array.shape}")
            into[...] = array
        status = self.tick()
        return self._result(*(x.copy() if x.ndim else x.item() for x in self.outputs), status)


def _record(name: str, ports: Sequence[Port]) -> tuple[Any, Array]:
    """Return views of a record's members, as a named tuple, and its memory."""
    kept = named(ports)
    memory = np.zeros(max(1, sum(port.defaults.size for port in kept)))
    record: Any = namedtuple(name, [port.name for port in kept])  # type: ignore[misc]
    return record(*_views(ports, memory)), memory


def _views(ports: Sequence[Port], memory: Array) -> Iterator[Array]:
    at = 0
    for port in named(ports):
        numbers = memory[at : at + port.defaults.size]
        yield (numbers.view(np.int64) if port.whole else numbers).reshape(port.outer)
        at += port.defaults.size
