"""Programs to compile: functions from arrays to arrays, as kernels on nested lists of scalars, and combinations of programs."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..summaries import summarized
from .graph import Expression
from .sources import digest

if TYPE_CHECKING:
    from .jacobian_trace import JacobianTrace
    from .trace import Trace

P = TypeVar("P", bound="Program")
S = TypeVar("S", bound="SeveralPrograms")
W = TypeVar("W", bound="WrappedProgram")
CoreShape = tuple[int, ...]  # shape of an array without batch axes

WASTE = 3  # nodes per live operation
COLUMN_BLOCK = 8  # parts of a matrix start at columns that are multiples of this


class Input(NamedTuple):
    """An array argument: its name and its core shape. The default of an optional argument is zero.

    An argument on a manifold has a program `rate` of (x, tangent), which returns the change of x along a tangent. Derivatives
    are with respect to tangents. `labels` are the names of the numbers along the last axis, if they have any (see
    `check_labels`).
    """

    name: str
    shape: CoreShape
    optional: bool = False
    rate: Program | None = None
    labels: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def tangent(self) -> CoreShape:
        """Core shape of the tangents."""
        return self.rate.inputs[1].shape if self.rate else self.shape


class Output(NamedTuple):
    """An array result: its name, its core shape, and the shape that the kernel writes, if it has different axes of length one.

    A result on a manifold has a program `along` of (y, rate), which returns the tangent for a rate of y.
    """

    name: str
    shape: CoreShape
    written: CoreShape | None = None
    along: Program | None = None

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def tangent(self) -> CoreShape:
        """Core shape of the tangents."""
        return self.along.outputs[0].shape if self.along else self.shape

    @property
    def in_kernel(self) -> CoreShape:
        """Shape of the array that the kernel writes; a scalar is written to an array of one element."""
        return self.written or self.shape or (1,)


class Program(ABC):
    """A function with named inputs and outputs. `flat` runs it on scalars of any kind; everything else follows from that."""

    name: str
    doc: str

    @property
    @abstractmethod
    def inputs(self) -> tuple[Input, ...]:
        """The arguments, without optional ones that are not given."""

    @property
    @abstractmethod
    def outputs(self) -> tuple[Output, ...]:
        """The results, in order."""

    @property
    @abstractmethod
    def options(self) -> tuple[str, ...]:
        """Names of optional inputs that are not given."""

    @abstractmethod
    def given(self, option: str) -> Program:
        """Return the program with an optional input added."""

    @abstractmethod
    def flat(self, *inputs: list[Any]) -> list[Any]:
        """Compute the flat list of all results from flat lists of scalars."""

    @property
    @abstractmethod
    def kernels(self) -> tuple[KernelProgram, ...]:
        """The kernels of the program."""

    @property
    def rollable(self) -> bool:
        """Return whether the program consists only of kernels, whose loops can stay loops."""
        return True

    def in_lanes(self, lanes: int, own: Trace | None = None) -> JacobianTrace | None:
        """Return a trace of one state in vectors with `lanes` lanes, if it is faster than scalar code; otherwise None.

        `own` is the trace of this program, if it exists.
        """
        return None

    @property
    def traceable(self) -> Program:
        """The program without others that compute some states a second time."""
        return self

    def nodes_for(self, operations: int) -> int:
        """Return an upper estimate of the nodes in a trace with this many operations; some nodes turn out to be dead."""
        return WASTE * operations

    @abstractmethod
    def identity(self) -> tuple[object, ...]:
        """Everything that compiled code depends on, except the machine and the engine."""

    @property
    def shapes(self) -> tuple[CoreShape, ...]:
        """Core shapes of inputs and outputs."""
        return (*(a.shape for a in self.inputs), *(r.shape for r in self.outputs))

    @property
    def signature(self) -> str:
        """Core shapes in NumPy's notation: "(39),(38)->(38)"."""
        cores = [f"({','.join(map(str, shape))})" for shape in self.shapes]
        n = len(self.inputs)
        return f"{','.join(cores[:n])}->{','.join(cores[n:])}"

    @property
    def title(self) -> str:
        """Name and owner, for messages."""
        owner = next((k.owner for k in self.kernels if k.owner), "")
        return f"{self.name} of {owner!r}" if owner else self.name

    def __str__(self) -> str:
        return f"{self.name}({', '.join(a.name for a in self.inputs)})"


