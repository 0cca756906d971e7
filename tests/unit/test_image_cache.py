"""The cache of root file systems, without building one."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.small import IMAGE
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
