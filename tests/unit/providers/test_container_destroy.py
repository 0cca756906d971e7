"""Clusters of containers whose engine no longer answers: they may still be running, so they are not called removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from vtax.errors import ProvisionError
from vtax.providers.docker.provider import Docker


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Docker:
    monkeypatch.setattr(Docker, "unavailable", lambda self: "docker does not answer: no daemon")
    monkeypatch.setattr("vtax.providers.overlay.remove", lambda runtime, campaign: None)
    return Docker(tmp_path)


def test_what_was_created_is_not_removed_without_its_engine(docker: Docker, tmp_path: Path) -> None:
    place = tmp_path / "0123abcd" / "docker"
    place.mkdir(parents=True)
    (place / "commands.json").write_text("[]")
    with pytest.raises(ProvisionError, match="the containers of 0123abcd cannot be removed: docker does not answer"):
        docker.destroy("0123abcd")


def test_what_was_never_created_is_gone(docker: Docker, tmp_path: Path) -> None:
    (tmp_path / "0123abcd" / "docker").mkdir(parents=True)
    docker.destroy("0123abcd")
    docker.destroy("4567abcd")
