"""The live page among strangers: other web sites, garbage, floods, silence, and values that nobody offered."""

import http.client
import os
import socket
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Final

import pytest

from ncap.errors import UserError
from ncap.tasks import find_task
from ncap.view.session import Session

viser = pytest.importorskip("viser", reason="the extra `view` is not installed")

import msgspec
import websockets.exceptions
import zstandard
from websockets.sync.client import connect

from ncap.view import door as rules
from ncap.view.door import Door
from ncap.view.panel import MAX_ORDERS
from ncap.view.web import Page, choices

PROTOCOL = f"viser-v{viser.__version__}"
CAMERA = {
    "type": "ViewerCameraMessage", "wxyz": [1, 0, 0, 0], "position": [0.0, 0, 1], "fov": 1.0, "near": 0.1, "far": 100,
    "image_height": 580, "image_width": 1030, "look_at": [0, 0, 0], "up_direction": [0, 0, 1],
}  # fmt: skip
"""What a tab says first: four, three, one, … numbers, some of them integers as JavaScript writes them."""


@pytest.fixture(scope="module")
def page():
    session = Session(find_task("flat-walk"), "untrained")
    page = Page(session, choices("untrained"), host="127.0.0.1", port=8795, plain=True)
    yield page
    page.close()


class Guest:
    """A tab without a browser."""

    def __init__(self, page: Page, **options) -> None:
        options = {"origin": page.address, "subprotocols": [PROTOCOL], "max_size": None} | options
        self.socket = connect(page.address.replace("http", "ws"), compression=None, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def say(self, message: object) -> None:
        self.socket.send(message if isinstance(message, bytes | str) else msgspec.msgpack.encode(message))

    def touch(self, handle, value: object) -> None:
        """Say that a widget has another value."""
        self.say({"type": "GuiUpdateMessage", "uuid": handle._impl.uuid, "updates": {"value": value}})

    def hears(self, word: str, seconds: float = 30.0) -> bool:
        """Whether a message with this word comes in time."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                data = self.socket.recv(timeout=0.2)
            except TimeoutError:
                continue
            size = int.from_bytes(data[8:16], "little")
            if word.encode() in zstandard.ZstdDecompressor().decompress(data[16 : 16 + size]):
                return True
        return False


def wait_until(true, seconds: float = 30.0) -> None:
    begin = time.monotonic()
    while not true():
        assert time.monotonic() - begin < seconds
        time.sleep(0.01)


def status(page: Page, **headers: str) -> int:
    """What a plain request is answered with."""
    with closing(http.client.HTTPConnection("127.0.0.1", page.door.port, timeout=5)) as connection:
        connection.putrequest("GET", "/", skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        return connection.getresponse().status


@pytest.mark.parametrize("name", ["127.0.0.1:8795", "localhost:8795", "LOCALHOST:9000", "[::1]:8795"])
def test_the_page_is_served_under_names_of_this_machine(page, name):
    # a tunnel, such as that of ssh, may have another port
    assert status(page, Host=name) == 200
    assert status(page, Host=name, Origin=f"http://{name}") == 200


@pytest.mark.parametrize(
    "name",
    ["evil.example:8795", "localhost.evil.example", "localhost@evil.example", "203.0.113.7:8795", "[::1", "", "a b"],
)
def test_a_page_under_a_foreign_name_is_refused(page, name):
    # DNS rebinding: evil.example points to 127.0.0.1 when its script asks again, and the browser believes it
    assert status(page, Host=name) == 403


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://localhost:8795.evil.example", "http://localhost:1", "file://", "http://["],
)
def test_the_websocket_is_closed_to_pages_of_other_sites(page, origin):
    with pytest.raises(websockets.exceptions.InvalidStatus, match="403"):
        Guest(page, origin=origin)
    assert status(page, Origin=origin) == 403


def test_a_websocket_that_is_no_tab_of_this_version_is_refused(page, capsys):
    for protocols in (None, ["viser-v0.0.1"], ["viser"]):
        with pytest.raises(websockets.exceptions.InvalidStatus, match="400"):
            Guest(page, subprotocols=protocols)
    assert capsys.readouterr() == ("", "")  # viser would print a line for each


def test_the_page_may_talk_to_nobody_else_and_stand_in_no_frame(page):
    # viser's page follows ?websocket=… to any server and runs what that sends; the browser must not let it
    with closing(http.client.HTTPConnection("127.0.0.1", page.door.port, timeout=5)) as connection:
        connection.request("GET", "/?websocket=wss://evil.example")
        rules = connection.getresponse().headers["Content-Security-Policy"]
    assert f"connect-src 'self' ws://127.0.0.1:{page.door.port} " in rules
    assert "frame-ancestors 'none'" in rules
    assert "*" not in rules


def objection(door: Door, host: str, origin: str | None = None) -> str | None:
    return door.objection(rules.Headers([("Host", host), *([("Origin", origin)] if origin else [])]))


def test_a_host_that_lets_the_network_in_is_reached_by_address_or_by_the_machines_name():
    door = Door("0.0.0.0", 8860)
    try:
        assert door.address == f"http://localhost:{door.port}"
        for name in ("192.0.2.3:8860", "[2001:db8::1]:8860", "localhost", socket.gethostname()):
            assert objection(door, name, f"http://{name}") is None
            assert objection(door, name, "http://evil.example")
        assert objection(door, "evil.example:8860")
    finally:
        door._socket.close()


@pytest.mark.parametrize(
    ("host", "port", "said"),
    [
        ("", 8080, "the host is empty"),
        (" ", 8080, "the host is empty"),
        ("0", 8080, "say 0.0.0.0"),
        ("203.0.113.1", 8080, "cannot listen on 203.0.113.1"),
        ("localhost\0", 8080, "cannot listen on localhost"),
        ("rö" * 60, 8080, "cannot listen on rörö"),
        ("a." * 200, 8080, "cannot listen on a.a."),
        ("[::1]", 8080, "cannot listen on [::1]"),
        ("127.0.0.1", 0, "port 0 is outside [1, 65535]"),
        ("127.0.0.1", 65536, "port 65536 is outside [1, 65535]"),
        ("127.0.0.1", -1, "port -1 is outside [1, 65535]"),
    ],
)
def test_an_odd_host_or_port_is_one_sentence(host, port, said):
    with pytest.raises(UserError) as error:
        Door(host, port)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_the_next_free_port_is_taken_and_the_last_port_is_the_end():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        door = Door("127.0.0.1", port)
        assert port < door.port < port + rules.PORTS
        door._socket.close()
    with socket.create_server(("127.0.0.1", 65535)), pytest.raises(UserError, match="65535 to 65535 are all taken"):
        Door("127.0.0.1", 65535)


def test_what_one_visitor_changes_reaches_the_others(page):
    with Guest(page) as one, Guest(page) as other:
        assert other.hears("wiring")
        one.say(CAMERA)
        one.touch(page._panel._pathway, "V0v")
        wait_until(lambda: page._panel._orders)
        page.run(0.05)
        assert page.session.controls.without == ("V0v",)
        assert other.hears('class="dead"')
        one.touch(page._panel._pathway, "nothing")
        wait_until(lambda: page._panel._wishes)
        page.run(0.05)
        assert page.session.controls.without == ()


def test_only_what_a_menu_offers_can_be_chosen_and_nothing_tells_which_files_exist(page, tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(page, "_say_no", said.append)
    os.mkfifo(tmp_path / "fifo")  # whoever opens it waits for ever
    (tmp_path / "there.safetensors").write_bytes(b"secret")
    names = [
        "a" * 300,
        str(tmp_path / "fifo"),
        str(tmp_path / "there.safetensors"),
        str(tmp_path / "missing"),
        "../..",
        "",
    ]
    before = page.door.refused.total("value that the page does not offer")
    with Guest(page) as guest:
        guest.say(CAMERA)
        for handle in (page._panel._handles["policy"], page._panel._handles["ghost"], page._panel._pathway):
            for name in (*names, 5, None, ["zero"], {"zero": 1}, float("nan")):
                guest.touch(handle, name)
        guest.touch(page._panel._handles["policy"], "zero")
        wait_until(lambda: page._panel._wishes)
    page.run(0.05)
    assert page.session.controls.policy == "zero"  # the last, and the only one that the menu has
    assert page.session.controls.ghost is None
    assert said == []
    assert page.door.refused.total("value that the page does not offer") - before == 3 * 11
    page.session.change(policy="untrained")


def test_sliders_boxes_buttons_and_texts_take_only_what_they_offer(page):
    panel = page._panel
    field = next(h for h in page.door._handles.values() if isinstance(h, viser.GuiTextHandle))
    group = [h for h in page.door._handles.values() if isinstance(h, viser.GuiButtonGroupHandle)][1]
    for handle, good, bad in (
        (panel._handles["command"], (0, 0.5, 1.0), (-0.01, 1.01, float("nan"), float("inf"), True, "0.5", None, [0.5])),
        (panel._feedback, (True, False), (0, 1, "true", None)),
        (field, ("V0v@1", "x" * 200), ("x" * 201, 7, None, b"V0v")),
        (group, ("step", "reset"), ("stop", "", True)),
    ):
        assert all(rules.offers(handle, value) for value in good)
        assert not any(rules.offers(handle, value) for value in bad)


HOSTILE = [
    b"", b"\xc1", b"\x00" * 100, "text", b"\x91" * 5000, msgspec.msgpack.encode([1, 2]), msgspec.msgpack.encode({}),
    {"type": "GuiUpdateMessage"}, {"type": "GuiUpdateMessage", "uuid": 5, "updates": {}}, {"type": "Message"},
    {"type": "__class__"}, {"type": ["GuiUpdateMessage"]}, CAMERA | {"wxyz": [1]}, CAMERA | {"fov": "wide"},
    CAMERA | {"image_height": float("inf")}, CAMERA | {"extra": 1}, {"type": "ShareUrlRequest"},
    {"type": "RunJavascriptMessage", "source": "alert(1)"}, {"type": "FileTransferStartUpload"},
    {"type": "SceneNodeUpdateMessage", "name": "/robot", "updates": {"visible": False}},
]  # fmt: skip


def test_bad_messages_are_counted_in_one_line_and_the_page_goes_on(page, capsys):
    page._tell_refusals()  # what earlier tests left
    capsys.readouterr()
    before = page.door.refused.total("message that no tab sends")
    with Guest(page) as guest:
        for _ in range(11):
            for message in HOSTILE:
                guest.say(message)
        handle = page._panel._handles["command"]
        guest.say({"type": "GuiUpdateMessage", "uuid": handle._impl.uuid, "updates": {"sync_cb": None, "value": 0.3}})
        guest.say(CAMERA)
        guest.touch(handle, 0.4)
        wait_until(lambda: page._panel._wishes)
    page.run(0.05)
    assert page.session.controls.command == 0.4
    assert handle._impl.sync_cb is not None
    assert page._server._share_tunnel is None  # viser would have put the page on the public internet
    assert page.door.refused.total("message that no tab sends") - before == 11 * len(HOSTILE)
    assert capsys.readouterr() == ("", "")
    page._tell_refusals()
    page._tell_refusals()
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert f"message that no tab sends ({before + 11 * len(HOSTILE)})" in line


def test_a_message_of_200_megabytes_ends_its_connection_alone(page):
    with Guest(page) as other:
        guest = Guest(page)
        with suppress(websockets.exceptions.ConnectionClosed, OSError):
            guest.say(b"\0" * 200_000_000)
        with pytest.raises(websockets.exceptions.ConnectionClosed):
            guest.hears("never said")
        guest.socket.close()
        assert other.hears("wiring")


def test_a_flood_of_clicks_does_not_pile_up(page):
    class Visit:
        client = object()

    for number in range(10_000):
        page._panel.clicked(Visit, f"cross_V0d.FL@{number}")
    assert len(page._panel._orders) == MAX_ORDERS  # even: what was silenced is healed
    page.run(0.05)
    assert page._panel._orders == []
    assert page.session.controls.without == ()


def test_whatever_fails_in_a_wish_the_page_goes_on(page, monkeypatch):
    said = []
    monkeypatch.setattr(page, "_say_no", said.append)
    with monkeypatch.context() as patch:
        patch.setattr(page.session, "change", lambda **_: 1 / 0)
        page._panel._wish(command=0.7)
        page.run(0.05)
    assert said == ["something failed (ZeroDivisionError)"]
    assert page.door.refused.total("wish that failed, ZeroDivisionError: division by zero") == 1
    page._panel._wish(command=0.7)
    page.run(0.05)
    assert page.session.controls.command == 0.7


TAB: Final = (
    "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\n"
    f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: {PROTOCOL}\r\n\r\n"
).encode()
"""A tab's request for a websocket."""


@contextmanager
def connections(page: Page, count: int):
    """So many connections to a page, closed at the end whatever happens."""
    with ExitStack() as stack:
        made = [
            stack.enter_context(socket.create_connection(("127.0.0.1", page.door.port), timeout=30))
            for _ in range(count)
        ]
        yield made


def test_half_open_connections_are_closed(monkeypatch):
    monkeypatch.setattr(rules, "OPENING_SECONDS", 0.5)
    monkeypatch.setattr(rules, "SILENT_SECONDS", 0.5)
    page = Page(Session(find_task("flat-walk"), "zero"), ("zero",), host="127.0.0.1", port=8797, plain=True)
    try:
        with connections(page, 300) as silent:
            for number, one in enumerate(silent):  # nothing, half a request, and a tab that answers no question
                one.sendall((b"", TAB[:30], TAB)[number % 3])
            for number, one in enumerate(silent):
                if number % 3 < 2:
                    assert one.recv(1) == b""
            wait_until(lambda: not page._server._websock_server._live_connections)
        with Guest(page) as guest:
            assert guest.hears("wiring")
    finally:
        page.close()


def test_a_tab_too_many_is_refused(page, monkeypatch):
    monkeypatch.setattr(rules, "MAX_TABS", 3)
    wait_until(lambda: not page._server._websock_server._live_connections)
    with connections(page, 4) as tabs:
        answers = []
        for one in tabs:  # one after the other: only tabs that have been let in count
            one.sendall(TAB)
            answers.append(one.recv(12))
    assert answers == [b"HTTP/1.1 101"] * 3 + [b"HTTP/1.1 503"]
    assert page.door.refused.total("tab too many") == 1


def test_a_viser_that_cannot_be_guarded_is_refused(monkeypatch):
    door = Door("127.0.0.1", 8870)
    with pytest.raises(UserError, match=r"viser 2\.0 cannot be guarded"), door.around("2.0"):
        pass  # a server that was started in some other way
    door._socket.close()
