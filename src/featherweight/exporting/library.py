"""The function `export`, which writes compiled functions as files."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, cast

from ..checks import CHECKED_LATER, checked, one_of
from ..engine.function import CompiledFunction
from ..robot.system import System
from .c_names import check_file_name, plain_name
from .c_source import c_source
from .casadi_code import compile_for_casadi
from .export_targets import ExportTarget, find_target
from .header import guard_of, header, title_of
from .object_code import ObjectCode, compile_routine
from .routine import Routine, routines
from .shared_library import link_shared, shared_suffix
from .standalone_code import Controller, compile_standalone
from .standalone_header import standalone_header
from .standalone_source import standalone_source

KINDS = ("source", "object", "static", "shared", "cmake")
FILES = ("static", "source")


PRECISION = one_of(("double", "float")).worded("double or float")
INTERFACE = one_of(("c", "casadi")).worded("c or casadi")


@checked
def export(
    functions: Annotated[
        CompiledFunction[Any] | Iterable[CompiledFunction[Any]] | Mapping[str, CompiledFunction[Any]] | Controller,
        CHECKED_LATER,
    ],
    folder: str | os.PathLike[str],
    *,
    name: str | None = None,
    robot: System | None = None,
    files: str | Sequence[str] = FILES,
    target: Annotated[str | ExportTarget, CHECKED_LATER] = "host",
    precision: Annotated[str, PRECISION] = "double",
    prefix: str = "",
    interface: Annotated[str, INTERFACE] = "c",
) -> list[Path]:
    """Export compiled functions, or a controller, as files for other programs and machines; return the paths, the header first.

    Each function becomes `int NAME(const double *argument, ..., double *result, ..., void *workspace)`. It computes one state
    for each call, allocates no memory and keeps no state. Objects call no other function; the source calls `sqrt`, `sin` and
    `cos` of the C library. If `functions` is a dict, its keys are the names; otherwise the functions keep their own names. All
    names begin with `prefix`. `name` is the base name of the files; the default is the robot's name, or "featherweight".

    `files` are the kinds of files to write; the header NAME.h is always written:

        "source"    NAME.c, C99 for any compiler
        "object"    FUNCTION.o, machine code for the target
        "static"    libNAME.a, with these objects
        "shared"    libNAME.so (.dylib), with these objects; Linux on x86-64 and AArch64 needs no linker
        "cmake"     CMakeLists.txt with a library NAME, from the source if it is written, otherwise from the static library

    `target` is "host", a name in `featherweight.exporting.export_targets.TARGETS`, or an `ExportTarget`; the source does not
    depend on it. `precision` is "double" or "float". With `robot`, comments list its joints. On this machine, the objects give
    bitwise the same results as the functions do for one state; the source agrees to rounding, and so do objects of functions
    that check their arguments in Python, such as `se3.rpy_from_matrix`.

    A controller is an `InverseKinematics` (its `velocity`), the `solver()` of one, a `WholeBodyControl`, a `Controller` of an
    `OptimalControl`, or a `Simulation` (a step). Its library has one object, NAME.o, whose functions begin with NAME. They
    reset a workspace of the caller, run ticks from a record of inputs to one of results, and describe a status; the header says
    how. Objects call no library and contain all constants. By default, only the static library is written. Results have the
    bits of Python on this machine, and on other processors with fused multiplication and addition; those of robots with
    execution="rolled" agree to rounding, because functions leave Python as straight-line code. The source has sine and
    cosine itself, and calls `sqrt` and `fabs`, which compilers with -fno-math-errno replace by instructions; it agrees to
    rounding, and to the bit with -DFW_FMA -ffp-contract=off.

    `interface="casadi"` writes code for `casadi.external` instead of plain C, with Jacobians: see `casadi_code`.

    Raises ValueError for invalid names, kinds and targets, and for functions too large to be traced. Raises TypeError for an
    argument that is no function and no controller, OSError if the folder is not writable, and NotImplementedError for a
    controller that calls Python in its ticks.
    """
    if hasattr(functions, "standalone"):
        if precision != "double" or interface != "c":
            raise ValueError("export: controllers have double precision, and a plain C interface")
        kinds = ["static"] if files is FILES else _kinds(files, interface, precision)
        return _export_standalone(
            cast("Controller", functions), Path(folder), kinds, prefix, name, find_target(target, precision)
        )
    kinds = _kinds(files, interface, precision)
    chosen = find_target(target, precision)
    exported = routines(functions, prefix)
    name = _library_name(name, robot, exported)
    title = _title(name, robot, chosen)
    if interface == "casadi":
        return _write(Path(folder), _binaries(kinds, compile_for_casadi(functions, chosen, prefix), name, chosen))
    contents: dict[str, bytes] = {}
    objects: dict[str, ObjectCode] = {}
    workspaces = dict.fromkeys((r.name for r in exported), 0)
    if {"object", "static", "shared"} & {*kinds}:
        objects = {r.name: compile_routine(r, chosen, precision) for r in exported}
        workspaces |= {n: o.workspace for n, o in objects.items()}
    if "source" in kinds:
        text, needed = c_source(exported, precision, f"{name}.h", title)
        workspaces = {n: max(size, needed[n]) for n, size in workspaces.items()}
        contents[f"{name}.c"] = text.encode()
    head = header(name, title, exported, precision, workspaces)
    contents |= _binaries(kinds, objects, name, chosen)
    if "cmake" in kinds:
        contents["CMakeLists.txt"] = _cmake(name, kinds).encode()
    return _write(Path(folder), {f"{name}.h": head.encode(), **contents})


def _export_standalone(
    controller: Controller, folder: Path, kinds: Sequence[str], prefix: str, name: str | None, chosen: ExportTarget
) -> list[Path]:
    """Write the kernel of a controller."""
    robot = controller.robot
    name = check_file_name(prefix + (name or plain_name(robot.name) or "featherweight"))
    exported = controller.standalone()
    title = _title(name, robot, chosen)
    workspace, contents = 0, {f"{name}.h": b""}
    if {"object", "static", "shared"} & {*kinds}:
        code = compile_standalone(name, exported, chosen)
        workspace = code.workspace
        contents |= _binaries(kinds, {name: code}, name, chosen)
    if "source" in kinds:
        source = standalone_source(name, title, exported)
        workspace = max(workspace, source.workspace)
        contents[f"{name}.c"] = source.text.encode()
    contents[f"{name}.h"] = standalone_header(name, title, exported, workspace).encode()
    if "cmake" in kinds:
        contents["CMakeLists.txt"] = _cmake(name, kinds).encode()
    return _write(folder, contents)


def _kinds(files: Sequence[str], interface: str, precision: str) -> Sequence[str]:
    """Return the kinds of files. Raises ValueError for an invalid kind."""
    kinds = [files] if isinstance(files, str) else list(files)
    if unknown := {*kinds} - {*KINDS}:
        raise ValueError(f"export: files are {', '.join(KINDS)}; got {min(unknown)!r}")
    if not kinds:
        raise ValueError(f"export: files must name at least one kind: {', '.join(KINDS)}")
    if interface == "casadi" and (precision != "double" or {"source", "cmake"} & {*kinds}):
        raise ValueError("export: CasADi needs objects or libraries in double precision; use files='shared'")
    if kinds == ["cmake"]:
        raise ValueError("export: a CMakeLists.txt needs the source or a static library; add 'source' or 'static' to files")
    return kinds


def _library_name(name: str | None, robot: System | None, exported: Sequence[Routine]) -> str:
    taken = [r.name for r in exported]
    chosen = name or plain_name(robot.name if robot is not None else "", taken) or "featherweight"
    check_file_name(chosen)
    if {chosen, guard_of(chosen)} & {*taken}:
        raise ValueError(f"export: the library and a function are both called {chosen!r}: give the library another name")
    return chosen


def _title(name: str, robot: System | None, target: ExportTarget) -> str:
    """Return the comment at the start of each file."""
    what = "" if target.name == "host" else f" for {target.name} ({target.what})" if target.what else f" for {target.name}"
    return title_of(name, what, robot)


def _binaries(kinds: Sequence[str], objects: Mapping[str, ObjectCode], name: str, target: ExportTarget) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    named = {f"{n}.o": o for n, o in objects.items()}
    members = {n: o.data for n, o in named.items()}
    if "object" in kinds:
        contents |= members
    if "static" in kinds:
        contents[f"lib{name}.a"] = static_library(members, {n: o.symbols for n, o in named.items()})
    if "shared" in kinds:
        file = f"lib{name}{shared_suffix(target)}"
        contents[file] = link_shared([o.data for o in objects.values()], file, target)
    return contents


def _cmake(name: str, kinds: Sequence[str]) -> str:
    """Return a CMake project for use by add_subdirectory."""
    lines = ["cmake_minimum_required(VERSION 3.13)", f"project({name} C)", ""]
    if "source" in kinds:
        lines += [f"add_library({name} STATIC {name}.c)", f"set_target_properties({name} PROPERTIES C_STANDARD 99)"]
        lines += ["if(NOT MSVC)", f"  target_compile_options({name} PRIVATE -O2 -fno-math-errno)"]
        lines += [f"  target_link_libraries({name} PUBLIC m)", "endif()"]
        visible = "PUBLIC"
    else:
        lines += [f"add_library({name} STATIC IMPORTED GLOBAL)"]
        lines += [f"set_target_properties({name} PROPERTIES IMPORTED_LOCATION ${{CMAKE_CURRENT_SOURCE_DIR}}/lib{name}.a)"]
        visible = "INTERFACE"
    lines += [f"target_include_directories({name} {visible} ${{CMAKE_CURRENT_SOURCE_DIR}})", ""]
    return "\n".join(lines)


def _write(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write the files. Raises ValueError if an earlier file of the same name would remain beside a new header."""
    for name in (file.removesuffix(".h") for file in contents if file.endswith(".h")):
        earlier = (f"{name}.c", f"lib{name}.a", f"lib{name}.so", f"lib{name}.dylib")
        for left in (file for file in earlier if file not in contents and (folder / file).exists()):
            raise ValueError(
                f"export: {folder} has {left} of an earlier export, whose workspace may be larger than the new {name}.h says; "
                "write both in one call (files=...), write to another folder, or remove it"
            )
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    return [folder / name for name in contents]


