"""Instructions of kernels by kind, with registers allocated by NVIDIA's assembler and by our own rule.

    PYTHONPATH=benchmarks/peers python benchmarks/gpu/instructions.py [docs/pictures/gpu_instructions.png]

It needs ptxas and nvdisasm (pip install nvidia-cuda-nvcc nvidia-cuda-nvdisasm), but no device. Counts are those of the code:
instructions of loops count once, and instructions of branches that are not taken count too.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

from register_use import CAPABILITY, Model, Use, assembled, robot
from sass import DOUBLE, LOCAL, SHARED, SINGLE, Instructions, disassembled

from featherweight.engine.backends.cuda.code import assembly
from featherweight.engine.backends.cuda.device_code import DeviceCode

SHOWN = (
    ("panda", "forward_dynamics"),
    ("hyq", "forward_dynamics"),
    ("talos_reduced", "inverse_dynamics"),
    ("talos_reduced", "forward_dynamics"),
)
PRECISIONS = {"float": "float32", "double": "float64"}
KINDS = {
    "arithmetic": (*SINGLE, *DOUBLE, "MUFU"),
    "local memory": LOCAL,
    "shared memory": SHARED,
    "device's memory": ("LDG", "STG"),
}
WAYS = ("left to the assembler", "own rule")


class Way(NamedTuple):
    """One way to write a kernel."""

    title: str
    use: Use
    instructions: Instructions

    def of_kind(self, kind: str) -> int:
        return sum(self.instructions.by_name.get(name, 0) for name in KINDS[kind])


def ways(name: str, function: str, precision: str) -> list[Way]:
    """Return the two ways that a first call compares."""
    f, model = getattr(robot(name), function), Model()
    place: Any = model
    kernels = DeviceCode(f.program, f.own.traced).kernels(place, precision)
    found = []
    for title, candidate in zip(WAYS, kernels.candidates[: kernels.compared], strict=True):
        cubin, use = assembled(assembly(candidate.ir(), CAPABILITY))
        counted = disassembled(cubin)
        if counted is None:
            raise SystemExit("nvdisasm is missing: pip install nvidia-cuda-nvdisasm")
        found.append(Way(title, use, counted))
    return found


def table(found: dict[str, list[Way]]) -> str:
    """Return a Markdown table of the instructions and memory of each way."""
    head = ["function", "registers are", "registers", "bytes of local memory", "moves to and from it", "instructions"]
    rows = [head, ["---"] * len(head)]
    for title, both in found.items():
        shorter = min(both, key=lambda w: w.instructions.total)
        for w in both:
            total = f"**{w.instructions.total}**" if w is shorter else str(w.instructions.total)
            rows.append([title, w.title, str(w.use.registers), str(w.use.stack), str(w.of_kind("local memory")), total])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def draw(found: dict[str, list[Way]], path: Path) -> None:
    """Draw bars of instructions by kind, two for each function."""
    from matplotlib.figure import Figure

    from featherweight.viewer.chart_style import style

    labels = [f"{title}\n{w.title}" for title, both in found.items() for w in both]
    every = [w for both in found.values() for w in both]
    with style():
        figure = Figure(figsize=(8.5, 0.42 * len(every) + 1.2), layout="constrained")
        axes = figure.subplots()
        begun = [0] * len(every)
        for kind in [*KINDS, "the rest"]:
            widths = [w.of_kind(kind) if kind in KINDS else w.instructions.total - b for w, b in zip(every, begun, strict=True)]
            axes.barh(range(len(every)), widths, left=begun, label=kind)
            begun = [b + width for b, width in zip(begun, widths, strict=True)]
        axes.set_yticks(range(len(every)), labels, fontsize=6.5)
        axes.invert_yaxis()
        axes.set_xlabel("instructions in the code of a state (ptxas, sm_90)")
        axes.legend(fontsize=7, loc="upper right")
        axes.grid(axis="x")
        figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", nargs="?", type=Path)
    given = parser.parse_args()
    found = {
        f"{name}, {function.replace('_', ' ')}, {single}": ways(name, function, precision)
        for name, function in SHOWN
        for precision, single in PRECISIONS.items()
    }
    print(table(found))
    if given.picture is not None:
        draw(found, given.picture)


if __name__ == "__main__":
    main()
