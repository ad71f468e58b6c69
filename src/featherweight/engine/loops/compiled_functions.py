"""Kernels that Python calls: specialized by the types of their arguments, compiled at the first call, cached on disk."""

from __future__ import annotations

import ctypes
import functools
import inspect
import struct
from collections.abc import Callable, Iterator
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from ..backends.llvm.jit import host, load_object
from ..backends.llvm.python_objects import ALIGNED, CONTIGUOUS, layouts_known
from ..forks import new_lock
from .kernel_code import Facts, Specialization, code_of
from .kernel_sources import KernelError, Record, is_checked, raise_violation
from .kernel_types import BOOL, FLOAT, INT, ArrayType, StaticType, TupleType, Type, named_tuples, type_of
from .kernel_writer import ITEMS, words_of
from .loop_writer import number_types, write_entry, write_module
from .planner import Planner

P = ParamSpec("P")
R = TypeVar("R")

NO_MEMORY = "no memory for the lists of a compiled kernel"
_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p)
_PLAIN = CONTIGUOUS | ALIGNED
_OBJECTS = layouts_known()  # whether machine code reads NumPy's objects directly
_FORMAT = {"double": "d", "i64": "q", "i1": "q", "ptr": "q"}


class CompiledKernel(Generic[P, R]):
    """A function as machine code that runs without the GIL; `python` is the function itself.

    Arguments are C-contiguous arrays, numbers, None, strings, and (named) tuples of these. The result is None, a number, or a
    tuple of numbers. Raises KernelError for code that cannot be compiled, and ValueError for arrays that are not C-contiguous.
    """

    def __init__(self, function: Callable[P, R], fused: bool = True) -> None:
        self.python, self.fused = function, fused
        functools.update_wrapper(self, function)
        self._count = function.__code__.co_argcount
        self._ready: dict[Any, _Ready] = {}
        self._compiling = new_lock()

    def __call__(self, *args: P.args, **named: P.kwargs) -> R:
        if named:
            raise TypeError(f"{self.python.__name__}: arguments of compiled kernels are positional; got {', '.join(named)}")
        if len(args) != self._count:
            args = self._all_of(args)  # type: ignore[assignment]
        key: list[Any] = []
        flat: list[Any] = []
        for x in args:
            _describe(x, key, flat)
        try:
            ready = self._ready[tuple(key)]
        except KeyError:
            ready = self._made(tuple(key), args)
        return ready(flat)

    def _all_of(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments, with defaults for missing ones."""
        bound = inspect.signature(self.python).bind(*args)
        bound.apply_defaults()
        return bound.args

    def _made(self, key: tuple[Any, ...], args: tuple[Any, ...]) -> _Ready:
        with self._compiling:  # other threads wait for the first one
            if key not in self._ready:
                self._ready[key] = self._compiled(args)
            return self._ready[key]

    def _compiled(self, args: tuple[Any, ...]) -> _Ready:
        types = tuple(map(_checked_type, args))
        what = f"the kernel {self.python.__name__}"
        text = f"{' '.join(map(str, types))}{' as objects' * _OBJECTS}"
        kernel = Specialization(self.python, self.fused, text, named_tuples(types), what, is_checked())
        return _Ready(types, *code_of(kernel, lambda: self._written(types, kernel.checked)))

    def _fitted(self, types: tuple[Type, ...]) -> tuple[Type, ...]:
        """Return the types of the parameters; `*name` collects the remaining ones."""
        code: Any = self.python.__code__
        if not code.co_flags & inspect.CO_VARARGS:
            return types
        count = code.co_argcount
        return (*types[:count], TupleType(types[count:]))

    def _written(self, types: tuple[Type, ...], checked: bool) -> tuple[Facts, str]:
        """Return facts and IR of the module."""
        planner = Planner(self.fused and host().fma)
        plan = planner.kernel(self.python, self._fitted(types))  # type: ignore[arg-type]
        facts = {"result": _result_shape(self.python, plan.result), "places": planner.plan.places if checked else []}
        lines, kernel = write_module(planner.plan, planner.fused, host().fma, checked)
        return facts, "\n".join([*lines, write_entry(planner.plan, kernel, "kernel", _OBJECTS, checked)])


def compiled(function: Callable[P, R]) -> CompiledKernel[P, R]:
    """Return the function as machine code: see `CompiledKernel`."""
    return CompiledKernel(function)


class _Ready:
    """Machine code for arguments of some types."""

    def __init__(self, types: tuple[Type, ...], facts: Facts, code: bytes) -> None:
        self._code = load_object(code, "kernel")  # kept alive
        self._run = _ENTRY(self._code.address("kernel"))
        words = (("ptr",) if _OBJECTS and isinstance(t, ArrayType) else words_of(t) for t in number_types(types))
        self._pack = struct.Struct("=" + "".join(_FORMAT[w] for some in words for w in some)).pack
        self._result, self._places = facts["result"], facts["places"]
        self._unpack = struct.Struct("=" + "".join("d" if k == "float" else "q" for k in _leaves(self._result)))

    def __call__(self, flat: list[Any]) -> Any:
        results = ctypes.create_string_buffer(self._unpack.size) if self._unpack.size else None
        record = Record() if self._places else None
        try:
            words = self._pack(*flat)
        except struct.error:
            raise OverflowError("a whole number for a compiled kernel does not fit into 64 bits") from None
        if self._run(words, results, record):
            raise MemoryError(NO_MEMORY)
        if record is not None:
            raise_violation([*record], self._places)
        return None if results is None else _shaped(self._result, iter(self._unpack.unpack(results)))


def _describe(x: Any, key: list[Any], flat: list[Any]) -> None:
    """Append everything that an argument's machine code depends on to `key`, and its words to `flat`."""
    kind = type(x)
    if kind is np.ndarray or isinstance(x, np.ndarray):
        if x.flags.num & _PLAIN != _PLAIN:
            raise ValueError("arrays for compiled kernels must be C-contiguous and aligned; see numpy.ascontiguousarray")
        if not x.dtype.isnative:
            raise ValueError(f"arrays for compiled kernels have the byte order of the processor; got {x.dtype.str}")
        key += x.dtype.char, x.ndim
        if _OBJECTS:
            flat.append(id(x))  # its address
        else:
            flat.append(x.ctypes.data)
            flat += x.shape
    elif kind is float or kind is int or kind is bool:
        key.append(kind)
        flat.append(x)
    elif isinstance(x, tuple):
        key += kind, len(x)
        for y in x:
            _describe(y, key, flat)
    elif isinstance(x, (np.bool_, np.integer, np.floating)):
        _describe(x.item(), key, flat)
    elif x is None or isinstance(x, str) or callable(x):
        key.append(x)
    else:
        raise KernelError(f"{x!r} is not an argument of kernels; use arrays, numbers, strings, None and tuples of these")


def _checked_type(x: Any) -> Type:
    type = type_of(x)
    if isinstance(type, ArrayType) and type.dtype not in ITEMS:
        raise KernelError(f"an array of {x.dtype} is not an argument of kernels; use {', '.join(ITEMS)}")
    if isinstance(type, TupleType):
        for y in x:
            _checked_type(y)
    return type


def _result_shape(function: Any, type: Type) -> Any:
    """Return a result's type as nested lists of names."""
    if type in (BOOL, INT, FLOAT):
        return str(type)
    if isinstance(type, TupleType):
        return [_result_shape(function, x) for x in type.items]
    if type == StaticType(None):
        return None
    raise KernelError(f"{function.__qualname__} returns {type}; a kernel must return numbers to Python, or write to arrays")


def _leaves(result: Any) -> Iterator[str]:
    if isinstance(result, list):
        for x in result:
            yield from _leaves(x)
    elif result is not None:
        yield result


def _shaped(result: object, values: Iterator[Any]) -> Any:
    if isinstance(result, list):
        return tuple(_shaped(x, values) for x in result)
    if result is None:
        return None
    value = next(values)
    return bool(value) if result == "bool" else value
