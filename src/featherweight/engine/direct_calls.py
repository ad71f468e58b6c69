"""Objects whose calls go from Python to machine code directly, by the vectorcall protocol (PEP 590).

For an object whose class defines `__call__`, Python packs the arguments of each call into a tuple and a dictionary, which takes
as long as the kernel of a small robot. An object of a class with the flag Py_TPFLAGS_HAVE_VECTORCALL contains the address of
its code instead. Python's syntax cannot define such a class; its C interface can, with `PyType_FromSpecWithBases`.

Objects are made in a class with two more words, the address of the code and the code's own data. Once they have them, their
class becomes one of the same layout with the flag.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

HEADER, WORD = object.__basicsize__, ctypes.sizeof(ctypes.c_void_p)  # bytes
DEFAULT, BASETYPE, HAVE_VECTORCALL = 1 << 18, 1 << 10, 1 << 11  # Py_TPFLAGS_...
TP_CALL, TP_MEMBERS = 50, 72  # Py_tp_...
PYSSIZET, READONLY = 19, 1  # kind and flag of a member


class _Member(ctypes.Structure):
    """PyMemberDef."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("type", ctypes.c_int), ("offset", ctypes.c_ssize_t), ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )  # fmt: skip


class _Slot(ctypes.Structure):
    """PyType_Slot."""

    _fields_ = (("slot", ctypes.c_int), ("address", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    """PyType_Spec."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("basicsize", ctypes.c_int), ("itemsize", ctypes.c_int), ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    )  # fmt: skip


class DirectCall(NamedTuple):
    """The code of an object's calls, a vectorcallfunc that finds its data behind the object's header and its own address."""

    address: int
    data: int
    keeps: Any  # keeps the code and its data alive


_specifications: list[tuple[Any, ...]] = []  # classes may refer to their names and members


def _new_class(name: str, size: int, bases: tuple[type, ...], flags: int, slots: tuple[_Slot, ...], *keeps: Any) -> Any:
    title, every = name.encode(), (_Slot * (len(slots) + 1))(*slots)
    spec = _Spec(title, size, 0, DEFAULT | flags, every)
    _specifications.append((title, every, spec, keeps))
    make = ctypes.pythonapi.PyType_FromSpecWithBases
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object]
    return make(ctypes.addressof(spec), bases)


if TYPE_CHECKING or sys.implementation.name != "cpython":

    class DirectlyCalled:
        """An object that may get code for its calls, by `call_directly`."""

else:
    DirectlyCalled = _new_class(f"{__name__}.DirectlyCalled", HEADER + 2 * WORD, (object,), BASETYPE, ())


@functools.cache
def _with_vectorcall(own: Any) -> type:
    """Return a class whose objects have the layout of `own`, and are called by the address behind their header."""
    members = (_Member * 2)(_Member(b"__vectorcalloffset__", PYSSIZET, HEADER, READONLY, None))
    call = ctypes.cast(ctypes.pythonapi.PyVectorcall_Call, ctypes.c_void_p)
    slots = _Slot(TP_MEMBERS, ctypes.addressof(members)), _Slot(TP_CALL, call)
    made: type = _new_class(f"{own.__module__}.{own.__qualname__}", 0, (own,), HAVE_VECTORCALL, slots, members)
    return made


def call_directly(x: DirectlyCalled, call: DirectCall) -> None:
    """Make Python call machine code for calls of an object; the object keeps what the code needs."""
    made_as: Any = type(x)
    own = _with_vectorcall(made_as)
    x.__dict__["_direct_call"] = call
    words = (ctypes.c_void_p * 2).from_address(id(x) + HEADER)
    words[0], words[1] = call.address, call.data
    x.__class__ = own
