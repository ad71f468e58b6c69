"""Tests of the digest of a kernel, which changes with all functions that it calls, and with nothing else."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import textwrap
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import featherweight as fw
from featherweight.engine import sources
from featherweight.engine.sources import digest

KERNEL = """
import functools
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

import {helper} as alias
import {helper}.inner
from {helper} import Gains, borrowed, remembered

LIMIT = 2.0
TABLE = np.linspace(0.0, 1.0, 3000)
RATIO = Fraction(1, 3)
CHOSEN = {{1, 2}}
BY_NAME = {{"a": 1.0}}
NAMES = range(3)
half = functools.partial(alias.scaled, factor=0.5)
gains = Gains(2.0)


def decorated(f):
    @functools.wraps(f)
    def wrapper(x):
        return f(x) + 1.0
    return wrapper


def closed(factor):
    def inner(x):
        return x * factor
    return inner


tripled = closed(3.0)


@decorated
def shifted(x):
    return x - 4.0


def with_defaults(x, offset=5.0, *, gain=6.0):
    return x * gain + offset


def with_function(x, f=borrowed):
    return f(x)


def branches(x):
    return [y for y in (lambda z: z + 7.0, lambda z: z - 7.0)]


def kernel(x, out):
    y = borrowed(x[0]) * LIMIT + TABLE[0] * RATIO + BY_NAME["a"] + half(x[0]) + tripled(x[0]) + shifted(x[0])
    y = y + with_defaults(x[0]) + with_function(x[0]) + alias.scaled(x[0], 8.0) + {helper}.inner.deep(x[0])
    y = y + gains.total + gains.of(x[0]) + gains.STEP + gains.inherited(x[0]) + remembered(x[0]) + branches(x)[0](x[0])
    for k in NAMES:
        if k in CHOSEN:
            y = y + math.sin(0.0)
    out[0] = y
"""

HELPER = """
import functools
from typing import NamedTuple


def borrowed(x):
    return x + 9.0


def scaled(x, factor):
    return x * factor


@functools.lru_cache
def remembered(x):
    return x + 10.0


class Base:
    __slots__ = ()

    def inherited(self, x):
        return x + 11.0


class _Gains(NamedTuple):
    first: float


class Gains(Base, _Gains):
    __slots__ = ()
    STEP = 12.0

    @property
    def total(self):
        return self.first + 13.0

    def of(self, x):
        return x * self.first + 14.0

    @staticmethod
    def unused(x):
        return x + 15.0
"""

INNER = """
def deep(x):
    return x + 16.0
