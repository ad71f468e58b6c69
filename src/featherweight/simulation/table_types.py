"""Tables (see `machine_code`) as Numba's types, and LLVM IR of functions of them. Imports Numba."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import numba
from llvmlite import binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils, codegen, cpu
from numba.core.compiler_lock import global_compiler_lock
from numba.core.datamodel import models, register_default
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, overload, overload_method

from .compiling import FAST, jitable, teach_numba
from .machine_code import Layout, call_address

_types: dict[str, Any] = {}


class TableType(types.Type):  # type: ignore[misc]
    """A pointer to the words of a table."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.places = {name: (numba_type(inner), inner, at) for name, inner, at in layout.fields}
        super().__init__(name=f"Table_{hashlib.sha256(layout.text().encode()).hexdigest()[:16]}")


@register_default(TableType)
class _TableModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, ir.IntType(64).as_pointer())


@infer_getattr
class _TableAttributes(AttributeTemplate):  # type: ignore[misc]
    key = TableType

    def generic_resolve(self, table: Any, name: str) -> Any:
        found = table.places.get(name)
        return found[0] if found else None


@lower_getattr_generic(TableType)  # type: ignore[untyped-decorator]
def _table_attribute(context: Any, builder: Any, table: Any, pointer: Any, name: str) -> Any:
    _, inner, at = table.places[name]
    return _loaded(context, builder, pointer, inner, at)


def numba_type(inner: Any) -> Any:
    """The type of a field."""
    if isinstance(inner, Layout):
        return table_type(inner)
    if isinstance(inner, tuple):
        scalar = types.boolean if inner[0] == "bool" else getattr(types, inner[0])
        return types.Array(scalar, inner[1], "C")
    return {"int": types.int64, "float": types.float64, "bool": types.boolean, "NoneType": types.none}[inner]


def _loaded(context: Any, builder: Any, pointer: Any, inner: Any, at: int) -> Any:
    """The value of a field whose first word is number `at`."""

    def word(k: int) -> Any:
        return builder.load(builder.gep(pointer, [ir.Constant(ir.IntType(64), k)]))

    kind = numba_type(inner)
    if isinstance(inner, Layout):
        return builder.gep(pointer, [ir.Constant(ir.IntType(64), at)])
    if isinstance(inner, tuple):
        return view(context, builder, kind, word(at), [word(at + 1 + k) for k in range(inner[1])])
    if inner == "NoneType":
        return context.get_dummy_value()
    if inner == "float":
        return builder.bitcast(word(at), ir.DoubleType())
    return builder.trunc(word(at), ir.IntType(1)) if inner == "bool" else word(at)


def view(context: Any, builder: Any, kind: Any, address: Any, shape: list[Any]) -> Any:
    """A C-contiguous array at an address, which nobody owns."""
    array = context.make_array(kind)(context, builder)
    size = context.get_abi_sizeof(context.get_value_type(kind.dtype))
    item = ir.Constant(ir.IntType(64), size)
    strides = [item]
    for n in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], n))
    context.populate_array(
        array,
        data=builder.inttoptr(address, context.get_data_type(kind.dtype).as_pointer()),
        shape=cgutils.pack_array(builder, shape),
        strides=cgutils.pack_array(builder, strides),
        itemsize=item,
        meminfo=None,
    )
    return array._getvalue()


