"""A viser server on one port of this machine, which answers only its own pages and writes nothing to standard output.

viser does not check where a request comes from. While viser starts, this module replaces the function of `websockets` that it
calls, so that each request is checked before viser sees it.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import rich
import viser
import websockets.asyncio.server

from ..engine.forks import new_lock

LOOPBACK = "127.0.0.1"
PORT, TRIED = 8080, 100  # default port, and the number of ports tried from there
PATIENCE = 0.5  # [s]

_exchanging = new_lock()


class _PageServer(viser.ViserServer):  # type: ignore[misc]  # viser is not checked
    """A server whose pages cannot open a tunnel to the internet."""

    def request_share_url(self, verbose: bool = True) -> None:
        return None


class _Host(str):
    """The hosts whose requests are checked. Other servers of the process that start meanwhile are not affected."""


def serve(host: str, port: int | None, label: str | None = None) -> viser.ViserServer:
    """Start a server at a port of a host; 0 is any free port, None the first free port from `PORT`.

    Raises OSError for a port that is taken or a host that is not this machine: viser itself would take another port, or search
    forever.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise OSError(
            f"host {host!r}: {error.strerror}; give a name or an address of this machine, such as {LOOPBACK}"
        ) from None
    wanted = _first_free(host, family) if port is None else port
    _try(host, wanted, family)
    local = ipaddress.ip_address(address[0]).is_loopback
    with rich.get_console().capture(), _looked_at({host} if local else None) as guarded:
        server = _PageServer(host=_Host(host), port=wanted, label=label, verbose=False)
    server.get_event_loop().call_soon_threadsafe(rich.get_console().begin_capture)  # captures the output of viser's thread
    if not guarded:
        stop(server)
        raise RuntimeError("this version of viser starts its server in a way that the window cannot guard; install viser 1.1")
    if wanted not in (0, server.get_port()):
        stop(server)
        raise _taken(host, wanted)
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    return server


def stop(server: viser.ViserServer) -> None:
    """Stop a server without waiting for browsers that keep a connection, which would take seconds."""
    stopping = threading.Thread(target=server.stop, daemon=True)
    stopping.start()
    stopping.join(timeout=PATIENCE)


def _try(host: str, port: int, family: int) -> None:
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise _taken(host, port) from None
        raise


def _taken(host: str, port: int) -> OSError:
    return OSError(errno.EADDRINUSE, f"port {port} of {host} is taken; choose another, or 0 for any that is free")


def _first_free(host: str, family: int) -> int:
    for port in range(PORT, PORT + TRIED):
        try:
            _try(host, port, family)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return port
    raise OSError(errno.EADDRINUSE, f"ports {PORT} to {PORT + TRIED - 1} of {host} are taken; choose another")


@contextmanager
def _looked_at(names: set[str] | None) -> Iterator[list[str]]:
    """Let a server that starts within this context refuse requests that are not `welcome`; the context lists that server."""
    with _exchanging:
        original = websockets.asyncio.server.serve
        guarded: list[str] = []

        def serve_welcome(handler: Any, host: Any = None, *args: Any, process_request: Any = None, **options: Any) -> Any:
            if isinstance(host, _Host):
                guarded.append(host)
                process_request = _before(process_request, names)
            return original(handler, host, *args, process_request=process_request, **options)

        websockets.asyncio.server.serve = serve_welcome  # type: ignore[assignment,misc]
        try:
            yield guarded
        finally:
            websockets.asyncio.server.serve = original  # type: ignore[misc]


def _before(process_request: Callable[..., Any], names: set[str] | None) -> Callable[..., Any]:
    def process(connection: Any, request: Any) -> Any:
        host, origin = (",".join(request.headers.get_all(name)) or None for name in ("Host", "Origin"))
        if not welcome(host, origin, names):
            return connection.respond(403, "This page is for requests of its own.\n")
        return process_request(connection, request)

    return process


def welcome(host: str | None, origin: str | None, names: set[str] | None) -> bool:
    """Return whether a request comes from the server's own page, or from a program without a browser, which names no origin.

    If only this machine can reach the server, `names` are the hosts under which it was requested. Other host names that lead to
    it are names that a foreign site has given to this machine's address.
    """
    if origin is not None and (host is None or origin.lower().partition("://")[2] != host.lower()):
        return False
    return names is None or host is None or _is_loopback(host, names)


def _is_loopback(host: str, names: set[str]) -> bool:
    name = host.lower().rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host.lower()
    name = name.removeprefix("[").removesuffix("]")
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost") or name in {n.lower() for n in names}
