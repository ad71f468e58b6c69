"""Output of the commands: console, progress bars."""

from __future__ import annotations

import codecs
import io
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.segment import Segment

from ..summaries import visible

NARROWEST = 120  # columns, if there is no terminal


PLAIN = {"→": "->", "←": "<-", "–": "-", "…": "...", "µ": "u", "²": "2", "·": "*"}


def write_plainly(stream: TextIO) -> None:
    """Let a stream replace characters that its encoding lacks by plain ones, instead of raising an error."""
    codecs.register_error("featherweight.plain", _in_plain_letters)
    if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors="featherweight.plain")


def _in_plain_letters(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(letter, "?") for letter in error.object[error.start : error.end]), error.end


class VisibleConsole(Console):
    """A console that escapes control characters in names, which would control the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield the segments of an object; those of the console itself, such as moves of the cursor, are unchanged."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def make_console() -> Console:
    """Return a console on stdout that prints brackets in names unchanged."""
    console = VisibleConsole(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = max(console.width, NARROWEST)
    return console


def say(console: Console, text: str) -> None:
    """Print a line of text with markup."""
    console.print(text, markup=True, soft_wrap=True)


def wait_for_interrupt() -> None:
    """Wait until the user presses Ctrl-C."""
    try:
        while True:
            time.sleep(3600.0)
    except KeyboardInterrupt:
        pass


@contextmanager
def progress(console: Console, what: str, total: int) -> Iterator[Callable[[str], None]]:
    """Show a progress bar on a terminal. Call the yielded function with the name of each step when it is done."""
    columns = TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[name]}")
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total, name="")
        yield lambda name: bar.update(task, advance=1, name=name)
