"""The door of the live page: who may open it, and what its visitors may say.

viser serves its page and its websocket to everybody and trusts what comes back. So its server is started behind a door
that listens on the socket itself, refuses requests that come from other web sites or under other host names, limits
sizes, times and numbers of connections, and holds every message to what the page's widgets offer. What is refused is
counted, not printed: a visitor can send thousands of bad messages a second.
"""

import errno
import logging
import math
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import websockets.asyncio.server
from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.typing import Data

from ncap.errors import UserError
from ncap.files import shown
from ncap.view.looks import titled

MAX_MESSAGE: Final = 2**16
"""Largest message of a visitor, bytes; a camera's has some 300."""
MAX_TEXT: Final = 200
"""Longest text that a visitor can send, characters; the longest name of a synapse has some 50."""
MAX_TABS: Final = 64
"""Open tabs; further ones are refused."""
OPENING_SECONDS: Final = 5.0
"""Time in which a connection must have said what it wants, s."""
SILENT_SECONDS: Final = 10.0
"""Time between two questions whether a tab is still there, and time for its answer, s."""
PORTS: Final = 100
"""Ports that are tried, from the one asked for upwards."""

_EVERYWHERE: Final = ("0.0.0.0", "::")
"""Hosts that mean every address of this machine."""


class _Camera(msgspec.Struct, tag_field="type", tag="ViewerCameraMessage", forbid_unknown_fields=True):
    """Where a tab looks from. A tab sends it first and whenever its view is turned."""

    wxyz: tuple[float, float, float, float]
    position: tuple[float, float, float]
    fov: float
    near: float
    far: float
    image_height: float
    image_width: float
    look_at: tuple[float, float, float]
    up_direction: tuple[float, float, float]


class _Update(msgspec.Struct, tag_field="type", tag="GuiUpdateMessage", forbid_unknown_fields=True):
    """A widget that was touched."""

    uuid: str
    updates: dict[str, Any]


class _Trigger(msgspec.Struct, tag_field="type", tag="CommandTriggerMessage", forbid_unknown_fields=True):
    """A key that was pressed, or a command of viser's palette that was chosen."""

    uuid: str


_DECODER: Final = msgspec.msgpack.Decoder(_Camera | _Update | _Trigger)
"""All that a tab of ours says. viser knows more, such as a request to put the page on the public internet."""


class Refusals:
    """Counts of what was refused, by kind. Any thread may count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._told = 0

    def count(self, kind: str) -> None:
        """Count one more of a kind."""
        with self._lock:
            self._counts[kind] += 1

    def total(self, kind: str) -> int:
        """How many of a kind were counted."""
        with self._lock:
            return self._counts[kind]

    def line(self) -> str | None:
        """A sentence with all counts; None if nothing was counted since the last call."""
        with self._lock:
            now = self._counts.total()
            if now == self._told:
                return None
            self._told = now
            return "refused so far: " + ", ".join(f"{kind} ({n})" for kind, n in self._counts.items())


class Door:
    """A listening socket and the rules for those who come through it."""

    def __init__(self, host: str, port: int) -> None:
        """Listen on a host and a port, or the next free one."""
        self._socket = _listening(host, port)
        address, self.port = self._socket.getsockname()[:2]
        self._loopback = ip_address(address.partition("%")[0]).is_loopback
        literal = f"[{address}]" if ":" in address else address
        self._names = {"localhost", "127.0.0.1", "::1", host.lower(), address.lower()}
        if not self._loopback:
            own = socket.gethostname().lower()
            self._names |= {own, f"{own}.local"}
        self.address = f"http://{'localhost' if address in _EVERYWHERE else literal}:{self.port}"
        """What to type into a browser."""
        self.refused = Refusals()
        self._handles: Mapping[str, Any] = {}  # nothing is offered before the page is built
        self._keys: Mapping[str, Any] = {}
        self._version = ""
        self._serving = False

    @contextmanager
    def around(self, version: str) -> Iterator[None]:
        """While it lasts, a viser server of this version that is started listens here, behind these rules."""
        self._version = version
        original = websockets.asyncio.server.serve
        websockets.asyncio.server.serve = partial(self._serve, original)  # type: ignore[assignment,misc]
        try:
            yield
        except BaseException:
            self._socket.close()
            raise
        finally:
            websockets.asyncio.server.serve = original  # type: ignore[misc]
        if not self._serving:
            raise UserError(f"viser {version} cannot be guarded against other web sites; version 1.1.1 can")

    def open(self, server: Any) -> None:
        """Let the visitors of a viser server, built within `around`, use the widgets that it has and gets."""
        self._handles = server.gui._gui_input_handle_from_uuid
        self._keys = server.gui._command_handle_from_uuid
        server._event_loop.set_exception_handler(
            lambda _, context: self.refused.count(f"request that failed, {type(context.get('exception')).__name__}")
        )

    def _serve(self, original: Callable[..., Any], handler: Any, *_: Any, **options: Any) -> Any:
        """Serve as viser asked, but here and with these rules. viser calls it in place of websockets' own."""
        self._serving = True
        served = options.pop("process_request")
        logger = logging.Logger("visitors", logging.ERROR)  # its errors are the visitors', with a traceback each
        logger.addHandler(_Counting(self.refused))
        return original(
            handler,
            sock=self._socket,
            process_request=partial(self._admit, served),
            create_connection=partial(Visitor, self.accepts),
            logger=logger,
            **options
            | {
                "max_size": MAX_MESSAGE,
                "open_timeout": OPENING_SECONDS,
                "ping_interval": SILENT_SECONDS,
                "ping_timeout": SILENT_SECONDS,
                "close_timeout": 1.0,
            },
        )

    def _admit(self, served: Callable[..., Response | None], visitor: ServerConnection, request: Request) -> Any:
        """Answer a request: a refusal, a page, or None for a websocket that may open."""
        headers = request.headers
        if objection := self.objection(headers):
            self.refused.count("request from another web site or under another name")
            return visitor.respond(403, objection + "\n")
        if headers.get("Upgrade", "").lower() == "websocket":
            if f"viser-v{self._version}" not in headers.get("Sec-WebSocket-Protocol", ""):
                self.refused.count("websocket that is no tab of this version")
                return visitor.respond(400, "This is no tab of this version: load the page again.\n")
            if len(visitor.server.connections) >= MAX_TABS:
                self.refused.count("tab too many")
                return visitor.respond(503, f"{MAX_TABS} tabs are open: close some.\n")
        response = served(visitor, request)
        if response is not None:
            here = headers["Host"]
            response.headers["Content-Security-Policy"] = (  # the page talks to nobody else and is in nobody's frame
                "default-src 'self' 'unsafe-inline' 'unsafe-eval' blob: data:; "
                f"connect-src 'self' ws://{here} wss://{here} blob: data:; frame-ancestors 'none'"
            )
            response.headers["X-Content-Type-Options"] = "nosniff"
            if response.headers.get("Content-Type", "").startswith("text/html"):
                response.body = titled(bytes(response.body), response.headers.get("Content-Encoding") == "gzip")
                del response.headers["Content-Length"]
                response.headers["Content-Length"] = str(len(response.body))
        return response

    def objection(self, headers: Headers) -> str | None:
        """Why a request is refused; None if it may come in.

        A page of another site names that site as its origin; and a name that others can point here, as DNS rebinding
        does, is none of ours. Programs other than browsers name no origin, and anybody on this machine may use them.
        """
        hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
        name = _name_of(hosts[0]) if len(hosts) == 1 else None
        if name is None or not (name in self._names or (not self._loopback and _is_address(name))):
            return f"This page answers to {', '.join(sorted(self._names))} only: open it by such a name."
        if origins and (len(origins) > 1 or not _same_site(origins[0], hosts[0])):
            return "Another web site asked for this page, which answers only to itself."
        return None

    def accepts(self, message: Data) -> bool:
        """Whether a tab of ours can send this message, with a value that its widget offers. Counts it if not."""
        try:
            said = _DECODER.decode(message) if isinstance(message, bytes) else None
        except (msgspec.MsgspecError, RecursionError, ValueError):
            said = None
        if isinstance(said, _Camera) and all(_numbers_finite(part) for part in msgspec.structs.astuple(said)):
            return True
        if isinstance(said, _Update):
            handle = self._handles.get(said.uuid)
            if handle is not None and said.updates.keys() == {"value"} and offers(handle, said.updates["value"]):
                return True
            self.refused.count("value that the page does not offer")
            return False
        if isinstance(said, _Trigger) and said.uuid in self._keys:
            return True
        self.refused.count("message that no tab sends")
        return False


