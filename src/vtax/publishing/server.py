"""A campaign's report on loopback, rendered again while the campaign runs.

Only this machine can reach it, only with the token in its address, which becomes a cookie; only files of the campaign
are sent, raw ones as plain text. A browser on another site cannot use it: it checks the Host (DNS rebinding).
"""

from __future__ import annotations

import hmac
import http.cookies
import secrets
import threading
import time
import urllib.parse
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from vtax.errors import EnvironmentMissing, VtaxError
from vtax.store import Campaign

REFRESH_S = 10
COOKIE = "vtax"
PAGE = "report/index.html"
TYPES = {
    ".html": "text/html; charset=utf-8",
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
        self.lock = threading.Lock()
        self.rendered_at = 0.0
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

    def refresh(self) -> None:
        """Render again when trials were added, at most every few seconds."""
        with self.lock:
            newest = max((path.stat().st_mtime for path in (self.root / "trials").glob("*/*/record.json")), default=0.0)
            page = self.root / PAGE
            fresh = page.exists() and page.stat().st_mtime >= newest
            if fresh or time.monotonic() - self.rendered_at < REFRESH_S / 2:
                return
            try:
                self.render(self.root)
                self.failure = ""
            except VtaxError as error:
                self.failure = str(error)
            self.rendered_at = time.monotonic()


class Handler(BaseHTTPRequestHandler):
    """One request: the token first, then the page or a file."""

    server: Server
    server_version = "vtax"
    sys_version = ""

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
            return self._enter(split.path)
        if not self._known(self._cookie()):
            return self._say(HTTPStatus.FORBIDDEN, "open the address that `vtax serve` printed", body)
        path = urllib.parse.unquote(split.path).lstrip("/")
        if path in ("", PAGE):
            self.server.refresh()
            return self._page(body)
        return self._file(path, body)

    def _known(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.server.token.encode())

    def _cookie(self) -> str:
        try:
            found = http.cookies.SimpleCookie(self.headers.get("Cookie", "")).get(COOKIE)
        except http.cookies.CookieError:
            return ""
        return found.value if found else ""

    def _enter(self, path: str) -> None:
        """The token moves from the address, where histories keep it, into a cookie that no script reads."""
        self.send_response(HTTPStatus.SEE_OTHER)
        self.send_header("Location", f"/{PAGE}" if path == "/" else path)
        self.send_header("Set-Cookie", f"{COOKIE}={self.server.token}; HttpOnly; SameSite=Strict; Path=/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _page(self, body: bool) -> None:
        page = self.server.root / PAGE
        running = self.server.campaign.running()
        if page.exists():
            return self._send(page.read_bytes(), TYPES[".html"], body, refresh=running)
        text = f"Nothing to show yet. {self.server.failure}".strip()
        return self._send(text.encode(), "text/plain; charset=utf-8", body, refresh=running)

    def _file(self, path: str, body: bool) -> None:
        try:
            file = (self.server.root / path).resolve()
        except (OSError, ValueError):  # a loop of links, a NUL in the name
            return self._say(HTTPStatus.NOT_FOUND, "no such file", body)
        hidden = any(part.startswith(".") for part in Path(path).parts)
        if hidden or not file.is_relative_to(self.server.root) or not file.is_file():
            return self._say(HTTPStatus.NOT_FOUND, "no such file in the campaign", body)
        rendered = file.is_relative_to(self.server.root / "report")  # raw output is sent as text, whatever its name
        kind = TYPES.get(file.suffix, "") if rendered else ""
        return self._send(file.read_bytes(), kind or "text/plain; charset=utf-8", body)

    def _say(self, status: HTTPStatus, text: str, body: bool) -> None:
        self._send(f"{text}\n".encode(), "text/plain; charset=utf-8", body, status=status)

    def _send(
        self, content: bytes, kind: str, body: bool, *, refresh: bool = False, status: HTTPStatus = HTTPStatus.OK
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        if refresh:
            self.send_header("Refresh", str(REFRESH_S))
        self.end_headers()
        if body:
            self.wfile.write(content)
