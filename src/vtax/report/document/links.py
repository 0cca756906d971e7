"""How the report names files of its campaign: it is in the directory `report`, next to them."""

from __future__ import annotations

from urllib.parse import quote


def raw_file(source: str) -> str:
    """The link from the report to a file of the campaign."""
    return "../" + quote(source)


def file_name(source: str) -> str:
    return source.removeprefix("trials/")
