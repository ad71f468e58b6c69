"""Directive for the page of the command line: all commands with their arguments, options and an example.

    ```{command-line}
    featherweight inspect robot.urdf
    ```

The content of the directive gives one example for each command. The build of the site fails (`--fail-on-warning`) if a command
has no example, or if the program rejects an example.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from docstrings import markdown
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from typer.main import get_command
from typer.models import OptionInfo, ParameterInfo
from typer.utils import get_params_from_function

from featherweight.cli.app import app as program

_log = logging.getLogger(__name__)
_NAME = "featherweight"
_KINDS = {int: "INTEGER", float: "NUMBER", str: "TEXT"}


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("command-line", CommandLine)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class CommandLine(SphinxDirective):  # type: ignore[misc]  # as in api.py
    """Directive `command-line`."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return a section for each command."""
        examples = {_words(line)[0]: line for line in self.content}
        lines = [line for name, callback in _commands() for line in _section(name, callback, examples.get(name, ""))]
        for wrong in filter(None, map(_refusal, self.content)):
            _log.warning("the program rejects the example %s", wrong, location=self.get_location())
        for bare in [name for name, _ in _commands() if name not in examples]:
            _log.warning("the command %s has no example", bare, location=self.get_location())
        made = nodes.Element()
        self.state.nested_parse(StringList(lines, self.get_source_info()[0]), self.content_offset, made, match_titles=1)
        children: list[nodes.Node] = made.children
        return children


def _commands() -> Iterator[tuple[str, Any]]:
    """Yield names and functions of the commands, in the order of `--help`."""
    for command in program.registered_commands:
        yield str(command.name), command.callback


def _words(line: str) -> list[str]:
    """Return the words of a command line after the program's name."""
    return shlex.split(line, comments=True)[1:]


def _refusal(line: str) -> str:
    """Return the line and the program's error if the program rejects the line; else an empty text."""
    command: Any = get_command(program)
    name, *arguments = _words(line)
    try:
        command.commands[name].make_context(name, arguments)
    except Exception as error:  # errors of Typer have no public base class
        return f"{line!r}: {error!r}"
    return ""


def _section(name: str, callback: Any, example: str) -> Iterator[str]:
    parameters = [(x.name, x.annotation, x.default) for x in get_params_from_function(callback).values()]
    known = [(key, annotation, info) for key, annotation, info in parameters if isinstance(info, ParameterInfo)]
    needed = [info.metavar for _, _, info in known if not isinstance(info, OptionInfo)]
    yield from (f"## {_NAME} {name}", "", *markdown(callback.__doc__ or "", lambda name: None), "")
    yield from ("```text", " ".join([_NAME, name, *map(str, needed), "[OPTIONS]"]), "```", "")
    yield from ("| | | unless given |", "|---|---|---|")
    for key, annotation, info in known:
        yield f"| {_shown(key, annotation, info)} | {_help(info)} | {_default(info)} |"
    yield from ("", "For example:", "", "```text", example, "```", "")


def _shown(key: str, annotation: Any, info: ParameterInfo) -> str:
    """Return the names of an option and the kind of its value, or the name of an argument."""
    if not isinstance(info, OptionInfo):
        return f"`{info.metavar}`"
    names = ", ".join(info.param_decls or [f"--{key.replace('_', '-')}"])
    value = "" if annotation is bool else info.metavar or _kind(annotation)
    return f"`{f'{names} {value}'.strip()}`".replace("|", "\\|")


def _kind(annotation: Any) -> str:
    """Return the placeholder of a value of this type; the type may also allow None or several values."""
    kind = annotation
    if get_origin(annotation) is not Literal:
        kind = next((x for x in get_args(annotation) if x is not NoneType), annotation)
    return "|".join(get_args(kind)) if get_origin(kind) is Literal else _KINDS[kind]


def _help(info: ParameterInfo) -> str:
    text = " ".join(markdown(info.help or "", lambda name: None)).replace("|", "\\|")
    limits = ("at least", info.min), ("at most", info.max)
    ends = [f"{which} {limit:g}" for which, limit in limits if limit is not None]
    return f"{text} ({', '.join(ends)})" if ends else text


def _default(info: ParameterInfo) -> str:
    """Return the default as text; empty if an omitted option has no effect."""
    if isinstance(info.show_default, str):
        return info.show_default
    if info.default is ...:
        return "must be given"
    return "" if info.default is None or info.default is False or info.default == "" else f"`{info.default}`"
