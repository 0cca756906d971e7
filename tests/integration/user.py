"""A user of vtax with a state directory, a cache and studies of their own, who runs it as a command."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from vtax.model.trial import Status
from vtax.store import Campaign


class CommandUser:
    """One whose commands end within `wait_s`, and whose one campaign is at `campaign`."""

    def __init__(
        self, environment: Mapping[str, str], cache: Path, state: Path, place: Path, wait_s: float = 120.0
    ) -> None:
        self.environment = {**environment, "XDG_STATE_HOME": str(state), "XDG_CACHE_HOME": str(cache)}
        self.place, self.wait_s = place, wait_s
        self.campaign = place / "campaign"
        self.started: subprocess.Popen[bytes] | None = None

    def command(self, *words: str) -> tuple[str, ...]:
        return (sys.executable, "-m", "vtax", *words)

    def logs(self) -> str:
        """What else explains a failure."""
        return ""

    def written(self, text: str) -> Path:
        path = self.place / "study.toml"
        path.write_text(text)
        return path

    def vtax(self, *words: str, code: int = 0, **environment: str) -> str:
        """What vtax prints."""
        made = subprocess.run(
            self.command(*words),
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=self.wait_s,
            cwd=self.place,
        )
        said = made.stdout + made.stderr
        assert made.returncode == code, said + self.logs()
        return said

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        with (self.place / "log").open("wb") as log:
            self.started = subprocess.Popen(
                self.command(*words),
                env=self.environment,
                stdout=log,
                stderr=log,
                cwd=self.place,
                start_new_session=True,
            )
        return self.started

    def log(self) -> str:
        return (self.place / "log").read_text()

    def wait(self, what: Callable[[], object]) -> None:
        deadline = time.monotonic() + self.wait_s
        while not what():
            assert time.monotonic() < deadline, self.log() + self.logs()
            time.sleep(0.1)

    def end(self) -> None:
        """End what still runs."""
        if self.started is not None:
            self.started.kill()
            self.started.wait()

    def statuses(self) -> dict[str, Status]:
        return {one.id: one.status for one in Campaign.open(self.campaign).trials(texts=False)}