MAGIC = b"!<arch>\n"
NAME_LIMIT = 15  # characters that fit into a header


def static_library(objects: Mapping[str, bytes], symbols: Mapping[str, Sequence[str]]) -> bytes:
    """Return object files by name as a static library in the format of `ar`, with the symbol index that linkers read.

    `symbols` are the global symbols of each file. Equal files give equal bytes.
    """
    long_names = b"".join(f"{name}/\n".encode() for name in objects if len(name) > NAME_LIMIT)
    names: dict[str, str] = {}
    at = 0
    for name in objects:
        names[name] = f"{name}/" if len(name) <= NAME_LIMIT else f"/{at}"
        at += 0 if len(name) <= NAME_LIMIT else len(name) + 2
    index_size = 4 + sum(4 + len(s) + 1 for name in objects for s in symbols[name])
    offset = len(MAGIC) + 60 + _even(index_size) + (60 + _even(len(long_names)) if long_names else 0)
    places, texts, members = [], b"", b""
    for name, data in objects.items():
        for symbol in symbols[name]:
            places.append(offset + len(members))
            texts += symbol.encode() + b"\0"
        members += _member(names[name], data)
    index = struct.pack(f">{1 + len(places)}I", len(places), *places) + texts
    return MAGIC + _member("/", index) + (_member("//", long_names) if long_names else b"") + members


def _member(name: str, data: bytes) -> bytes:
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(data):<10}`\n".encode()
    return head + data + b"\n" * (len(data) % 2)


def _even(size: int) -> int:
    return size + size % 2
