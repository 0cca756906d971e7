"""Tests of the real thing carry their marker: without it, `scripts/check` would run them among the unit tests."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
REAL = sorted(path for folder in ("integration", "browser") for path in (TESTS / folder).glob("test_*.py"))


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_tests_of_the_real_thing_are_marked(path: Path) -> None:
    marks = [line for line in path.read_text().splitlines() if line.startswith("pytestmark = ")]
    assert ["pytest.mark.integration" in line for line in marks] == [True]
