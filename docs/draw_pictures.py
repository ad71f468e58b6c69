"""Draw the pictures of the pages again: `make pictures`, or `python docs/draw_pictures.py [PICTURE ...]` for some.

A picture of an example has the example's name. Pictures that take many minutes are drawn only if the command names them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAPERS = "benchmarks/papers/make_report.py --output docs/papers"
ALGORITHMS = "benchmarks/papers/algorithm_pages.py"
FILMS = "benchmarks/peers/make_pictures.py --output docs/pictures"
CHARTS = "benchmarks/charts.py"
MADE_BY = {
    "demo.png": "-m featherweight demo --output docs/pictures",
    "start.png": "-m pytest tests/docs/test_pages.py -k start",
    "plans_through_contact.png": "-m pytest tests/docs/test_pages.py -k guides/plans_through_contact",
    "drop_chart.png": "-m pytest tests/docs/test_pages.py -k guides/simulation",
    "talos_falls.gif": FILMS,
    "centipede_walks.gif": FILMS,
    "how_fast_batch.png": CHARTS,
    "how_fast_one_call.png": CHARTS,
    "how_fast_simulation.png": CHARTS,
    # this command writes chart.png; it needs a machine with a GPU
    "gpu_batches.png": "benchmarks/gpu/run.py --only batches --output output/gpu",
    "gpu_instructions.png": "benchmarks/gpu/instructions.py docs/pictures/gpu_instructions.png",
}
FOLDERS = {"algorithms": ALGORITHMS, "papers": PAPERS}
ENVIRONMENTS = {"reach_with_casadi": "casadi", "learn_through_dynamics": "torch", "reachable_workspace": "dask"}
LONG = {"gpu_batches.png", "learn_to_hop.png", "train_go1.gif", "train_go1.png"}


def pictures() -> dict[str, Path]:
    """Return the paths of all pictures by their names."""
    return {p.name: p for p in sorted(DOCS.rglob("*")) if p.suffix in (".png", ".gif")}


def command(picture: str) -> tuple[str, str]:
    """Return the Python arguments that draw a picture, and the extra of its environment; "" is the environment of the tests."""
    path = pictures()[picture]
    if picture in MADE_BY:
        return MADE_BY[picture], ""
    if path.parent.name in FOLDERS:
        return FOLDERS[path.parent.name], ""
    return f"examples/{path.stem}.py --output output", ENVIRONMENTS.get(path.stem, "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pictures", nargs="*", help=f"names of pictures of docs (default: all except {', '.join(LONG)})")
    known, given = pictures(), parser.parse_args().pictures
    if unknown := [p for p in given if p not in known]:
        parser.error(f"docs has no picture {', '.join(unknown)}; give names such as {min(known)}")
    chosen = given or [p for p in known if p not in LONG]
    path = os.pathsep.join(str(ROOT / folder) for folder in ("benchmarks/peers", "benchmarks/papers", "examples"))
    for line, environment in dict.fromkeys(map(command, chosen)):
        python = ROOT / f".venv-{environment}" / "bin" / "python" if environment else sys.executable
        print(f"{python} {line}", flush=True)
        subprocess.run([python, *line.split()], cwd=ROOT, env={**os.environ, "PYTHONPATH": path, "PICTURES": "1"}, check=True)
    for picture in chosen:
        if command(picture)[0].startswith("examples/"):  # examples write other files too
            shutil.copy(ROOT / "output" / picture, known[picture])


if __name__ == "__main__":
    main()
