"""Object code with CasADi's interface for external functions, including Jacobians.

Each function NAME has jac_NAME, its Jacobian with sparsity, and adj1_NAME, its cotangents. With `hessian`, it also has
jac_adj1_NAME, from which CasADi computes exact Hessians. Arrays follow CasADi's conventions: a vector (n,) is n x 1, a matrix
is stored column by column, and an array with more axes has its leading axes as rows, row by row. To CasADi, a configuration is
a list of nq numbers: derivatives are those of the code with respect to each number, also off the manifold, where a quaternion
does not have unit length. The derivatives are those of the program that computes the value. If all coordinates are plain
numbers, all algorithms of a function compute the same function, and the cheapest one is differentiated.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..engine.ambient_program import is_plain
from ..engine.derivative_program import JacobianProgram, PullbackProgram
from ..engine.function import CompiledFunction, cheapest
from ..engine.program import CoreShape, Input, Output, Program, WrappedProgram, split
from ..engine.trace import Trace, live_nodes
from .c_names import check_distinct
from .casadi_entries import CasadiCode, CasadiInterface, Pattern, entries
from .export_targets import ExportTarget
from .object_code import ObjectCode, compile_routine
from .routine import Routine, named_functions

SOURCE = hashlib.sha256(b"".join(f.read_bytes() for f in sorted(Path(__file__).parent.glob("*.py")))).hexdigest()
"""Hash of the sources that determine the code, in addition to the engine and a function."""


@dataclass(frozen=True)
class ColumnsFirst(WrappedProgram):
    """A program whose arguments and results are lists of numbers, matrices column by column, without manifolds."""

    program: Program

    @property
    def inputs(self) -> tuple[Input, ...]:
        return tuple(x._replace(shape=(x.size,), rate=None) for x in self.program.inputs)

    @property
    def outputs(self) -> tuple[Output, ...]:
        return tuple(Output(y.name, (y.size,)) for y in self.program.outputs)

    def identity(self) -> tuple[Any, ...]:
        return "columns first", self.program.identity(), self.program.shapes

    def flat(self, *inputs: list[Any]) -> list[Any]:
        given = []
        for x, values in zip(self.program.inputs, inputs, strict=True):
            rows = [values[0]] * x.size
            for value, place in zip(values, by_columns(matrix_shape(x.shape)), strict=True):
                rows[place] = value
            given.append(rows)
        results = split(self.program.flat(*given), self.program.outputs)
        pairs = zip(results, self.program.outputs, strict=True)
        return [values[place] for values, y in pairs for place in by_columns(matrix_shape(y.shape))]


def matrix_shape(shape: CoreShape) -> tuple[int, int]:
    """Return CasADi's numbers of rows and columns for an array."""
    if len(shape) < 2:
        return math.prod(shape), 1
    return math.prod(shape[:-1]), shape[-1]


def by_columns(shape: tuple[int, int]) -> list[int]:
    """Return the indices of the elements of a row-major matrix in the order of columns."""
    rows, columns = shape
    return [i * columns + j for j in range(columns) for i in range(rows)]


@dataclass(frozen=True)
class SomeNumbers(WrappedProgram):
    """A program that returns a subset of the numbers of another program."""

    program: Program
    results: tuple[Output, ...]
    kept: tuple[int, ...]  # indices in the concatenated results

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self.results

    def identity(self) -> tuple[Any, ...]:
        return "some numbers", self.program.identity(), self.kept

    def flat(self, *inputs: list[Any]) -> list[Any]:
        values = self.program.flat(*inputs)
        return [values[k] for k in self.kept]


class CasadiFunction(NamedTuple):
    """A routine, with the properties that CasADi asks for."""

    routine: Routine
    interface: CasadiInterface
    program: SomeNumbers

    def compiled(self, target: ExportTarget) -> ObjectCode:
        """Compile the object code; Jacobians compute many directions at once if the target has vectors."""
        lanes = target.lanes("double")
        vectors = self.routine.in_lanes(lanes) if lanes > 1 else None
        known = self.routine._replace(in_lanes=lambda _: vectors)
        return compile_routine(
            known, target, "double", lambda r, kernel, type: entries(CasadiCode(r, kernel, self.interface, vectors is not None))
        )

    def callable(self) -> CompiledFunction[Any]:
        """Return the function for callers in Python: with only the arguments that it reads, and without zero results."""
        return CompiledFunction(self.program, "traced", self.routine.name)


