"""Tests of code for devices, with NVIDIA's assembler if it is installed."""

from __future__ import annotations

import re

import numpy as np
import pytest
from register_use import (
    FUNCTIONS,
    NAMES,
    PRECISIONS,
    TABLE,
    Use,
    assembled,
    functions,
    kernel,
    key,
    makers,
    read_table,
    version,
)

from engine.backends.cuda.ptx_text import assert_rounded_as_here
from featherweight.engine.backends.cuda import copies
from featherweight.engine.backends.cuda.code import CAPABILITIES, assembly
from featherweight.engine.backends.cuda.emit_thread import NVIDIA
from featherweight.engine.backends.cuda.kernel import KernelLayout, emit_module
from featherweight.engine.backends.llvm.ir import Type
from oracles.robots import example

needs_assembler = pytest.mark.skipif(not version(), reason="without ptxas: pip install nvidia-cuda-nvcc")
SOON = {"hyq": FUNCTIONS[:3], "g1_29dof": FUNCTIONS[1:2], "talos_reduced": FUNCTIONS[1:2], "mini_cheetah": FUNCTIONS[1:3]}
"""Functions of large robots that the assembler compiles quickly; the script compares the others, too."""


def ir(precision: str, keeps: bool = True) -> str:
    """Return the IR of Panda's forward dynamics, with all arguments and results in a block's memory."""
    f = example("panda").forward_dynamics
    layout = KernelLayout((True,) * len(f.program.shapes), keeps, 32)
    return emit_module(f.trace, f.program.shapes, Type(precision, 1), layout, NVIDIA)


@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_rounding_is_that_of_this_machine(precision: str, capability: tuple[int, int]) -> None:
    text = assembly(ir(precision), capability).decode()
    assert_rounded_as_here(text, 1000)
    assert re.search(rf"^\.target sm_{capability[0]}{capability[1]}$", text, re.M)
    if version() and (precision == "double" or capability in ((7, 5), max(CAPABILITIES))):
        assembled(text.encode(), capability)


@needs_assembler
def test_copies_are_assembled_for_all_types() -> None:
    for source, goal in (("?", "d"), ("u8", "d"), ("e", "f"), ("d", "e")):
        text = copies.emit_copy(np.dtype(source), np.dtype(goal), NVIDIA)
        assembled(assembly(text, (7, 5)), (7, 5))


@needs_assembler
@pytest.mark.parametrize("precision", PRECISIONS)
def test_spilling_takes_the_memory_that_it_says(precision: str) -> None:
    """Check that if our rule assigns the registers, the assembler spills nothing itself."""
    _, use = assembled(assembly(ir(precision, keeps=False), (9, 0)))
    assert (use.spill_stores, use.spill_loads) == (0, 0)
    assert use.registers < 255


@needs_assembler
@pytest.mark.parametrize("name", NAMES)
def test_kernels_take_no_more_registers_and_memory(name: str) -> None:
    made_with, table = read_table()
    if made_with != makers():
        pytest.skip(
            f"the table is for {made_with}, this machine has {makers()}: run python benchmarks/gpu/register_use.py --write"
        )
    for function, f in functions(name, derivatives=False):
        for precision in PRECISIONS:
            this = key(name, function, precision)
            if function in SOON.get(name, FUNCTIONS):
                _, use = kernel(f, precision)
                assert not use.worse_than(table[this]), (
                    f"{this}: {use}, and {table[this]} in {TABLE.name}; "
                    "if this is intended, run python benchmarks/gpu/register_use.py --write"
                )


def test_more_stack_and_spills_are_seen() -> None:
    table = read_table()[1]
    assert {name.split()[0] for name in table} == set(NAMES)
    assert {name.split()[1] for name in table} == set(FUNCTIONS)
    old = Use(100, 100, 0, 200)
    assert not Use(255, 142, 32, 252).worse_than(old)
    for worse in (Use(90, 144, 0, 200), Use(90, 100, 40, 200), Use(90, 100, 0, 256)):
        assert worse.worse_than(old)
