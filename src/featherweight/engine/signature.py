"""Signatures of functions for users and tools: `help`, `inspect.signature`, editors."""

from __future__ import annotations

from inspect import Parameter, Signature, cleandoc
from typing import Any

from .program import CoreShape, Program

CALLED = """Shapes are those of one state; more axes in front, for many, broadcast. `out=` takes the result, or a tuple of
several; `threads=` says how many share a large batch, `device="cuda"` computes on one. Several results are a named tuple."""
OPTIONS = ("out", "threads", "device")  # options of every call, after arguments and algorithm; the default is None


class OfInstances:
    """A descriptor for an attribute of instances that the class itself lacks: `inspect` also asks classes for it."""

    def __get__(self, function: Any, owner: type) -> Signature:
        if function is None:
            raise AttributeError("__signature__")
        return call_signature(function.program, len(function.executions) > 1)


def call_signature(program: Program, chooses: bool) -> Signature:
    """Return the signature: names of the arguments with their shapes as annotations, and shapes of the results."""
    where, named = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
    arguments = [Parameter(x.name, where, annotation=_shape(x.shape)) for x in program.inputs]
    optional = [Parameter(x.name, named, default=None, annotation=_shape(x.shape)) for x in _options(program)]
    others = [Parameter(name, named, default=None) for name in (*["algorithm"] * chooses, *OPTIONS)]
    results = [_shape(r.shape) for r in program.outputs]
    return Signature([*arguments, *optional, *others], return_annotation=results[0] if len(results) == 1 else tuple(results))


def call_text(program: Program) -> str:
    """Return a function as text, with names and shapes: "f(q (39), v (38)) -> a (38)"."""
    taken = [_named(x.name, x.shape) for x in program.inputs]
    optional = [f"{_named(x.name, x.shape)}=None" for x in _options(program)]
    arguments = ", ".join([*taken, *(["*", *optional] if optional else [])])
    return f"{program.name}({arguments}) -> {', '.join(_named(r.name, r.shape) for r in program.outputs)}"


def described(program: Program) -> str:
    """Return the text that `help` shows for a function."""
    return "\n\n".join(filter(None, (call_text(program), cleandoc(program.doc), CALLED)))


def _options(program: Program) -> list[Any]:
    return [next(x for x in program.given(name).inputs if x.name == name) for name in program.options]


def _named(name: str, shape: CoreShape) -> str:
    return f"{name} ({', '.join(map(str, shape))})" if shape else name


def _shape(shape: CoreShape) -> str:
    return f"({', '.join(['...', *map(str, shape)])})"