@summarized
@dataclass(frozen=True)
class KernelProgram(Program):
    """A program of `kernel(*constants, *arguments, result)`, which reads nested sequences of scalars and writes the results.

    The kernel is a plain function of a module. `result` is one array or a tuple of them. Constants are numbers, strings, and
    (nested, named) tuples of them. The last `arguments` may be optional; optional arguments that are not in `chosen` are
    literal zeros, which a trace eliminates.
    """

    name: str
    kernel: Callable[..., None]
    constants: tuple[Any, ...]
    arguments: tuple[Input, ...]
    results: tuple[Output, ...]
    doc: str = ""
    chosen: frozenset[str] = frozenset()
    part: int | None = None  # index of the constant with the range of columns, (first, stop), that the kernel writes
    owner: str = ""  # the robot of the function, for messages
    columns: tuple[tuple[str, ...], ...] = ()  # results that are computed column by column, together, by the same operations

    def __post_init__(self) -> None:
        optional = [a.optional for a in self.arguments]
        if all(optional) or optional != sorted(optional):
            raise ValueError(f"{self.name}: at least one required argument must come before optional arguments")

    @property
    def inputs(self) -> tuple[Input, ...]:
        return tuple(a for a in self.arguments if self.takes(a))

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self.results

    @property
    def options(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.arguments if not self.takes(a))

    def takes(self, argument: Input) -> bool:
        """Return whether an argument of the kernel is an input rather than zero."""
        return not argument.optional or argument.name in self.chosen

    def given(self, option: str) -> KernelProgram:
        return replace(self, chosen=self.chosen | {option})

    @property
    def kernels(self) -> tuple[KernelProgram, ...]:
        return (self,)

    def identity(self) -> tuple[object, ...]:
        arguments = tuple((a.shape, self.takes(a)) for a in self.arguments)
        return (
            digest(self.kernel, self.constants),
            self.constants,
            arguments,
            tuple((r.shape, r.written) for r in self.results),
            *([tuple(y.name in own for y in self.results) for own in self.columns]),
        )

    def flat(self, *inputs: list[Any]) -> list[Any]:
        given = iter(inputs)
        flat = [list(next(given)) if self.takes(a) else [0.0] * a.size for a in self.arguments]
        arrays = [nested(x, a.shape) for x, a in zip(flat, self.arguments, strict=True)]
        results = [nested([0.0] * r.size, r.in_kernel) for r in self.results]
        graph = next((x.graph for own in flat for x in own if isinstance(x, Expression)), None) if self.columns else None
        begin = len(graph) if graph else 0
        self.kernel(*self.constants, *arrays, results[0] if len(results) == 1 else tuple(results))
        for own in self.columns:
            if graph:
                rows = [row for y, r in zip(self.results, results, strict=True) if y.name in own for row in r]
                graph.note_columns(rows, begin)
        return [x for r in results for x in flattened(r)]

    def shares(self, count: int) -> list[KernelProgram]:
        """Return programs that write `count` parts of the columns in equal time, if column k takes k steps."""
        assert self.part is not None
        first, stop = self.constants[self.part]
        ends = [first + round((stop - first) * math.sqrt(k / count) / COLUMN_BLOCK) * COLUMN_BLOCK for k in range(count)]
        ends = sorted({*ends, stop})
        before, after = self.constants[: self.part], self.constants[self.part + 1 :]
        return [replace(self, constants=(*before, pair, *after)) for pair in pairwise(ends)]


