"""What holds for every unit test: none of them starts a process."""

from __future__ import annotations

import pytest

from vtax.export import parquet


@pytest.fixture(autouse=True)
def no_process_for_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Parquet file is unpacked in a process of its own; here in this one."""
    monkeypatch.setattr(parquet, "lines", parquet.unpacked)
