"""Counts of a kernel's machine code, by NVIDIA's disassembler.

    python benchmarks/gpu/sass.py FILE.cubin

The disassembler is searched on the path, in the folder of a toolkit, and in the wheel nvidia-cuda-nvdisasm.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

LINE = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P(?:\d+|T)\s+)?([A-Z][A-Z0-9_.]*)", re.MULTILINE)
WIDTH = re.compile(r"\.(?:[US])?(8|16|32|64|128)(?:\.|$)")
WORD = 32  # bits that an instruction moves unless its name has another number

SINGLE = ("FFMA", "FADD", "FMUL")
DOUBLE = ("DFMA", "DADD", "DMUL")
LOCAL, SHARED = ("LDL", "STL", "LD", "ST"), ("LDS", "STS")  # LD and ST: generic addresses, of any memory
MOVES = (*LOCAL, *SHARED, "LDG", "STG")
FOLDERS = ("/usr/local/cuda/bin",)


class Instructions(NamedTuple):
    """Instructions of a kernel; each instruction of the code counts once."""

    total: int
    by_name: dict[str, int]  # name up to the first point
    local_bytes: int  # bytes to and from local memory, per thread
    shared_bytes: int

    @property
    def double(self) -> int:
        """The arithmetic instructions in double precision."""
        return sum(self.by_name.get(x, 0) for x in DOUBLE)

    @property
    def special(self) -> int:
        return self.by_name.get("MUFU", 0)

    @property
    def described(self) -> str:
        names = [*SINGLE, *DOUBLE, "MUFU", *MOVES, "CALL"]
        known = ", ".join(f"{self.by_name[x]} {x}" for x in names if self.by_name.get(x))
        return f"{self.total} instructions: {known}"


def count(text: str) -> Instructions:
    """Return the counts of disassembled code without NOPs, which fill its end."""
    names = [n for n in LINE.findall(text) if not n.startswith("NOP")]
    by_name = Counter(n.split(".")[0] for n in names)
    return Instructions(len(names), dict(by_name), _bytes(names, LOCAL), _bytes(names, SHARED))


def _bytes(names: list[str], which: tuple[str, ...]) -> int:
    """Return the bytes that the instructions of these names move, per thread."""
    widths = [WIDTH.findall(n) for n in names if n.split(".")[0] in which]
    return sum(int(w[-1]) if w else WORD for w in widths) // 8


def tool(name: str) -> Path | None:
    """Return the path of a program of NVIDIA's toolkit, first of this environment, or None."""
    found = shutil.which(name)
    wheels = [p for folder in sys.path for p in Path(folder or ".").glob(f"nvidia/*/bin/{name}")]
    candidates = [*wheels, *([Path(found)] if found else []), *(Path(folder) / name for folder in FOLDERS)]
    return next((p for p in candidates if p.is_file()), None)


def disassembled(cubin: bytes) -> Instructions | None:
    """Return the instructions of device code, or None without a disassembler."""
    program = tool("nvdisasm")
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        done = subprocess.run([str(program), "-c", str(path)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{program} failed: {done.stderr.strip() or done.stdout.strip()}")
    return count(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    found = disassembled(parser.parse_args().file.read_bytes())
    print("nvdisasm is missing on this machine" if found is None else found.described)


if __name__ == "__main__":
    main()
