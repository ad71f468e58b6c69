"""Tests of calls: arguments and `out` of every Python type, at every entry point, and arrays at the end of a memory page.

A call must give the bits of the same call with plain arrays of its precision, which agree with the interpreted kernel to
rounding, or raise TypeError or ValueError that names the argument. It must not write outside `out`, nor to its arguments.
"""

from __future__ import annotations

import array
import ctypes
import functools
import tempfile
import warnings
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from engine.guard import guarded
from engine.kernels import SEVERAL
from featherweight.array_types import Array
from featherweight.engine.function import CompiledFunction
from trial.conftest import Rounds

REAL = "efdg" + "bhilqBHILQ?"  # type characters of NumPy for real numbers


# ---- functions


@functools.cache
def robot() -> fw.Robot:
    return fw.build(fw.generators.random_tree(2, rng=3, joint_types=("planar", "revolute")))


def closed() -> CompiledFunction:
    return fw.build(fw.robots.geared_chain(2)).forward_dynamics


ENTRIES: dict[str, Callable[[], CompiledFunction[Any]]] = {
    "several": lambda: CompiledFunction(SEVERAL, "traced"),
    "one": lambda: robot().forward_dynamics,
    "option": lambda: robot().inverse_dynamics.variant("external_forces"),
    "fused": lambda: robot().together(robot().mass_matrix, robot().bias_force, robot().kinetic_energy),
    "closed": closed,
    "rolled": lambda: CompiledFunction(SEVERAL, "rolled"),
    "interpreted": lambda: CompiledFunction(SEVERAL, "interpreted"),
}


@functools.cache
def entry(name: str) -> tuple[CompiledFunction[Any], CompiledFunction[Any]]:
    """A function, and the same function interpreted."""
    f = ENTRIES[name]()
    return f, CompiledFunction(f.program, "interpreted")


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """Compile the functions before the trial, so that compilation does not use its time."""
    for name in ENTRIES:
        f, _ = entry(name)
        for dtype in (np.float64, np.float32):
            f(*(np.zeros((2, *a.shape), dtype) for a in f.program.inputs))


# ---- arguments


class OwnArray:
    """An object that has numbers but is not an array."""

    def __init__(self, x: Array) -> None:
        self.x = x


class WithArray(OwnArray):
    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return np.asarray(self.x, dtype)


class WithInterface(OwnArray):
    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.x.__array_interface__


class WithStruct(OwnArray):
    @property
    def __array_struct__(self) -> Any:
        return self.x.__array_struct__


class WithExchange(OwnArray):
    def __dlpack__(self, **given: Any) -> Any:
        return self.x.__dlpack__(**given)

    def __dlpack_device__(self) -> Any:
        return self.x.__dlpack_device__()


class WithBuffer(OwnArray):
    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, k: int) -> Any:
        return self.x[k]


class Sub(np.ndarray):
    """A subclass of arrays whose arithmetic would spoil results."""

    def __array_ufunc__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("arithmetic of a subclass")


def unaligned(x: Array) -> Array:
    return np.frombuffer(b"x" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)


def strided(x: Array, step: int) -> Array:
    wide = np.zeros((*x.shape[:-1], abs(step) * x.shape[-1]), x.dtype) if x.ndim else np.zeros(abs(step), x.dtype)
    view = wide[..., ::step] if x.ndim else wide[0, ...]
    view[...] = x
    return view


def permuted(x: Array) -> Array:
    return np.ascontiguousarray(x.transpose()).transpose()


def mapped(x: Array) -> Any:
    with tempfile.TemporaryFile() as file:
        made = np.memmap(file, x.dtype, "w+", shape=x.shape) if x.size else x
        made[...] = x
        return made


def masked(x: Array, some: bool) -> Any:
    mask = np.zeros(x.shape, bool)
    (mask[..., -1:] if x.ndim else mask)[...] = some
    return np.ma.MaskedArray(x, mask)


