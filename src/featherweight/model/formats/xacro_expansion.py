"""Expansion of xacro files by the package xacro (PyPI), which is ROS's package and needs no other part of ROS.

xacro evaluates expressions of the file as Python without restrictions: an expression can run any code. Therefore only files
with a xacro suffix, or files for which the caller gives arguments, are expanded. xacro keeps its state in global variables, so
files are expanded one after another.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from defusedxml import minidom as safe_minidom  # type: ignore[import-untyped, unused-ignore]

from ...extras import install_command
from ...names import listed
from ..editing.notes import warn_caller
from ..files import read_regular, require_regular
from ..types import ModelError
from .robot_source import RobotSource
from .unsupported import excused
from .xml import shortened, xml_errors

NAMESPACE = "http://www.ros.org/wiki/xacro"
DECLARATION = "xmlns:xacro"
UNKNOWN_MACRO = re.compile(r"unknown macro name: (\S+)")
QUOTED = 300  # most characters of xacro's message

_LOCK = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LOCK._at_fork_reinit)  # type: ignore[attr-defined]  # as Python does with its own


def expanded(source: RobotSource, arguments: Mapping[str, Any]) -> RobotSource:
    """Return the source with macros, expressions, conditions and includes expanded; `arguments` are those of <xacro:arg>.

    `$(find NAME)` is the package's folder, as `Packages` finds it. Passes on xacro's warnings as ModelWarning, and warns about
    arguments that the file does not use. Raises ModelError, which names the file, for a file that cannot be expanded, OSError
    for one that cannot be opened, and ImportError without the package xacro.
    """
    try:
        import xacro  # type: ignore[import-untyped, import-not-found, unused-ignore]
        from xacro import substitution_args
    except ImportError as error:
        file = source.name if source.suffix == ".xacro" else "FILE.xacro"
        raise ImportError(
            f"{source}: expanding it needs the package xacro: {install_command('xacro')}; "
            f"or expand it elsewhere, by `xacro {file} > robot.urdf`, and read the result"
        ) from error
    if not isinstance(arguments, Mapping):
        raise TypeError(f'xacro_args must be a dictionary, such as {{"arm": "left"}}, not {type(arguments).__name__}')
    taken = _Arguments({name: _written(value) for name, value in arguments.items()})
    warned: dict[str, None] = {}  # in order, without duplicates
    unknown_macros: dict[str, None] = {}
    text = None
    while text is None:
        document = _document(source.content(), source.name)
        macros = [element.getAttribute("name") for element in document.getElementsByTagName("xacro:macro")]
        for element in [e for macro in unknown_macros for e in document.getElementsByTagName(macro)]:
            element.parentNode.removeChild(element)
        with _LOCK, _our_own(xacro, substitution_args, source, warned):
            try:
                xacro.process_doc(document, mappings=taken)
                text = _text(document)
            except MemoryError:
                raise
            except Exception as error:  # expressions may raise anything
                tag = UNKNOWN_MACRO.search(_words(xacro, error))
                if tag is None or tag[1] in unknown_macros:
                    raise _refusal(xacro, error, source) from error
                with excused("left out"):
                    raise _refusal(xacro, error, source) from error
                unknown_macros[tag[1]] = None
    if macros and not document.getElementsByTagName("link"):
        raise ModelError(f"{source}: it has no link, only macros ({listed(macros)}); load the file that includes it")
    for message in warned:
        warn_caller(f"{source}: xacro: {message}")
    if unknown := taken.given - taken.asked:
        warn_caller(f"{source}: xacro_args: it does not ask for {sorted(unknown)}, but for {sorted(taken.asked) or 'none'}")
    return replace(source, text=text)


class _Arguments(dict[str, str]):
    """Arguments that xacro looks up for $(arg NAME) and sets to their defaults; `asked` records the names looked up."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.given, self.asked = {*given}, set[str]()

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return super().__getitem__(name)