"""

FILES = {"kernel": KERNEL, "__init__": HELPER, "inner": INNER}
_numbers = count()


def loaded(folder: Path, monkeypatch: pytest.MonkeyPatch, file: str = "", old: str = "", new: str = "") -> ModuleType:
    """Load the kernel's module with one text replaced in one of its files; the modules keep their names but not their files."""
    room = folder / str(next(_numbers))
    for name, text in FILES.items():
        if name == file:
            assert old in text
            text = text.replace(old, new)
        path = room / (f"{name}.py" if name == "kernel" else f"other/{name}.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(helper="other") if name == "kernel" else text)
    for name in ("kernel", "other", "other.inner"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    monkeypatch.syspath_prepend(str(room))
    return importlib.import_module("kernel")


def digested(module: ModuleType) -> str:
    return digest(module.kernel, ((module.gains, 1.0),))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        pytest.param("kernel", "LIMIT = 2.0", "LIMIT = 2.5", id="constant"),
        pytest.param("kernel", "0.0, 1.0, 3000", "0.0, 1.5, 3000", id="array"),
        pytest.param("kernel", "Fraction(1, 3)", "Fraction(1, 4)", id="fraction"),
        pytest.param("kernel", "CHOSEN = {{1, 2}}", "CHOSEN = {{1, 3}}", id="set"),
        pytest.param("kernel", '{{"a": 1.0}}', '{{"a": 1.5}}', id="dictionary"),
        pytest.param("kernel", "range(3)", "range(4)", id="range"),
        pytest.param("kernel", "factor=0.5", "factor=0.6", id="argument of a partial function"),
        pytest.param("kernel", "closed(3.0)", "closed(3.5)", id="closure"),
        pytest.param("kernel", "x * factor\n", "x / factor\n", id="function of a closure"),
        pytest.param("kernel", "f(x) + 1.0", "f(x) + 1.5", id="decorator"),
        pytest.param("kernel", "x - 4.0", "x - 4.5", id="decorated function"),
        pytest.param("kernel", "offset=5.0", "offset=5.5", id="default"),
        pytest.param("kernel", "gain=6.0", "gain=6.5", id="default of a keyword"),
        pytest.param("kernel", "f=borrowed", "f=tripled", id="function as default"),
        pytest.param("kernel", "z - 7.0", "z - 7.5", id="inner function"),
        pytest.param("kernel", "x[0], 8.0", "x[0], 8.5", id="constant of the kernel"),
        pytest.param("kernel", "math.sin", "math.cos", id="function of another module's"),
        pytest.param("__init__", "x + 9.0", "x + 9.5", id="function of another file"),
        pytest.param("__init__", "x * factor", "factor + x", id="function by a module's alias"),
        pytest.param("inner", "x + 16.0", "x + 16.5", id="function of a module of a package"),
        pytest.param("__init__", "x + 10.0", "x + 10.5", id="cached function"),
        pytest.param("__init__", "x + 11.0", "x + 11.5", id="method of a base"),
        pytest.param("__init__", "STEP = 12.0", "STEP = 12.5", id="attribute of a class"),
        pytest.param("__init__", "self.first + 13.0", "self.first + 13.5", id="property"),
        pytest.param("__init__", "x * self.first + 14.0", "x + self.first + 14.0", id="method"),
        pytest.param("__init__", "first: float", "second: float\n    first: float = 1.0", id="field"),
    ],
)
def test_an_edit_of_what_a_kernel_uses_changes_it(
    file: str, old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = digested(loaded(tmp_path, monkeypatch))
    assert digested(loaded(tmp_path, monkeypatch, file, old, new)) != before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        pytest.param("kernel", "\nLIMIT", "\n\n# a comment\n\n\nLIMIT", id="lines moved and comments"),
        pytest.param("kernel", "return x * gain + offset", "return x*gain   +  (offset)", id="spaces"),
        pytest.param("__init__", "import functools\n", "import functools\nunused = 3\n", id="a name that is not used"),
        pytest.param("kernel", "LIMIT = 2.0", "other_name = LIMIT = 2.0", id="another name for the same"),
    ],
)
def test_what_does_not_matter_changes_nothing(
    file: str, old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = digested(loaded(tmp_path, monkeypatch))
    assert digested(loaded(tmp_path, monkeypatch, file, old, new)) == before


def test_other_processes_hash_seeds_and_orders_of_import_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = loaded(tmp_path, monkeypatch)
    assert module.__file__ is not None
    code = """
        import sys; sys.path.insert(0, sys.argv[1])
        for name in sys.argv[2:]: __import__(name)
        import kernel
        from featherweight.engine.sources import digest
        for call in range(int(sys.argv[2] == "other")): kernel.kernel([0.5], [0.0])  # specialized bytecode counts as before
        print(digest(kernel.kernel, ((kernel.gains, 1.0),)))
    """
    for seed, order in (("0", ("other", "featherweight")), ("12345", ("featherweight", "other.inner"))):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code), str(Path(module.__file__).parent), *order],
            env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip() == digested(module)


def test_a_module_that_is_loaded_again_counts_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = loaded(tmp_path, monkeypatch)
    before = digested(module)
    monkeypatch.setattr(module, "LIMIT", 3.0)
    changed = digested(module)
    assert changed != before
    monkeypatch.setattr(module.alias, "scaled", lambda x, factor: x + factor)
    assert digested(module) not in (before, changed)


PLAIN = """
import {helper} as alias
import {helper}.inner
from {helper} import Gains, remembered

LIMIT, SIGNED = 2.0, True


def closed(factor):
    def inner(x):
        return x * factor
    return inner


tripled = closed(3.0)


def with_default(x, offset=5.0):
    return x + offset


def kernel(x, out):
    y = tripled(x[0]) * LIMIT + alias.scaled(x[0], 8.0) + alias.inner.deep(x[0]) + remembered(x[0]) + with_default(x[0])
    out[0] = y + Gains.STEP if SIGNED else y
"""


