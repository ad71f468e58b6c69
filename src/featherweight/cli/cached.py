"""The command that shows and clears the cache of compiled code."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from ..engine.cache_folder import bound, directory, kept_files, remove_files
from .console import make_console

MEGABYTE = 1e6


def show_cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove all compiled code.")] = False,
) -> None:
    """Show the folder and the size of the cache of compiled code, or clear the cache."""
    console, folder = make_console(), directory()
    if folder is None:
        console.print("There is no cache of compiled code: you have no home folder. Set FEATHERWEIGHT_CACHE to a folder.")
        return
    files = kept_files(folder)
    if clear:
        remove_files(files)
        left = len(kept_files(folder))
        console.print(f"Removed {len(files) - left} files from {folder}" + (f"; {left} could not be removed" if left else ""))
        return
    size = sum(file.size for file in files) / MEGABYTE
    console.print(f"{folder}", soft_wrap=True)
    console.print(f"{len(files)} files, {size:.1f} MB of {bound() / MEGABYTE:.0f} MB (FEATHERWEIGHT_CACHE_SIZE)")
    if files:
        console.print(f"most recently used: {_days_ago(files[-1].used)}; least recently used: {_days_ago(files[0].used)}")


def _days_ago(used: float) -> str:
    days = int((time.time() - used) / 86400)
    return "today" if days <= 0 else f"{days} day{'s' * (days > 1)} ago"