def _written(value: object) -> str:
    """Return the value as written on xacro's command line, where booleans are `true` and `false`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _document(content: str | bytes, name: str) -> Any:
    with xml_errors(name):
        return safe_minidom.parseString(content)


def _text(document: Any) -> str:
    """Return the text without xacro's namespace, which no element uses any more and some formats do not allow."""
    for element in document.getElementsByTagNameNS(NAMESPACE, "*"):
        raise ModelError(f"<{element.tagName}> is left: elements of this namespace need the prefix xacro, as in <xacro:macro>")
    if document.documentElement.hasAttribute(DECLARATION):
        document.documentElement.removeAttribute(DECLARATION)
    text: str = document.toxml()
    return text


@contextmanager
def _our_own(xacro: Any, substitution_args: Any, source: RobotSource, warned: dict[str, None]) -> Iterator[None]:
    """Context in which xacro finds packages and files as `source` does.

    xacro opens no pipes and no XML that defines entities there, and `warned` collects its output.
    """
    in_folder = xacro.abs_filename_spec

    def find(name: str) -> str:
        folder = next(source.packages.folders(name, near), None)
        if folder is None:
            raise ModelError(source.packages.not_found(name, near))
        return os.fspath(folder)

    def absolute(name: str) -> str:
        path: str = in_folder(name)
        if not os.path.isabs(path):
            raise ModelError(f"'{shortened(name)}' is relative, but the text has no folder; pass folder=")
        require_regular(path)  # expressions read YAML files, too
        return path

    def parse(_: object, path: str) -> Any:
        try:
            content = read_regular(path)
        except OSError as error:
            xacro.filestack.pop()  # xacro is not yet in that file
            raise xacro.XacroException(exc=error) from error
        return _document(content, path)

    def warn(*words: object, **_: object) -> None:
        message = " ".join(map(str, words))
        warned[shortened(f"{_inside(xacro, message)}{message}", QUOTED)] = None

    near = None if source.folder is None else Path(os.path.abspath(source.folder))
    main = os.path.join(near or "", os.path.basename(source.name))
    functions = {"abs_filename_spec": absolute, "parse": parse, "warning": warn, "print_location": lambda: None}
    changes: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (vars(xacro), {**functions, "filestack": [main], "macrostack": []}),
        (vars(substitution_args), {"_eval_find": find}),
    ]
    before = [(names, {key: names[key] for key in new}) for names, new in changes]
    try:
        for names, new in changes:
            names.update(new)
        yield
    finally:
        for names, old in before:
            names.update(old)


def _refusal(xacro: Any, error: BaseException, source: RobotSource) -> ModelError:
    """Return xacro's error as a ModelError."""
    cause = error
    while isinstance(cause, xacro.XacroException) and isinstance(cause.exc, Exception):
        cause = cause.exc
    message = str(cause) if isinstance(cause, ModelError) else shortened(_words(xacro, error), QUOTED) or type(cause).__name__
    if isinstance(cause, RecursionError):
        message += "; does a macro call itself, or a file include itself?"
    return ModelError(f"{source}: xacro: {_inside(xacro, message)}{message}")


def _inside(xacro: Any, message: str) -> str:
    """Return the beginning of a message: the macro and the included file that xacro is processing."""
    inside = [f"macro '{macro.body.getAttribute('name')}'" for macro in xacro.macrostack[-1:]]
    inside += [file for file in xacro.filestack[1:][-1:] if file not in message]
    return f"in {' of '.join(inside)}: " if inside else ""


def _words(xacro: Any, error: object) -> str:
    """Return the message of a xacro error, without its repetitions of the errors that it comes from."""
    if not isinstance(error, xacro.XacroException):
        return "" if error is None else " ".join(str(error).split())
    own = str(error.args[0] or "")
    parts = ("" if own.startswith("<class ") else own, _words(xacro, error.exc), error.suffix or "")
    return " ".join(" ".join(parts).split())
