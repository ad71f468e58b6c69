"""Jacobians by columns: a loop over directions that calls the straight code of a program's rates along one direction.

The code is a few times as long as that of the program, for any number of columns.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from ...derivative_program import JacobianProgram, PushforwardProgram
from ...execution import Execution
from ...program import CoreShape
from .ir import Function
from .jit import Code, compile_object, load_object


class JacobianColumns:
    """Machine code `i64 rows(ptr words, ptr pointers, i64, i64)` that computes a Jacobian for one state.

    `pointers` are the arrays of the program's arguments, of the Jacobian's results, and of `between`.
    """

    def __init__(self, program: JacobianProgram) -> None:
        self._jacobian, self._rates = program, PushforwardProgram(program.program, program.doc)
        self._function = Execution(self._rates, "traced")
        address = self._function.executable.address
        if address is None:
            raise MemoryError(f"out of memory for the code of {program.title}")
        self._words = np.array([address], np.int64)
        self._code: Code = load_object(compile_object(self._written()), "rows")
        self.address, self.words = self._code.address("rows"), int(self._words.ctypes.data)

    @cached_property
    def _directions(self) -> dict[str, str]:
        """The names of the rates of the program's arguments."""
        return dict(zip((x.name for x in self._rates.program.inputs), self._rates.dots, strict=True))

    @property
    def between(self) -> list[CoreShape]:
        """Shapes of the arrays for the rates of arguments and of results."""
        shapes = {x.name: x.shape for x in self._rates.inputs}
        return [*(shapes[dot] for dot in self._directions.values()), *(y.shape for y in self._rates.outputs)]

    def _written(self) -> str:
        f = Function("i64", "rows", ["ptr %words", "ptr %pointers", "i64 %begin", "i64 %stop"], "external", "nounwind")
        given, results = self._rates.program.inputs, self._jacobian.outputs
        names = [*(x.name for x in given), *(y.name for y in results), *self._directions.values()]
        names += [y.name for y in self._rates.outputs]
        places = {name: f.load("ptr", "%pointers", k) for k, name in enumerate(names)}
        called = [*(x.name for x in self._rates.inputs), *(y.name for y in self._rates.outputs)]
        arguments, failed = f.slot("ptr", len(called)), f.fresh("failed")
        for k, name in enumerate(called):
            f.store("ptr", places[name], arguments, k)
        for x in given:
            f.clear_bytes(places[self._directions[x.name]], 8 * math.prod(x.tangent))
        function = f.cast("inttoptr", "i64", f.load("i64", "%words"), "ptr")
        for x in given:
            if x.name in self._jacobian.by:
                with f.loop(math.prod(x.tangent)) as column:
                    f.store("double", "1.0", places[self._directions[x.name]], column)
                    f.require(f.equal(f.call("i32", function, f"ptr {arguments}"), 0, "i32"), failed)
                    f.store("double", "0.0", places[self._directions[x.name]], column)
                    for y, rate in zip(self._jacobian.program.outputs, self._rates.outputs, strict=True):
                        with f.loop(rate.size) as row:
                            place = f.add(f.mul(row, math.prod(x.tangent)), column)
                            f.store("double", f.load("double", places[rate.name], row), places[f"d{y.name}_d{x.name}"], place)
        f.ret("i64", "0")
        f.label(failed)
        f.ret("i64", "1")
        return "\n".join([*f.declarations, str(f)])
