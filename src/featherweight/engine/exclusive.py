"""Objects that one thread at a time may use, such as simulations: their calls write to memory that the object keeps.

Meanwhile a call in a second thread raises RuntimeError. A lock that waits would hide a mistake: the calls of two threads would
follow each other in an accidental order.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, Concatenate, NoReturn, ParamSpec, Protocol, TypeVar

from ..names import ANY_KEYWORDS, wrong_arguments
from .backends.llvm.built_ins import entrance
from .backends.llvm.python_objects import layouts_known


class Use:
    """The use of an object by one thread, which may nest its calls. `what` names the object, and `remedy` says what to do.

    A call begins and ends its use in this way, which Ctrl-C cannot interrupt between `enter` and `leave`:

        try:
            if not use.enter():
                use.refuse()
            ...
        finally:
            use.leave()  # does nothing for a refused call
    """

    __slots__ = "enter", "leave", "remedy", "what"

    def __init__(self, what: str, remedy: str) -> None:
        self.what, self.remedy = what, remedy
        self.enter, self.leave = entrance() if layouts_known() else _entrance_by_lock()

    def __reduce__(self) -> tuple[object, ...]:
        """Return the use of a copy of the object, which no thread uses yet."""
        return Use, (self.what, self.remedy)

    def refuse(self) -> NoReturn:
        """Raise RuntimeError."""
        more = "or hold a lock of your own during its calls"
        raise RuntimeError(f"{self.what} is in use by another thread; {self.remedy}, {more}")


def _entrance_by_lock() -> tuple[Callable[[], bool], Callable[[], bool]]:
    """Return what `entrance` returns, for other versions of Python."""
    lock = threading.RLock()

    def leave() -> bool:
        try:
            lock.release()
        except RuntimeError:
            return False
        return True

    return functools.partial(lock.acquire, False), leave


class Used(Protocol):
    """An object that one thread at a time may use."""

    _use: Use


S = TypeVar("S", bound=Used)
P = ParamSpec("P")
R = TypeVar("R")


def exclusive(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Return the method, which raises RuntimeError while another thread is in such a method of the same object.

    A TypeError for a keyword that the method does not take says which one is meant, as with `knows_keywords`.
    """
    function: Any = method
    names = {"method": method, "as_given": _as_given, "defaults": _defaults(function), "missing": MISSING}
    exec(_EXCLUSIVE.format(**_same_parameters(function)), names)
    call: Any = names["call"]
    return functools.wraps(method)(call)


_EXCLUSIVE = """
def call({parameters}):
    {first}
    use = {owner}._use
    try:
        if not use.enter():
            use.refuse()
        return method({arguments})
    finally:
        use.leave()
"""
"""A call with the parameters of a method. A tuple and a dictionary of arguments would take as long as a short method."""

MISSING = object()
ANY_ARGUMENTS = 0x04  # the flag of code with *arguments


def _same_parameters(function: Any) -> dict[str, str]:
    """Return the parameters of a method as text, its arguments, and what happens to keywords that it does not take."""
    code, defaults = function.__code__, _defaults(function)
    if hasattr(function, "__wrapped__") or code.co_flags & ANY_KEYWORDS:  # it checks them itself
        return {"owner": "self", "parameters": "self, /, *args, **named", "arguments": "self, *args, **named", "first": ""}
    count, end = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    places, keywords = code.co_varnames[:count], code.co_varnames[count:end]
    more = [f"*{code.co_varnames[end]}"] if code.co_flags & ANY_ARGUMENTS else []
    own = [[f"{x}=defaults[{x!r}]" if x in defaults else f"{x}=missing" for x in some] for some in (places[1:], keywords)]
    given = ", ".join(f"{x!r}: {x}" for x in (*places[1:], *keywords))
    owner, wrong = places[0], ["other", *(f"{x} is missing" for x in (*places[1:], *keywords) if x not in defaults)]
    return {
        "owner": owner,
        "parameters": ", ".join((owner, *own[0], *(more or ["*"][: len(keywords)]), *own[1], "**other")),
        "arguments": ", ".join((*places, *more, *(f"{x}={x}" for x in keywords))),
        "first": f"if {' or '.join(wrong)}: return as_given(method, {owner}, {{{given}}}, other)",
    }


def _as_given(method: Any, owner: object, given: dict[str, Any], other: dict[str, Any]) -> Any:
    """Raise the TypeError for an argument that the method does not take, or that it lacks."""
    defaults = _defaults(method)
    named = {x: y for x, y in given.items() if y is not MISSING and (x not in defaults or y is not defaults[x])}
    if not other:
        return method(owner, **named)  # without an argument that it needs
    raise wrong_arguments(method, (owner,), named | other)


def _defaults(function: Any) -> dict[str, Any]:
    """Return the defaults of a function's parameters by name."""
    places, values = function.__code__.co_varnames[: function.__code__.co_argcount], function.__defaults__ or ()
    return dict(zip(places[len(places) - len(values) :], values, strict=True)) | (function.__kwdefaults__ or {})