def compile_for_casadi(
    functions: CompiledFunction[Any] | Iterable[CompiledFunction[Any]] | Mapping[str, CompiledFunction[Any]],
    target: ExportTarget,
    prefix: str = "",
    hessian: bool = False,
    jacobian: CompiledFunction[Any] | None = None,
) -> dict[str, ObjectCode]:
    """Return objects of functions and their derivatives, by name.

    Raises ValueError for names that CasADi does not accept, and for a function with the name of another function's derivative.
    """
    named = {name: casadi_functions(name, f, hessian, jacobian) for name, f in named_functions(functions, prefix)}
    objects = {name: {m.routine.name: m.compiled(target) for m in made} for name, made in named.items()}
    check_distinct({name: [s for o in own.values() for s in o.symbols] for name, own in objects.items()})
    return {n: o for own in objects.values() for n, o in own.items()}


def casadi_functions(
    name: str, f: CompiledFunction[Any], hessian: bool = False, jacobian: CompiledFunction[Any] | None = None
) -> list[CasadiFunction]:
    """Return a function and its derivatives. A given Jacobian replaces the one that differentiation of f would give.

    Raises ValueError for names that CasADi does not accept.
    """
    if "__" in name or name in ("null", "jac", "hess"):
        raise ValueError(
            f"{name!r} is not a valid name in CasADi: names cannot be null, jac or hess, or contain two underscores in a row"
        )
    inputs, outputs = f.program.inputs, f.program.outputs
    shapes = [matrix_shape(x.shape) for x in inputs], [matrix_shape(y.shape) for y in outputs]
    full_in, full_out = ([(s, tuple(range(math.prod(s)))) for s in own] for own in shapes)
    x_names, y_names = [x.name for x in inputs], [y.name for y in outputs]
    unread = [(s, ()) for s in shapes[1]]
    out_names, adj_names = [f"out_{y}" for y in y_names], [f"adj_{y}" for y in y_names]
    n = len(inputs)
    plain = ColumnsFirst(f.program)
    blocks = [(y.size, x.size) for y in outputs for x in inputs]
    jac = (
        _given_jacobian(f, jacobian)
        if jacobian
        else _differentiated(f, lambda p: JacobianProgram(ColumnsFirst(p), "", tuple(x_names)))
    )
    block_names = [f"jac_{y}_{x}" for y in y_names for x in x_names]
    made = [
        _made(name, f.__doc__ or "", plain, (x_names, full_in, range(n)), (y_names, shapes[1])),
        _made(f"jac_{name}", "", jac, ([*x_names, *out_names], [*full_in, *unread], range(n)), (block_names, blocks)),
    ]
    pullback = PullbackProgram(plain, "")
    names = [*x_names, *out_names, *adj_names]
    read = [*range(n), *range(n + len(outputs), n + 2 * len(outputs))]
    adj_out = [f"adj_{x}" for x in x_names]
    adj_in = [*full_in, *unread, *full_out]
    made.append(_made(f"adj1_{name}", "", pullback, (names, adj_in, read), (adj_out, shapes[0])))
    if hessian:
        made.append(_hessian(name, pullback, (names, adj_in, read), (adj_out, shapes[0])))
    return made