class WrappedProgram(Program):
    """A program that wraps another one, and overrides some of its members. It has no trace in lanes by default."""

    program: Program

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.program.name

    @property
    def doc(self) -> str:  # type: ignore[override]
        return self.program.doc

    @property
    def inputs(self) -> tuple[Input, ...]:
        return self.program.inputs

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self.program.outputs

    @property
    def options(self) -> tuple[str, ...]:
        return self.program.options

    def given(self: W, option: str) -> W:
        return replace(self, program=self.program.given(option))  # type: ignore[type-var]  # all of them are dataclasses

    @property
    def kernels(self) -> tuple[KernelProgram, ...]:
        return self.program.kernels

    @property
    def rollable(self) -> bool:
        return self.program.rollable

    def identity(self) -> tuple[object, ...]:
        return self.program.identity()

    def flat(self, *inputs: list[Any]) -> list[Any]:
        return self.program.flat(*inputs)


@dataclass(frozen=True)
class RenamedProgram(WrappedProgram):
    """A program whose inputs and outputs have other names."""

    program: Program
    names: tuple[tuple[str, str], ...]  # (old name, new name)

    def _named(self, parts: tuple[Any, ...]) -> tuple[Any, ...]:
        names = dict(self.names)
        return tuple(x._replace(name=names.get(x.name, x.name)) for x in parts)

    @property
    def inputs(self) -> tuple[Input, ...]:
        return self._named(self.program.inputs)

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self._named(self.program.outputs)


@dataclass(frozen=True)
class WithoutLastResult(WrappedProgram):
    """A program without its last result."""

    program: Program

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self.program.outputs[:-1]

    def identity(self) -> tuple[object, ...]:
        return "without last result", self.program.identity()

    def flat(self, *inputs: list[Any]) -> list[Any]:
        return self.program.flat(*inputs)[: sum(y.size for y in self.outputs)]


class SeveralPrograms(Program):
    """A program that combines others."""

    parts: tuple[Program, ...]

    @property
    def options(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(option for part in self.parts for option in part.options))

    def given(self: S, option: str) -> S:
        """Return the program with an optional input given to all parts that have it."""
        parts = tuple(p.given(option) if option in p.options else p for p in self.parts)
        return replace(self, parts=parts)  # type: ignore[type-var]  # all of them are dataclasses

    @property
    def kernels(self) -> tuple[KernelProgram, ...]:
        return tuple(k for part in self.parts for k in part.kernels)

    @property
    def rollable(self) -> bool:
        return all(part.rollable for part in self.parts)


@dataclass(frozen=True)
class FusedProgram(SeveralPrograms):
    """Several programs as one.

    Inputs with the same name are shared; traced together, the programs share common subexpressions.
    """

    name: str
    parts: tuple[Program, ...]
    names: tuple[tuple[str, ...], ...]  # names of the results of each part
    doc: str = ""
    alone: tuple[Program, ...] = ()  # the unfused program of each part, if its algorithm may differ

    def __post_init__(self) -> None:
        shapes: dict[str, CoreShape] = {}
        for part in self.parts:
            for a in part.inputs:
                if shapes.setdefault(a.name, a.shape) != a.shape:
                    raise ValueError(
                        f"{part.name} takes {a.name} of shape {a.shape}, but another function takes it with shape "
                        f"{shapes[a.name]}: they cannot share the argument"
                    )

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        return merged_inputs([a for part in self.parts for a in part.inputs])

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        pairs = [zip(names, part.outputs, strict=True) for names, part in zip(self.names, self.parts, strict=True)]
        return tuple(r._replace(name=name) for pair in pairs for name, r in pair)

    def identity(self) -> tuple[object, ...]:
        parts = tuple((tuple(a.name for a in part.inputs), part.identity()) for part in self.parts)
        return tuple(a.name for a in self.inputs), parts

    def flat(self, *inputs: list[Any]) -> list[Any]:
        by_name = {a.name: x for a, x in zip(self.inputs, inputs, strict=True)}
        return [y for part in self.parts for y in part.flat(*(by_name[a.name] for a in part.inputs))]


