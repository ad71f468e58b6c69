"""Measure our functions on an NVIDIA device: figures, bounds, other libraries, tables and a chart, in less than ten minutes.

    PYTHONPATH=benchmarks/peers python benchmarks/gpu/run.py [--output output/gpu] [--minutes 9] [--only PART ...]

Data are on the device, in arrays of PyTorch or CuPy. Times are medians by device events and by wall clock. Results are compared
with the processor's. The run leaves out parts for which a package, a robot file or time is missing, and reports them.
`--library processor` tries all parts without a device, on small batches on the processor; these are not figures of a device.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from cases import options
from gpu_arrays import LIBRARIES
from gpu_chart import draw
from kernel_code import empty_cache
from parts import PARTS
from runner import Run, say


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options(parser)
    parser.add_argument("--output", type=Path, default=Path("output/gpu"), help="folder of results.json, tables.md, chart.png")
    parser.add_argument("--library", choices=["auto", *LIBRARIES], default="auto", help="array library")
    parser.add_argument("--minutes", type=float, default=9.0, help="time after which no further part starts")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    given = parser.parse_args(arguments)
    os.environ["CUDA_CACHE_DISABLE"] = "1"  # before the driver starts, so that only our own cache is measured
    try:
        run = Run(given)
    except (ImportError, OSError, RuntimeError) as error:
        say(f"{error}. Without a device: --library processor tries the parts; roofline.py prints bounds.")
        return 2
    with empty_cache():
        for name in given.only:
            run.part(name, PARTS[name])
    run.end()
    draw(run.results.figures, given.output / "chart.png", run.results.facts["what"])
    print((given.output / "tables.md").read_text())
    wrong = [f for f in run.results.figures if f.wrong and f.part != "peers"]
    for f in wrong:
        say(f"{f.robot}, {f.function}, {f.precision}: differs from the processor by {f.difference:.1e}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