def quietly(make: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """Return the function without the warnings of NumPy's old classes."""

    def made(x: Array) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make(x)

    return made


def records(x: Array) -> Any:
    return np.rec.fromarrays([x, x], [("a", x.dtype), ("b", x.dtype)])


def native(x: Array) -> Array:
    return x if x.dtype.char in "fdbhilBHIL" else x.astype(np.float64)


KINDS: dict[str, Callable[[Array], Any]] = {
    "plain": lambda x: x,
    "strided": lambda x: strided(x, 3),
    "backwards": lambda x: strided(x, -2),
    "permuted": permuted,
    "columns first": lambda x: np.array(x, order="F"),
    "unaligned": unaligned,
    "read-only": lambda x: guarded_flag(x.copy()),
    "swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "unaligned, swapped": lambda x: unaligned(x.astype(x.dtype.newbyteorder())),
    "subclass": lambda x: x.view(Sub),
    "matrix": quietly(lambda x: np.matrix(x) if x.ndim in (1, 2) else x),
    "masked, nothing": lambda x: masked(x, False),
    "masked, something": lambda x: masked(x, True),
    "records": records,
    "field of records": lambda x: records(x).b,
    "char array": quietly(lambda x: np.char.array(np.full(x.shape, "1.0"))),
    "memory map": mapped,
    "list": lambda x: x.tolist(),
    "tuples": lambda x: nested_tuples(x.tolist()),
    "list of arrays": lambda x: list(x) if x.ndim else x[()],
    "deque": lambda x: deque(x.tolist()) if x.ndim else x,
    "range": lambda x: range(x.shape[0]) if x.ndim == 1 else x,
    "memoryview": lambda x: native(x).data,
    "array.array": lambda x: array.array("d", x.tolist()) if x.ndim == 1 else x,
    "array.array of singles": lambda x: array.array("f", x.tolist()) if x.ndim == 1 else x,
    "ctypes": lambda x: (ctypes.c_double * len(x))(*x.tolist()) if x.ndim == 1 else x,
    "bytes": lambda x: x.tobytes(),
    "bytearray": lambda x: bytearray(x.tobytes()),
    "__array__": WithArray,
    "__array_interface__": WithInterface,
    "__array_struct__": WithStruct,
    "__dlpack__": lambda x: WithExchange(native(x)),
    "sequence": lambda x: WithBuffer(x) if x.ndim else x,
    "own object": OwnArray,
    "generator": lambda x: (y for y in x.ravel().tolist()),
    "dictionary": lambda x: dict(enumerate(x.ravel().tolist())),
    "text": lambda x: "1.0",
    "none": lambda x: None,
    "one element less": lambda x: x[..., :-1] if x.ndim else x,
    "one axis more": lambda x: x[..., None],
    "complex": lambda x: x.astype(complex),
    "dates": lambda x: np.zeros(x.shape, "M8[s]"),
    "spans": lambda x: np.zeros(x.shape, "m8[s]"),
    "words": lambda x: x.astype("U9"),
    "void": lambda x: np.zeros(x.shape, "V8"),
    "objects": lambda x: x.astype(object),
}


def guarded_flag(x: Array) -> Array:
    x.flags.writeable = False
    return x


def nested_tuples(x: Any) -> Any:
    return tuple(map(nested_tuples, x)) if isinstance(x, list) else x


def as_plain(x: Any) -> Array | None:
    """Return the argument as an ordinary array, or None if some of its elements are masked or not real numbers."""
    if isinstance(x, np.ma.MaskedArray) and np.ma.getmaskarray(x).any():
        return None
    try:
        plain = np.from_dlpack(x) if isinstance(x, WithExchange) else np.array(np.asarray(x), subok=False)
    except (TypeError, ValueError, AssertionError, BufferError):
        return None
    return plain if plain.dtype.char in REAL else None


def fits(x: Array, shape: tuple[int, ...]) -> bool:
    """Return whether an array has the core shape of an argument."""
    return x.ndim >= len(shape) and x.shape[x.ndim - len(shape) :] == shape


def joint_batch(plain: list[Array], f: CompiledFunction[Any]) -> tuple[int, ...] | None:
    """Return the batch axes of arguments, or None if they do not broadcast."""
    if not all(fits(x, a.shape) for x, a in zip(plain, f.program.inputs, strict=True)):
        return None
    batches = [x.shape[: x.ndim - len(a.shape)] for x, a in zip(plain, f.program.inputs, strict=True)]
    try:
        return np.broadcast_shapes(*batches)
    except ValueError:
        return None


def numbers(f: CompiledFunction[Any], batch: tuple[int, ...], rng: np.random.Generator) -> list[Array]:
    """Return ordinary arguments; a few have no batch axes, or broadcast over some."""
    arguments = []
    for a in f.program.inputs:
        axes = batch if rng.random() < 0.7 else batch[int(rng.integers(len(batch) + 1)) :]
        axes = tuple(1 if rng.random() < 0.1 else n for n in axes)
        dtype = str(rng.choice(list("ddddffff" + REAL)))
        with np.errstate(invalid="ignore"):
            arguments.append(rng.uniform(-2.0, 2.0, (*axes, *a.shape)).astype(dtype))
    return arguments


def as_tuple(results: Any) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, tuple) else (results,)