def test_a_cached_hash_follows_changes_of_loaded_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILES, "kernel", PLAIN)
    module = loaded(tmp_path, monkeypatch)
    alias, cell = module.alias, module.tripled.__closure__[0]
    before = digest(module.kernel, (module.Gains,))
    assert sources._digests[module.kernel] and digest(module.kernel, (module.Gains,)) == before
    seen = {before}
    for thing, name, value in (
        (module, "LIMIT", 3.0), (module, "SIGNED", False), (alias, "scaled", lambda x, factor: x + factor),
        (alias.inner, "deep", alias.borrowed), (alias, "inner", alias), (module, "remembered", alias.borrowed),
        (module.with_default, "__defaults__", (6.0,)), (cell, "cell_contents", 4.0), (module.Gains, "STEP", 13.0),
        (alias.scaled, "__code__", module.with_default.__code__), (module, "Gains", alias.Base),
    ):  # fmt: skip
        with monkeypatch.context() as changed:
            changed.setattr(thing, name, value)
            seen.add(digest(module.kernel, (module.Gains,)))
        assert digest(module.kernel, (module.Gains,)) == before
    assert len(seen) == 12


def test_kernels_without_a_module_and_objects_that_hold_themselves_are_digested() -> None:
    namespace: dict[str, Any] = {"GAIN": 1.0}
    exec("def helper(x):\n    return x * GAIN\ndef kernel(x, out):\n    out[0] = helper(x[0])", namespace)
    first = digest(namespace["kernel"])
    namespace["GAIN"] = 2.0
    assert digest(namespace["kernel"]) != first

    class Knot:
        def __init__(self) -> None:
            self.itself, self.size = self, 1.0

    knot = Knot()

    def kernel(x: Any, out: Any) -> None:
        out[0] = x[0] * knot.size

    first = digest(kernel)
    assert digest(kernel) == first
    knot.size = 2.0
    assert digest(kernel) != first


SCRIPT = """
import sys; sys.path.insert(0, {room!r})
import numpy as np
from featherweight.engine.backends.llvm import backend
from featherweight.engine.function import CompiledFunction
from featherweight.engine.program import Input, KernelProgram, Output
from helper import scaled

compiled = []
emit = backend.compile_object
backend.compile_object = lambda ir: compiled.append(ir) or emit(ir)

{kernel}

program = KernelProgram("kernel", kernel, (), (Input("x", (2,)),), (Output("out", (2,)),))
f = CompiledFunction(program, "traced")
print(f(np.array([1.0, 2.0])).tolist(), f(np.ones((3, 2)))[0].tolist(), len([x for x in compiled if "@entry" not in x]))
"""


def test_a_new_process_runs_what_was_edited_and_compiles_nothing_else(tmp_path: Path) -> None:
    in_main = "def kernel(x, out):\n    for i in range(2):\n        out[i] = scaled(x[i]) + {offset}"

    def run(factor: float, offset: float, comment: str = "") -> str:
        room = tmp_path / f"{factor} {comment}"
        room.mkdir(exist_ok=True)
        (room / "helper.py").write_text(f"{comment}\ndef scaled(x):\n    return {factor} * x\n")
        script = room / "script.py"
        script.write_text(SCRIPT.format(room=str(room), kernel=comment + "\n" + in_main.format(offset=offset)))
        environment = os.environ | {"FEATHERWEIGHT_CACHE": str(tmp_path / "cache")}
        return subprocess.run(
            [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True
        ).stdout.strip()

    assert run(3.0, 0.5) == "[3.5, 6.5] [3.5, 3.5] 2"
    assert run(3.0, 0.5) == "[3.5, 6.5] [3.5, 3.5] 0"
    assert run(3.0, 0.5, "# moved\n\n") == "[3.5, 6.5] [3.5, 3.5] 0"
    assert run(4.0, 0.5) == "[4.5, 8.5] [4.5, 4.5] 2"  # the helper, in another file
    assert run(4.0, 1.5) == "[5.5, 9.5] [5.5, 5.5] 2"  # the kernel, in __main__
    assert run(3.0, 0.5) == "[3.5, 6.5] [3.5, 3.5] 0"


def first(x: Any) -> Any:
    return second(x - 1) if x else 0


def second(x: Any) -> Any:
    return first(x - 1) if x else 0


class Looked(NamedTuple):
    """A constant whose functions are found in a table."""

    x: float

    @staticmethod
    def code() -> tuple[Any, ...]:
        return first, second


def test_kernels_that_lead_to_the_same_functions_differ() -> None:
    assert digest(first) != digest(second)
    constants = (Looked(1.0),)
    assert digest(first, constants) != digest(second, constants)
    assert digest(first, constants) != digest(first)


def test_no_two_functions_of_a_robot_with_loops_have_one_key() -> None:
    robot = fw.build(fw.robots.four_bar())
    functions = [g for f in robot.functions.values() for g in f.alternatives.values()]
    assert len({f.own.traced.identity for f in functions}) == len(functions)