def _hessian(name: str, pullback: PullbackProgram, arguments: Any, results: Any) -> CasadiFunction:
    """Return the derivatives of cotangents with respect to all arguments; those with respect to results are zero."""
    names, patterns, read = arguments
    adj_out, shapes = results
    second = JacobianProgram(pullback, "", tuple(x.name for x in pullback.inputs))
    sizes = [math.prod(p[0]) for p in patterns]
    places = [(a, b) for a in range(len(adj_out)) for b in range(len(names))]
    made = _made(
        f"jac_adj1_{name}",
        "",
        second,
        ([*names, *(f"out_{x}" for x in adj_out)], [*patterns, *((s, ()) for s in shapes)], read),
        (
            [f"jac_{adj_out[a]}_{names[b]}" for a, b in places if b in read],
            [(math.prod(shapes[a]), sizes[b]) for a, b in places if b in read],
        ),
    )
    # Empty blocks, the derivatives with respect to results, come between the others.
    interface, routine = made.interface, made.routine
    known: dict[str, tuple[Pattern, Output, int | None]] = {
        n: (p, y, k)
        for k, (n, p, y) in enumerate(zip(interface.names_out, interface.patterns_out, routine.outputs, strict=True))
    }
    every = {}
    for a, b in places:
        block = f"jac_{adj_out[a]}_{names[b]}"
        every[block] = known.get(block, (((math.prod(shapes[a]), sizes[b]), ()), Output(block, (0,)), None))
    patterns_out, outputs, blocks = zip(*every.values(), strict=True)
    interface = interface._replace(names_out=tuple(every), patterns_out=patterns_out, blocks=blocks)
    return made._replace(routine=routine._replace(outputs=outputs), interface=interface)


def _differentiated(f: CompiledFunction[Any], derived: Callable[[Program], Program]) -> Program:
    """Return the derivative of f's algorithm, or of the cheapest algorithm if all compute the same function of any numbers."""
    if not all(map(is_plain, f.program.inputs)):
        return derived(f.program)
    made = {n: CompiledFunction(derived(g.program), "traced", n) for n, g in f.alternatives.items() if not g.too_large}
    return cheapest(made).program


def _given_jacobian(f: CompiledFunction[Any], jacobian: CompiledFunction[Any]) -> Program:
    """Return a program for a given Jacobian.

    Raises ValueError unless it is a Jacobian with respect to all arguments, each a list of plain numbers.
    """
    p = f.program
    wanted = [(*matrix_shape(y.shape)[:1], x.size) for y in p.outputs for x in p.inputs if len(y.shape) == 1 == len(x.shape)]
    shapes = [y.shape for y in jacobian.program.outputs]
    same = [x.shape for x in jacobian.program.inputs] == [x.shape for x in p.inputs]
    if not same or shapes != wanted or not all(map(is_plain, p.inputs)):
        raise ValueError(
            f"{jacobian.name} cannot be the Jacobian of {f.name}: it must take the same arguments, all vectors, and return the "
            "derivatives of each result with respect to each argument, in order, with nq columns for a configuration"
        )
    return jacobian.program


def _made(name: str, doc: str, program: Program, arguments: Any, results: Any) -> CasadiFunction:
    """Return a function of a program, with CasADi's descriptions of arguments and results.

    Arguments have names, patterns and the indices of those that are read; results have names and shapes. Zeros of Jacobians are
    left out, and matrices are transposed so that columns come first.
    """
    names_in, patterns_in, read = arguments
    names_out, shapes = results
    f = CompiledFunction(program, "traced", name)
    t = f.trace
    is_jacobian = not isinstance(program, (ColumnsFirst, PullbackProgram))
    kept: list[int] = []
    patterns, outputs, begin = [], [], 0
    for y_name, shape in zip(names_out, shapes, strict=True):
        order = by_columns(shape) if is_jacobian else range(math.prod(shape))
        own = [(place, begin + k) for place, k in enumerate(order) if not is_jacobian or t.outputs[begin + k] != 0.0]
        begin += math.prod(shape)
        kept += [k for _, k in own]
        patterns.append((shape, tuple(place for place, _ in own)))
        outputs.append(Output(y_name, (len(own),)))
    values = tuple(t.outputs[k] for k in kept)
    small = Trace(t.graph, t.inputs, values, live_nodes(t.graph, (v[0] for v in values if isinstance(v, tuple))))
    in_lanes = program.in_lanes if is_jacobian else lambda lanes: None
    routine = Routine(name, f.program.inputs, tuple(outputs), small, in_lanes, doc)
    blocks = tuple(range(len(outputs)))
    interface = CasadiInterface(tuple(names_in), tuple(names_out), tuple(patterns_in), tuple(patterns), tuple(read), blocks)
    return CasadiFunction(routine, interface, SomeNumbers(program, tuple(outputs), tuple(kept)))