def random_batch(rng: np.random.Generator) -> tuple[int, ...]:
    axes = int(rng.choice([0, 0, 1, 1, 1, 2, 3]))
    return tuple(int(rng.choice([0, 1, 2, 3, 5, 8, 9, 33, 70] if axes == 1 else [0, 1, 2, 3, 5])) for _ in range(axes))


def call(f: CompiledFunction[Any], arguments: list[Any], rng: np.random.Generator, **options: Any) -> Any:
    """Call with some or all arguments by keyword, in any order."""
    names = [a.name for a in f.program.inputs]
    k = int(rng.integers(len(names) + 1)) if rng.random() < 0.4 else len(names)
    named = {names[i]: arguments[i] for i in rng.permutation(range(k, len(names)))}
    return f(*arguments[:k], **named, **options)


def refusal(attempt: Callable[..., Any], what: object) -> Exception:
    """Return the TypeError or ValueError that a call raises."""
    try:
        attempt()
    except (TypeError, ValueError) as error:
        return error
    raise AssertionError(f"was not refused: {what}")


def test_arguments_of_every_kind_are_taken_or_refused_by_name(rounds: Rounds) -> None:
    for rng in rounds(0.05):
        name = str(rng.choice(list(ENTRIES)))
        f, kernel = entry(name)
        given = numbers(f, random_batch(rng), rng)
        kinds = [str(rng.choice(list(KINDS))) if rng.random() < 0.5 else "plain" for _ in given]
        arguments: list[Any] = [KINDS[kind](x) for kind, x in zip(kinds, given, strict=True)]
        what = (name, kinds, [(x.dtype.str, x.shape) for x in given])
        plain = [as_plain(x) for x in arguments]
        usable = [p for p in plain if p is not None]
        batch = joint_batch(usable, f) if len(usable) == len(plain) else None
        if batch is None:
            wrong = [a.name for a, p in zip(f.program.inputs, plain, strict=True) if p is None or not fits(p, a.shape)]
            error = refusal(lambda f=f, x=arguments, rng=rng: call(f, x, rng), what)
            names = wrong or [a.name for a in f.program.inputs]
            assert any(f" {name} " in f" {error} " for name in names), (str(error), names, what)
            continue
        before = [x.tobytes() for x in given]
        single = all(p.dtype.kind == "f" and p.dtype.itemsize <= 4 for p in usable)
        same = [p.astype(np.float32 if single else np.float64) for p in usable]
        results, wanted = as_tuple(call(f, arguments, rng)), as_tuple(f(*same))
        assert [x.tobytes() for x in given] == before, what
        exact = as_tuple(kernel(*(p.astype(np.float64) for p in usable)))
        for r, w, e, output in zip(results, wanted, exact, f.program.outputs, strict=True):
            assert type(r) in (np.ndarray, np.float64, np.float32), what
            assert r.dtype == w.dtype == (np.float32 if single else np.float64), what
            assert r.shape == (*batch, *output.shape), what
            np.testing.assert_array_equal(r, w, err_msg=str(what))
            allowed = (1e-3 if single else 1e-11) * (1.0 + np.abs(e).max(initial=0.0))
            np.testing.assert_allclose(np.asarray(r, np.float64), e, rtol=0.0, atol=allowed, err_msg=str(what))


