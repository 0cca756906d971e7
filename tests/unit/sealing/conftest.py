"""A small campaign to be sealed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from builders.small import PRINTED, as_fast, new_campaign, planned, store
from fakes.cluster import FakeProvider
from vtax.store import Campaign

BEFORE = "2025-10-09T08:53:19Z"  # a second before the first trial


def change(path: Path, how: Callable[[dict], object]) -> None:  # type: ignore[type-arg]
    content = json.loads(path.read_text())
    how(content)
    path.write_text(json.dumps(content))


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """Two rounds of two environments, eight trials of which no two have the same number."""
    providers = {name: FakeProvider(name, tmp_path / "run") for name in ("host", "box")}
    made = new_campaign(tmp_path / "mine", providers)
    store(made, {trial: as_fast(PRINTED, 1.0, 3 * n) for n, trial in enumerate(planned(made.plan()))})
    change(made.directory / "campaign.json", lambda about: about.update(created=BEFORE))
    return made
