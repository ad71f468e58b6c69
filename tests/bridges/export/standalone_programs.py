"""C programs that run exported controllers on inputs from files, for comparison with Python."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bridges.export.c_programs import BARE, BARE_STDIO
from patience import PATIENCE

STRICT = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Wshadow", "-Wdouble-promotion", "-Werror", "-O1"]

MAIN = """
#include "{name}.h"
#include <stdio.h>
#include <string.h>
static unsigned char workspace[{NAME}_WORKSPACE_BYTES + 1];
int main(void)
{{
    {name}_input input;
    {name}_output output;
    long long status;
    {name}_defaults(&input);
    if ({name}_tick(workspace + 1, &input, &output) != {NAME}_NOT_READY) {{
        return 2;
    }}
    if ({name}_workspace_bytes() != {NAME}_WORKSPACE_BYTES || !{name}_reset(0) || {name}_reset(workspace + 1)) {{
        return 3;
    }}
    if (!strlen({name}_version()) || !strlen({name}_status_words(0)) || !strlen({name}_joint_names[0])) {{
        return 4;
    }}
    memset(&output, 0, sizeof output);
    while (fread(&input, sizeof input, 1, stdin) == 1) {{
        status = {name}_tick(workspace + 1, &input, &output);
        fwrite(&status, sizeof status, 1, stdout);
        fwrite(&output, sizeof output, 1, stdout);
    }}
    return 0;
}}
"""


def built(folder: Path, name: str, compiler: str = "gcc", *more: str) -> Path:
    """Return a program, at a path, that runs the ticks of an exported library."""
    (folder / "main.c").write_text(MAIN.format(name=name, NAME=name.upper()))
    command = [compiler, *STRICT, *more, "main.c", f"lib{name}.a", "-o", "main"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "main"


def built_from_source(folder: Path, name: str, *flags: str, compiler: str = "gcc") -> Path:
    """Return a program, at a path, that runs the ticks of exported source, and leave its object there.

    The source must compile without warnings.
    """
    (folder / "main.c").write_text(MAIN.format(name=name, NAME=name.upper()))
    for file, output in ((f"{name}.c", ["-c"]), ("main.c", [f"{name}.o", "-o", "main"])):
        subprocess.run([compiler, *STRICT, file, *output, *flags], cwd=folder, check=True)
    return folder / "main"


def records(inputs: Sequence[Mapping[str, Any]]) -> bytes:
    """Return inputs, whose values are in the order of the record, as the program reads them."""
    rows = [[np.asarray(x) for x in row.values()] for row in inputs]
    return b"".join(x.astype("<i8" if x.dtype.kind in "ib" else "<f8").tobytes() for row in rows for x in row)


def run(command: Sequence[str], given: bytes, sizes: Sequence[int]) -> tuple[list[int], list[list[Any]]]:
    """Return the status of each tick, and its results, of sizes."""
    done = subprocess.run(command, input=given, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr.decode()
    table = np.frombuffer(done.stdout, np.float64).reshape(-1, 1 + sum(sizes))
    results = np.split(table[:, 1:], np.cumsum(sizes)[:-1], axis=1)
    return table[:, 0].copy().view(np.int64).tolist(), [[*x] for x in zip(*results, strict=True)]


def emulated(folder: Path, name: str, *source: str) -> list[str]:
    """Return the command of the program for AArch64, from `source` with these options; skip the test where it cannot run."""
    compiler = shutil.which("aarch64-linux-gnu-gcc")
    emulator = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if not compiler or not emulator:
        pytest.skip("needs aarch64-linux-gnu-gcc and qemu")
    if source:
        return [emulator, str(built_from_source(folder, name, "-static", *source, compiler=compiler))]
    return [emulator, str(built(folder, name, compiler, "-static"))]


def emulated_arm(folder: Path, name: str, *source: str) -> list[str]:
    """Return the command of the program for 32-bit ARM under Linux, as `emulated` does for AArch64."""
    compiler, emulator = shutil.which("arm-linux-gnueabihf-gcc"), shutil.which("qemu-arm") or shutil.which("qemu-arm-static")
    if not compiler or not emulator:
        pytest.skip("needs arm-linux-gnueabihf-gcc and qemu")
    options = "-static", "-mcpu=cortex-a7", "-mfpu=neon-vfpv4", *source
    if source:
        return [emulator, str(built_from_source(folder, name, *options, compiler=compiler))]
    return [emulator, str(built(folder, name, compiler, *options))]


BARE_STRING = """\
/* What the program above needs of the C library. */
static inline size_t strlen(const char *text)
{
    size_t n = 0;
    while (text[n]) {
        n++;
    }
    return n;
}

static inline void clear(void *memory, size_t size)
{
    for (size_t k = 0; k < size; k++) {
        ((volatile unsigned char *)memory)[k] = 0;
    }
}

#define memset(memory, value, size) clear(memory, size)
"""


def emulated_microcontroller(folder: Path, name: str, libgcc: bool) -> list[str]:
    """Return the command of the program for a Cortex-M7 with a double-precision unit, without an operating system.

    Only one of the compilers has a `libgcc` for this processor.
    """
    compilers = "arm-none-eabi-gcc", "arm-linux-gnueabihf-gcc"
    compiler = next(filter(None, map(shutil.which, compilers[: 1 if libgcc else 2])), None)
    emulator = shutil.which("qemu-system-arm")
    if not compiler or not emulator:
        pytest.skip(f"needs {compilers[0]}{'' if libgcc else f' or {compilers[1]}'}, and qemu-system-arm")
    text = MAIN.format(name=name, NAME=name.upper()).replace("<stdio.h>", '"stdio.h"').replace("<string.h>", '"string.h"')
    for file, content in (("main.c", text), ("stdio.h", BARE_STDIO), ("string.h", BARE_STRING)):
        (folder / file).write_text(content)
    flags = ["-mcpu=cortex-m7", "-mfpu=fpv5-d16", *BARE]
    subprocess.run([compiler, *flags, "main.c", f"lib{name}.a", *["-lgcc"] * libgcc, "-o", "main"], cwd=folder, check=True)
    board = [emulator, "-M", "mps2-an500", "-nographic", "-monitor", "none", "-serial", "none", "-semihosting-config"]
    return [*board, "enable=on,target=native", "-kernel", str(folder / "main")]