# ---- results


class Place:
    """An array for results between bytes that must not change."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, step: int, rng: np.random.Generator) -> None:
        self.dtype = np.dtype(dtype)
        size = self.dtype.itemsize * int(np.prod(shape, dtype=int)) * step
        shift = int(rng.choice([0, 0, 1, 4, 8]))
        self.area = rng.integers(0, 256, 64 + size + 64 + shift, dtype=np.uint8)
        flat = self.area[64 + shift : 64 + shift + size].view(self.dtype)[::step]
        order = [int(i) for i in rng.permutation(len(shape))] if rng.random() < 0.3 else list(range(len(shape)))
        flat = flat.reshape([shape[i] for i in order])  # a view: it has one axis
        view = flat.transpose(np.argsort(order)) if shape else flat
        turns = tuple(slice(None, None, -1) if rng.random() < 0.15 else slice(None) for _ in shape)
        self.view = view[turns] if shape else view
        self.kept = self.area.copy()

    def only_written(self) -> bool:
        """Return whether all bytes outside the array are unchanged."""
        self.view[...] = 0
        written = self.area.copy()
        self.area[:] = self.kept
        self.view[...] = 0
        return bool(np.array_equal(written, self.area))


DTYPES_OF_OUT = ("f8", "f8", "f8", "f4", "f4", "f2", ">f8", ">f4", "c16")


def random_call(rng: np.random.Generator) -> tuple[str, Any, tuple[int, ...], Any, list[Any], tuple[Any, ...]]:
    """Return an entry's name and function, a batch and a precision, arguments, and results in new arrays."""
    name = str(rng.choice(list(ENTRIES)))
    f, _ = entry(name)
    batch = random_batch(rng)
    dtype = np.float64 if rng.random() < 0.6 else np.float32
    given = [rng.uniform(-2.0, 2.0, (*batch, *a.shape)).astype(dtype) for a in f.program.inputs]
    wanted = as_tuple(f(*given))
    return name, f, batch, dtype, given, wanted


def test_results_go_where_they_should_and_nowhere_else(rounds: Rounds) -> None:
    for rng in rounds(0.025):
        name, f, batch, dtype, given, wanted = random_call(rng)
        places = [Place((*batch, *r.shape), rng.choice(DTYPES_OF_OUT), int(rng.integers(1, 4)), rng) for r in f.program.outputs]
        out = tuple(p.view for p in places)
        what = (name, batch, dtype, [(v.dtype.str, v.shape, v.strides) for v in out])
        with np.errstate(over="ignore"):  # numbers too large for half precision
            results = as_tuple(call(f, given, rng, out=out if len(out) > 1 else out[0]))
        for r, p, w in zip(results, places, wanted, strict=True):
            assert r is p.view, what
            with np.errstate(over="ignore"):
                np.testing.assert_array_equal(p.view, np.asarray(w).astype(p.dtype), err_msg=str(what))
            assert p.only_written(), what


FAULTS: dict[str, Callable[[Array], Any]] = {
    "whole numbers": lambda x: x.astype(np.int64),
    "truths": lambda x: x.astype(bool),
    "objects": lambda x: x.astype(object),
    "words": lambda x: x.astype("U8"),
    "dates": lambda x: np.zeros(x.shape, "M8[s]"),
    "read-only": lambda x: guarded_flag(x),
    "one axis more": lambda x: x[..., None],
    "one state more": lambda x: np.full((2, *x.shape), 7.0),
    "list": lambda x: x.tolist(),
    "memoryview": lambda x: x.data,
    "broadcast": lambda x: np.broadcast_to(7.0, x.shape),
    "no array": WithArray,
}


