"""Where vtax keeps what outlives a command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Paths:
    """Where vtax keeps what outlives a command: `cache` for images, `state` for run-time files of clusters."""

    cache: Path
    state: Path

    @property
    def images(self) -> Path:
        return self.cache / "images"

    @property
    def runtime(self) -> Path:
        return self.state / "run"
