"""Registers and memory per thread of kernels, by NVIDIA's assembler, which needs no device.

    python benchmarks/gpu/register_use.py            # the current use, beside the table that tests compare with
    python benchmarks/gpu/register_use.py --write    # writes the table
    python benchmarks/gpu/register_use.py --robots talos_reduced --derivatives    # functions that take too long for tests

The assembler is `ptxas` of the wheel nvidia-cuda-nvcc, or of a toolkit. With `nvdisasm`, instructions are counted too. The code
is for devices of compute capability 9.0, in the version that a first call would choose. The driver of a device may have another
version of the assembler.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from measure import FILES, ROBOTS
from sass import disassembled, tool

import featherweight as fw
from featherweight.engine.backends.cuda.code import assembly
from featherweight.engine.backends.cuda.device_code import DeviceCode
from featherweight.engine.function import CompiledFunction

TABLE = Path(__file__).parents[2] / "tests/gpu/register_use.json"
CAPABILITY = (9, 0)
PRECISIONS = ("float", "double")
FUNCTIONS = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "inverse_mass_matrix")
MINI_CHEETAH, SLIDES = "mini_cheetah", "slides"
NAMES = ("panda", "hyq", "g1_29dof", "talos_reduced", MINI_CHEETAH, SLIDES)
SAID = r"Used (\d+) registers", r"(\d+) bytes stack frame", r"(\d+) bytes spill stores", r"(\d+) bytes spill loads"
GROWTH, SLACK = 1.1, 32  # accepted growth of stack and spills: a factor, and bytes


class Use(NamedTuple):
    """Registers, and bytes of memory, of one thread."""

    registers: int
    stack: int
    spill_stores: int
    spill_loads: int

    def worse_than(self, other: Use) -> bool:
        return any(new > GROWTH * old + SLACK for new, old in zip(self[1:], other[1:], strict=True))


class Model(NamedTuple):
    """The device that code is compiled for when there is none."""

    name: str = "no device"
    capability: tuple[int, int] = CAPABILITY
    driver_version: int = 0
    shared_bytes: int = 232_448


@cache
def version() -> str:
    """Return the assembler's release, such as "13.0", or "" without an assembler."""
    program = tool("ptxas")
    if program is None:
        return ""
    text = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=True).stdout
    return str(re.findall(r"release (\d+\.\d+)", text)[0])


def assembled(ptx: bytes, capability: tuple[int, int] = CAPABILITY) -> tuple[bytes, Use]:
    """Return machine code and the use of its kernel; raise RuntimeError with the assembler's message."""
    with tempfile.TemporaryDirectory() as folder:
        source, goal = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_bytes(ptx)
        command = [str(tool("ptxas")), f"-arch=sm_{capability[0]}{capability[1]}", "-c", "-v", str(source), "-o", str(goal)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"ptxas failed: {done.stderr.strip() or done.stdout.strip()}")
        cubin = goal.read_bytes()
    said = done.stdout + done.stderr
    sums = [max(map(int, re.findall(pattern, said))) for pattern in SAID]
    return cubin, Use(*sums)


def kernel(function: CompiledFunction[Any], precision: str) -> tuple[bytes, Use]:
    """Return the kernel of a function that a first call would choose, the one with the shortest code."""
    model: Any = Model()
    kernels = DeviceCode(function.program, function.own.traced).kernels(model, precision)
    candidates = [assembled(assembly(c.ir(), CAPABILITY)) for c in kernels.candidates[: kernels.compared]]
    return min(candidates, key=lambda choice: len(choice[0]))


@cache
def robot(name: str, folder: Path = ROBOTS) -> fw.Robot | fw.ClosedRobot:
    """Return a robot of a file, a robot with loops from the library, or a robot with joints of all types."""
    if name == MINI_CHEETAH:
        return fw.build(fw.robots.mini_cheetah())
    if name == SLIDES:
        from featherweight.model.generators import chain

        return fw.build(chain(6, joint="prismatic"))
    file, base = FILES[name]
    return fw.load(folder / file, base, mimic="independent")


def functions(name: str, derivatives: bool, folder: Path = ROBOTS) -> Iterator[tuple[str, CompiledFunction[Any]]]:
    """Yield the functions of a robot by name."""
    for wanted in FUNCTIONS:
        function = getattr(robot(name, folder), wanted)
        yield wanted, function
        if derivatives and wanted.endswith("dynamics"):
            yield f"{wanted}.derivative", function.derivative()


def key(robot: str, function: str, precision: str) -> str:
    return f"{robot} {function} {precision}"


def makers() -> str:
    """Return the versions of the compilers, which the numbers depend on."""
    return f"ptxas {version()}, LLVM {llvm.llvm_version_info[0]}"


def read_table() -> tuple[str, dict[str, Use]]:
    """Return the compilers of the table, and the use of each kernel."""
    content = json.loads(TABLE.read_text())
    return content["makers"], {name: Use(*numbers) for name, numbers in content["kernels"].items()}


def write_table(uses: dict[str, Use]) -> None:
    lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(list(use))}" for name, use in uses.items())
    TABLE.write_text(f'{{\n  "makers": {json.dumps(makers())},\n  "kernels": {{\n{lines}\n  }}\n}}\n')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument("--derivatives", action="store_true", help="include derivatives of dynamics: minutes each")
    parser.add_argument("--write", action="store_true", help="write the table")
    parser.add_argument("--folder", type=Path, default=ROBOTS, help="folder of the robot files")
    given = parser.parse_args()
    if not version():
        parser.error("ptxas is missing: pip install nvidia-cuda-nvcc")
    before = read_table()[1] if TABLE.exists() else {}
    uses: dict[str, Use] = {}
    print(f"ptxas {version()}, sm_{CAPABILITY[0]}{CAPABILITY[1]}: registers, bytes of stack, of spill stores, of spill loads")
    for name in given.robots:
        for function, f in functions(name, given.derivatives, given.folder):
            for precision in PRECISIONS:
                this, begun = key(name, function, precision), time.perf_counter()
                cubin, uses[this] = kernel(f, precision)
                taken = time.perf_counter() - begun
                counted = disassembled(cubin)
                known = before.get(this, uses[this])
                changed = f"  (table: {', '.join(map(str, known))})" if known != uses[this] else ""
                print(f"{this:45s} {', '.join(map(str, uses[this]))}  in {taken:.1f} s{changed}", flush=True)
                if counted is not None:
                    print(f"    {counted.described}")
    if given.write:
        write_table(before | uses)


if __name__ == "__main__":
    main()
