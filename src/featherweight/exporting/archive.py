"""Static libraries: concatenated object files in the format of `ar`, with the symbol index that linkers read."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

MAGIC = b"!<arch>\n"
NAME_LIMIT = 15  # characters that fit into a header


def static_library(objects: Mapping[str, bytes], symbols: Mapping[str, Sequence[str]]) -> bytes:
    """Return an archive of files by name; `symbols` are the global symbols of each. Equal files give equal bytes."""
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
