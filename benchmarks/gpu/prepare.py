"""Collect robot files and wheels in one folder, for a machine without a network.

    python benchmarks/gpu/prepare.py FOLDER [--python 3.12] [--peers mjx warp grid] [--robots FOLDER]

That machine must have NumPy, llvmlite, cuda-core, cuda-bindings, and PyTorch or CuPy; also JAX for MJX, nvcc for GRiD, and
matplotlib for the chart. Files larger than `--most` MiB are split, for machines that limit the size of an upload:
`cat NAME.0 NAME.1 ... > NAME` joins the pieces.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from cases import G1, PANDA, TALOS, options
from measure import FILES

MUJOCO = ("mujoco==4.0.0", "mujoco-core==4.0.0", "glfw", "pyopengl", "etils", "absl-py")
ALWAYS = ("defusedxml", "gymnasium==1.4.0", *MUJOCO)  # MuJoCo reads the files of gymnasium's robots
PEERS = {
    "mjx": ("mujoco-mjx==3.17.0", "trimesh"),
    "warp": ("mujoco-warp==4.0.0", "warp-lang==1.19.0", "trimesh"),
    "grid": ("grid-rbd==0.6.0", "beautifulsoup4", "soupsieve", "platformdirs", "trimesh"),
}
PLATFORMS = [f"manylinux_2_{n}_x86_64" for n in (34, 31, 28, 27, 24, 17)] + ["manylinux2014_x86_64", "manylinux1_x86_64"]
MEBI = 2**20


def copied_robots(source: Path, folder: Path) -> list[Path]:
    """Copy the robot files that the package has, without meshes; return their paths."""
    made = []
    for name in (TALOS, PANDA, G1):
        path = folder / FILES[name][0]
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / FILES[name][0], path)
        made.append(path)
    return made


def download(python: str, packages: list[str], folder: Path) -> list[str]:
    """Return the command that downloads wheels."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--implementation", "cp"]
    command += ["--python-version", python, "--dest", str(folder)]
    return [*command, *(word for p in PLATFORMS for word in ("--platform", p)), *packages]


def cut(path: Path, most: int) -> list[Path]:
    """Split a file into pieces of at most `most` bytes; return their paths, or that of the file if it is smaller."""
    if path.stat().st_size <= most:
        return [path]
    pieces: list[Path] = []
    with path.open("rb") as source:
        while data := source.read(most):
            pieces.append(path.with_name(f"{path.name}.{len(pieces)}"))
            pieces[-1].write_bytes(data)
    path.unlink()
    return pieces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options(parser)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default="3.12", help="Python version of the machine")
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=["mjx", "grid"])
    parser.add_argument("--most", type=int, default=40, metavar="MIB", help="largest size of a file [MiB]")
    given = parser.parse_args()
    wheels = given.folder / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    copied_robots(given.robots, given.folder / "robots")
    packages = list(dict.fromkeys([*ALWAYS, *(x for peer in given.peers for x in PEERS[peer])]))
    subprocess.run(download(given.python, packages, wheels), check=True)
    for path in sorted(wheels.glob("*.whl")):
        for piece in cut(path, given.most * MEBI):
            print(f"{piece.stat().st_size / MEBI:6.1f} MiB  {piece}")


if __name__ == "__main__":
    main()