def test_arrays_that_are_no_place_for_results_are_refused_by_name(rounds: Rounds) -> None:
    for rng in rounds(0.005):
        name = str(rng.choice(list(ENTRIES)))
        f, _ = entry(name)
        batch = random_batch(rng)
        given = [rng.uniform(-2.0, 2.0, (*batch, *a.shape)) for a in f.program.inputs]
        out: list[Any] = [np.full((*batch, *r.shape), 7.0) for r in f.program.outputs]
        k = int(rng.integers(len(out)))
        fault = str(rng.choice(list(FAULTS)))
        out[k] = FAULTS[fault](out[k])
        what = (name, fault, batch, k)
        error = refusal(
            lambda f=f, x=given, out=out, rng=rng: call(f, x, rng, out=tuple(out) if len(out) > 1 else out[0]), what
        )
        assert "out" in str(error), (what, str(error))
        for i, y in enumerate(out):
            if i != k:
                assert (y == 7.0).all(), "written before it was refused"


def test_results_on_arguments_are_what_they_are_elsewhere(rounds: Rounds) -> None:
    """Let `out` overlap with an argument in random ways; the function must not read overwritten elements."""
    for rng in rounds(0.005):
        name, f, batch, dtype, given, wanted = random_call(rng)
        i, k = int(rng.integers(len(given))), int(rng.integers(len(wanted)))
        size = max(given[i].size, np.size(wanted[k]))
        area = np.zeros(2 * size + 8, dtype)
        at, to = (int(rng.integers(size + 8 - 1)) if size else 0 for _ in range(2))
        here = area[at : at + given[i].size].reshape(given[i].shape)
        here[...] = given[i]
        out = [np.zeros(np.shape(w), dtype) for w in wanted]
        out[k] = area[to : to + out[k].size].reshape(out[k].shape)
        arguments = [here if j == i else x for j, x in enumerate(given)]
        results = as_tuple(call(f, arguments, rng, out=tuple(out) if len(out) > 1 else out[0]))
        for r, w in zip(results, wanted, strict=True):
            np.testing.assert_array_equal(r, w, err_msg=str((name, batch, dtype, i, k, at, to)))


# ---- the end of a memory page


def at_edge(x: Array, at_end: bool) -> Array:
    """Return a copy that ends at a page without access; an array without elements is placed there."""
    if x.size:
        return guarded(x, at_end)
    one = guarded(np.zeros(1, x.dtype), at_end)
    return (one[1:] if at_end else one[:0]).reshape(x.shape)


# plain Python never accesses memory beyond an array
@pytest.mark.parametrize("name", [name for name in ENTRIES if name != "interpreted"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("at_end", [True, False])
def test_nothing_is_read_or_written_beyond_arrays_at_the_edge_of_memory(name: str, dtype: Any, at_end: bool) -> None:
    f, _ = entry(name)
    rng = np.random.default_rng(0)
    for batch in ((), *((n,) for n in range(71)), (3, 5), (0, 4)):
        given = [rng.uniform(-2.0, 2.0, (*batch, *a.shape)).astype(dtype) for a in f.program.inputs]
        wanted = as_tuple(f(*given))
        edge = [at_edge(x, at_end) for x in given]
        out = tuple(at_edge(np.full(np.shape(w), np.nan, dtype), at_end) for w in wanted)
        for r, w in zip(as_tuple(f(*edge)), wanted, strict=True):
            np.testing.assert_array_equal(r, w)
        f(*edge, out=out if len(out) > 1 else out[0])
        for o, w in zip(out, wanted, strict=True):
            np.testing.assert_array_equal(o, w)
