"""C programs that call exported functions, and their inputs."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any

import numpy as np

import featherweight as fw
from featherweight.engine.program import Input, KernelProgram, Output
from featherweight.exporting.routine import routines
from featherweight.model.generators import random_tree
from featherweight.spatial import sincos, sqrt
from patience import PATIENCE

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wmissing-prototypes", "-Werror", "-O1"]
BARE = [
    "-std=c99", "-O1", "-mthumb", "-mfloat-abi=hard", "-ffreestanding", "-fno-pic", "-fno-math-errno", "-nostdlib", "-static",
    "-Wl,--section-start=.vectors=0,-Ttext=0x1000,-Tdata=0x20000000,--build-id=none,-e,start",
]  # options for a board without an operating system  # fmt: skip
KINDS = ("revolute", "prismatic", "spherical")

MAIN = """
#include "{header}"
#include <stdio.h>
static unsigned char workspace[{NAME}_WORKSPACE_BYTES + 1];
int main(void)
{{
    static {T} {arrays};
    while ({reads}) {{
        if ({name}({names}, workspace + 1)) {{
            return 1;
        }}
        {writes}
    }}
    return {name}_workspace_bytes() <= {NAME}_WORKSPACE_BYTES ? 0 : 2;
}}
"""


BARE_STDIO = """\
/* What programs of a bare Cortex-M need of a system, asked of the debugger that runs them (semihosting). */
typedef unsigned long size_t;
enum { stdin, stdout = 4 };
int main(void);

static long ask(long what, const void *how)
{
    register long result __asm__("r0") = what;
    register const void *block __asm__("r1") = how;
    __asm__ volatile("bkpt 0xab" : "+r"(result) : "r"(block) : "memory");
    return result;
}

static int transferred(long what, int mode, const void *data, size_t size)
{
    static long files[5];
    if (!files[mode]) {
        const struct { const char *name; long mode, length; } open = {":tt", mode, 3};
        files[mode] = ask(1, &open);
    }
    {
        const struct { long file; const void *data; size_t size; } block = {files[mode], data, size};
        return ask(what, &block) == 0;
    }
}

#define fread(data, size, n, file) transferred(6, file, data, size)
#define fwrite(data, size, n, file) transferred(5, file, data, size)

void start(void)
{
    *(volatile unsigned *)0xE000ED88u |= 0xF00000u; /* the floating-point unit is off at first */
    __asm__ volatile("dsb\\n isb");
    {
        const long end[2] = {0x20026, main()};
        ask(0x20, end);
    }
}

__attribute__((section(".vectors"), used)) static void (*const vectors[2])(void) = {(void (*)(void))0x20300000, start};
"""
"""A replacement of <stdio.h> for boards without a system, with the startup code of such a program."""


def program(f: Any, name: str, header: str, precision: str) -> str:
    """Return a C program that reads arguments and writes results, state by state; its workspace begins at an odd address."""
    [routine] = routines({name: f})
    ins, outs = routine.c_names[: len(routine.inputs)], routine.c_names[len(routine.inputs) :]
    size = f"{name.upper()}_{{}}_SIZE"
    return MAIN.format(
        header=header,
        NAME=name.upper(),
        name=name,
        T=precision,
        arrays=", ".join(f"{n}[{size.format(n.upper())}]" for n in (*ins, *outs)),
        names=", ".join((*ins, *outs)),
        reads=" && ".join(f"fread({n}, sizeof {n}, 1, stdin) == 1" for n in ins),
        writes="\n        ".join(f"fwrite({n}, sizeof {n}, 1, stdout);" for n in outs),
    )


def run_in_c(command: Sequence[str], f: Any, states: Sequence[Any], dtype: Any) -> list[Any]:
    """Return the results of states, (n, *shape) each, from C."""
    rows = [np.ascontiguousarray(x, dtype).reshape(len(x), -1) for x in states]
    done = subprocess.run(command, input=np.hstack(rows).tobytes(), capture_output=True, check=True, timeout=PATIENCE)
    sizes = np.cumsum([y.size for y in f.program.outputs])
    table = np.frombuffer(done.stdout, dtype).reshape(len(rows[0]), -1)
    pieces = np.split(table, sizes[:-1], axis=1)
    return [x.reshape(-1, *y.shape) for x, y in zip(pieces, f.program.outputs, strict=True)]


def one_by_one(f: Any, states: Sequence[Any]) -> list[Any]:
    """Return the results of Python, one state in each call."""
    rows = [f(*state) for state in zip(*states, strict=True)]
    return [np.array(x) for x in zip(*rows, strict=True)] if isinstance(rows[0], tuple) else [np.array(rows)]


def quaternion_robot() -> fw.Robot:
    """Return a robot with a quaternion among its coordinates."""
    return fw.build(random_tree(4, rng=3, joint_types=KINDS, masses=(0.5, 3.0)))


def states(f: Any, robot: fw.Robot, dtype: Any) -> list[Any]:
    rng = np.random.default_rng(1)
    known = {"q": robot.random_configuration(rng=rng, size=6)}
    return [np.asarray(known.get(x.name, rng.standard_normal((6, *x.shape))), dtype) for x in f.program.inputs]


def trigonometry(x: Any, out: Any) -> None:
    """Compute sines of arguments, shifted arguments and computed values; results include an argument, a constant and a root."""
    s, c = sincos(x[0])
    t, d = sincos(x[1] + 1.0)
    u, e = sincos(x[0] * x[1])
    out[0], out[1], out[2], out[3], out[4] = s, c, t - d, u, e
    out[5], out[6], out[7], out[8] = x[1], -x[0], 2.5, sqrt(x[0] * x[0] + x[1] * x[1])


TRIGONOMETRY = fw.CompiledFunction(
    KernelProgram("trigonometry", trigonometry, (), (Input("x", (3,)),), (Output("t3", (9,)),)), "traced"
)
