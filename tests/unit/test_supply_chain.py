"""What is downloaded to build, test and check vtax is named by version and hash."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["requirements.lock", "scripts/uv.lock", "scripts/build.lock"])
def test_every_locked_package_has_hashes(name: str) -> None:
    text = (TOP / name).read_text(encoding="utf-8")
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert entries
    assert [
        one for one in entries if re.match(r"[a-z0-9._-]+==\S+ (?s:.*)--hash=sha256:[0-9a-f]{64}", one) is None
    ] == []


def test_bootstrap_installs_nothing_without_a_hash() -> None:
    text = (TOP / "scripts" / "bootstrap").read_text(encoding="utf-8")
    installs = [line.strip() for line in text.splitlines() if re.search(r"\bpip\b.* install ", line)]
    assert len(installs) == 3
    for line in installs:
        assert "--require-hashes" in line or ("--no-deps" in line and "--no-build-isolation" in line), line


def test_actions_are_pinned_and_keep_no_credentials() -> None:
    for path in (TOP / ".github" / "workflows").glob("*.yml"):
        text = path.read_text(encoding="utf-8")
        used = re.findall(r"uses: (\S+)", text)
        assert [one for one in used if re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one) is None] == []
        checkouts = sum(one.startswith("actions/checkout@") for one in used)
        assert text.count("persist-credentials: false") == checkouts