@dataclass(frozen=True)
class ComposedProgram(SeveralPrograms):
    """Programs in sequence: an earlier result replaces a later input with the same name."""

    name: str
    parts: tuple[Program, ...]
    results: tuple[str, ...]  # names of the returned results
    doc: str = ""
    also: tuple[tuple[str, str], ...] = ()  # (result, name of the later inputs that use it)
    first: tuple[str, ...] = ()  # arguments to put before the others

    @property
    def rollable(self) -> bool:
        """True if the parts are rollable and no result is returned twice, by two names."""
        called = {other: name for name, other in self.also}
        return super().rollable and len({called.get(name, name) for name in self.results}) == len(self.results)

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        made: set[str] = set()
        wanted: list[Input] = []
        for part in self.parts:
            wanted += [x for x in part.inputs if x.name not in made]
            made |= {y.name for y in part.outputs}
            made |= {other for name, other in self.also if name in made}
        place = {name: k for k, name in enumerate(self.first)}
        return merged_inputs(sorted(wanted, key=lambda x: place.get(x.name, len(place))))

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        made = {y.name: y for part in self.parts for y in part.outputs}
        made |= {other: made[name]._replace(name=other) for name, other in self.also}
        return tuple(made[name] for name in self.results)

    def identity(self) -> tuple[object, ...]:
        parts = tuple((tuple(x.name for x in p.inputs), tuple(y.name for y in p.outputs), p.identity()) for p in self.parts)
        return "composed", tuple(x.name for x in self.inputs), parts, self.results, self.also

    def flat(self, *inputs: list[Any]) -> list[Any]:
        known = {x.name: values for x, values in zip(self.inputs, inputs, strict=True)}
        for part in self.parts:
            values = part.flat(*(known[x.name] for x in part.inputs))
            known |= {y.name: own for y, own in zip(part.outputs, split(values, part.outputs), strict=True)}
            known |= {other: known[name] for name, other in self.also if name in known}
        return [value for name in self.results for value in known[name]]


def with_kernels(program: P, change: Callable[[KernelProgram], Program]) -> P | Program:
    """Replace each kernel of a program by the result of `change`; return the program itself if nothing changes."""
    program = program.traceable  # type: ignore[assignment]
    if isinstance(program, KernelProgram):
        return change(program)

    def changed(value: object) -> Any:
        if isinstance(value, Program):
            return with_kernels(value, change)
        if isinstance(value, tuple) and any(isinstance(x, Program) for x in value):
            others = tuple(map(changed, value))
            return value if all(map(operator.is_, others, value)) else others
        return value

    own = {f.name: getattr(program, f.name) for f in fields(program)}  # type: ignore[arg-type]  # all of them are dataclasses
    others = {name: changed(value) for name, value in own.items()}
    same = all(others[name] is value for name, value in own.items())
    return program if same else replace(program, **others)  # type: ignore[type-var]


def merged_inputs(inputs: Sequence[Input]) -> tuple[Input, ...]:
    """Merge inputs of the same name, in the order of first occurrence, optional ones last.

    Giving an optional input therefore does not move the others.
    """
    met: dict[str, Input] = {}
    for a in inputs:
        met[a.name] = a._replace(optional=a.optional and met.get(a.name, a).optional)
    return tuple(sorted(met.values(), key=lambda a: a.optional))


def split(values: Sequence[Any], parts: Sequence[Input | Output]) -> list[list[Any]]:
    """Split concatenated scalars into one list for each array."""
    ends = [0, *accumulate(x.size for x in parts)]
    return [list(values[begin:end]) for begin, end in pairwise(ends)]


def nested(flat: Sequence[Any], shape: CoreShape) -> Any:
    """Return a flat list as nested lists of `shape`."""
    if not shape:
        return flat[0]
    if len(shape) == 1:
        return flat
    step = math.prod(shape[1:])
    return [nested(flat[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def flattened(x: object) -> list[Any]:
    """Return the scalars of nested lists as a flat list."""
    if not isinstance(x, list):
        return [x]
    return [y for item in x for y in flattened(item)]
