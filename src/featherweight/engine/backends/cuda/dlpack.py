"""DLPack, by which libraries hand on arrays without a copy (github.com/dmlc/dlpack, versions 0.8 and 1).

Who takes an array calls its deleter when he likes: on threads without the GIL, while an exception is under way, at the
interpreter's end. Python code cannot be called then, so deleters are machine code that does nothing but let go of an object.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..llvm.jit import compile_object, load_object

CPU, CUDA, CUDA_MANAGED = 1, 2, 13  # kinds of devices
VERSION = (1, 0)
READ_ONLY = 1  # flag
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # of NumPy's kinds


class Strided(NamedTuple):
    """Where elements lie: strides are in bytes."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    writable: bool


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_kind", ctypes.c_int32),
        ("device_number", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Plain(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_FORMS: dict[bytes, type[_Plain | _Versioned]] = {b"dltensor": _Plain, b"dltensor_versioned": _Versioned}
_NAMES = {form: ctypes.create_string_buffer(name) for name, form in _FORMS.items()}  # capsules keep their names' addresses

_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_keep = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))


def export(layout: Strided, device: tuple[int, int], owner: object, versioned: bool) -> Any:
    """A capsule with the array, which keeps `owner` for as long as someone uses it. `device` is its kind and number.

    Raises BufferError where the array cannot be told in this form.
    """
    itemsize = layout.dtype.itemsize
    if layout.dtype.kind not in CODES or not layout.dtype.isnative or any(s % itemsize for s in layout.strides):
        raise BufferError(f"DLPack cannot tell of {layout.dtype} with strides {layout.strides}")
    if not (layout.writable or versioned):
        raise BufferError("DLPack before version 1 cannot say that an array is read-only")
    ndim = len(layout.shape)
    shape = (ctypes.c_int64 * ndim)(*layout.shape)
    strides = (ctypes.c_int64 * ndim)(*(s // itemsize for s in layout.strides))
    managed: Any = _Versioned(*VERSION, flags=0 if layout.writable else READ_ONLY) if versioned else _Plain()
    managed.tensor = _Tensor(
        layout.pointer, *device, ndim, CODES[layout.dtype.kind], 8 * itemsize, 1,
        ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)), ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64)), 0,
    )  # fmt: skip
    kept = (managed, shape, strides, owner)
    form = type(managed)
    managed.context, managed.deleter = id(kept), _address(form, "delete")
    capsule = _new_capsule(ctypes.addressof(managed), ctypes.addressof(_NAMES[form]), _address(form, "discard"))
    _keep(kept)  # the deleter's
    return capsule


def read(capsule: Any) -> tuple[Strided, tuple[int, int]]:
    """The array in a capsule, and its device: both hold as long as the capsule does. Raises TypeError for other elements."""
    for name, form in _FORMS.items():
        if _is_valid(capsule, name):
            managed: Any = form.from_address(_pointer_of(capsule, name))
            break
    else:
        raise TypeError("not a DLPack capsule, or one that was used already")
    t = managed.tensor
    kind = next((kind for kind, code in CODES.items() if code == t.code), None)
    if kind is None or t.lanes != 1:
        raise TypeError(f"NumPy has no element type for DLPack's code {t.code}, {t.bits} bits, {t.lanes} lanes")
    dtype = np.dtype(f"{kind}{t.bits // 8}")
    shape = tuple(t.shape[: t.ndim])
    strides = tuple(s * dtype.itemsize for s in t.strides[: t.ndim]) if t.strides else compact(shape, dtype.itemsize)
    writable = not (form is _Versioned and managed.flags & READ_ONLY)
    return Strided((t.data or 0) + t.byte_offset, shape, strides, dtype, writable), (t.device_kind, t.device_number)


def compact(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides of rows one after the other, in bytes."""
    strides = []
    for n in reversed(shape):
        strides.append(itemsize)
        itemsize *= max(n, 1)
    return tuple(reversed(strides))


# machine code


def _address(form: type, what: str) -> int:
    address: int = _code().address(f"{what}_{form.__name__}")
    return address


@cache
def _code() -> Any:
    """`delete_FORM` for what was handed on, and `discard_FORM` for capsules that nobody has used. It stays for good."""
    symbols = [f"{what}_{form.__name__}" for form in _FORMS.values() for what in ("delete", "discard")]
    ir = _LET_GO.format(**_python()) + "".join(map(_of_form, _FORMS.values()))
    code = load_object(compile_object(ir), *symbols)
    _keep(code)
    return code


def _python() -> dict[str, str]:
    """Functions of CPython's, as LLVM writes their addresses."""
    names = (
        "Py_IsInitialized",
        "PyGILState_Ensure",
        "PyGILState_Release",
        "Py_DecRef",
        "PyCapsule_IsValid",
        "PyCapsule_GetPointer",
    )
    return {name: _literal(ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0) for name in names}


def _literal(address: int) -> str:
    return f"inttoptr (i64 {address} to ptr)"


def _of_form(form: type[_Plain | _Versioned]) -> str:
    name, offset = _literal(ctypes.addressof(_NAMES[form])), form.context.offset
    return _OF_FORM.format(**_python(), form=form.__name__, name=name, offset=offset)


_LET_GO = """
define internal void @let_go(ptr %object) {{
  %alive = call i32 {Py_IsInitialized}()
  %ended = icmp eq i32 %alive, 0
  br i1 %ended, label %end, label %go
go:
  %state = call i32 {PyGILState_Ensure}()
  call void {Py_DecRef}(ptr %object)
  call void {PyGILState_Release}(i32 %state)
  br label %end
end:
  ret void
}}
"""

_OF_FORM = """
define void @delete_{form}(ptr %managed) {{
  %place = getelementptr i8, ptr %managed, i64 {offset}
  %object = load ptr, ptr %place
  call void @let_go(ptr %object)
  ret void
}}

define void @discard_{form}(ptr %capsule) {{
  %valid = call i32 {PyCapsule_IsValid}(ptr %capsule, ptr {name})
  %used = icmp eq i32 %valid, 0
  br i1 %used, label %end, label %go
go:
  %managed = call ptr {PyCapsule_GetPointer}(ptr %capsule, ptr {name})
  call void @delete_{form}(ptr %managed)
  br label %end
end:
  ret void
}}
"""
