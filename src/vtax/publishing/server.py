"""A campaign's report on loopback, rendered again while the campaign runs.

Only this machine can reach it, only with the token in its address, which becomes a cookie. Browsers send cookies to all
ports of a machine, so the name has the port in it, and the path is one that nothing else on the machine has. Only files
of the campaign are sent, and only the page that this process rendered as a page: others may hold anybody's scripts. A
browser on another site cannot use it: it checks the Host (DNS rebinding).
"""

from __future__ import annotations

import hmac
import html
import http.cookies
import io
import os
import re
import secrets
import shutil
import socket
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from vtax import files
from vtax.errors import EnvironmentMissing, VtaxError
from vtax.store import Campaign

REFRESH_S = 10
PAGE = "report/index.html"
PAGE_BYTES = 256 * 2**20
CONNECTIONS = 32
TIMEOUT_S = 10
REQUEST_S = 30.0  # for a request to arrive, however slowly its bytes do
PLAIN = "text/plain; charset=utf-8"
PAGE_POLICY_WITHIN = 4096  # bytes at the beginning of the page
PAGE_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]{1,2000})">')
NOTHING = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
TYPES = {
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".pdf": "application/pdf",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


class Server(ThreadingHTTPServer):
    """Serves one campaign. `address` is what a user opens in a browser."""

    daemon_threads = True

    def __init__(self, directory: Path, render: Callable[[Path], object], port: int = 0) -> None:
        self.campaign = Campaign.open(directory)
        self.root = directory.resolve()
        self.render = render
        self.token = secrets.token_urlsafe(24)
        self.place = f"/{secrets.token_hex(8)}/"
        self.lock = threading.Lock()
        self.free = threading.BoundedSemaphore(CONNECTIONS)
        self.rendered_at = 0.0
        self.newest = -1.0  # of the records that the page was rendered from
        self.page = b""
        self.failure = ""
        try:
            super().__init__(("127.0.0.1", port), Handler)
        except OSError as error:
            raise EnvironmentMissing(
                f"port {port} cannot be used: {error.strerror}", remedy="choose another --port, or leave it out"
            ) from error

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    @property
    def address(self) -> str:
        return f"http://{self.host}/?token={self.token}"

    @property
    def cookie(self) -> str:
        return f"vtax-{self.server_address[1]}"

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        """Each connection has a thread, and there are only so many."""
        if self.free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.free.release()

    def handle_error(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        """A browser that goes away while it is answered is none."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)

    def refresh(self) -> None:
        """Render when that was not done yet or trials were added, at most every few seconds."""
        with self.lock:
            newest = max((path.stat().st_mtime for path in (self.root / "trials").glob("*/*/record.json")), default=0.0)
            waits = self.rendered_at and time.monotonic() - self.rendered_at < REFRESH_S / 2
            if newest == self.newest or waits:
                return
            try:
                self.render(self.root)
                self.page = files.read(self.root, PAGE, PAGE_BYTES)
                self.failure, self.newest = "", newest
            except (VtaxError, OSError) as error:
                self.failure = str(error)
            self.rendered_at = time.monotonic()


class Arriving(io.RawIOBase):
    """The bytes of a connection, until a moment: with a byte now and then it would never be silent."""

    def __init__(self, connection: socket.socket, until: float) -> None:
        self.connection, self.until = connection, until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        usual, left_s = self.connection.gettimeout(), self.until - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the request does not end")
        self.connection.settimeout(left_s if usual is None else min(usual, left_s))
        try:
            return self.connection.recv_into(buffer)
        finally:
            self.connection.settimeout(usual)


class Handler(BaseHTTPRequestHandler):
    """One request: the token first, then the page or a file."""

    server: Server
    timeout = TIMEOUT_S
    server_version = "vtax"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BufferedReader(Arriving(self.connection, time.monotonic() + REQUEST_S))

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the address has the token in it."""

    def _answer(self, *, body: bool) -> None:
        split = urllib.parse.urlsplit(self.path)
        if self.headers.get("Host") not in (self.server.host, self.server.host.replace("127.0.0.1", "localhost")):
            return self._say(HTTPStatus.MISDIRECTED_REQUEST, "another host's name", body)
        given = urllib.parse.parse_qs(split.query).get("token", [""])[0]
        if given and self._known(given):
            return self._enter()
        if not split.path.startswith(self.server.place) or not self._known(self._cookie()):
            return self._say(HTTPStatus.FORBIDDEN, "open the address that `vtax serve` printed", body)
        path = urllib.parse.unquote(split.path.removeprefix(self.server.place)).lstrip("/")
        if path in ("", PAGE):
            self.server.refresh()
            return self._page(body)
        return self._file(path, body)

    def _known(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.server.token.encode())

    def _cookie(self) -> str:
        try:
            found = http.cookies.SimpleCookie(self.headers.get("Cookie", "")).get(self.server.cookie)
        except http.cookies.CookieError:
            return ""
        return found.value if found else ""

    def _enter(self) -> None:
        """The token moves from the address, where histories keep it, into a cookie that no script reads."""
        self.send_response(HTTPStatus.SEE_OTHER)
        self.send_header("Location", f"{self.server.place}{PAGE}")
        attributes = f"HttpOnly; SameSite=Strict; Path={self.server.place}"
        self.send_header("Set-Cookie", f"{self.server.cookie}={self.server.token}; {attributes}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _page(self, body: bool) -> None:
        page, running = self.server.page, self.server.campaign.running()
        if page:
            own = PAGE_POLICY.search(page[:PAGE_POLICY_WITHIN].decode(errors="replace"))
            policy = f"{html.unescape(own[1])}; frame-ancestors 'none'" if own else NOTHING
            return self._send(page, "text/html; charset=utf-8", body, refresh=running, policy=policy)
        text = f"Nothing to show yet. {self.server.failure}".strip()
        return self._send(text.encode(), PLAIN, body, refresh=running)

    def _file(self, path: str, body: bool) -> None:
        rendered = path.startswith("report/")  # raw output is sent as text, whatever its name
        kind = TYPES.get(Path(path).suffix, PLAIN) if rendered else PLAIN
        try:
            if any(part.startswith(".") for part in Path(path).parts):
                raise FileNotFoundError(path)
            with files.opened(self.server.root, path) as file:
                self._head(os.fstat(file.fileno()).st_size, kind)
                if body:
                    shutil.copyfileobj(file, self.wfile)
        except (ConnectionError, TimeoutError):
            self.close_connection = True  # the browser is gone, or too slow
        except (OSError, ValueError):  # missing, a link, no regular file, a NUL in the name
            self._say(HTTPStatus.NOT_FOUND, "no such file in the campaign", body)

    def _say(self, status: HTTPStatus, text: str, body: bool) -> None:
        self._send(f"{text}\n".encode(), PLAIN, body, status=status)

    def _send(
        self,
        content: bytes,
        kind: str,
        body: bool,
        *,
        refresh: bool = False,
        status: HTTPStatus = HTTPStatus.OK,
        policy: str = NOTHING,
    ) -> None:
        self._head(len(content), kind, refresh=refresh, status=status, policy=policy)
        if body:
            self.wfile.write(content)

    def _head(
        self,
        size: int,
        kind: str,
        *,
        refresh: bool = False,
        status: HTTPStatus = HTTPStatus.OK,
        policy: str = NOTHING,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(size))
        self.send_header("Content-Security-Policy", policy)
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        if refresh:
            self.send_header("Refresh", str(REFRESH_S))
        self.end_headers()
