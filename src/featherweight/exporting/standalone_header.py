"""The header of a standalone kernel: records of inputs and results, functions, names and limits."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from ..engine.loops.standalone import ANY, POSITIVE, Port, StandaloneLoop
from .c_names import RESERVED
from .header import comment, guard_of
from .standalone_code import STATUS_OF_ALL, text_bytes

_CONVENTIONS = """\
SI units. Arrays are contiguous, matrices row-major. Spatial vectors are (linear, angular). The caller gives a workspace of \
NAME_WORKSPACE_BYTES at any address, and resets it once. It contains the state, and addresses in itself: a copy elsewhere must \
be reset. NAME_tick reads the input, advances the state, and writes the output if the status is one with results. No function \
allocates memory or calls a library, and there are no variables outside the workspace: several threads may call at once, each \
with its own workspace."""
_FUNCTIONS = (
    ("int NAME_reset(void *workspace);", "Write the state at the start. Return 0, or -1 for a null pointer."),
    ("void NAME_defaults(NAME_input *input);", "Write the inputs that the controller had when it was exported."),
    (
        "int NAME_tick(void *workspace, const NAME_input *input, NAME_output *output);",
        "Run once; return a status.",
    ),
    ("const char *NAME_status_words(int status);", "Describe a status."),
    ("const char *NAME_version(void);", "Return the version of Featherweight that wrote this."),
    ("int NAME_workspace_bytes(void);", "Return NAME_WORKSPACE_BYTES."),
)


def standalone_header(name: str, title: str, exported: StandaloneLoop, workspace: int) -> str:
    """Return the text of the header of a kernel whose functions in C begin with a name."""
    guard = guard_of(name)
    lines = [title, f"#ifndef {guard}", f"#define {guard}", "", "#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    lines += [_wrapped(exported.doc), _wrapped(_CONVENTIONS.replace("NAME_W", f"{name.upper()}_W").replace("NAME", name)), ""]
    lines += [f"#define {name.upper()}_WORKSPACE_BYTES {workspace}", ""]
    if exported.bounds:
        lines += [_wrapped("Most iterations of the loops in a tick: a tick ends after them with a status.")]
        lines += [f"#define {name.upper()}_{key} {value}" for key, value in exported.bounds.items()] + [""]
    for what, ports in (("input", exported.inputs), ("output", exported.outputs)):
        lines += ["typedef struct {", *(_member(x, what == "input") for x in named(ports)), f"}} {name}_{what};", ""]
    lines += [_wrapped("Status, with results: " + ", ".join(map(str, exported.valid)) + ".")]
    lines += [
        f"#define {name.upper()}_{s.name} {f'({s.number})' if s.number < 0 else s.number} {comment([s.words])}"
        for s in (*STATUS_OF_ALL, *exported.status)
    ]
    lines.append("")
    for declared, about in _FUNCTIONS:
        lines += [_wrapped(about.replace("NAME_W", f"{name.upper()}_W")), declared.replace("NAME", name)]
    lines.append("")
    for key, names in exported.names.items():
        if not names:
            continue
        lines += [
            f"#define {name.upper()}_{key.upper()} {len(names)}",
            f"extern const char {name}_{key}[{len(names)}][{text_bytes(names)}];",
        ]
    for key, numbers in exported.constants.items():
        if not numbers.size:
            continue
        lines.append(f"extern const double {name}_{key}{''.join(f'[{n}]' for n in numbers.shape)};")
    lines += ["", "#ifdef __cplusplus", "}", "#endif", f"#endif {comment([guard])}", ""]
    return "\n".join(lines)


def named(ports: Sequence[Port]) -> list[Port]:
    """Return the ports that have numbers, with names in C, distinct and different from keywords."""
    made: list[Port] = []
    for port in ports:
        if port.defaults.size == 0:
            continue
        name = re.sub(r"\W+|^(?=\d)", "_", port.name, flags=re.ASCII)
        while name in RESERVED or name in [x.name for x in made]:
            name += "_"
        made.append(port._replace(name=name))
    return made


def _member(port: Port, given: bool) -> str:
    kind = "long long" if port.whole else "double"
    shape = " x ".join(map(str, port.outer)) or "one number"
    allowed = {ANY: ", any number", POSITIVE: ", positive"}.get(port.allowed, "") if given and not port.whole else ""
    size = f"[{port.defaults.size}]" if port.outer else ""
    return f"    {kind} {port.name}{size}; {comment([f'{shape}{allowed}: {port.doc}'.rstrip(': ')])}"


def _wrapped(text: str) -> str:
    return comment(textwrap.wrap(text, 110))
