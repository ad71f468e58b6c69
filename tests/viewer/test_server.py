"""Tests of the requests that a window accepts."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from websockets.typing import Subprotocol

from patience import PATIENCE
from viewer.robots import arm

pytest.importorskip("viser")

import viser
import websockets.asyncio.server
import websockets.exceptions
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from featherweight.viewer import Window
from featherweight.viewer.server import serve, stop, welcome


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    with Window(arm(tmp_path_factory.mktemp("arm")), port=0) as made:
        yield made


def port_of(window: Window) -> int:
    return int(window.url.rsplit(":", 1)[1])


def hears(window: Window, **given: Any) -> bool:
    """Return whether a connecting page receives the robot."""
    protocol = Subprotocol(f"viser-v{viser.__version__}")
    with connect(window.url.replace("http", "ws"), subprotocols=[protocol], max_size=None, **given) as page:
        return len(page.recv(timeout=PATIENCE)) > 0


def test_programs_and_the_own_page_are_heard(window: Window) -> None:
    assert hears(window)
    assert hears(window, origin=window.url)


@pytest.mark.parametrize(
    "origin",
    ["http://example.com", "https://127.0.0.1.example.com:{}", "http://127.0.0.1:{}1", "null", "file://", "http://[::1"],
)
def test_pages_of_other_sites_are_refused_before_they_hear_anything(window: Window, origin: str) -> None:
    with pytest.raises(InvalidStatus, match="403"):
        hears(window, origin=origin.format(port_of(window)))


@pytest.mark.parametrize("upgrade", ["websocket", "WebSocket", None])
def test_names_given_to_this_machine_by_others_are_refused(window: Window, upgrade: str | None) -> None:
    """Check a site whose name resolves to 127.0.0.1, whose pages have the same origin as the window."""
    asked = http.client.HTTPConnection("127.0.0.1", port_of(window), timeout=PATIENCE)
    host = f"example.com:{port_of(window)}"
    headers = {"Host": host, "Origin": f"http://{host}"}
    if upgrade:
        headers |= {
            "Upgrade": upgrade,
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": "A" * 22 + "==",
            "Sec-WebSocket-Version": "13",
        }
    asked.request("GET", "/", headers=headers)
    assert asked.getresponse().status == 403


def test_who_is_welcome() -> None:
    here = {"127.0.0.1"}
    assert welcome("localhost:9000", "http://localhost:9000", here)  # an ssh tunnel
    assert welcome("[::1]:80", "http://[::1]:80", here)
    assert welcome("127.0.0.1:8080", None, here)
    assert welcome(None, None, here)
    assert not welcome("robots.example", None, here)
    assert welcome("robots.example", None, {"Robots.example"})
    assert welcome("robots.example", "https://robots.example", None)
    assert not welcome("robots.example", "https://example.com", None)
    assert not welcome(None, "https://example.com", None)


def test_other_servers_of_the_process_are_left_alone(window: Window) -> None:
    before = websockets.asyncio.server.serve
    opened: list[Window] = []
    robot = window.robot
    threads = [threading.Thread(target=lambda: opened.append(Window(robot, port=0))) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(timeout=PATIENCE)
    assert len(opened) == 4
    for w in opened:
        with pytest.raises(InvalidStatus, match="403"):
            hears(w, origin="http://example.com")
        w.close()
    assert websockets.asyncio.server.serve is before


def test_a_server_that_cannot_be_guarded_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that nothing is served if viser's server is not of the expected kind."""
    kept = SimpleNamespace(**vars(websockets.asyncio.server))
    own = SimpleNamespace(asyncio=SimpleNamespace(server=kept), exceptions=websockets.exceptions)
    monkeypatch.setattr("viser.infra._infra.websockets", own)
    made: list[viser.ViserServer] = []
    original = viser.ViserServer.__init__

    def noted(self: viser.ViserServer, *args: object, **options: object) -> None:
        made.append(self)
        original(self, *args, **options)

    monkeypatch.setattr(viser.ViserServer, "__init__", noted)
    with pytest.raises(RuntimeError, match="version of viser"):
        serve("127.0.0.1", 0)
    assert [s._websock_server._server_thread.is_alive() for s in made] == [False]


def test_servers_stop() -> None:
    server = serve("127.0.0.1", 0)
    stop(server)
    server._websock_server._server_thread.join(timeout=PATIENCE)
    assert not server._websock_server._server_thread.is_alive()


def test_a_host_that_is_none_is_named() -> None:
    with pytest.raises(OSError, match=r"host 'no host': .*; give a name or an address of this machine, such as 127\.0\.0\.1"):
        serve("no host", 0)
