"""The cache of root file systems, without building one."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.small import IMAGE
from vtax.errors import UsageError
from vtax.events import ignore
from vtax.image import build
from vtax.image.recipe import recipe
from vtax.model.study import ImageSpec


def test_the_cache_is_private_to_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has setuid programs of the day when it was built; also a cache that an earlier version made."""
    cache = tmp_path / "images"
    cache.mkdir(mode=0o755)
    monkeypatch.setattr(build, "cached", lambda *_: IMAGE)
    assert build.ensure(cache, recipe(ImageSpec(), ""), ignore) == IMAGE
    assert cache.stat().st_mode & 0o777 == 0o700


def test_a_snapshot_of_the_future_is_refused(tmp_path: Path) -> None:
    """Archives answer with their newest state then, so tomorrow's build would be another one."""
    with pytest.raises(UsageError, match="20990101T000000Z is in the future") as caught:
        build.ensure(tmp_path / "images", recipe(ImageSpec(snapshot="2099-01-01"), ""), ignore)
    assert "up to today" in caught.value.remedy
