"""Build the wheel and the source archive, inspect them, install the wheel and use it: `make wheel`.

    python release/check.py [--heavy] [EXTRA ...]        all extras of smoke.py unless some are named; "core" is the package
    without extras

Each extra is installed from the wheel alone in its own environment, and used there from a folder outside the clone. The
distributions are in dist/; a release publishes them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
HEAVY = ("jax", "torch", "cuda")  # each downloads hundreds of megabytes
NOT_TRIED = {  # extras and their purpose; no wheel provides them
    "docs": "the site is built from a clone: make docs",
    "examples": "they lie in a clone: make examples",
    "solvers": "benchmarks lie in a clone: make bench",
    "test": "tests lie in a clone: make test",
}
OBJECTS = "engine/loops/objects"
TARGETS = ("x86-64-v4", "x86-64-v3", "aarch64")  # all have the same kernels
PURE = "-py3-none-any.whl"
IN_WHEEL = ("featherweight/py.typed", "featherweight/version.py")
# Beginnings or ends of names of tracked files that the archive omits.
LEFT_OUT = (".png", ".gif", ".gitignore", ".gitattributes", ".ci/", ".github/")


def listed_extras() -> list[str]:
    """Return the extras of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return list(project["optional-dependencies"])


def run(*command: str | Path, **options: object) -> None:
    subprocess.run([str(x) for x in command], check=True, **options)  # type: ignore[call-overload]


def build() -> tuple[Path, Path]:
    """Build the source archive, and from it the wheel, which includes object code; return the wheel and the archive."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--sdist", "--outdir", DIST, ROOT, stdout=subprocess.DEVNULL)
    (archive,) = DIST.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as files:
            files.extractall(folder, filter="data")
        (sources,) = Path(folder).iterdir()
        python = environment(Path(folder) / "objects", str(sources))
        run(python, sources / "release/objects.py", sources / "src/featherweight" / OBJECTS, cwd=folder, env=outside())
        shutil.rmtree(sources / "build", ignore_errors=True)  # pip built here
        run(sys.executable, "-m", "build", "--wheel", "--outdir", DIST, sources, stdout=subprocess.DEVNULL)
    (wheel,) = DIST.glob("*.whl")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, archive)
    return wheel, archive


def environment(folder: Path, wanted: str) -> Path:
    """Return the Python of a new environment where a package is installed."""
    venv.create(folder, with_pip=False)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    install = sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check", wanted
    run(*install, env=outside())
    return python


def outside(**more: str) -> dict[str, str]:
    """Return the environment variables of a process that does not see the clone."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | more


def look_into_wheel(wheel: Path) -> None:
    """Check the contents of the wheel: all modules, the files that they read, the licence, and nothing else; check its
    metadata.
    """
    assert wheel.name.endswith(PURE), f"{wheel.name} is not for all platforms"
    with zipfile.ZipFile(wheel) as files:
        names = set(files.namelist())
        info = next(PurePosixPath(n).parent for n in names if n.endswith("/METADATA"))
        metadata = message_from_bytes(files.read(f"{info}/METADATA"))
    modules = {p.relative_to(ROOT / "src").as_posix() for p in (ROOT / "src/featherweight").rglob("*.py")}
    missing = ({*IN_WHEEL, f"{info}/licenses/LICENSE"} | modules) - names
    assert not missing, f"{wheel.name} lacks {sorted(missing)}"
    kernels = [{PurePosixPath(n).name for n in names if n.startswith(f"featherweight/{OBJECTS}/{t}/")} for t in TARGETS]
    assert kernels[0] and all(k == kernels[0] for k in kernels), (
        f"{wheel.name} does not have the same object code for all targets"
    )
    foreign = {n for n in names if PurePosixPath(n).parts[0] not in ("featherweight", info.name)}
    assert not foreign, f"{wheel.name} has {sorted(foreign)}"
    assert f"-{metadata['Version']}-" in wheel.name
    assert metadata["License-Expression"] == "Apache-2.0"


def look_into_archive(archive: Path) -> None:
    """Check that the archive has what builds and tests the package: tracked files except pictures, and no ignored files."""
    with tarfile.open(archive) as files:
        names = {n.partition("/")[2] for n in files.getnames()}
    listing = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), "ls-files"]  # works also if another user made the clone
    tracked = subprocess.run(listing, check=True, capture_output=True, text=True).stdout.splitlines()
    missing = {n for n in tracked if not n.endswith(LEFT_OUT) and not n.startswith(LEFT_OUT)} - names
    assert not missing, f"{archive.name} lacks {sorted(missing)}"
    assert not any("__pycache__" in n or OBJECTS in n or n.startswith((".git/", ".venv", "output")) for n in names)


def use(wheel: Path, extra: str, folder: Path) -> None:
    """Install the wheel with an extra in its own environment, and use it from outside the clone.

    Without extras, the first use is the first step of a simulation, with an empty cache.
    """
    python = environment(folder / extra, str(wheel) if extra == "core" else f"{wheel}[{extra}]")
    for script in ("first_simulation.py", "smoke.py") if extra == "core" else ("smoke.py",):
        copy = shutil.copy(ROOT / "release" / script, folder)
        run(python, "-I", copy, extra, cwd=folder, env=outside(FEATHERWEIGHT_CACHE=str(folder / "cache")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("extras", nargs="*", metavar="EXTRA")
    parser.add_argument("--heavy", action="store_true", help=f"also {', '.join(HEAVY)}")
    asked = parser.parse_args()
    known = ["core", *(x for x in listed_extras() if x not in NOT_TRIED)]
    if unknown := [x for x in asked.extras if x not in known]:
        reason = "".join(f"; {x}: {NOT_TRIED[x]}" for x in unknown if x in NOT_TRIED)
        parser.error(f"cannot try {', '.join(unknown)}, only {', '.join(known)}{reason}")
    extras = asked.extras or [x for x in known if asked.heavy or x not in HEAVY]
    wheel, archive = build()
    look_into_wheel(wheel)
    look_into_archive(archive)
    for file in (wheel, archive):
        print(f"{file.name}: {file.stat().st_size / 1e6:.2f} MB")
    failed = []
    for extra in extras:
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            try:
                use(wheel, extra, Path(folder))
            except subprocess.CalledProcessError:
                failed.append(extra)
        print(f"    {extra}: {time.perf_counter() - begun:.0f} s", flush=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