class Visitor(ServerConnection):
    """A connection that hands on only messages that are accepted."""

    def __init__(self, accepts: Callable[[Data], bool], *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._accepts = accepts

    async def recv(self, decode: bool | None = None) -> Data:  # type: ignore[override]
        """The next message that is accepted."""
        while True:
            message = await super().recv(decode)
            if self._accepts(message):
                return message


class _Counting(logging.Handler):
    def __init__(self, refused: Refusals) -> None:
        super().__init__()
        self._refused = refused

    def emit(self, record: logging.LogRecord) -> None:
        self._refused.count("connection that broke the rules")


def offers(handle: Any, value: object) -> bool:
    """Whether a visitor can choose a value with one of viser's widgets."""
    props = handle._impl.props
    if hasattr(props, "options"):
        return isinstance(value, str) and value in props.options
    if hasattr(props, "min"):
        return isinstance(value, int | float) and not isinstance(value, bool) and props.min <= value <= props.max
    if isinstance(handle._impl.value, str):
        return isinstance(value, str) and len(value) <= MAX_TEXT
    return isinstance(handle._impl.value, bool) and isinstance(value, bool)


def _listening(host: str, port: int) -> socket.socket:
    if not host.strip():
        raise UserError("the host is empty: give an address, 127.0.0.1 for this machine alone or 0.0.0.0 for everybody")
    if not 0 < port < 2**16:
        raise UserError(f"port {port} is outside [1, 65535]")
    try:
        if not host.isprintable():
            raise ValueError  # the system would read only what stands before a NUL
        family, _, _, _, place = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
        if place[0] in _EVERYWHERE and host not in _EVERYWHERE:
            raise UserError(f"the host {shown(host)} means every address of this machine: say 0.0.0.0 if you want that")
        last = min(port + PORTS, 2**16) - 1
        for candidate in range(port, last + 1):
            try:
                return socket.create_server((place[0], candidate, *place[2:]), family=family)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
    except (OSError, ValueError) as error:  # a name that is no name is a ValueError
        reason = getattr(error, "strerror", None) or "it is no name or address of a machine"
        raise UserError(f"cannot listen on {shown(host)[1:-1]}, port {port}: {reason}") from None
    raise UserError(f"cannot listen on {host}: the ports {port} to {last} are all taken")


def _name_of(host: str) -> str | None:
    """The name in a Host header, in small letters and without port and brackets; None if it is no such header."""
    try:
        parts = urlsplit(f"//{host}")
        return parts.hostname if parts.netloc == host and "@" not in host else None
    except ValueError:
        return None


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _same_site(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def _numbers_finite(value: object) -> bool:
    return all(math.isfinite(number) for number in (value if isinstance(value, tuple) else (value,)))
