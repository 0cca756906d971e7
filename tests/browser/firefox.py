"""Firefox, driven through Marionette, the protocol that every Firefox speaks: no driver has to be installed.

A message is its length, a colon and JSON: `[0, id, command, parameters]`, answered by `[1, id, error, result]`.
"""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

START_S = 60  # until it listens
ANSWER_S = 120  # for one command, on a busy machine
SETTINGS = {
    "marionette.port": 0,  # a free one, which it writes into its profile
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.proxy.type": 1,  # whatever would leave the machine ends at a port that nobody listens at
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
}
WATCH = """
const seen = window.vtaxSeen = [];
Services.obs.addObserver((subject) => {
  const channel = subject.QueryInterface(Ci.nsIChannel);
  if (channel.loadInfo.browsingContextID) seen.push(channel.URI.spec); // a page's own, not the browser's
}, "http-on-opening-request");
Services.console.reset();
"""
SAID = """
return Services.console.getMessageArray().filter((m) => m instanceof Ci.nsIScriptError
  && (m.sourceName || "").startsWith("file:") && !(m.flags & Ci.nsIScriptError.warningFlag)).map((m) => m.errorMessage);
"""


class Firefox:
    """One Firefox with one page, headless, with a profile of its own. Ends with its `with` block."""

    def __init__(self, program: str, profile: Path) -> None:
        self.count = 0
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in SETTINGS.items()]
        (profile / "user.js").write_text("\n".join(lines), encoding="utf-8")
        options = ("--headless", "--no-remote", "--marionette", "--remote-allow-system-access")
        argv = (program, *options, "--profile", str(profile))
        log = (profile / "log").open("wb")
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        try:
            self.socket = socket.create_connection(("127.0.0.1", self._port(profile)), ANSWER_S)
            self.stream = self.socket.makefile("rb")
            self._message()  # the greeting
            self.ask("WebDriver:NewSession", capabilities={"alwaysMatch": {"acceptInsecureCerts": False}})
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise

    def _port(self, profile: Path) -> int:
        until = time.monotonic() + START_S
        while time.monotonic() < until and self.process.poll() is None:
            try:
                return int((profile / "MarionetteActivePort").read_text())
            except (OSError, ValueError):
                time.sleep(0.1)
        raise AssertionError(f"Firefox did not start: {(profile / 'log').read_text(errors='replace')[-2000:]}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stream.close()
        self.socket.close()
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _message(self) -> Any:
        length = b""
        while (letter := self.stream.read(1)) != b":":
            assert letter, "Firefox closed the connection"
            length += letter
        return json.loads(self.stream.read(int(length)))

    def ask(self, command: str, **parameters: Any) -> Any:
        """What a command answers."""
        self.count += 1
        text = json.dumps([0, self.count, command, parameters]).encode()
        self.socket.sendall(str(len(text)).encode() + b":" + text)
        _, number, error, result = self._message()
        assert number == self.count
        assert error is None, f"{command}: {error}"
        return result["value"] if isinstance(result, dict) and set(result) == {"value"} else result

    def js(self, script: str, *arguments: Any) -> Any:
        """What a function with this body returns, in the page."""
        return self.ask("WebDriver:ExecuteScript", script=script, args=list(arguments))

    def chrome(self, script: str) -> Any:
        """The same in the browser itself."""
        self.ask("Marionette:SetContext", value="chrome")
        try:
            return self.js(script)
        finally:
            self.ask("Marionette:SetContext", value="content")

    def open(self, url: str) -> None:
        """Open a page; from here on its errors and requests count."""
        self.chrome(WATCH)
        self.ask("WebDriver:Navigate", url=url)

    def point(self, x: float, y: float) -> None:
        """Move the pointer to a place of the window."""
        moves = [{"type": "pointerMove", "duration": 0, "x": round(x) + step, "y": round(y)} for step in (-1, 0)]
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": moves}
        self.ask("WebDriver:PerformActions", actions=[mouse])

    def enter_frame(self) -> None:
        """Go on inside the page's first frame."""
        frame = self.ask("WebDriver:FindElement", using="css selector", value="iframe")
        self.ask("WebDriver:SwitchToFrame", element=next(iter(frame.values())))

    def wait(self, script: str, *arguments: Any) -> None:
        """Until the script returns something true."""
        until = time.monotonic() + ANSWER_S
        while not self.js(script, *arguments):
            assert time.monotonic() < until, f"never true: {script}"
            time.sleep(0.05)

    def errors(self) -> list[str]:
        """Errors that the page put on the console."""
        found: list[str] = self.chrome(SAID)
        return found

    def requests(self) -> list[str]:
        """What was asked of the network since the page was opened."""
        found: list[str] = self.chrome("return window.vtaxSeen")
        return found

    def picture(self) -> bytes:
        """The window's content as PNG."""
        return base64.b64decode(self.ask("WebDriver:TakeScreenshot", full=False))
