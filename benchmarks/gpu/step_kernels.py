"""Registers, stack and memory of a whole step with contact on a device, one thread per robot, by NVIDIA's tools.

    python benchmarks/gpu/step_kernels.py [ant humanoid ...]

It needs ptxas and nvlink (pip install nvidia-cuda-nvcc) and Gymnasium's robots, but no device. Each robot takes minutes. The
table is Markdown: registers and stack per thread as nvlink counts them along the calls, local memory (arrays of the stages,
with their largest sizes), and processor time of LLVM and of ptxas [s].
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from register_use import CAPABILITY
from rollouts import asset
from sass import tool

import featherweight as fw
from featherweight.engine.backends.cuda.code import assembly
from featherweight.simulation.device_rollout import loop_of

NAMES = ("hopper", "half_cheetah", "ant", "humanoid")
SAID = re.compile(r"used (\d+) registers, .*?(\d+) stack")
HEAD = ("robot", "registers", "bytes of stack", "KB of local memory", "KB of PTX", "KB of machine code", "LLVM, s", "ptxas, s")


class LinkedUse(NamedTuple):
    """Registers and stack of a thread, and the size of the machine code."""

    registers: int
    stack: int  # bytes
    code: int  # bytes of machine code


def linked(ptx: bytes, capability: tuple[int, int] = CAPABILITY) -> LinkedUse:
    """Return the use of a kernel with all functions that it calls; raise RuntimeError with the tools' message."""
    architecture = f"-arch=sm_{capability[0]}{capability[1]}"
    with tempfile.TemporaryDirectory() as folder:
        source, part, whole = (str(Path(folder) / name) for name in ("kernel.ptx", "part.cubin", "whole.cubin"))
        Path(source).write_bytes(ptx)
        _run("ptxas", architecture, "-c", source, "-o", part)
        said = SAID.findall(_run("nvlink", architecture, "-v", part, "-o", whole))
        registers, stack = map(int, said[-1])
        return LinkedUse(registers, stack, Path(whole).stat().st_size)


def _run(name: str, *arguments: str) -> str:
    """Return the output of a program; raise RuntimeError if it fails."""
    done = subprocess.run([str(tool(name)), *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{name} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout + done.stderr


def row(name: str) -> list[str]:
    """Return the row of the table for a robot of Gymnasium."""
    loop = loop_of(fw.Simulation(fw.load(asset(name)), contact="rigid")._fleet)
    ir, begun = loop.module(), time.process_time()
    ptx = assembly(ir, CAPABILITY, loops=True)
    translation, before = time.process_time() - begun, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    use = linked(ptx)
    sizes = (f"{bytes / 1000:.0f}" for bytes in (loop.own_bytes, len(ptx), use.code))
    assembling = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return [name, str(use.registers), str(use.stack), *sizes, f"{translation:.0f}", f"{assembling:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="*", default=NAMES)
    for cells in (HEAD, ["---"] * len(HEAD)):
        print(f"| {' | '.join(cells)} |")
    for name in parser.parse_args().robots:
        print(f"| {' | '.join(row(name))} |", flush=True)


if __name__ == "__main__":
    main()