@intrinsic  # type: ignore[untyped-decorator]
def _call_address(context: Any, address: Any, arguments: Any) -> Any:
    """Call `int f(double **arguments)` at an address, with an array of pointers."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = builder.inttoptr(values[0], ir.FunctionType(i32, [pointer]).as_pointer())
        data = context.make_array(signature.args[1])(context, builder, values[1]).data
        return builder.sext(builder.call(function, [builder.bitcast(data, pointer)]), ir.IntType(64))

    return types.int64(types.int64, arguments), code


@overload(call_address)
def _typed_call(address, arguments):  # type: ignore[no-untyped-def]  # Numba compares its signature with the result's
    return lambda address, arguments: _call_address(address, arguments)


def llvm_ir(function: Callable[..., int], layouts: list[Layout], numbers: int) -> str:
    """A module with `i64 @loop(i64 ..)` for addresses of tables, then whole numbers."""
    kinds = [table_type(layout) for layout in layouts]
    names = [f"x{k}" for k in range(len(kinds) + numbers)]
    scope: dict[str, Any] = {f"as_table{k}": _caster(kind) for k, kind in enumerate(kinds)} | {"function": jitable(function)}
    passed = [f"as_table{k}({x})" if k < len(kinds) else x for k, x in enumerate(names)]
    exec(f"def loop({', '.join(names)}):\n    return function({', '.join(passed)})", scope)
    signature = types.int64(*[types.int64] * len(names))
    teach_numba()
    options: dict[str, Any] = dict(_nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    with _lowered_only():
        dispatcher = numba.njit(signature, error_model="numpy", fastmath=FAST, **options)(scope["loop"])
        (compiled,) = dispatcher.overloads.values()
        module = llvm.parse_assembly(str(compiled.library._final_module))
        for library in _linked(compiled.library):
            module.link_in(llvm.parse_assembly(str(library._final_module)))
    module.link_in(llvm.parse_assembly(_entry(compiled.fndesc.llvm_func_name, len(names))))
    for f in module.functions:
        if not f.is_declaration and f.name != "loop":
            f.linkage = "internal"
    return str(module)


@contextmanager
def _lowered_only() -> Iterator[None]:
    """Numba makes LLVM IR of functions and nothing more: what it would optimize and load for each of them, with all that it
    calls, is done once, for all of them together."""
    patches: tuple[tuple[Any, str, Any], ...] = (
        (cpu.CPUContext, "get_executable", lambda self, library, fndesc, env: [].append),
        (codegen.CPUCodeLibrary, "finalize", lambda self: setattr(self, "_finalized", True)),
        (codegen.CPUCodeLibrary, "_optimize_functions", lambda self, module: None),
    )
    with global_compiler_lock:
        known = [getattr(owner, name) for owner, name, _ in patches]
        for owner, name, patch in patches:
            setattr(owner, name, patch)
        try:
            yield
        finally:
            for (owner, name, _), own in zip(patches, known, strict=True):
                setattr(owner, name, own)


def _linked(library: Any) -> list[Any]:
    """All libraries that a library calls, directly or not."""
    found, waiting = {}, [library]
    while waiting:
        for other in waiting.pop()._linking_libraries:
            if other is not library and id(other) not in found:
                found[id(other)] = other
                waiting.append(other)
    return list(found.values())


def _entry(symbol: str, numbers: int) -> str:
    """Numba's functions return a status, and the result where they are told."""
    parameters = ", ".join(f"i64 %x{k}" for k in range(numbers))
    declared = ", ".join(["i64"] * numbers)
    return (
        f'declare i32 @"{symbol}"(ptr, ptr, {declared})\n'
        f"define i64 @loop({parameters}) {{\n  %result = alloca i64\n  %error = alloca ptr\n  store i64 0, ptr %result\n"
        f'  %status = call i32 @"{symbol}"(ptr %result, ptr %error, {parameters})\n'
        "  %value = load i64, ptr %result\n  ret i64 %value\n}\n"
    )


def table_type(layout: Layout) -> Any:
    """That of tables of a layout, with the methods of its named tuple."""
    text = layout.text()
    if text not in _types:
        _types[text] = _with_methods(layout.kind)(layout)
    return _types[text]


_classes: dict[type, Any] = {}


def _with_methods(kind: type) -> Any:
    """A type whose tables have the methods of a named tuple."""
    if kind not in _classes:
        own = type(f"{kind.__name__}Table", (TableType,), {})
        register_default(own)(_TableModel)
        for name, method in vars(kind).items():
            if isinstance(method, FunctionType) and not name.startswith("_"):
                overload_method(own, name)(_implementation(method))
        _classes[kind] = own
    return _classes[kind]


def _implementation(method: Any) -> Callable[..., Any]:
    def typed(self):  # type: ignore[no-untyped-def]  # Numba compares its signature with the implementation's
        return method

    return typed


def _caster(kind: Any) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def as_table(context: Any, address: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.inttoptr(values[0], ir.IntType(64).as_pointer())

        return kind(types.int64), code

    return as_table
