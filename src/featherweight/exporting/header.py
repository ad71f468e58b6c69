"""The header of exported functions: arguments and results, for readers and for compilers."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from ..engine.program import Input, Output
from ..robot.system import System
from ..version import __version__
from .routine import Routine

_UNITS = {  # units of a joint's q and v
    "revolute": ("rad", "rad/s"),
    "continuous": ("rad", "rad/s"),
    "prismatic": ("m", "m/s"),
    "floating": ("x y z [m], quaternion x y z w", "linear [m/s], angular [rad/s], in the body's frame"),
    "spherical": ("quaternion x y z w", "rad/s, in the body's frame"),
    "planar": ("x y [m], cosine and sine of the angle", "m/s in the body's frame, rad/s"),
}
_CONVENTIONS = """\
SI units. Arrays are contiguous, matrices row-major. Spatial vectors are (linear, angular). A function reads its arguments, \
writes its results and uses a workspace of NAME_WORKSPACE_BYTES at any address. It allocates no memory and keeps no state \
between calls. Several threads may call it at once, each with its own workspace. Arguments, results and the workspace must \
not overlap. It returns 0, or 1 if it needs a workspace and the pointer is null."""

WIDTH = 120  # characters of a line of code


def title_of(name: str, target: str, robot: System | None) -> str:
    """Return the comment at the start of each file."""
    lines = [f"{name}: written by Featherweight {__version__}{target}."]
    if robot is not None:
        g = ", ".join(f"{x:g}" for x in robot.gravity)
        lines += [
            "",
            f"Robot: {robot.name}, {robot.mass:.6g} kg, gravity ({g}) m/s^2. Its joints, in the order of q and v:",
            "",
        ]
        lines += _joint_lines(robot.joints)
    return comment(lines)


def header(name: str, title: str, routines: Sequence[Routine], precision: str, workspaces: Mapping[str, int]) -> str:
    """Return the text of a header; `workspaces` are the bytes of workspace for each routine."""
    lines = [comment(textwrap.wrap(_CONVENTIONS, 110)), ""]
    for r in routines:
        lines += [comment(_about(r)), *_macros(r, workspaces[r.name]), declaration(r, precision) + ";"]
        lines += [f"int {r.name}_workspace_bytes(void);", ""]
    return guarded(name, title, lines)


def guarded(name: str, title: str, lines: Sequence[str]) -> str:
    """Return the text of a header for C and C++ that may be included repeatedly."""
    guard = guard_of(name)
    begin = [title, f"#ifndef {guard}", f"#define {guard}", "", "#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    return "\n".join([*begin, *lines, "#ifdef __cplusplus", "}", "#endif", f"#endif {comment([guard])}", ""])


def guard_of(name: str) -> str:
    """Return the macro that guards a header against repeated inclusion."""
    return f"{name.upper()}_H"


def declaration(r: Routine, precision: str) -> str:
    """Return the declaration of a routine in C."""
    names = r.c_names
    inputs = [f"const {precision} *{n}" for n in names[: len(r.inputs)]]
    outputs = [f"{precision} *{n}" for n in names[len(r.inputs) :]]
    return f"int {r.name}({', '.join([*inputs, *outputs, 'void *workspace'])})"


def _macros(r: Routine, workspace: int) -> list[str]:
    sizes = [x.size for x in r.inputs] + [y.size for y in r.outputs]
    lines = [f"#define {r.name.upper()}_{n.upper()}_SIZE {size}" for n, size in zip(r.c_names, sizes, strict=True)]
    return [*lines, f"#define {r.name.upper()}_WORKSPACE_BYTES {workspace}"]


def _about(r: Routine) -> list[str]:
    """Return lines with the purpose of the function, and the shapes of its arguments and results."""
    paragraph = re.split(r"\n\s*\n", r.doc.strip())[0]
    lines = textwrap.wrap(" ".join(paragraph.split()), 110)
    names = r.c_names
    for x, name in zip(r.inputs, names, strict=False):
        lines.append(f"    {name}: {_shape(x)}")
    for y, name in zip(r.outputs, names[len(r.inputs) :], strict=True):
        lines.append(f"    {name}: {_shape(y)}, result")
    return lines


def _shape(x: Input | Output) -> str:
    return " x ".join(map(str, x.shape)) if x.shape else "one number"


def _joint_lines(joints: Sequence[Any]) -> list[str]:
    rows = [("joint", "type", "q", "v", "units")]
    for j in joints:
        units = "; ".join(_UNITS.get(str(j.type), ()))
        rows.append((_readable(j.name), str(j.type), _indices(j.q_slice), _indices(j.v_slice), units))
    widths = [max(len(row[k]) for row in rows) for k in range(4)]
    return ["    " + "  ".join([*(x.ljust(n) for x, n in zip(row, widths, strict=False)), row[4]]).rstrip() for row in rows]


def _indices(s: slice) -> str:
    first, last = s.start, s.stop - 1
    return "-" if last < first else f"[{first}]" if first == last else f"[{first}..{last}]"


def comment(lines: Sequence[str]) -> str:
    """Return a comment of C in plain ASCII that its text cannot end."""
    plain = [_readable(line) for line in lines]
    return "\n".join(["/* " + plain[0], *(f" * {line}".rstrip() for line in plain[1:])]) + " */"


def _readable(line: str) -> str:
    """Return a line in ASCII without delimiters of comments; other characters become escapes as in C strings."""
    text = " ".join(line.splitlines()).replace("²", "^2").replace("³", "^3").encode("ascii", "backslashreplace").decode()
    return re.sub(r"\?\?+", "?", text).replace("*/", "* /").replace("/*", "/ *")


def folded(line: str) -> str:
    """Return a line, or several if it is long and has spaces."""
    if len(line) <= WIDTH:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 8)
    parts = textwrap.wrap(line.strip(), WIDTH - len(indent), break_long_words=False, break_on_hyphens=False)
    return f"\n{indent}".join([indent[8:] + parts[0], *parts[1:]])
